#include "Run/Internal/TransformerLinear.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "ErrorMessage.h"
#include "Run/Internal/PackedSequences.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;

namespace
{

std::vector<double> DoubleNumbers(std::size_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<double> values(count);
  for (double& value : values)
  {
    value = static_cast<double>(generator() % 257) / 128 - 1; // exact in float
  }
  return values;
}

const std::vector<std::vector<std::int64_t>> Lengths = { { 1 }, { 12 }, { 13, 5, 40 },
  { 192, 3, 500, 47, 1 }, { 1000 }, { 2, 2, 2, 2, 2, 2, 2 } };

TEST(VisitProducts, TakesEveryRowOnce)
{
  const std::vector<float> unit = { 1, 0, 0, 1 };
  PackedColumns columns;
  columns.Set({ unit.data(), 2 }, 2, 2);
  for (const std::int64_t rows : { 1, 12, 192, 193, 1000 })
  {
    std::vector<float> from(rows * 3); // a stride of 3
    std::iota(from.begin(), from.end(), 0.F);
    std::int64_t next = 0;
    VisitProducts(columns, rows, from.data(), 3,
      [&](std::int64_t row, const float* product)
      {
        EXPECT_EQ(row, next++);
        EXPECT_THAT(
          std::vector<float>(product, product + 2), ElementsAre(from[row * 3], from[row * 3 + 1]));
      });
    EXPECT_EQ(next, rows);
  }
}

/// A matrix [inputs, outputs] stored in a layout.
struct Stored
{
  static constexpr std::int64_t Inputs = 6;
  static constexpr std::int64_t Outputs = 300; // more than a block of columns

  std::vector<double> values = DoubleNumbers(Inputs * Outputs, 1);
  std::vector<double> biases = DoubleNumbers(Outputs, 2);
  Tensor weight;
  Tensor bias = Tensor::FromDouble(DType::F32, { Outputs }, biases);
  LinearTensors tensors;

  explicit Stored(WeightLayout layout)
  {
    std::vector<double> stored = this->values;
    if (layout == WeightLayout::OutputInput)
    {
      for (std::size_t i = 0; i < stored.size(); ++i)
      {
        stored[i] = this->values[i % Inputs * Outputs + i / Inputs];
      }
    }
    this->weight = Tensor::FromDouble(DType::F32, { Inputs, Outputs }, stored);
    this->tensors = { this->weight.View(), this->bias.View(), layout, Inputs, Outputs, 2, 3 };
  }

  double Product(const std::vector<float>& from, std::int64_t row, std::int64_t output) const
  {
    double sum = this->biases[output];
    for (std::int64_t i = 0; i < Inputs; ++i)
    {
      sum += static_cast<double>(from[row * Inputs + i]) * this->values[i * Outputs + output];
    }
    return sum;
  }
};

TEST(ApplyLinear, IsTheProductWithItsBias)
{
  for (const WeightLayout layout : { WeightLayout::InputOutput, WeightLayout::OutputInput })
  {
    const Stored stored(layout);
    const Linear linear(stored.tensors);
    for (const std::vector<std::int64_t>& lengths : Lengths)
    {
      const std::int64_t rows = SequenceOffsets(lengths).back();
      const std::size_t size = rows;
      const std::vector<double> numbers = DoubleNumbers(size * Stored::Inputs, 3);
      const std::vector<float> from(numbers.begin(), numbers.end());
      const std::vector<double> factors = DoubleNumbers(size * Stored::Outputs, 4);
      const std::vector<float> factor(factors.begin(), factors.end());
      std::vector<float> product(factor.size(), 100);
      ApplyLinear(linear, SequenceOffsets(lengths).back(), from.data(), product.data(),
        { Activation::Relu, factor.data(), false }, 2);
      std::vector<float> sum = factor;
      ApplyLinear(linear, SequenceOffsets(lengths).back(), from.data(), sum.data(),
        { std::nullopt, nullptr, true }, 2);
      double error = 0;
      for (std::size_t i = 0; i < product.size(); ++i)
      {
        const double expected = stored.Product(from, static_cast<std::int64_t>(i) / Stored::Outputs,
          static_cast<std::int64_t>(i) % Stored::Outputs);
        error = std::max(
          { error, std::abs(static_cast<double>(product[i]) - std::max(expected, 0.) * factors[i]),
            std::abs(static_cast<double>(sum[i]) - (factors[i] + expected)) });
      }
      EXPECT_LT(error, 1e-5) << testing::PrintToString(lengths);
    }
  }
}

TEST(ApplyLinear, BytesDependNeitherOnThreadsNorOnOtherSequences)
{
  for (const std::int64_t inputs : { 33, 768 })
  {
    const std::int64_t outputs = 300;
    const std::size_t size = inputs * outputs;
    const Tensor weight =
      Tensor::FromDouble(DType::F32, { inputs, outputs }, DoubleNumbers(size, 5));
    const Linear linear(
      LinearTensors{ weight.View(), {}, WeightLayout::InputOutput, inputs, outputs, 0, outputs });
    const std::vector<std::int64_t> lengths = { 7, 32, 50, 1, 250, 32, 100, 11, 48, 96, 23, 60 };
    const std::vector<std::int64_t> offsets = SequenceOffsets(lengths);
    std::mt19937 generator(6);
    std::normal_distribution<float> normal;
    std::vector<float> from(offsets.back() * inputs);
    std::generate(from.begin(), from.end(), [&] { return normal(generator); });
    const auto apply = [&](const std::vector<std::int64_t>& of, const float* rows, int threads)
    {
      std::vector<float> to(SequenceOffsets(of).back() * outputs);
      ApplyLinear(linear, SequenceOffsets(of).back(), rows, to.data(), {}, threads);
      return to;
    };
    const std::vector<float> all = apply(lengths, from.data(), 1);
    EXPECT_EQ(apply(lengths, from.data(), 2), all);
    EXPECT_EQ(apply(lengths, from.data(), 16), all);
    for (std::size_t s = 0; s < lengths.size(); ++s)
    {
      const std::vector<float> alone = apply({ lengths[s] }, from.data() + offsets[s] * inputs, 1);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + offsets[s] * outputs))
        << "sequence " << s << " of " << inputs << " inputs";
    }
  }
}

