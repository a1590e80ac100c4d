#pragma once

#include "Base/Pi.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace atlas
{

/// What random numbers are for. Those of different purposes are independent.
enum class RandomPurpose : std::uint64_t
{
  Batches, ///< the step is that of the training
  HeldOut,
  Split,  ///< of a finite set of data into a part for training and one that is held out
  Weights ///< the first ones
};

/// Random numbers that are a function of a seed, a purpose, a step and how many were drawn before:
/// SplitMix64 (Steele, Lea and Flood 2014, Fast splittable pseudorandom number generators). No
/// standard distributions are used, as their numbers differ between libraries.
class LearningRandom
{
public:
  explicit LearningRandom(std::uint64_t seed, RandomPurpose purpose, std::int64_t step = 0)
    : State(Mixed(Mixed(Mixed(seed) + static_cast<std::uint64_t>(purpose)) +
                  static_cast<std::uint64_t>(step)))
  {
  }

  /// 64 random bits.
  std::uint64_t Bits()
  {
    this->State += Step;
    return Scrambled(this->State);
  }

  /// Uniform in 0 <= u < 1, a multiple of 2^-53.
  double Uniform() { return std::ldexp(static_cast<double>(this->Bits() >> 11U), -53); }

  /// Uniform in begin <= u < end.
  double Uniform(double begin, double end) { return begin + (end - begin) * this->Uniform(); }

  /// Uniform in 0, ..., count - 1; count is at least 1. Rejects numbers beyond the last whole
  /// multiple of the count.
  std::int64_t Integer(std::int64_t count)
  {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const auto range = static_cast<std::uint64_t>(count);
    const std::uint64_t limit = most - most % range;
    std::uint64_t bits = this->Bits();
    while (bits >= limit)
    {
      bits = this->Bits();
    }
    return static_cast<std::int64_t>(bits % range);
  }

  /// Uniform in first, ..., last.
  std::int64_t Integer(std::int64_t first, std::int64_t last)
  {
    return first + this->Integer(last - first + 1);
  }

  /// Standard normal, by the Box-Muller transform.
  double Normal()
  {
    const double radius = std::sqrt(2 * this->Exponential());
    return radius * std::cos(2 * Pi * this->Uniform());
  }

  /// Exponential with mean 1. Such numbers, divided by their sum, have a flat Dirichlet
  /// distribution.
  double Exponential() { return -std::log(1 - this->Uniform()); }

  /// Shuffles the first `count` values of a list so that they are a sample of all, in random order
  /// (Fisher and Yates).
  template<class Value>
  void Shuffle(std::vector<Value>& values, std::int64_t count)
  {
    const std::int64_t size = values.size();
    for (std::int64_t i = 0; i < count && i + 1 < size; ++i)
    {
      std::swap(values[i], values[this->Integer(i, size - 1)]);
    }
  }

  /// 0, ..., count - 1 in random order.
  std::vector<std::int64_t> Permutation(std::int64_t count)
  {
    std::vector<std::int64_t> order(count);
    std::iota(order.begin(), order.end(), std::int64_t{ 0 });
    this->Shuffle(order, count);
    return order;
  }

private:
  static constexpr std::uint64_t Step = 0x9e3779b97f4a7c15U; ///< 2^64 divided by the golden ratio

  std::uint64_t State;

  static std::uint64_t Scrambled(std::uint64_t bits)
  {
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }

  static std::uint64_t Mixed(std::uint64_t number) { return Scrambled(number + Step); }
};

}
