#pragma once

// Internal to Core: the loss of a batch and its gradient, by hand.

#include "LearningMath.h"
#include "ParameterBlock.h"
#include "TrainingBatch.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace atlas
{

/// What is known of each row after the forward pass.
struct RowResults
{
  std::vector<double> loss;            ///< [rows]; 0 where there is no target
  std::vector<std::int64_t> predicted; ///< [rows], the most likely class; -1 without a target
};

/// Queries, keys and values of a layer as one matrix: W [d, (H + 2 H_kv) d_head], with its bias.
template<class Number>
struct PackedHeads
{
  std::vector<Number> weight;
  std::vector<Number> bias; ///< 0 where the model has none
};

/// What the forward pass of some sequences keeps for the backward pass.
template<class Number>
struct SublayerStore
{
  std::vector<Number> normed; ///< input of the normalization [rows, d]
  std::vector<Number> stats;  ///< [rows, 2]
  std::vector<Number> input;  ///< of the attention or the MLP [rows, d]
};

template<class Number>
struct LayerStore
{
  SublayerStore<Number> attention;
  std::vector<Number> shifted; ///< Shortformer: input plus positions [rows, d]
  std::vector<Number> heads;   ///< queries, keys and values [rows, (H + 2 H_kv) d_head]
  std::vector<Number> mixed;   ///< [rows, H d_head]
  SublayerStore<Number> mlp;
  std::vector<Number> up;     ///< [rows, m], before the activation
  std::vector<Number> gate;   ///< [rows, m], before the activation; gated MLP only
  std::vector<Number> hidden; ///< [rows, m]
};

/// Computes the loss of a batch, the mean of -log p over its targets, and its gradient.
///
/// The batch is divided into a number of shards that depends on the batch alone. Each is run
/// forward and backward by one thread, a few sequences at a time, and adds to its own gradient; the
/// gradients of the shards are then added in their order. Results are thus equal to the byte for
/// any number of threads. Attention is computed again in the backward pass and never stored.
template<class Number>
class GradientPass
{
public:
  /// `parameters` must outlive this object.
  explicit GradientPass(const ParameterBlock<Number>& parameters);
  ~GradientPass();

  /// Throws OptionError if the batch has no target, or one is not a class of the model, and as
  /// CheckInput does.
  double Loss(const TrainingBatch& batch, int threads, RowResults& rows);

  /// The same, and writes the gradient, in the layout of the parameters.
  double Gradient(const TrainingBatch& batch, int threads, Number* gradient);

private:
  class Worker;
  struct Slice;

  const ParameterBlock<Number>& Parameters;
  std::vector<PackedHeads<Number>> Heads; ///< of each layer
  std::vector<Number> Cosines;            ///< Rotary: [positions, d_head / 2]
  std::vector<Number> Sines;
  std::vector<std::unique_ptr<Worker>> Idle; ///< with their memory
  std::mutex Mutex;                          ///< guards Idle
  std::vector<std::vector<Number>> ShardGradients;

  void PackHeads();
  void PrepareRotations(std::int64_t length);
  std::vector<std::vector<Slice>> MakeShards(const TrainingBatch& batch) const;
  double Run(
    const TrainingBatch& batch, int threads, std::size_t& shards, RowResults* rows, bool backward);
  std::unique_ptr<Worker> TakeWorker();
};

extern template class GradientPass<float>;
extern template class GradientPass<double>;

}
