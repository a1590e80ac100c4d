// Models in GGUF files, as llama.cpp's conversion makes them of those that release 5 of
// transformers saves. The layout of the recipes is in Testing/Oracle/v5/README.md.

#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "GgufBytes.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Run/RecordTransformer.h"
#include "SavedParity.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "Weights/Transformer.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The values of a tensor as llama.cpp's conversion changes them: "interleave HEADS": rows of each
/// head, of which the second half comes between those of the first; "group KEYS HEADS": of Falcon,
/// queries of all groups, then keys, then values; "plus 1".
std::vector<float> ConvertedValues(
  std::vector<float> values, std::int64_t columns, const std::string& operation)
{
  std::istringstream words(operation);
  std::string kind;
  std::int64_t first = 0;
  std::int64_t heads = 0;
  words >> kind >> first >> heads;
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  std::vector<std::int64_t> from; ///< row of each row
  if (kind == "interleave")
  {
    const std::int64_t size = rows / first;
    for (std::int64_t row = 0; row < rows; ++row)
    {
      const std::int64_t i = row % size;
      from.push_back(row - i + i / 2 + (i % 2) * (size / 2));
    }
  }
  else if (kind == "group")
  {
    const std::int64_t each = heads / first; // queries of a key
    const std::int64_t size = rows / (first * (each + 2));
    const std::array<std::pair<std::int64_t, std::int64_t>, 3> parts = { { { 0, each }, { each, 1 },
      { each + 1, 1 } } };
    for (const auto& [begin, count] : parts)
    {
      for (std::int64_t i = 0; i < first * count * size; ++i)
      {
        const std::int64_t group = i / (count * size);
        from.push_back(group * (each + 2) * size + begin * size + i % (count * size));
      }
    }
  }
  else if (kind == "plus")
  {
    for (float& value : values)
    {
      value += static_cast<float>(first);
    }
  }
  if (from.empty())
  {
    return values;
  }
  std::vector<float> changed;
  changed.reserve(values.size());
  for (const std::int64_t row : from)
  {
    changed.insert(
      changed.end(), values.begin() + row * columns, values.begin() + (row + 1) * columns);
  }
  return changed;
}

