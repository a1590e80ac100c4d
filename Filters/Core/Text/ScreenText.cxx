#include "ScreenText.h"

#include "Base/Error.h"
#include "TokenLabel.h"
#include "UnicodeText.h"

#include <unicode/ubidi.h>
#include <unicode/unistr.h>
#include <unicode/ushape.h>

#include <cstdint>
#include <memory>

namespace atlas
{
namespace
{

void Require(UErrorCode status)
{
  if (U_FAILURE(status))
  {
    throw FormatError("cannot order text for the screen: ICU says ", u_errorName(status), ".");
  }
}

/// Replaces Arabic letters by their initial, medial, final and isolated forms. No text gets longer.
icu::UnicodeString Shaped(const icu::UnicodeString& text)
{
  icu::UnicodeString shaped;
  UErrorCode status = U_ZERO_ERROR;
  char16_t* buffer = shaped.getBuffer(text.length() + 1);
  const std::int32_t length =
    u_shapeArabic(text.getBuffer(), text.length(), buffer, shaped.getCapacity(),
      U_SHAPE_LETTERS_SHAPE, &status); // of text in the order of reading, which may shrink
  shaped.releaseBuffer(U_SUCCESS(status) ? length : 0);
  Require(status);
  return shaped;
}

}

std::string ScreenText(std::string_view text)
{
  if (IsAscii(text))
  {
    return std::string(text);
  }
  const auto whole =
    icu::UnicodeString::fromUTF8({ text.data(), static_cast<std::int32_t>(text.size()) });
  const std::unique_ptr<UBiDi, decltype(&ubidi_close)> order(ubidi_open(), ubidi_close);
  UErrorCode status = U_ZERO_ERROR;
  const auto set = [&](const icu::UnicodeString& letters)
  {
    ubidi_setPara(
      order.get(), letters.getBuffer(), letters.length(), UBIDI_DEFAULT_LTR, nullptr, &status);
    Require(status);
  };
  set(whole);
  if (ubidi_getDirection(order.get()) == UBIDI_LTR)
  {
    return std::string(text);
  }
  const icu::UnicodeString shaped = Shaped(whole);
  set(shaped);
  icu::UnicodeString ordered;
  char16_t* buffer = ordered.getBuffer(shaped.length() + 1);
  const std::int32_t length = ubidi_writeReordered(order.get(), buffer, ordered.getCapacity(),
    UBIDI_DO_MIRRORING | UBIDI_KEEP_BASE_COMBINING | UBIDI_REMOVE_BIDI_CONTROLS, &status);
  ordered.releaseBuffer(U_SUCCESS(status) ? length : 0);
  Require(status);
  std::string bytes;
  return ordered.toUTF8String(bytes);
}

std::string ScreenLabel(std::string_view token)
{
  return ScreenText(TokenLabel(ReplaceInvalidUtf8(token)));
}

}
