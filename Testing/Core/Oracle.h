#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"
#include "OracleFile.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

/// A model and the values that an independent program computed for it
/// (Testing/Oracle/aot/README.md).
class Oracle : public OracleFile
{
public:
  static std::filesystem::path Folder() { return std::filesystem::path(ATLAS_ORACLE_DIR) / "aot"; }

  explicit Oracle(const std::string& name)
    : OracleFile(Folder() / (name + ".expected.safetensors"))
    , Model(ReadAttentionOnlyModel(Folder() / (name + ".safetensors")))
  {
    const std::vector<double> theta = this->Values("theta");
    for (std::size_t i = 0; i < theta.size(); i += 2)
    {
      this->Theta1.push_back(theta[i]);
      this->Theta2.push_back(theta[i + 1]);
    }
  }

  const AttentionOnlyModel& GetModel() const { return this->Model; }
  std::size_t HeadCount() const { return this->Model.HeadCount(); }
  std::size_t PointCount() const { return this->Theta1.size(); }

  /// The angles of the points at which all quantities but those of pairs are given.
  const std::vector<double>& GetTheta1() const { return this->Theta1; }
  const std::vector<double>& GetTheta2() const { return this->Theta2; }

private:
  AttentionOnlyModel Model;
  std::vector<double> Theta1;
  std::vector<double> Theta2;
};

/// Runs on every oracle model.
class OracleTest : public testing::TestWithParam<std::string>
{
public:
  /// The parameter as the name of a test, in which only letters, digits and _ may occur.
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }
  static auto Models()
  {
    return testing::Values(
      "trained-n5-h3", "trained-n5-h3-slow", "random-n5-h1-d1", "random-n12-h6-d2");
  }

protected:
  void SetUp() override { this->Loaded.emplace(this->GetParam()); }
  const Oracle& GetOracle() const { return *this->Loaded; }

private:
  std::optional<Oracle> Loaded;
};

/// The largest magnitude in `values`, or 1 if all are 0.
inline double LargestMagnitude(const std::vector<double>& values)
{
  double largest = 0;
  for (const double value : values)
  {
    largest = std::max(largest, std::abs(value));
  }
  return largest > 0 ? largest : 1;
}

/// The largest difference between two lists, in units of the largest magnitude expected; infinite
/// if they differ in length or a value found is not a number.
template<class Found>
double LargestError(const std::vector<Found>& found, const std::vector<double>& expected)
{
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (found.size() != expected.size())
  {
    return infinity;
  }
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    largest = std::isnan(difference) ? infinity : std::max(largest, difference);
  }
  return largest / LargestMagnitude(expected);
}

/// Expects an error of at most `tolerance`, and records it in the report (--gtest_output=xml).
template<class Found>
void ExpectClose(const std::string& quantity, const std::vector<Found>& found,
  const std::vector<double>& expected, double tolerance)
{
  const double error = LargestError(found, expected);
  EXPECT_LE(error, tolerance) << quantity << ", " << found.size() << " values";
  testing::Test::RecordProperty(quantity, testing::PrintToString(error));
}

}
