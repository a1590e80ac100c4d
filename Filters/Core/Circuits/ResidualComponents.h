#pragma once

#include "Recording/Recording.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace atlas
{

/// What adds a vector to the residual stream of a transformer (Elhage et al., "A Mathematical
/// Framework for Transformer Circuits", 2021).
enum class ComponentKind
{
  Embedding, ///< of the token, after its normalization if the model has one
  Position,  ///< its learned position
  Head,      ///< what a head writes: its mixed values times W_O
  Bias,      ///< the output bias of a layer's attention
  Mlp,       ///< of a layer, with its bias
  Mixer      ///< what a layer adds in place of attention
};

struct ResidualComponent
{
  ComponentKind kind = ComponentKind::Embedding;
  std::int32_t layer = -1; ///< -1 for the embeddings
  std::int32_t head = -1;  ///< -1 but for heads
};

/// "embed", "pos", "head 0.1" (layer and head), "bias 0", "mlp 0" or "mixer 0".
std::string NameOf(const ResidualComponent& component);

/// Throws OptionError for a recording of a run with interventions after which the stream is no sum
/// of its components, or their biases are not those of the weights: residual streams that were
/// replaced, the MLP of the last layer, which is not recorded; and, if weights are processed, heads
/// set to zero, in which the biases of values are not written.
void RequireUnpatched(const Recording& recording, const TransformerConfig& config, bool processes,
  const std::string& what);

/// The components of the residual stream before a layer, 0 <= layer <= L, or after the last one for
/// L: embedding, position if the model adds one, then for each layer its heads and bias, or what is
/// in their place, and MLP, if there is one.
std::vector<ResidualComponent> ComponentsBefore(
  const TransformerConfig& config, std::int64_t layer);

/// A term of a sum: a component of the residual stream, or something else with a name of its own.
struct NamedComponent
{
  std::string name;
  ResidualComponent component;
  bool isOfStream = true;
};

/// ComponentsBefore(layer) with their names.
std::vector<NamedComponent> NamedComponentsBefore(
  const TransformerConfig& config, std::int64_t layer);

/// How the terms of a sum are shown.
enum class ComponentGrouping
{
  Automatic, ///< Heads for up to 40 terms, otherwise Layers
  Heads,     ///< each component
  Layers     ///< the attention of a layer, its heads and bias together, is "attn 0"
};

/// Which of the shown terms each term belongs to.
struct ComponentGroups
{
  std::vector<std::int64_t> groupOf; ///< per term
  std::vector<NamedComponent> groups;

  ComponentGroups(const std::vector<NamedComponent>& terms, ComponentGrouping grouping);
};

/// Throws ModelError if normalizations come after sublayers, as in BERT: the residual stream is
/// then no sum of components.
void RequireSum(const TransformerConfig& config);

/// What a model adds to the residual stream whatever the tokens are. Reads the attention of all
/// layers once and holds about L (H + 1) d_model numbers and the positions.
///
/// With processed weights the biases of values, which attention does not change as it adds up to 1,
/// belong to the bias of the layer; with stored weights, to the heads. With LayerNorm, vectors are
/// known up to their mean, which every normalization subtracts.
class ResidualWeights
{
public:
  /// Uses the weights as long as this object exists. Throws as RequireSum. `threads`: see
  /// ThreadCount.
  explicit ResidualWeights(const ProcessedWeights& weights, int threads = 0);

  const ProcessedWeights& GetWeights() const { return this->Weights; }
  const TransformerConfig& GetConfig() const { return this->Weights.GetModel().GetConfig(); }

  /// W_pos [positions, d_model]; empty without such an embedding.
  const DoubleMatrix& Positions() const { return this->PositionVectors; }

  /// By how much the recorded output of each head of a layer exceeds its component [H, d_model].
  const DoubleMatrix& ValueBiases(std::int64_t layer) const { return this->Written[layer]; }

  /// The bias of the attention of a layer [d_model].
  const Eigen::RowVectorXd& Bias(std::int64_t layer) const { return this->Biases[layer]; }

private:
  const ProcessedWeights& Weights;
  DoubleMatrix PositionVectors;
  std::vector<DoubleMatrix> Written;
  std::vector<Eigen::RowVectorXd> Biases;
};

/// Throws OptionError unless a recording has what ComponentVectors reads: the residual stream
/// before the layers 0 ... min(layer, L - 1), and the outputs of all heads before `layer`. The
/// message says what to record and begins with `what`.
void RequireComponents(const Recording& recording, const TransformerConfig& config,
  std::int64_t layer, const std::string& what);

/// What layers without attention add in its place, which is not recorded but follows from the
/// residual streams of a sequence. Holds up to 64 MB, or one call of Find if that is more.
class KeptMixers
{
public:
  /// Computes it for these rows, of one recording and model, where it is not known.
  void Find(const Recording& recording, const Transformer& model,
    const std::vector<std::int64_t>& rows, int threads = 0);

  /// The vector of a layer at a row that was found.
  Eigen::RowVectorXd At(std::int64_t row, std::int64_t layer) const;

private:
  std::map<std::pair<std::int64_t, std::int64_t>, Eigen::RowVectorXf> Known; ///< by row and layer
};

/// The outputs of the MLP of the last layer [rows, d_model] at these rows of a recording, computed
/// from its input, since not every recording has the residual stream after it. Empty if the model
/// has no MLP. Runs on up to ThreadCount(threads) threads, whose number changes no value.
DoubleMatrix LastMlpOutputs(const Recording& recording, const ResidualWeights& weights,
  const std::vector<std::int64_t>& rows, int threads = 0, const KeptMixers& mixers = {});

/// Outputs of the MLP of the last layer that are kept, so that the weights are not read for every
/// view of another token. Holds up to 64 MB, or one call of Find if that is more; and KeptMixers.
class LastMlps
{
public:
  /// Computes the outputs at these rows that are not known. Throws as LastMlpOutputs.
  void Find(const Recording& recording, const ResidualWeights& weights,
    const std::vector<std::int64_t>& rows, int threads = 0);

  /// The output [d_model] at a row that was found; nullptr if the model has no MLP.
  const double* At(std::int64_t row) const;

  const KeptMixers& GetMixers() const { return this->Mixers; }

private:
  std::map<std::int64_t, Eigen::RowVectorXd> Known;
  KeptMixers Mixers;
};

/// The vectors of ComponentsBefore(layer) at a row of the recording [components, d_model]. Their
/// sum is the residual stream. The embedding is what the stream begins with, minus the position,
/// and an MLP is what the stream gains in its layer beyond heads and bias. For layer = L of a model
/// with MLPs, `lastMlp` points to the row of LastMlpOutputs, as LastMlps does. Of a model of which
/// some layers have no attention, `mixers` has the row.
DoubleMatrix ComponentVectors(const Recording& recording, const ResidualWeights& weights,
  std::int64_t row, std::int64_t layer, const double* lastMlp = nullptr,
  const KeptMixers& mixers = {});

/// A row of a recorded matrix in double precision.
Eigen::RowVectorXd RowOf(const SharedMatrix& matrix, std::int64_t row);

/// The position of the token at a row of a recording. Throws OptionError unless the model has an
/// embedding of it: unless it is from 0 to count - 1.
std::int64_t PositionAt(const Recording& recording, std::int64_t row, std::int64_t count);

/// Throws FileError if a file that a recording is mapped from was truncated or changed: call it
/// after reading.
void RequireIntactRecording(const Recording& recording);

}
