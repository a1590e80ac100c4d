#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// The points of a target group, which share the cells that they see from afar: all sums of a group
/// are done together.
inline constexpr std::size_t RepulsionGroup = 16;
/// Points of the smallest cells.
inline constexpr std::size_t RepulsionCell = 8;
/// Cells of one level that make up one of the next.
inline constexpr std::size_t RepulsionFan = 16;

/// The largest number of levels of cells, enough for 2^32 points.
inline constexpr std::size_t RepulsionLevels = 8;

/// One level of cells, in the order of the points: an array per quantity, padded to whole fans with
/// cells without mass that are far away.
struct CellLevel
{
  std::size_t count = 0;
  std::size_t padded = 0;
  std::vector<float> values;          ///< [quantities, padded]
  std::vector<float> lowest, highest; ///< [dimensions, padded]: bounding box

  /// Quantity `index`: center of mass by coordinate, then mass, radius, and the second moments (xx,
  /// xy, yy, or xx, xy, xz, yy, yz, zz) of the mass about the center.
  float* Quantity(std::size_t index) { return this->values.data() + index * this->padded; }
  const float* Quantity(std::size_t index) const
  {
    return this->values.data() + index * this->padded;
  }
};

/// What is known of a group when its repulsion was evaluated.
struct GroupResult
{
  double sum = 0;         ///< of w over its points and all points, each with itself too
  std::uint64_t work = 0; ///< of pairs not seen from afar, in any unit
};

/// The repulsion of t-SNE in 2-D or 3-D, sum_j w_ij^2 (y_i - y_j) with w_ij = 1 / (1 + |y_i -
/// y_j|^2), and sum_ij w_ij, i != j.
///
/// Barnes and Hut (1986) over cells of consecutive points of a space-filling curve: 8 points each,
/// and then 16 cells each. A cell of radius R is seen from afar by a group of 16 points of radius
/// G, at a distance D of their centers, if R + G < 0.7 theta sqrt(D^2 + 0.1): then the sum of w
/// over the cell is expanded in both, up to its third derivatives, with the cell's second moments.
/// All other pairs are summed one by one. With theta = 0.5 the relative error (root mean square) is
/// below 3e-3.
class Repulsion
{
public:
  /// Points are [count, stride] with `dimensions` coordinates each.
  Repulsion(int dimensions, std::int64_t count, std::int64_t stride, double theta);

  /// Forgets the order of the points, as they were renumbered.
  void Forget() { this->Order.clear(); }

  /// Writes the repulsion [count, stride]. Returns sum_ij w_ij. Points are ordered anew when it
  /// pays, so that layouts should follow each other. Bytes do not depend on `threads`.
  double Evaluate(const float* points, int threads, float* repulsion);

private:
  std::size_t Dimensions;
  std::size_t Count;
  std::size_t Stride;
  double Theta;
  std::vector<std::uint32_t> Order; ///< which matters to the speed alone
  double Excess = 0;                ///< work in vain since the points were ordered, in evaluations
  std::uint64_t WorkAtFirst = 0;    ///< of one evaluation after that
  std::size_t Padded;               ///< number of points in whole fans of cells
  std::vector<float> Coordinates;   ///< [dimensions, Padded], in order
  std::vector<CellLevel> Levels;    ///< the smallest cells first
  std::vector<GroupResult> Results;

  void BuildCells(const float* points);
  void EvaluateGroups(int threads, float* repulsion);
};

/// What the kernel needs of a Repulsion.
struct RepulsionCells
{
  struct Level
  {
    const float* values; ///< as in CellLevel
    std::size_t padded;
    std::size_t count;
  };
  const float* coordinates; ///< [dimensions, padded]
  std::size_t padded;
  Level levels[RepulsionLevels];
  std::size_t levelCount;
  float theta;
};

}
