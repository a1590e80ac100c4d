#include "Joined.h"

#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

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

TEST(Joined, NamesOfItems)
{
  struct Item
  {
    const char* name;
  };
  EXPECT_EQ(NamesOf(std::vector<Item>{ { "a" }, { "b" } }), "a, b");
}

}
