#include "Embedding/Internal/UmapForces.h"

#include "Embedding/Internal/HashedNumbers.h"
#include "EveryTarget.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <Eigen/Core>
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
        // From `count` on places repeat, as the forces need it.
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

/// A place after a step, by the formulas in double precision; the third component is 0 of two.
Eigen::Vector3d Moved(const Places& places, const UmapStep& step, std::int64_t i)
{
  const double a = step.curve.a;
  const double b = step.curve.b;
  const auto placeOf = [&](std::int64_t j)
  {
    Eigen::Vector3d place(0, 0, 0);
    for (int c = 0; c < step.dimensions; ++c)
    {
      place[c] = static_cast<double>(places.from.at(c)[j]);
    }
    return place;
  };
  const Eigen::Vector3d own = placeOf(i);
  Eigen::Vector3d force(0, 0, 0);
  double stiffness = 0;
  const std::size_t group = i / UmapGroup;
  for (std::int64_t column = places.edges.begin[group]; column < places.edges.begin[group + 1];
    ++column)
  {
    const std::size_t e = column * UmapGroup + i % UmapGroup;
    const Eigen::Vector3d to = placeOf(places.edges.target[e]) - own;
    const double s = to.squaredNorm();
    if (s > 0)
    {
      const double pull = 2 * static_cast<double>(places.edges.weight[e]) * 2 * a * b *
                          std::pow(s, b - 1) / (1 + a * std::pow(s, b));
      stiffness += pull;
      force += pull * to;
    }
  }
  const double repulsion =
    static_cast<double>(step.repulsion) * static_cast<double>(places.edges.repulsion[i]);
  for (const std::int64_t shift : step.shifts)
  {
    const Eigen::Vector3d to = placeOf((i + shift) % places.count) - own;
    const double s = to.squaredNorm();
    const double push = 2 * b / ((0.001 + s) * (1 + a * std::pow(s, b)));
    force -= repulsion * (push * to).cwiseMax(-4).cwiseMin(4);
  }
  const double rate = step.rate;
  return own + rate * force / (1 + rate * stiffness) +
         Eigen::Vector3d::Constant(static_cast<double>(step.momentum * LastStep));
}

using UmapForces = OnTarget;

TEST_P(UmapForces, AreTheirFormulas)
{
  for (const double size : { 0.01, 1., 50. })
  {
    const Places places(size);
    for (const int dimensions : { 2, 3 })
    {
      UmapStep step;
      step.curve = { 1.5769, 0.8951 };
      step.dimensions = dimensions;
      step.rate = 0.7F;
      step.momentum = 0.5F;
      step.repulsion = 0.25F;
      step.shifts = { 1, 7, 20, 39 };
      PlaceCoordinates to = places.from;
      for (std::vector<float>& axis : to)
      {
        std::transform(
          axis.begin(), axis.end(), axis.begin(), [](float value) { return value - LastStep; });
      }
      MovePlaces(places.edges, step, 0, 3, places.from, to);
      for (std::int64_t i = 0; i < places.count; ++i)
      {
        const Eigen::Vector3d expected = Moved(places, step, i);
        for (int c = 0; c < dimensions; ++c)
        {
          EXPECT_NEAR(to.at(c)[i], expected[c], 2e-5 * std::max(size, 1.)) // forces are about 1
            << i << " of size " << size;
        }
      }
    }
  }
}

TEST_P(UmapForces, PlacesTogetherStayFinite)
{
  const Places places(0);
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
