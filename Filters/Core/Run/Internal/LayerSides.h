#pragma once

#include "PackedSequences.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"

#include <vector>

namespace atlas
{

/// What a run has beside its residual stream: for each layer a vector of the token and of its
/// embedding, and further residual streams (Gemma 3n and 4).
///
/// The input of layer l [p = layerInput] at a token is (norm(x W_l d^-1/2) + e_l sqrt(p)) / sqrt(2)
/// with the embedding x [d = d_model] of the token, scaled, and its row e_l of layerTokens.
///
/// Of K residual streams the first one begins as x, and each of the others as a map of x that is as
/// long as x. At the end the others are mapped once more and made as long as the first, and the
/// mean of all is normalized and unembedded.
class RunSides
{
public:
  /// Both must outlive this object.
  RunSides(const TransformerConfig& config, const TransformerWeights& weights);

  /// Begins with the embeddings `x` [rows to run, d_model], which become the active stream.
  void Begin(
    const TransformerInput& input, const PackedSequences& sequences, float* x, int threads);

  /// Writes the inputs [count, layerInput] of a layer at rows from `first` on, counted from the
  /// first one to run.
  void GetInputs(
    std::int64_t layer, std::int64_t first, std::int64_t count, float* to, int threads) const;

  /// A stream that is not the active one, from row `first` on.
  float* Stream(std::int64_t stream, std::int64_t first)
  {
    return this->Streams[stream].data() + first * this->Config.modelDimension;
  }

  /// Replaces the active stream `x` [rows to run, d_model] by what the unembedding reads.
  void Finish(float* x, int threads) const;

  /// An upper bound on the floats that an object for `rows` rows needs.
  static std::int64_t Floats(const TransformerConfig& config, std::int64_t rows);

private:
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  std::vector<float> Embeddings;           ///< [rows, d_model]
  std::vector<std::int64_t> Tokens;        ///< [rows]
  std::vector<std::vector<float>> Streams; ///< [K], [rows, d_model]; that of the active one is
                                           ///< empty

  std::int64_t Rows() const { return this->Embeddings.size() / this->Config.modelDimension; }
  void MapStream(
    const LinearTensors& map, const float* from, const float* like, float* to, int threads) const;
};

/// The part of a run that a group of rows is.
struct SideRows
{
  RunSides* run = nullptr;
  std::int64_t first = 0; ///< row, counted from the first one to run
};

/// Temporary values for the rows of a group.
struct SideWorkspace
{
  std::vector<float> predicted; ///< [rows, d_model], the active stream behind Predict
  std::vector<float> lowRank;   ///< [rows, d_model]
};

/// What a layer does with these (Baykal et al. 2023: AltUp; Gemma 3n; Gemma 4).
class LayerSides
{
public:
  /// The configuration must outlive this object. `layer` is the index of the layer.
  LayerSides(const TransformerConfig& config, const LayerSideTensors& tensors, std::int64_t layer);

  /// Before the layer: each stream becomes a combination of all, with factors that depend on the
  /// active one, x [rows, d_model].
  void Predict(
    const SideRows& rows, std::int64_t count, float* x, SideWorkspace& work, int threads) const;

  /// Keeps what the low-rank map makes of the input of the attention [rows, d_model].
  void ReadAttentionInput(
    std::int64_t count, const float* normed, SideWorkspace& work, int threads) const;

  /// Behind the attention: adds what was kept.
  void AddLowRank(std::int64_t count, float* x, const SideWorkspace& work, int threads) const;

  /// Behind the MLP: changes all streams by what the layer changed in the active one, and adds what
  /// it makes of its own input.
  void Correct(const SideRows& rows, std::int64_t count, float* x, const SideWorkspace& work,
    int threads) const;

private:
  const TransformerConfig& Config;
  std::int64_t Layer;
  Linear InputGate;
  Linear InputProjection;
  TransformerNorm InputNorm;
  float Factor = 1;
  Linear Router;
  TransformerNorm RouterNorm;
  Linear Prediction;
  Linear Correction;
  FloatValues ActiveScale;
  Linear LaurelIn;
  Linear LaurelOut;
  TransformerNorm LaurelNorm;

  std::vector<float> Route(std::int64_t count, const float* x, int threads) const;
  void AddInput(const SideRows& rows, std::int64_t count, float* x, int threads) const;
};

}
