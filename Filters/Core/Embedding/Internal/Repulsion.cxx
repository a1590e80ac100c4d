#include "Repulsion.h"

#include "Base/Index.h"
#include "CurveOrder.h"
#include "Numerics/InstructionSets.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/Repulsion.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// At most as many lanes as a group and a fan have.
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

/// What is added to the square of a distance before it is compared with a radius.
inline constexpr float Softening = 0.1F;

inline constexpr std::size_t LaneCount = hn::MaxLanes(D());

/// 1 / x within a few units in the last place, for x from 1 to 1e37.
HWY_INLINE V Inverse(V x)
{
  const V estimate = hn::ApproximateReciprocal(x);
  return hn::Mul(estimate, hn::NegMulAdd(x, estimate, hn::Set(D(), 2.F)));
}

/// to = q u for a symmetric matrix q, given by its upper triangle.
template<std::size_t Dimensions>
HWY_INLINE void Multiply(const V* q, const V* u, V* to)
{
  if constexpr (Dimensions == 2)
  {
    to[0] = hn::MulAdd(q[0], u[0], hn::Mul(q[1], u[1]));
    to[1] = hn::MulAdd(q[1], u[0], hn::Mul(q[2], u[1]));
  }
  else
  {
    to[0] = hn::MulAdd(q[0], u[0], hn::MulAdd(q[1], u[1], hn::Mul(q[2], u[2])));
    to[1] = hn::MulAdd(q[1], u[0], hn::MulAdd(q[3], u[1], hn::Mul(q[4], u[2])));
    to[2] = hn::MulAdd(q[2], u[0], hn::MulAdd(q[4], u[1], hn::Mul(q[5], u[2])));
  }
}

/// The second moments of cells as they enter the expansion of their sums of w at distances u.
template<std::size_t Dimensions>
struct Moments
{
  V product[Dimensions]; ///< q u
  V form;                ///< u q u
  V trace;               ///< of q

  HWY_INLINE Moments(const V* q, const V* u)
  {
    Multiply<Dimensions>(q, u, this->product);
    this->form = hn::Mul(u[0], this->product[0]);
    this->trace = q[0];
    for (std::size_t i = 1; i < Dimensions; ++i)
    {
      this->form = hn::MulAdd(u[i], this->product[i], this->form);
      this->trace = hn::Add(this->trace, q[Dimensions == 2 ? 2 : 2 * i + 1]);
    }
  }
};

/// Sums over cells seen from afar, one lane each, of the derivatives of the cells' sums of w at the
/// center of a group.
template<std::size_t Dimensions>
struct Expansion
{
  static constexpr std::size_t Pairs = Dimensions * (Dimensions + 1) / 2;
  static constexpr std::size_t Triples = Dimensions == 2 ? 4 : 10;

  V value;
  V gradient[Dimensions];
  V trace;              ///< what the second derivatives have on their diagonal alone
  V second[Pairs];      ///< the rest of them
  V vector[Dimensions]; ///< third derivatives: what is delta_ij v_k + delta_ik v_j + delta_jk v_i
  V third[Triples];     ///< the rest of them

