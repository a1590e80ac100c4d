#include "Base/AttentionKinds.h"

#include "Base/Joined.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

// The names are part of the format of recordings: files hold them.
TEST(AttentionKinds, HaveTheirNames)
{
  EXPECT_EQ(NamesOf(AttentionMasks), "causal, bidirectional, cross");
  EXPECT_EQ(Name(AttentionMask::Causal), "causal");
  EXPECT_EQ(Name(AttentionMask::Bidirectional), "bidirectional");
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
  for (const std::string name : { "casual", "" })
  {
    EXPECT_THAT([&] { ParseNamed<std::runtime_error>(AttentionMasks, name, "a file: mask"); },
      testing::ThrowsMessage<std::runtime_error>(
        "a file: mask: expected one of causal, bidirectional, cross, found '" + name + "'."));
  }
}

TEST(Joined, PutsSeparatorsBetweenTexts)
{
  const auto text = [](int number) { return std::to_string(number); };
  EXPECT_EQ(Joined(std::vector<int>{}, text), "");
  EXPECT_EQ(Joined(std::vector{ 1 }, text), "1");
  EXPECT_EQ(Joined(std::vector{ 1, 2, 3 }, text), "1, 2, 3");
  EXPECT_EQ(Joined(std::vector{ 1, 2 }, text, " "), "1 2");
  const std::vector<std::string> empty(3);
  EXPECT_EQ(Joined(empty, [](const std::string& item) { return item; }), ", , ");
}

}
