#include "UmapForces.h"

#include "EveryTarget.h"
#include "HashedNumbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Places in the unit cube times `size`, each with some edges of random weights.
struct Places
{
  std::int64_t count = 40;
  GroupedEdges edges;
  PlaceCoordinates from;

  /// The place of an edge.
  std::int64_t Own(std::int64_t e) const
  {
    const std::int64_t column = e / UmapGroup;
    std::int64_t group = 0;
    while (this->edges.begin[static_cast<std::size_t>(group) + 1] <= column)
    {
      ++group;
    }
    return (group * UmapGroup + e % UmapGroup) % this->count;
  }

  explicit Places(double size)
  {
    const HashedNumbers numbers(5);
    constexpr std::int64_t groups = 3; // of which the last is not full
    for (std::vector<float>& axis : this->from)
    {
      axis.resize(groups * UmapGroup + this->count + UmapGroup);
    }
    std::uint64_t next = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      for (std::size_t i = 0; i < this->from[axis].size(); ++i)
      {
        const auto place = static_cast<std::uint64_t>(i % static_cast<std::size_t>(this->count));
        this->from[axis][i] = static_cast<float>(size * numbers.Signed(place * 3 + axis));
      }
    }
    this->edges.begin = { 0, 2, 7, 8 };
    for (std::int64_t e = 0; e < 8 * UmapGroup; ++e)
    {
      const std::int64_t own = this->Own(e);
      const auto step = static_cast<std::int64_t>(numbers.Below(1000 + next++, 39));
      this->edges.target.push_back(static_cast<std::int32_t>((own + 1 + step) % this->count));
      this->edges.weight.push_back(static_cast<float>(std::max(numbers.Signed(2000 + next++), 0.)));
    }
    for (std::int64_t i = 0; i < groups * UmapGroup; ++i)
    {
      this->edges.repulsion.push_back(static_cast<float>(1 + numbers.Signed(3000 + next++)));
    }
  }
};

/// By how much all coordinates changed in the last step.
constexpr float LastStep = 0.125F;

/// A place after a step, by the formulas in double precision.
std::vector<double> Moved(const Places& places, const UmapStep& step, std::int64_t i)
{
  const std::size_t dimensions = step.dimensions;
  const double a = step.curve.a;
  const double b = step.curve.b;
  const auto difference = [&](std::int64_t j)
  {
    std::vector<double> to;
    for (std::size_t c = 0; c < dimensions; ++c)
    {
      const std::vector<float>& axis = places.from[c];
      to.push_back(static_cast<double>(axis[j]) - static_cast<double>(axis[i]));
    }
    return to;
  };
  const auto squareOf = [](const std::vector<double>& to)
  {
    double square = 0;
    for (const double value : to)
    {
      square += value * value;
    }
    return square;
  };
  std::vector<double> force(dimensions, 0);
  double stiffness = 0;
  const std::size_t group = i / UmapGroup;
  for (std::int64_t column = places.edges.begin[group]; column < places.edges.begin[group + 1];
    ++column)
  {
    const std::size_t e = column * UmapGroup + i % UmapGroup;
    const std::vector<double> to = difference(places.edges.target[e]);
    const double s = squareOf(to);
    if (s == 0)
    {
      continue;
    }
    const double pull = 2 * static_cast<double>(places.edges.weight[e]) * 2 * a * b *
                        std::pow(s, b - 1) / (1 + a * std::pow(s, b));
    stiffness += pull;
    for (std::size_t c = 0; c < dimensions; ++c)
    {
      force[c] += pull * to[c];
    }
  }
  const double repulsion =
    static_cast<double>(step.repulsion) * static_cast<double>(places.edges.repulsion[i]);
  for (const std::int64_t shift : step.shifts)
  {
    const std::vector<double> to = difference((i + shift) % places.count);
    const double s = squareOf(to);
    const double push = 2 * b / ((0.001 + s) * (1 + a * std::pow(s, b)));
    for (std::size_t c = 0; c < dimensions; ++c)
    {
      force[c] -= repulsion * std::clamp(push * to[c], -4., 4.);
    }
  }
  std::vector<double> moved;
  for (std::size_t c = 0; c < dimensions; ++c)
  {
    const double rate = step.rate;
    moved.push_back(static_cast<double>(places.from[c][i]) +
                    rate * force[c] / (1 + rate * stiffness) +
                    static_cast<double>(step.momentum * LastStep));
  }
  return moved;
}

using UmapForces = OnTarget;

TEST_P(UmapForces, AreTheirFormulas)
{
  for (const double size : { 0.01, 1., 50. })
  {
    Places places(size);
    for (const int dimensions : { 2, 3 })
    {
      UmapStep step;
      step.curve = { 1.5769, 0.8951 };
      step.dimensions = dimensions;
      step.rate = 0.7F;
      step.momentum = 0.5F;
      step.repulsion = 0.25F;
      step.shifts = { 1, 7, 20, 39 };
      for (std::size_t c = 0; c < 3; ++c) // as the forces need it: places repeat from `count` on
      {
        for (std::size_t i = 40; i < places.from[c].size(); ++i)
        {
          places.from[c][i] = places.from[c][i - 40];
        }
      }
      PlaceCoordinates to = places.from;
      for (std::vector<float>& axis : to)
      {
        std::transform(
          axis.begin(), axis.end(), axis.begin(), [](float value) { return value - LastStep; });
      }
      MovePlaces(places.edges, step, 0, 3, places.from, to);
      for (std::int64_t i = 0; i < places.count; ++i)
      {
        const std::vector<double> expected = Moved(places, step, i);
        for (std::size_t c = 0; c < expected.size(); ++c)
        {
          EXPECT_NEAR(to[c][i], expected[c], 2e-5 * std::max(size, 1.)) // forces are about 1
            << i << " of size " << size;
        }
      }
    }
  }
}

TEST_P(UmapForces, PlacesTogetherStayFinite)
{
  Places places(0);
  UmapStep step;
  step.curve = { 1.9, 0.79 };
  step.shifts = { 1, 2, 3 };
  PlaceCoordinates to = places.from;
  MovePlaces(places.edges, step, 0, 3, places.from, to);
  for (std::size_t i = 0; i < 40; ++i)
  {
    EXPECT_EQ(to[0][i], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, UmapForces, OnTarget::Targets(), OnTarget::Name);

}
