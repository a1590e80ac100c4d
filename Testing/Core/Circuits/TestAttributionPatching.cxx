#include "Circuits/AttributionPatching.h"

#include "Analysis/HeadPatterns.h"
#include "Base/Error.h"
#include "Circuits/CircuitCurves.h"
#include "ErrorMessage.h"
#include "OracleFile.h"
#include "Run/ActivationPatching.h"
#include "Run/GradientRun.h"
#include "Run/RecordTransformer.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

namespace fs = std::filesystem;

TransformerInput InputOf(const std::vector<std::int64_t>& tokens)
{
  TransformerInput input;
  input.tokens = { tokens };
  return input;
}

/// Two prompts on a model.
struct Case
{
  Transformer model;
  TransformerInput clean;
  TransformerInput corrupted;
  AttributionOptions options;

  AttributionPatching Patch() const
  {
    return { this->model, this->clean, this->corrupted, this->options };
  }
  const TransformerConfig& Config() const { return this->model.GetConfig(); }
};

Case OracleCase(const fs::path& folder)
{
  Case found = { Transformer::Read(fs::path(ATLAS_ORACLE_DIR) / folder),
    InputOf({ 3, 8, 1, 9, 7, 7, 2 }), InputOf({ 3, 5, 1, 9, 4, 7, 2 }), {} };
  found.options.target = 4;
  found.options.against = 9;
  found.options.threads = 2;
  return found;
}

/// A block of 20 tokens that begins again, of which the model must find the token behind the last
/// one, 2: 13. In the other prompt 2 and 25 of the block change places, and it is 44.
Case InductionCase()
{
  std::vector<std::int64_t> clean = { 5, 40, 17, 33, 8, 21, 60, 2, 13, 47, 30, 51, 9, 25, 44, 3, 58,
    12, 36, 19, 5, 40, 17, 33, 8, 21, 60, 2 };
  std::vector<std::int64_t> corrupted = clean;
  std::swap(corrupted[7], corrupted[13]);
  return { Transformer::Read(fs::path(ATLAS_DATA_DIR) / "models" / "induction"), InputOf(clean),
    InputOf(corrupted), {} };
}

/// The measure of the run with one site of heads replaced, in single precision.
PatchingMap ExactHeads(const Case& of, const LogitPair& logits)
{
  PatchingOptions options;
  options.target = logits.target;
  options.against = logits.against;
  return MapPatching(of.model, of.clean, of.corrupted, options);
}

class OfAttribution : public testing::TestWithParam<std::string>
{
public:
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }

protected:
  Case Of = OracleCase(GetParam());
};

TEST_P(OfAttribution, AddsUpEdgesToNodes)
{
  for (const std::int64_t steps : { 1, 3 })
  {
    this->Of.options.steps = steps;
    const Attribution found = this->Of.Patch().Attribute(true);
    EXPECT_EQ(static_cast<std::int64_t>(found.edges.size()), CircuitEdgeCount(this->Of.Config()));
    std::vector<double> sums(found.nodes.size());
    for (const CircuitEdge& edge : found.edges)
    {
      EXPECT_LT(edge.from, edge.to);
      sums[edge.from] += edge.effect;
    }
    double largest = 0;
    for (std::size_t i = 0; i < sums.size(); ++i)
    {
      largest = std::max(largest, std::abs(sums[i]));
    }
    EXPECT_GT(largest, 0);
    for (std::size_t i = 0; i < sums.size(); ++i)
    {
      EXPECT_NEAR(sums[i], found.Effect(static_cast<std::int64_t>(i)), 1e-11 * largest)
        << NameOf(found.nodes[i]);
    }
  }
}