  /// Adds cells of mass m and moments q at center - u, where 1 + |u|^2 = 1 / w. With f(r^2) = w:
  /// f' = -w^2, f'' = 2 w^3, f''' = -6 w^4.
  HWY_INLINE void Add(V m, const V* u, V w, const V* q)
  {
    const D d;
    const V square = hn::Mul(w, w);
    const V cube = hn::Mul(square, w);
    const V fourth = hn::Mul(square, square);
    const V massCube = hn::Mul(hn::Mul(m, cube), hn::Set(d, 8.F));       // 4 m f''
    const V massFourth = hn::Mul(hn::Mul(m, fourth), hn::Set(d, -48.F)); // 8 m f'''
    const V massSquare = hn::Mul(hn::Mul(m, square), hn::Set(d, -2.F));  // 2 m f'
    const Moments<Dimensions> moments(q, u);
    const V cube4 = hn::Mul(cube, hn::Set(d, 4.F)); // 2 f''
    this->value = hn::MulAdd(m, w, this->value);
    this->value = hn::NegMulAdd(square, moments.trace, this->value);
    this->value = hn::MulAdd(cube4, moments.form, this->value);
    // 2 m f' + 2 f'' trace + 4 f''' form
    const V along = hn::MulAdd(hn::Mul(fourth, hn::Set(d, -24.F)), moments.form,
      hn::MulAdd(cube4, moments.trace, massSquare));
    const V cube8 = hn::Add(cube4, cube4);
    this->trace = hn::Add(this->trace, massSquare);
    std::size_t pair = 0;
    std::size_t triple = 0;
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      this->gradient[i] = hn::MulAdd(along, u[i], this->gradient[i]);
      this->gradient[i] = hn::MulAdd(cube8, moments.product[i], this->gradient[i]);
      const V ofMass = hn::Mul(massCube, u[i]);
      this->vector[i] = hn::Add(this->vector[i], ofMass);
      const V ofThird = hn::Mul(massFourth, u[i]);
      for (std::size_t j = i; j < Dimensions; ++j, ++pair)
      {
        this->second[pair] = hn::MulAdd(ofMass, u[j], this->second[pair]);
        const V both = hn::Mul(ofThird, u[j]);
        for (std::size_t k = j; k < Dimensions; ++k, ++triple)
        {
          this->third[triple] = hn::MulAdd(both, u[k], this->third[triple]);
        }
      }
    }
  }
};

/// The sums of the lanes of an Expansion, in full: third derivatives of all triples i <= j <= k.
template<std::size_t Dimensions>
struct Derivatives
{
  using Sums = Expansion<Dimensions>;
  float value;
  float gradient[Dimensions];
  float second[Sums::Pairs];
  float third[Sums::Triples];

  explicit Derivatives(const Sums& sums)
  {
    this->value = Sum(sums.value);
    const float trace = Sum(sums.trace);
    std::size_t pair = 0;
    std::size_t triple = 0;
    float vector[Dimensions];
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      this->gradient[i] = Sum(sums.gradient[i]);
      vector[i] = Sum(sums.vector[i]);
    }
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      for (std::size_t j = i; j < Dimensions; ++j, ++pair)
      {
        this->second[pair] = Sum(sums.second[pair]) + (i == j ? trace : 0);
        for (std::size_t k = j; k < Dimensions; ++k, ++triple)
        {
          this->third[triple] = Sum(sums.third[triple]) + (i == j ? vector[k] : 0) +
                                (i == k ? vector[j] : 0) + (j == k ? vector[i] : 0);
        }
      }
    }
  }

private:
  static float Sum(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }
};

/// Sums for the points of a group, a lane each.
template<std::size_t Dimensions>
struct GroupSums
{
  static constexpr std::size_t Vectors = RepulsionGroup / LaneCount;
  V at[Dimensions][Vectors];
  V force[Dimensions][Vectors];
  V value[Vectors];

