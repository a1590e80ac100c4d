#include "AttentionOnly/FieldEvaluation.h"

#include "Base/Error.h"
#include "Drawing/ClassPalette.h"
#include "ErrorMessage.h"
#include "EveryTarget.h"
#include "Field.h"
#include "Gather.h"
#include "HandModel.h"
#include "Oracle.h"
#include "RandomModel.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

constexpr double Tolerance = 2e-5;
/// Classes and hard attention are compared only where neither is within this margin of changing.
constexpr double Margin = 1e-4;

Field EvaluatePoints(const AttentionOnlyModel& model, const EvaluationOptions& options,
  const std::vector<double>& theta1, const std::vector<double>& theta2)
{
  const FieldEvaluator evaluator(model, options);
  Field field(model, theta1.size());
  evaluator.EvaluatePoints(theta1.data(), theta2.data(), 0, theta1.size(), field.Arrays());
  return field;
}

/// Where the largest logit is larger than all others by more than the margin.
std::vector<bool> HasClearClass(const std::vector<double>& logits, std::size_t points)
{
  const std::size_t classes = logits.size() / points;
  std::vector<bool> clear;
  for (std::size_t p = 0; p < points; ++p)
  {
    const auto begin = logits.begin() + static_cast<long>(p * classes);
    std::vector<double> sorted(begin, begin + static_cast<long>(classes));
    std::sort(sorted.rbegin(), sorted.rend());
    clear.push_back(classes == 1 || sorted[0] - sorted[1] > Margin);
  }
  return clear;
}

std::vector<double> Angles(std::size_t count, double first, double step)
{
  std::vector<double> angles;
  for (std::size_t i = 0; i < count; ++i)
  {
    angles.push_back(first + step * static_cast<double>(i));
  }
  return angles;
}

/// The reference at the points (theta1[i], theta2[i]).
std::vector<Evaluation> ReferenceAt(const AttentionOnlyModel& model,
  const EvaluationOptions& options, const std::vector<double>& theta1,
  const std::vector<double>& theta2)
{
  const ReferenceEvaluator reference(model, options);
  std::vector<Evaluation> expected;
  std::transform(theta1.begin(), theta1.end(), theta2.begin(), std::back_inserter(expected),
    [&](double t1, double t2) { return reference.AtAngles(t1, t2); });
  return expected;
}

/// Compares a field with evaluations of the reference at the same points.
class Comparison
{
public:
  Comparison(const std::vector<Evaluation>& expected, Pattern pattern)
    : Expected(expected)
    , IsHard(pattern == Pattern::Hardmax)
    , Clear(expected.size(), true)
  {
    for (std::size_t h = 0; h < expected.front().heads.size(); ++h)
    {
      const std::vector<bool> clear = this->ClearSign(h);
      std::transform(
        clear.begin(), clear.end(), this->Clear.begin(), this->Clear.begin(), std::logical_and<>());
    }
  }

  void ExpectEqual(const Field& field) const
  {
    for (std::size_t h = 0; h < field.Score.size(); ++h)
    {
      this->ExpectHead(field, h);
    }
    this->Expect("output", field.Output, &Evaluation::output);
    this->Expect("logits", field.Logits, &Evaluation::logits);
    this->Expect("probability", field.Probability, &Evaluation::probability);
    this->ExpectClasses(field);
  }

private:
  const std::vector<Evaluation>& Expected;
  bool IsHard;
  std::vector<bool> Clear; ///< where no head's hard attention depends on rounding

  /// Where the hard attention of a head does not depend on rounding.
  std::vector<bool> ClearSign(std::size_t head) const
  {
    std::vector<bool> clear;
    for (const Evaluation& at : this->Expected)
    {
      const double score = at.heads[head].score;
      clear.push_back(!this->IsHard || score == 0 || std::abs(score) > Margin);
    }
    return clear;
  }

