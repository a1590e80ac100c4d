#pragma once

#include "Reports.h"
#include "Run/GenerateTokens.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// What holds for runs of every model.
namespace atlas::test
{

/// Expects that a run reports rising fractions up to 1, which are returned, and stops at each of
/// them if it is to.
template<class Run>
std::vector<double> ExpectReports(Progress& progress, const Run& run)
{
  std::vector<double> reports;
  progress = KeepReports(reports);
  run();
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1);
  for (std::size_t stop = 1; stop <= reports.size(); ++stop)
  {
    std::vector<double> some;
    progress = KeepReports(some, stop);
    EXPECT_THROW(run(), Canceled);
    EXPECT_EQ(some.size(), stop);
  }
  return reports;
}

/// Expects the rows of one run to be those of another from `first` on, to the byte.
inline void ExpectSameRows(const Recording& alone, const Recording& whole, std::int64_t first)
{
  const std::vector<SharedMatrix> a = TokenMatrices(alone);
  const std::vector<SharedMatrix> b = TokenMatrices(whole);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    ASSERT_EQ(a[i].columns, b[i].columns);
    EXPECT_TRUE(std::equal(a[i].Row(0), a[i].Row(a[i].rows), b[i].Row(first))) << i;
  }
}

/// Sequences that share products but nothing else, and any number of threads.
inline void ExpectSameAlone(const Transformer& model, const TransformerInput& input,
  RecordOptions options, const Recording& together)
{
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    SCOPED_TRACE("sequence " + std::to_string(s));
    TransformerInput one;
    one.tokens = { input.tokens[s] };
    if (!input.source.empty())
    {
      one.source = { input.source[s] };
    }
    options.threads = 1 + static_cast<int>(s) % 3;
    const Recording alone = RecordTransformer(model, one, options);
    const std::vector<const Recording*> parts = WithParts(together);
    for (std::size_t p = 0; p < parts.size(); ++p)
    {
      ExpectSameRows(*WithParts(alone)[p], *parts[p], parts[p]->sequenceOffsets[s]);
    }
  }
}

/// The rows of a range of sequences are those of a run of all; other rows are 0, so that the parts
/// of several processes add up.
inline void ExpectRangesAddUp(const Transformer& model, const TransformerInput& input,
  RecordOptions options, const Recording& whole)
{
  const std::uint64_t memory = EstimateMemory(model, input, options).working;
  for (const int count : { 2, 3, 12 })
  {
    SCOPED_TRACE(std::to_string(count) + " ranges");
    std::vector<Recording> ranges;
    for (const SequenceRange& range : SplitSequences(model, input, count))
    {
      options.sequences = range;
      EXPECT_LE(EstimateMemory(model, input, options).working, memory);
      ranges.push_back(RecordTransformer(model, input, options));
    }
    const std::vector<const Recording*> parts = WithParts(whole);
    for (std::size_t p = 0; p < parts.size(); ++p)
    {
      const std::vector<SharedMatrix> expected = TokenMatrices(*parts[p]);
      std::vector<SharedMatrix> sums;
      for (const SharedMatrix& matrix : expected)
      {
        sums.push_back(SharedMatrix::Zero(matrix.rows, matrix.columns));
      }
      for (const Recording& range : ranges)
      {
        const Recording& part = *WithParts(range).at(p);
        const std::vector<SharedMatrix> matrices = TokenMatrices(part);
        ASSERT_EQ(matrices.size(), sums.size());
        for (std::size_t i = 0; i < sums.size(); ++i)
        {
          std::transform(matrices[i].Row(0), matrices[i].Row(matrices[i].rows), sums[i].Row(0),
            sums[i].Row(0), std::plus<>());
        }
        EXPECT_EQ(part.tokens.id, parts[p]->tokens.id);
        EXPECT_EQ(part.tokens.row, parts[p]->tokens.row);
        EXPECT_EQ(part.tokens.picture, parts[p]->tokens.picture);
        ExpectEqual(part.pictures, parts[p]->pictures);
      }
      for (std::size_t i = 0; i < sums.size(); ++i)
      {
        ExpectEqual(sums[i], expected[i]);
      }
    }
  }
}

/// The estimated size of a recording is that of its matrices.
inline void ExpectMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const Recording recording = RecordTransformer(model, input, options);
  std::uint64_t bytes = 0;
  for (const Recording* part : WithParts(recording))
  {
    for (const SharedMatrix& matrix : TokenMatrices(*part))
    {
      bytes += matrix.Count() * sizeof(float);
    }
  }
  EXPECT_EQ(EstimateMemory(model, input, options).recording, bytes);
}

/// The norms of values are those of what they write, value W_O^h. Values of a group of heads are
/// shared, but not their norms.
inline void ExpectValueNorms(const Recording& part, const std::vector<LayerTensors>& layers,
  const LinearTensors LayerTensors::* output)
{
  for (const RecordedLayer& layer : part.layers)
  {
    const LinearTensors& out = layers[layer.index].*output;
    const bool isTransposed = out.layout == WeightLayout::OutputInput;
    const std::vector<double> weights = out.weight.ToDouble();
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      const SharedMatrix& value = layer.heads[h].value;
      std::vector<double> expected;
      for (std::int64_t row = 0; row < value.rows; ++row)
      {
        double square = 0;
        for (std::int64_t o = 0; o < out.outputs; ++o)
        {
          double sum = 0;
          for (std::int64_t c = 0; c < value.columns; ++c)
          {
            const std::int64_t i = static_cast<std::int64_t>(h) * value.columns + c;
            sum += static_cast<double>(value.Row(row)[c]) *
                   weights[isTransposed ? o * out.inputs + i : i * out.outputs + o];
          }
          square += sum * sum;
        }
        expected.push_back(std::sqrt(square));
      }
      ExpectClose("value norms", Rows(layer.heads[h].valueNorm, 0, value.rows), expected, 1e-5);
    }
  }
}

/// Greedy tokens have the largest logits, but those of pictures, in runs of the whole text as it
/// grows, without kept keys.
inline void ExpectGreedy(const Transformer& model, TransformerInput input, std::int64_t count)
{
  GenerationOptions generation;
  generation.count = count;
  const std::vector<std::vector<std::int64_t>> found = GenerateTokens(model, input, generation);
  generation.threads = 3;
  EXPECT_EQ(GenerateTokens(model, input, generation), found);
  ASSERT_EQ(found.size(), input.tokens.size());
  RecordOptions options;
  options.queriesAndKeys = false;
  options.values = false;
  options.logits = true;
  const VisionConfig* vision = model.GetConfig().vision.get();
  for (const std::vector<std::int64_t>& tokens : input.tokens)
  {
    input.prompts.push_back(static_cast<std::int64_t>(tokens.size()));
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    const Recording run = RecordTransformer(model, input, options);
    for (std::size_t s = 0; s < found.size(); ++s)
    {
      ASSERT_EQ(static_cast<std::int64_t>(found[s].size()), count);
      const float* row = run.logits.Row(run.sequenceOffsets[s + 1] - 1);
      std::vector<float> logits(row, row + run.logits.columns);
      for (std::int64_t token = 0; vision != nullptr && token < run.logits.columns; ++token)
      {
        const bool isOfPicture = token == vision->imageToken || token == vision->videoToken;
        logits[token] = isOfPicture ? -HUGE_VALF : logits[token];
      }
      EXPECT_NEAR(logits[found[s][i]], *std::max_element(logits.begin(), logits.end()), 2e-4)
        << "after " << input.tokens[s].size() << " tokens";
      input.tokens[s].push_back(found[s][i]);
    }
  }
}

}
