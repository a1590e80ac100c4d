#include "AttentionKinds.h"

#include <stdexcept>

#include <gmock/gmock.h>
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

TEST(AttentionKinds, NamesAreFound)
{
  const auto* mask = FindNamed(AttentionMasks, "bidirectional");
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->value, AttentionMask::Bidirectional);
  EXPECT_EQ(FindNamed(AttentionMasks, "Causal"), nullptr);
  EXPECT_EQ(ParseNamed<std::runtime_error>(WeightProcessings, "processed", "a file"),
    WeightProcessing::Processed);
}

TEST(AttentionKinds, OtherNamesAreErrorsThatListThem)
{
  const auto parse = [](std::string_view name)
  { return [name] { ParseNamed<std::runtime_error>(AttentionMasks, name, "a file: mask"); }; };
  EXPECT_THAT(parse("casual"),
    testing::ThrowsMessage<std::runtime_error>(
      "a file: mask: expected one of causal, bidirectional, cross, found 'casual'."));
  EXPECT_THAT(
    parse(""), testing::ThrowsMessage<std::runtime_error>(
                 "a file: mask: expected one of causal, bidirectional, cross, found ''."));
}

}