TEST_P(OfAttribution, OfALossMeasuresItInAllRuns)
{
  this->Of.options.target.reset();
  this->Of.options.against.reset();
  this->Of.options.loss = true;
  const AttributionPatching patching = this->Of.Patch();
  const GradientRun gradient(this->Of.model, 7);
  const std::vector<std::int64_t>& tokens = this->Of.clean.tokens.front();
  const auto lossOf = [&](const TransformerInput& input)
  { return gradient.Loss(gradient.Run(gradient.Embed(input)), tokens); };
  EXPECT_NEAR(patching.Clean(), lossOf(this->Of.clean), 1e-12);
  EXPECT_NEAR(patching.Corrupted(), lossOf(this->Of.corrupted), 1e-12);
  const Attribution found = patching.Attribute(true);
  std::vector<double> sums(found.nodes.size());
  double largest = 0;
  for (const CircuitEdge& edge : found.edges)
  {
    sums[edge.from] += edge.effect;
    largest = std::max(largest, std::abs(edge.effect));
  }
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i + 1 < sums.size(); ++i)
  {
    EXPECT_NEAR(sums[i], found.Effect(static_cast<std::int64_t>(i)), 1e-10 * largest);
  }
  // A patch of all but the embedding, and of that, too, is the other run.
  std::vector<bool> all(found.nodes.size() - 1, true);
  EXPECT_NEAR(patching.WithPatched(all), patching.Corrupted(), 1e-10);
}

TEST_P(OfAttribution, PatchesHeadsAsActivationPatchingDoes)
{
  if (this->Of.Config().logitCap > 0)
  {
    GTEST_SKIP() << "which knows no caps of logits";
  }
  const AttributionPatching patching = this->Of.Patch();
  const PatchingMap exact = ExactHeads(this->Of, patching.GetLogits());
  EXPECT_NEAR(patching.Clean(), exact.prompt, 2e-5);
  EXPECT_NEAR(patching.Corrupted(), exact.source, 2e-5);
  std::size_t next = 0;
  const std::vector<CircuitNode>& nodes = patching.GetNodes();
  for (std::size_t i = 0; i < nodes.size(); ++i)
  {
    if (nodes[i].kind == CircuitNodeKind::Head)
    {
      std::vector<bool> patched(nodes.size());
      patched[i] = true;
      EXPECT_NEAR(patching.WithPatched(patched), exact.difference[next++], 2e-5);
    }
  }
  EXPECT_EQ(next, exact.difference.size());
}

/// The gradients along a line add up to the difference of its ends. The error of a right rule falls
/// as the inverse of the number of steps, so it is left out of two of them.
TEST_P(OfAttribution, IntegratesToTheWholeDifference)
{
  const auto of = [&](std::int64_t steps)
  {
    this->Of.options.steps = steps;
    return this->Of.Patch().Attribute(false).Effect(0);
  };
  const double once = of(80);
  const double twice = of(160);
  const AttributionPatching patching = this->Of.Patch();
  const double whole = patching.Corrupted() - patching.Clean();
  EXPECT_NEAR(2 * twice - once, whole, 0.02 * std::abs(whole)); // OPT's ReLU is not smooth
}

TEST_P(OfAttribution, RunsCircuitsOfAllNodesAndOfNone)
{
  const AttributionPatching patching = this->Of.Patch();
  const std::vector<bool> all(patching.GetNodes().size(), true);
  EXPECT_NEAR(patching.WithPatched(all), patching.Corrupted(), 1e-12);
  EXPECT_EQ(patching.WithPatched({}), patching.Clean());
  EXPECT_NEAR(patching.WithEdges({}), patching.Corrupted(), 1e-12);
  EXPECT_NEAR(patching.WithEdges(patching.Attribute(true).edges), patching.Clean(), 1e-12);
}

/// The run of all edges but one, which begins at the other end, has the same measure. Edges to each
/// input of a reader of each kind are taken, from its first and its last writer.
TEST_P(OfAttribution, PatchesEdgesAsCircuitsDo)
{
  const AttributionPatching patching = this->Of.Patch();
  const std::vector<CircuitEdge> all = CircuitEdges(this->Of.Config());
  double largest = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    const bool isFirst = i == 0 || all[i - 1].to != all[i].to || all[i - 1].input != all[i].input;
    const bool isLast =
      i + 1 == all.size() || all[i + 1].to != all[i].to || all[i + 1].input != all[i].input;
    if (isFirst || isLast)
    {
      std::vector<CircuitEdge> others = all;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      const double found = patching.WithPatchedEdge(all[i]);
      EXPECT_NEAR(found, patching.WithEdges(others), 1e-11) << i;
      largest = std::max(largest, std::abs(found - patching.Clean()));
    }
  }
  EXPECT_GT(largest, 1e-3);
}

