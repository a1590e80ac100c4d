#include "Circuits/QueryKeyContrast.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Recording/RecordedAttention.h"
#include "TestName.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"
#include "TranslatedRecording.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Whether a pair of tokens of a sequence, by their rows, is in the set.
using IsInSet = std::function<bool(std::int64_t query, std::int64_t key)>;

/// Sums over all pairs, one by one.
struct BruteForce
{
  DoubleMatrix difference;
  std::int64_t pairs = 0;
  std::int64_t others = 0;
  double scores = 0; ///< the difference of the mean scores

  BruteForce(const Recording& recording, const HeadPlace& place, const IsInSet& isInSet,
    const QueryKeyContrastOptions& options)
  {
    const RecordedHead& head = FindHead(recording, place.layer, place.head);
    const RecordedLayer& layer = FindLayer(recording, place.layer);
    const auto rowOf = [](const SharedMatrix& matrix, std::int64_t row) -> Eigen::VectorXd
    { return Eigen::Map<const Eigen::VectorXf>(matrix.Row(row), matrix.columns).cast<double>(); };
    const auto patchWindow = [&](std::int64_t row)
    {
      return std::pair(recording.tokens.row[row] / layer.patchWindow,
        recording.tokens.column[row] / layer.patchWindow);
    };
    const auto isPair = [&](std::int64_t s, std::int64_t i, std::int64_t j)
    {
      const std::int64_t begin = recording.sequenceOffsets[s];
      const bool isApart =
        recording.mask == AttentionMask::Cross &&
        (i - begin < recording.sourceLengths[s] || j - begin >= recording.sourceLengths[s]);
      return !((recording.mask == AttentionMask::Causal && j > i) || isApart ||
               (layer.window > 0 && std::abs(i - j) >= layer.window) ||
               (layer.chunk > 0 && (i - begin) / layer.chunk != (j - begin) / layer.chunk) ||
               (layer.patchWindow > 0 && patchWindow(i) != patchWindow(j)) ||
               (i == j && !options.includesSelf));
    };
    DoubleMatrix inSet = DoubleMatrix::Zero(head.query.columns, head.query.columns);
    DoubleMatrix rest = inSet;
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      const std::int64_t begin = recording.sequenceOffsets[s];
      const std::int64_t end = begin + recording.SequenceLength(s);
      for (std::int64_t i = begin; i < end && (options.sequence < 0 || s == options.sequence); ++i)
      {
        for (std::int64_t j = begin; j < end; ++j)
        {
          if (isPair(s, i, j))
          {
            const bool isIn = isInSet(i, j);
            ++(isIn ? this->pairs : this->others);
            (isIn ? inSet : rest) += rowOf(head.query, i) * rowOf(head.key, j).transpose();
          }
        }
      }
    }
    this->difference =
      inSet / static_cast<double>(this->pairs) - rest / static_cast<double>(this->others);
    this->scores = layer.scoreScale * this->difference.trace();
  }
};

void ExpectEqual(
  const Recording& recording, const IsInSet& isInSet, const QueryKeyContrastOptions& options)
{
  const QueryKeyContrast found = FindQueryKeyContrast(recording, options);
  ASSERT_FALSE(found.heads.empty());
  for (const HeadContrast& head : found.heads)
  {
    const BruteForce expected(recording, head.place, isInSet, options);
    EXPECT_EQ(found.pairs, expected.pairs);
    EXPECT_EQ(found.others, expected.others);
    const double scale = expected.difference.cwiseAbs().maxCoeff();
    EXPECT_LE((head.difference - expected.difference).cwiseAbs().maxCoeff(), 1e-10 * scale);
    EXPECT_NEAR(head.scoreDifference, expected.scores, 1e-10 * scale);
    // What the singular vectors are by definition.
    const DoubleMatrix back =
      head.queryDirections *
      Eigen::Map<const Eigen::VectorXd>(head.singularValues.data(), head.difference.rows())
        .asDiagonal() *
      head.keyDirections.transpose();
    EXPECT_LE((back - expected.difference).cwiseAbs().maxCoeff(), 1e-10 * scale);
    const DoubleMatrix unit = head.queryDirections.transpose() * head.queryDirections;
    EXPECT_LE(
      (unit - DoubleMatrix::Identity(unit.rows(), unit.cols())).cwiseAbs().maxCoeff(), 1e-12);
    for (Eigen::Index c = 0; c < unit.cols(); ++c)
    {
      Eigen::Index largest = 0;
      head.queryDirections.col(c).cwiseAbs().maxCoeff(&largest);
      EXPECT_GT(head.queryDirections(largest, c), 0);
    }
  }
}

