#include "EveryTarget.h"
#include "Run/Internal/PackedSequences.h"
#include "Run/Internal/TransformerLinear.h"
#include "SameRecording.h"
#include "TinyTransformer.h"
#include "WholeRuns.h"

#include <cstdint>
#include <random>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// With each instruction set: that of AVX512-BF16 where the machine has it, else products of
/// rounded floats.
using RoundedProducts = OnTarget;

INSTANTIATE_TEST_SUITE_P(, RoundedProducts, OnTarget::Targets(), OnTarget::Name);

double RoundedToEightBits(double value)
{
  return static_cast<double>(static_cast<float>(Eigen::bfloat16(static_cast<float>(value))));
}

std::vector<double> FineNumbers(std::size_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<double> values(count);
  for (double& value : values)
  {
    value = static_cast<double>(generator() % 20011) / 10000 - 1;
  }
  return values;
}

TEST_P(RoundedProducts, AreThoseOfRoundedNumbers)
{
  constexpr std::int64_t inputs = 96;
  constexpr std::int64_t outputs = 300; // more than a block
  const std::vector<double> weights = FineNumbers(inputs * outputs, 1);
  for (const DType dtype : { DType::F32, DType::F64 }) // in place, or widened
  {
    for (const WeightLayout layout : { WeightLayout::InputOutput, WeightLayout::OutputInput })
    {
      const Tensor weight = Tensor::FromDouble(dtype, { inputs, outputs }, weights);
      const Tensor bias = Tensor::FromDouble(DType::F32, { outputs }, FineNumbers(outputs, 2));
      LinearTensors tensors = { weight.View(), bias.View(), layout, inputs, outputs, 0, 0 };
      tensors.products = ProductPrecision::Bfloat16;
      const std::vector<std::int64_t> lengths = { 13, 5, 40, 200 };
      const std::int64_t rows = SequenceOffsets(lengths).back();
      const std::vector<double> numbers = FineNumbers(rows * inputs, 3);
      const std::vector<float> from(numbers.begin(), numbers.end());
      std::vector<float> found(rows * outputs);
      ApplyLinear(Linear(tensors), rows, from.data(), found.data(), {}, 2);
      for (std::int64_t r = 0; r < rows; r += 7)
      {
        for (std::int64_t c = 0; c < outputs; ++c)
        {
          double expected = bias.View().At(c);
          for (std::int64_t i = 0; i < inputs; ++i)
          {
            const double stored =
              weights[layout == WeightLayout::OutputInput ? c * inputs + i : i * outputs + c];
            expected += RoundedToEightBits(static_cast<double>(from[r * inputs + i])) *
                        RoundedToEightBits(stored);
          }
          ASSERT_NEAR(found[r * outputs + c], expected, 2e-5)
            << atlas::Name(dtype) << " " << r << " " << c;
        }
      }
    }
  }
}

TEST_P(RoundedProducts, BytesDoNotDependOnThreadsOrOtherSequences)
{
  const TinyTransformer tiny;
  Transformer model = tiny.Make();
  model.SetProducts(ProductPrecision::Bfloat16);
  const TransformerInput input = TinyInput({ 1, 300, 5, 32, 130, 17 });
  const Recording together = RecordTransformer(model, input, AllQuantities(1));
  CheckRecording(together, "recording");
  EXPECT_EQ(together.products, ProductPrecision::Bfloat16);
  for (const int threads : { 2, 3 })
  {
    ExpectEqual(RecordTransformer(model, input, AllQuantities(threads)), together);
  }
  ExpectSameAlone(model, input, AllQuantities(), together);
  model.SetProducts(ProductPrecision::Single);
  const Recording exact = RecordTransformer(model, input, AllQuantities());
  EXPECT_EQ(exact.products, ProductPrecision::Single);
  ExpectEqual(exact, RecordTransformer(tiny.Make(), input, AllQuantities()));
  EXPECT_NE(Rows(exact.logits, 0, 1), Rows(together.logits, 0, 1));
}

/// Outputs of heads are rounded as the product of all heads is, so that they add up to it.
TEST_P(RoundedProducts, OutputsOfHeadsAddUpToTheStream)
{
  const TinyTransformer tiny;
  Transformer model = tiny.Make();
  model.SetProducts(ProductPrecision::Bfloat16);
  const TransformerInput input = TinyInput({ 20 });
  RecordOptions options = AllQuantities(2);
  for (const ActivationSite& site :
    ParseSites("m0", "sites")) // so that the MLP writes its bias alone
  {
    options.interventions.list.push_back({ site, Replacement::Zero });
  }
  const Recording recording = RecordTransformer(model, input, options);
  const std::vector<double> bias = tiny.tensors.at("h.0.attn.c_proj.bias").View().ToDouble();
  const std::vector<double> mlpBias = tiny.tensors.at("h.0.mlp.c_proj.bias").View().ToDouble();
  for (std::int64_t row = 0; row < 20; ++row)
  {
    for (std::int64_t i = 0; i < TinyTransformer::ModelDimension; ++i)
    {
      double sum = static_cast<double>(recording.residual[0].Row(row)[i]) + bias[i] + mlpBias[i];
      for (const RecordedHead& head : recording.layers[0].heads)
      {
        sum += static_cast<double>(head.output.Row(row)[i]);
      }
      EXPECT_NEAR(recording.residual[1].Row(row)[i], sum, 2e-5);
    }
  }
}

TEST_P(RoundedProducts, MemoryIsInTheEstimate)
{
  const TinyTransformer tiny;
  Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 320, 320 });
  const MemoryEstimate before = EstimateMemory(model, input, AllQuantities(2));
  model.SetProducts(ProductPrecision::Bfloat16);
  const MemoryEstimate after = EstimateMemory(model, input, AllQuantities(2));
  EXPECT_EQ(after.recording, before.recording);
  // Of a thread: the rows that are multiplied at once, rounded, of the widest matrix.
  constexpr std::int64_t hidden = TinyTransformer::HiddenDimension;
  EXPECT_GE(after.working, before.working + hidden * RowsAtOnce * sizeof(std::uint16_t));
}

}