/// The third of the curves' definitions, from runs of its sets by hand.
TEST_P(OfAttribution, MeasuresIncompleteness)
{
  const AttributionPatching patching = this->Of.Patch();
  const Attribution found = patching.Attribute(false);
  std::vector<std::size_t> order(found.nodes.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{ 0 });
  const auto strength = [&](std::size_t i)
  { return std::abs(found.Effect(static_cast<std::int64_t>(i))); };
  std::sort(order.begin(), order.end(),
    [&](std::size_t a, std::size_t b) { return strength(a) > strength(b); });
  // With all but the nodes from `first` to before `last` as in the corrupted run.
  const auto alone = [&](std::size_t first, std::size_t last)
  {
    std::vector<bool> patched(order.size(), true);
    for (std::size_t i = first; i < last; ++i)
    {
      patched[order[i]] = false;
    }
    return patching.WithPatched(patched);
  };
  const std::size_t all = order.size();
  const CircuitPoint point = NodeCircuits(patching, found, { 5 })[0];
  const double none = std::abs(alone(0, 5) - alone(0, all));
  const double half = std::abs(alone(2, 5) - alone(2, all));
  const double whole = std::abs(alone(5, 5) - alone(5, all));
  EXPECT_NEAR(point.incomplete, std::max({ none, half, whole }), 1e-12);
  EXPECT_NEAR(
    NodeCircuits(patching, found, { static_cast<std::int64_t>(all) })[0].incomplete, 0, 1e-12);
}

