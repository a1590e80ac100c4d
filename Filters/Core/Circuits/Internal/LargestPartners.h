#pragma once

#include "Weights/ProcessedWeights.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// A token and its dot product with a vector.
struct Partner
{
  std::int32_t id = 0;
  double product = 0;

  /// Larger products first, then smaller ids.
  bool IsBefore(const Partner& other) const
  {
    return this->product > other.product || (this->product == other.product && this->id < other.id);
  }
};

/// Vectors of tokens by falling length, for the search for large products with them.
class SortedVectors
{
public:
  /// Uses the rows, one per token, as long as this object exists.
  explicit SortedVectors(const DoubleMatrix& rows);

  const DoubleMatrix& Rows() const { return this->Exact; }
  std::int64_t Count() const { return this->Exact.rows(); }
  std::int64_t Dimension() const { return this->Exact.cols(); }

  /// The largest length.
  double Largest() const { return this->Length; }

  /// In order of length: the vectors divided by Largest(), their ids and their lengths so divided.
  const float* Vector(std::int64_t i) const { return this->Values.data() + i * this->Dimension(); }
  std::int32_t Id(std::int64_t i) const { return this->Ids[i]; }
  float LengthOf(std::int64_t i) const { return this->Lengths[i]; }

private:
  const DoubleMatrix& Exact;
  double Length = 0;
  std::vector<std::int32_t> Ids;
  std::vector<float> Values;
  std::vector<float> Lengths;
};

/// A vector whose partners are searched for.
struct PartnerSearch
{
  const double* vector = nullptr; ///< [dimension]
  double least = 0;               ///< products below it are of no interest
};

/// How large the products of a vector can be.
struct PartnerBounds
{
  double largest = 0;         ///< of all products, as far as these are not below `least`
  std::vector<float> ofBlock; ///< of products of the unit vector with each block of tokens, but for
                              ///< the error of single precision
};

/// Bounds the products of each vector with all tokens, from products in single precision and a
/// bound of their error. Blocks of tokens whose lengths rule out that a product is larger than all
/// before it and reaches `least` are not multiplied (Cauchy-Schwarz). Adds the number of products
/// that were computed to `computed`. At most 256 vectors; runs on one thread, under
/// SingleThreadedBlas.
std::vector<PartnerBounds> BoundPartners(
  const std::vector<PartnerSearch>& searches, const SortedVectors& tokens, std::int64_t& computed);

/// Finds the `top` tokens with the largest products, in order, as far as these are positive and not
/// below `least`, which is at least that of the bounds; some that are below may be among them.
/// Products are those of double precision, and ties have the smaller id first: only the products
/// that can be among the largest, by their bounds, are computed again.
std::vector<Partner> FindPartners(const PartnerSearch& search, const PartnerBounds& bounds,
  const SortedVectors& tokens, std::size_t top, std::int64_t& computed);

}