  HWY_INLINE explicit GroupSums(const RepulsionCells& cells, std::size_t first)
  {
    const D d;
    for (std::size_t v = 0; v < Vectors; ++v)
    {
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        this->at[i][v] = hn::LoadU(d, cells.coordinates + i * cells.padded + first + v * LaneCount);
        this->force[i][v] = hn::Zero(d);
      }
      this->value[v] = hn::Zero(d);
    }
  }

  /// Adds the points of cells, one by one.
  HWY_INLINE void AddPoints(
    const RepulsionCells& cells, const std::uint32_t* direct, std::size_t count)
  {
    const D d;
    const V one = hn::Set(d, 1.F);
    GroupSums sums = *this; // which the compiler keeps in registers
    for (std::size_t c = 0; c < count; ++c)
    {
      const float* from = cells.coordinates + direct[c] * RepulsionCell;
      for (std::size_t p = 0; p < RepulsionCell; ++p)
      {
        for (std::size_t v = 0; v < Vectors; ++v)
        {
          V difference[Dimensions];
          V t = one;
          for (std::size_t i = 0; i < Dimensions; ++i)
          {
            difference[i] = hn::Sub(sums.at[i][v], hn::Set(d, from[i * cells.padded + p]));
            t = hn::MulAdd(difference[i], difference[i], t);
          }
          const V w = Inverse(t);
          const V square = hn::Mul(w, w);
          sums.value[v] = hn::Add(sums.value[v], w);
          for (std::size_t i = 0; i < Dimensions; ++i)
          {
            sums.force[i][v] = hn::MulAdd(square, difference[i], sums.force[i][v]);
          }
        }
      }
    }
    *this = sums;
  }

  /// Adds cells by their masses and moments.
  HWY_INLINE void AddCells(
    const RepulsionCells& cells, const std::uint32_t* seen, std::size_t count)
  {
    constexpr std::size_t pairs = Expansion<Dimensions>::Pairs;
    const D d;
    const V one = hn::Set(d, 1.F);
    const std::size_t padded = cells.levels[0].padded;
    GroupSums sums = *this;
    for (std::size_t c = 0; c < count; ++c)
    {
      const float* from = cells.levels[0].values + seen[c];
      const V mass = hn::Set(d, from[Dimensions * padded]);
      V q[pairs];
      for (std::size_t i = 0; i < pairs; ++i)
      {
        q[i] = hn::Set(d, from[(Dimensions + 2 + i) * padded]);
      }
      for (std::size_t v = 0; v < Vectors; ++v)
      {
        V u[Dimensions];
        V t = one;
        for (std::size_t i = 0; i < Dimensions; ++i)
        {
          u[i] = hn::Sub(sums.at[i][v], hn::Set(d, from[i * padded]));
          t = hn::MulAdd(u[i], u[i], t);
        }
        const Moments<Dimensions> moments(q, u);
        const V w = Inverse(t);
        const V square = hn::Mul(w, w);
        // m w + f' trace + 2 f'' form, and -1/2 of its gradient.
        const V cube4 = hn::Mul(hn::Mul(square, w), hn::Set(d, 4.F));
        const V ofMass = hn::MulAdd(mass, w, sums.value[v]);
        sums.value[v] =
          hn::MulAdd(cube4, moments.form, hn::NegMulAdd(square, moments.trace, ofMass));
        V along = hn::Mul(hn::Mul(square, square), hn::Mul(moments.form, hn::Set(d, 12.F)));
        along = hn::MulAdd(mass, square, along);
        along = hn::NegMulAdd(hn::Mul(cube4, hn::Set(d, 0.5F)), moments.trace, along);
        for (std::size_t i = 0; i < Dimensions; ++i)
        {
          sums.force[i][v] =
            hn::NegMulAdd(cube4, moments.product[i], hn::MulAdd(along, u[i], sums.force[i][v]));
        }
      }
    }
    *this = sums;
  }

  /// Adds what an expansion about `center` gives. The force is -1/2 of the gradient of the sum of
  /// w.
  HWY_INLINE void AddExpansion(const Derivatives<Dimensions>& sums, const float* center)
  {
    const D d;
    for (std::size_t v = 0; v < Vectors; ++v)
    {
      V delta[Dimensions];
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        delta[i] = hn::Sub(this->at[i][v], hn::Set(d, center[i]));
      }
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        // Horner: (((third delta / 3) + second) delta / 2 + gradient) delta gives the value.
        V slope = hn::Set(d, sums.gradient[i]);
        V forValue = slope;
        for (std::size_t j = 0; j < Dimensions; ++j)
        {
          V curve = hn::Zero(d);
          for (std::size_t k = 0; k < Dimensions; ++k)
          {
            curve = hn::MulAdd(hn::Set(d, sums.third[Triple(i, j, k)]), delta[k], curve);
          }
          const V second = hn::Set(d, sums.second[Pair(i, j)]);
          slope = hn::MulAdd(hn::MulAdd(curve, hn::Set(d, 0.5F), second), delta[j], slope);
          forValue =
            hn::MulAdd(hn::MulAdd(curve, hn::Set(d, 1 / 6.F), hn::Mul(second, hn::Set(d, 0.5F))),
              delta[j], forValue);
        }
        this->force[i][v] = hn::MulAdd(slope, hn::Set(d, -0.5F), this->force[i][v]);
        this->value[v] = hn::MulAdd(forValue, delta[i], this->value[v]);
      }
      this->value[v] = hn::Add(this->value[v], hn::Set(d, sums.value));
    }
  }

