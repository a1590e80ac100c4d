#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// Counts of numbers in bins whose edges grow by a constant factor, from which quantiles follow
/// with a bounded relative error (Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable
/// quantile sketch with relative-error guarantees", 2019). The counts do not depend on the order of
/// the numbers.
class QuantileSketch
{
public:
  /// A quantile differs from the true one by at most this part of it.
  static constexpr double RelativeError = 0.01;

  /// Numbers of a smaller magnitude count as 0, those of a larger one as this one.
  static constexpr double Smallest = 1e-6;
  static constexpr double Largest = 1e9;

  /// `value` must be finite.
  void Add(double value);
  void Add(const QuantileSketch& other);

  /// The number of rank floor(q (count - 1)) from 0 in ascending order, 0 <= q <= 1; 0 without
  /// numbers.
  double Quantile(double q) const;

  std::int64_t Count() const;

  /// The counts of all bins, the most negative ones first; empty without numbers.
  const std::vector<std::int64_t>& GetBins() const { return this->Bins; }

  /// A sketch with these counts. Throws FormatError unless they are as GetBins returns them; the
  /// message begins with `source`.
  static QuantileSketch FromBins(std::vector<std::int64_t> bins, const char* source);

private:
  std::vector<std::int64_t> Bins;
};

}