/// A matrix of random bits, in rows of a type, and the same matrix as floats.
struct Widened
{
  std::vector<std::byte> bytes;
  std::vector<float> floats;
  LinearTensors stored;
  LinearTensors plain;

  Widened(DType dtype, WeightLayout layout, std::int64_t inputs, std::int64_t outputs)
    : bytes(ToIndex(inputs * outputs) / BlockElements(dtype) * BlockBytes(dtype))
    , floats(inputs * outputs)
  {
    std::mt19937 generator(7);
    for (std::byte& byte : this->bytes)
    {
      byte = static_cast<std::byte>(generator() & 0x3BU); // no number of any type is infinite
    }
    const bool isTransposed = layout == WeightLayout::OutputInput;
    const Shape shape = isTransposed ? Shape{ outputs, inputs } : Shape{ inputs, outputs };
    this->stored = { { dtype, shape, this->bytes.data() }, {}, layout, inputs, outputs, 0, 4 };
    this->Update();
  }

  void Interleave(std::int64_t rows)
  {
    this->stored.weight.interleavedRows = rows;
    this->Update();
  }

  void Update()
  {
    this->stored.weight.ToFloat(0, this->floats.size(), this->floats.data());
    this->plain = this->stored;
    this->plain.weight = { DType::F32, this->stored.weight.shape,
      reinterpret_cast<const std::byte*>(this->floats.data()) };
  }
};

std::vector<float> Product(const LinearTensors& tensors, const std::vector<std::int64_t>& lengths,
  const std::vector<float>& from, int threads)
{
  std::vector<float> to(SequenceOffsets(lengths).back() * tensors.outputs);
  ApplyLinear(
    Linear(tensors), SequenceOffsets(lengths).back(), from.data(), to.data(), {}, threads);
  return to;
}

void ExpectEqualProducts(const Widened& weights)
{
  std::mt19937 generator(8);
  std::normal_distribution<float> normal;
  for (const std::vector<std::int64_t>& lengths :
    { std::vector<std::int64_t>{ 1 }, { 4 }, { 13, 5, 40 }, { 192, 3, 500, 47, 1 } })
  {
    std::vector<float> from(SequenceOffsets(lengths).back() * weights.stored.inputs);
    std::generate(from.begin(), from.end(), [&] { return normal(generator); });
    const std::vector<float> expected = Product(weights.plain, lengths, from, 1);
    EXPECT_TRUE(std::all_of(
      expected.begin(), expected.end(), [](float number) { return std::isfinite(number); }));
    for (const int threads : { 1, 2, 16 })
    {
      EXPECT_EQ(Product(weights.stored, lengths, from, threads), expected)
        << testing::PrintToString(lengths) << ", threads " << threads;
    }
  }
}

const std::vector<DType> BlockTypes = { DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1,
  DType::Q8_0, DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_NL,
  DType::IQ4_XS, DType::MXFP4 };
