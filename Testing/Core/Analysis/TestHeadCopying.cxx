#include "HeadCopying.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

std::vector<HeadPlace> AllHeadsOf(const Recording& recording)
{
  std::vector<HeadPlace> heads;
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      heads.push_back({ layer.index, static_cast<std::int32_t>(h) });
    }
  }
  return heads;
}

/// By the formula in double, from the attention and values of the original code, and weights that
/// an independent program processed.
class Reference
{
public:
  explicit Reference(const std::string& name)
    : Expected(name)
    , Weights(
        std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" / (name + ".weights.safetensors"))
    , Unembedding(this->Weights.GetTensors().at("processed.unembed.W_U").ToDouble())
    , Vocabulary(this->Weights.GetTensors().at("processed.unembed.W_U").shape[1])
  {
  }

  double Copying(std::int64_t layer, std::int64_t head) const
  {
    const std::string name = "layer." + std::to_string(layer) + ".";
    const Shape& shape = this->Expected.Get(name + "value").shape; // B, H, T, d_head
    const std::vector<double> output =
      this->Weights.GetTensors()
        .at("processed.blocks." + std::to_string(layer) + ".attn.W_O")
        .ToDouble();
    const std::vector<double> bias = this->ValueBias(layer, head, shape[3]);
    const std::vector<std::vector<std::int64_t>> sequences = this->Expected.Input().tokens;
    double sum = 0;
    int queries = 0;
    for (std::int64_t s = 0; s < shape[0]; ++s)
    {
      const std::vector<double> attention = this->Expected.Values(name + "attention", s);
      const std::vector<double> value = this->Expected.Values(name + "value", s);
      const std::vector<std::int64_t>& ids = sequences[s];
      for (std::int64_t i = 0; i < shape[2]; ++i)
      {
        const double* row = attention.data() + (head * shape[2] + i) * shape[2];
        std::vector<double> residual(this->ModelDimension());
        for (std::int64_t j = 0; j <= i; ++j)
        {
          for (std::int64_t c = 0; c < shape[3]; ++c)
          {
            for (std::size_t o = 0; o < residual.size(); ++o)
            {
              residual[o] +=
                row[j] * (value[(head * shape[2] + j) * shape[3] + c] - bias[c]) *
                output[static_cast<std::size_t>(head * shape[3] + c) * residual.size() + o];
            }
          }
        }
        const std::int64_t strongest = std::max_element(row, row + i + 1) - row;
        sum += this->Share(residual, ids, ids[strongest]);
        ++queries;
      }
    }
    return sum / queries;
  }

private:
  TransformerOracle Expected;
  SafetensorsFile Weights;
  std::vector<double> Unembedding;
  std::int64_t Vocabulary;

  std::int64_t ModelDimension() const
  {
    return static_cast<std::int64_t>(this->Unembedding.size()) / this->Vocabulary;
  }

  /// What values have beyond x W_V of a normalized x without gain and shift: b_V + shift W_V.
  std::vector<double> ValueBias(std::int64_t layer, std::int64_t head, std::int64_t dimension) const
  {
    std::vector<double> bias(dimension);
    const SafetensorsFile stored(this->Expected.Path() / "model.safetensors");
    const std::string name = "blocks." + std::to_string(layer) + ".";
    if (stored.GetTensors().count(name + "attn.b_V") == 0)
    {
      return bias; // llama has none
    }
    const std::vector<double> own = stored.GetTensors().at(name + "attn.b_V").ToDouble();
    const std::vector<double> shift = stored.GetTensors().at(name + "ln1.b").ToDouble();
    const std::vector<double> weight = stored.GetTensors().at(name + "attn.W_V").ToDouble();
    for (std::size_t c = 0; c < bias.size(); ++c)
    {
      bias[c] = own[static_cast<std::size_t>(head) * bias.size() + c];
      for (std::size_t o = 0; o < shift.size(); ++o)
      {
        bias[c] +=
          shift[o] * weight[(static_cast<std::size_t>(head) * shift.size() + o) * bias.size() + c];
      }
    }
    return bias;
  }

  double Logit(const std::vector<double>& residual, std::int64_t id) const
  {
    double logit = 0;
    for (std::size_t o = 0; o < residual.size(); ++o)
    {
      logit += residual[o] * this->Unembedding[o * static_cast<std::size_t>(this->Vocabulary) +
                                               static_cast<std::size_t>(id)];
    }
    return logit;
  }

  double Share(const std::vector<double>& residual, const std::vector<std::int64_t>& ids,
    std::int64_t attended) const
  {
    const std::set<std::int64_t> different(ids.begin(), ids.end());
    double mean = 0;
    for (const std::int64_t id : different)
    {
      mean += this->Logit(residual, id) / static_cast<double>(different.size());
    }
    double raised = 0;
    for (const std::int64_t id : different)
    {
      raised += std::max(this->Logit(residual, id) - mean, 0.0);
    }
    return std::max(this->Logit(residual, attended) - mean, 0.0) / raised;
  }
};

TEST(HeadCopying, EqualsItsFormula)
{
  for (const char* name : { "attn-only", "llama" })
  {
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    const Recording recording = RecordTransformer(model, oracle.Input(), {});
    const std::vector<HeadPlace> heads = AllHeadsOf(recording);
    const Reference reference(name);
    std::vector<double> expected;
    for (const HeadPlace& place : heads)
    {
      expected.push_back(reference.Copying(place.layer, place.head));
    }
    const std::vector<double> found = MeasureCopying(recording, model, heads, 1);
    ExpectClose(name, found, expected, 1e-5);
    EXPECT_EQ(MeasureCopying(recording, model, heads, 3), found);
  }
}

TEST(HeadCopying, WorksWithBiasesAndCanBeStopped)
{
  const TransformerOracle oracle("gpt2");
  const Transformer model = Transformer::Read(oracle.Path());
  const Recording recording = RecordTransformer(model, oracle.Input(), {});
  const std::vector<HeadPlace> heads = AllHeadsOf(recording);
  EXPECT_THAT(MeasureCopying(recording, model, heads, 0),
    testing::Each(testing::AllOf(testing::Ge(0), testing::Le(1))));
  EXPECT_THROW(
    MeasureCopying(recording, model, heads, 0, [](double) { throw Canceled(); }), Canceled);
}

TEST(HeadCopying, NamesWhatIsMissing)
{
  const TransformerOracle oracle("gpt2");
  const Transformer model = Transformer::Read(oracle.Path());
  RecordOptions options;
  options.values = false;
  Recording recording = RecordTransformer(model, oracle.Input(), options);
  const auto refusal = [&](const Transformer& other)
  { return MessageOf<OptionError>([&] { MeasureCopying(recording, other, {}, 1); }); };
  EXPECT_THAT(refusal(model), HasSubstr("Copying needs values, which were not recorded"));
  EXPECT_THAT(refusal(Transformer::Read(TransformerOracle::Folder("bloom"))),
    HasSubstr("Copying needs the model that was recorded"));
  recording.tokens.id.clear();
  EXPECT_THAT(refusal(model), HasSubstr("Copying needs the ids of the tokens"));
}

}
