#include "Run/Internal/TransformerRun.h"

#include "Allocations.h"
#include "ModelsOracle.h"
#include "Run/Internal/TransformerLinear.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

RecordOptions LastLayer(int threads)
{
  RecordOptions options;
  options.values = false;
  options.layers = { 1 };
  options.threads = threads;
  return options;
}

/// The most that a run has allocated at once, what it gives included.
std::uint64_t PeakOf(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const std::size_t before = atlas::test::AllocatedBytes();
  atlas::test::StartPeak();
  const Recording recording = RecordTransformer(model, input, options);
  return atlas::test::PeakBytes() - before;
}

/// Expects at least what is really taken, and not two and a half times as much: attention and
/// products with weights take memory of each thread, but not at once, and threads may take turns.
void ExpectEstimate(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const MemoryEstimate estimate = EstimateMemory(model, input, options);
  const std::uint64_t expected = estimate.recording + estimate.working;
  const std::uint64_t peak = PeakOf(model, input, options);
  EXPECT_GE(expected, peak);
  EXPECT_LE(2 * expected, 5 * peak);
  testing::Test::RecordProperty("estimate", static_cast<int>(expected));
  testing::Test::RecordProperty("peak", static_cast<int>(peak));
}

struct Case
{
  std::vector<std::size_t> lengths;
  bool everything;
  int threads;
};

void PrintTo(const Case& c, std::ostream* out)
{
  *out << testing::PrintToString(c.lengths) << (c.everything ? ", everything" : ", the last layer")
       << ", threads " << c.threads;
}

using RunMemory = testing::TestWithParam<Case>;

const std::vector<std::size_t> One = { 320 };
const std::vector<std::size_t> Long(12, 320);
const std::vector<std::size_t> Short(300, 7);
const std::vector<std::size_t> Mixed = { 300, 1, 1, 40, 320, 17, 17, 17, 320, 250, 3, 99 };

INSTANTIATE_TEST_SUITE_P(, RunMemory,
  testing::Values(Case{ One, true, 1 }, Case{ One, false, 1 }, Case{ One, false, 4 },
    Case{ Long, true, 1 }, Case{ Long, false, 2 }, Case{ Short, true, 2 }, Case{ Short, false, 1 },
    Case{ Short, false, 4 }, Case{ Mixed, true, 4 }, Case{ Mixed, false, 1 }));

TEST_P(RunMemory, IsThatOfTheEstimate)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const Case& c = GetParam();
  ExpectEstimate(
    model, TinyInput(c.lengths), c.everything ? AllQuantities(c.threads) : LastLayer(c.threads));
}

TEST_P(RunMemory, OfHalvesIsThatOfTheEstimate)
{
  TinyTransformer tiny;
  for (auto& [name, tensor] : tiny.tensors)
  {
    tensor = Tensor::FromDouble(DType::F64, tensor.shape, tensor.View().ToDouble());
  }
  const Transformer model = tiny.Make();
  const Case& c = GetParam();
  ExpectEstimate(
    model, TinyInput(c.lengths), c.everything ? AllQuantities(c.threads) : LastLayer(c.threads));
}

TEST(RunMemoryOfInterventions, IsThatOfTheEstimate)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  RecordOptions options = LastLayer(2);
  options.interventions.source = TinyInput({ 320 });
  for (const ActivationSite& site : ParseSites("0.1 r1 m1", "sites"))
  {
    options.interventions.list.push_back({ site, Replacement::Source });
  }
  ExpectEstimate(model, TinyInput({ 320 }), options);
  ExpectEstimate(model, TinyInput({ 320, 320, 320 }), options);
}

/// The block of weights that a thread packs is most of the memory of a few tokens.
TEST(RunMemoryOfOneToken, IsThatOfTheEstimate)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const RecordOptions options = AllQuantities(2);
  const MemoryEstimate estimate = EstimateMemory(model, TinyInput({ 1 }), options);
  constexpr std::uint64_t lists = 8192; // of rows, heads and tokens
  EXPECT_LE(
    PeakOf(model, TinyInput({ 1 }), options), estimate.recording + estimate.working + lists);
}

