#pragma once

#include "AttentionEvaluation.h"
#include "FieldArrays.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace atlas
{

struct FieldModel;

/// Evaluates a model at many points of the torus in float, with the kernels of FieldKernel.cxx, in
/// the best instruction set that the machine has (InstructionSets.h).
///
/// All methods are const and may run concurrently on disjoint points. The value at a point depends
/// on nothing but the point: not on the range that it is evaluated with, so that results are equal
/// to the byte for every thread, rank and extent, and between rows and points.
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

private:
  std::shared_ptr<const FieldModel> Model;
  std::size_t ColumnCount = 0;
  std::vector<float> Cosines; ///< of the columns' embeddings, padded to whole groups
  std::vector<float> Sines;
};

}
