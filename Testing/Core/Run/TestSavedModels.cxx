// Models as release 5 of transformers saves them, against what it computes with them. The layout of
// these files is in Testing/Oracle/v5/README.md.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "PartParity.h"
#include "Recording/RecordingFile.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
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

/// The tensors of one input, `prefix`, by the names and shapes of other oracles.
TensorViews Renamed(const OracleFile& file, const std::string& prefix)
{
  TensorViews views;
  for (const auto& [name, view] : file.Tensors())
  {
    const Shape& shape = view.shape;
    const std::string rest = name.substr(0, prefix.size()) == prefix ? name.substr(2) : "";
    const std::size_t attention = rest.find("attention");
    if (attention != std::string::npos && shape.size() == 3) // of a layer: attention.0
    {
      views["layer." + rest.substr(attention + 10) + ".attention"] =
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

/// Models that are refused by name; see RefusesTheOthers.
constexpr std::array Later = { "decoder/deepseek_v3-a", "decoder/ernie4_5_moe-a",
  "decoder/flex_olmo-a", "decoder/glm4_moe-a", "decoder/glm4_moe_lite-a",
  "decoder/granitemoeshared-a", "decoder/lfm2-a", "decoder/llama4_text-a", "decoder/minimax_m2-a",
  "decoder/olmo_hybrid-a", "decoder/qwen3_5_text-a", "decoder/qwen3_next-a" };

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
  for (const std::string prefix : { "0.", "1." })
  {
    if (!this->HasInput(prefix))
    {
      continue; // other programs have one
    }
    const Recording found = RecordTransformer(this->Model, this->Input(prefix), options);
    const TensorViews expected = Renamed(this->Expected, prefix);
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
      EXPECT_EQ(deviations.count("attention"), 1U);
      EXPECT_EQ(deviations.count("hidden"), this->Expected.Has(prefix + "hidden") ? 1U : 0U);
      ExpectSmall(this->GetParam() + " " + prefix + name, deviations);
    }
    ASSERT_EQ(found.logits.IsRecorded(), expected.count("logits") != 0);
    if (found.logits.IsRecorded())
    {
      const PartParity parity = { found, expected, "", {}, {} };
      const double deviation = parity.Deviation("logits", found.logits, PlacesFrom(0, length));
      ExpectSmall(this->GetParam() + " " + prefix, { { "logits", deviation } });
    }
  }
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
