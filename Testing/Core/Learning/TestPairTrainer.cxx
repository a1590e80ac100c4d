#include "Learning/PairTrainer.h"

#include "AttentionOnly/AttentionEvaluation.h"
#include "Base/Error.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <gmock/gmock.h>

using namespace atlas;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace
{

/// All parameters of a model, tensor by tensor, for reading and writing.
std::vector<std::pair<std::string, std::vector<double*>>> ParametersOf(AttentionOnlyModel& model)
{
  std::vector<std::pair<std::string, std::vector<double*>>> tensors;
  const auto add = [&](const std::string& name, auto& tensor)
  {
    tensors.emplace_back(name, std::vector<double*>());
    for (Eigen::Index i = 0; i < tensor.size(); ++i)
    {
      tensors.back().second.push_back(tensor.data() + i);
    }
  };
  add("word", model.wordEmbedding);
  add("position", model.positionEmbedding);
  add("unembedding", model.unembedding);
  for (AttentionHead& head : model.heads)
  {
    add("query", head.query);
    add("key", head.key);
    add("value", head.value);
    add("output", head.output);
  }
  return tensors;
}

double Penalty(const ReferenceEvaluator& evaluator, const AttentionOnlyModel& model, int t1, int t2)
{
  const Evaluation at = evaluator.AtTokens(t1, t2);
  double sum = 0;
  for (const HeadEvaluation& head : at.heads)
  {
    const Eigen::ArrayXd exponentials = (model.unembedding * head.output).array().exp();
    sum += exponentials[model.nextToken(t1, t2)] / exponentials.sum();
  }
  return -std::log(sum / static_cast<double>(at.heads.size()));
}

/// The loss by its formula, over the reference evaluation that AttentionTorus is tested against.
double ReferenceLoss(const AttentionOnlyModel& model, double decay, double lambda)
{
  const ReferenceEvaluator evaluator(model, {});
  const auto tokens = static_cast<int>(model.VocabularySize());
  double loss = 0;
  double total = 0;
  for (int t1 = 0; t1 < tokens; ++t1)
  {
    for (int t2 = 0; t2 < tokens; ++t2)
    {
      const double prior = std::pow(decay, t1 + t2);
      const Eigen::ArrayXd exponentials = evaluator.AtTokens(t1, t2).logits.array().exp();
      loss -= prior * std::log(exponentials[model.nextToken(t1, t2)] / exponentials.sum());
      loss += lambda > 0 ? lambda * prior * Penalty(evaluator, model, t1, t2) : 0;
      total += prior;
    }
  }
  return loss / total;
}

struct Case
{
  int tokens;
  int heads;
  int dimension;
  double decay;
  double specialization;
  TrainingMode mode = TrainingMode::Joint;
  int phase = 0; ///< the head in training, in boosting
};

void PrintTo(const Case& c, std::ostream* out)
{
  *out << "N " << c.tokens << ", H " << c.heads << ", d " << c.dimension << ", mode "
       << static_cast<int>(c.mode) << ", head " << c.phase;
}

/// Whether a tensor is trained in a mode and phase, by its place in ParametersOf.
bool IsTrained(const Case& c, std::size_t tensor)
{
  if (c.mode == TrainingMode::Joint)
  {
    return true;
  }
  constexpr std::size_t shared = 3; // word, position, unembedding
  if (tensor < shared)
  {
    return c.phase == 0;
  }
  const bool isOutput = (tensor - shared) % 4 == 3;
  return (tensor - shared) / 4 == static_cast<std::size_t>(c.phase) &&
         (isOutput || c.mode == TrainingMode::Boosting);
}

constexpr TrainingMode Boosting = TrainingMode::Boosting;
constexpr TrainingMode OutputOnly = TrainingMode::BoostingOutputOnly;

/// Does the steps up to this one.
void Train(PairTrainer& trainer, int step)
{
  while (trainer.GetStep() < step)
  {
    trainer.Step();
  }
}

using TrainingGradient = testing::TestWithParam<Case>;
INSTANTIATE_TEST_SUITE_P(, TrainingGradient,
  testing::Values(Case{ 5, 3, 3, 1, 0 }, Case{ 4, 2, 1, 0.7, 0 }, Case{ 3, 4, 5, 1, 0.5 },
    Case{ 6, 1, 2, 0.5, 2 }, Case{ 1, 1, 1, 1, 1 }, Case{ 5, 3, 3, 1, 0, Boosting, 0 },
    Case{ 5, 3, 2, 0.8, 0, Boosting, 2 }, Case{ 4, 3, 3, 1, 0.5, Boosting, 1 },
    Case{ 5, 3, 3, 1, 0, OutputOnly, 0 }, Case{ 5, 3, 1, 1, 0, OutputOnly, 1 },
    Case{ 4, 3, 3, 0.9, 0.5, OutputOnly, 1 }, Case{ 4, 3, 3, 0.9, 2, OutputOnly, 2 }),
  [](const auto& test) { return std::to_string(test.index); });

TEST_P(TrainingGradient, IsThatOfCentralDifferences)
{
  TrainingOptions options;
  options.vocabularySize = GetParam().tokens;
  options.heads = GetParam().heads;
  options.headDimension = GetParam().dimension;
  options.priorDecay = GetParam().decay;
  options.specialization = GetParam().specialization;
  options.mode = GetParam().mode;
  options.steps = 2 * options.heads;
  options.seed = 17;
  PairTrainer trainer(options);
  Train(trainer, 2 * GetParam().phase);
  AttentionOnlyModel gradient;
  const double loss = trainer.Gradient(gradient);
  AttentionOnlyModel model = trainer.GetModel();
  if (options.mode != TrainingMode::Joint) // heads that are not there yet take no part
  {
    EXPECT_EQ(trainer.GetPhase(), GetParam().phase);
    model.heads.resize(static_cast<std::size_t>(GetParam().phase) + 1);
  }
  const auto reference = [&]()
  { return ReferenceLoss(model, options.priorDecay, options.specialization); };
  EXPECT_NEAR(loss, reference(), 1e-12);

  const auto parameters = ParametersOf(model);
  const auto slopes = ParametersOf(gradient);
  for (std::size_t tensor = 0; tensor < slopes.size(); ++tensor)
  {
    if (!IsTrained(GetParam(), tensor))
    {
      for (const double* slope : slopes[tensor].second)
      {
        EXPECT_EQ(*slope, 0) << slopes[tensor].first;
      }
      continue;
    }
    double largest = 0;
    double error = 0;
    for (std::size_t i = 0; i < parameters[tensor].second.size(); ++i)
    {
      double& parameter = *parameters[tensor].second[i];
      const double before = parameter;
      constexpr double step = 1e-5;
      parameter = before + step;
      const double above = reference();
      parameter = before - step;
      const double below = reference();
      parameter = before;
      const double expected = (above - below) / (2 * step);
      largest = std::max(largest, std::abs(expected));
      error = std::max(error, std::abs(expected - *slopes[tensor].second[i]));
    }
    EXPECT_LE(error, 1e-6 * std::max(largest, 1e-3)) << parameters[tensor].first;
  }
}

TEST(Training, MeasuresWhatTheModelPredicts)
{
  TrainingOptions options;
  options.steps = 200;
  PairTrainer trainer(options);
  Train(trainer, 200);
  const AttentionOnlyModel model = trainer.GetModel();
  const ReferenceEvaluator evaluator(model, {});
  int correct = 0;
  for (int t1 = 0; t1 < 5; ++t1)
  {
    for (int t2 = 0; t2 < 5; ++t2)
    {
      correct += evaluator.AtTokens(t1, t2).predicted == model.nextToken(t1, t2) ? 1 : 0;
    }
  }
  EXPECT_NEAR(trainer.Measure().accuracy, correct / 25., 1e-12);
  EXPECT_NEAR(trainer.Measure().loss, ReferenceLoss(model, 1, 0), 1e-12);
  EXPECT_EQ(model.metadata.at("step"), "200");
}

std::vector<double> Flat(AttentionOnlyModel model)
{
  std::vector<double> values;
  for (const auto& [name, tensor] : ParametersOf(model))
  {
    for (const double* value : tensor)
    {
      values.push_back(*value);
    }
  }
  return values;
}

std::vector<double> GradientOf(PairTrainer& trainer)
{
  AttentionOnlyModel gradient;
  trainer.Gradient(gradient);
  return Flat(gradient);
}

constexpr double Beta1 = 0.9;
constexpr double Beta2 = 0.999;
constexpr double Epsilon = 1e-8;

/// Algorithm 1 of Kingma and Ba, "Adam" (2015), for a single number, with its recursion written out
/// as a sum over all slopes so far.
double AdamStep(const std::vector<double>& slopes, double rate)
{
  double first = 0;
  double second = 0;
  const auto t = static_cast<double>(slopes.size());
  for (std::size_t i = 0; i < slopes.size(); ++i)
  {
    const double age = t - 1 - static_cast<double>(i);
    first += (1 - Beta1) * std::pow(Beta1, age) * slopes[i];
    second += (1 - Beta2) * std::pow(Beta2, age) * slopes[i] * slopes[i];
  }
  first /= 1 - std::pow(Beta1, t);
  second /= 1 - std::pow(Beta2, t);
  return rate * first / (std::sqrt(second) + Epsilon);
}

TEST(Training, AdamStepsAsItsPaperSays)
{
  TrainingOptions options;
  options.learningRate = 0.003;
  PairTrainer trainer(options);
  std::vector<std::vector<double>> slopes(Flat(trainer.GetModel()).size());
  for (int step = 0; step < 40; ++step)
  {
    const std::vector<double> before = Flat(trainer.GetModel());
    const std::vector<double> gradient = GradientOf(trainer);
    trainer.Step();
    const std::vector<double> after = Flat(trainer.GetModel());
    for (std::size_t i = 0; i < slopes.size(); ++i)
    {
      slopes[i].push_back(gradient[i]);
      ASSERT_NEAR(before[i] - after[i], AdamStep(slopes[i], 0.003), 1e-13)
        << "step " << step << ", parameter " << i;
    }
  }
}

TEST(Training, EachHeadOfABoostingBeginsAdamAnew)
{
  TrainingOptions options;
  options.mode = TrainingMode::Boosting;
  options.steps = 30;
  PairTrainer trainer(options);
  Train(trainer, 10);
  EXPECT_EQ(trainer.GetPhase(), 1);
  const AttentionOnlyModel before = trainer.GetModel();
  AttentionOnlyModel gradient;
  trainer.Gradient(gradient);
  trainer.Step();
  const AttentionOnlyModel after = trainer.GetModel();
  const Columns3& slopes = gradient.heads[1].output;
  for (Eigen::Index i = 0; i < slopes.size(); ++i)
  {
    const double slope = slopes.data()[i];
    EXPECT_NEAR(before.heads[1].output.data()[i] - after.heads[1].output.data()[i],
      0.01 * slope / (std::abs(slope) + Epsilon), 1e-12);
  }
  EXPECT_EQ(after.wordEmbedding, before.wordEmbedding) << "no momentum is left of the first head";
}

TEST(Training, GradientDescentGoesDownTheGradient)
{
  TrainingOptions options;
  options.optimizer = Optimizer::GradientDescent;
  options.learningRate = 0.25;
  PairTrainer trainer(options);
  for (int step = 0; step < 3; ++step)
  {
    const std::vector<double> before = Flat(trainer.GetModel());
    const std::vector<double> gradient = GradientOf(trainer);
    trainer.Step();
    const std::vector<double> after = Flat(trainer.GetModel());
    for (std::size_t i = 0; i < before.size(); ++i)
    {
      EXPECT_NEAR(before[i] - after[i], 0.25 * gradient[i], 1e-14);
    }
  }
}

TEST(Training, OfASeedIsTheSameToTheByte)
{
  TrainingOptions options;
  options.steps = 50;
  options.batchSize = 16;
  options.seed = 5;
  PairTrainer first(options);
  PairTrainer second(options);
  Train(first, 50);
  Train(second, 50);
  EXPECT_EQ(first.GetModel().wordEmbedding, second.GetModel().wordEmbedding);
  options.seed = 6;
  EXPECT_NE(PairTrainer(options).GetModel().wordEmbedding, first.GetModel().wordEmbedding);
}

TEST(Training, BoostingFreezesWhatHasBeenLearned)
{
  for (const bool outputOnly : { false, true })
  {
    TrainingOptions options;
    options.steps = 90;
    options.mode = outputOnly ? TrainingMode::BoostingOutputOnly : TrainingMode::Boosting;
    PairTrainer trainer(options);
    const AttentionOnlyModel begin = trainer.GetModel();
    EXPECT_EQ(begin.heads[1].output, Columns3::Zero(3, 3));
    Train(trainer, 29);
    EXPECT_EQ(trainer.GetPhase(), 0);
    Train(trainer, 30);
    EXPECT_EQ(trainer.GetPhase(), 1);
    const AttentionOnlyModel one = trainer.GetModel();
    EXPECT_NE(one.wordEmbedding, begin.wordEmbedding);
    EXPECT_EQ(one.heads[0].query == begin.heads[0].query, outputOnly);
    EXPECT_EQ(one.heads[1].query, begin.heads[1].query);
    Train(trainer, 60);
    const AttentionOnlyModel two = trainer.GetModel();
    EXPECT_EQ(two.wordEmbedding, one.wordEmbedding);
    EXPECT_EQ(two.unembedding, one.unembedding);
    EXPECT_EQ(two.heads[0].output, one.heads[0].output);
    EXPECT_NE(two.heads[1].output, one.heads[1].output);
    EXPECT_EQ(two.heads[1].value == one.heads[1].value, outputOnly);
  }
}

TEST(Training, ContinuesAModel)
{
  TrainingOptions options;
  options.steps = 100;
  PairTrainer trainer(options);
  Train(trainer, 100);
  const AttentionOnlyModel model = trainer.GetModel();
  PairTrainer continued(options, { &model, true });
  EXPECT_NEAR(continued.Measure().loss, trainer.Measure().loss, 1e-14);
  PairTrainer again(options, { &model, false });
  EXPECT_EQ(again.GetModel().nextToken, model.nextToken);
  EXPECT_NE(again.GetModel().wordEmbedding, model.wordEmbedding);
}

TEST(Training, TellsWhenItDiverges)
{
  TrainingOptions options;
  options.learningRate = 1e300;
  options.optimizer = Optimizer::GradientDescent;
  PairTrainer trainer(options);
  EXPECT_THAT([&]() { Train(trainer, options.steps); },
    ThrowsMessage<DivergenceError>(HasSubstr("the training diverged at step ")));
}

TEST(Training, StepTellsWhatMeasureTells)
{
  for (const int batch : { 0, 8 })
  {
    TrainingOptions options;
    options.batchSize = batch;
    PairTrainer trainer(options);
    for (int step = 0; step < 40; ++step)
    {
      const TrainingState expected = trainer.Measure();
      TrainingState before;
      trainer.Step(&before);
      EXPECT_EQ(before.step, step);
      EXPECT_EQ(before.loss, expected.loss);
      EXPECT_EQ(before.accuracy, expected.accuracy);
    }
  }
}

TEST(Training, RefusesSenselessOptions)
{
  const auto expect = [](auto change, const std::string& message)
  {
    TrainingOptions options;
    change(options);
    EXPECT_THAT(
      [&]() { PairTrainer trainer(options); }, ThrowsMessage<OptionError>(HasSubstr(message)));
  };
  using Options = TrainingOptions;
  expect(
    [](Options& o) { o.vocabularySize = 0; }, "VocabularySize: expected at least 1 token, found");
  expect([](Options& o) { o.heads = 0; }, "Heads: expected at least 1");
  expect([](Options& o) { o.headDimension = 0; }, "HeadDimension: expected at least 1");
  expect([](Options& o) { o.steps = -1; }, "Steps: expected at least 0");
  expect(
    [](Options& o) { o.learningRate = 0; }, "LearningRate: expected a positive number, found 0");
  expect([](Options& o) { o.learningRate = std::nan(""); }, "LearningRate");
  expect([](Options& o) { o.batchSize = -1; }, "BatchSize: expected at least 0");
  expect([](Options& o) { o.priorDecay = 1.5; }, "PriorDecay: expected a number in (0, 1]");
  expect([](Options& o) { o.specialization = -1; }, "Specialization: expected at least 0");
}

}