/// The encoder, the decoder and the cross attention of T5, on texts of many lengths; what the
/// encoder needs is given back before the decoder runs.
TEST(RunMemoryOfEncoders, IsThatOfTheEstimate)
{
  const Transformer model = Transformer::Read(ModelsOracle("transformers/t5"));
  const auto texts = [](const std::vector<std::size_t>& lengths)
  {
    std::vector<std::vector<std::int64_t>> tokens;
    for (const std::size_t length : lengths)
    {
      tokens.emplace_back(length, 3);
    }
    return tokens;
  };
  std::vector<std::size_t> reversed = Mixed;
  std::reverse(reversed.begin(), reversed.end());
  const std::vector<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> cases = {
    { One, One }, { { 900 }, { 20 } }, { { 20 }, { 900 } }, { Long, Long }, { Mixed, reversed },
    { std::vector<std::size_t>(300, 40), Short }
  };
  for (const auto& [source, target] : cases)
  {
    TransformerInput input;
    input.source = texts(source);
    input.tokens = texts(target);
    for (const int threads : { 1, 4 })
    {
      ExpectEstimate(model, input, AllQuantities(threads));
      ExpectEstimate(model, input, LastLayer(threads));
    }
  }
}

TEST(RunMemoryOfArchitectures, IsThatOfTheEstimate)
{
  for (const char* name : { "attn-only", "attn-only-shortformer", "bert", "bloom", "llama", "vit" })
  {
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    TransformerInput input = oracle.Input();
    if (input.images == 0)
    {
      input.segments.clear();
      input.tokens = TinyInput(std::vector<std::size_t>(60, 64)).tokens;
    }
    SCOPED_TRACE(name);
    ExpectEstimate(model, input, LastLayer(2));
    RecordOptions options = AllQuantities(2);
    options.logits = model.HasLogits();
    ExpectEstimate(model, input, options);
  }
}

/// A matrix of 4,096 x 2,048 weights of 8 bits, which takes 32 MB as floats.
TEST(MemoryOfStoredWeights, IsThatOfABlockPerThread)
{
  constexpr std::int64_t inputs = 2048;
  constexpr std::int64_t outputs = 4096;
  const std::vector<std::byte> bytes(inputs * outputs / 32 * 34);
  LinearTensors tensors;
  tensors.weight = { DType::Q8_0, { outputs, inputs }, bytes.data() };
  tensors.inputs = inputs;
  tensors.outputs = outputs;
  const Linear linear(tensors);
  const SingleThreadedBlas blas; // whose threads take memory
  for (const std::int64_t rows : { 1, 400 })
  {
    const std::vector<float> from(rows * inputs, 1.F);
    std::vector<float> to(rows * outputs);
    const auto apply = [&] { ApplyLinear(linear, rows, from.data(), to.data(), {}, 2); };
    apply(); // starts threads
    const std::size_t before = atlas::test::AllocatedBytes();
    atlas::test::StartPeak();
    apply();
    const std::uint64_t peak = atlas::test::PeakBytes() - before;
    EXPECT_EQ(atlas::test::AllocatedBytes(), before) << "nothing is kept";
    const std::uint64_t blocks = 2 * 2 * 256 * inputs * sizeof(float); // as floats, and packed
    EXPECT_EQ(WidenedBytes(tensors, 2), blocks);
    // The product of each thread; lists.
    const std::uint64_t product = std::min<std::int64_t>(rows, RowsAtOnce) * 256 * sizeof(float);
    EXPECT_LE(peak, blocks + 2 * product + 16384) << rows;
  }
  EXPECT_EQ(WidenedBytes(LinearTensors(), 2), 0U);
}

}
