#pragma once

#include "TransformerConfig.h"
#include "WeightFiles.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// How a matrix that maps inputs to outputs is stored, row-major.
enum class WeightLayout
{
  InputOutput,    ///< [inputs, outputs]: TransformerLens, and Hugging Face's GPT-2
  OutputInput,    ///< [outputs, inputs]: all other models of Hugging Face
  HeadInputOutput ///< [H, inputs, d_head]: queries, keys and values in TransformerLens
};

/// The tensors of y = x W + b. If the weight is missing (data is nullptr), the layer does not
/// exist; a missing bias is 0.
struct LinearTensors
{
  TensorView weight;
  TensorView bias; ///< [outputs]
  WeightLayout layout = WeightLayout::OutputInput;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t headFirst = 0;  ///< queries, keys, values: the first output of head h is
  std::int64_t headStep = 0;   ///< headFirst + h headStep; or, if groups of heads are apart,
  std::int64_t groupHeads = 0; ///< headFirst + g groupStep + i headStep for head h = g groupHeads
  std::int64_t groupStep = 0;  ///< + i; groupHeads 0: there are no such groups
  ProductPrecision products = ProductPrecision::Single; ///< of x W

  bool Exists() const { return this->weight.data != nullptr; }

  /// The first output of head h.
  std::int64_t FirstOutput(std::int64_t head) const
  {
    return this->groupHeads == 0 ? this->headFirst + head * this->headStep
                                 : this->headFirst + head / this->groupHeads * this->groupStep +
                                     head % this->groupHeads * this->headStep;
  }
};

/// Gain, less gainOffset, and shift of a normalization [d_model]. If missing (data is nullptr),
/// they are 1 and 0.
struct NormTensors
{
  TensorView gain;
  TensorView shift;
};

/// The tensors of the MLPs between which a router chooses for each token, one of each list per
/// expert.
struct ExpertTensors
{
  LinearTensors router;            ///< outputs: a score of each expert
  TensorView bias;                 ///< one number per expert, by which they are chosen; or missing
  TensorView scales;               ///< one per expert, of its weight; or missing
  NormTensors routerNorm;          ///< these: with expertsBesideMlp. Of what the router reads,
  NormTensors norm;                ///< of what experts read,
  NormTensors after;               ///< of what they give,
  NormTensors mlpAfter;            ///< and of what the MLP gives
  std::vector<LinearTensors> gate; ///< without `up`: gate and linear part, by turns if they are
                                   ///< limited (gpt-oss), else gate first (Llama 4)
  std::vector<LinearTensors> up;   ///< linear part
  std::vector<LinearTensors> down;
  LinearTensors sharedGate; ///< these: of the expert that sees every token, if there is one
  LinearTensors sharedUp;
  LinearTensors sharedDown;
  LinearTensors sharedFactor; ///< output: what is before the sigmoid by which it is multiplied
};

/// What Activation::Xielu has of a layer, a number each: log(exp(a) - 1) (square), log(exp(c - b) -
/// 1) (negative), b (linear) and e (limit).
struct XieluTensors
{
  TensorView square;
  TensorView negative;
  TensorView linear;
  TensorView limit;
};

/// What a layer has beside attention and MLP, see LayerSides.
struct LayerSideTensors
{
  LinearTensors inputGate;       ///< outputs: layerInput
  LinearTensors inputProjection; ///< from layerInput to d_model
  NormTensors inputNorm;
  TensorView factor;        ///< one number
  LinearTensors router;     ///< outputs: streams
  NormTensors routerNorm;   ///< [d_model]
  LinearTensors prediction; ///< from streams to streams^2
  LinearTensors correction; ///< from streams to streams
  TensorView activeScale;   ///< [d_model]
  LinearTensors laurelIn;   ///< outputs: laurelRank
  LinearTensors laurelOut;
  NormTensors laurelNorm;
};

/// What a layer without attention has in its place, see LayerMixer. Outputs of heads follow one
/// another, or those of a head of keys with all that belongs to it (Qwen3-Next): headFirst and
/// headStep say where they are.
struct MixerTensors
{
  LinearTensors query; ///< ShortConvolution: outputs are B, C and x
  LinearTensors key;   ///< these, and what has heads: DeltaRule, and all but `rate` StateSpace
  LinearTensors value;
  LinearTensors gate;
  LinearTensors rate;
  LinearTensors decay;
  std::vector<TensorView> taps; ///< [channels, 1, mixerTaps], of queries, keys and values together
                                ///< or one after another
  TensorView tapsBias;          ///< [channels]; or missing
  TensorView decayScale;        ///< [mixerHeads], the logarithm
  TensorView decayShift;        ///< [mixerHeads]
  TensorView skip;              ///< [mixerHeads], StateSpace
  NormTensors norm;             ///< [mixerValueDimension], of what each head gives; StateSpace: of
                                ///< all together [mixerHeads mixerValueDimension]
  LinearTensors output;
};

