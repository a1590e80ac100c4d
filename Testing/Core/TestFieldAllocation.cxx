#include "Field.h"
#include "FieldEvaluation.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace
{

std::atomic<std::size_t> Allocations{ 0 };

}

// Not inline: GCC would warn of free() for what it sees come from new.
[[gnu::noinline]] void* operator new(std::size_t size)
{
  ++Allocations;
  if (void* memory = std::malloc(size))
  {
    return memory;
  }
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept
{
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept
{
  std::free(memory);
}

namespace
{

/// All quantities of a trained model at many points.
TEST(FieldAllocation, NeitherRowsNorPointsAllocate)
{
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
  atlas::FieldEvaluator evaluator(model, {});
  std::vector<double> angles;
  for (int i = 0; i < 301; ++i)
  {
    angles.push_back(-3 + 0.02 * i);
  }
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
  EXPECT_GT(Allocations, 0U);
}

}
