#pragma once

#include "Safetensors.h"
#include "TestName.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

/// What an independent program computed: a file of Testing/Oracle.
class OracleFile
{
public:
  explicit OracleFile(const std::filesystem::path& path)
    : Expected(std::filesystem::path(ATLAS_ORACLE_DIR) / path)
  {
  }

  const TensorViews& Tensors() const { return this->Expected.GetTensors(); }
  const Metadata& GetMetadata() const { return this->Expected.GetMetadata(); }
  bool Has(const std::string& quantity) const { return this->Tensors().count(quantity) != 0; }
  const Shape& ShapeOf(const std::string& quantity) const
  {
    return this->Tensors().at(quantity).shape;
  }
  std::vector<double> Values(const std::string& quantity) const
  {
    return this->Tensors().at(quantity).ToDouble();
  }
  std::vector<std::int64_t> Integers(const std::string& quantity) const
  {
    return this->Tensors().at(quantity).ToInteger();
  }

private:
  SafetensorsFile Expected;
};

/// Runs on every small model that the programs of Testing/Oracle/analysis read.
class OfAnalysis : public testing::TestWithParam<std::string>
{
public:
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }
  static auto Models()
  {
    return testing::Values("gpt2", "bloom", "llama", "attn-only", "attn-only-shortformer");
  }
};

}
