#include "AttentionOnly/AttentionEvaluation.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Gather.h"
#include "HandModel.h"
#include "Oracle.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using Eigen::Vector3d;
using testing::HasSubstr;

namespace
{

constexpr double Tolerance = 1e-9;

std::vector<std::int64_t> Classes(const std::vector<Evaluation>& evaluations)
{
  std::vector<std::int64_t> classes;
  for (const Evaluation& evaluation : evaluations)
  {
    classes.push_back(evaluation.predicted);
  }
  return classes;
}

class ReferenceAgainstOracle : public atlas::test::OracleTest
{
protected:
  std::vector<Evaluation> AtAngles(const EvaluationOptions& options) const
  {
    const ReferenceEvaluator evaluator(GetOracle().GetModel(), options);
    std::vector<Evaluation> evaluations;
    for (std::size_t p = 0; p < GetOracle().PointCount(); ++p)
    {
      evaluations.push_back(
        evaluator.AtAngles(GetOracle().GetTheta1()[p], GetOracle().GetTheta2()[p]));
    }
    return evaluations;
  }

  std::vector<Evaluation> AtPairs(const EvaluationOptions& options) const
  {
    const ReferenceEvaluator evaluator(GetOracle().GetModel(), options);
    const Eigen::Index n = GetOracle().GetModel().VocabularySize();
    std::vector<Evaluation> evaluations;
    for (Eigen::Index pair = 0; pair < n * n; ++pair)
    {
      evaluations.push_back(evaluator.AtTokens(pair / n, pair % n));
    }
    return evaluations;
  }

  void Expect(const std::string& quantity, const std::vector<double>& found) const
  {
    ExpectClose(quantity, found, GetOracle().Values(quantity), Tolerance);
  }

  void ExpectAccuracy(const std::string& quantity, const std::vector<Evaluation>& pairs) const
  {
    const TokenMatrix& target = GetOracle().GetModel().nextToken;
    double correct = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i)
    {
      correct += pairs[i].predicted == target.data()[i] ? 1 : 0;
    }
    Expect(quantity, { correct / static_cast<double>(pairs.size()) });
  }

  void ExpectResidual(const std::string& name, Residual residual) const
  {
    EvaluationOptions options;
    options.residual = residual;
    const std::vector<Evaluation> evaluations = AtAngles(options);
    Expect(name + ".output", Gather(evaluations, &Evaluation::output));
    Expect(name + ".logits", Gather(evaluations, &Evaluation::logits));
    Expect(name + ".probability", Gather(evaluations, &Evaluation::probability));
    EXPECT_EQ(Classes(evaluations), GetOracle().Integers(name + ".class"));
  }
};
INSTANTIATE_TEST_SUITE_P(
  , ReferenceAgainstOracle, atlas::test::OracleTest::Models(), atlas::test::OracleTest::Name);

TEST_P(ReferenceAgainstOracle, Heads)
{
  const std::vector<Evaluation> evaluations = AtAngles({});
  Expect("score", Gather(evaluations, &HeadEvaluation::score));
  Expect("attention", Gather(evaluations, &HeadEvaluation::attention));
  Expect("head_output", Gather(evaluations, &HeadEvaluation::output));
  Expect("mix.word", Gather(evaluations, &HeadEvaluation::wordMix));
  Expect("mix.position", Gather(evaluations, &HeadEvaluation::positionMix));
}

TEST_P(ReferenceAgainstOracle, HardHeads)
{
  EvaluationOptions options;
  options.pattern = Pattern::Hardmax;
  const std::vector<Evaluation> evaluations = AtAngles(options);
  Expect("mix.word.hard", Gather(evaluations, &HeadEvaluation::wordMix));
  Expect("mix.position.hard", Gather(evaluations, &HeadEvaluation::positionMix));
}

TEST_P(ReferenceAgainstOracle, Residuals)
{
  ExpectResidual("embedding_position", Residual::EmbeddingPosition);
  ExpectResidual("embedding", Residual::Embedding);
  ExpectResidual("none", Residual::None);
}

TEST_P(ReferenceAgainstOracle, TokenAngles)
{
  const ReferenceEvaluator evaluator(GetOracle().GetModel(), {});
  std::vector<double> angles;
  for (Eigen::Index t = 0; t < GetOracle().GetModel().VocabularySize(); ++t)
  {
    angles.push_back(AngleOfEmbedding(evaluator.TokenEmbedding(t), AngleMap::Isometric));
  }
  Expect("token_angle", angles);
}

TEST_P(ReferenceAgainstOracle, Pairs)
{
  const std::vector<Evaluation> pairs = AtPairs({});
  EXPECT_EQ(Classes(pairs), GetOracle().Integers("pair.class"));
  Expect("pair.output", Gather(pairs, &Evaluation::output));
  ExpectAccuracy("pair.accuracy", pairs);
}