/// Several pairs, of different lengths and with tokens of their own, have the means of each alone.
TEST_P(OfAttribution, IsTheMeanOverPairs)
{
  const auto of = [&](const std::vector<std::vector<std::int64_t>>& clean,
                    const std::vector<std::vector<std::int64_t>>& corrupted)
  {
    TransformerInput first;
    TransformerInput second;
    first.tokens = clean;
    second.tokens = corrupted;
    AttributionOptions options;
    options.steps = 2;
    return std::make_unique<AttributionPatching>(this->Of.model, first, second, options);
  };
  const std::vector<std::vector<std::int64_t>> clean = { { 3, 8, 1, 9, 7, 7, 2 }, { 4, 4, 6, 1 } };
  const std::vector<std::vector<std::int64_t>> other = { { 3, 5, 1, 9, 4, 7, 2 }, { 4, 9, 6, 3 } };
  const auto both = of(clean, other);
  const std::array alone = { of({ clean[0] }, { other[0] }), of({ clean[1] }, { other[1] }) };
  EXPECT_NEAR(both->Clean(), (alone[0]->Clean() + alone[1]->Clean()) / 2, 1e-12);
  EXPECT_NEAR(both->Corrupted(), (alone[0]->Corrupted() + alone[1]->Corrupted()) / 2, 1e-12);
  for (std::size_t i = 0; i < 2; ++i)
  {
    EXPECT_EQ(both->GetLogits(i).target, alone[i]->GetLogits().target);
    EXPECT_EQ(both->GetLogits(i).position, alone[i]->GetLogits().position);
  }
  const Attribution mean = both->Attribute(true);
  const std::array found = { alone[0]->Attribute(true), alone[1]->Attribute(true) };
  EXPECT_EQ(mean.effects.cols(), 7);
  for (std::size_t i = 0; i < mean.nodes.size(); ++i)
  {
    const auto node = static_cast<std::int64_t>(i);
    EXPECT_NEAR(mean.Effect(node), (found[0].Effect(node) + found[1].Effect(node)) / 2, 1e-12);
  }
  for (std::size_t i = 0; i < mean.edges.size(); ++i)
  {
    EXPECT_NEAR(
      mean.edges[i].effect, (found[0].edges[i].effect + found[1].edges[i].effect) / 2, 1e-12);
  }
  const std::vector<bool> patched = { false, true, true };
  EXPECT_NEAR(both->WithPatched(patched),
    (alone[0]->WithPatched(patched) + alone[1]->WithPatched(patched)) / 2, 1e-12);
  const std::vector<CircuitEdge> kept(mean.edges.begin(), mean.edges.begin() + 9);
  EXPECT_NEAR(
    both->WithEdges(kept), (alone[0]->WithEdges(kept) + alone[1]->WithEdges(kept)) / 2, 1e-12);
  EXPECT_NEAR(both->WithPatchedEdge(kept[5]),
    (alone[0]->WithPatchedEdge(kept[5]) + alone[1]->WithPatchedEdge(kept[5])) / 2, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Families, OfAttribution,
  testing::Values("gradients/gemma", "gradients/gemma2", "gradients/gpt2", "gradients/gpt_neox",
    "gradients/llama", "gradients/mistral", "gradients/opt", "gradients/qwen2", "gradients/qwen3",
    "transformers/attn-only", "transformers/attn-only-shortformer", "transformers/bloom",
    "v5/decoder/exaone4-a"),
  OfAttribution::Name);

/// Of a small change, what is left of the first order is of the second: a tenth of the change has a
/// hundredth of it.
TEST(AttributionPatching, IsTheFirstOrderOfPatching)
{
  const auto errors = [](float size)
  {
    TinyTransformer tiny;
    constexpr std::size_t d = TinyTransformer::ModelDimension;
    std::vector<float> row(d);
    const Tensors& tensors = tiny.tensors;
    std::memcpy(
      row.data(), tensors.at("wte.weight").bytes.data() + 4 * d * sizeof(float), d * sizeof(float));
    for (std::size_t i = 0; i < d; ++i) // token 5 is token 4, a little changed
    {
      tiny.Set("wte.weight", 5 * d + i, row[i] + size * (i % 3 == 0 ? 1.F : -0.4F));
    }
    const Transformer model = tiny.Make();
    AttributionOptions options;
    options.target = 1;
    options.against = 2;
    const AttributionPatching patching(
      model, InputOf({ 4, 7, 3, 4, 9 }), InputOf({ 5, 7, 3, 5, 9 }), options);
    const Attribution found = patching.Attribute(false);
    std::vector<double> off;
    for (std::size_t i = 0; i + 1 < found.nodes.size(); ++i)
    {
      std::vector<bool> patched(found.nodes.size());
      patched[i] = true;
      off.push_back(std::abs(patching.WithPatched(patched) - patching.Clean() -
                             found.Effect(static_cast<std::int64_t>(i))));
    }
    return off;
  };
  const std::vector<double> coarse = errors(0.1F);
  const std::vector<double> fine = errors(0.01F);
  for (std::size_t i = 0; i < coarse.size(); ++i)
  {
    EXPECT_LT(fine[i], 0.02 * coarse[i] + 1e-12) << i;
  }
}

/// The same of single edges where normalizations follow what heads and MLPs write.
TEST(AttributionPatching, IsTheFirstOrderOfEdgesThroughNormalizations)
{
  const fs::path folder = fs::path(ATLAS_ORACLE_DIR) / "gradients" / "gemma2";
  const Transformer stored = Transformer::Read(folder);
  const auto errors = [&](double size)
  {
    Tensors tensors = CopyTensors(stored.GetFiles().GetTensors());
    Tensor& embedding = tensors.at("model.embed_tokens.weight");
    std::vector<double> rows = embedding.View().ToDouble();
    const auto d = static_cast<std::size_t>(stored.GetConfig().modelDimension);
    for (std::size_t i = 0; i < d; ++i) // token 5 is token 8, a little changed
    {
      rows[5 * d + i] = rows[8 * d + i] + size * (i % 3 == 0 ? 1. : -0.4);
    }
    embedding = Tensor::FromDouble(DType::F32, embedding.shape, rows);
    const Transformer model(stored.GetConfig(), WeightFiles(ViewsOf(tensors), "changed"));
    AttributionOptions options;
    options.target = 4;
    options.against = 9;
    const AttributionPatching patching(
      model, InputOf({ 3, 8, 1, 9, 8, 7, 2 }), InputOf({ 3, 5, 1, 9, 5, 7, 2 }), options);
    std::vector<double> off;
    for (const CircuitEdge& edge : patching.Attribute(true).edges)
    {
      off.push_back(
        std::abs(patching.WithPatchedEdge(edge) - patching.Clean() - edge.effect) / size);
    }
    return off;
  };
  const std::vector<double> coarse = errors(0.01);
  const std::vector<double> fine = errors(0.001);
  EXPECT_GT(*std::max_element(coarse.begin(), coarse.end()), 1e-4) << "it is not linear";
  for (std::size_t i = 0; i < coarse.size(); ++i)
  {
    EXPECT_LT(fine[i], 0.2 * coarse[i] + 1e-5) << i;
  }
}

/// Where the softmax of an induction head is saturated, one gradient does not see its keys. Ten do.
TEST(AttributionPatching, FindsTheInductionCircuit)
{
  Case of = InductionCase();
  of.options.steps = 10;
  const AttributionPatching patching = of.Patch();
  EXPECT_EQ(patching.GetLogits().target, 13) << "what the model predicts";
  EXPECT_EQ(patching.GetLogits().against, 44);
  EXPECT_EQ(patching.GetLogits().position, 27);
  const Attribution found = patching.Attribute(true);
  const PatchingMap exact = ExactHeads(of, patching.GetLogits());
  // The head of each layer that matters most by exact patching.
  const std::int64_t heads = of.Config().heads;
  const auto strongest = [&](std::int64_t layer)
  {
    const auto first = exact.difference.begin() + layer * heads;
    return std::to_string(std::min_element(first, first + heads) - first);
  };
  std::vector<CircuitEdge> edges = found.edges;
  SortByMagnitude(edges);
  EXPECT_EQ(NameOf(found.nodes[edges[0].from]), "embed");
  EXPECT_EQ(NameOf(found.nodes[edges[0].to]), "head 0." + strongest(0));
  EXPECT_EQ(edges[0].input, EdgeInput::Value);
  const auto between = std::find_if(edges.begin(), edges.end(),
    [&](const CircuitEdge& edge)
    {
      return found.nodes[edge.from].layer == 0 &&
             edge.to + 1 < static_cast<std::int32_t>(found.nodes.size());
    });
  ASSERT_NE(between, edges.end());
  EXPECT_EQ(NameOf(found.nodes[between->from]), "head 0." + strongest(0));
  EXPECT_EQ(NameOf(found.nodes[between->to]), "head 1." + strongest(1));
  EXPECT_EQ(between->input, EdgeInput::Key);
  EXPECT_LT(between->effect, 0) << "it makes the difference larger";
}

/// The heads that are known by what they attend to: to the token before, in layer 0, and to what
/// came after the same token, in layer 1 (Olsson et al. 2022).
std::vector<std::string> KnownHeads(const Case& of)
{
  const Recording recording = RecordTransformer(of.model, of.clean, {});
  const RepeatedTokens tokens(recording, 0);
  const std::int64_t length = recording.SequenceLength(0);
  constexpr std::int64_t period = 20;
  std::vector<std::string> known;
  std::vector<float> work;
  for (std::int64_t layer = 0; layer < 2; ++layer)
  {
    for (std::int64_t head = 0; head < of.Config().heads; ++head)
    {
      const auto measure = [&](std::int64_t begin, std::int64_t end)
      { return MeasurePatterns(recording, tokens, 0, layer, head, begin, end, {}, work); };
      const double score =
        layer == 0 ? measure(1, period).Score(HeadPattern::PreviousToken, PatternMeasure::Stripe)
                   : measure(period, length).PrefixMatching();
      if (score > 0.3)
      {
        known.push_back("head " + std::to_string(layer) + "." + std::to_string(head));
      }
    }
  }
  return known;
}

TEST(AttributionPatching, ProvesTheInductionCircuit)
{
  Case of = InductionCase();
  of.options.steps = 10;
  const AttributionPatching patching = of.Patch();
  const std::vector<std::string> known = KnownHeads(of);
  const std::vector<CircuitNode>& nodes = patching.GetNodes();
  std::vector<bool> others(nodes.size());
  for (std::size_t i = 1; i + 1 < nodes.size(); ++i)
  {
    others[i] = std::find(known.begin(), known.end(), NameOf(nodes[i])) == known.end();
  }
  EXPECT_THAT(known, testing::SizeIs(testing::AllOf(testing::Ge(4U), testing::Le(12U))));
  const double whole = patching.Clean() - patching.Corrupted();
  EXPECT_GT((patching.WithPatched(others) - patching.Corrupted()) / whole, 0.9)
    << testing::PrintToString(known);
  // The strongest nodes do it, too, and those who are left do nothing without them.
  const Attribution found = patching.Attribute(true);
  const std::vector<CircuitPoint> byNodes = NodeCircuits(patching, found, { 0, 12, 17 });
  EXPECT_GT((byNodes[1].kept - patching.Corrupted()) / whole, 0.9);
  EXPECT_LT((byNodes[1].removed - patching.Corrupted()) / whole, 0.1);
  const std::vector<CircuitPoint> byEdges =
    EdgeCircuits(patching, found, { 0, 80, CircuitEdgeCount(of.Config()) });
  EXPECT_GT((byEdges[1].kept - patching.Corrupted()) / whole, 0.9);
  EXPECT_LT((byEdges[1].removed - patching.Corrupted()) / whole, 0.1);
  for (const std::vector<CircuitPoint>& curve : { byNodes, byEdges })
  {
    EXPECT_NEAR(curve.front().kept, patching.Corrupted(), 1e-9);
    EXPECT_NEAR(curve.front().removed, patching.Clean(), 1e-9);
    EXPECT_NEAR(curve.back().kept, patching.Clean(), 1e-9);
    EXPECT_NEAR(curve.back().removed, patching.Corrupted(), 1e-9);
  }
}

TEST(AttributionPatching, IsEqualForAnyNumberOfThreads)
{
  Case of = InductionCase();
  const auto found = [&](int threads)
  {
    of.options.threads = threads;
    const AttributionPatching patching = of.Patch();
    std::vector<double> values;
    std::vector<CircuitEdge> edges = patching.Attribute(true).edges;
    for (const CircuitEdge& edge : edges)
    {
      values.push_back(edge.effect);
    }
    SortByMagnitude(edges);
    edges.resize(80);
    values.push_back(patching.WithEdges(edges));
    return values;
  };
  EXPECT_EQ(found(1), found(3));
}

/// Each part reports from near 0 to 1, and stops when a report throws.
TEST(AttributionPatching, ReportsProgressAndStops)
{
  Case of = OracleCase("gradients/gpt2");
  std::vector<double> reports;
  const Progress progress = [&](double done) { reports.push_back(done); };
  const auto check = [&]
  {
    EXPECT_THAT(reports, testing::SizeIs(testing::Ge(2U)));
    EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
    EXPECT_GT(reports.front(), 0);
    EXPECT_NEAR(reports.back(), 1, 1e-12);
    reports.clear();
  };
  of.options.progress = progress;
  of.options.steps = 3;
  const AttributionPatching patching = of.Patch();
  check();
  const Attribution found = patching.Attribute(true, progress);
  check();
  patching.Attribute(false, progress);
  check();
  patching.WithPatched({}, progress);
  check();
  patching.WithEdges(found.edges, progress);
  check();
  for (const CircuitEdge& edge : { found.edges.front(), found.edges.back() })
  {
    patching.WithPatchedEdge(edge, progress);
    check();
  }
  NodeCircuits(patching, found, { 0, 3, 11 }, progress);
  check();
  EdgeCircuits(patching, found, { 0, 20 }, progress);
  check();
  const Progress stop = [](double) { throw Canceled(); };
  EXPECT_THROW(patching.Attribute(true, stop), Canceled);
  EXPECT_THROW(patching.WithPatched({}, stop), Canceled);
  EXPECT_THROW(patching.WithEdges({}, stop), Canceled);
  EXPECT_THROW(patching.WithPatchedEdge(found.edges.front(), stop), Canceled);
  of.options.progress = stop;
  EXPECT_THROW(of.Patch(), Canceled);
}

TEST(AttributionPatching, NamesTheRunThatIsNotFinite)
{
  TinyTransformer tiny;
  tiny.Set("wte.weight", 5 * TinyTransformer::ModelDimension, INFINITY);
  const Transformer model = tiny.Make();
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { AttributionPatching(model, InputOf({ 4, 7 }), InputOf({ 5, 7 }), {}); }),
    HasSubstr("PatchFrom: an activation before layer 0 is not finite"));
  TransformerInput pairs = InputOf({ 4, 7 });
  pairs.tokens.push_back({ 4, 6 });
  TransformerInput others = InputOf({ 3, 7 });
  others.tokens.push_back({ 5, 6 });
  EXPECT_THAT(MessageOf<ModelError>([&] { AttributionPatching(model, pairs, others, {}); }),
    HasSubstr("PatchFrom in pair 1: an activation before layer 0 is not finite"));
  TinyTransformer last;
  last.Set("h.1.mlp.c_proj.bias", 0, INFINITY);
  const Transformer other = last.Make();
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { AttributionPatching(other, InputOf({ 4, 7 }), InputOf({ 5, 7 }), {}); }),
    HasSubstr("Prompt: an activation after the last layer is not finite"));
}

