#include "RegularExpression.h"

#include "Base/Error.h"
#include "Text/UnicodeText.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include <unicode/uchar.h>

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

/// The characters of \w in Oniguruma, as members of a class.
constexpr std::string_view WordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

/// Those among the first 256 that it counts besides, unless \w is within a class.
constexpr std::string_view MoreWordCharacters = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

/// Classes within classes deeper than this are refused, so that translation needs little memory.
constexpr int DeepestClass = 64;

/// The name that PCRE2 has for a property: for a script, that of its own characters, without those
/// that it shares; for a category, the short one.
std::string PropertyName(const std::string& name)
{
  const auto named = [&name](UProperty property, UPropertyNameChoice choice) -> const char*
  {
    const std::int32_t value = u_getPropertyValueEnum(property, name.c_str());
    return value == UCHAR_INVALID_CODE ? nullptr : u_getPropertyValueName(property, value, choice);
  };
  if (const char* script = named(UCHAR_SCRIPT, U_LONG_PROPERTY_NAME))
  {
    return std::string("sc:") + script;
  }
  const char* category = named(UCHAR_GENERAL_CATEGORY_MASK, U_SHORT_PROPERTY_NAME);
  return category == nullptr ? name : category;
}

/// The members of a class of characters.
struct CharacterSet
{
  std::string members;             ///< as they are written within brackets
  std::vector<std::string> others; ///< expressions that match one character each

  /// An expression that matches one character of the set.
  std::string Expression() const
  {
    const std::string own = this->members.empty() ? std::string() : "[" + this->members + "]";
    if (this->others.size() <= (own.empty() ? 1U : 0U))
    {
      return this->others.empty() ? own : this->others.front();
    }
    std::string any = own;
    for (const std::string& other : this->others)
    {
      any += (any.empty() ? "" : "|") + other;
    }
    return "(?:" + any + ")";
  }

  /// The set of all other characters.
  CharacterSet Negated() const
  {
    return this->others.empty()
             ? CharacterSet{ {}, { "[^" + this->members + "]" } }
             : CharacterSet{ {}, { "(?:(?!" + this->Expression() + ")(?s:.))" } };
  }

  CharacterSet And(const CharacterSet& other) const
  {
    return { {}, { "(?:(?=" + this->Expression() + ")" + other.Expression() + ")" } };
  }
};

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
    std::string result;
    while (!this->AtEnd())
    {
      if (this->Follows("\\"))
      {
        result += this->Escape();
      }
      else if (this->Follows("["))
      {
        result += this->Class(0).Expression();
      }
      else
      {
        result += this->Take(1);
      }
    }
    return result;
  }