TEST_P(ReferenceAgainstOracle, PairsWithRawEmbedding)
{
  EvaluationOptions options;
  options.residual = Residual::RawEmbedding;
  const std::vector<Evaluation> pairs = AtPairs(options);
  EXPECT_EQ(Classes(pairs), GetOracle().Integers("pair.raw_embedding.class"));
  ExpectAccuracy("pair.raw_embedding.accuracy", pairs);
}

TEST_P(ReferenceAgainstOracle, HeadsAlone)
{
  const std::size_t heads = GetOracle().HeadCount();
  for (std::size_t h = 0; h < heads; ++h)
  {
    EvaluationOptions options;
    options.residual = Residual::None;
    options.headWeights.assign(heads, 0);
    options.headWeights[h] = 1;
    EXPECT_EQ(
      Classes(AtPairs(options)), GetOracle().Integers("head_alone." + std::to_string(h) + ".class"))
      << "head " << h;
  }
}

/// A pair of tokens is the point of the torus at the tokens' angles.
TEST_P(ReferenceAgainstOracle, PairsLieAtTheirAngles)
{
  const ReferenceEvaluator evaluator(GetOracle().GetModel(), {});
  const std::vector<double> angle = GetOracle().Values("token_angle");
  std::vector<double> output;
  for (const double theta1 : angle)
  {
    for (const double theta2 : angle)
    {
      Append(output, evaluator.AtAngles(theta1, theta2).output);
    }
  }
  Expect("pair.output", output);
}

double Sigmoid(double score)
{
  return 1 / (1 + std::exp(-score));
}

void ExpectNear(const Vector3d& found, const Vector3d& expected)
{
  EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), 1e-14)
    << "found " << found.transpose() << ", expected " << expected.transpose();
}

/// The hand-made model at its angles: x_1 = s (3, 5, 4), x_2 = s (3, 4, 1), with s = 1/sqrt(2).
class ReferenceByHand : public testing::Test
{
protected:
  const HandModel Model;
  const double S = HandModel::S;
  const Vector3d E1 = S * Vector3d(1, 1, -2);
  const Vector3d E2 = S * Vector3d(-1, 2, -1);
  const Vector3d P1 = S * Vector3d(2, 4, 6);
  const Vector3d P2 = S * Vector3d(4, 2, 2);
  EvaluationOptions Options;

  Evaluation Evaluate() const
  {
    return ReferenceEvaluator(Model, Options).AtAngles(HandModel::Theta1, HandModel::Theta2);
  }

  /// By the formulas of the model: what of words and positions is kept in the pattern and in the
  /// values.
  void ExpectFormulas(const Evaluation& at) const
  {
    const auto kept = [](bool word, bool position, const Vector3d& e, const Vector3d& p) -> Vector3d
    { return (word ? 1 : 0) * e + (position ? 1 : 0) * p; };
    const Vector3d x1 = kept(Options.wordInPattern, Options.positionInPattern, E1, P1);
    const Vector3d x2 = kept(Options.wordInPattern, Options.positionInPattern, E2, P2);
    const double score = x2[0] * (x1[2] - x2[2]);
    for (std::size_t h = 0; h < 2; ++h)
    {
      const HeadEvaluation& head = at.heads[h];
      const double a = Sigmoid(h == 0 ? score : -score);
      EXPECT_NEAR(head.score, h == 0 ? score : -score, 1e-14);
      EXPECT_NEAR(head.attention, a, 1e-14);
      const Vector3d words = kept(Options.wordInValues, false, a * E1 + (1 - a) * E2, P1);
      const Vector3d positions = kept(false, Options.positionInValues, E1, a * P1 + (1 - a) * P2);
      ExpectNear(head.wordMix, words);
      ExpectNear(head.positionMix, positions);
      ExpectNear(head.mix, words + positions);
      ExpectNear(
        head.output, h == 0 ? head.mix[1] * Vector3d(1, 2, 3) : head.mix[2] * Vector3d(1, 0, -1));
    }
    ExpectNear(at.output, S * Vector3d(3, 4, 1) + at.heads[0].output + at.heads[1].output);
  }
};

TEST_F(ReferenceByHand, EveryAblation)
{
  // The scores, worked out: s^2 (3 (4 - 1), -(-2 + 1), 4 (6 - 2), 0).
  const std::array<double, 4> scores = { 0, 0.5, 8, 4.5 };
  for (unsigned kept = 0; kept < 16; ++kept)
  {
    SCOPED_TRACE("parts kept: " + std::to_string(kept));
    Options.wordInPattern = (kept & 1) != 0;
    Options.positionInPattern = (kept & 2) != 0;
    Options.wordInValues = (kept & 4) != 0;
    Options.positionInValues = (kept & 8) != 0;
    const Evaluation at = Evaluate();
    EXPECT_NEAR(at.heads[0].score, scores.at(kept % 4), 1e-14);
    ExpectFormulas(at);
  }
}