struct LayerTensors
{
  NormTensors attentionNorm;
  LinearTensors query;
  LinearTensors key;
  LinearTensors value;
  LinearTensors output;        ///< inputs: d_head of head 0, of head 1, ...
  LinearTensors keyLatent;     ///< latent attention: outputs are the latent vector, then the
                               ///< rotated components of all keys; key and value read the vector
  NormTensors keyLatentNorm;   ///< [keyLatent], of the latent vector
  LinearTensors queryLatent;   ///< likewise of queries; or missing
  NormTensors queryLatentNorm; ///< [queryLatent]
  LinearTensors attentionGate; ///< with gatesAttention, as `query`
  MixerTensors mixer;          ///< in place of all these but the norm, of a layer without attention
  NormTensors mlpNorm;         ///< that of attention, if the layer has one norm
  LinearTensors gate;          ///< gated MLP only
  LinearTensors up;
  LinearTensors down;
  std::vector<NormTensors> queryNorm; ///< one for all heads, or one for each; empty: none
  std::vector<NormTensors> keyNorm;   ///< likewise
  NormTensors attentionAfter;         ///< of what the attention adds, for BeforeAndAfter
  NormTensors mlpAfter;               ///< of what the MLP adds, for BeforeAndAfter
  NormTensors mixedNorm;              ///< [H d_head], of what `output` reads, if it is normalized
  NormTensors hiddenNorm;             ///< [mlpDimension], of what `down` reads, likewise
  XieluTensors xielu;                 ///< for this activation
  LayerSideTensors sides;
  LinearTensors convolution; ///< of layer 0; order of inputs: component, token; or missing
  NormTensors convolutionNorm;
  TensorView attentionScale; ///< [d_model], of what the attention adds; or missing
  TensorView mlpScale;       ///< [d_model], of what the MLP adds; or missing
  TensorView sinks;          ///< [H]; or missing
  TensorView relativeBias;   ///< that of this layer alone, if biasByLayer
  LinearTensors positionKey; ///< Disentangled: from the vector of a distance to its keys, as `key`
  LinearTensors positionQuery; ///< likewise to its queries
  ExpertTensors experts;       ///< in place of gate, up and down, where there are any
  NormTensors crossNorm;       ///< these: of a decoder beside an encoder
  LinearTensors crossQuery;
  LinearTensors crossKey; ///< inputs: what the encoder returns
  LinearTensors crossValue;
  LinearTensors crossOutput;
  NormTensors crossAfter; ///< of what the cross attention adds, for BeforeAndAfter
};

struct VisionWeights;

/// The tensors of a transformer by purpose, independent of their names in the file.
struct TransformerWeights
{
  TensorView tokenEmbedding;    ///< [vocabulary, d_model or embeddingDimension]
  LinearTensors embeddingIn;    ///< from embeddingDimension to d_model, if they differ
  TensorView positionEmbedding; ///< [positions or more, d_model]; row firstPosition is the first
  std::shared_ptr<const std::vector<float>> resizedPositions; ///< the values of positionEmbedding,
                                                              ///< if they are interpolated
  std::vector<std::shared_ptr<const std::vector<float>>>
    owned;                         ///< values of tensors that are not in the file as they are read
  TensorView segmentEmbedding;     ///< [segments, d_model]
  LinearTensors patchEmbedding;    ///< order of inputs: channel, row, column of a patch
  TensorView classToken;           ///< d_model values
  TensorView distillationToken;    ///< d_model values; or missing
  TensorView registers;            ///< [1, registers, d_model]; or missing
  LinearTensors firstConvolution;  ///< of sound, over three frames; order of inputs: band, frame
  LinearTensors secondConvolution; ///< likewise, of every second place
  std::vector<LinearTensors> soundConvolutions; ///< these: of waveforms, see SoundConfig. Order of
                                                ///< inputs: channel, place
  std::vector<NormTensors> soundNorms;
  NormTensors featureNorm;           ///< of what embeddingIn reads
  LinearTensors positionConvolution; ///< order of inputs: channel of the group, place
  TensorView relativeBias;           ///< [relativeBuckets, H], for PositionKind::Relative; for
                                     ///< RelativeOfPatches [(2 rows - 1)(2 columns - 1) + 3, H]
  TensorView rotaryFrequencies;      ///< [pairs], if the file stores them
  TensorView taskEmbedding;          ///< [tasks, d_model]
  TensorView distanceEmbedding;      ///< [2 S, d_model], for PositionKind::Disentangled
  NormTensors distanceNorm;          ///< of these
  NormTensors embeddingNorm;
  TensorView layerTokens;               ///< [layerInputVocabulary, L layerInput]
  LinearTensors layerProjection;        ///< outputs: L layerInput
  NormTensors layerProjectionNorm;      ///< [layerInput]
  std::vector<LinearTensors> streamIn;  ///< one for each residual stream beside the first
  std::vector<LinearTensors> streamOut; ///< likewise
  std::vector<LayerTensors> layers;
  NormTensors finalNorm;
  LinearTensors logitsTransform; ///< BERT: the logits are computed from
                                 ///< norm(activation(transform(x)))
  NormTensors logitsNorm;
  LinearTensors embeddingOut; ///< from d_model to embeddingDimension, if they differ
  LinearTensors unembedding;

