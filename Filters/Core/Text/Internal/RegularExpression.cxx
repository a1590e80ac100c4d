#include "RegularExpression.h"

#include "Error.h"

#include <array>
#include <cstdint>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace atlas
{
namespace
{

/// Limits of one match, so that a hostile expression ends with an error instead of exhausting
/// memory.
constexpr std::uint32_t MaximumSteps = 10'000'000;
constexpr std::uint32_t MaximumHeapKiB = 256 * 1024;

std::string ErrorText(int code)
{
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template<class T, void (*Free)(T*)>
struct Deleter
{
  void operator()(T* pointer) const { Free(pointer); }
};
using MatchData =
  std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
  std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context, pcre2_match_context_free>>;

/// Copies an expression and replaces the parts that mean something else in PCRE2.
class Translator
{
public:
  Translator(std::string_view pattern, const std::string& source)
    : Pattern(pattern)
    , Source(source)
  {
  }

  std::string Translate()
  {
    while (this->Next < this->Pattern.size())
    {
      if (this->Pattern[this->Next] == '\\')
      {
        this->Escape();
      }
      else if (this->Pattern[this->Next] == '[')
      {
        this->Class();
      }
      else
      {
        this->Copy(1);
      }
    }
    return this->Result;
  }

private:
  std::string_view Pattern;
  const std::string& Source;
  std::size_t Next = 0;
  std::string Result;

  [[noreturn]] void Refuse(const std::string& what) const
  {
    throw FormatError(this->Source + ": the regular expression '" + std::string(this->Pattern) +
                      "' has " + what + ", which is not supported.");
  }

  bool Follows(std::string_view text) const
  {
    return this->Pattern.substr(this->Next, text.size()) == text;
  }

  void Copy(std::size_t count)
  {
    this->Result += this->Pattern.substr(this->Next, count);
    this->Next += count;
  }

  void Escape()
  {
    const char escaped =
      this->Next + 1 < this->Pattern.size() ? this->Pattern[this->Next + 1] : ' ';
    if (escaped == 's' || escaped == 'S')
    {
      this->Result += escaped == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      this->Next += 2;
    }
    else if (escaped == 'h' || escaped == 'H')
    {
      this->Refuse(std::string("\\") + escaped);
    }
    else
    {
      this->Copy(2);
    }
  }

  /// Copies from [ to its ], without the brackets of inner classes.
  void Class()
  {
    this->Copy(1);
    if (this->Follows("^"))
    {
      this->Copy(1);
    }
    if (this->Follows("]"))
    {
      this->Copy(1);
    }
    for (int depth = 1; depth > 0 && this->Next < this->Pattern.size();)
    {
      if (this->Follows("\\"))
      {
        this->Escape();
      }
      else if (this->Follows("&&"))
      {
        this->Refuse("an intersection of classes");
      }
      else if (this->Follows("[:"))
      {
        const std::size_t end = this->Pattern.find(":]", this->Next);
        this->Copy(end == std::string_view::npos ? 2 : end + 2 - this->Next);
      }
      else if (this->Follows("[^"))
      {
        this->Refuse("a negated class within a class");
      }
      else if (this->Follows("["))
      {
        ++depth;
        ++this->Next;
      }
      else if (this->Follows("]"))
      {
        --depth;
        if (depth == 0)
        {
          this->Copy(1);
        }
        else
        {
          ++this->Next;
        }
      }
      else
      {
        this->Copy(1);
      }
    }
  }
};

}

std::string TranslatePattern(std::string_view pattern, const std::string& source)
{
  return Translator(pattern, source).Translate();
}

RegularExpression::RegularExpression(
  const std::string& pattern, const std::string& source, LetterCase letterCase)
  : Pattern(pattern)
  , Source(source)
{
  const std::string translated = TranslatePattern(pattern, source);
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  options |= letterCase == LetterCase::Ignored ? PCRE2_CASELESS : 0U;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
    translated.size(), options, &error, &offset, nullptr);
  if (code == nullptr)
  {
    throw FormatError(source + ": cannot understand the regular expression '" + pattern +
                      "': " + ErrorText(error) + ".");
  }
  this->Code = std::shared_ptr<void>(
    code, [](void* pointer) { pcre2_code_free(static_cast<pcre2_code*>(pointer)); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // if it fails, matches are interpreted
}

std::vector<TextSpan> RegularExpression::Matches(std::string_view text) const
{
  const auto* code = static_cast<const pcre2_code*>(this->Code.get());
  const MatchData data(pcre2_match_data_create(1, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr)
  {
    throw std::bad_alloc();
  }
  pcre2_set_match_limit(context.get(), MaximumSteps);
  pcre2_set_heap_limit(context.get(), MaximumHeapKiB);
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
  std::vector<TextSpan> matches;
  for (std::size_t position = 0; position < text.size();)
  {
    const auto match = [&](std::uint32_t options)
    {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), position,
        options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data.get(), context.get());
    };
    int result = match(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
    {
      result = match(PCRE2_NO_JIT); // slower, but with its stack on the heap
    }
    if (result == PCRE2_ERROR_NOMATCH)
    {
      break;
    }
    if (result < 0)
    {
      throw FormatError(this->Source + ": cannot apply the regular expression '" + this->Pattern +
                        "' to a text of " + std::to_string(text.size()) +
                        " bytes: " + ErrorText(result) + ".");
    }
    if (span[0] < position || span[1] <= span[0])
    {
      throw FormatError(this->Source + ": the regular expression '" + this->Pattern +
                        "' moves the beginning of its matches, which is not supported.");
    }
    matches.push_back({ span[0], span[1] });
    position = span[1];
  }
  return matches;
}

}