/// Of pairs of tokens that have the same number.
void ExpectEqualOfGroups(const Recording& recording, const std::vector<std::int64_t>& groups,
  bool includesSelf, QueryKeyContrastOptions options = {})
{
  options.group = groups;
  options.includesSelf = includesSelf;
  ExpectEqual(
    recording, [&](std::int64_t i, std::int64_t j) { return groups[i] == groups[j]; }, options);
}

void ExpectEqualAtDistance(const Recording& recording, std::int64_t distance, bool includesSelf,
  QueryKeyContrastOptions options = {})
{
  options.distance = distance;
  options.includesSelf = includesSelf;
  ExpectEqual(
    recording, [=](std::int64_t i, std::int64_t j) { return std::abs(i - j) == distance; },
    options);
}

class OfPairs : public testing::TestWithParam<std::string>
{
protected:
  Recording Recorded = RecordTransformer(Transformer::Read(TransformerOracle::Folder(GetParam())),
    TransformerOracle(GetParam()).Input(), {});

  /// A number of each token, of which several have the same.
  std::vector<std::int64_t> Groups() const
  {
    std::vector<std::int64_t> groups = this->Recorded.tokens.id;
    std::for_each(groups.begin(), groups.end(), [](std::int64_t& id) { id %= 4; });
    return groups;
  }
};

/// Causal and rotated, and without a causal mask.
TEST_P(OfPairs, OfEqualValuesIsTheSumOverPairs)
{
  const std::vector<std::int64_t> groups = this->Groups();
  for (const bool includesSelf : { false, true })
  {
    ExpectEqualOfGroups(this->Recorded, groups, includesSelf);
  }
}

