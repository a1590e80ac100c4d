#include "AttentionFocus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

TEST(AttentionFocus, EqualValuesKeepTheirOrder)
{
  EXPECT_THAT(FallingOrder({ 1, 3, 2, 3 }), ElementsAre(1, 3, 2, 0));
}

}
