#include "Embedding/JointVectors.h"

#include "Base/Error.h"
#include "EmbeddingOracle.h"
#include "ErrorMessage.h"
#include "TranslatedRecording.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

constexpr double VectorTolerance = 1e-6; ///< vectors are floats

SharedMatrix MatrixOf(std::int64_t columns, const std::vector<float>& values)
{
  SharedMatrix matrix =
    SharedMatrix::Zero(static_cast<std::int64_t>(values.size()) / columns, columns);
  std::copy(values.begin(), values.end(), matrix.values.get());
  return matrix;
}

const JointRows All = { { 0, 1, 2 }, { 0, 1, 2 } };

/// Two sequences of 2 and 1 tokens, one head in layer 3.
Recording Small()
{
  Recording recording;
  recording.layerCount = 4;
  recording.sequenceOffsets = { 0, 2, 3 };
  recording.tokens.sequence = { 0, 0, 1 };
  recording.tokens.position = { 0, 1, 0 };
  RecordedHead head;
  head.query = MatrixOf(2, { 3, 4, 0, 2, 6, 0 });
  head.key = MatrixOf(2, { 1, 0, 0, 1, 2, 2 });
  recording.layers.push_back({ 3, 1, { head } });
  return recording;
}

using JointVectorsOfEmbedding = OfEmbedding;

TEST_P(JointVectorsOfEmbedding, JointVectorsAreThoseOfTheOracle)
{
  this->ForHeads(
    [&](std::int64_t layer, std::int64_t head, const std::string& prefix)
    {
      JointVectors joint = JoinQueriesAndKeys(this->Record, layer, head, this->Rows, true);
      ExpectClose("shift", joint.shift, this->Expected.Values(prefix + "shift"), VectorTolerance);
      ExpectClose("joint", joint.values, this->Expected.Values(prefix + "joint"), VectorTolerance);
      if (this->Expected.Has(prefix + "norm"))
      {
        ExpectClose("norm", joint.norms, this->Expected.Values(prefix + "norm"), VectorTolerance);
        const double scale = NormScale(joint);
        EXPECT_NEAR(scale, this->Expected.Value(prefix + "norm_scale"), VectorTolerance);
        ScaleJointVectors(scale, joint);
        ExpectClose("joint_norm_scaled", joint.values,
          this->Expected.Values(prefix + "joint_norm_scaled"), VectorTolerance);
      }
    });
}

INSTANTIATE_TEST_SUITE_P(All, JointVectorsOfEmbedding,
  testing::Values("gpt2", "bert", "vit", "spiral"), OfEmbedding::Name);

TEST(JointVectors, TranslationGivesQueriesAndKeysTheSameMean)
{
  const Recording recording = Small();
  const JointVectors plain = JoinQueriesAndKeys(recording, 3, 0, All, false);
  EXPECT_THAT(plain.values, ElementsAre(3, 4, 0, 2, 6, 0, 1, 0, 0, 1, 2, 2));
  EXPECT_THAT(plain.shift, ElementsAre(0, 0));
  EXPECT_THAT(plain.norms, ElementsAre(5, 2, 6, 1, 1, std::sqrt(8.)));
  EXPECT_DOUBLE_EQ(plain.QueryNorm(), 13. / 3);
  EXPECT_DOUBLE_EQ(plain.KeyNorm(), (2 + std::sqrt(8.)) / 3);

  const JointVectors joint = JoinQueriesAndKeys(recording, 3, 0, All, true);
  EXPECT_THAT(joint.shift, ElementsAre(2, 1));
  EXPECT_THAT(joint.values, ElementsAre(3, 4, 0, 2, 6, 0, 3, 1, 2, 2, 4, 3));
  EXPECT_EQ(joint.norms, plain.norms);
}

TEST(JointVectors, TokensAreThoseOfASequenceOrASample)
{
  Recording recording = Small();
  EXPECT_THAT(ChooseTokens(recording, {}).All(), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ChooseTokens(recording, { 0 }).All(), ElementsAre(0, 1, 0, 1));
  recording.tokens.sequence.assign(1000, 0);
  recording.sequenceOffsets = { 0, 1000 };
  const auto choose = [&](const TokenChoice& choice)
  {
    const JointRows chosen = ChooseTokens(recording, choice);
    EXPECT_EQ(chosen.queries, chosen.keys);
    return chosen.queries;
  };
  const std::vector<std::int64_t> rows = choose({ -1, 100, 7 });
  EXPECT_EQ(rows.size(), 100);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(std::set<std::int64_t>(rows.begin(), rows.end()).size(), 100);
  EXPECT_EQ(rows, choose({ -1, 100, 7 }));
  EXPECT_NE(rows, choose({ -1, 100, 8 }));
  EXPECT_EQ(choose({ -1, 2000, 7 }).size(), 1000);
}

