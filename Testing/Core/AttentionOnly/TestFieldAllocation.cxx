#include "Allocations.h"
#include "AttentionOnly/AttentionEvaluation.h"
#include "AttentionOnly/FieldEvaluation.h"
#include "Field.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

using atlas::test::AllocationCount;

namespace
{

TEST(FieldAllocation, AllocationsAreCounted)
{
  const std::size_t before = AllocationCount();
  const auto number = std::make_unique<volatile int>(3);
  EXPECT_EQ(AllocationCount() - before, 1U) << *number;
}

/// All quantities of a trained model at many points.
TEST(FieldAllocation, NeitherRowsNorPointsAllocate)
{
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
  atlas::FieldEvaluator evaluator(model, {});
  const Eigen::ArrayXd steps = Eigen::ArrayXd::LinSpaced(301, -3, 3);
  const std::vector<double> angles(steps.begin(), steps.end());
  evaluator.SetColumns(angles);
  atlas::test::Field field(model, angles.size());
  const atlas::FieldArrays arrays = field.Arrays();
  evaluator.EvaluateRow(0.7, arrays, 0); // the thread's scratch

  const std::size_t before = AllocationCount();
  for (const double angle : angles)
  {
    evaluator.EvaluateRow(angle, arrays, 0);
  }
  evaluator.EvaluatePoints(angles.data(), angles.data(), 0, angles.size(), arrays);
  EXPECT_EQ(AllocationCount() - before, 0U);
}

/// A model at the pairs of its tokens.
TEST(FieldAllocation, PairsDoNotAllocate)
{
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
  const atlas::ReferenceEvaluator evaluator(model, {});
  atlas::Evaluation at;
  evaluator.AtTokens(0, 0, at);

  const std::size_t before = AllocationCount();
  for (Eigen::Index pair = 0; pair < 25; ++pair)
  {
    evaluator.AtTokens(pair / 5, pair % 5, at);
  }
  EXPECT_EQ(AllocationCount() - before, 0U);
}

}