  static void ExpectKept(const char* quantity, const GuardedArray<float>& found,
    const std::vector<double>& expected, const std::vector<bool>& keep)
  {
    const std::vector<float> all = found.Elements();
    const std::size_t components = all.size() / keep.size();
    std::vector<float> kept;
    std::vector<double> expectedThere;
    for (std::size_t i = 0; i < all.size(); ++i)
    {
      if (keep[i / components])
      {
        kept.push_back(all[i]);
        expectedThere.push_back(expected[i]);
      }
    }
    EXPECT_EQ(all.size(), expected.size()) << quantity;
    EXPECT_GT(kept.size(), expected.size() / 2) << quantity;
    EXPECT_LE(LargestError(kept, expectedThere), Tolerance) << quantity;
  }

  template<class Member>
  void Expect(
    const char* quantity, const GuardedArray<float>& found, Member Evaluation::* member) const
  {
    ExpectKept(quantity, found, Gather(this->Expected, member), this->Clear);
  }

  void ExpectHead(const Field& field, std::size_t h) const
  {
    const std::vector<bool> all(this->Expected.size(), true);
    const std::vector<bool> clear = this->ClearSign(h);
    const auto expect = [&](const char* quantity, const Field::HeadArrays& found, auto member,
                          const std::vector<bool>& keep)
    { ExpectKept(quantity, found[h], Gather(this->Expected, member, h, h + 1), keep); };
    expect("score", field.Score, &HeadEvaluation::score, all);
    expect("attention", field.Attention, &HeadEvaluation::attention, clear);
    expect("word mix", field.WordMix, &HeadEvaluation::wordMix, clear);
    expect("position mix", field.PositionMix, &HeadEvaluation::positionMix, clear);
    expect("mix", field.Mix, &HeadEvaluation::mix, clear);
    expect("head output", field.HeadOutput, &HeadEvaluation::output, clear);
  }

  void ExpectClasses(const Field& field) const
  {
    const std::vector<bool> clear =
      HasClearClass(Gather(this->Expected, &Evaluation::logits), this->Expected.size());
    const std::vector<std::int32_t> predicted = field.Predicted.Elements();
    const std::vector<std::uint8_t> colors = field.ClassColor.Elements();
    std::size_t different = 0;
    for (std::size_t p = 0; p < this->Expected.size(); ++p)
    {
      if (this->Clear[p] && clear[p])
      {
        const bool equal =
          predicted[p] == this->Expected[p].predicted &&
          IsColor(&colors[3 * p], this->Expected[p], static_cast<double>(field.Classes));
        different += equal ? 0U : 1U;
      }
    }
    EXPECT_EQ(different, 0U);
  }

  /// Whether `found` is the color of the class, faded to white according to its probability between
  /// chance level and certainty, up to rounding.
  static bool IsColor(const std::uint8_t* found, const Evaluation& expected, double classes)
  {
    const Rgb color = ClassColor(expected.predicted);
    const double intensity = (expected.probability * classes - 1) / (classes - 1);
    for (std::size_t c = 0; c < 3; ++c)
    {
      const double mixed = 255 + intensity * (color[c] - 255);
      if (std::abs(found[c] - mixed) > 0.51)
      {
        return false;
      }
    }
    return true;
  }
};

/// Every way to evaluate, on a model that was trained and on one at random. TestAttentionEvaluation
/// compares the reference with the original code.
class FieldAgainstReference : public testing::TestWithParam<std::tuple<AngleMap, Pattern, Residual>>
{
protected:
  const std::vector<double> Columns = Angles(70, -3.1, 0.0889);
  const std::vector<double> Rows = { -2.7, 0, 1.4 };

  void Compare(const AttentionOnlyModel& model, const EvaluationOptions& options) const
  {
    FieldEvaluator evaluator(model, options);
    evaluator.SetColumns(Columns);
    std::vector<double> theta1;
    std::vector<double> theta2;
    Field byRow(model, Rows.size() * Columns.size());
    for (const double row : Rows)
    {
      evaluator.EvaluateRow(row, byRow.Arrays(), theta1.size());
      theta1.insert(theta1.end(), Columns.begin(), Columns.end());
      theta2.resize(theta1.size(), row);
    }
    const std::vector<Evaluation> expected = ReferenceAt(model, options, theta1, theta2);
    const Comparison comparison(expected, options.pattern);
    comparison.ExpectEqual(byRow);
    comparison.ExpectEqual(EvaluatePoints(model, options, theta1, theta2));
  }

