#pragma once

#include "PackedSequences.h"
#include "TransformerLinear.h"
#include "Weights/TransformerWeights.h"

namespace atlas
{

/// Where the experts of the rows of a group are written, by falling weight; nullptr: nowhere.
struct RoutingRows
{
  float* experts = nullptr; ///< [rows, expertsPerToken], their numbers
  float* weights = nullptr; ///< [rows, expertsPerToken]
  float* scores = nullptr;  ///< [rows, expertsPerToken], before the bias; nullptr without
};

/// The MLPs of a layer between which a router chooses (Shazeer et al. 2017). Of the scores of all
/// experts at a token, the largest `expertsPerToken` are kept, the first of equal ones. Their
/// outputs are weighed by the softmax of the scores, over all experts if expertWeightsOfAll, else
/// over those that are kept, so that weights add up to 1, times expertFactor. With expertGroups
/// (DeepSeek-AI 2024), only experts of the groups with the best experts may be kept. Scores may be
/// sigmoids, and a bias of each expert may be added where they are compared, see ExpertScores and
/// TransformerConfig::expertBias. Weights may be multiplied by a scale of each expert.
///
/// An expert with inputs x computes (activation(g) u) W_down, with gate g = x W_gate and linear
/// part u = x W_up; of gpt-oss (OpenAI 2025) with biases, with u + 1 in place of u, and with both
/// limited to `expertLimit`: g from above, u from both sides. With expertScalesInput the weight is
/// a factor of x, not of the output. A shared expert, if there is one, adds its output at every
/// token, times the sigmoid of a factor if it has one.
///
/// Weights are widened to single precision a block at a time, those of the router as a whole.
class ExpertMlp
{
public:
  /// Both arguments must outlive this object.
  ExpertMlp(const TransformerConfig& config, const ExpertTensors& tensors);

  /// Adds the outputs for the rows `from` [rows, d_model] of a group to `to` [rows, d_model], and
  /// writes the routing. The router reads `asked` [rows, d_model]. Runs in parallel.
  void Add(const RowGroup& group, const float* asked, const float* from, float* to,
    const RoutingRows& routing, int threads) const;

  /// An upper bound on the floats that Add allocates for groups of `rows` rows.
  static std::int64_t WorkingFloats(const TransformerConfig& config, std::int64_t rows);

private:
  /// The rows of a group that an expert is chosen for.
  struct Chosen
  {
    std::vector<std::int64_t> rows;
    std::vector<float> weights;
  };

  const TransformerConfig& Config;
  const ExpertTensors& Tensors;
  FloatValues Bias;   ///< of each expert, or nothing
  FloatValues Scales; ///< likewise
  Linear SharedGate;
  Linear SharedUp;
  Linear SharedDown;
  Linear SharedFactor;

  std::vector<double> Scores(
    const Linear& linear, std::int64_t rows, const float* from, int threads) const;
  std::vector<Chosen> Choose(
    const RowGroup& group, const float* from, const RoutingRows& routing, int threads) const;
  void AddExpert(
    std::size_t expert, const Chosen& chosen, const float* from, float* to, int threads) const;
  std::vector<float> HiddenOf(
    std::size_t expert, std::int64_t rows, const float* from, int threads) const;
  void AddShared(const RowGroup& group, const float* from, float* to, int threads) const;
};

/// The bytes that ExpertMlp allocates for widened weights: a block of columns for each of so many
/// threads, and the whole router.
std::uint64_t WidenedBytes(const ExpertTensors& tensors, int threads);

}
