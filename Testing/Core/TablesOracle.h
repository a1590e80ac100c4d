#pragma once

#include "CircuitOracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, and what an independent program computed of its circuits as tables of
/// tokens.
class TablesOracle : public CircuitOracle
{
public:
  explicit TablesOracle(const std::string& name)
    : CircuitOracle(name, "tables")
  {
  }

  std::vector<std::int32_t> Ids(const std::string& name) const
  {
    const std::vector<std::int64_t> values = this->Integers(name);
    return { values.begin(), values.end() };
  }
};

/// Runs on every model of the oracle.
class OfTables : public testing::TestWithParam<std::string>
{
protected:
  TablesOracle Oracle{ GetParam() };
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
