#pragma once

#include "PackedSequences.h"
#include "Run/Interventions.h"

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace atlas
{

/// Matrices of a layer whose values can be seen and changed during a run.
enum class ActivationPlace
{
  Residual, ///< [rows, d_model], before the layer; index L: after all layers
  Mixed,    ///< [rows, H d_value], the z of all heads, before W_O
  Hidden    ///< [rows, mlpDimension], before W_down
};

/// Called with each matrix of a layer, for the rows of a group, when it is complete.
using ActivationVisitor =
  std::function<void(ActivationPlace place, const RowGroup& group, float* values)>;

/// The columns of a matrix that are a site.
struct ActivationSlice
{
  ActivationPlace place = ActivationPlace::Mixed;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t width = 0; ///< of the matrix
};

/// In a model whose layers differ in their sizes, those of the site's layer.
ActivationSlice SliceOf(const TransformerConfig& config, const ActivationSite& site);

/// Adds the rows of a slice of a matrix [length, width] to `sums`, one per column.
void AddRows(const ActivationSlice& slice, std::int64_t length, const float* values, double* sums);

/// The number of columns of a matrix, in a model whose layers have the same.
std::int64_t WidthOf(const TransformerConfig& config, ActivationPlace place);

/// The layer of a matrix, and which it is.
using PlaceInLayer = std::pair<std::int64_t, ActivationPlace>;

/// Matrices of the run of one sequence, each [length, width].
using Activations = std::map<PlaceInLayer, std::vector<float>>;

/// The matrices of the source that interventions need.
std::set<PlaceInLayer> SourcePlaces(
  const TransformerConfig& config, const Interventions& interventions);

/// Replaces the values of a sequence at a site. `values` is the first row [length, width] of the
/// sequence in the matrix of the site. `given` is, for Source, the matrix of the source [length,
/// width] and, for MeanOverPrompts, the mean of the site [columns of the site].
void Replace(const TransformerConfig& config, const Intervention& intervention, const float* given,
  std::int64_t length, float* values);

}
