// Attention that files of recordings hold, beside queries and keys or alone.

#include "NumpyBytes.h"
#include "Recording/RecordingFile.h"
#include "RecordingArrays.h"
#include "TemporaryDirectory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

std::vector<double> SomeScores(std::size_t count)
{
  std::vector<double> scores(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    scores[i] = 0.25 * static_cast<double>(i * 7 % 13);
  }
  return scores;
}

TEST(RecordingFile, ReadsStackedAttention)
{
  const std::vector<double> scores = SomeScores(L * B * H * T * T);
  for (const bool causal : { true, false })
  {
    Tensors tensors;
    tensors["attention"] = Floats({ L, B, H, T, T }, SoftmaxRows(scores, causal));
    tensors["scores"] = Floats({ L, B, H, T, T }, scores);
    const RecordingContent content = Read(tensors);
    const Recording& recording = content.recording;
    EXPECT_EQ(recording.mask, causal ? AttentionMask::Causal : AttentionMask::Bidirectional);
    EXPECT_THAT(content.warnings, IsEmpty());
    ASSERT_THAT(recording.layers, SizeIs(L));
    const RecordedHead& head = recording.layers[1].heads[2];
    ASSERT_THAT(head.scores, SizeIs(B));
    EXPECT_FALSE(head.query.IsRecorded());
    // layer 1, sequence 1, head 2
    const std::size_t begin = ((1 * B + 1) * H + 2) * T * T;
    for (std::size_t i = 0; i < T * T; ++i)
    {
      EXPECT_EQ(ValuesOf(head.scores[1])[i], static_cast<float>(scores[begin + i]));
      EXPECT_EQ(
        ValuesOf(head.weights[1])[i], static_cast<float>(SoftmaxRows(scores, causal)[begin + i]));
    }
  }
}

TEST(RecordingFile, ANumpyFileIsAttention)
{
  std::vector<float> values(L * H * T * T, 0.25F);
  const TemporaryDirectory folder;
  const auto read = [&]
  {
    WriteBytes(folder / "a.npy", NpyFile(NpyHeader("<f4", "(2, 4, 3, 3)"), FloatBytes(values)));
    return ReadRecording(folder / "a.npy").recording;
  };
  EXPECT_THAT(read().layers.at(1).heads.at(3).weights, SizeIs(1));
  values[17] = -3;
  EXPECT_THAT(read().layers.at(1).heads.at(3).scores, SizeIs(1));
  EXPECT_THAT(read().layers.at(1).heads.at(3).weights, IsEmpty());
}

TEST(RecordingFile, MaskedScoresMayBeMinusInfinityOrVeryLow)
{
  for (const float masked : { -std::numeric_limits<float>::infinity(), -1e5F })
  {
    std::vector<double> scores;
    for (std::size_t i = 0; i < H * T * T; ++i)
    {
      const bool allowed = i % 3 <= i / 3 % 3;
      scores.push_back(allowed ? 1.0 : static_cast<double>(masked));
    }
    Tensors tensors;
    tensors["blocks.0.attn.hook_attn_scores"] = Floats({ H, T, T }, scores);
    const Recording recording = Read(tensors).recording;
    EXPECT_EQ(recording.mask, AttentionMask::Causal);
    EXPECT_EQ(recording.layers[0].heads[3].scores[0].Row(0)[2], masked);
  }
}