private:
  static constexpr std::size_t Pair(std::size_t i, std::size_t j)
  {
    const std::size_t low = i < j ? i : j;
    const std::size_t high = i < j ? j : i;
    return low * Dimensions - (low == 0 ? 0 : low - 1) * low / 2 + high - low;
  }
  static constexpr std::size_t Triple(std::size_t i, std::size_t j, std::size_t k)
  {
    const std::size_t low = i < j ? (i < k ? i : k) : (j < k ? j : k);
    const std::size_t high = i > j ? (i > k ? i : k) : (j > k ? j : k);
    const std::size_t middle = i + j + k - low - high;
    if constexpr (Dimensions == 2)
    {
      return low + middle + high;
    }
    constexpr std::size_t first[3] = { 0, 6, 9 };
    const std::size_t size = Dimensions - low; // of the pairs with both at least `low`
    const std::size_t a = middle - low;
    return first[low] + a * size - (a == 0 ? 0 : a - 1) * a / 2 + high - middle;
  }
};

/// The center of a group and its radius about it.
template<std::size_t Dimensions>
struct GroupBounds
{
  float center[Dimensions];
  float radius;

  GroupBounds(const RepulsionCells& cells, std::size_t begin, std::size_t end)
  {
    float square = 0;
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      const float* x = cells.coordinates + i * cells.padded;
      const auto [low, high] = std::minmax_element(x + begin, x + end);
      this->center[i] = (*low + *high) / 2;
      square += (*high - this->center[i]) * (*high - this->center[i]);
    }
    this->radius = std::sqrt(square);
  }
};

/// Fans of cells that are to be looked at, and cells whose points are to be summed one by one.
struct Visits
{
  struct Fan
  {
    std::uint32_t level;
    std::uint32_t first;
  };
  Fan open[RepulsionFan * RepulsionLevels + 2];
  std::size_t opened = 0;
  std::uint32_t* cells = nullptr; ///< room for all of the smallest cells
  std::size_t summed = 0;         ///< cells at the beginning, whose points are to be summed
  std::size_t seen = 0; ///< the first of those at the end, which are to be summed as cells

  /// Adds the fans of the cells first + i where bit i is set.
  HWY_INLINE void Open(std::uint32_t level, std::size_t first, std::uint64_t bits)
  {
    for (; bits != 0; bits &= bits - 1)
    {
      const std::size_t cell = first + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits);
      this->open[this->opened++] = { level - 1, static_cast<std::uint32_t>(cell * RepulsionFan) };
    }
  }

  /// Adds the cells first + i where bit i is set in `near`; their points unless it is in `whole`.
  HWY_INLINE void Add(std::size_t first, std::uint64_t near, std::uint64_t whole)
  {
    for (; near != 0; near &= near - 1)
    {
      const std::size_t bit = hwy::Num0BitsBelowLS1Bit_Nonzero64(near);
      const std::size_t isWhole = whole >> bit & 1U;
      this->seen -= isWhole;
      this->cells[isWhole != 0 ? this->seen : this->summed] =
        static_cast<std::uint32_t>(first + bit);
      this->summed += 1 - isWhole;
    }
  }
};

template<class Mask>
HWY_INLINE std::uint64_t BitsOf(Mask mask)
{
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(D(), mask, bytes);
  return bytes[0] + 256ULL * bytes[1];
}

