#pragma once

// Internal to Core: the names of the tensors of each architecture.

#include "Weights/TransformerWeights.h"

#include <array>
#include <string>
#include <string_view>

namespace atlas
{

/// The order of outputs in a single tensor of queries, keys and values.
enum class Fused
{
  No,
  KindHead,  ///< all queries, all keys, all values; each in order of heads
  HeadKind,  ///< in order of the heads of keys; for each its queries, its key, its value
  FourBlocks ///< four blocks with a quarter of the heads each: queries, then values, then keys
};

/// The names of the weight and bias of a linear map, or of the gain and shift of a normalization.
struct PairNames
{
  std::string weight;
  std::string bias;
};

/// The names of the tensors of an architecture. Names in layers are without their prefix, such as
/// "h.3."; an empty name means that there is no such tensor.
struct TensorNames
{
  std::string prefix; ///< prefix of the base model; may be missing in a file
  std::string tokens;
  std::string sharedTokens; ///< in place of `tokens`: where the embedding that encoder and decoder
                            ///< share may be, separated by commas; the first that is there counts
  std::string positions;
  std::string segments;
  PairNames embeddingNorm;
  PairNames patches;
  std::string classToken;
  std::string distillationToken;
  std::string registers;
  PairNames firstConvolution;  ///< of sound; of waveforms with "*" for the number
  PairNames secondConvolution; ///< of sound; of waveforms that of positions
  PairNames soundNorm;         ///< behind a convolution, with "*" for its number
  PairNames featureNorm;       ///< of what projectIn reads
  PairNames projectIn;
  PairNames projectOut;
  std::string relativeBias; ///< or, with biasByLayer, within the layer
  std::string sharedBias;   ///< of patches, that of all layers
  std::string tasks;
  std::string frequencies; ///< of a rotary embedding, by names with commas between them, of which
                           ///< the last that is there counts
  std::string rotations;   ///< the sines and cosines that rotate, if the file has them (RoFormer)
  PairNames convolution;   ///< behind layer 0
  PairNames convolutionNorm;
  std::string distanceEmbedding; ///< of the vectors of distances
  PairNames distanceNorm;
  std::string layers; ///< prefix before the index of the layer; of layers that share their
                      ///< parameters, with "*" for the group and within it, then the dot
  WeightLayout layout = WeightLayout::OutputInput;
  Fused fused = Fused::No;
  PairNames attentionNorm;
  PairNames query; ///< or queries, keys and values, if they are fused
  PairNames key;
  PairNames value;
  PairNames output;
  std::string queryBias;   ///< of fused queries, keys and values whose biases are apart
  std::string valueBias;   ///< likewise
  PairNames positionKey;   ///< of keys of distances
  PairNames positionQuery; ///< of queries of distances
  PairNames mixedNorm;     ///< of what `output` reads
  PairNames queryLatent;   ///< the first factor of queries; `query` is the second
  PairNames queryLatentNorm;
  PairNames keyLatent; ///< the first factor of keys and values; `key` is the second of both
  PairNames keyLatentNorm;
  PairNames queryNorm; ///< of each head: with "*" for its number
  PairNames keyNorm;   ///< likewise
  std::string sinks;
  PairNames attentionAfter;   ///< of what the attention adds
  std::string attentionScale; ///< likewise
  PairNames mixerQuery; ///< these: of layers without attention. Without names of key and value, and
                        ///< perhaps of the gate, these are in one tensor with it
  PairNames mixerKey;
  PairNames mixerValue;
  PairNames mixerGate;
  PairNames mixerRate; ///< without a name of mixerDecay with it in one tensor
  PairNames mixerDecay;
  PairNames mixerTaps; ///< or three, with q, k and v in the place of "*"
  std::string mixerDecayScale;
  std::string mixerDecayShift;
  std::string mixerSkip;
  PairNames mixerNorm;
  PairNames mixerOutput;
  PairNames crossNorm;
  PairNames crossQuery;
  PairNames crossKey;
  PairNames crossValue;
  PairNames crossOutput;
  PairNames crossAfter;
  PairNames mlpNorm;
  PairNames gate; ///< or gate and up in one tensor, gate first, if `up` has no name
  PairNames up;
  PairNames down;
  PairNames hiddenNorm;    ///< of what `down` reads
  std::string xieluSquare; ///< these: of Activation::Xielu, see XieluTensors
  std::string xieluNegative;
  std::string xieluLinear;
  std::string xieluLimit;
  PairNames router;
  PairNames routerNorm;
  PairNames expertsGate; ///< of each expert: with "*" for its number; else one tensor of all
  PairNames expertsUp;   ///< likewise; without a name expertsGate has gate and up
  PairNames expertsDown; ///< likewise
  WeightLayout expertLayout = WeightLayout::InputOutput; ///< of a tensor of all
  std::string expertBias;                                ///< by which they are chosen
  std::string expertScales;                              ///< of their weights
  PairNames expertsNorm;                                 ///< these: beside an MLP
  PairNames expertsAfter;
  PairNames plainAfter; ///< of what the MLP gives
  PairNames sharedGate;
  PairNames sharedUp;
  PairNames sharedDown;
  PairNames sharedFactor;
  PairNames mlpAfter;   ///< of what the MLP adds
  std::string mlpScale; ///< likewise
  PairNames inputGate;  ///< these: of TransformerConfig::layerInput
  PairNames inputProjection;
  PairNames inputNorm;
  std::string layerFactor;
  PairNames streamRouter; ///< these: of several residual streams
  PairNames streamRouterNorm;
  PairNames streamPrediction;
  PairNames streamCorrection;
  std::string streamScale;
  PairNames laurelIn;
  PairNames laurelOut;
  PairNames laurelNorm;
  std::string layerTokens; ///< not in layers, these too
  PairNames layerProjection;
  PairNames layerProjectionNorm;
  PairNames streamIn; ///< with "*" for the number of a stream beside the first
  PairNames streamOut;
  PairNames finalNorm;
  PairNames unembedding;   ///< never with the prefix
  PairNames transform;     ///< likewise
  PairNames transformNorm; ///< likewise
  PairNames contacts;      ///< of a protein: the head that predicts them
};

/// The names of an architecture of Hugging Face. Those of an encoder beside a decoder, which has
/// the same architecture, are told by its mask.
const TensorNames& NamesFor(const TransformerConfig& config);

/// The projector of a model of pictures among words, and number i of deepProjectors.
struct ProjectorNames
{
  PairNames norm;
  PairNames in;
  PairNames out;
  PairNames join;
};
ProjectorNames ProjectorNamesFor(const TransformerConfig& config);
ProjectorNames DeepProjectorNames(std::int64_t i);

/// The names that TransformerBridge, TransformerLens since 3.0, gives the same tensors.
TensorNames BridgeNames(const TensorNames& huggingFace);

/// What a GGUF file has in another way than the files of Hugging Face.
struct GgufLayout
{
  bool isFused = false;      ///< queries, keys and values are one tensor, in that order
  bool splitsLatent = false; ///< keys and values from the latent vector are two tensors
};

/// The names of llama.cpp in GGUF files.
TensorNames GgufNames(const TransformerConfig& config, const GgufLayout& layout);

/// The names in TransformerLens.
const TensorNames& LensNames();

/// The names of BERT in TransformerLens.
const TensorNames& LensEncoderNames();

/// Prefixes that models of text inside of others have before their own, and what is before the
/// names of their unembeddings.
struct OuterPrefix
{
  std::string_view base;
  std::string_view head;
};
inline constexpr std::array<OuterPrefix, 4> OuterPrefixes = { {
  { "language_model.model.", "language_model." },
  { "model.language_model.", "" },
  { "model.text_model.", "" },
  { "language_model.", "" },
} };

/// Those of encoders of images inside of others.
inline constexpr std::array<OuterPrefix, 8> OuterImagePrefixes = { {
  { "vision_tower.vision_model.", "" },
  { "model.vision_tower.vision_model.", "" },
  { "model.vision_tower.", "" },
  { "vision_tower.", "" },
  { "model.visual.", "" },
  { "visual.", "" },
  { "model.vision_model.", "" },
  { "vision_model.", "" },
} };

/// The name of a tensor of Hugging Face without what files and releases of transformers have before
/// it in different ways: the prefixes of the base model and of models around it. Those of an
/// encoder of images among words become one of its own.
std::string BareName(std::string_view name, const TransformerConfig& config);

/// Whether a stored tensor is no weight: a mask, positions, or rotary frequencies.
bool IsBuffer(std::string_view name);

/// Whether a module, by the first part of its name, is on top of a model. What it computes is not
/// part of a recording, but for the logits of those in TensorNames.
bool IsHead(std::string_view module);

}
