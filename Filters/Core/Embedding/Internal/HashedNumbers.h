#pragma once

#include <cstdint>

namespace atlas
{

/// Random numbers by their number, which do not depend on the order in which they are asked for.
class HashedNumbers
{
public:
  explicit HashedNumbers(std::uint64_t seed, std::uint64_t stream = 0)
    : Key(Mix(Mix(seed) + stream))
  {
  }

  /// Number i: 64 random bits (Steele, Lea and Flood, "Fast splittable pseudorandom number
  /// generators", 2014).
  std::uint64_t Bits(std::uint64_t i) const { return Mix(this->Key + i * 0x9E3779B97F4A7C15U); }
  /// Uniform in [0, count).
  std::uint64_t Below(std::uint64_t i, std::uint64_t count) const
  {
    return (this->Bits(i) >> 32U) * count >> 32U;
  }
  /// Uniform in [-1, 1).
  double Signed(std::uint64_t i) const
  {
    return static_cast<double>(this->Bits(i) >> 11U) * 0x1p-52 - 1;
  }

private:
  std::uint64_t Key;

  static std::uint64_t Mix(std::uint64_t bits)
  {
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    return bits ^ (bits >> 31U);
  }
};

}
