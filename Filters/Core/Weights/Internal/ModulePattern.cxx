#include "ModulePattern.h"

#include "Base/Error.h"

#include <array>
#include <cstdint>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace atlas
{
namespace
{

constexpr std::uint32_t MaximumSteps = 1'000'000;

PCRE2_SPTR Units(const std::string& text)
{
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}

ModulePattern::ModulePattern(const std::string& expression, std::string source)
  : Source(std::move(source))
{
  int error = 0;
  std::size_t place = 0;
  pcre2_code* code = pcre2_compile(Units(expression), expression.size(),
    PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &place, nullptr);
  if (code == nullptr)
  {
    std::array<PCRE2_UCHAR, 256> text = {};
    pcre2_get_error_message(error, text.data(), text.size());
    throw ModelError(this->Source, ": expected a regular expression, found '",
      expression.substr(0, 80), "': ", reinterpret_cast<char*>(text.data()), ".");
  }
  this->Code = std::shared_ptr<const void>(code, [code](const void*) { pcre2_code_free(code); });
}

std::optional<std::string> ModulePattern::Match(const std::string& module) const
{
  const auto* code = static_cast<const pcre2_code*>(this->Code.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
    pcre2_match_data_create_from_pattern(code, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
    pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), MaximumSteps);
  const int found =
    pcre2_match(code, Units(module), module.size(), 0, 0, match.get(), context.get());
  ThrowIf<ModelError>(found < 0 && found != PCRE2_ERROR_NOMATCH, this->Source,
    ": expected a regular expression that is matched in ", MaximumSteps,
    " steps, found one that needs more.");
  if (found < 0)
  {
    return std::nullopt;
  }
  std::array<PCRE2_UCHAR, 32> text = {};
  std::size_t size = text.size();
  const std::string name = "idx";
  const int copied = pcre2_substring_copy_byname(match.get(), Units(name), text.data(), &size);
  return copied == 0 ? std::string(reinterpret_cast<char*>(text.data()), size) : std::string();
}

}
