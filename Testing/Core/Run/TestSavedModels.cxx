// Models as release 5 of transformers saves them, against what it computes with them. The layout of
// these files is in Testing/Oracle/v5/README.md.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "GgufBytes.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "Recording/RecordingFile.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
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

/// The numbers of one index of the first axis of a tensor, or of all, with another shape.
TensorView SliceOf(const TensorView& view, std::int64_t index, std::int64_t count, Shape shape)
{
  return { view.dtype, std::move(shape), view.data + view.Bytes() / count * index };
}

/// The places of the tokens of a ViT-MAE, whose original shuffles patches, by the nearest vectors
/// of the embedding.
ExpectedPlaces ShuffledPlaces(const SharedMatrix& embedding, const TensorView& expected)
{
  ExpectedPlaces places;
  const std::vector<double> original = expected.ToDouble();
  for (std::int64_t row = 0; row < embedding.rows; ++row)
  {
    std::vector<double> distances;
    for (std::int64_t token = 0; token < embedding.rows; ++token)
    {
      distances.push_back(std::inner_product(
        embedding.Row(row), embedding.Row(row) + embedding.columns,
        original.begin() + token * embedding.columns, 0.0, [](double a, double b)
        { return std::max(a, b); }, [](double a, double b) { return std::abs(a - b); }));
    }
    const auto nearest = std::min_element(distances.begin(), distances.end());
    places.push_back({ row, 0, nearest - distances.begin() });
  }
  return places;
}

/// The layer that has the attention number `index` of a model.
std::int64_t LayerOfAttention(const TransformerConfig& config, std::int64_t index)
{
  std::int64_t layer = index;
  while (!config.mixers.empty() &&
         (!config.HasAttention(layer) || config.AttentionsBefore(layer) < index))
  {
    ++layer;
  }
  return layer;
}

/// The tensors of one input, `prefix`, by the names and shapes of other oracles. Attention is
/// numbered by the layers that have any.
TensorViews Renamed(
  const OracleFile& file, const std::string& prefix, const TransformerConfig& config = {})
{
  TensorViews views;
  for (const auto& [name, view] : file.Tensors())
  {
    const Shape& shape = view.shape;
    const std::string rest = name.substr(0, prefix.size()) == prefix ? name.substr(2) : "";
    const std::size_t attention = rest.find("attention");
    if (attention != std::string::npos && shape.size() == 3) // of a layer: attention.0
    {
      const std::int64_t layer = LayerOfAttention(config, std::stoll(rest.substr(attention + 10)));
      views["layer." + std::to_string(layer) + ".attention"] =
        SliceOf(view, 0, 1, { 1, shape[0], shape[1], shape[2] });
    }
    for (std::int64_t l = 0; attention != std::string::npos && shape.size() == 4 && l < shape[0];
      ++l)
    {
      views[rest.substr(0, attention) + "layer." + std::to_string(l) + ".attention"] =
        SliceOf(view, l, shape[0], { 1, shape[1], shape[2], shape[3] });
    }
    for (std::int64_t l = 0; rest == "hidden" && l < shape[0]; ++l)
    {
      views["hidden." + std::to_string(l)] =
        SliceOf(view, l, shape[0], { 1, shape[shape.size() - 2], shape.back() });
    }
    if (rest == "logits")
    {
      views[rest] = SliceOf(view, 0, 1, { 1, shape[shape.size() - 2], shape.back() });
    }
  }
  return views;
}

/// Of a model with several inputs: the largest deviations of each part, by its name.
class PartDeviations
{
public:
  void Add(const std::string& part, const std::map<std::string, double>& deviations)
  {
    for (const auto& [quantity, deviation] : deviations)
    {
      Raise(this->All[part][quantity], deviation);
    }
  }

  /// Leaves rows of Parity.md.
  void WriteRows(const std::string& model, const std::string& file) const
  {
    for (const auto& [part, deviations] : this->All)
    {
      const std::string name = part.substr(0, part.find('.'));
      Write(TestName(model + "_" + name + "_" + file),
        ParityRow{
          std::filesystem::path(model).filename().string(), name, file, "F32", deviations });
    }
  }

private:
  std::map<std::string, std::map<std::string, double>> All;
};

/// The scale of the tolerance of attention. The scores of uMT5 are not divided by a root and reach
/// 36: what the original computes in single precision is 3.2e-5 from the same formulas in double
/// precision, and ours depends on the order in which a processor adds.
double AttentionScale(const std::string& model)
{
  return model == "encdec/umt5-a" ? 3 : 1;
}

/// That of hidden states, which reach 320 in the model of Qwen3-Next.
double StreamScale(const std::string& model)
{
  return model.find("qwen3_next") != std::string::npos ? 10 : 1;
}

/// Models that are refused by name; see RefusesTheOthers.
constexpr std::array Later = { "decoder/deepseek_v3-a", "decoder/ernie4_5_moe-a",
  "decoder/flex_olmo-a", "decoder/glm4_moe-a", "decoder/glm4_moe_lite-a",
  "decoder/granitemoeshared-a", "decoder/llama4_text-a", "decoder/minimax_m2-a" };

