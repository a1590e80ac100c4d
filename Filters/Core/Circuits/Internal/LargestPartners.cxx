#include "LargestPartners.h"

#include "BestItems.h"
#include "DotProduct.h"
#include "Lanes.h"
#include "MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

/// The search for one vector.
class Collector
{
public:
  Collector(const PartnerSearch& search, const SortedVectors& tokens, std::size_t top)
    : Tokens(tokens)
    , Vector(search.vector)
    , Least(search.least)
    , Length(std::sqrt(DotProduct(this->Vector, this->Vector, tokens.Dimension())))
    , Best(top)
  {
    this->UpdateThreshold();
  }

  /// Writes the vector, divided by its length.
  void WriteUnit(float* unit) const
  {
    std::transform(this->Vector, this->Vector + this->Tokens.Dimension(), unit, [this](double value)
      { return static_cast<float>(this->IsZero() ? 0 : value / this->Length); });
  }

  /// Whether products with vectors of this length, and shorter ones, can be of interest.
  bool CanReach(float length) const { return !this->IsZero() && length >= this->Threshold; }

  /// Takes products of the unit vector with the tokens from `first` on into account.
  void Add(const float* products, std::int64_t first, std::int64_t count)
  {
    if (this->IsZero() || LargestOf(products, count) < this->Threshold)
    {
      return;
    }
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
  }

  std::vector<Partner> Take()
  {
    this->Settle();
    return this->Best.Take();
  }

private:
  const SortedVectors& Tokens;
  const double* Vector;
  double Least;
  double Length;
  BestItems<Partner> Best;
  std::vector<std::int32_t> Pending;
  float Threshold = 0; ///< of products of the unit vector, less the error

  bool IsZero() const { return this->Length == 0 || this->Tokens.Largest() == 0; }

  /// Computes the products of the candidates.
  void Settle()
  {
    const std::int64_t dimension = this->Tokens.Dimension();
    for (const std::int32_t id : this->Pending)
    {
      const double product =
        DotProduct(this->Vector, this->Tokens.Rows().row(id).data(), dimension);
      if (product > 0)
      {
        this->Best.Add({ id, product });
      }
    }
    this->Pending.clear();
    this->UpdateThreshold();
  }

  void UpdateThreshold()
  {
    const double least =
      this->Best.IsFull() ? std::max(this->Least, this->Best.Worst().product) : this->Least;
    const double share = this->IsZero() ? 0 : least / this->Length / this->Tokens.Largest();
    // Beyond 2 nothing can be reached, and it could overflow.
    this->Threshold =
      static_cast<float>(std::min(share, 2.0)) - ErrorBound(this->Tokens.Dimension());
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

std::int64_t FindPartners(
  std::vector<PartnerSearch>& searches, const SortedVectors& tokens, std::size_t top)
{
  const std::int64_t dimension = tokens.Dimension();
  const std::int64_t count = searches.size();
  std::vector<Collector> collectors;
  std::vector<float> units(count * dimension);
  for (std::int64_t i = 0; i < count; ++i)
  {
    collectors.emplace_back(searches[i], tokens, top);
    collectors.back().WriteUnit(units.data() + i * dimension);
  }
  std::vector<float> products(count * TokensPerProduct);
  std::int64_t computed = 0;
  for (std::int64_t begin = 0; begin < tokens.Count() && count > 0; begin += TokensPerProduct)
  {
    const float length = tokens.LengthOf(begin);
    const bool isReached = std::any_of(collectors.begin(), collectors.end(),
      [length](const Collector& collector) { return collector.CanReach(length); });
    if (!isReached)
    {
      break; // as are all shorter ones
    }
    const std::int64_t columns = std::min(TokensPerProduct, tokens.Count() - begin);
    MultiplyMatrices(count, columns, dimension, 1, { units.data(), dimension, false },
      { tokens.Vector(begin), dimension, true }, products.data(), columns);
    for (std::int64_t i = 0; i < count; ++i)
    {
      collectors[i].Add(products.data() + i * columns, begin, columns);
    }
    computed += count * columns;
  }
  for (std::size_t i = 0; i < searches.size(); ++i)
  {
    searches[i].found = collectors[i].Take();
  }
  return computed;
}

}