const std::vector<DType> PlainTypes = { DType::F64, DType::F16, DType::BF16 };

// Blocks of weights are widened to the floats of the whole matrix.
TEST(ApplyLinear, BytesAreThoseOfWidenedWeights)
{
  std::vector<DType> types = BlockTypes;
  types.insert(types.end(), PlainTypes.begin(), PlainTypes.end());
  for (const DType dtype : types)
  {
    SCOPED_TRACE(Name(dtype));
    Widened weights(dtype, WeightLayout::OutputInput, 512, 300);
    ExpectEqualProducts(weights);
    weights.Interleave(100);
    ExpectEqualProducts(weights);
  }
  for (const DType dtype : PlainTypes)
  {
    SCOPED_TRACE(Name(dtype));
    ExpectEqualProducts(Widened(dtype, WeightLayout::InputOutput, 512, 300));
  }
}

/// The largest error of the products of rows, by the sum of the sizes of their terms.
double LargestError(const Widened& weights, std::int64_t rows)
{
  const auto inputs = static_cast<std::size_t>(weights.stored.inputs);
  const auto outputs = static_cast<std::size_t>(weights.stored.outputs);
  const std::vector<double> numbers = DoubleNumbers(ToIndex(rows) * inputs, 9);
  const std::vector<float> from(numbers.begin(), numbers.end());
  const std::vector<float> found = Product(weights.stored, { rows }, from, 2);
  const bool isTransposed = weights.stored.layout == WeightLayout::OutputInput;
  double largest = 0;
  for (std::size_t place = 0; place < found.size(); ++place)
  {
    double expected = 0;
    double sizes = 0;
    for (std::size_t i = 0; i < inputs; ++i)
    {
      const std::size_t output = place % outputs;
      const double term =
        numbers[place / outputs * inputs + i] *
        weights.stored.weight.At(isTransposed ? output * inputs + i : i * outputs + output);
      expected += term;
      sizes += std::abs(term);
    }
    const double error = std::abs(static_cast<double>(found[place]) - expected);
    const double scaled = error == 0 ? 0 : error / sizes;
    largest = scaled <= largest ? largest : scaled; // not with std::max, which would lose NaN
  }
  return largest;
}

// Of few rows, which are multiplied without packing, and of many, in double precision.
TEST(ApplyLinear, ProductsAreThoseOfTheNumbersOfAnyType)
{
  std::vector<DType> types = BlockTypes;
  types.insert(types.end(), PlainTypes.begin(), PlainTypes.end());
  types.push_back(DType::F32);
  for (const DType dtype : types)
  {
    for (const std::int64_t outputs : { 5, 70 })
    {
      Widened weights(dtype, WeightLayout::OutputInput, 1536, outputs); // more than a tile
      weights.Interleave(outputs == 70 ? 14 : 0);
      for (const std::int64_t rows : { 1, 2, 3, 4, 5 })
      {
        EXPECT_LE(LargestError(weights, rows), 1536 * 0x1p-24)
          << Name(dtype) << ", " << rows << " rows";
      }
      if (!IsBlock(dtype))
      {
        const Widened other(dtype, WeightLayout::InputOutput, 99, outputs);
        EXPECT_LE(LargestError(other, 3), 99 * 0x1p-24) << Name(dtype);
      }
    }
  }
}

TEST(Linear, PartsOfStoredWeightsAreFloats)
{
  Widened weights(DType::Q8_0, WeightLayout::OutputInput, 64, 40);
  weights.Interleave(8);
  const Linear linear(weights.stored);
  EXPECT_FALSE(linear.Block(3, 5).IsInPlace());
  const MatrixBlock part = linear.Part(3, 5);
  const MatrixBlock expected = Linear(weights.plain).Part(3, 5);
  EXPECT_EQ(part.stride, expected.stride);
  EXPECT_TRUE(part.transposed);
  EXPECT_TRUE(std::equal(part.data, part.data + 35 * 64 - 3, expected.data));
  EXPECT_EQ(linear.Part(0, 0).data + 5 * 64 + 3, part.data) << "it is widened once";

  std::vector<float> memory(4 * 64);
  const MatrixBlock block = FloatsOf(linear.Head(2), 64, 4, memory.data()); // outputs 8 to 11
  EXPECT_TRUE(block.transposed);
  EXPECT_EQ(block.stride, 64);
  EXPECT_TRUE(std::equal(block.data, block.data + 4 * 64, weights.floats.data() + 8 * 64));
}