/// Sums the cells seen from afar, and lists the others.
template<std::size_t Dimensions>
HWY_INLINE Expansion<Dimensions> ExpandCells(
  const RepulsionCells& cells, const GroupBounds<Dimensions>& group, Visits& visits)
{
  constexpr std::size_t pairs = Expansion<Dimensions>::Pairs;
  const D d;
  const V theta2 = hn::Set(d, cells.theta * cells.theta);
  Expansion<Dimensions> far{};
  while (visits.opened > 0)
  {
    const Visits::Fan fan = visits.open[--visits.opened];
    const float* values = cells.levels[fan.level].values;
    const std::size_t padded = cells.levels[fan.level].padded;
    for (std::size_t lane = 0; lane < RepulsionFan; lane += LaneCount)
    {
      const float* from = values + fan.first + lane;
      V u[Dimensions];
      V t = hn::Set(d, Softening);
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        u[i] = hn::Sub(hn::Set(d, group.center[i]), hn::LoadU(d, from + i * padded));
        t = hn::MulAdd(u[i], u[i], t);
      }
      const V radius = hn::LoadU(d, from + (Dimensions + 1) * padded);
      const V radii = hn::Add(radius, hn::Set(d, group.radius));
      const auto isFar = hn::Lt(hn::Mul(radii, radii), hn::Mul(t, theta2));
      if (!hn::AllTrue(d, isFar))
      {
        const std::size_t first = fan.first + lane;
        const std::size_t there = cells.levels[fan.level].count;
        const std::uint64_t bits =
          BitsOf(hn::Not(isFar)) &
          ((std::uint64_t{ 1 } << std::min(there - std::min(there, first), RepulsionFan)) - 1);
        if (fan.level > 0)
        {
          visits.Open(fan.level, first, bits);
        }
        else
        {
          const V reach = hn::MulAdd(hn::Set(d, group.radius), hn::Set(d, cells.theta), radius);
          visits.Add(first, bits, BitsOf(hn::Lt(hn::Mul(reach, reach), hn::Mul(t, theta2))));
        }
      }
      V moments[pairs];
      for (std::size_t i = 0; i < pairs; ++i)
      {
        moments[i] = hn::IfThenElseZero(isFar, hn::LoadU(d, from + (Dimensions + 2 + i) * padded));
      }
      const V mass = hn::IfThenElseZero(isFar, hn::LoadU(d, from + Dimensions * padded));
      far.Add(mass, u, Inverse(hn::Add(t, hn::Set(d, 1 - Softening))), moments);
    }
  }
  return far;
}

/// Evaluates the group of points that begins with `first`, of which those before `end` are there.
/// Writes the repulsion by coordinate [dimensions, 16]. `list` has room for all of the smallest
/// cells.
template<std::size_t Dimensions>
GroupResult EvaluateGroup(
  const RepulsionCells& cells, std::size_t first, std::size_t end, std::uint32_t* list, float* out)
{
  const D d;
  const GroupBounds<Dimensions> group(cells, first, end);
  Visits visits;
  visits.cells = list;
  visits.seen = cells.levels[0].padded;
  const std::size_t top = cells.levelCount - 1;
  for (std::size_t cell = 0; cell < cells.levels[top].padded; cell += RepulsionFan)
  {
    visits.open[visits.opened++] = { static_cast<std::uint32_t>(top),
      static_cast<std::uint32_t>(cell) };
  }
  const Derivatives<Dimensions> far(ExpandCells(cells, group, visits));
  GroupSums<Dimensions> sums(cells, first);
  sums.AddPoints(cells, list, visits.summed);
  sums.AddCells(cells, list + visits.seen, cells.levels[0].padded - visits.seen);
  sums.AddExpansion(far, group.center);
  HWY_ALIGN float values[RepulsionGroup];
  for (std::size_t v = 0; v < sums.Vectors; ++v)
  {
    hn::StoreU(sums.value[v], d, values + v * LaneCount);
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      hn::StoreU(sums.force[i][v], d, out + i * RepulsionGroup + v * LaneCount);
    }
  }
  GroupResult result;
  for (std::size_t i = 0; i < end - first; ++i)
  {
    result.sum += static_cast<double>(values[i]);
  }
  result.work = 4 * visits.summed + cells.levels[0].padded - visits.seen;
  return result;
}

