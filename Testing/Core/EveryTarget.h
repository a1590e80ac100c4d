#pragma once

#include "Numerics/InstructionSets.h"

#include <string>

#include <gtest/gtest.h>

namespace atlas::test
{

/// Tests that run once with each instruction set that the machine has.
class OnTarget : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override { UseTarget(GetParam()); }
  void TearDown() override { UseTarget(""); }

public:
  static auto Targets() { return testing::ValuesIn(SupportedTargets()); }
  static std::string Name(const testing::TestParamInfo<std::string>& info) { return info.param; }
};

}