ExpectedPlaces PlacesFrom(std::int64_t first, std::int64_t end)
{
  ExpectedPlaces places;
  for (std::int64_t row = first; row < end; ++row)
  {
    places.push_back({ row, 0, row - first });
  }
  return places;
}

class SavedModels : public testing::TestWithParam<std::string>
{
protected:
  std::filesystem::path Folder = AnyOracle(std::filesystem::path("v5") / this->GetParam());
  OracleFile Expected{ this->Folder / "expected.safetensors" };
  Transformer Model = Transformer::Read(this->Folder);

  bool HasInput(const std::string& prefix) const
  {
    return this->Expected.Has(prefix + "input_ids") ||
           this->Expected.Has(prefix + "pixel_values") ||
           this->Expected.Has(prefix + "input_features");
  }

  /// The input whose names begin with `prefix`.
  TransformerInput Input(const std::string& prefix) const
  {
    TransformerInput input;
    if (this->Expected.Has(prefix + "pixel_values"))
    {
      input.pixels = this->Expected.Floats(prefix + "pixel_values");
      if (this->Model.GetConfig().ReadsAnySize())
      {
        const std::vector<std::int64_t> grid = this->Expected.Integers(prefix + "spatial_shapes");
        input.extents.emplace_back();
        input.extents[0].rows = grid[0];
        input.extents[0].columns = grid[1];
        return input;
      }
      input.images = 1;
      return input;
    }
    const bool hasEncoder = this->Model.GetConfig().encoder != nullptr;
    input.tokens = { this->Expected.Integers(
      prefix + (hasEncoder ? "decoder_input_ids" : "input_ids")) };
    if (this->Expected.Has(prefix + "input_features"))
    {
      input.sounds = 1;
      input.features = this->Expected.Floats(prefix + "input_features");
    }
    else if (hasEncoder)
    {
      input.source = { this->Expected.Integers(prefix + "input_ids") };
    }
    return input;
  }

public:
  /// All models of these kinds that lie here or beside the repository, by kind/name.
  static std::vector<std::string> Names()
  {
    std::set<std::string> names;
    for (const std::string kind : { "decoder", "encdec", "encoder", "vision" })
    {
      for (const std::filesystem::path& folder : AllOracles(std::filesystem::path("v5") / kind))
      {
        for (const auto& entry : std::filesystem::directory_iterator(folder))
        {
          names.insert(kind + "/" + entry.path().filename().string());
        }
      }
    }
    for (const char* name : Later)
    {
      names.erase(name);
    }
    return { names.begin(), names.end() };
  }
};

INSTANTIATE_TEST_SUITE_P(, SavedModels, testing::ValuesIn(SavedModels::Names()),
  [](const auto& test) { return TestName(test.param); });

TEST_P(SavedModels, ComputeWhatTheOriginalDoes)
{
  RecordOptions options;
  options.residual = true;
  options.logits = this->Expected.Has("0.logits");
  const bool isOriginal = this->Expected.Text("source").find("transformers") == 0;
  EXPECT_TRUE(options.logits == this->Model.HasLogits() || !isOriginal);
  EXPECT_TRUE(this->HasInput("1.") || !isOriginal);
  PartDeviations all;
  for (const std::string prefix : { "0.", "1." })
  {
    if (!this->HasInput(prefix))
    {
      continue; // other programs have one
    }
    const Recording found = RecordTransformer(this->Model, this->Input(prefix), options);
    const TransformerConfig& config = this->Model.GetConfig();
    const TensorViews expected = Renamed(this->Expected, prefix, config);
    EXPECT_EQ(
      static_cast<std::int64_t>(found.layers.size()), config.AttentionsBefore(config.layers));
    EXPECT_EQ(found.layerCount, config.layers);
    const std::int64_t length = found.tokens.Count();
    for (const Recording* part : WithParts(found))
    {
      const std::int64_t count = part->tokens.Count();
      const std::int64_t source = part->sourceLengths.empty() ? 0 : part->sourceLengths[0];
      const std::string name = found.encoder == nullptr      ? ""
                               : part == &found              ? "decoder."
                               : part == found.encoder.get() ? "encoder."
                                                             : "cross.";
      ExpectedPlaces queries = PlacesFrom(source, count);
      ExpectedPlaces keys = PlacesFrom(0, source > 0 ? source : count);
      if (found.architecture == "vit_mae")
      {
        queries = keys = ShuffledPlaces(found.residual[0], expected.at("hidden.0"));
      }
      const PartParity parity = { *part, expected, name, queries, keys };
      const std::map<std::string, double> deviations = parity.Deviations();
      EXPECT_EQ(deviations.count("attention"), part->layers.empty() ? 0U : 1U);
      EXPECT_EQ(deviations.count("hidden"), this->Expected.Has(prefix + "hidden") ? 1U : 0U);
      ExpectSmall(this->GetParam() + " " + prefix + name, deviations, 1,
        AttentionScale(this->GetParam()), StreamScale(this->GetParam()));
      all.Add(name, deviations);
    }
    ASSERT_EQ(found.logits.IsRecorded(), expected.count("logits") != 0);
    if (found.logits.IsRecorded())
    {
      const PartParity parity = { found, expected, "", {}, {} };
      const double deviation = parity.Deviation("logits", found.logits, PlacesFrom(0, length));
      ExpectSmall(this->GetParam() + " " + prefix, { { "logits", deviation } });
      all.Add(found.encoder == nullptr ? "" : "decoder.", { { "logits", deviation } });
    }
  }
  all.WriteRows(this->GetParam(), "safetensors, transformers 5");
}