GroupResult EvaluateGroupOf(const RepulsionCells& cells, std::size_t dimensions, std::size_t first,
  std::size_t end, std::uint32_t* list, float* out)
{
  return (dimensions == 2 ? EvaluateGroup<2> : EvaluateGroup<3>)(cells, first, end, list, out);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(EvaluateGroupOf);

namespace
{

/// The time to order points by that to evaluate their repulsion, about.
constexpr double OrderCost = 0.15;
/// What an old order costs each time that is not seen in the work.
constexpr double LeastExcess = OrderCost / 50;
/// Coordinates of what is not there: so far that it adds nothing, without underflow.
constexpr float FarAway = 1e8F;
/// The same for cells, whose expansions have higher powers of 1 / distance.
constexpr float FarCell = 1e4F;

std::size_t RoundUp(std::size_t number, std::size_t multiple)
{
  return (number + multiple - 1) / multiple * multiple;
}

/// A cell or, without moments, a point.
template<std::size_t Dimensions>
struct Cell
{
  using Point = std::array<float, Dimensions>;
  static constexpr std::size_t Pairs = Dimensions * (Dimensions + 1) / 2;

  float mass = 0;
  Point center = {};
  Point lowest;
  Point highest;
  std::array<float, Pairs> moments = {};

  /// A cell of parts begin <= p < end.
  template<class PartOf>
  Cell(std::size_t begin, std::size_t end, const PartOf& partOf)
  {
    this->lowest.fill(2 * FarAway);
    this->highest.fill(-2 * FarAway);
    for (std::size_t p = begin; p < end; ++p)
    {
      const Cell part = partOf(p);
      this->mass += part.mass;
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        this->center[i] += part.mass * part.center[i];
        this->lowest[i] = std::min(this->lowest[i], part.lowest[i]);
        this->highest[i] = std::max(this->highest[i], part.highest[i]);
      }
    }
    for (float& value : this->center)
    {
      value /= this->mass;
    }
    for (std::size_t p = begin; p < end; ++p)
    {
      const Cell part = partOf(p);
      std::size_t pair = 0;
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        for (std::size_t j = i; j < Dimensions; ++j, ++pair)
        {
          this->moments[pair] +=
            part.mass * (part.center[i] - this->center[i]) * (part.center[j] - this->center[j]);
          this->moments[pair] += part.moments[pair];
        }
      }
    }
  }

  Cell(const float* coordinates, std::size_t padded, std::size_t point)
    : mass(1)
  {
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      this->center[i] = this->lowest[i] = this->highest[i] = coordinates[i * padded + point];
    }
  }

  Cell(const CellLevel& level, std::size_t number)
    : mass(level.Quantity(Dimensions)[number])
  {
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      this->center[i] = level.Quantity(i)[number];
      this->lowest[i] = level.lowest[i * level.padded + number];
      this->highest[i] = level.highest[i * level.padded + number];
    }
    for (std::size_t pair = 0; pair < Pairs; ++pair)
    {
      this->moments[pair] = level.Quantity(Dimensions + 2 + pair)[number];
    }
  }

  void Write(CellLevel& level, std::size_t number) const
  {
    float square = 0;
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      const float reach =
        std::max(this->highest[i] - this->center[i], this->center[i] - this->lowest[i]);
      square += reach * reach;
      level.Quantity(i)[number] = this->center[i];
      level.lowest[i * level.padded + number] = this->lowest[i];
      level.highest[i * level.padded + number] = this->highest[i];
    }
    level.Quantity(Dimensions)[number] = this->mass;
    level.Quantity(Dimensions + 1)[number] = std::sqrt(square);
    for (std::size_t pair = 0; pair < Pairs; ++pair)
    {
      level.Quantity(Dimensions + 2 + pair)[number] = this->moments[pair];
    }
  }
};

/// Writes cells of `fan` parts each to a level.
template<std::size_t Dimensions, class PartOf>
void BuildLevel(std::size_t parts, std::size_t fan, const PartOf& partOf, CellLevel& level)
{
  for (std::size_t cell = 0; cell * fan < parts; ++cell)
  {
    Cell<Dimensions>(cell * fan, std::min((cell + 1) * fan, parts), partOf).Write(level, cell);
  }
}

template<std::size_t Dimensions>
void BuildLevels(const std::vector<float>& coordinates, std::size_t padded, std::size_t count,
  std::vector<CellLevel>& levels)
{
  BuildLevel<Dimensions>(
    count, RepulsionCell, [&](std::size_t point)
    { return Cell<Dimensions>(coordinates.data(), padded, point); }, levels[0]);
  for (std::size_t level = 1; level < levels.size(); ++level)
  {
    const CellLevel& parts = levels[level - 1];
    BuildLevel<Dimensions>(
      parts.count, RepulsionFan,
      [&parts](std::size_t part) { return Cell<Dimensions>(parts, part); }, levels[level]);
  }
}

}

