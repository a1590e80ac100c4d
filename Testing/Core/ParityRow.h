#pragma once

#include "Recording/RecordedAttention.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rows of Parity.md.
namespace atlas::test
{

struct ParityRow
{
  std::string model;
  std::string part; ///< of the model; or empty
  std::string file = "safetensors";
  std::string dtype = "F32";
  std::map<std::string, double> deviations; ///< by quantity
};

/// Leaves a row for Plugin/scripts/parity.py, if that asks for it.
inline void Write(const std::string& name, const ParityRow& row)
{
  const char* folder = std::getenv("ATLAS_PARITY_DIR");
  if (folder == nullptr)
  {
    return;
  }
  std::ofstream file(std::filesystem::path(folder) / (name + ".json"));
  file << R"({"model": ")" << row.model << R"(", "architecture": ")" << row.part
       << R"(", "file": ")" << row.file << R"(", "dtype": ")" << row.dtype << '"';
  for (const auto& [quantity, deviation] : row.deviations)
  {
    file << ", \"" << quantity << "\": " << deviation;
  }
  file << "}\n";
}

/// The largest deviation of numbers from others, relative to the largest of these.
class RelativeDeviation
{
public:
  void Add(double found, double expected)
  {
    const double difference = std::abs(found - expected);
    // Not with std::max, which would lose NaN.
    this->Difference = difference <= this->Difference ? this->Difference : difference;
    this->Largest = std::max(this->Largest, std::abs(expected));
  }

  void Add(const SharedMatrix& found, const SharedMatrix& expected)
  {
    ASSERT_EQ(found.Count(), expected.Count());
    for (std::uint64_t i = 0; i < expected.Count(); ++i)
    {
      this->Add(
        static_cast<double>(found.values.get()[i]), static_cast<double>(expected.values.get()[i]));
    }
  }

  double Get() const { return this->Largest > 0 ? this->Difference / this->Largest : 0; }

private:
  double Difference = 0;
  double Largest = 0;
};

/// How far attention, hidden states and logits of a recording are from those of another.
inline std::map<std::string, double> DeviationsOf(const Recording& found, const Recording& expected)
{
  std::map<std::string, RelativeDeviation> all;
  for (std::size_t l = 0; l < expected.layers.size(); ++l)
  {
    for (std::size_t h = 0; h < expected.layers[l].heads.size(); ++h)
    {
      for (std::int64_t s = 0; s < expected.SequenceCount(); ++s)
      {
        const std::int64_t count = expected.SequenceLength(s);
        std::vector<float> weights[2];
        for (const Recording* recording : { &found, &expected })
        {
          std::vector<float>& to = weights[recording == &expected ? 1 : 0];
          to.resize(static_cast<std::size_t>(count * count));
          EvaluateAttention(*recording, s, static_cast<std::int64_t>(l),
            static_cast<std::int64_t>(h), AttentionQuantity::Weights, 0, count, to.data());
        }
        for (std::size_t i = 0; i < weights[1].size(); ++i)
        {
          all["attention"].Add(
            static_cast<double>(weights[0][i]), static_cast<double>(weights[1][i]));
        }
      }
      all["outputs"].Add(found.layers[l].heads[h].output, expected.layers[l].heads[h].output);
    }
  }
  for (std::size_t l = 0; l < expected.residual.size(); ++l)
  {
    all["hidden"].Add(found.residual[l], expected.residual[l]);
  }
  if (expected.logits.IsRecorded())
  {
    all["logits"].Add(found.logits, expected.logits);
  }
  std::map<std::string, double> deviations;
  for (const auto& [name, deviation] : all)
  {
    deviations[name] = deviation.Get();
  }
  return deviations;
}

/// Records with products of BF16, and compares each part with `exact`, which was recorded with
/// those of floats. A token whose experts are others is another computation, so there is no bound
/// with experts.
inline void CompareBfloat16(const std::string& name, const Transformer& model,
  const TransformerInput& input, const RecordOptions& options, const Recording& exact)
{
  Transformer rounded = model;
  rounded.SetProducts(ProductPrecision::Bfloat16);
  const Recording found = RecordTransformer(rounded, input, options);
  const bool hasExperts = model.GetConfig().experts > 0;
  const std::vector<const Recording*> foundParts = WithParts(found);
  const std::vector<const Recording*> exactParts = WithParts(exact);
  ASSERT_EQ(foundParts.size(), exactParts.size());
  for (std::size_t i = 0; i < exactParts.size(); ++i)
  {
    const Recording* part = exactParts[i];
    const std::string kind = exactParts.size() == 1        ? ""
                             : part == exact.encoder.get() ? "encoder"
                             : part == exact.cross.get()   ? "cross"
                                                           : "decoder";
    EXPECT_EQ(foundParts[i]->products, ProductPrecision::Bfloat16);
    ParityRow row = { name, kind, "products of BF16", "F32", DeviationsOf(*foundParts[i], *part) };
    for (const auto& [quantity, deviation] : row.deviations)
    {
      std::cout << name << " " << kind << " " << quantity << " " << deviation << "\n";
      EXPECT_GT(deviation, 1e-6) << quantity << ": nothing was rounded";
      EXPECT_LE(deviation, hasExperts ? 1 : 0.05) << quantity;
    }
    Write(name + "_" + kind + "_bf16", row);
  }
}

}
