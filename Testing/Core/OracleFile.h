#pragma once

#include "Files/Safetensors.h"
#include "TestName.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

/// What an independent program computed: a file of Testing/Oracle, or one with a full path.
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
  const TensorView& Get(const std::string& quantity) const { return this->Tensors().at(quantity); }
  const std::string& Text(const std::string& key) const { return this->GetMetadata().at(key); }
  const Shape& ShapeOf(const std::string& quantity) const { return this->Get(quantity).shape; }
  std::vector<double> Values(const std::string& quantity) const
  {
    return this->Get(quantity).ToDouble();
  }
  std::vector<float> Floats(const std::string& quantity) const
  {
    std::vector<float> values(this->Get(quantity).Count());
    this->Get(quantity).ToFloat(0, values.size(), values.data());
    return values;
  }
  std::vector<std::int64_t> Integers(const std::string& quantity) const
  {
    return this->Get(quantity).ToInteger();
  }

  /// The places in each row of [B, T] of the tokens that are no padding; without a mask, all.
  std::vector<std::vector<std::int64_t>> KeptPlaces(
    const std::string& mask, const Shape& shape) const
  {
    const std::vector<std::int64_t> kept =
      this->Has(mask) ? this->Integers(mask) : std::vector<std::int64_t>(shape[0] * shape[1], 1);
    std::vector<std::vector<std::int64_t>> places(shape[0]);
    for (std::size_t i = 0; i < kept.size(); ++i)
    {
      const auto index = static_cast<std::int64_t>(i);
      if (kept[i] != 0)
      {
        places[index / shape[1]].push_back(index % shape[1]);
      }
    }
    return places;
  }

  /// The integers [B, T] at these places of each row.
  std::vector<std::vector<std::int64_t>> IntegersAt(
    const std::string& quantity, const std::vector<std::vector<std::int64_t>>& places) const
  {
    const std::vector<std::int64_t> all = this->Integers(quantity);
    std::vector<std::vector<std::int64_t>> chosen(places.size());
    for (std::size_t row = 0; row < places.size(); ++row)
    {
      for (const std::int64_t place : places[row])
      {
        chosen[row].push_back(all[row * this->ShapeOf(quantity)[1] + place]);
      }
    }
    return chosen;
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
