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
#include <list>
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
      const bool isPacked = model == "mxfp4/a" || model == "gpt_oss-a";
      const std::string shown =
        isPacked ? "gpt_oss-a" : std::filesystem::path(model).filename().string();
      Write(TestName(model + "_" + name + "_" + file),
        ParityRow{ shown, name, file, isPacked ? "MXFP4, BF16" : "F32", deviations });
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

/// The scale of the tolerance of hidden states and logits: those of some experts reach 300.
double StreamScale(const TensorViews& expected)
{
  constexpr double usual = 40;
  double largest = usual;
  for (const auto& [name, view] : expected)
  {
    const bool isStream = name.find("hidden") == 0 || name == "logits";
    for (const double value : isStream ? view.ToDouble() : std::vector<double>())
    {
      largest = std::max(largest, std::abs(value));
    }
  }
  return largest / usual;
}

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
    for (const std::string kind : { "decoder", "encdec", "encoder", "mxfp4", "vision" })
    {
      for (const std::filesystem::path& folder : AllOracles(std::filesystem::path("v5") / kind))
      {
        for (const auto& entry : std::filesystem::directory_iterator(folder))
        {
          names.insert(kind + "/" + entry.path().filename().string());
        }
      }
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
  const bool hasOne = !isOriginal || this->GetParam().find("mxfp4") == 0;
  EXPECT_TRUE(this->HasInput("1.") || hasOne);
  PartDeviations all;
  for (const std::string prefix : { "0.", "1." })
  {
    if (!this->HasInput(prefix))
    {
      continue; // some have one
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
        AttentionScale(this->GetParam()), StreamScale(expected));
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

/// The tensors of a model as release 5 of transformers has them in memory: those of all experts of
/// a layer in one.
class FusedTensors
{
public:
  explicit FusedTensors(const TensorViews& stored)
  {
    for (const auto& [name, view] : stored)
    {
      const std::size_t at = name.find(".experts.");
      if (at == std::string::npos)
      {
        this->Views[Renamed(name)] = view;
        continue;
      }
      const std::string module = Renamed(name.substr(0, at + 1)) + "experts.";
      const std::size_t dot = name.find('.', at + 9);
      const std::string kind = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
      const bool isDown = kind == "down_proj" || kind == "w2";
      const bool isUp = kind == "up_proj" || kind == "w3";
      const int expert = std::stoi(name.substr(at + 9));
      this->Parts[module + (isDown ? "down_proj" : "gate_up_proj")][{ expert, isUp ? 1 : 0 }] =
        view;
    }
    for (const auto& [name, parts] : this->Parts)
    {
      std::vector<float>& joined = this->Values.emplace_back();
      std::int64_t experts = 0;
      Shape shape = parts.begin()->second.shape;
      shape[0] *= std::count_if(
        parts.begin(), parts.end(), [](const auto& part) { return part.first.first == 0; });
      for (const auto& [place, view] : parts)
      {
        const std::vector<double> values = view.ToDouble();
        joined.insert(joined.end(), values.begin(), values.end());
        experts = place.first + 1;
      }
      this->Views[name] = { DType::F32, { experts, shape[0], shape[1] },
        reinterpret_cast<const std::byte*>(joined.data()) };
    }
  }

  const TensorViews& GetViews() const { return this->Views; }

private:
  TensorViews Views;
  std::map<std::string, std::map<std::pair<int, int>, TensorView>> Parts;
  std::list<std::vector<float>> Values;

  static std::string Renamed(std::string name)
  {
    const std::array<std::pair<std::string, std::string>, 2> changes = {
      { { ".block_sparse_moe.", ".mlp." }, { ".moe_statics.", ".gate.moe_statics." } }
    };
    for (const auto& [from, to] : changes)
    {
      const std::size_t at = name.find(from);
      name = at == std::string::npos ? name : name.replace(at, from.size(), to);
    }
    return name;
  }
};

TEST(FusedExperts, ComputeTheSame)
{
  for (const std::string model :
    { "minimax_m2-a", "ernie4_5_moe-a", "deepseek_v3-a", "lfm2_moe-a" })
  {
    const std::filesystem::path folder = AnyOracle("v5/decoder/" + model);
    const Transformer stored = Transformer::Read(folder);
    const FusedTensors tensors(stored.GetFiles().GetTensors());
    const Transformer fused(
      stored.GetConfig(), WeightFiles(tensors.GetViews(), "model.safetensors"));
    const OracleFile expected(folder / "expected.safetensors");
    TransformerInput input;
    input.tokens = { expected.Integers("0.input_ids") };
    RecordOptions options;
    options.logits = true;
    const Recording found = RecordTransformer(fused, input, options);
    const PartParity parity = { found, Renamed(expected, "0."), "", {}, {} };
    ExpectSmall(model, { { "logits", parity.Deviation("logits", found.logits,
                                       PlacesFrom(0, found.tokens.Count())) } });
  }
}

/// MLX has the taps of convolutions before an axis of 1, and then whole gains.
TEST(WeightsOfMlx, ComputeTheSame)
{
  for (const std::string model : { "lfm2-d", "qwen3_5_text-a", "granitemoehybrid-a" })
  {
    const Transformer stored = Transformer::Read(AnyOracle("v5/decoder/" + model));
    const bool isLess = stored.GetConfig().gainOffset != 0;
    EXPECT_EQ(isLess, model == "qwen3_5_text-a");
    TensorViews views = stored.GetFiles().GetTensors();
    std::list<std::vector<float>> gains;
    std::size_t taps = 0;
    for (auto& [name, view] : views)
    {
      if (view.shape.size() == 3 && view.shape[1] == 1)
      {
        std::swap(view.shape[1], view.shape[2]);
        ++taps;
      }
      const bool isGain = name.find("norm.weight") != std::string::npos;
      if (isLess && isGain && name.find("linear_attn.norm") == std::string::npos)
      {
        std::vector<float>& whole = gains.emplace_back(view.Count());
        view.ToFloat(0, whole.size(), whole.data());
        std::for_each(whole.begin(), whole.end(), [](float& gain) { gain += 1; });
        view = { DType::F32, view.shape, reinterpret_cast<const std::byte*>(whole.data()) };
      }
    }
    EXPECT_GE(taps, 2U);
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9 } };
    ExpectEqual(
      RecordTransformer(
        Transformer(stored.GetConfig(), WeightFiles(views, "model.safetensors")), input, {}),
      RecordTransformer(stored, input, {}));
  }
}