/// Sources of 4 and 2 tokens, targets of 3 and 5.
TEST(JointVectors, OfCrossAttentionAreOfTwoTexts)
{
  const Recording cross = *TranslatedRecording().cross;
  EXPECT_THAT(ChooseTokens(cross, {}).queries, ElementsAre(4, 5, 6, 9, 10, 11, 12, 13));
  EXPECT_THAT(ChooseTokens(cross, {}).keys, ElementsAre(0, 1, 2, 3, 7, 8));
  const JointRows rows = ChooseTokens(cross, { 1 });
  EXPECT_THAT(rows.queries, ElementsAre(9, 10, 11, 12, 13));
  EXPECT_THAT(rows.keys, ElementsAre(7, 8));

  const RecordedHead& head = cross.layers[2].heads[1];
  const JointVectors joint = JoinQueriesAndKeys(cross, 2, 1, rows, true);
  using Vectors = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, 5, Eigen::RowMajor>>;
  const Vectors queries(head.query.Row(9), 5, 5);
  const Vectors keys(head.key.Row(7), 2, 5);
  const Eigen::RowVectorXf shift = queries.colwise().mean() - keys.colwise().mean();
  ASSERT_EQ(joint.values.size(), 7 * 5);
  const Vectors found(joint.values.data(), 7, 5);
  EXPECT_EQ(found.topRows(5), queries);
  EXPECT_LT(
    (found.bottomRows(2) - (keys.rowwise() + shift)).cwiseAbs().maxCoeff(), VectorTolerance);
  for (std::int32_t i = 0; i < 5; ++i)
  {
    EXPECT_NEAR(joint.shift[i], shift[i], VectorTolerance);
    EXPECT_NEAR(joint.norms[i], queries.row(i).norm(), VectorTolerance);
  }
  EXPECT_NEAR(joint.QueryNorm(), queries.rowwise().norm().mean(), VectorTolerance);
  EXPECT_NEAR(joint.KeyNorm(), keys.rowwise().norm().mean(), VectorTolerance);

  const JointRows sample = ChooseTokens(cross, { -1, 3, 1 });
  EXPECT_EQ(sample.queries.size(), 3);
  EXPECT_EQ(sample.keys.size(), 3);
  const auto isOfSource = [](std::int64_t row) { return row < 4 || row == 7 || row == 8; };
  EXPECT_TRUE(std::none_of(sample.queries.begin(), sample.queries.end(), isOfSource));
  EXPECT_TRUE(std::all_of(sample.keys.begin(), sample.keys.end(), isOfSource));
  EXPECT_THAT(MessageOf<OptionError>([&] { ChooseTokens(cross, { 0, 1 }); }),
    HasSubstr("found 1 of the target and 1 of the source"));
}

TEST(JointVectors, NamesWhatItCannotTake)
{
  Recording recording = Small();
  const auto choose = [&](const TokenChoice& choice)
  { return MessageOf<OptionError>([&]() { ChooseTokens(recording, choice); }); };
  EXPECT_THAT(choose({ 2 }), HasSubstr("0 to 1, or -1 for all, found 2"));
  EXPECT_THAT(choose({ 1 }), HasSubstr("at least 2 tokens, found 1"));
  EXPECT_THAT(choose({ -1, 1 }), HasSubstr("at least 2 tokens, found 1"));
  EXPECT_THAT(choose({ -1, -3 }), HasSubstr("sample"));

  const auto join = [&](std::int64_t layer, std::int64_t head)
  { return MessageOf<Error>([&]() { JoinQueriesAndKeys(recording, layer, head, All, true); }); };
  EXPECT_THAT(join(0, 0), HasSubstr("layer 0 is not in the recording, which has layers 3"));
  EXPECT_THAT(join(3, 1), HasSubstr("a head from 0 to 0, found 1"));
  RecordedHead& head = recording.layers[0].heads[0];
  head.key.Row(1)[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(join(3, 0), HasSubstr("layer 3, head 0, keys of token 1: expected finite"));
  head = Small().layers[0].heads[0];
  head.query = MatrixOf(2, { 1, 2, 1, 2, 1, 2 });
  EXPECT_THAT(join(3, 0), HasSubstr("layer 3, head 0, queries: expected at least two that differ"));
  head = {};
  EXPECT_THAT(join(3, 0), HasSubstr("no queries and keys"));
}

}