TEST(RecordingFile, AttentionIsKeptOnlyIfQueriesAndKeysDoNotGiveIt)
{
  const RecordingContent given = Read(WithAttention(false));
  EXPECT_FALSE(given.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(given.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
  const RecordingContent biased = Read(WithAttention(true));
  EXPECT_TRUE(biased.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(biased.warnings,
    ElementsAre(
      HasSubstr("the stored attention is shown, as queries and keys do not give it (layer "
                "0, head 0, sequence 0, query 2: ")));
  const RecordingContent explained = Read(WithAttention(true), { { "alibi_slopes", "[0.5]" } });
  EXPECT_FALSE(explained.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(explained.recording.alibiSlopes, ElementsAre(0.5));
  const RecordingContent scaled = Read(WithAttention(false), { { "score_scale", "2" } });
  EXPECT_TRUE(scaled.recording.layers[0].heads[0].HasAttention());
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<double> EntriesOf(const Matrix& matrix)
{
  return { matrix.data(), matrix.data() + matrix.size() };
}

/// Of numbers from -1 to 1, exact in single precision.
Matrix RandomMatrix(Eigen::Index rows, Eigen::Index columns, std::mt19937& generator)
{
  return Matrix::NullaryExpr(
    rows, columns, [&] { return static_cast<float>(generator() % 2001) / 1000 - 1; });
}

/// A recording of two sequences of 300 tokens and two heads, whose weights are all below 0.02 for
/// queries that see many keys; `change` may change the weights [sequence, head, query, key].
Tensors LongAttention(const std::function<void(std::vector<double>&)>& change)
{
  constexpr std::int64_t tokens = 300;
  std::mt19937 generator(5);
  const Matrix queries = RandomMatrix(2 * tokens, 2 * 2, generator);
  const Matrix keys = RandomMatrix(2 * tokens, 2 * 2, generator);
  std::vector<double> weights;
  for (const auto& [s, h] : { std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1) })
  {
    const Matrix products = queries.block(s * tokens, 2 * h, tokens, 2) *
                            keys.block(s * tokens, 2 * h, tokens, 2).transpose();
    Matrix rows = (products.array() / std::sqrt(2.0)).exp();
    rows.array().colwise() /= rows.array().rowwise().sum().eval();
    weights.insert(weights.end(), rows.data(), rows.data() + rows.size());
  }
  EXPECT_LT(*std::max_element(weights.begin(), weights.end()), 0.02);
  change(weights);
  Tensors tensors;
  tensors["blocks.0.attn.hook_q"] = Floats({ 2, tokens, 2, 2 }, EntriesOf(queries));
  tensors["blocks.0.attn.hook_k"] = Floats({ 2, tokens, 2, 2 }, EntriesOf(keys));
  tensors["blocks.0.attn.hook_pattern"] = Floats({ 2, 2, tokens, tokens }, weights);
  return tensors;
}

TEST(RecordingFile, AttentionOfLongSequencesIsComparedRelatively)
{
  constexpr std::size_t tokens = 300;
  // Head 1 of sequence 1, query 7.
  constexpr std::size_t row = ((1 * 2 + 1) * tokens + 7) * tokens;
  const RecordingContent other = Read(LongAttention(
    [](std::vector<double>& weights)
    {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(row);
      std::rotate(begin, begin + 1, begin + static_cast<std::ptrdiff_t>(tokens));
    }));
  EXPECT_TRUE(other.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(other.warnings,
    ElementsAre(
      HasSubstr("the stored attention is shown, as queries and keys do not give it (layer "
                "0, head 1, sequence 1, query 7: ")));
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr(" % of the attention lies on other keys")));
}

TEST(RecordingFile, AttentionInHalfPrecisionIsThatOfQueriesAndKeys)
{
  const auto rounded = [](auto half)
  {
    return [half](std::vector<double>& weights)
    {
      for (double& weight : weights)
      {
        weight =
          static_cast<double>(static_cast<float>(decltype(half)(static_cast<float>(weight))));
      }
    };
  };
  for (const Tensors& tensors :
    { LongAttention(rounded(Eigen::half())), LongAttention(rounded(Eigen::bfloat16())) })
  {
    const RecordingContent content = Read(tensors);
    EXPECT_FALSE(content.recording.layers[0].heads[1].HasAttention());
    EXPECT_THAT(
      content.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
  }
}

double Bfloat16(double value)
{
  return static_cast<double>(static_cast<float>(Eigen::bfloat16(static_cast<float>(value))));
}

/// Causal attention of a head of 64 dimensions on 128 tokens, all numbers rounded to BF16; the
/// largest score is `largest`. `change` may change the scores [query, key] before they are rounded.
/// Stores scores, or else weights.
Tensors LargeScores(double largest, bool scores, const std::function<void(Matrix&)>& change)
{
  constexpr std::int64_t tokens = 128;
  constexpr std::int64_t dimension = 64;
  std::mt19937 generator(3);
  Matrix queries = RandomMatrix(tokens, dimension, generator);
  Matrix keys = RandomMatrix(tokens, dimension, generator);
  const Matrix small = (queries * keys.transpose() / 8).triangularView<Eigen::Lower>();
  queries = (queries * largest / small.cwiseAbs().maxCoeff()).unaryExpr(&Bfloat16);
  keys = keys.unaryExpr(&Bfloat16).eval();
  Matrix stored = queries * keys.transpose() / 8;
  change(stored);
  stored = stored.unaryExpr(&Bfloat16).eval();
  for (std::int64_t query = 0; query < tokens; ++query)
  {
    auto seen = stored.row(query).head(query + 1).array();
    stored.row(query)
      .tail(tokens - query - 1)
      .setConstant(scores ? -std::numeric_limits<double>::infinity() : 0.0);
    if (!scores)
    {
      seen = (seen - seen.maxCoeff()).exp().eval();
      seen = (seen / seen.sum()).unaryExpr(&Bfloat16).eval();
    }
  }
  Tensors tensors;
  tensors["blocks.0.attn.hook_q"] = Floats({ 1, tokens, 1, dimension }, EntriesOf(queries));
  tensors["blocks.0.attn.hook_k"] = Floats({ 1, tokens, 1, dimension }, EntriesOf(keys));
  tensors[scores ? "blocks.0.attn.hook_attn_scores" : "blocks.0.attn.hook_pattern"] =
    Floats({ 1, 1, tokens, tokens }, EntriesOf(stored));
  return tensors;
}

TEST(RecordingFile, LargeScoresInHalfPrecisionAreThoseOfQueriesAndKeys)
{
  const auto scale = [](Matrix& scores) { scores *= 1.2; };
  const auto permute = [](Matrix& scores)
  {
    double* row = scores.row(100).data();
    std::rotate(row, row + 1, row + 101);
  };
  for (const double largest : { 32.0, 73.0 })
  {
    for (const bool scores : { true, false })
    {
      const RecordingContent given = Read(LargeScores(largest, scores, [](auto&) {}));
      EXPECT_FALSE(given.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(
        given.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
      const RecordingContent scaled = Read(LargeScores(largest, scores, scale));
      EXPECT_TRUE(scaled.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(scaled.warnings, ElementsAre(HasSubstr("queries and keys do not give it")));
      const RecordingContent permuted = Read(LargeScores(largest, scores, permute));
      EXPECT_TRUE(permuted.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(permuted.warnings,
        ElementsAre(HasSubstr("do not give it (layer 0, head 0, sequence 0, query 100: ")));
    }
  }
}

TEST(RecordingFile, ThreadsDoNotChangeWhatIsSaidOfAttention)
{
  const Tensors tensors = LongAttention(
    [](std::vector<double>& weights) { std::reverse(weights.begin(), weights.end()); });
  RecordingReadOptions options;
  options.threads = 1;
  const std::string alone = Read(tensors, {}, options).warnings.at(0);
  options.threads = 3;
  const std::size_t name = alone.find("the stored attention"); // behind the name of the file
  EXPECT_EQ(Read(tensors, {}, options).warnings.at(0).substr(name), alone.substr(name));
}

}
