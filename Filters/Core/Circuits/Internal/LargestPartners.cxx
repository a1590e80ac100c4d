#include "LargestPartners.h"

#include "BestItems.h"
#include "Numerics/DotProduct.h"
#include "Numerics/Lanes.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace atlas
{
namespace
{

/// Tokens that are multiplied at a time: with up to 128 vectors their products stay in the cache of
/// a core.
constexpr std::int64_t TokensPerProduct = 512;
/// Candidates that are collected before their exact products are computed.
constexpr std::size_t PendingCount = 64;

/// A bound of the error of a product of floats that were rounded from vectors of length at most 1:
/// gamma_(n+2) (Higham 2002, "Accuracy and Stability of Numerical Algorithms", 3.1), for any order
/// of the sums, and a little for what is below the smallest float.
float ErrorBound(std::int64_t dimension)
{
  constexpr double unit = 0x1p-24;
  const double gamma = static_cast<double>(dimension + 3) * unit;
  return static_cast<float>(1.01 * gamma / (1 - gamma) + 1e-30);
}

float LargestOf(const float* values, std::int64_t count)
{
  Lanes largest = Lanes::Constant(values[0]);
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { largest = largest.max(Load(values + i, left, values[0])); });
  return largest.maxCoeff();
}

/// A vector of a search.
class UnitVector
{
public:
  UnitVector(const PartnerSearch& search, const SortedVectors& tokens)
    : Tokens(tokens)
    , Vector(search.vector)
    , Length(std::sqrt(DotProduct(this->Vector, this->Vector, tokens.Dimension())))
    , Error(ErrorBound(tokens.Dimension()))
  {
  }

  /// Writes the vector, divided by its length.
  void Write(float* unit) const
  {
    std::transform(this->Vector, this->Vector + this->Tokens.Dimension(), unit, [this](double value)
      { return static_cast<float>(this->IsZero() ? 0 : value / this->Length); });
  }

  /// The product with a token.
  double Product(std::int32_t id) const
  {
    return DotProduct(this->Vector, this->Tokens.Rows().row(id).data(), this->Tokens.Dimension());
  }

  bool IsZero() const { return this->Length == 0 || this->Tokens.Largest() == 0; }

  /// What a product of the unit vector in single precision must reach, so that the product of the
  /// vector can reach `least`. If it is zero, nothing can.
  float Threshold(double least) const
  {
    const double share = this->IsZero() ? 2 : least / this->Length / this->Tokens.Largest();
    // Beyond 2 nothing can be reached, and it could overflow.
    return static_cast<float>(std::min(share, 2.0)) - this->Error;
  }

  /// The largest product of the vector that can have this product of the unit vector.
  double Bound(float product) const
  {
    return std::max(0., static_cast<double>(product + this->Error) * RoundedUp) * this->Length *
           this->Tokens.Largest();
  }

private:
  static constexpr double RoundedUp = 1 + 1e-6; ///< more than a sum of floats loses

  const SortedVectors& Tokens;
  const double* Vector;
  double Length;
  float Error;
};

/// The best partners of a vector.
class Collector
{
public:
  Collector(const UnitVector& vector, const SortedVectors& tokens, double least, std::size_t top)
    : Vector(vector)
    , Tokens(tokens)
    , Least(least)
    , Best(top)
    , Threshold(vector.Threshold(least))
  {
  }

  bool CanReach(float product) const { return product >= this->Threshold; }

  /// Takes products of the unit vector with the tokens from `first` on into account.
  void Add(const float* products, std::int64_t first, std::int64_t count)
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      if (products[i] >= this->Threshold)
      {
        this->Pending.push_back(this->Tokens.Id(first + i));
        if (this->Pending.size() >= PendingCount)
        {
          this->Settle();
        }
      }
    }
    this->Settle();
  }

  std::vector<Partner> Take() { return this->Best.Take(); }

private:
  const UnitVector& Vector;
  const SortedVectors& Tokens;
  double Least;
  BestItems<Partner> Best;
  std::vector<std::int32_t> Pending;
  float Threshold; ///< of products of the unit vector

  /// Computes the products of the candidates.
  void Settle()
  {
    for (const std::int32_t id : this->Pending)
    {
      const double product = this->Vector.Product(id);
      if (product > 0)
      {
        this->Best.Add({ id, product });
      }
    }
    this->Pending.clear();
    if (this->Best.IsFull())
    {
      this->Threshold = this->Vector.Threshold(std::max(this->Least, this->Best.Worst().product));
    }
  }
};

}

