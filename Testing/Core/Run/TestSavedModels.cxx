// Models as release 5 of transformers saves them, against what it computes with them. The layout of
// these files is in Testing/Oracle/v5/README.md.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Recording/RecordingFile.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "SavedParity.h"
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
           this->Expected.Has(prefix + "input_values") ||
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
    if (this->Expected.Has(prefix + "input_values"))
    {
      const TransformerConfig& config = this->Model.GetConfig();
      const std::vector<float> given = this->Expected.Floats(prefix + "input_values");
      input.sounds = 1;
      input.features = given;
      if (config.sound != nullptr)
      {
        input.samples = { static_cast<std::int64_t>(given.size()) };
        return input;
      }
      const std::int64_t frames = config.SoundFrames();
      for (std::int64_t i = 0; i < frames * config.melBands; ++i) // stored by frames
      {
        input.features[i] = given[i % frames * config.melBands + i / frames];
      }
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
    for (const std::string kind : { "decoder", "encdec", "encoder", "mxfp4", "sound", "vision" })
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

}