  std::shared_ptr<const TransformerWeights> encoder; ///< if the model has one
  std::shared_ptr<const VisionWeights> vision;       ///< if it reads pictures among words

  bool normsAreFolded = false; ///< TransformerLens names without gains
  WeightProcessing processing = WeightProcessing::Unknown;
  std::vector<std::string>
    unused; ///< tensors of heads and poolers that are not used, for a warning
};

/// The matrices of a layer that every token is multiplied by.
template<class Layer>
auto MatricesOf(Layer& layer)
{
  return std::array{ &layer.query, &layer.key, &layer.value, &layer.queryLatent, &layer.keyLatent,
    &layer.output, &layer.gate, &layer.up, &layer.down, &layer.experts.sharedGate,
    &layer.experts.sharedUp, &layer.experts.sharedDown, &layer.crossQuery, &layer.crossKey,
    &layer.crossValue, &layer.crossOutput, &layer.positionKey, &layer.positionQuery,
    &layer.attentionGate, &layer.mixer.query, &layer.mixer.key, &layer.mixer.value,
    &layer.mixer.gate, &layer.mixer.rate, &layer.mixer.decay, &layer.mixer.output };
}

/// The matrices before and behind all layers.
template<class Weights>
auto MatricesBesideLayers(Weights& weights)
{
  std::vector matrices = { &weights.embeddingIn, &weights.patchEmbedding, &weights.firstConvolution,
    &weights.secondConvolution, &weights.positionConvolution, &weights.logitsTransform,
    &weights.embeddingOut, &weights.unembedding };
  for (auto& convolution : weights.soundConvolutions)
  {
    matrices.push_back(&convolution);
  }
  return matrices;
}

/// A projector of pictures.
struct ProjectorTensors
{
  NormTensors norm;   ///< [d_model of the encoder], or as many times as patches are joined
  LinearTensors join; ///< inputs: the joined vector, by components; missing unless joinsByMatrix
  LinearTensors in;   ///< inputs: the joined vector, by patches, or what `join` gives
  LinearTensors out;  ///< missing if the projector has one matrix
};

/// The tensors of the encoder of images and of the projectors of a model of pictures among words.
struct VisionWeights
{
  TransformerWeights encoder; ///< with patchFrames, the inputs of patchEmbedding are by channel,
                              ///< frame, row and column
  ProjectorTensors projector;
  std::vector<ProjectorTensors> deep; ///< of VisionConfig::deepLayers
  TensorView newline;                 ///< [d_model], of the ends of rows; missing without them
};

/// The matrices of all projectors.
template<class Weights>
auto MatricesOfProjectors(Weights& weights)
{
  std::vector<decltype(&weights.projector.in)> matrices;
  const auto add = [&](auto& projector)
  { matrices.insert(matrices.end(), { &projector.join, &projector.in, &projector.out }); };
  add(weights.projector);
  for (auto& projector : weights.deep)
  {
    add(projector);
  }
  return matrices;
}

/// The names of the token embedding and of the unembedding in the files of a model, whether they
/// are there or not; empty: the model has none, or one of several names.
struct TokenTensors
{
  std::string embedding;
  std::string unembedding;
  bool areTied = false; ///< the model has both, and where a file leaves one out it is the other
};

/// The names that BindTransformerWeights looks for.
TokenTensors FindTokenTensors(const TransformerConfig& config, const WeightFiles& files);

/// Rows first <= r < first + count of a tensor, along its first axis, as a tensor with as many
/// axes. Nothing is copied.
TensorView RowsOf(const TensorView& view, std::int64_t first, std::int64_t count);

/// Finds the tensors of a model by their Hugging Face names, with or without the prefix of the base
/// model, or of a model around it (language_model.), or by the names of
/// TransformerLens, of HookedTransformer or TransformerBridge. Nothing is copied. Throws ModelError
/// if a tensor is missing, has a wrong shape, is not floating-point, or belongs to a layer that the
/// configuration does not have; and if a layer or a normalization has a tensor that the
/// architecture does not, such as norms of queries and keys, because results without it would be
/// wrong. The message gives file, tensor, expected and found. Buffers (masks, position ids, rotary
/// frequencies) are ignored.
TransformerWeights BindTransformerWeights(
  const TransformerConfig& config, const WeightFiles& files);

}