/// Rows `first`, `first` + step, ... of each of the matrices of a tensor, whose rows are `width`
/// bytes or numbers.
template<class Values>
Values EveryRow(const Values& values, std::int64_t width, std::int64_t step, std::int64_t first)
{
  Values chosen;
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  for (std::int64_t row = first; row < rows; row += step)
  {
    chosen.insert(chosen.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  }
  return chosen;
}

/// Adds experts in MXFP4. In safetensors, a byte has two neighbors; in GGUF, elements i and i + 16
/// of a block, and the exponent is before it.
void AddMxfp4(GgufBytes& file, const std::string& name, const std::string& operation,
  const TensorView& codes, const TensorView& scales)
{
  constexpr std::size_t half = 16;
  std::string bytes;
  for (std::size_t block = 0; block < scales.Count(); ++block)
  {
    bytes += static_cast<char>(scales.data[block]);
    const std::byte* code = codes.data + block * half;
    const auto number = [code](std::size_t i)
    { return std::to_integer<unsigned>(code[i / 2]) >> i % 2 * 4 & 15U; };
    for (std::size_t i = 0; i < half; ++i)
    {
      bytes += static_cast<char>(number(i) | number(i + half) << 4U);
    }
  }
  std::istringstream words(operation);
  std::string kind;
  std::int64_t step = 1;
  std::int64_t first = 0;
  words >> kind >> step >> first;
  const Shape& shape = codes.shape;
  constexpr std::uint32_t type = 39;
  constexpr std::int64_t blockBytes = 17;
  file.AddTensor(name, { shape[0], shape[1] / step, shape[2] * 32 }, type,
    EveryRow(bytes, shape[2] * blockBytes, step, first));
}

/// The GGUF file of a model, as a file of v5/gguf describes it.
std::string ConvertedFile(const nlohmann::json& recipe, const OracleFile& weights)
{
  GgufBytes file;
  file.AddText("general.architecture", recipe["architecture"]);
  for (const nlohmann::json& one : recipe["metadata"])
  {
    const std::string key = one[0];
    const std::string type = one[1];
    if (type == "u32")
    {
      file.AddInteger(key, one[2]);
    }
    else if (type == "f32")
    {
      file.AddNumber(key, one[2]);
    }
    else if (type == "str")
    {
      file.AddText(key, one[2]);
    }
    else if (type == "bool")
    {
      file.Add(key, 7, std::string(1, one[2].get<bool>() ? '\1' : '\0'));
    }
    else
    {
      std::string bytes;
      for (const nlohmann::json& value : one[2])
      {
        bytes += type == "bools" ? std::string(1, value.get<bool>() ? '\1' : '\0')
                                 : FloatBytes({ value.get<float>() });
      }
      file.AddArray(key, type == "bools" ? 7 : 6, one[2].size(), bytes);
    }
  }
  for (const nlohmann::json& one : recipe["tensors"])
  {
    const std::string operation = one[2];
    const std::string source = one[1];
    if (source.empty()) // "values", and the numbers
    {
      std::istringstream numbers(operation.substr(7));
      std::vector<float> values;
      for (float value = 0; numbers >> value;)
      {
        values.push_back(value);
      }
      file.AddTensor(one[0], { static_cast<std::int64_t>(values.size()) }, 0, FloatBytes(values));
      continue;
    }
    Shape shape = weights.ShapeOf(source);
    if (shape.size() == 4 && operation.find("every") == 0)
    {
      const std::string scales = source.substr(0, source.rfind("blocks")) + "scales";
      AddMxfp4(file, one[0], operation, weights.Get(source), weights.Get(scales));
      continue;
    }
    if (operation.find("every") == 0) // biases
    {
      const std::int64_t first = operation.back() - '0';
      file.AddTensor(one[0], { shape[0], shape[1] / 2 }, 0,
        FloatBytes(EveryRow(weights.Floats(source), 1, 2, first)));
      continue;
    }
    if (operation == "stack") // of one matrix
    {
      shape.insert(shape.begin(), 1);
    }
    const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
    file.AddTensor(
      one[0], shape, 0, FloatBytes(ConvertedValues(weights.Floats(source), columns, operation)));
  }
  return file.File();
}

class ConvertedModels : public testing::TestWithParam<std::string>
{
public:
  static std::vector<std::string> Names()
  {
    std::vector<std::string> names;
    for (const auto& entry :
      std::filesystem::directory_iterator(std::filesystem::path(ATLAS_ORACLE_DIR) / "v5/gguf"))
    {
      names.push_back(entry.path().stem().string());
    }
    return names;
  }
};

INSTANTIATE_TEST_SUITE_P(, ConvertedModels, testing::ValuesIn(ConvertedModels::Names()),
  [](const auto& test) { return TestName(test.param); });

/// Models in GGUF files by the names, settings and orders of llama.cpp's conversion.
TEST_P(ConvertedModels, ComputeWhatTheOriginalDoes)
{
  const std::filesystem::path recipeFile = AnyOracle("v5/gguf/" + this->GetParam() + ".json");
  const nlohmann::json recipe = ParseJson(ReadFile(recipeFile), recipeFile.string());
  const std::filesystem::path folder = AnyOracle("v5/" + recipe["folder"].get<std::string>());
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "model.gguf";
  WriteBytes(path, ConvertedFile(recipe, OracleFile(folder / "model.safetensors")));
  const Transformer model = Transformer::Read(path);
  EXPECT_THAT(model.GetConfig().unknownSettings, testing::IsEmpty());
  const OracleFile expected(folder / "expected.safetensors");
  RecordOptions options;
  options.residual = true;
  // llama.cpp leaves out what predicts masked words.
  const std::string kind = recipe["folder"].get<std::string>().substr(0, 5);
  const bool hasLogits = kind == "decod" || kind == "mxfp4";
  ASSERT_EQ(model.HasLogits(), hasLogits);
  options.logits = hasLogits;
  PartDeviations all;
  for (const std::string prefix : { "0.", "1." })
  {
    if (!expected.Has(prefix + "input_ids"))
    {
      continue; // some have one
    }
    TransformerInput input;
    input.tokens = { expected.Integers(prefix + "input_ids") };
    const Recording found = RecordTransformer(model, input, options);
    const TensorViews renamed = Renamed(expected, prefix);
    const ExpectedPlaces places = PlacesFrom(0, found.tokens.Count());
    const PartParity parity = { found, renamed, "", places, places };
    std::map<std::string, double> deviations = parity.Deviations();
    EXPECT_EQ(deviations.count("attention"), 1U);
    if (hasLogits)
    {
      deviations["logits"] = parity.Deviation("logits", found.logits, places);
    }
    ExpectSmall(this->GetParam() + ".gguf " + prefix, deviations);
    all.Add("", deviations);
  }
  all.WriteRows(this->GetParam(), "GGUF, by the rules of conversion");
}

}
