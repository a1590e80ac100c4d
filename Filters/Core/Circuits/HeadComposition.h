#pragma once

#include "Base/Progress.h"
#include "Weights/ProcessedWeights.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// What of a later head reads the output of an earlier one (Elhage et al. 2021).
enum class CompositionKind
{
  Query, ///< W_QK = W_Q W_K^T
  Key,   ///< W_QK^T
  Value  ///< W_OV = W_V W_O
};

/// The names of the kinds, in their order.
inline constexpr std::array<const char*, 3> CompositionKindNames = { "Q", "K", "V" };

struct HeadCompositionOptions
{
  CompositionKind kind = CompositionKind::Key;
  WeightSteps steps = WeightSteps::TransformerLens;
  int threads = 0; ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// Two heads, and how much the second composes with the first.
struct ComposedHeads
{
  std::int32_t fromLayer = 0;
  std::int32_t fromHead = 0;
  std::int32_t toLayer = 0; ///< above fromLayer
  std::int32_t toHead = 0;
  double score = 0; ///< 0 to 1
};

/// The score that is expected by chance, 1 / sqrt(d_model): the root mean square over random
/// rotations between two heads, whatever their ranks and spectra.
double CompositionBaseline(const Transformer& model);

/// The number of pairs of heads of different layers.
std::int64_t CompositionPairs(const Transformer& model);

/// How much each head composes with each head of an earlier layer, by layer and head of the first
/// and then of the second:
///
///     |W_OV1 W| / (|W_OV1| |W|),   W_OV = W_V W_O,
///
/// with Frobenius norms and W of the second head by `kind` (Elhage et al. 2021, who subtract a
/// baseline afterwards); 0 where a head has no weights. Norms of products of rank d_head are those
/// of their factors, with small roots of the outer ones: R W_O with R^T R = W_V^T W_V, likewise for
/// W. So each pair of layers is one matrix product of [H d_head, d_model] and [d_model, H d_head],
/// in single precision.
///
/// Biases, rotation, normalizations that divide, and what MLPs do in between are left out. Keeps as
/// many numbers as W_O and W_Q of all layers have, in single precision. Throws ModelError for
/// weights that cannot be processed or are not finite, and FileError if files were changed.
std::vector<ComposedHeads> FindHeadComposition(
  const Transformer& model, const HeadCompositionOptions& options);

}
