#pragma once

#include "TransformerConfig.h"
#include "WeightFiles.h"

#include <string>
#include <vector>

namespace atlas
{

/// How a matrix that maps inputs to outputs is stored, row-major.
enum class WeightLayout
{
  InputOutput,    ///< [inputs, outputs]: TransformerLens, and GPT-2 of Hugging Face
  OutputInput,    ///< [outputs, inputs]: all others of Hugging Face
  HeadInputOutput ///< [H, inputs, d_head]: queries, keys and values of TransformerLens
};

/// y = x W + b. Without a weight (data nullptr) it does not exist; without a bias that is 0.
struct LinearTensors
{
  TensorView weight;
  TensorView bias; ///< [outputs]
  WeightLayout layout = WeightLayout::OutputInput;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t headFirst = 0; ///< queries, keys, values: first output of head h is
  std::int64_t headStep = 0;  ///< headFirst + h headStep

  bool Exists() const { return this->weight.data != nullptr; }
};

/// Gain and shift of a normalization [d_model]; absent ones (data nullptr) are 1 and 0.
struct NormTensors
{
  TensorView gain;
  TensorView shift;
};

struct LayerTensors
{
  NormTensors attentionNorm;
  LinearTensors query;
  LinearTensors key;
  LinearTensors value;
  LinearTensors output; ///< inputs: d_head of head 0, of head 1, ...
  NormTensors mlpNorm;
  LinearTensors gate; ///< gated MLP only
  LinearTensors up;
  LinearTensors down;
};

/// The tensors of a transformer by what they are for, whatever they were called.
struct TransformerWeights
{
  TensorView tokenEmbedding;    ///< [vocabulary, d_model]
  TensorView positionEmbedding; ///< [positions or more, d_model]
  TensorView segmentEmbedding;  ///< [segments, d_model]
  LinearTensors patchEmbedding; ///< inputs: channel, row, column of a patch
  TensorView classToken;        ///< d_model values
  NormTensors embeddingNorm;
  std::vector<LayerTensors> layers;
  NormTensors finalNorm;
  LinearTensors logitsTransform; ///< BERT: the logits are of norm(activation(transform(x)))
  NormTensors logitsNorm;
  LinearTensors unembedding;

  bool normsAreFolded = false; ///< TransformerLens' names without gains
  WeightProcessing processing = WeightProcessing::Unknown;
  std::vector<std::string> unused; ///< tensors that nothing reads, for a warning; no buffers
};

/// Finds the tensors of a model by the names of Hugging Face, with or without the prefix of its
/// base model, or of TransformerLens. Nothing is copied. Throws ModelError naming file, tensor,
/// expected and found for a tensor that is missing, of another shape, not of floating type, or of a
/// layer beyond those of the configuration.
TransformerWeights BindTransformerWeights(
  const TransformerConfig& config, const WeightFiles& files);

}