TEST(Linear, BlocksOfHeadsAreFloats)
{
  Widened weights(DType::F16, WeightLayout::HeadInputOutput, 64, 40); // 10 heads [64, 4]
  const Linear linear(weights.stored);
  std::vector<float> memory(4 * 64);
  const MatrixBlock block = FloatsOf(linear.Head(7), 64, 4, memory.data());
  EXPECT_FALSE(block.transposed);
  EXPECT_EQ(block.stride, 4);
  EXPECT_TRUE(std::equal(block.data, block.data + 64 * 4, weights.floats.data() + 7 * 64 * 4));
  const Linear plain(weights.plain);
  EXPECT_EQ(FloatsOf(plain.Head(8), 64, 4, nullptr).data, weights.floats.data() + 8 * 64 * 4)
    << "floats stay where they are";
}

TEST(Linear, HeadsAreParts)
{
  const Stored stored(WeightLayout::OutputInput);
  const Linear linear(stored.tensors);
  const MatrixBlock head = linear.Head(4).matrix; // outputs 2 + 4 * 3 and on
  ASSERT_TRUE(head.transposed);
  EXPECT_EQ(head.data[head.stride * 1 + 5], static_cast<float>(stored.values[5 * 300 + 15]));
  EXPECT_EQ(linear.HeadBias(4), linear.Bias(14));
  EXPECT_EQ(*linear.Bias(14), static_cast<float>(stored.biases[14]));
  constexpr std::uint64_t block = Stored::Inputs * BlockColumns * sizeof(float); // packed
  EXPECT_EQ(WidenedBytes(stored.tensors, 2), 2 * block);

  LinearTensors heads = stored.tensors; // [50 heads, 6, 2] of the same numbers
  heads.layout = WeightLayout::HeadInputOutput;
  heads.headFirst = 0;
  heads.headStep = 2;
  const Linear apart(heads);
  const MatrixBlock seventh = apart.Head(7).matrix;
  EXPECT_FALSE(seventh.transposed);
  EXPECT_EQ(seventh.stride, 2);
  const auto* numbers = reinterpret_cast<const float*>(stored.weight.bytes.data());
  EXPECT_EQ(seventh.data - apart.Head(0).matrix.data, 7 * 6 * 2);
  EXPECT_EQ(seventh.data[3], numbers[7 * 12 + 3]);
}

TEST(PackedSequences, LieOneBehindTheOther)
{
  const PackedSequences all({ 3, 600, 500, 2, 2000, 1 }, std::nullopt);
  EXPECT_THAT(all.offsets, ElementsAre(0, 3, 603, 1103, 1105, 3105, 3106));
  EXPECT_EQ(all.Length(2), 500);
  EXPECT_EQ(all.Rows(), 3106);
  std::int64_t row = 0;
  std::size_t sequence = 0;
  for (const RowGroup& group : all.groups)
  {
    EXPECT_EQ(group.begin, row);
    EXPECT_EQ(group.offsets.front(), 0);
    EXPECT_EQ(group.offsets.back(), group.Rows());
    for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s, ++sequence)
    {
      EXPECT_EQ(group.begin + group.offsets[s], all.offsets[sequence]);
      for (std::int64_t i = group.offsets[s]; i < group.offsets[s + 1]; ++i)
      {
        EXPECT_EQ(group.positions[i], i - group.offsets[s]);
      }
    }
    row = group.end;
  }
  EXPECT_EQ(row, 3106);
  EXPECT_EQ(sequence, 6U);
  EXPECT_EQ(all.LargestGroup(), 2000) << "a long sequence runs alone";
}

TEST(PackedSequences, ARangeIsRunAlone)
{
  const PackedSequences part({ 3, 5, 7 }, SequenceRange{ 1, 2 });
  EXPECT_EQ(part.FirstRow(), 3);
  EXPECT_EQ(part.EndRow(), 8);
  ASSERT_EQ(part.groups.size(), 1U);
  EXPECT_EQ(part.groups[0].begin, 3);
  const PackedSequences none({ 3, 5, 7 }, SequenceRange{ 2, 2 });
  EXPECT_EQ(none.Rows(), 0);
  EXPECT_TRUE(none.groups.empty());
  EXPECT_EQ(none.LargestGroup(), 0);
  EXPECT_THAT(MessageOf<OptionError>([] { PackedSequences({ 3, 5, 7 }, SequenceRange{ 1, 4 }); }),
    testing::HasSubstr("a range of the 3 sequences, found 1 to 4"));
  EXPECT_THROW(PackedSequences({ 3 }, SequenceRange{ -1, 1 }), OptionError);
  EXPECT_THROW(PackedSequences({ 3 }, SequenceRange{ 1, 0 }), OptionError);
}

}
