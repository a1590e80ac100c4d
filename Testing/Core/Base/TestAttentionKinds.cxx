#include "AttentionKinds.h"

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

// The names are part of the format of recordings: files hold them.

TEST(AttentionKinds, MasksHaveTheirNames)
{
  EXPECT_EQ(Name(AttentionMask::Causal), "causal");
  EXPECT_EQ(Name(AttentionMask::Bidirectional), "bidirectional");
}

TEST(AttentionKinds, ProcessingsHaveTheirNames)
{
  EXPECT_EQ(Name(WeightProcessing::Unknown), "unknown");
  EXPECT_EQ(Name(WeightProcessing::Unprocessed), "unprocessed");
  EXPECT_EQ(Name(WeightProcessing::Processed), "processed");
}

}
