#include "UnicodeText.h"

#include "Base/Error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <memory>

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>
#include <utf8.h>

namespace atlas
{
namespace
{

constexpr char32_t AsciiEnd = 128;
constexpr char32_t CapitalIWithDot = 0x130;

/// The version of Unicode whose categories BERT's tokenizers use; ICU has a later one. Characters
/// whose category changed in between are named where they matter.
constexpr std::uint8_t BertUnicode = 8;
constexpr char32_t SharadaSandhi = 0x111C9; // punctuation up to Unicode 10, then a mark

UChar32 Icu(char32_t c)
{
  return static_cast<UChar32>(c);
}

/// In the order of NormalizationForm.
constexpr std::array<const icu::Normalizer2* (*)(UErrorCode&), 4> Normalizers = {
  icu::Normalizer2::getNFCInstance, icu::Normalizer2::getNFDInstance,
  icu::Normalizer2::getNFKCInstance, icu::Normalizer2::getNFKDInstance
};

/// True for a character that a version of Unicode had, and that is in one of these categories.
bool IsOf(char32_t c, std::uint32_t categories, std::uint8_t version)
{
  UVersionInfo age = {};
  u_charAge(Icu(c), age);
  return (U_GET_GC_MASK(Icu(c)) & categories) != 0 && age[0] > 0 &&
         (age[0] < version || (age[0] == version && age[1] == 0));
}

/// ICU counts bytes in 32 bits, and normalization may make a text up to 18 times as long.
void RequireIcuLength(std::string_view text)
{
  constexpr std::size_t maximum = std::size_t{ 100 } << 20U;
  ThrowIf<FormatError>(text.size() > maximum, "expected a text of at most ", maximum,
    " bytes, found ", text.size(), "; split it.");
}

}

std::string ReplaceInvalidUtf8(std::string_view bytes)
{
  if (utf8::is_valid(bytes.begin(), bytes.end()))
  {
    return std::string(bytes);
  }
  RequireIcuLength(bytes);
  std::string text;
  icu::UnicodeString::fromUTF8({ bytes.data(), static_cast<std::int32_t>(bytes.size()) })
    .toUTF8String(text);
  return text;
}

std::string Normalize(NormalizationForm form, std::string_view text)
{
  if (IsAscii(text))
  {
    return std::string(text);
  }
  RequireIcuLength(text);
  std::string normalized;
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = Normalizers[static_cast<std::size_t>(form)](status);
  icu::StringByteSink<std::string> sink(&normalized);
  if (U_SUCCESS(status))
  {
    normalizer->normalizeUTF8(
      0, { text.data(), static_cast<std::int32_t>(text.size()) }, sink, nullptr, status);
  }
  if (U_FAILURE(status))
  {
    throw FormatError("cannot normalize text: ICU says ", u_errorName(status), ".");
  }
  return normalized;
}

std::string ToLower(std::string_view text)
{
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const char32_t c = NextCharacter(text, i);
    if (c == CapitalIWithDot) // the only character with a lower case of two characters, i and a dot
    {
      lower += "i\xcc\x87";
    }
    else
    {
      Append(lower, static_cast<char32_t>(u_tolower(Icu(c))));
    }
  }
  return lower;
}

std::string FoldCase(std::string_view text)
{
  RequireIcuLength(text);
  std::string folded;
  icu::StringByteSink<std::string> sink(&folded);
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8Fold(U_FOLD_CASE_DEFAULT,
    { text.data(), static_cast<std::int32_t>(text.size()) }, sink, nullptr, status);
  if (U_FAILURE(status))
  {
    throw FormatError("cannot fold the case of text: ICU says ", u_errorName(status), ".");
  }
  return Normalize(NormalizationForm::NFC, folded);
}

std::vector<std::size_t> ClusterEnds(std::string_view text)
{
  std::vector<std::size_t> ends;
  if (IsAscii(text))
  {
    for (std::size_t i = 0; i < text.size(); ++i)
    {
      if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n')
      {
        ends.push_back(i + 1);
      }
    }
    return ends;
  }
  RequireIcuLength(text);
  UErrorCode status = U_ZERO_ERROR;
  UText* const whole =
    utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status);
  const std::unique_ptr<UText, UText* (*)(UText*)> owner(whole, utext_close);
  const std::unique_ptr<icu::BreakIterator> clusters(
    icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  if (U_SUCCESS(status))
  {
    clusters->setText(whole, status);
  }
  if (U_FAILURE(status))
  {
    throw FormatError("cannot find the characters of text: ICU says ", u_errorName(status), ".");
  }
  for (std::int32_t end = clusters->next(); end != icu::BreakIterator::DONE; end = clusters->next())
  {
    ends.push_back(static_cast<std::size_t>(end));
  }
  return ends;
}

std::string_view Stripped(std::string_view text, bool left, bool right)
{
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t here = i;
    if (!IsWhitespace(NextCharacter(text, i)))
    {
      begin = std::min(begin, here);
      end = i;
    }
  }
  begin = left ? begin : 0;
  end = right ? end : text.size();
  return text.substr(begin, end - std::min(begin, end));
}

bool IsWhitespace(char32_t c)
{
  return u_isUWhiteSpace(Icu(c)) != 0;
}

bool IsPunctuation(char32_t c)
{
  if (c < AsciiEnd)
  {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return c == 0x166D || c == SharadaSandhi || IsOf(c, U_GC_P_MASK, BertUnicode);
}

bool IsNonspacingMark(char32_t c)
{
  const bool changedLater = c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == SharadaSandhi;
  return c == 0x1734 || c == 0x1171E || (!changedLater && IsOf(c, U_GC_MN_MASK, BertUnicode));
}

bool IsMark(char32_t c)
{
  return c == 0x1CF2 || c == 0x1CF3 || (c != SharadaSandhi && IsOf(c, U_GC_M_MASK, 9));
}

bool IsOther(char32_t c)
{
  return IsOf(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK, BertUnicode);
}

bool IsWordCharacter(char32_t c)
{
  return u_isUAlphabetic(Icu(c)) != 0 || u_hasBinaryProperty(Icu(c), UCHAR_JOIN_CONTROL) != 0 ||
         (U_GET_GC_MASK(Icu(c)) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

bool IsChinese(char32_t c)
{
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

}