TEST_F(ReferenceByHand, HeadWeights)
{
  Options.headWeights = { -2, 0.5 };
  const double a = Sigmoid(4.5);
  const Vector3d first = S * (5 * a + 4 * (1 - a)) * Vector3d(1, 2, 3);
  const Vector3d second = S * (4 * (1 - a) + a) * Vector3d(1, 0, -1);
  const Evaluation at = Evaluate();
  ExpectNear(at.heads[0].output, first);
  ExpectNear(at.heads[1].output, second);
  ExpectNear(at.output, E2 + P2 - 2 * first + 0.5 * second);
}

TEST_F(ReferenceByHand, Residuals)
{
  Options.headWeights = { 0, 0 };
  ExpectNear(Evaluate().output, S * Vector3d(3, 4, 1));
  Options.residual = Residual::Embedding;
  ExpectNear(Evaluate().output, S * Vector3d(-1, 2, -1));
  Options.residual = Residual::None;
  ExpectNear(Evaluate().output, Vector3d::Zero());
  Options.residual = Residual::RawEmbedding;
  ExpectNear(ReferenceEvaluator(Model, Options).AtTokens(0, 1).output, Vector3d(-10, 20, -10));
}

TEST_F(ReferenceByHand, HardmaxAtScoreZeroIsZero)
{
  Options.pattern = Pattern::Hardmax;
  Options.wordInPattern = false;
  Options.positionInPattern = false;
  const Evaluation at = Evaluate();
  EXPECT_EQ(at.heads[0].score, 0);
  EXPECT_EQ(at.heads[0].attention, 0);
  EXPECT_EQ(at.heads[1].attention, 0);
}

TEST_F(ReferenceByHand, SkewedAnglesAreTheDefinition)
{
  Options.angles = AngleMap::Skewed;
  const Evaluation at = ReferenceEvaluator(Model, Options).AtAngles(HandModel::Pi / 4, 0);
  // e_1 = LN of a multiple of (1, 1, 0), e_2 = LN((1, 0, 0)).
  const Vector3d x1 = S * Vector3d(1, 1, -2) + P1;
  const Vector3d x2 = S * Vector3d(2, -1, -1) + P2;
  EXPECT_NEAR(at.heads[0].score, x2[0] * (x1[2] - x2[2]), 1e-14);
  ExpectNear(at.heads[0].mix, Sigmoid(at.heads[0].score) * (x1 - x2) + x2);
}

TEST_F(ReferenceByHand, TiesGoToTheLowestClass)
{
  for (Eigen::Index classes = 2; classes <= 40; ++classes)
  {
    HandModel tied;
    tied.unembedding = Eigen::RowVector3d(0.3, 0.7, 0.1).replicate(classes, 1);
    EXPECT_EQ(ReferenceEvaluator(tied, Options).AtAngles(0.3, 1).predicted, 0);
    tied.unembedding.row(0) *= -1;
    const Evaluation at = ReferenceEvaluator(tied, Options).AtAngles(0.3, 1);
    EXPECT_EQ(at.predicted, 1);
    const double other = std::exp(at.logits[0] - at.logits[1]);
    EXPECT_NEAR(at.probability, 1 / (static_cast<double>(classes - 1) + other), 1e-14);
  }
}

TEST_F(ReferenceByHand, LargeScoresStayFinite)
{
  HandModel large;
  large.heads[0].query *= 1e4;
  large.unembedding *= 1e4;
  const Evaluation at =
    ReferenceEvaluator(large, Options).AtAngles(HandModel::Theta1, HandModel::Theta2);
  EXPECT_EQ(at.heads[0].attention, 1);
  EXPECT_EQ(at.probability, 1);
}

TEST_F(ReferenceByHand, RefusesOptionsThatDoNotFit)
{
  Options.headWeights = { 1, 2, 3 };
  const std::string message = MessageOf<OptionError>([&] { CheckOptions(Model, Options); });
  EXPECT_THAT(message, HasSubstr("one weight for each of the 2 heads"));
  EXPECT_THAT(message, HasSubstr("found 3"));
  EXPECT_EQ(MessageOf<OptionError>([&] { ReferenceEvaluator(Model, Options); }), message);
  Options.headWeights = { 1, std::numeric_limits<double>::infinity() };
  EXPECT_THAT(MessageOf<OptionError>([&] { CheckOptions(Model, Options); }),
    HasSubstr("found inf for head 1"));
  Options = {};
  Options.residual = Residual::RawEmbedding;
  EXPECT_THAT(MessageOf<OptionError>([&] { Evaluate(); }), HasSubstr("token pairs only"));
}

}
