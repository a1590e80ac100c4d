#pragma once

#include "Transformer.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer and what an independent program computed of its circuits as tables of tokens
/// (Testing/Oracle/analysis/README.md).
class TablesOracle
{
public:
  explicit TablesOracle(const std::string& name)
    : Model(Transformer::Read(TransformerOracle::Folder(name)))
    , Expected(
        std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" / (name + ".tables.safetensors"))
  {
  }

  const Transformer& GetModel() const { return this->Model; }
  bool Has(const std::string& name) const { return this->Expected.GetTensors().count(name) != 0; }
  std::vector<double> Values(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name).ToDouble();
  }
  std::vector<std::int32_t> Integers(const std::string& name) const
  {
    const std::vector<std::int64_t> values = this->Expected.GetTensors().at(name).ToInteger();
    return { values.begin(), values.end() };
  }

private:
  Transformer Model;
  SafetensorsFile Expected;
};

/// Runs on every model of the oracle.
class OfTables : public testing::TestWithParam<std::string>
{
protected:
  TablesOracle Oracle{ GetParam() };

public:
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
  static auto Models()
  {
    return testing::Values("gpt2", "bloom", "llama", "attn-only", "attn-only-shortformer");
  }
};

/// Tolerance of the oracle for float32 programs, of the largest magnitude of an array.
inline constexpr double TablesTolerance = 1e-5;

/// Expects lists of `top` largest values: the values, and the ids where neighbors differ.
template<class List>
void ExpectLargest(const std::string& name, const List& found, std::size_t top,
  const std::vector<std::int32_t>& ids, const std::vector<double>& values)
{
  ASSERT_EQ(found.size(), values.size()) << name;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double tolerance = TablesTolerance * std::max(std::abs(*least), std::abs(*most));
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    ASSERT_NEAR(found[i].logit, values[i], tolerance) << name << " " << i;
    const bool differs = (i % top == 0 || values[i - 1] - values[i] > 2 * tolerance) &&
                         (i % top + 1 < top && values[i] - values[i + 1] > 2 * tolerance);
    if (differs)
    {
      ASSERT_EQ(found[i].id, ids[i]) << name << " " << i;
    }
  }
}

}
