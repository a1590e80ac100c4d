#pragma once

#include <cmath>
#include <cstdint>

namespace atlas
{

/// A sum of numbers that does not depend on their order: each is rounded to a multiple of 2^-40,
/// and these are added exactly. Numbers must be finite and their sum below 2^86.
class ExactSum
{
public:
  void Add(double value) { this->Total += static_cast<Wide>(std::nearbyint(value * One)); }
  void Add(const ExactSum& other) { this->Total += other.Total; }

  double Value() const { return static_cast<double>(this->Total) / One; }

  ///@{
  /// The 64 high and the 64 low bits, for files.
  std::int64_t High() const { return static_cast<std::int64_t>(this->Total >> 64); }
  std::int64_t Low() const
  {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(this->Total));
  }
  static ExactSum FromBits(std::int64_t high, std::int64_t low)
  {
    ExactSum sum;
    sum.Total = static_cast<Wide>(high) * (static_cast<Wide>(1) << 64) +
                static_cast<Wide>(static_cast<std::uint64_t>(low));
    return sum;
  }
  ///@}

private:
  __extension__ using Wide = __int128;

  static constexpr double One = 0x1p40;
  Wide Total = 0;
};

/// The same for the many sums of tokens and distances, in 64 bits: multiples of 2^-Bits, for sums
/// below 2^(63 - Bits).
template<int Bits>
class FixedSum
{
public:
  void Add(double value) { this->Total += std::llrint(value * One); }
  void Add(const FixedSum& other) { this->Total += other.Total; }

  double Value() const { return static_cast<double>(this->Total) / One; }

  std::int64_t Stored() const { return this->Total; }
  static FixedSum FromStored(std::int64_t stored)
  {
    FixedSum sum;
    sum.Total = stored;
    return sum;
  }

private:
  static constexpr double One = static_cast<double>(std::int64_t{ 1 } << Bits);
  std::int64_t Total = 0;
};

/// A sum of attention weights, and one of attention weights times distances.
using WeightSum = FixedSum<30>;
using DistanceSum = FixedSum<18>;

}
