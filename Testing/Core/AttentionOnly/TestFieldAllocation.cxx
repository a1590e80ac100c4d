#include "AttentionEvaluation.h"
#include "Field.h"
#include "FieldEvaluation.h"

#include <atomic>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace
{

std::atomic<std::size_t> Allocations{ 0 };

}

// What operator new and Eigen allocate by. Sanitizers have their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ATLAS_COUNTS_ALLOCATIONS
extern "C" void* __libc_malloc(std::size_t size); // NOLINT(*-reserved-identifier)

extern "C" void* malloc(std::size_t size)
{
  ++Allocations;
  return __libc_malloc(size);
}
#endif

namespace
{

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

  const std::size_t before = Allocations;
  for (const double angle : angles)
  {
    evaluator.EvaluateRow(angle, arrays, 0);
  }
  evaluator.EvaluatePoints(angles.data(), angles.data(), 0, angles.size(), arrays);
  EXPECT_EQ(Allocations - before, 0U);
#ifdef ATLAS_COUNTS_ALLOCATIONS
  EXPECT_GT(Allocations, 0U);
#endif
}

/// A model at the pairs of its tokens.
TEST(FieldAllocation, PairsDoNotAllocate)
{
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
  const atlas::ReferenceEvaluator evaluator(model, {});
  atlas::Evaluation at;
  evaluator.AtTokens(0, 0, at);

  const std::size_t before = Allocations;
  for (Eigen::Index pair = 0; pair < 25; ++pair)
  {
    evaluator.AtTokens(pair / 5, pair % 5, at);
  }
  EXPECT_EQ(Allocations - before, 0U);
}

}