TEST_P(OfPairs, AtADistanceIsTheSumOverPairs)
{
  for (const std::int64_t distance : { 1, 3, 0 })
  {
    ExpectEqualAtDistance(this->Recorded, distance, distance == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OfPairs, testing::Values("gpt2", "llama", "bert"),
  [](const auto& model) { return TestName(model.param); });

/// More queries than are summed at a time, and sequences of different length.
TEST(QueryKeyContrast, OfLongSequences)
{
  const TinyTransformer tiny;
  const Recording recording = RecordTransformer(tiny.Make(), TinyInput({ 300, 1, 17 }), {});
  QueryKeyContrastOptions options;
  options.layer = 1;
  ExpectEqualOfGroups(recording, recording.tokens.id, false, options);
  options.sequence = 2;
  options.head = 1;
  ExpectEqualOfGroups(recording, recording.tokens.id, false, options);
  options.group = recording.tokens.id;
  options.threads = 1;
  const HeadContrast one = FindQueryKeyContrast(recording, options).heads[0];
  options.threads = 3;
  options.head = -1;
  const HeadContrast three = FindQueryKeyContrast(recording, options).heads[1];
  EXPECT_EQ(one.difference, three.difference);
  EXPECT_EQ(one.singularValues, three.singularValues);
}

/// Of each layer, the keys before its windows, outside them on both sides where there is no mask,
/// and those before its chunks are in no pair.
TEST(QueryKeyContrast, OfWindowsAndOfChunks)
{
  const TinyTransformer tiny;
  Recording recording = RecordTransformer(tiny.Make(), TinyInput({ 30, 1, 17 }), {});
  const auto expect = [&](std::int64_t RecordedLayer::* limit)
  {
    for (const std::int64_t tokens : { 2, 9, 100 })
    {
      for (RecordedLayer& layer : recording.layers)
      {
        layer.window = layer.chunk = 0;
        layer.*limit = tokens;
      }
      ExpectEqualOfGroups(recording, recording.tokens.id, true);
      ExpectEqualAtDistance(recording, 1, true);
    }
  };
  expect(&RecordedLayer::chunk);
  expect(&RecordedLayer::window);
  recording.layers[0].window = recording.layers[1].window = 3;
  QueryKeyContrastOptions options;
  options.includesSelf = true;
  options.distance = 3;
  EXPECT_THAT(MessageOf<OptionError>([&] { FindQueryKeyContrast(recording, options); }),
    HasSubstr("in the set"));
  recording.layers[0].window = 0; // the count of the layer that has the most
  options.distance = 1;
  options.layer = 0;
  const std::int64_t most = FindQueryKeyContrast(recording, options).others;
  options.layer = -1;
  EXPECT_EQ(FindQueryKeyContrast(recording, options).others, most);
  recording.mask = AttentionMask::Bidirectional;
  expect(&RecordedLayer::window);
}

/// Of an encoder of images, the keys in other windows of patches are in no pair: of layers with
/// windows of 2, and of one without.
TEST(QueryKeyContrast, OfWindowsOfPatches)
{
  const TinyTransformer tiny;
  Recording recording = RecordTransformer(tiny.Make(), TinyInput({ 30, 20 }), {});
  recording.mask = AttentionMask::Bidirectional;
  for (std::int32_t patch = 0; patch < 50; ++patch)
  {
    recording.tokens.row.push_back(patch % 30 / 5); // 6 and 4 rows of 5
    recording.tokens.column.push_back(patch % 5);
  }
  recording.layers.back().patchWindow = 2;
  for (const RecordedLayer& layer : recording.layers)
  {
    QueryKeyContrastOptions options;
    options.layer = layer.index;
    for (const bool includesSelf : { false, true })
    {
      ExpectEqualOfGroups(recording, recording.tokens.id, includesSelf, options);
      ExpectEqualAtDistance(recording, 1, includesSelf, options);
    }
  }
}

/// Queries are of the target and keys of the source.
TEST(QueryKeyContrast, OfCrossAttentionIsOverPairsOfTwoTexts)
{
  const Recording cross = *TranslatedRecording().cross;
  QueryKeyContrastOptions options;
  options.group = { 1, 2, 1, 3, 2, 1, 4, 5, 6, 6, 5, 5, 2, 3 };
  for (const bool includesSelf : { false, true })
  {
    ExpectEqualOfGroups(cross, options.group, includesSelf);
  }
  EXPECT_EQ(FindQueryKeyContrast(cross, options).pairs, 1 + 2 + 3); // 2, 1 1, 5 5 6
  EXPECT_EQ(FindQueryKeyContrast(cross, options).others, 3 * 4 + 5 * 2 - 6);
  options.sequence = 1;
  ExpectEqualOfGroups(cross, options.group, true, options);

  const QueryKeyContrast found = FindQueryKeyContrast(cross, options);
  const HeadContrast& head = found.heads[0];
  const std::vector<float> projected = ProjectOnContrast(cross, head, { 9, 13 }, { 7 });
  ASSERT_EQ(projected.size(), 3 * 3);
  double key = 0;
  for (Eigen::Index d = 0; d < 5; ++d)
  {
    key += cross.layers[0].heads[0].key.Row(7)[d] * head.keyDirections(d, 1);
  }
  EXPECT_NEAR(projected[6 + 1], key, 1e-6);

  options.group.clear();
  EXPECT_THAT(MessageOf<OptionError>([&] { FindQueryKeyContrast(cross, options); }),
    HasSubstr("pairs of equal values, found those at a distance"));
}

TEST(QueryKeyContrast, NamesWhatIsMissing)
{
  const TinyTransformer tiny;
  Recording recording = RecordTransformer(tiny.Make(), TinyInput({ 4 }), {});
  const auto message = [&](const QueryKeyContrastOptions& options)
  { return MessageOf<OptionError>([&] { FindQueryKeyContrast(recording, options); }); };
  QueryKeyContrastOptions options;
  options.group = { 1, 2, 3, 4 };
  EXPECT_THAT(message(options), HasSubstr("in the set"));
  options.group = { 1, 1, 1, 1 };
  EXPECT_THAT(message(options), HasSubstr("not in the set"));
  options.group = { 1, 1, 2, 1 };
  options.sequence = 1;
  EXPECT_THAT(message(options), HasSubstr("Sequence: expected a number from 0 to 0"));
  options.sequence = -1;
  options.layer = 2;
  EXPECT_THAT(message(options), HasSubstr("layer 2 is not in the recording"));
  options.layer = 0;
  options.head = 5;
  EXPECT_THAT(message(options), HasSubstr("5"));
  options.head = 0;
  *recording.layers[0].heads[0].key.Row(1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(MessageOf<ModelError>([&] { FindQueryKeyContrast(recording, options); }),
    HasSubstr("expected finite queries and keys"));
  recording.layers[0].heads[0].key = {};
  EXPECT_THAT(message(options), HasSubstr("queries and keys, which were not recorded"));
}

TEST(QueryKeyContrast, Stops)
{
  const TinyTransformer tiny;
  QueryKeyContrastOptions options;
  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(
    FindQueryKeyContrast(RecordTransformer(tiny.Make(), TinyInput({ 9 }), {}), options), Canceled);
}

}
