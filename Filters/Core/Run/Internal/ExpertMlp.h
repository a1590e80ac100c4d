#pragma once

// Internal to Core.

#include "PackedSequences.h"
#include "TransformerWeights.h"

namespace atlas
{

/// The MLPs of a layer between which a router chooses (gpt-oss; OpenAI 2025). Of the scores of all
/// experts at a token, the largest `expertsPerToken` are kept, the first of equal ones; their
/// softmax weighs the outputs of their experts. An expert with inputs x computes
/// ((u + 1) g / (1 + exp(-1.702 g))) W_out + b_out, where gate g and linear part u are the even and
/// odd outputs of x W_in + b_in, g limited to `expertLimit` from above, u from both sides.
///
/// The weights of one expert at a time are widened to single precision.
class ExpertMlp
{
public:
  /// Both arguments must outlive this object.
  ExpertMlp(const TransformerConfig& config, const ExpertTensors& tensors)
    : Config(config)
    , Tensors(tensors)
  {
  }

  /// Adds the outputs for the rows `from` [rows, d_model] of a group to `to` [rows, d_model]. Runs
  /// in parallel.
  void Add(const RowGroup& group, const float* from, float* to, int threads) const;

  /// An upper bound on the floats that Add allocates for groups of `rows` rows.
  static std::int64_t WorkingFloats(const TransformerConfig& config, std::int64_t rows);

private:
  /// The rows of a group that an expert is chosen for.
  struct Chosen
  {
    std::vector<std::int64_t> rows;
    std::vector<float> weights;
    std::vector<std::int64_t> counts; ///< of each sequence
  };

  const TransformerConfig& Config;
  const ExpertTensors& Tensors;

  std::vector<Chosen> Choose(const RowGroup& group, const float* from, int threads) const;
  void AddExpert(
    std::size_t expert, const Chosen& chosen, const float* from, float* to, int threads) const;
};

/// The memory that ExpertMlp allocates for widened weights, in bytes.
std::uint64_t WidenedBytes(const ExpertTensors& tensors);

}
