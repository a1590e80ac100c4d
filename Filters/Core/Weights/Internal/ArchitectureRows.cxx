#include "ArchitectureRows.h"

#include "ArchitectureTexts.h"
#include "Base/NamedValues.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"
#include "RowReader.h"
#include "TensorNames.h"

#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

using nlohmann::json;

/// A row with what it says in place of, or in addition to, what another says.
json Overlaid(json base, const json& row)
{
  for (const auto& [word, value] : row.items())
  {
    const bool adds = word == "ignore" || word == "refuse" || word == "rules";
    json& own = base[word];
    if (value.is_null())
    {
      base.erase(word);
    }
    else if (adds && own.is_string() && value.is_string())
    {
      own = own.get<std::string>() + " " + value.get<std::string>();
    }
    else if (own.is_object() && value.is_object() && word != "tensors" && !value.contains("from"))
    {
      own.merge_patch(value);
    }
    else
    {
      own = value;
    }
  }
  return base;
}

/// All rows, as they stand in their files and with what they inherit.
struct Rows
{
  json stored = json::object();
  json whole = json::object();
  std::vector<std::string> order; ///< by which `like` comes before
  std::vector<RowName> models;
};

/// Adds a row to those with what they inherit, after those that it is like.

void AddWhole(Rows& rows, const std::string& name)
{
  if (rows.whole.contains(name))
  {
    return;
  }
  json row = rows.stored.at(name);
  row.erase("gguf");
  for (const auto& [word, value] : row.items())
  {
    ThrowIf<Error>(!IsRowWord(word), name, ": unknown word '", word, "' in Architectures.");
  }
  json base = json::object();
  std::vector<std::string> before;
  if (row.contains("like"))
  {
    before.push_back(row["like"]);
  }
  if (row.contains("tensors") && row["tensors"].contains("like"))
  {
    before.push_back(row["tensors"]["like"]);
  }
  for (const std::string& like : before)
  {
    AddWhole(rows, like);
  }
  if (row.contains("like"))
  {
    base = rows.whole[row["like"].get<std::string>()];
  }
  rows.whole[name] = Overlaid(std::move(base), row);
  rows.order.push_back(name);
}

const Rows& AllRows()
{
  static const Rows all = []
  {
    Rows rows;
    for (const ArchitectureText& text : ArchitectureTexts())
    {
      rows.stored.update(json::parse(text.text, nullptr, true, true));
    }
    for (const auto& [name, row] : rows.stored.items())
    {
      AddWhole(rows, name);
      const bool isBase = name.front() == '_' || name.find('/') != std::string::npos;
      if (!isBase && rows.whole[name].contains("layers"))
      {
        rows.models.push_back({ name });
      }
    }
    return rows;
  }();
  return all;
}

std::string WordsOf(const json& tensors)
{
  std::string words;
  for (const auto& [role, name] : tensors.items())
  {
    if (role != "like")
    {
      words += (words.empty() ? "" : " ") + role + "=" + name.get<std::string>();
    }
  }
  return words;
}

/// Throws ModelError if an own row has what no row has.
void CheckOwnRow(const Settings& settings, const json& row)
{
  settings.FailIf(
    !row.is_object(), "expected '", OwnRow, "' to be an object, found ", Describe(row), ".");
  for (const auto& [word, value] : row.items())
  {
    settings.FailIf(!IsRowWord(word), OwnRow, ": unknown word '", word.substr(0, 80),
      "', expected a field of Models.md, or one of ", KnownRowWords(), ".");
    const bool isText = word == "ignore" || word == "like" || word == "part" || word == "refuse" ||
                        word == "need" || word == "rules";
    const bool isObject = word == "let" || word == "require" || word == "rotation" ||
                          word == "tensors" || word == "windows";
    settings.FailIf((isText && !value.is_string()) || (isObject && !value.is_object()), OwnRow,
      ": expected '", word, "' to be ", isText ? "a text" : "an object", ", found ",
      Describe(value), ".");
  }
  settings.FailIf(
    !row.contains("like"), OwnRow, ": 'like' is missing, expected a model_type that ", "is known.");
  const std::string like = row["like"];
  settings.FailIf(!IsModelRow(like), OwnRow, ": unknown 'like' '", like.substr(0, 80),
    "', expected one of ", NamesOf(ModelRows()), ".");
  const json tensors = row.value("tensors", json::object());
  for (const auto& [role, name] : tensors.items())
  {
    settings.FailIf(!name.is_string() || name.get<std::string>().find(' ') != std::string::npos,
      OwnRow, ": expected the name of the tensor '", role.substr(0, 80),
      "' to be a text without spaces, found ", Describe(name), ".");
  }
}

}

const std::vector<RowName>& ModelRows()
{
  return AllRows().models;
}

bool HasRow(const std::string& name)
{
  return AllRows().whole.contains(name);
}

bool IsModelRow(const std::string& name)
{
  return FindNamed(ModelRows(), name) != nullptr;
}

TransformerConfig ParseByRow(const Settings& settings, const std::string& name)
{
  return ReadByRow(AllRows().whole.at(name), settings);
}

TransformerConfig ParseByOwnRow(const Settings& settings, const json& row)
{
  CheckOwnRow(settings, row);
  const std::string like = row["like"];
  TransformerConfig config;
  try
  {
    config = ReadByRow(Overlaid(AllRows().whole.at(like), row), settings);
  }
  catch (const json::exception&)
  {
    settings.Fail(OwnRow, ": expected values as in Models.md, found another kind of value.");
  }
  config.ownTensors = "like=" + like;
  if (row.contains("tensors"))
  {
    config.ownTensors += " " + WordsOf(row["tensors"]);
  }
  try
  {
    NamesFor(config);
  }
  catch (const Error& error)
  {
    settings.Fail(OwnRow, ": ", error.what());
  }
  return config;
}

std::vector<RowTensors> AllRowTensors()
{
  const Rows& rows = AllRows();
  std::vector<RowTensors> all;
  for (const std::string& name : rows.order)
  {
    const json& row = rows.stored[name];
    const json tensors = row.value("tensors", json::object());
    all.push_back(
      { name, tensors.value("like", row.value("like", std::string())), WordsOf(tensors) });
  }
  return all;
}

namespace
{

RowGguf ParseGgufRow(const std::string& name, const json& value)
{
  RowGguf row;
  row.row = name;
  if (value.is_string())
  {
    row.name = value;
    return row;
  }
  row.name = value.value("name", "");
  row.condition = value.value("if", "");
  row.interleaved = value.value("interleaved", false);
  row.words = WordsOf(value.value("tensors", json::object()));
  const json settings = value.value("settings", json::object());
  for (const auto& [key, setting] : settings.items())
  {
    GgufSetting& one = row.settings.emplace_back();
    one.name = key;
    if (setting.is_string())
    {
      one.key = setting;
      continue;
    }
    one.tensor = setting.value("tensor", "");
    one.rows = setting.value("rows", "");
    one.value = setting.value(one.tensor.empty() ? "value" : "then", json(true));
    one.otherwise = setting.value("else", json(false));
  }
  return row;
}

}

const std::vector<RowGguf>& AllRowGguf()
{
  static const std::vector<RowGguf> all = []
  {
    std::vector<RowGguf> rows;
    for (const auto& [name, row] : AllRows().stored.items())
    {
      const json gguf = row.value("gguf", json::array());
      for (const json& one : gguf.is_array() ? gguf : json::array({ gguf }))
      {
        rows.push_back(ParseGgufRow(name, one));
      }
    }
    return rows;
  }();
  return all;
}

}
