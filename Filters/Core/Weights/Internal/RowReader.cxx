#include "RowReader.h"

#include "ArchitectureRows.h"
#include "ArchitectureRules.h"
#include "Base/Index.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"
#include "Files/JsonText.h"
#include "RotaryConfig.h"
#include "RowExpression.h"
#include "RowFields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace atlas
{
namespace
{

using nlohmann::json;
using Config = TransformerConfig;

/// Words of rows that are no fields.
struct RowWord
{
  std::string_view name;
};
constexpr std::array<RowWord, 11> Words = { { { "ignore" }, { "let" }, { "like" }, { "need" },
  { "part" }, { "refuse" }, { "require" }, { "rotation" }, { "rules" }, { "tensors" },
  { "windows" } } };

std::vector<std::string> Split(const std::string& text)
{
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
  {
    words.push_back(word);
  }
  return words;
}

/// Whether a number is an integer of at most 2^31 - 1, of either sign.
bool IsCount(double number)
{
  return number == std::floor(number) && std::abs(number) <= 2147483647;
}

/// Reads a file by a row.
class RowReader
{
public:
  RowReader(const json& row, const Settings& settings)
    : Row(row)
    , Values(settings)
  {
  }

  TransformerConfig Read()
  {
    for (const std::string& key : this->WordList("ignore"))
    {
      this->SettingsOf(key).Ignore(this->KeysOf(key));
    }
    this->Values.RefuseVariants(this->KeysOf(this->TextOf("refuse")));
    this->CheckRequired();
    for (const auto& field : RowFields())
    {
      this->Find(std::string(field.name));
      if (field.name == "layers")
      {
        RequireFewLayers(this->Found, this->Values);
      }
    }
    this->CheckSizes();
    if (this->Row.contains("rotation"))
    {
      this->ReadRotation();
    }
    else if (this->Found.position == PositionKind::Rotary)
    {
      CheckRotatedPart(this->Found, this->Values);
    }
    this->ReadWindows();
    this->HasWindows = true;
    for (const auto& field : RowFields())
    {
      if (const auto* list = std::get_if<std::vector<bool> Config::*>(&field.value))
      {
        this->ReadList(std::string(field.name), this->Found.*(*list));
      }
      else if (const auto* numbers = std::get_if<std::vector<double> Config::*>(&field.value))
      {
        this->ReadList(std::string(field.name), this->Found.*(*numbers));
      }
    }
    this->CheckCombinations();
    for (const std::string& rule : this->WordList("rules"))
    {
      ApplyRule(rule, this->Found, this->Values);
    }
    return this->Found;
  }

private:
  const json& Row;
  const Settings& Values;
  TransformerConfig Found;
  std::map<std::string, double> Names; ///< of "let", those that were found
  std::set<std::string> Begun;         ///< fields and names that are found or being found
  std::set<std::string> Done;          ///< fields that are found
  std::map<std::string, double> Local; ///< l, slides and x
  std::set<std::string> Kept;          ///< keys
  std::map<std::string, Settings> Parts;
  bool HasWindows = false; ///< whether it is known which layers have one

  std::string TextOf(const char* word) const { return this->Row.value(word, std::string()); }
  std::vector<std::string> WordList(const char* word) const { return Split(this->TextOf(word)); }

  /// The last parts of keys, which are kept.
  Settings::Keys KeysOf(const std::string& keys)
  {
    Settings::Keys list;
    for (const std::string& key : Split(keys))
    {
      const std::size_t dot = key.find('.');
      const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
      list.push_back(this->Kept.insert(last).first->c_str());
    }
    return list;
  }

  /// The settings that keys are in: those of the first one's part, or all.
  const Settings& SettingsOf(const std::string& keys)
  {
    const std::size_t dot = keys.find('.');
    if (dot == std::string::npos)
    {
      return this->Values;
    }
    const std::string part = keys.substr(0, dot);
    const auto found = this->Parts.find(part);
    return found != this->Parts.end()
             ? found->second
             : this->Parts.emplace(part, this->Values.NestedOrEmpty({ part.c_str() }))
                 .first->second;
  }

  void CheckRequired()
  {
    const json required = this->Row.value("require", json::object());
    for (const auto& [key, expected] : required.items())
    {
      const json* found = this->SettingsOf(key).Value(this->KeysOf(key));
      this->Values.FailIf(found != nullptr && *found != expected, "expected '", key, "' to be ",
        Describe(expected), ", as in the original code of this model_type, found ",
        found == nullptr ? "" : Describe(*found), ".");
    }
    const Settings::Keys needed = this->KeysOf(this->TextOf("need"));
    this->Values.FailIf(!needed.empty() && !this->Values.Has(needed), "'",
      needed.empty() ? "" : needed.front(), "' is missing.");
  }

  [[noreturn]] void FailWord(
    const std::string& word, const std::string& expected, const json& found) const
  {
    this->Values.Fail(
      OwnRow, ": expected '", word, "' to be ", expected, ", found ", Describe(found), ".");
  }

  void CheckSizes() const
  {
    for (const char* name :
      { "layers", "heads", "keyHeads", "modelDimension", "headDimension", "vocabulary" })
    {
      const auto& count = std::get<RowCount>(FindNamed(RowFields(), name)->value);
      const std::int64_t size = this->Found.*(count.field);
      const bool isPicture = std::string_view(name) == "vocabulary" && !this->Row.contains(name);
      this->Values.FailIf(size < 1 && !isPicture, OwnRow, ": expected ", name,
        " to be at least 1, found ", size, ".");
    }
  }

  void RequireWords(const std::string& word, const json& object,
    std::initializer_list<std::string_view> words, const char* expected) const
  {
    for (const auto& [key, value] : object.items())
    {
      if (std::find(words.begin(), words.end(), key) == words.end())
      {
        this->FailWord(word, expected, json(key));
      }
    }
  }

  double Evaluate(const std::string& expression)
  {
    return EvaluateExpression(
      expression, [this](const std::string& name) { return this->Variable(name); });
  }

  double Variable(const std::string& name)
  {
    const auto local = this->Local.find(name);
    if (local != this->Local.end())
    {
      return local->second;
    }
    if (this->Row.contains("let") && this->Row["let"].contains(name))
    {
      const auto known = this->Names.find(name);
      if (known != this->Names.end())
      {
        return known->second;
      }
      this->Values.FailIf(
        !this->Begun.insert("let " + name).second, OwnRow, ": '", name, "' depends on itself.");
      const double value = this->ReadName(this->Row["let"][name]);
      this->Names.emplace(name, value);
      return value;
    }
    const Named<RowField>* field = FindNamed(RowFields(), name);
    this->Values.FailIf(field == nullptr, OwnRow, ": unknown name '", name.substr(0, 80),
      "' in an expression, expected a number, a field or a name of 'let'.");
    this->Find(name);
    if (const auto* count = std::get_if<RowCount>(&field->value))
    {
      return static_cast<double>(this->Found.*(count->field));
    }
    if (const auto* number = std::get_if<RowNumber>(&field->value))
    {
      return this->Found.*(number->field);
    }
    if (const auto* flag = std::get_if<RowFlag>(&field->value))
    {
      return this->Found.*(*flag) ? 1 : 0;
    }
    const auto* list = std::get_if<std::vector<bool> Config::*>(&field->value);
    if (list != nullptr && this->Local.count("l") != 0)
    {
      this->ReadList(name, this->Found.*(*list));
      const std::vector<bool>& values = this->Found.*(*list);
      return values.empty() || values[static_cast<std::size_t>(this->Local["l"])] ? 1 : 0;
    }
    this->Values.Fail(OwnRow, ": '", name, "' in an expression is no number.");
  }

  /// A value that an object of a row gets from the file, or the row's own for that case.
  struct Source
  {
    const json* value = nullptr; ///< of the row; nullptr: `keys` are read
    Settings::Keys keys;
    const Settings* settings = nullptr; ///< in these
  };
  Source SourceOf(const std::string& word, const json& value)
  {
    if (!value.is_object())
    {
      return { &value, {}, nullptr };
    }
    this->RequireWords(word, value,
      { "from", "else", "null", "to", "names", "least", "if", "then" },
      "a value or an object with 'from'");
    if (value.contains("if") && value.contains("then") && value.contains("else"))
    {
      const bool holds = this->OwnNumber(word, value["if"]) != 0;
      return this->SourceOf(word, value[holds ? "then" : "else"]);
    }
    if (!value.contains("from") || !value["from"].is_string())
    {
      this->FailWord(word, "a value or an object with 'from'", value);
    }
    const std::string from = value["from"];
    const Settings::Keys keys = this->KeysOf(from);
    const Settings& settings = this->SettingsOf(from);
    if (keys.empty())
    {
      this->FailWord(word, "a value with keys in 'from'", value);
    }
    if (value.contains("null") && settings.IsNull(keys.front()))
    {
      return this->SourceOf(word, value["null"]);
    }
    const bool isThere = settings.Has(keys);
    this->Values.FailIf(!isThere && !value.contains("else"), "'", keys.front(), "' is missing.");
    if (!isThere)
    {
      return this->SourceOf(word, value["else"]);
    }
    if (!value.contains("names"))
    {
      return { nullptr, keys, &settings };
    }
    const json& names = value["names"];
    std::string text;
    if (names.contains("true") || names.contains("false"))
    {
      text = settings.Flag(keys, false) ? "true" : "false";
    }
    else
    {
      text = settings.Text(keys, "");
    }
    if (!names.contains(text))
    {
      std::vector<Named<int>> known;
      for (const auto& [name, one] : names.items())
      {
        known.push_back({ name, 0 });
      }
      this->Values.Fail("unknown ", keys.front(), " '", text.substr(0, 80), "', expected one of ",
        NamesOf(known), ".");
    }
    return this->SourceOf(word, names[text]);
  }

  /// A number of the row itself.
  double OwnNumber(const std::string& word, const json& value)
  {
    const double number = value.is_boolean()  ? (value.get<bool>() ? 1.0 : 0.0)
                          : value.is_number() ? value.get<double>()
                          : value.is_string() ? this->Evaluate(value.get<std::string>())
                                              : std::nan("");
    if (!std::isfinite(number))
    {
      this->FailWord(word, "a number or an expression", value);
    }
    return number;
  }

  double Converted(const json& value, double read)
  {
    if (!value.is_object() || !value.contains("to"))
    {
      return read;
    }
    this->Local["x"] = read;
    const double converted = this->Evaluate(value["to"].get<std::string>());
    this->Local.erase("x");
    return converted;
  }

  /// A name of "let": an integer, unless its default is true, false or has a fraction.
  double ReadName(const json& value)
  {
    const Source source = this->SourceOf("let", value);
    if (source.value != nullptr)
    {
      return this->OwnNumber("let", *source.value);
    }
    const json otherwise = value.value("else", json());
    if (otherwise.is_boolean())
    {
      return source.settings->Flag(source.keys, false) ? 1 : 0;
    }
    const std::int64_t least = value.value("least", std::int64_t{ 1 });
    const json& found = *source.settings->Value(source.keys);
    const bool isNegative = found.is_number_integer() && found < 0 && found >= least;
    return this->Converted(value, isNegative ? found.get<double>()
                                  : otherwise.is_number_float()
                                    ? source.settings->Number(source.keys, 0, true)
                                    : static_cast<double>(source.settings->Signed(
                                        source.keys, 0, std::max(least, std::int64_t{ 0 }))));
  }

  /// Finds a field, unless it is found or a list, which is read last.
  void Find(const std::string& name)
  {
    if (!this->Row.contains(name) || this->Done.count(name) != 0)
    {
      return;
    }
    this->Values.FailIf(
      !this->Begun.insert(name).second, OwnRow, ": '", name, "' depends on itself.");
    const json& value = this->Row[name];
    std::visit(
      [&](auto field) { this->Set(name, field, value); }, FindNamed(RowFields(), name)->value);
    this->Done.insert(name);
  }

  void Set(const std::string& name, const RowCount& count, const json& value)
  {
    const Source source = this->SourceOf(name, value);
    double number = 0;
    if (source.value != nullptr)
    {
      number = this->OwnNumber(name, *source.value);
    }
    else
    {
      const std::int64_t least = value.value("least", count.least);
      number =
        this->Converted(value, static_cast<double>(source.settings->Signed(source.keys, 0, least)));
    }
    if (!IsCount(number))
    {
      this->Values.FailIf(name == "headDimension", "the number of heads, ", this->Found.heads,
        ", does not divide the dimension of the model, ", this->Found.modelDimension, ".");
      this->Values.Fail("expected ", name, " to be an integer, found ", number, ".");
    }
    this->Found.*(count.field) = static_cast<std::int64_t>(number);
  }

  void Set(const std::string& name, const RowNumber& number, const json& value)
  {
    const Source source = this->SourceOf(name, value);
    this->Found.*(number.field) =
      source.value != nullptr
        ? this->OwnNumber(name, *source.value)
        : this->Converted(value, source.settings->Number(source.keys, 0, number.zero));
    this->Values.FailIf(!std::isfinite(this->Found.*(number.field)), "expected ", name,
      " to be finite, found ", this->Found.*(number.field), ".");
  }

  bool IsTrue(const std::string& name, const json& value)
  {
    const Source source = this->SourceOf(name, value);
    return source.value != nullptr ? this->OwnNumber(name, *source.value) != 0
                                   : source.settings->Flag(source.keys, false);
  }

  void Set(const std::string& name, RowFlag flag, const json& value)
  {
    this->Found.*flag = this->IsTrue(name, value);
  }

  template<class List>
  auto Choose(const std::string& name, const json& value, const List& list)
  {
    const Source source = this->SourceOf(name, value);
    if (source.value == nullptr)
    {
      return source.settings->Choice(source.keys, "", list);
    }
    const std::string text = source.value->is_string() ? source.value->get<std::string>() : "";
    const auto* found = FindNamed(list, text);
    if (found == nullptr)
    {
      this->FailWord(name, "one of " + NamesOf(list), *source.value);
    }
    return found->value;
  }
  template<class Value>
  void Set(const std::string& name, Value Config::* field, const json& value)
  {
    this->Found.*field = this->Choose(name, value, RowChoices::Of(Value()));
  }
  template<class Value>
  void Set(
    const std::string& /*name*/, std::vector<Value> Config::* /*field*/, const json& /*value*/)
  {
  }

  /// Refuses what is not run together.
  void CheckCombinations() const
  {
    const Config& config = this->Found;
    this->Values.FailIf(config.activation == Activation::Xielu && config.gated,
      "expected an MLP without a gate for the activation xielu.");
    this->Values.FailIf(config.normsQueriesLast && config.queryKeyNorm == QueryKeyNorm::Together,
      OwnRow, ": expected queries that are normalized by head if they are after their rotation.");
    this->Values.FailIf(config.experts > 0 && config.expertsPerToken > config.experts,
      "expected at most ", config.experts, " experts per token, found ", config.expertsPerToken,
      ".");
    for (const double base : config.rotaryBases)
    {
      this->Values.FailIf(
        base <= 0, "expected positive rotary bases, found ", base, " for a layer.");
    }
  }

  void ReadRotation()
  {
    const json& row = this->Row["rotation"];
    this->RequireWords("rotation", row,
      { "if", "base", "part", "partial", "originalPositions", "windowBase", "dimension",
        "magnitudes" },
      "an object of if, base, part, partial, originalPositions, windowBase, dimension and "
      "magnitudes");
    if (row.contains("if") && !this->IsTrue("rotation", row["if"]))
    {
      return;
    }
    const auto number = [&](const char* word, double otherwise)
    {
      if (!row.contains(word))
      {
        return otherwise;
      }
      const Source source = this->SourceOf(word, row[word]);
      return source.value != nullptr ? this->OwnNumber(word, *source.value)
                                     : source.settings->Number(source.keys, 0);
    };
    RotaryDefaults defaults;
    defaults.base = number("base", defaults.base);
    defaults.isPartial = number("partial", 0) != 0;
    defaults.part = number("part", defaults.part);
    defaults.originalPositions = number("originalPositions", 0);
    defaults.windowBase = number("windowBase", 0);
    defaults.dimension = static_cast<std::int64_t>(number("dimension", 0));
    defaults.hasMagnitudes = number("magnitudes", 0) != 0;
    ParseRotation(this->Found, this->Values, defaults);
  }

  void ReadWindows()
  {
    if (!this->Row.contains("windows"))
    {
      return;
    }
    const json& row = this->Row["windows"];
    this->RequireWords(
      "windows", row, { "if", "else", "slides" }, "an object of if, else and slides");
    if (row.contains("if") && !this->IsTrue("windows", row["if"]))
    {
      this->Values.Ignore({ "sliding_window" });
      return;
    }
    std::function<bool(std::int64_t)> slides;
    if (row.contains("slides"))
    {
      const std::string expression = row["slides"];
      slides = [this, expression](std::int64_t l)
      {
        this->Local["l"] = static_cast<double>(l);
        return this->Evaluate(expression) != 0;
      };
    }
    const double otherwise = row.contains("else") ? this->OwnNumber("windows", row["else"]) : 0;
    this->Values.FailIf(!IsCount(otherwise) || otherwise < 0, OwnRow,
      ": expected 'else' of 'windows' to be an integer of at least 0, found ", otherwise, ".");
    ParseWindows(this->Found, this->Values, static_cast<std::int64_t>(otherwise), slides);
    this->Local.erase("l");
  }

  /// A value for each layer.
  template<class Value>
  void ReadList(const std::string& name, std::vector<Value>& list)
  {
    if (!this->Row.contains(name) || !this->Begun.insert("list " + name).second)
    {
      return;
    }
    const std::map<std::string, double> local = this->Local;
    json value = this->Row[name];
    json names = json::object();
    if (value.is_object() && value.contains("from") && value.contains("names"))
    {
      names = value["names"];
      value.erase("names");
    }
    if (value.is_object() && value.contains("from") && value.contains("else"))
    {
      const std::string from = value["from"];
      const json* inFile = this->SettingsOf(from).Value(this->KeysOf(from));
      if (inFile != nullptr && *inFile == json::array())
      {
        value = json(value["else"]);
      }
    }
    const Source source = this->SourceOf(name, value);
    std::vector<double> numbers;
    if (source.value == nullptr)
    {
      numbers = this->FileList(source, names);
    }
    else if (*source.value == json(false))
    {
      return;
    }
    for (std::int64_t l = 0; l < this->Found.layers; ++l)
    {
      this->Local["l"] = static_cast<double>(l);
      if (this->HasWindows)
      {
        this->Local["slides"] = this->Found.Window(l) > 0 ? 1 : 0;
      }
      const double number = source.value == nullptr ? this->Converted(value, numbers[l])
                                                    : this->OwnNumber(name, *source.value);
      list.push_back(static_cast<Value>(number));
    }
    this->Local = local;
    if constexpr (std::is_same_v<Value, bool>) // an empty list says that all are
    {
      if (std::find(list.begin(), list.end(), false) == list.end())
      {
        list.clear();
      }
    }
  }

  /// A list of numbers, true or false, or of names for them, one for each layer.
  std::vector<double> FileList(const Source& source, const json& names) const
  {
    const Settings::Keys& keys = source.keys;
    const json& list = *source.settings->Value(keys);
    const std::string expected = "a list of " + std::to_string(this->Found.layers) + " numbers";
    this->Values.FailIf(!list.is_array() || list.size() != ToIndex(this->Found.layers),
      "expected '", keys.front(), "' to be ", expected, ", found ", Describe(list), ".");
    std::vector<double> numbers;
    for (const json& found : list)
    {
      const bool isName = found.is_string() && names.contains(found.get<std::string>());
      const json& item = isName ? names[found.get<std::string>()] : found;
      const double number = item.is_boolean()  ? (item.get<bool>() ? 1.0 : 0.0)
                            : item.is_number() ? item.get<double>()
                                               : std::nan("");
      this->Values.FailIf(!std::isfinite(number), "expected '", keys.front(), "' to be ", expected,
        ", found ", Describe(item), " in it.");
      numbers.push_back(number);
    }
    return numbers;
  }
};

}

bool IsRowWord(const std::string& word)
{
  return FindNamed(Words, word) != nullptr || FindNamed(RowFields(), word) != nullptr;
}

std::string KnownRowWords()
{
  return NamesOf(Words);
}

TransformerConfig ReadByRow(const json& row, const Settings& settings)
{
  if (row.contains("part"))
  {
    const Settings part = PartOf(settings, row["part"].get_ref<const std::string&>().c_str());
    return RowReader(row, part).Read();
  }
  return RowReader(row, settings).Read();
}

}
