#pragma once

#include "AttentionEvaluation.h"
#include "ClassPalette.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// Where the quantities of many points go, in single precision. Each pointer is the start of an
/// array over all points, with the given number of components per point; nullptr, or an empty list,
/// means that the quantity is not wanted and is not computed for its own sake.
struct FieldArrays
{
  std::int32_t* predicted = nullptr;  ///< 1: argmax of the logits, the lowest index on a tie
  float* probability = nullptr;       ///< 1: softmax(logits) of the predicted class
  std::uint8_t* classColor = nullptr; ///< 3: its colour, faded to white at chance (ClassPalette.h)
  float* logits = nullptr;            ///< N
  float* output = nullptr;            ///< 3: r
  std::vector<float*> score;          ///< 1, per head
  std::vector<float*> attention;      ///< 1, per head
  std::vector<float*> wordMix;        ///< 3, per head
  std::vector<float*> positionMix;    ///< 3, per head
  std::vector<float*> mix;            ///< 3, per head
  std::vector<float*> headOutput;     ///< 3, per head
};

/// Evaluates a model at many points of the torus in float, in the arithmetic of ReferenceEvaluator.
///
/// This is the place to make fast: everything that is evaluated over a chart or over points goes
/// through EvaluateBlock in FieldEvaluation.cxx. All methods are const and may run concurrently on
/// disjoint points. The value at a point depends on nothing but the point: not on the range that it
/// is evaluated with, so that results are equal to the byte for every thread, rank and extent.
class FieldEvaluator
{
public:
  /// Throws OptionError as CheckOptions does, or for Residual::RawEmbedding, and ModelError if the
  /// model's weights are too large for single precision.
  FieldEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options);

  /// Sets the angles theta_1, in radians, that EvaluateRow uses as its columns.
  void SetColumns(const std::vector<double>& theta1);

  /// The points (theta1[i], theta2), written at index offset + i.
  void EvaluateRow(double theta2, const FieldArrays& arrays, std::size_t offset) const;

  /// The points (theta1[i], theta2[i]) for begin <= i < end, written at index i.
  void EvaluatePoints(const double* theta1, const double* theta2, std::size_t begin,
    std::size_t end, const FieldArrays& arrays) const;

  /// Points are evaluated in blocks of this many.
  static constexpr std::size_t BlockSize = 64;
  using Lanes = Eigen::Array<float, BlockSize, 1>;
  using Lanes3 = std::array<Lanes, 3>;

private:
  struct Head
  {
    Eigen::Matrix3d scoreForm;  ///< W_QK
    Eigen::Matrix3f outputForm; ///< W_O W_V
    float weight;               ///< w_h
  };

  EvaluationOptions Options;
  std::vector<Head> Heads;
  std::vector<Rgb> Colors; ///< of the classes
  Eigen::Matrix<float, Eigen::Dynamic, 3, Eigen::RowMajor> Unembedding;
  Eigen::Vector3d Position1;
  Eigen::Vector3d Position2;
  std::size_t ColumnCount = 0;
  std::vector<Lanes3, Eigen::aligned_allocator<Lanes3>> Columns; ///< e_1 in blocks, padded

  template<class Second>
  void EvaluateBlock(const Lanes3& e1, const Second& second, const FieldArrays& arrays,
    std::size_t offset, std::size_t count) const;
  void EvaluateClasses(
    const Lanes3& r, const FieldArrays& arrays, std::size_t offset, std::size_t count) const;
  void CheckMagnitude(const AttentionOnlyModel& model) const;
};

}