/// Weights of experts follow from the router's scores alone, and the bias is that of the file.
TEST(ExpertBias, IsRecordedApartFromTheScores)
{
  const std::filesystem::path folder = AnyOracle("v5/decoder/deepseek_v3-a");
  const Transformer model = Transformer::Read(folder);
  TransformerInput input;
  input.tokens = { OracleFile(folder / "expected.safetensors").Integers("0.input_ids") };
  RecordOptions options;
  options.routing = true;
  const Recording found = RecordTransformer(model, input, options);
  EXPECT_FALSE(found.layers[0].routing.bias.IsRecorded()); // it has no experts
  const RecordedRouting& routing = found.layers[1].routing;
  const std::vector<double> bias =
    model.GetFiles().GetTensors().at("model.layers.1.mlp.gate.e_score_correction_bias").ToDouble();
  ASSERT_EQ(routing.bias.columns, 4);
  EXPECT_TRUE(std::equal(bias.begin(), bias.end(), routing.bias.Row(0)));
  ASSERT_EQ(routing.scores.rows, routing.weights.rows);
  for (std::int64_t row = 0; row < routing.scores.rows; ++row)
  {
    const float* scores = routing.scores.Row(row);
    for (std::int64_t k = 0; k < 2; ++k) // norm_topk_prob, and routed_scaling_factor
    {
      EXPECT_NEAR(routing.weights.Row(row)[k], 2.5F * scores[k] / (scores[0] + scores[1]), 1e-6F);
    }
  }
}

/// Layers that predict further tokens, as DeepSeek-V3 is published, are no part of a run.
TEST(PredictionLayers, AreLeftOut)
{
  const Transformer stored = Transformer::Read(AnyOracle("v5/decoder/deepseek_v3-a"));
  TensorViews tensors = stored.GetFiles().GetTensors();
  const TensorView any = tensors.begin()->second;
  tensors["model.layers.3.enorm.weight"] = tensors["model.layers.3.mlp.gate.weight"] = any;
  const Transformer model(stored.GetConfig(), WeightFiles(tensors, "model.safetensors"));
  EXPECT_THAT(model.GetWeights().unused, testing::SizeIs(2));
  tensors["model.layers.4.enorm.weight"] = any;
  EXPECT_THAT(MessageOf<ModelError>([&]
                { Transformer(stored.GetConfig(), WeightFiles(tensors, "model.safetensors")); }),
    testing::HasSubstr("has only 3 layers"));
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
