#include "JsonText.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "FileContent.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

namespace atlas
{

using nlohmann::json;

json ParseJson(std::string_view text, const std::string& source, const std::string& what)
{
  std::vector<std::unordered_set<std::string>> keys;
  const auto refuseDuplicates = [&](int, json::parse_event_t event, json& parsed)
  {
    if (event == json::parse_event_t::object_start)
    {
      keys.emplace_back();
    }
    else if (event == json::parse_event_t::object_end)
    {
      keys.pop_back();
    }
    else if (event == json::parse_event_t::key &&
             !keys.back().insert(parsed.get<std::string>()).second)
    {
      throw FormatError(
        source, ": ", what, " has the name '", parsed.get<std::string>(), "' twice.");
    }
    return true;
  };
  try
  {
    return json::parse(text.begin(), text.end(), refuseDuplicates);
  }
  catch (const json::exception& e)
  {
    throw FormatError(source, ": ", what, " is not JSON: ", WhyNoJson(text, e.what()), ".");
  }
}

json ParseJsonObject(std::string_view text, const std::string& source, const std::string& what)
{
  json object = ParseJson(text, source, what);
  ThrowIf<FormatError>(!object.is_object(), source, ": expected ", what,
    " to be a JSON object, found ", object.type_name(), ".");
  return object;
}

std::string WithTaggedNumbers(std::string_view text)
{
  constexpr std::array<std::string_view, 3> numbers = { "-Infinity", "Infinity", "NaN" };
  std::string tagged;
  bool isInText = false;
  for (std::size_t i = 0; i < text.size();)
  {
    const std::string_view rest = text.substr(i);
    const auto* found = std::find_if(numbers.begin(), numbers.end(),
      [&](std::string_view number) { return !isInText && BeginsWith(rest, number); });
    if (found != numbers.end())
    {
      tagged += R"({"__float__": ")" + std::string(*found) + "\"}";
      i += found->size();
      continue;
    }
    const std::size_t size = isInText && rest[0] == '\\' && rest.size() > 1 ? 2 : 1;
    isInText = isInText != (rest[0] == '"');
    tagged += rest.substr(0, size);
    i += size;
  }
  return tagged;
}

std::string Describe(const json& value)
{
  if (!value.is_primitive())
  {
    return value.type_name();
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
}

}