private:
  std::string_view Pattern;
  const std::string& Source;
  std::size_t Next = 0;

  [[noreturn]] void Refuse(const std::string& what) const
  {
    throw FormatError(this->Source, ": the regular expression '", this->Pattern, "' has ", what,
      ", which is not supported.");
  }

  bool AtEnd() const { return this->Next >= this->Pattern.size(); }

  bool Follows(std::string_view text) const
  {
    return this->Pattern.substr(this->Next, text.size()) == text;
  }

  std::string Take(std::size_t count)
  {
    const std::string taken(this->Pattern.substr(this->Next, count));
    this->Next += taken.size();
    return taken;
  }

  /// Takes the text if it follows.
  bool Skip(std::string_view text)
  {
    const bool follows = this->Follows(text);
    this->Next += follows ? text.size() : 0;
    return follows;
  }

  /// \ and what belongs to it, in or outside of a class.
  std::string Escape()
  {
    if (this->Skip(R"(\s)") || this->Skip(R"(\S)"))
    {
      return this->Pattern[this->Next - 1] == 's' ? R"(\p{White_Space})" : R"(\P{White_Space})";
    }
    if (this->Skip(R"(\w)") || this->Skip(R"(\W)"))
    {
      const char* begin = this->Pattern[this->Next - 1] == 'w' ? "[" : "[^";
      return begin + std::string(WordCharacters).append(MoreWordCharacters) + "]";
    }
    if (this->Follows(R"(\p{)") || this->Follows(R"(\P{)"))
    {
      return this->Property();
    }
    if (this->Follows(R"(\h)") || this->Follows(R"(\H)"))
    {
      this->Refuse(this->Take(2));
    }
    return this->Take(2);
  }

  /// \p{Name} or \p{^Name}
  std::string Property()
  {
    std::string begin = this->Take(3);
    begin += this->Skip("^") ? "^" : "";
    const std::size_t end = std::min(this->Pattern.find('}', this->Next), this->Pattern.size());
    const std::string name = this->Take(end - this->Next);
    return begin + PropertyName(name);
  }

  /// [:name:], within a class.
  std::string NamedClass()
  {
    static const std::map<std::string, std::string_view> known = { { "[:alnum:]",
                                                                     R"(\p{Alphabetic}\p{Nd})" },
      { "[:alpha:]", R"(\p{Alphabetic})" }, { "[:lower:]", R"(\p{Lowercase})" },
      { "[:punct:]", R"(\p{P}\p{S})" }, { "[:space:]", R"(\p{White_Space})" },
      { "[:upper:]", R"(\p{Uppercase})" }, { "[:word:]", WordCharacters } };
    const std::size_t end = this->Pattern.find(":]", this->Next);
    const std::string name = this->Take(end == std::string_view::npos ? 2 : end + 2 - this->Next);
    const auto found = known.find(name);
    return found == known.end() ? name : std::string(found->second);
  }

  /// From [ to its ].
  CharacterSet Class(int depth)
  {
    if (depth > DeepestClass)
    {
      this->Refuse(
        "classes within classes of more than " + std::to_string(DeepestClass) + " levels");
    }
    this->Skip("[");
    const bool isNegated = this->Skip("^");
    CharacterSet set;
    set.members = this->Skip("]") ? "\\]" : "";
    std::optional<CharacterSet> before; // what stands before &&
    while (!this->Skip("]"))
    {
      if (this->AtEnd())
      {
        return { {}, { "[" } }; // which PCRE2 refuses
      }
      if (this->Skip("&&"))
      {
        before = before ? before->And(set) : set;
        set = {};
        continue;
      }
      this->Member(set, depth);
    }
    set = before ? before->And(set) : set;
    return isNegated ? set.Negated() : set;
  }

  /// One member of a class.
  void Member(CharacterSet& set, int depth)
  {
    if (this->Follows(R"(\w)"))
    {
      set.members += WordCharacters;
      this->Next += 2;
    }
    else if (this->Follows(R"(\W)"))
    {
      set.others.push_back("[^" + std::string(WordCharacters) + "]");
      this->Next += 2;
    }
    else if (this->Follows("\\"))
    {
      set.members += this->Escape();
    }
    else if (this->Follows("[:"))
    {
      set.members += this->NamedClass();
    }
    else if (this->Follows("["))
    {
      const CharacterSet inner = this->Class(depth + 1);
      set.members += inner.members;
      set.others.insert(set.others.end(), inner.others.begin(), inner.others.end());
    }
    else
    {
      // Beside other members these two would mean something else.
      const bool isLiteral =
        this->Follows("^") || (this->Follows("-") && (set.members.empty() || this->EndsRange()));
      set.members += (isLiteral ? "\\" : "") + this->Take(1);
    }
  }

  /// True if no member stands behind the character - that follows.
  bool EndsRange() const
  {
    const std::string_view rest = this->Pattern.substr(this->Next + 1);
    return rest.substr(0, 1) == "]" || rest.substr(0, 1) == "[" || rest.substr(0, 2) == "&&";
  }
};

}

std::string TranslatePattern(std::string_view pattern, const std::string& source)
{
  return Translator(pattern, source).Translate();
}

RegularExpression::RegularExpression(
  const std::string& pattern, const std::string& source, LetterCase letterCase, Anchors anchors)
  : Pattern(pattern)
  , Source(source)
{
  const std::string translated = TranslatePattern(pattern, source);
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  options |= letterCase == LetterCase::Ignored ? PCRE2_CASELESS : 0U;
  options |= anchors == Anchors::Lines  ? PCRE2_MULTILINE
             : anchors == Anchors::Text ? PCRE2_DOLLAR_ENDONLY
                                        : 0U;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
    translated.size(), options, &error, &offset, nullptr);
  if (code == nullptr)
  {
    throw FormatError(source, ": cannot understand the regular expression '", pattern,
      "': ", ErrorText(error), ".");
  }
  this->Code = std::shared_ptr<void>(
    code, [](void* pointer) { pcre2_code_free(static_cast<pcre2_code*>(pointer)); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // if it fails, matches are interpreted
}

std::vector<TextSpan> RegularExpression::Matches(std::string_view text, EmptyMatches empty) const
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
  const std::uint32_t always =
    PCRE2_NO_UTF_CHECK | (empty == EmptyMatches::LeftOut ? PCRE2_NOTEMPTY : 0U);
  for (std::size_t position = 0; position < text.size();)
  {
    const auto match = [&](std::uint32_t options)
    {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), position,
        options | always, data.get(), context.get());
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
      throw FormatError(this->Source, ": cannot apply the regular expression '", this->Pattern,
        "' to a text of ", text.size(), " bytes: ", ErrorText(result), ".");
    }
    ThrowIf<FormatError>(span[0] < position || span[1] < span[0], this->Source,
      ": the regular expression '", this->Pattern,
      "' moves the beginning of its matches, which is not supported.");
    if (span[0] == span[1] && !matches.empty() && matches.back().end == span[0])
    {
      NextCharacter(text, position); // the text behind a match is no match of its own
      continue;
    }
    matches.push_back({ span[0], span[1] });
    position = span[1];
  }
  return matches;
}

}
