#include "Circuits/VirtualWeights.h"

#include "Base/Error.h"
#include "CircuitOracle.h"
#include "ErrorMessage.h"

#include <map>
#include <vector>

#include <Eigen/SVD>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Relative to the largest magnitude of each array (Testing/Oracle/analysis/README.md).
constexpr double Tolerance = 1e-5;

std::vector<double> Flat(const DoubleMatrix& matrix)
{
  return { matrix.data(), matrix.data() + matrix.size() };
}

class VirtualWeightsOfModel : public OfCircuits
{
protected:
  VirtualWeightsOptions Options(CompositionKind kind, VirtualSpace space) const
  {
    const std::vector<std::int64_t> pair = this->Oracle.Integers("virtual.pair");
    VirtualWeightsOptions options;
    options.from = { static_cast<std::int32_t>(pair[0]), static_cast<std::int32_t>(pair[1]) };
    options.to = { static_cast<std::int32_t>(pair[2]), static_cast<std::int32_t>(pair[3]) };
    options.kind = kind;
    options.space = space;
    return options;
  }
  VirtualWeights Find(CompositionKind kind, VirtualSpace space) const
  {
    return FindVirtualWeights(this->Oracle.GetModel(), this->Options(kind, space));
  }
  void Expect(const std::string& name, CompositionKind kind, VirtualSpace space) const
  {
    ExpectClose(name, Flat(this->Find(kind, space).product), this->Oracle.Values(name), Tolerance);
  }
};

TEST_P(VirtualWeightsOfModel, EqualTheOracle)
{
  this->Expect("virtual.q", CompositionKind::Query, VirtualSpace::Heads);
  this->Expect("virtual.k", CompositionKind::Key, VirtualSpace::Heads);
  this->Expect("virtual.v", CompositionKind::Value, VirtualSpace::Heads);
  this->Expect("virtual.o_qk", CompositionKind::Query, VirtualSpace::HeadToStream);
  this->Expect("virtual.ov_qk", CompositionKind::Query, VirtualSpace::Streams);
}

/// The products of keys and values, which the oracle does not have, by their definition.
TEST_P(VirtualWeightsOfModel, OfKeysAndValuesAreProducts)
{
  const ProcessedWeights weights(this->Oracle.GetModel(), WeightSteps::TransformerLens);
  const VirtualWeightsOptions options = this->Options(CompositionKind::Key, VirtualSpace::Streams);
  const ProcessedHead first = weights.Attention(options.from.layer).heads[options.from.head];
  const ProcessedHead second = weights.Attention(options.to.layer).heads[options.to.head];
  const DoubleMatrix ofKeys = first.value * first.output * second.key * second.query.transpose();
  const DoubleMatrix ofValues = first.value * first.output * second.value * second.output;
  ExpectClose("keys", Flat(this->Find(CompositionKind::Key, VirtualSpace::Streams).product),
    Flat(ofKeys), 1e-12);
  ExpectClose("values", Flat(this->Find(CompositionKind::Value, VirtualSpace::Streams).product),
    Flat(ofValues), 1e-12);
}

TEST_P(VirtualWeightsOfModel, HaveTheSingularValuesAndScoreOfTheirProduct)
{
  const std::int64_t heads = this->Oracle.GetModel().GetConfig().heads;
  const std::vector<std::int64_t> pair = this->Oracle.Integers("virtual.pair");
  const std::size_t place =
    (pair[0] * heads + pair[1]) * this->Oracle.GetModel().GetConfig().layers * heads +
    pair[2] * heads + pair[3];
  const std::map<CompositionKind, std::string> kinds = { { CompositionKind::Query, "q" },
    { CompositionKind::Key, "k" }, { CompositionKind::Value, "v" } };
  for (const auto& [kind, name] : kinds)
  {
    for (const VirtualSpace space :
      { VirtualSpace::Heads, VirtualSpace::HeadToStream, VirtualSpace::Streams })
    {
      const VirtualWeights found = this->Find(kind, space);
      const Eigen::VectorXd expected =
        Eigen::JacobiSVD<Eigen::MatrixXd>(Eigen::MatrixXd(found.product)).singularValues();
      ExpectClose("singular values", found.singularValues,
        std::vector<double>(expected.data(), expected.data() + found.singularValues.size()), 1e-7);
      EXPECT_NEAR(found.score, this->Oracle.Values("composition." + name)[place], 1e-7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, VirtualWeightsOfModel, OfCircuits::Models(), OfCircuits::Name);

TEST(VirtualWeights, NeedAnEarlierAndALaterHead)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  const auto message = [&](const HeadPlace& from, const HeadPlace& to)
  {
    VirtualWeightsOptions options;
    options.from = from;
    options.to = to;
    return MessageOf<OptionError>([&] { FindVirtualWeights(model, options); });
  };
  EXPECT_THAT(
    message({ 1, 0 }, { 0, 0 }), HasSubstr("ToLayer: expected a layer after FromLayer 1"));
  EXPECT_THAT(message({ 1, 0 }, { 1, 0 }), HasSubstr("found 1"));
  EXPECT_THAT(
    message({ 0, 4 }, { 1, 0 }), HasSubstr("FromHead: expected a number from 0 to 3, found 4"));
  EXPECT_THAT(message({ 0, 0 }, { 2, 0 }), HasSubstr("ToLayer: expected a number from 0 to 1"));
}

}