  /// With every ablation, with and without head weights.
  void CompareAll(const AttentionOnlyModel& model) const
  {
    std::vector<double> weights = { -0.7, 0, 2.5, 1, 0.1, -1.5 };
    weights.resize(model.HeadCount());
    EvaluationOptions options;
    std::tie(options.angles, options.pattern, options.residual) = GetParam();
    for (unsigned kept = 0; kept < 16; ++kept)
    {
      options.wordInPattern = (kept & 1) != 0;
      options.positionInPattern = (kept & 2) != 0;
      options.wordInValues = (kept & 4) != 0;
      options.positionInValues = (kept & 8) != 0;
      SCOPED_TRACE("parts kept: " + std::to_string(kept));
      options.headWeights.clear();
      Compare(model, options);
      options.headWeights = weights;
      Compare(model, options);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, FieldAgainstReference,
  testing::Combine(testing::Values(AngleMap::Isometric, AngleMap::Skewed),
    testing::Values(Pattern::Softmax, Pattern::Hardmax),
    testing::Values(Residual::EmbeddingPosition, Residual::Embedding, Residual::None)));

TEST_P(FieldAgainstReference, TrainedModel)
{
  CompareAll(ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3-slow.safetensors"));
}

TEST_P(FieldAgainstReference, RandomModel)
{
  CompareAll(RandomModel(12, 6));
}

/// Checks that the value at a point depends only on the point, to the byte.
class FieldBytes : public testing::TestWithParam<Pattern>
{
protected:
  static constexpr std::size_t Count = 203;
  const AttentionOnlyModel Model = RandomModel(12, 6);
  const std::vector<double> Theta1 = Angles(Count, -3, 0.0311);
  const std::vector<double> Theta2 = Angles(Count, 2, -0.0173);

  EvaluationOptions Options() const
  {
    EvaluationOptions options;
    options.pattern = GetParam();
    return options;
  }
  Field Whole() const { return EvaluatePoints(Model, Options(), Theta1, Theta2); }

  void ExpectEqualInParts(const std::vector<std::size_t>& cuts) const
  {
    const FieldEvaluator evaluator(Model, Options());
    Field parts(Model, Count);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    {
      evaluator.EvaluatePoints(Theta1.data(), Theta2.data(), cuts[i], cuts[i + 1], parts.Arrays());
    }
    EXPECT_TRUE(parts.Equals(0, Count, Whole(), 0)) << testing::PrintToString(cuts);
  }

  /// The columns from `begin` to before `end`, at an offset, against the same ones of `whole`.
  void ExpectEqualColumns(
    std::size_t begin, std::size_t end, std::size_t offset, const Field& whole) const
  {
    FieldEvaluator evaluator(Model, Options());
    evaluator.SetColumns(Theta1);
    evaluator.SetColumns(
      { Theta1.begin() + static_cast<long>(begin), Theta1.begin() + static_cast<long>(end) });
    const std::size_t stop = offset + end - begin;
    Field part(Model, stop + 300);
    evaluator.EvaluateRow(0.7, part.Arrays(), offset);
    EXPECT_TRUE(part.Equals(offset, stop, whole, begin)) << begin << " to " << end;
    EXPECT_TRUE(part.IsUntouchedOutside(offset, stop)) << begin << " to " << end;
  }
};
INSTANTIATE_TEST_SUITE_P(, FieldBytes, testing::Values(Pattern::Softmax, Pattern::Hardmax),
  [](const auto& pattern) { return pattern.param == Pattern::Softmax ? "Softmax" : "Hardmax"; });

TEST_P(FieldBytes, PointsDoNotDependOnTheRangeOrTheirNeighbours)
{
  ExpectEqualInParts({ 0, 64, 128, Count });
  ExpectEqualInParts({ 0, 1, 2, 65, 66, 130, 202, Count });
  ExpectEqualInParts({ 0, 63, 64, 127, 191, 200, Count });
  ExpectEqualInParts({ 0, 101, 101, Count });
  std::vector<std::size_t> all(Count + 1);
  std::iota(all.begin(), all.end(), std::size_t{ 0 });
  ExpectEqualInParts(all);
  const FieldEvaluator evaluator(Model, Options());
  Field field(Model, Count);
  evaluator.EvaluatePoints(Theta1.data(), Theta2.data(), 70, 75, field.Arrays());
  EXPECT_TRUE(field.IsUntouchedOutside(70, 75));
  EXPECT_TRUE(field.Equals(70, 75, Whole(), 70));
}

TEST_P(FieldBytes, RowsDoNotDependOnTheOtherColumnsOrTheOffset)
{
  FieldEvaluator evaluator(Model, Options());
  evaluator.SetColumns(Theta1);
  Field whole(Model, Count);
  evaluator.EvaluateRow(0.7, whole.Arrays(), 0);
  EXPECT_TRUE(whole.IsUntouchedOutside(0, Count));
  ExpectEqualColumns(0, Count, 17, whole);
  ExpectEqualColumns(0, 64, 1, whole);
  ExpectEqualColumns(1, 65, 0, whole);
  ExpectEqualColumns(37, 138, 1000, whole);
  ExpectEqualColumns(Count - 1, Count, 3, whole);
}

TEST_P(FieldBytes, NothingIsWrittenWithoutPoints)
{
  FieldEvaluator evaluator(Model, Options());
  Field field(Model, Count);
  evaluator.EvaluatePoints(Theta1.data(), Theta2.data(), 5, 5, field.Arrays());
  evaluator.EvaluateRow(0.7, field.Arrays(), 0);
  evaluator.SetColumns({});
  evaluator.EvaluateRow(0.7, field.Arrays(), 0);
  EXPECT_EQ(field.CountTouched(), 0);
}

template<auto Member>
void Want(const FieldArrays& from, FieldArrays& to)
{
  to.*Member = from.*Member;
}

TEST_P(FieldBytes, EachQuantityCanBeWantedAlone)
{
  using Choice = void (*)(const FieldArrays&, FieldArrays&);
  const std::vector<Choice> ofPoints = { Want<&FieldArrays::predicted>,
    Want<&FieldArrays::probability>, Want<&FieldArrays::classColor>, Want<&FieldArrays::logits>,
    Want<&FieldArrays::output> };
  const std::vector<Choice> ofHeads = { Want<&FieldArrays::score>, Want<&FieldArrays::attention>,
    Want<&FieldArrays::wordMix>, Want<&FieldArrays::positionMix>, Want<&FieldArrays::mix>,
    Want<&FieldArrays::headOutput> };
  const FieldEvaluator evaluator(Model, Options());
  const Field whole = Whole();
  const auto expectAlone = [&](Choice want, int arrays)
  {
    Field field(Model, Count);
    FieldArrays wanted;
    want(field.Arrays(), wanted);
    evaluator.EvaluatePoints(Theta1.data(), Theta2.data(), 0, Count, wanted);
    EXPECT_EQ(field.CountTouched(), arrays);
    EXPECT_TRUE(field.EqualsWhereTouched(whole));
  };
  for (const Choice want : ofPoints)
  {
    expectAlone(want, 1);
  }
  for (const Choice want : ofHeads)
  {
    expectAlone(want, static_cast<int>(Model.HeadCount()));
  }
}

TEST_P(FieldBytes, OneHeadCanBeWantedAlone)
{
  const FieldEvaluator evaluator(Model, Options());
  Field field(Model, Count);
  FieldArrays wanted;
  wanted.mix.assign(Model.HeadCount(), nullptr);
  wanted.mix[4] = field.Mix[4].Data();
  evaluator.EvaluatePoints(Theta1.data(), Theta2.data(), 0, Count, wanted);
  EXPECT_EQ(field.CountTouched(), 1);
  EXPECT_TRUE(field.EqualsWhereTouched(Whole()));
}

/// Checks each instruction set separately: all numbers of heads and classes, and rows whose points
/// do not fill vectors.
class FieldOnTarget : public atlas::test::OnTarget
{
protected:
  /// A row and the same points one by one, against the reference and each other.
  static void Compare(const AttentionOnlyModel& model, std::size_t columns)
  {
    constexpr double row = 0.7;
    const std::vector<double> theta1 = Angles(columns, -3, 6.0 / static_cast<double>(columns));
    FieldEvaluator evaluator(model, {});
    evaluator.SetColumns(theta1);
    Field byRow(model, columns + 3);
    evaluator.EvaluateRow(row, byRow.Arrays(), 2);
    EXPECT_TRUE(byRow.IsUntouchedOutside(2, 2 + columns));
    const std::vector<double> theta2(columns, row);
    const Field byPoint = EvaluatePoints(model, {}, theta1, theta2);
    EXPECT_TRUE(byRow.Equals(2, 2 + columns, byPoint, 0));
    const std::vector<Evaluation> expected = ReferenceAt(model, {}, theta1, theta2);
    Comparison(expected, Pattern::Softmax).ExpectEqual(byPoint);
  }
};
INSTANTIATE_TEST_SUITE_P(
  , FieldOnTarget, atlas::test::OnTarget::Targets(), atlas::test::OnTarget::Name);

TEST_P(FieldOnTarget, AnyNumberOfHeadsAndClasses)
{
  for (const Eigen::Index classes : { 2, 3, 5, 8, 9, 16, 17, 63, 64, 65, 127, 128, 129, 500 })
  {
    for (const std::size_t heads : { 1U, 3U, 16U })
    {
      SCOPED_TRACE(std::to_string(classes) + " classes, " + std::to_string(heads) + " heads");
      Compare(RandomModel(classes, heads), 131);
    }
  }
}

TEST_P(FieldOnTarget, AnyNumberOfColumns)
{
  const AttentionOnlyModel model = RandomModel(12, 6);
  for (std::size_t columns = 1; columns <= 300; ++columns)
  {
    SCOPED_TRACE(std::to_string(columns) + " columns");
    Compare(model, columns);
  }
}

TEST_P(FieldOnTarget, ManyEqualClassesGoToTheLowest)
{
  AttentionOnlyModel model = RandomModel(500, 2);
  model.unembedding = Eigen::RowVector3d(0.3, 0.7, 0.1).replicate(500, 1);
  const Field field = EvaluatePoints(model, {}, Angles(100, -3, 0.06), Angles(100, 3, -0.05));
  EXPECT_THAT(field.Predicted.Elements(), testing::Each(0));
  EXPECT_THAT(field.Probability.Elements(), testing::Each(testing::FloatEq(1 / 500.F)));
  // At chance all colors are white.
  EXPECT_THAT(field.ClassColor.Elements(), testing::Each(255));
}

TEST_P(FieldOnTarget, TiesAcrossManyClassesGoToTheLowest)
{
  AttentionOnlyModel model = RandomModel(300, 2);
  model.unembedding.row(71) *= 5;
  model.unembedding.row(250) = model.unembedding.row(71);
  const Field field = EvaluatePoints(model, {}, Angles(300, -3, 0.02), Angles(300, 3, -0.015));
  const std::vector<std::int32_t> found = field.Predicted.Elements();
  EXPECT_GT(std::count(found.begin(), found.end(), 71), 50);
  EXPECT_EQ(std::count(found.begin(), found.end(), 250), 0);
}

TEST_P(FieldOnTarget, LargeLogitsOfManyClassesStayFinite)
{
  for (const double scale : { 1e3, 1e10, 1e30 })
  {
    AttentionOnlyModel model = RandomModel(200, 2);
    model.unembedding *= scale;
    const Field field = EvaluatePoints(model, {}, Angles(300, -3, 0.02), Angles(300, 3, -0.015));
    EXPECT_THAT(field.Probability.Elements(),
      testing::Each(testing::AllOf(testing::Gt(0.F), testing::Le(1.F))));
    EXPECT_THAT(field.Logits.Elements(),
      testing::Each(testing::ResultOf([](float logit) { return std::isfinite(logit); }, true)));
  }
}

/// The kernels' exponentials, against the formulas in double for the scores and logits found.
TEST_P(FieldOnTarget, AttentionAndProbabilityFollowFromScoresAndLogits)
{
  for (const Eigen::Index classes : { 2, 3, 5, 8, 9, 70 })
  {
    AttentionOnlyModel model = RandomModel(classes, 4);
    model.heads[1].query *= 6;
    model.heads[2].query *= 40;
    model.unembedding *= 8;
    const std::size_t points = 300;
    const Field field =
      EvaluatePoints(model, {}, Angles(points, -3, 0.02), Angles(points, 3, -0.015));
    double largestScore = 0;
    for (std::size_t h = 0; h < model.HeadCount(); ++h)
    {
      const std::vector<float> scores = field.Score[h].Elements();
      const std::vector<float> attention = field.Attention[h].Elements();
      for (std::size_t p = 0; p < points; ++p)
      {
        const double score = scores[p];
        const double size = std::abs(score);
        largestScore = std::max(largestScore, size);
        if (size < 87) // else the exponential is at its limit
        {
          EXPECT_NEAR(attention[p] * (1 + std::exp(-score)), 1, 5e-7 + 8e-8 * size) << score;
        }
      }
    }
    EXPECT_GT(largestScore, 40);
    const std::vector<float> logits = field.Logits.Elements();
    const std::vector<float> probability = field.Probability.Elements();
    for (std::size_t p = 0; p < points; ++p)
    {
      const auto begin = logits.begin() + static_cast<long>(p) * classes;
      const double largest = *std::max_element(begin, begin + classes);
      const double sum = std::accumulate(begin, begin + classes, 0.0,
        [&](double before, float logit) { return before + std::exp(logit - largest); });
      EXPECT_NEAR(probability[p] * sum, 1, 2e-6) << classes << " classes";
    }
  }
}

TEST_P(FieldOnTarget, AnglesOfAnySizeAreReduced)
{
  const AttentionOnlyModel model = RandomModel(5, 3);
  const std::vector<double> theta1 = { 38999, -39001, 1e5, -12345.678, 1e9, 3, -1e15, 1e300 };
  const std::vector<double> theta2 = { 2, 1e6, -1e5, 40000, 7, -1e12, 39000, 0.1 };
  for (const AngleMap map : { AngleMap::Isometric, AngleMap::Skewed })
  {
    EvaluationOptions options;
    options.angles = map;
    const std::vector<Evaluation> expected = ReferenceAt(model, options, theta1, theta2);
    Comparison(expected, Pattern::Softmax)
      .ExpectEqual(EvaluatePoints(model, options, theta1, theta2));
  }
}

TEST_P(FieldOnTarget, EqualAnglesScoreExactlyZeroWithoutPositions)
{
  EvaluationOptions options;
  options.positionInPattern = false;
  const std::vector<double> theta = Angles(500, -3.1, 0.0123);
  for (const AngleMap map : { AngleMap::Isometric, AngleMap::Skewed })
  {
    options.angles = map;
    const Field field = EvaluatePoints(RandomModel(12, 6), options, theta, theta);
    for (const GuardedArray<float>& score : field.Score)
    {
      EXPECT_THAT(score.Elements(), testing::Each(0.F));
    }
  }
}

TEST_P(FieldOnTarget, ThreadsWriteTheSameBytes)
{
  const AttentionOnlyModel model = RandomModel(12, 6);
  const std::vector<double> angles = Angles(90, -3, 0.07);
  FieldEvaluator evaluator(model, {});
  evaluator.SetColumns(angles);
  const std::size_t points = angles.size() * angles.size();
  const auto evaluate = [&](std::size_t threads)
  {
    Field field(model, points);
    const FieldArrays arrays = field.Arrays();
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t)
    {
      running.emplace_back(
        [&, t]
        {
          for (std::size_t row = t; row < angles.size(); row += threads)
          {
            evaluator.EvaluateRow(angles[row], arrays, row * angles.size());
          }
        });
    }
    for (std::thread& thread : running)
    {
      thread.join();
    }
    return field;
  };
  const Field serial = evaluate(1);
  EXPECT_TRUE(evaluate(2).Equals(0, points, serial, 0));
  EXPECT_TRUE(evaluate(5).Equals(0, points, serial, 0));
}

/// The hand-made model at its angles, in a row and as a point of its own.
class FieldByHand : public testing::Test
{
protected:
  HandModel Model;
  EvaluationOptions Options;

  Field AsRow() const
  {
    FieldEvaluator evaluator(Model, Options);
    evaluator.SetColumns({ HandModel::Theta1 });
    Field field(Model, 1);
    evaluator.EvaluateRow(HandModel::Theta2, field.Arrays(), 0);
    return field;
  }
  Field AsPoint() const
  {
    return EvaluatePoints(Model, Options, { HandModel::Theta1 }, { HandModel::Theta2 });
  }
};

TEST_F(FieldByHand, TiesGoToTheLowestClass)
{
  for (Eigen::Index classes = 2; classes <= 40; ++classes)
  {
    Model.unembedding = Eigen::RowVector3d(0.3, 0.7, 0.1).replicate(classes, 1);
    for (const int lowest : { 0, 1 })
    {
      EXPECT_THAT(AsRow().Predicted.Elements(), testing::ElementsAre(lowest));
      EXPECT_THAT(AsPoint().Predicted.Elements(), testing::ElementsAre(lowest));
      Model.unembedding.row(0) *= -1;
    }
  }
}

TEST_F(FieldByHand, AVocabularyOfOneIsCertain)
{
  Model.wordEmbedding = Model.wordEmbedding.topRows(1).eval();
  Model.unembedding = Model.unembedding.topRows(1).eval();
  for (const Field& field : { AsRow(), AsPoint() })
  {
    EXPECT_THAT(field.Predicted.Elements(), testing::ElementsAre(0));
    EXPECT_THAT(field.Probability.Elements(), testing::ElementsAre(1.F));
  }
}

TEST_F(FieldByHand, LargeWeightsStayFinite)
{
  Model.heads[0].query *= 1e15;
  Model.heads[0].key *= 1e15;
  Model.unembedding *= 1e30;
  for (const Field& field : { AsRow(), AsPoint() })
  {
    EXPECT_FLOAT_EQ(field.Score[0].Elements()[0], 4.5e30F);
    EXPECT_THAT(field.Attention[0].Elements(), testing::ElementsAre(1.F));
    EXPECT_THAT(field.Probability.Elements(), testing::ElementsAre(1.F));
  }
  Model = {};
  Model.heads[0].query *= -1e30;
  for (const Field& field : { AsRow(), AsPoint() })
  {
    EXPECT_THAT(field.Attention[0].Elements(), testing::ElementsAre(testing::FloatNear(0, 1e-30F)));
  }
}

TEST_F(FieldByHand, RefusesNumbersBeyondFloatAndTheRawEmbedding)
{
  const auto expectRefusal = [this](const char* what, double keys, double values, double logits)
  {
    HandModel model;
    model.heads[0].query *= keys;
    model.heads[0].key *= keys;
    model.heads[0].value *= values;
    model.heads[0].output *= values;
    model.unembedding *= logits;
    EXPECT_THAT(
      MessageOf<ModelError>([&] { FieldEvaluator(model, Options); }), HasSubstr("single precision"))
      << what;
  };
  expectRefusal("scores", 1e20, 1, 1);
  expectRefusal("logits", 1, 1, 1e38);
  Options.headWeights = { 0, 1 };
  expectRefusal("a head without weight", 1, 1e30, 1);
  Options.headWeights = { 1e300, 1 };
  expectRefusal("head weights", 1, 1, 1);
  Options = {};
  Options.residual = Residual::RawEmbedding;
  EXPECT_THAT(
    MessageOf<OptionError>([&] { FieldEvaluator(Model, Options); }), HasSubstr("token pairs only"));
}

}
