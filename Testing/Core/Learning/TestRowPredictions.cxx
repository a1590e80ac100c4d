#include "RowPredictions.h"

#include "LensModel.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

Recording WithLogits(const std::vector<std::vector<float>>& rows)
{
  Recording recording;
  recording.logits = SharedMatrix::Zero(
    static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
  {
    std::copy(rows[i].begin(), rows[i].end(), recording.logits.Row(static_cast<std::int64_t>(i)));
  }
  return recording;
}

TEST(RowPredictions, AreCrossEntropiesAndTheLargestLogits)
{
  const auto log2 = static_cast<float>(std::log(2.));
  // Probabilities 1/4, 1/2, 1/4; then 1/3 each; logits whose exponentials overflow.
  const Recording recording =
    WithLogits({ { 0, log2, 0 }, { 5, 5, 5 }, { 1000, 0, 0 }, { 1000, 0, 0 }, { 3, 2, 1 } });
  const std::vector<RowPrediction> rows = PredictRows(recording, { 1, 0, 0, 2, -1 });
  EXPECT_NEAR(rows[0].loss, std::log(2.), 1e-7);
  EXPECT_NEAR(rows[1].loss, std::log(3.), 1e-12);
  EXPECT_EQ(rows[2].loss, 0);
  EXPECT_EQ(rows[3].loss, 1000);
  EXPECT_TRUE(rows[0].isRight && rows[1].isRight && rows[2].isRight);
  EXPECT_FALSE(rows[3].isRight);
  EXPECT_FALSE(rows[4].hasTarget);
  EXPECT_NEAR(MeanLoss(rows), (std::log(2.) + std::log(3.) + 1000) / 4, 1e-7);
  EXPECT_EQ(ShareRight(rows), 0.75);
  EXPECT_EQ(MeanLoss({}), 0);
  EXPECT_EQ(ShareRight({ rows[4] }), 0);
}

/// A model with weights of 0 predicts all tokens alike.
TEST(RowPredictions, OfAModel)
{
  const auto task = MakeTask(OptionsOf(TaskKind::RepeatedTokens));
  const LensModel model(*task, {});
  const TrainingBatch batch = task->MakeBatch(0, 3);
  const std::vector<RowPrediction> rows = PredictRows(model.Make(), batch, 1);
  ASSERT_EQ(rows.size(), batch.targets.size());
  EXPECT_NEAR(MeanLoss(rows), std::log(64.), 1e-9);
}

}