SortedVectors::SortedVectors(const DoubleMatrix& rows)
  : Exact(rows)
  , Ids(rows.rows())
  , Values(static_cast<std::size_t>(rows.size()))
{
  const Eigen::VectorXd lengths = rows.rowwise().norm();
  this->Length = lengths.size() > 0 ? lengths.maxCoeff() : 0;
  std::iota(this->Ids.begin(), this->Ids.end(), 0);
  std::sort(this->Ids.begin(), this->Ids.end(), [&](std::int32_t a, std::int32_t b)
    { return lengths[a] > lengths[b] || (lengths[a] == lengths[b] && a < b); });
  const double scale = this->Length > 0 ? 1 / this->Length : 0;
  float* value = this->Values.data();
  for (const std::int32_t id : this->Ids)
  {
    this->Lengths.push_back(static_cast<float>(lengths[id] * scale));
    const double* row = rows.row(id).data();
    value = std::transform(
      row, row + rows.cols(), value, [scale](double x) { return static_cast<float>(x * scale); });
  }
}

std::vector<PartnerBounds> BoundPartners(
  const std::vector<PartnerSearch>& searches, const SortedVectors& tokens, std::int64_t& computed)
{
  const std::int64_t dimension = tokens.Dimension();
  const std::int64_t count = searches.size();
  std::vector<UnitVector> vectors;
  std::vector<float> units(count * dimension);
  std::vector<float> wanted; // of products: larger than all so far, and not below the least
  for (std::int64_t i = 0; i < count; ++i)
  {
    vectors.emplace_back(searches[i], tokens);
    vectors.back().Write(units.data() + i * dimension);
    wanted.push_back(vectors.back().Threshold(searches[i].least));
  }
  std::vector<PartnerBounds> bounds(searches.size());
  std::vector<float> largest(searches.size());
  std::vector<float> products(count * TokensPerProduct);
  for (std::int64_t begin = 0; begin < tokens.Count(); begin += TokensPerProduct)
  {
    const float length = tokens.LengthOf(begin);
    if (std::none_of(wanted.begin(), wanted.end(), [&](float least) { return length >= least; }))
    {
      for (PartnerBounds& one : bounds)
      {
        one.ofBlock.push_back(length);
      }
      continue;
    }
    const std::int64_t columns = std::min(TokensPerProduct, tokens.Count() - begin);
    MultiplyMatrices(count, columns, dimension, 1, { units.data(), dimension, false },
      { tokens.Vector(begin), dimension, true }, products.data(), columns);
    for (std::int64_t i = 0; i < count; ++i)
    {
      const float found = LargestOf(products.data() + i * columns, columns);
      bounds[i].ofBlock.push_back(found);
      largest[i] = std::max(largest[i], found);
      wanted[i] = std::max(wanted[i], found);
    }
    computed += count * columns;
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    bounds[i].largest = vectors[i].Bound(largest[i]);
  }
  return bounds;
}

std::vector<Partner> FindPartners(const PartnerSearch& search, const PartnerBounds& bounds,
  const SortedVectors& tokens, std::size_t top, std::int64_t& computed)
{
  const std::int64_t dimension = tokens.Dimension();
  const UnitVector vector(search, tokens);
  Collector collector(vector, tokens, search.least, top);
  std::vector<float> unit(dimension);
  vector.Write(unit.data());
  std::vector<std::int64_t> order(bounds.ofBlock.size()); // the most promising first
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b)
    { return std::tie(bounds.ofBlock[b], a) < std::tie(bounds.ofBlock[a], b); });
  std::vector<float> products(TokensPerProduct);
  for (const std::int64_t block : order)
  {
    // Another order of the sums gives another error, which was not more than its bound, either.
    const float bound = bounds.ofBlock[block] + 2 * ErrorBound(dimension);
    if (!collector.CanReach(bound))
    {
      break; // as can no other
    }
    const std::int64_t begin = block * TokensPerProduct;
    const std::int64_t columns = std::min(TokensPerProduct, tokens.Count() - begin);
    MultiplyMatrices(1, columns, dimension, 1, { unit.data(), dimension, false },
      { tokens.Vector(begin), dimension, true }, products.data(), columns);
    collector.Add(products.data(), begin, columns);
    computed += columns;
  }
  return collector.Take();
}

}
