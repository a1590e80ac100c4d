#include "Circuits/HeadComposition.h"

#include "Base/Error.h"
#include "CircuitOracle.h"
#include "ErrorMessage.h"
#include "TinyTransformer.h"

#include <limits>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Relative to the largest magnitude of each array (Testing/Oracle/analysis/README.md).
constexpr double Tolerance = 1e-5;

const std::map<std::string, CompositionKind>& Kinds()
{
  static const std::map<std::string, CompositionKind> kinds = { { "q", CompositionKind::Query },
    { "k", CompositionKind::Key }, { "v", CompositionKind::Value } };
  return kinds;
}

std::vector<ComposedHeads> Find(const Transformer& model, CompositionKind kind, int threads = 0,
  WeightSteps steps = WeightSteps::TransformerLens)
{
  HeadCompositionOptions options;
  options.kind = kind;
  options.threads = threads;
  options.steps = steps;
  return FindHeadComposition(model, options);
}

using CompositionOfModel = OfCircuits;

TEST_P(CompositionOfModel, EqualsTheOracle)
{
  const Transformer& model = this->Oracle.GetModel();
  const double baseline = CompositionBaseline(model);
  EXPECT_DOUBLE_EQ(baseline, this->Oracle.Values("composition.baseline")[0]);
  const std::int64_t heads = model.GetConfig().heads;
  const std::int64_t all = model.GetConfig().layers * heads;
  for (const auto& [name, kind] : Kinds())
  {
    std::vector<double> scores(all * all, 0);
    std::vector<double> corrected = scores;
    for (const ComposedHeads& pair : Find(model, kind))
    {
      const std::size_t at =
        (pair.fromLayer * heads + pair.fromHead) * all + pair.toLayer * heads + pair.toHead;
      scores[at] = pair.score;
      corrected[at] = pair.score - baseline;
    }
    const std::string array = "composition." + name;
    ExpectClose(array, scores, this->Oracle.Values(array), Tolerance);
    ExpectClose(
      array + ".corrected", corrected, this->Oracle.Values(array + ".corrected"), Tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CompositionOfModel, OfCircuits::Models(), OfCircuits::Name);

TEST(HeadComposition, DoesNotDependOnThreads)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const std::vector<ComposedHeads> one = Find(model, CompositionKind::Query, 1);
  const std::vector<ComposedHeads> three = Find(model, CompositionKind::Query, 3);
  ASSERT_EQ(one.size(), 9U);
  ASSERT_EQ(three.size(), 9U);
  for (std::size_t i = 0; i < one.size(); ++i)
  {
    EXPECT_EQ(one[i].score, three[i].score);
    EXPECT_EQ(one[i].fromHead, static_cast<std::int32_t>(i / 3));
    EXPECT_EQ(one[i].toHead, static_cast<std::int32_t>(i % 3));
  }
}

/// The definition, with matrices [d_model, d_model].
TEST(HeadComposition, OfStoredWeightsIsItsDefinition)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const ProcessedWeights weights(model, WeightSteps::Stored);
  const ProcessedHead first = weights.Attention(0).heads[1];
  const ProcessedHead second = weights.Attention(1).heads[2];
  const DoubleMatrix ov = first.value * first.output;
  const DoubleMatrix qk = second.query * second.key.transpose();
  const std::vector<ComposedHeads> found =
    Find(model, CompositionKind::Query, 0, WeightSteps::Stored);
  EXPECT_NEAR(found[5].score, (ov * qk).norm() / (ov.norm() * qk.norm()), 1e-6);
}

TEST(HeadComposition, OfAHeadWithoutWeightsIsZero)
{
  TinyTransformer tiny;
  constexpr std::size_t d = TinyTransformer::ModelDimension;
  for (std::size_t i = 0; i < 16 * d; ++i) // W_O of head 0
  {
    tiny.Set("h.0.attn.c_proj.weight", i, 0);
  }
  const std::vector<ComposedHeads> found = Find(tiny.Make(), CompositionKind::Value);
  EXPECT_EQ(found[0].score, 0);
  EXPECT_GT(found[3].score, 0);
}

TEST(HeadComposition, NamesWeightsThatAreNotFinite)
{
  TinyTransformer tiny;
  tiny.Set("h.1.attn.c_attn.weight", 3, std::numeric_limits<float>::infinity());
  EXPECT_THAT(MessageOf<ModelError>([&] { Find(tiny.Make(), CompositionKind::Key); }),
    HasSubstr("layer 1, head"));
}

TEST(HeadComposition, Stops)
{
  const TinyTransformer tiny;
  HeadCompositionOptions options;
  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(FindHeadComposition(tiny.Make(), options), Canceled);
}

}
