#include "Analysis/HeadCopying.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <Eigen/Core>
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

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A tensor as a matrix: a row per index of all axes but the last, one row of a vector.
Rows RowsOf(const std::vector<double>& values, std::int64_t columns)
{
  return Eigen::Map<const Rows>(
    values.data(), static_cast<Eigen::Index>(values.size()) / columns, columns);
}

Rows RowsOf(const TensorView& tensor)
{
  return RowsOf(tensor.ToDouble(), tensor.shape.back());
}

/// By the formula in double, from the attention and values of the original code, and weights that
/// an independent program processed.
class Reference
{
public:
  explicit Reference(const std::string& name)
    : Expected(name)
    , Stored(this->Expected.Path() / "model.safetensors")
    , Processed(
        std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" / (name + ".weights.safetensors"))
    , Unembedding(RowsOf(this->Processed.GetTensors().at("processed.unembed.W_U")))
  {
  }

  double Copying(std::int64_t layer, std::int64_t head) const
  {
    const std::string name = "layer." + std::to_string(layer) + ".";
    const Shape& shape = this->Expected.Get(name + "value").shape; // B, H, T, d_head
    const std::int64_t length = shape[2];
    const Rows output = RowsOf(
      this->Processed.GetTensors().at("processed.blocks." + std::to_string(layer) + ".attn.W_O"))
                          .middleRows(head * shape[3], shape[3]);
    const Eigen::RowVectorXd bias = this->ValueBias(layer, head, shape[3]);
    double sum = 0;
    for (std::int64_t s = 0; s < shape[0]; ++s)
    {
      const Rows attention = RowsOf(this->Expected.Values(name + "attention", s), length)
                               .middleRows(head * length, length);
      const Rows values = RowsOf(this->Expected.Values(name + "value", s), shape[3])
                            .middleRows(head * length, length);
      const Rows logits = attention * (values.rowwise() - bias) * output * this->Unembedding;
      const std::vector<std::int64_t> ids = this->Expected.Input().tokens[s];
      for (std::int64_t i = 0; i < length; ++i)
      {
        Eigen::Index strongest = 0;
        attention.row(i).maxCoeff(&strongest);
        sum += Share(logits.row(i), { ids.begin(), ids.end() }, ids[strongest]);
      }
    }
    return sum / static_cast<double>(shape[0] * length);
  }

private:
  TransformerOracle Expected;
  SafetensorsFile Stored;
  SafetensorsFile Processed;
  Rows Unembedding;

  /// What values have beyond x W_V of a normalized x without gain and shift: b_V + shift W_V.
  Eigen::RowVectorXd ValueBias(std::int64_t layer, std::int64_t head, std::int64_t dimension) const
  {
    const std::string name = "blocks." + std::to_string(layer) + ".";
    const auto& tensors = this->Stored.GetTensors();
    if (tensors.count(name + "attn.b_V") == 0)
    {
      return Eigen::RowVectorXd::Zero(dimension); // llama has none
    }
    const Rows shift = RowsOf(tensors.at(name + "ln1.b"));
    return RowsOf(tensors.at(name + "attn.b_V")).row(head) +
           shift.row(0) *
             RowsOf(tensors.at(name + "attn.W_V")).middleRows(head * shift.cols(), shift.cols());
  }

  static double Share(const Eigen::RowVectorXd& logits, const std::set<std::int64_t>& different,
    std::int64_t attended)
  {
    double mean = 0;
    for (const std::int64_t id : different)
    {
      mean += logits[id] / static_cast<double>(different.size());
    }
    double raised = 0;
    for (const std::int64_t id : different)
    {
      raised += std::max(logits[id] - mean, 0.0);
    }
    return std::max(logits[attended] - mean, 0.0) / raised;
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