/// Rounded factors of products, as the reader may ask for, choose no other tokens.
TEST(AttributionPatching, DoesNotRoundFactors)
{
  Case of = InductionCase();
  const AttributionPatching single = of.Patch();
  of.model.SetProducts(ProductPrecision::Bfloat16);
  const AttributionPatching rounded = of.Patch();
  EXPECT_EQ(rounded.GetLogits().target, single.GetLogits().target);
  EXPECT_EQ(rounded.GetLogits().against, single.GetLogits().against);
  EXPECT_EQ(rounded.Clean(), single.Clean());
}

TEST(AttributionPatching, RefusesOtherPrompts)
{
  Case of = OracleCase("gradients/gpt2");
  of.corrupted = InputOf({ 1, 2 });
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("PatchFrom: expected as many tokens as the prompt has, 7, found 2."));
  of.corrupted.tokens.push_back({ 1 });
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("PatchFrom: expected as many prompts as Prompt has, 1, found 2."));
  of.clean.tokens.push_back({ 1, 2, 3 });
  of.corrupted.tokens.front() = of.clean.tokens.front();
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("expected as many tokens as the prompt has, 3, found 1 in pair 1."));
  of.corrupted.tokens.back() = { 1, 4, 3 };
  of.options.position = 3;
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("Position: expected -1 or one of all prompts, 0 to 2, found 3."));
  of.clean.tokens.pop_back();
  of.corrupted = of.clean;
  of.options.position = -1;
  of.options.steps = 0;
  EXPECT_THAT(
    MessageOf<OptionError>([&] { of.Patch(); }), HasSubstr("Steps: expected at least 1, found 0."));
  of.options.steps = 1;
  of.options.position = 7;
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("Position: expected -1 or one of the prompt, 0 to 6, found 7."));
  of.options.position = 0;
  of.options.target = 99;
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("Target: expected a token id from 0 to 52, found 99."));
  of.options.target.reset();
  of.options.against.reset();
  EXPECT_THAT(MessageOf<OptionError>([&] { of.Patch(); }),
    HasSubstr("expected a prompt with other logits than Prompt, found the same."));
}

}
