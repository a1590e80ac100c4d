#pragma once

#include "Base/Progress.h"
#include "HeadComposition.h"
#include "Recording/Recording.h"
#include "Weights/ProcessedWeights.h"

#include <vector>

namespace atlas
{

/// Between which spaces virtual weights map.
enum class VirtualSpace
{
  Heads,        ///< from components of the first head to those of the second, [d_head, d_head]:
                ///< W_O1 W_Q2, W_O1 W_K2 or W_O1 W_V2
  HeadToStream, ///< from components of the first head to the residual stream as the second uses it,
                ///< [d_head, d_model]: W_O1 W_Q2 W_K2^T, W_O1 W_K2 W_Q2^T or W_O1 W_V2 W_O2
  Streams       ///< all the way, [d_model, d_model]: W_V1 W_O1 before that. For values this is the
                ///< OV circuit of the virtual head (Elhage et al. 2021)
};

struct VirtualWeightsOptions
{
  HeadPlace from;                              ///< the head that writes
  HeadPlace to;                                ///< the head that reads, of a later layer
  CompositionKind kind = CompositionKind::Key; ///< what of it reads
  VirtualSpace space = VirtualSpace::Heads;
  WeightSteps steps = WeightSteps::TransformerLens;
  int threads = 0;
  Progress progress;
};

struct VirtualWeights
{
  DoubleMatrix product;
  std::vector<double> singularValues; ///< [d_head], falling; below 1e-8 of the largest they are
                                      ///< rounding
  double score = 0;                   ///< of composition, 0 to 1 (FindHeadComposition)
};

/// The weights through which a head reads what an earlier one writes: the product of their
/// matrices, without biases, rotation, normalizations that divide, and what MLPs do in between.
/// Scores are not divided by sqrt(d_head). Throws OptionError for a layer or head that is not there
/// or if the first head is not of an earlier layer, ModelError for weights that cannot be processed
/// or are not finite, and FileError if files were changed.
VirtualWeights FindVirtualWeights(const Transformer& model, const VirtualWeightsOptions& options);

}