Repulsion::Repulsion(int dimensions, std::int64_t count, std::int64_t stride, double theta)
  : Dimensions(dimensions)
  , Count(count)
  , Stride(stride)
  , Theta(theta)
  , Padded(RoundUp(this->Count, RepulsionCell * RepulsionFan))
{
  InitializeTarget();
  this->Coordinates.assign(this->Dimensions * this->Padded, FarAway);
  this->Results.resize((this->Count + RepulsionGroup - 1) / RepulsionGroup);
  const std::size_t quantities =
    this->Dimensions + 2 + this->Dimensions * (this->Dimensions + 1) / 2;
  std::size_t cells = (this->Count + RepulsionCell - 1) / RepulsionCell;
  while (true)
  {
    CellLevel level;
    level.count = cells;
    level.padded = RoundUp(cells, RepulsionFan);
    level.values.assign(quantities * level.padded, 0);
    std::fill_n(level.values.begin(), this->Dimensions * level.padded, FarCell);
    level.lowest.resize(this->Dimensions * level.padded);
    level.highest.resize(level.lowest.size());
    this->Levels.push_back(std::move(level));
    if (cells <= 2 * RepulsionFan)
    {
      return;
    }
    cells = (cells + RepulsionFan - 1) / RepulsionFan;
  }
}

double Repulsion::Evaluate(const float* points, int threads, float* repulsion)
{
  const bool isOld = this->Excess > OrderCost;
  if (this->Order.empty() || isOld)
  {
    this->Order = CurveOrder(points, static_cast<std::int64_t>(this->Count),
      static_cast<int>(this->Dimensions), static_cast<std::int64_t>(this->Stride));
    this->Excess = 0;
    this->WorkAtFirst = 0;
  }
  this->BuildCells(points);
  this->EvaluateGroups(threads, repulsion);
  double sum = -static_cast<double>(this->Count); // of each point with itself
  std::uint64_t work = 0;
  for (const GroupResult& result : this->Results)
  {
    sum += result.sum;
    work += result.work;
  }
  this->WorkAtFirst = this->WorkAtFirst == 0 ? work + 1 : std::min(this->WorkAtFirst, work + 1);
  this->Excess +=
    static_cast<double>(work) / static_cast<double>(this->WorkAtFirst) - 1 + LeastExcess;
  return sum;
}

void Repulsion::BuildCells(const float* points)
{
  for (std::size_t p = 0; p < this->Count; ++p)
  {
    const float* from = points + this->Order[p] * this->Stride;
    for (std::size_t i = 0; i < this->Dimensions; ++i)
    {
      this->Coordinates[i * this->Padded + p] = from[i];
    }
  }
  (this->Dimensions == 2 ? BuildLevels<2> : BuildLevels<3>)(this->Coordinates, this->Padded,
    this->Count, this->Levels);
}

void Repulsion::EvaluateGroups(int threads, float* repulsion)
{
  RepulsionCells cells = { this->Coordinates.data(), this->Padded, {}, this->Levels.size(),
    static_cast<float>(0.7 * this->Theta) };
  for (std::size_t level = 0; level < this->Levels.size(); ++level)
  {
    const CellLevel& cellLevel = this->Levels[level];
    cells.levels[level] = { cellLevel.values.data(), cellLevel.padded, cellLevel.count };
  }
  constexpr std::int64_t groupsAtOnce = 64;
  ForBlocks(this->Results.size(), groupsAtOnce, threads,
    [&](std::int64_t begin, std::int64_t end)
    {
      static thread_local std::vector<std::uint32_t> list;
      list.resize(this->Padded / RepulsionCell);
      for (std::int64_t group = begin; group < end; ++group)
      {
        const std::size_t first = ToIndex(group) * RepulsionGroup;
        const std::size_t last = std::min(first + RepulsionGroup, this->Count);
        float sums[3 * RepulsionGroup];
        this->Results[group] = HWY_DYNAMIC_DISPATCH(EvaluateGroupOf)(
          cells, this->Dimensions, first, last, list.data(), sums);
        for (std::size_t p = first; p < last; ++p)
        {
          float* to = repulsion + this->Order[p] * this->Stride;
          for (std::size_t i = 0; i < this->Dimensions; ++i)
          {
            to[i] = sums[i * RepulsionGroup + p - first];
          }
        }
      }
    });
}

}

#endif