/// Biases of layers and vectors of distances included, without which attention would be another.
TEST_P(SavedModels, GiveRecordingsThatFilesKeep)
{
  const Recording found = RecordTransformer(this->Model, this->Input("0."), {});
  const std::filesystem::path file =
    std::filesystem::path(testing::TempDir()) / (TestName(this->GetParam()) + ".safetensors");
  WriteRecording(file, found);
  ExpectEqual(ReadRecording(file).recording, found);
  std::filesystem::remove(file);
}

TEST_P(SavedModels, HaveNoUnknownSettings)
{
  EXPECT_THAT(this->Model.GetConfig().unknownSettings, testing::IsEmpty());
}

/// The example of Models.md of a model whose file describes its architecture.
std::string DocumentedConfig()
{
  std::ifstream file(std::filesystem::path(ATLAS_SOURCE_DIR) / "Plugin/Documentation/Models.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t heading = page.find("### An architecture of your own");
  const std::size_t begin = page.find("```text\n", heading) + 8;
  return page.substr(begin, page.find("```", begin) - begin);
}

/// The name that a tensor of OLMo 2 has in this example.
std::string DocumentedName(std::string name)
{
  const std::array<std::pair<std::string, std::string>, 8> changes = {
    { { "model.layers.", "model.block." }, { "model.", "slate." },
      { "self_attn.q_proj", "attend.q" }, { "self_attn.k_proj", "attend.k" },
      { "self_attn.v_proj", "attend.v" }, { "self_attn.o_proj", "attend.out" },
      { "self_attn.q_norm", "attend.q_scale" }, { "self_attn.k_norm", "attend.k_scale" } }
  };
  for (const auto& [from, to] : changes)
  {
    const std::size_t at = name.find(from);
    name = at == std::string::npos ? name : name.replace(at, from.size(), to);
  }
  return name;
}

TEST(OwnArchitecture, OfTheDocumentRunsWithoutCode)
{
  const std::filesystem::path folder = AnyOracle("v5/decoder/olmo2-a");
  const Transformer original = Transformer::Read(folder);
  TensorViews views;
  for (const auto& [name, view] : original.GetFiles().GetTensors())
  {
    views[DocumentedName(name)] = view;
  }
  const Transformer model(ParseTransformerConfig(DocumentedConfig(), "config.json"),
    WeightFiles(views, "model.safetensors"));
  EXPECT_EQ(model.GetConfig().architecture, "slate");
  EXPECT_THAT(model.GetConfig().unknownSettings, testing::IsEmpty());
  const OracleFile expected(folder / "expected.safetensors");
  TransformerInput input;
  input.tokens = { expected.Integers("0.input_ids") };
  RecordOptions options;
  options.residual = true;
  const Recording found = RecordTransformer(model, input, options);
  const TensorViews renamed = Renamed(expected, "0.");
  const ExpectedPlaces places = PlacesFrom(0, found.tokens.Count());
  ExpectSmall("slate", PartParity{ found, renamed, "", places, places }.Deviations());
}

TEST(Convolution, ReadsTokensOfItsSequence)
{
  const std::filesystem::path folder = AnyOracle("v5/encoder/deberta-v2-convolution");
  const OracleFile expected(folder / "expected.safetensors");
  TransformerInput input;
  for (const std::string prefix : { "0.", "1." })
  {
    input.tokens.push_back(expected.Integers(prefix + "input_ids"));
  }
  RecordOptions options;
  options.residual = true;
  const Recording found = RecordTransformer(Transformer::Read(folder), input, options);
  std::int64_t first = 0;
  for (const std::string prefix : { "0.", "1." })
  {
    const std::int64_t end = first + expected.ShapeOf(prefix + "input_ids")[0];
    const TensorViews renamed = Renamed(expected, prefix);
    const PartParity parity = { found, renamed, "", {}, {} };
    EXPECT_LE(
      parity.Deviation("hidden.1", found.residual[1], PlacesFrom(first, end)), StreamTolerance);
    first = end;
  }
}

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
  const bool hasLogits = recipe["folder"].get<std::string>().find("decoder") == 0;
  ASSERT_EQ(model.HasLogits(), hasLogits);
  options.logits = hasLogits;
  PartDeviations all;
  for (const std::string prefix : { "0.", "1." })
  {
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

TEST(SavedModelsRefused, SayWhatTheyAre)
{
  for (const std::string name : Later)
  {
    const std::filesystem::path folder = AnyOracle("v5/" + name);
    if (!folder.empty())
    {
      const std::string type = name.substr(8, name.size() - 10);
      EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(folder); }),
        testing::HasSubstr("model_type '" + type + "'"));
    }
  }
}

}
