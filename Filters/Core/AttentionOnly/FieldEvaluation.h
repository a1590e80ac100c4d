#pragma once

#include "AttentionEvaluation.h"
#include "FieldArrays.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace atlas
{

struct FieldModel;

/// Evaluates a model at many points of the torus in single precision, using the kernels of
/// FieldKernel.cxx and the best instruction set of the machine (InstructionSets.h).
///
/// The evaluating methods are const and may run concurrently on disjoint points. The value at a
/// point depends only on the point, not on the range it is evaluated with. Results are therefore
/// equal to the byte for any number of threads and ranks and any extent, and EvaluateRow and
/// EvaluatePoints agree.
class FieldEvaluator
{
public:
  /// Throws OptionError as CheckOptions does and for Residual::RawEmbedding. Throws ModelError if
  /// the model's weights are too large for single precision.
  FieldEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options);

  /// Sets the angles theta_1 of the columns of EvaluateRow, in radians.
  void SetColumns(const std::vector<double>& theta1);

  /// Evaluates the points (theta1[i], theta2) of all columns i and writes each at index offset + i.
  void EvaluateRow(double theta2, const FieldArrays& arrays, std::size_t offset) const;

  /// Evaluates the points (theta1[i], theta2[i]) for begin <= i < end and writes each at index i.
  void EvaluatePoints(const double* theta1, const double* theta2, std::size_t begin,
    std::size_t end, const FieldArrays& arrays) const;

private:
  std::shared_ptr<const FieldModel> Model;
  std::size_t ColumnCount = 0;
  std::vector<float> Cosines; ///< of the columns' embeddings, padded to whole groups
  std::vector<float> Sines;
};

}
