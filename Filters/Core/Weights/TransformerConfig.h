#pragma once

#include "Base/AttentionKinds.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

enum class NormKind
{
  None,
  LayerNorm, ///< gain (x - mean) / sqrt(variance + epsilon) + shift; Ba et al. 2016
  RmsNorm    ///< gain x / sqrt(mean of x^2 + epsilon); Zhang and Sennrich 2019
};

enum class NormPlace
{
  BeforeSublayer, ///< x + f(norm(x))
  AfterSublayer,  ///< norm(x + f(x)), as in BERT
  BeforeAndAfter, ///< x + norm'(f(norm(x))), as in Gemma 2
  AfterOutput     ///< x + norm(f(x)), as in OLMo 2
};

/// How a layer combines attention A and MLP F, if normalizations come before them.
enum class SublayerOrder
{
  Sequential,       ///< x + A(n1 x), then x + F(n2 x)
  Parallel,         ///< x + A(n1 x) + F(n2 x), as in GPT-NeoX
  ParallelOfOneNorm ///< x + A(n1 x) + F(n1 x), as in GPT-J
};

/// Normalizations of queries and keys, before rotation, of the kind of all others (Dehghani et al.
/// 2023; Qwen3).
enum class QueryKeyNorm
{
  None,
  OfAllHeads, ///< one gain [d_head] for all heads
  OfEachHead, ///< a gain [d_head] for each head
  Together,   ///< the components of all heads as one vector, with a gain [H d_head] (OLMoE); then
              ///< projectionClip
  WithoutGain ///< as OfAllHeads, with gains of 1, in layers that rotate alone (Llama 4)
};

enum class PositionKind
{
  Learned,     ///< a vector per position is added to the embedding
  Shortformer, ///< a vector per position is added to the input of queries and keys only (Press et
               ///< al. 2021)
  Alibi,       ///< slope of the head * position of the key is added to the score (Press et al.
               ///< 2022)
  Rotary,      ///< queries and keys are rotated by an angle that grows with the position (Su et al.
               ///< 2021)
  None,        ///< only the causal mask makes positions differ
  Sinusoidal,  ///< a vector of sines, then cosines, of the position is added to the embedding
               ///< (Vaswani et al. 2017; Marian), or that of the file if it has them
  RotaryOfPatches, ///< the first half of the component pairs of a head is rotated by the row of the
                   ///< patch, the second half by its column, each with the frequencies of
                   ///< headDimension / 2 components; pairs are (i, i + half) (Wang et al. 2024:
                   ///< Qwen2-VL)
  Relative, ///< a bias of each head for the bucket of the distance key - query is added to the
            ///< score, the same in all layers (Raffel et al. 2020: T5) or, if biasByLayer, not
  RelativeOfPatches, ///< a bias of each head for the rows and columns from patch to patch is added
                     ///< to the score; the class token has biases of its own (Bao et al. 2022:
                     ///< BEiT)
  Disentangled       ///< products of the query with a key of the distance, and of the key with a
                     ///< query of the distance, are added to query . key (He et al. 2021: DeBERTa)
};

enum class Activation
{
  Gelu,     ///< x/2 (1 + erf(x / sqrt 2)); Hendrycks and Gimpel 2016
  GeluTanh, ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); also called gelu_new
  Relu,
  Silu,        ///< x / (1 + exp(-x))
  QuickGelu,   ///< x / (1 + exp(-1.702 x)); CLIP
  SquaredRelu, ///< max(x, 0)^2; So et al. 2021: Primer
  Xielu        ///< a x^2 + b x for x > 0, else c (exp(min(x, e)) - 1 - x) + b x, with a, b, c and e
               ///< of each layer; Huang and Schlag 2025
};

enum class InputKind
{
  Tokens,
  Images,
  Sound ///< log-mel features, which two convolutions turn into tokens (Radford et al. 2023:
        ///< Whisper), or whose patches are tokens (Gong et al. 2021: AST); or waveforms, see
        ///< SoundConfig
};

/// What a router makes of the outputs s of its matrix, by which experts are chosen and weighed.
enum class ExpertScores
{
  Softmax,
  Sigmoid,    ///< of each output alone (DeepSeek-V3)
  SparseMixer ///< the expert of the largest s, then that of the largest among the others. The
              ///< weight of each is its part in the softmax over those among which it is the
              ///< largest, m, but for those with (m - s) / max(|s|, m) > expertTolerance (Liu et
              ///< al. 2024: GRIN, Phi-3.5-MoE)
};

/// How embeddings of another dimension than d_model become its vectors.
enum class EmbeddingProjection
{
  OfTokens, ///< those of tokens are projected, then positions and segments are added (OPT)
  OfSum,    ///< their sum with those of positions and segments is, then it is normalized (DeBERTa)
  OfNormed  ///< likewise, after it is normalized, with a bias (ELECTRA, ALBERT)
};

/// How the frequencies of a rotary embedding are scaled for texts longer than those in training.
struct RotaryScaling
{
  enum class Kind
  {
    None,
    Linear,      ///< all divided by the factor
    Llama3,      ///< low ones divided by the factor, high ones unchanged, interpolated in between
    Yarn,        ///< likewise, interpolated over the index of the pair (Peng et al. 2023)
    LongRope,    ///< each divided by its own factor (Ding et al. 2024)
    Proportional ///< all divided by the factor; those of the pairs from `part` of all on are 0
                 ///< (Gemma 4)
  };
  Kind kind = Kind::None;
  double factor = 1;
  double lowFactor = 1;  ///< Llama3: wavelengths above originalPositions / lowFactor are low
                         ///< frequencies
  double highFactor = 4; ///< Llama3: wavelengths below originalPositions / highFactor are high
                         ///< frequencies
  double originalPositions = 0; ///< not Linear: context length in training
  double betaFast = 32;  ///< Yarn: frequencies of more turns in originalPositions are unchanged
  double betaSlow = 1;   ///< Yarn: frequencies of fewer turns are divided by the factor
  bool truncates = true; ///< Yarn: both limits are rounded to whole pairs
  double attentionFactor = 1;       ///< Yarn, LongRope: of cosines and sines
  std::vector<double> shortFactors; ///< LongRope, per pair: for up to originalPositions tokens
  std::vector<double> longFactors;  ///< LongRope, per pair: for longer texts
  double part = 1;                  ///< Proportional: of the component pairs
  double longAttentionFactor = 0;   ///< in place of attentionFactor for texts of more than
                                    ///< originalPositions tokens (Phi-3.5-MoE); 0: the same

  /// Whether rotations depend on the length of the text.
  bool DependsOnLength() const
  {
    return this->kind == Kind::LongRope || this->longAttentionFactor > 0;
  }
};

struct VisionConfig;

/// How waveforms become the tokens of an encoder (Baevski et al. 2020: wav2vec 2.0): convolutions,
/// each with an activation, then a matrix to d_model. What one more convolution of these makes,
/// activated, is added as their positions.
struct SoundConfig
{
  std::vector<std::int64_t> channels; ///< these three: of each convolution
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> strides;
  bool hasBias = false;   ///< whether they have biases
  bool normsEach = false; ///< a LayerNorm before each activation; else before the first alone, of
                          ///< each channel over all times
  bool normsLast = true;  ///< a LayerNorm before the matrix
  Activation activation = Activation::Gelu;
  std::int64_t positionWidth = 128; ///< of the convolution for positions, around each
  std::int64_t positionGroups = 16; ///< of its channels

  /// The tokens of a waveform; 0 if it is too short for one.
  std::int64_t Places(std::int64_t samples) const;

  /// Samples from a token to the next.
  std::int64_t Step() const;
};

/// What lets the tokens of a layer read each other.
enum class Mixer
{
  Attention,
  ShortConvolution, ///< C (convolution of B x), where B, C and x are linear in a token (Liquid AI
                    ///< 2025: LFM2)
  DeltaRule,        ///< a state of each head that decays, and learns the value of each key (Yang et
                    ///< al. 2025: gated delta networks)
  StateSpace        ///< a state of each head that decays, and to which each token adds (Dao and Gu
                    ///< 2024: Mamba-2)
};

/// Everything that defines a transformer except its weights: its sizes and the structure of its
/// blocks. One forward pass can thus serve all architectures.
struct TransformerConfig // NOLINT(clang-analyzer-optin.performance.Padding): by purpose
{
  std::string architecture; ///< model_type, such as gpt2 or llama
  InputKind input = InputKind::Tokens;

  std::int64_t layers = 0;           ///< L
  std::int64_t heads = 0;            ///< H
  std::int64_t keyHeads = 0;         ///< H_kv; divides H. Query head h uses key head h / (H / H_kv)
                                     ///< (grouped-query attention, Ainslie et al. 2023)
  std::int64_t headDimension = 0;    ///< d_head
  std::int64_t valueDimension = 0;   ///< d_head of values; 0: that of queries and keys
  std::int64_t modelDimension = 0;   ///< d_model
  std::int64_t mlpDimension = 0;     ///< 0: no MLP (attention-only)
  std::int64_t vocabulary = 0;       ///< number of token ids; 0 for images
  std::int64_t outputVocabulary = 0; ///< number of logits, if the model has any
  std::int64_t positions = 0;        ///< longest sequence; 0: no limit
  std::int64_t segments = 0;         ///< token types; 0: none

  std::int64_t embeddingDimension = 0; ///< of token embeddings that a matrix projects to d_model
                                       ///< (OPT); 0: d_model
  double embeddingScale = 1;           ///< of token embeddings; sqrt(d_model) in Gemma
  std::int64_t firstPosition = 0;      ///< row of the position embedding of the first token: 2 in
                                       ///< OPT, the id of the padding + 1 in RoBERTa
  std::int64_t paddingToken = -1; ///< RoBERTa: tokens with this id are not counted in positions and
                                  ///< have the row firstPosition - 1; -1: none

  std::int64_t imageHeight = 0;  ///< pixels
  std::int64_t imageWidth = 0;   ///< pixels
  std::int64_t patchHeight = 0;  ///< pixels; what remains of the height is not seen
  std::int64_t patchWidth = 0;   ///< pixels; what remains of the width is not seen
  std::int64_t positionSide = 0; ///< patches on a side of the square images that stored positions
                                 ///< are of; for other sizes they are interpolated (DINOv2). 0:
                                 ///< they are of imageHeight x imageWidth
  std::int64_t channels = 0;     ///< color channels of an image
  std::int64_t classTokens = 1; ///< before the patches: the class token, then that for distillation
                                ///< (DeiT)
  std::int64_t registers = 0;   ///< tokens without positions between these and the patches (Darcet
                                ///< et al. 2024)
  bool patchBias = true;        ///< whether the embedding of patches has a bias
  std::int64_t patchFrames = 1; ///< frames of a video that a patch covers; a picture is so many
                                ///< equal frames (Qwen2-VL)
  std::int64_t melBands = 0;    ///< of sound, see SoundFrames; 0: it is a waveform

  NormKind norm = NormKind::LayerNorm;
  NormPlace normPlace = NormPlace::BeforeSublayer;
  double epsilon = 1e-5;        ///< of every normalization
  bool normsAreFolded = false;  ///< gains and shifts are folded into the next weights (LNPre,
                                ///< RMSPre)
  bool normsHaveWeights = true; ///< gains, and shifts of LayerNorm; without them they are 1 and 0
                                ///< (OLMo)
  double gainOffset = 0;        ///< added to stored gains; 1 in Gemma
  bool embeddingNorm = false;
  bool finalNorm = true;
  bool lastResidualIsNormed = false; ///< the last hidden state of the original code is after
                                     ///< finalNorm

  SublayerOrder order = SublayerOrder::Sequential;
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
  std::int64_t keyLatent = 0;   ///< latent attention (DeepSeek-AI 2024): the dimension of the
                                ///< normalized latent vector that values, and the components of
                                ///< keys without rotation, are projected from. All heads share the
                                ///< rotated components. 0: no latent vector
  std::int64_t queryLatent = 0; ///< the dimension of the normalized latent vector that queries are
                                ///< projected from; 0: no latent vector
  bool layerScales = false; ///< what a sublayer adds is multiplied by a vector [d_model] (Touvron
                            ///< et al. 2021: LayerScale)

  PositionKind position = PositionKind::Learned;
  double rotaryBase = 10000;
  RotaryScaling rotaryScaling;
  std::int64_t rotaryDimension = 0;  ///< the first so many components of a head are rotated; 0: all
  bool rotatesNeighbors = false;     ///< pairs are (2i, 2i + 1), as in GPT-J, not (i, i + half)
  bool rotatesLast = false;          ///< the last components are rotated, not the first
  double windowRotaryBase = 0;       ///< base in layers with a window (Gemma 3); 0: rotaryBase and
                                     ///< rotaryScaling in all layers
  RotaryScaling windowRotaryScaling; ///< in layers with a window, if they have their own base
  std::int64_t relativeBuckets = 0;  ///< Relative: biases of a head; see RelativeBucket
  std::int64_t relativeDistance = 0; ///< Relative: longer distances share a bias

  Activation activation = Activation::Gelu;
  bool gated =
    false; ///< MLP: (activation(x W_gate) * (x W_up)) W_down, else activation(x W_up) W_down
  AttentionMask mask = AttentionMask::Causal;
  double attentionScale = 0;              ///< scores are divided by it; usually sqrt(d_head)
  bool scaleByLayer = false;              ///< and also by l + 1 in layer l
  double scoreCap = 0;                    ///< c > 0: a score s becomes c tanh(s / c) (Gemma 2)
  double logitCap = 0;                    ///< c > 0: a logit s becomes c tanh(s / c)
  double logitScale = 1;                  ///< of what the unembedding reads; d_model^-1/2 in T5
  std::vector<std::int64_t> windows;      ///< per layer: query i sees keys j > i - w only; 0: all.
                                          ///< Empty: all 0
  std::vector<std::int64_t> patchWindows; ///< per layer, of images: side of the square windows, in
                                          ///< patches from the top left, within which patches
                                          ///< attend to each other (Qwen2.5-VL); 0: all. Empty:
                                          ///< all 0
  bool sinks = false;        ///< a further logit in each head's softmax, whose weight is dropped
  double projectionClip = 0; ///< c > 0: queries, keys and values are limited to -c ... c (OLMo)
  bool inputBias = true;     ///< whether queries, keys and values have biases
  bool outputBias = true;    ///< whether W_O has a bias
  bool mlpBias = true;       ///< whether the MLP has biases
  std::int64_t experts = 0;  ///< MLPs per layer, of which a router chooses expertsPerToken for each
                             ///< token (Shazeer et al. 2017); 0: one MLP
  std::int64_t expertsPerToken = 0;
  std::int64_t expertDimension = 0;       ///< mlpDimension of an expert
  std::int64_t sharedExpertDimension = 0; ///< that of an expert that sees every token, times the
                                          ///< sigmoid of a gate (Qwen2-MoE); 0: there is none
  bool sharedExpertHasGate = true;
  std::int64_t expertGroups = 0; ///< experts are chosen from the expertGroupsPerToken groups with
                                 ///< the largest scores (DeepSeek-V2); 0: from all
  std::int64_t expertGroupsPerToken = 0;
  double expertFactor = 1;         ///< of the weights of experts
  bool expertWeightsOfAll = false; ///< an expert's weight is its part in the softmax over all
                                   ///< experts, or its sigmoid; else divided by the sum of those
                                   ///< that were chosen
  double expertLimit = 0; ///< c > 0: an expert is activation(g) (u + 1), with gate g and linear
                          ///< part u limited to c (gpt-oss); 0: activation(g) u
  std::vector<bool> expertLayers;             ///< per layer: whether it has experts, or one MLP of
                                              ///< mlpDimension. Empty: all have
  std::optional<Activation> logitsActivation; ///< of the layer before the unembedding (BERT), if it
                                              ///< is not `activation`
  std::vector<std::int64_t>
    endTokens;                 ///< ids after which a text ends (eos_token_id); empty: unknown
  bool tiedUnembedding = true; ///< a model without an unembedding uses its token embedding instead

  /// Of a model with an encoder and a decoder (Vaswani et al. 2017), which all else describes;
  /// null: it has none. Between attention and MLP each layer of the decoder has a cross attention,
  /// whose keys and values are computed from what the encoder returns: scores are scaled, and
  /// normalizations placed, as those of the attention before.
  std::shared_ptr<const TransformerConfig> encoder;
  std::int64_t decoderStart = -1; ///< id with which the decoder's texts begin; -1: unknown

  std::vector<std::string> unknownSettings; ///< names of settings in its file that are not known,
                                            ///< for a warning

  std::shared_ptr<const VisionConfig> vision; ///< of a model that reads pictures among words, which
                                              ///< all else describes; null: it reads words alone

  std::string ownTensors; ///< names of the tensors of an architecture that its files describe, as
                          ///< BindTransformerWeights reads them; empty: those of `architecture`
  bool normsHaveShifts = true; ///< of LayerNorm with weights, where its architecture can have them
  bool firstAttentionIsNormed = true; ///< else layer 0 has no normalization before its attention
                                      ///< (Warner et al. 2024: ModernBERT)
  bool normsInside = false; ///< the weighted sums of values of all heads together, and the hidden
                            ///< values of the MLP, are normalized (Ma et al. 2025: BitNet)
  std::int64_t convolution = 0; ///< tokens that a convolution reads, an odd number: behind layer 0,
                                ///< whose input it reads; what it gives is activated, added and
                                ///< normalized (He et al. 2021: DeBERTa-v2); 0: none
  Activation convolutionActivation = Activation::Gelu;
  bool normsQueriesLast = false;   ///< queryKeyNorm comes after the rotation (Hunyuan)
  double residualScale = 1;        ///< of what a sublayer adds (Granite)
  std::vector<bool> rotatedLayers; ///< per layer: whether queries and keys are rotated; empty: all
  std::vector<double> rotaryBases; ///< per layer, in place of rotaryBase; empty: none
  double slopeScale = 1;           ///< of the slopes of ALiBi; d_head^-1/2 in Falcon
  double slopeExponent = 8;        ///< of ALiBi, see AlibiSlopes
  double queryGrowth = 0;          ///< b > 0: queries at position p are multiplied by
                                   ///< 1 + b log(1 + floor(p / queryGrowthStep)) (Ministral 3)
  double queryGrowthStep = 1;

  // Gemma 3n and 4
  std::vector<std::int64_t> headDimensions; ///< per layer, in place of headDimension, which is the
                                            ///< largest; empty: all have that
  std::vector<std::int64_t> keyHeadCounts;  ///< likewise of keyHeads
  std::vector<std::int64_t> mlpDimensions;  ///< likewise of mlpDimension
  bool normsValues = false;         ///< values are divided by their root mean square, by head
  std::vector<bool> valuesAreKeys;  ///< per layer: whether values are keys before their
                                    ///< normalization and rotation; empty: none
  std::int64_t sharedKeyLayers = 0; ///< so many last layers have the keys and values of the last
                                    ///< layer of their kind, with or without a window, before
  std::int64_t layerInput = 0;      ///< dimension of what each layer is told of the token and of
                                    ///< its embedding, see LayerSides; 0: nothing
  std::int64_t layerInputVocabulary = 0;
  bool layerFactors = false;          ///< the residual stream is multiplied by a number behind each
                                      ///< layer
  std::int64_t streams = 1;           ///< residual streams, of which layers read one and change all
                                      ///< (Baykal et al. 2023: AltUp); recordings have this one
  std::int64_t activeStream = 0;      ///< its index
  bool scalesActiveStream = false;    ///< where it is read for the others, by a vector [d_model]
  std::int64_t laurelRank = 0;        ///< of a low-rank map beside the attention; 0: none
  std::vector<double> gateSparsities; ///< per layer: the part of the values of the gate that become
                                      ///< 0, if they are normally distributed; empty: none
  EmbeddingProjection embeddingProjection =
    EmbeddingProjection::OfTokens;     ///< if embeddingDimension differs from 0
  std::int64_t transformDimension = 0; ///< of what the layer before the unembedding gives
                                       ///< (ELECTRA); 0: EmbeddingDimension()
  bool transformBias = true;           ///< whether that layer has a bias
  std::int64_t maskToken = -1; ///< ESM-2: embeddings of this id are 0, and with the share m of them
                               ///< in the text, all are multiplied by 0.88 / (1 - m); -1: none
  std::int64_t tasks = 0;      ///< of an embedding whose first row is added to that of every token
                               ///< (ERNIE); 0: there is none
  std::vector<float> rotaryFrequencies; ///< as a file stores them, in place of those that follow
                                        ///< from rotaryBase (ESM-2); empty: none
  bool addsPositions = false;   ///< a vector per position is added to the embedding, also where
                                ///< `position` is another kind (MPNet, DeBERTa, BEiT)
  std::int64_t layerGroups = 0; ///< groups of equally many layers, in order, that share their
                                ///< parameters (Lan et al. 2020: ALBERT); 0: none do
  std::int64_t groupLayers = 1; ///< layers of a group with parameters of their own, by turns
  bool biasByLayer = false; ///< Relative, RelativeOfPatches: each layer has its own (uMT5, BEiT)
  bool keyBias = true;      ///< these, with inputBias: whether keys,
  bool valueBias = true;    ///< values
  bool queryBias = true;    ///< and queries have one
  bool readsQueriesOfPositions = true; ///< Disentangled: key . query of the distance is added,
  bool readsKeysOfPositions = true;    ///< and query . key of the distance
  bool sharesPositionKeys = false;     ///< Disentangled: these come from W_Q and W_K of the layer
  bool positionNorm = false;           ///< Disentangled: a LayerNorm of the vectors of distances
  bool normsPatches = false; ///< RotaryOfPatches: rows and columns of the picture are from -1 to 1,
                             ///< times 2 pi (DINOv3)
  bool endsSinusoids = false;   ///< Sinusoidal: the last of the d / 2 frequencies is 1 / 10000:
                                ///< 10000^(-j / (d / 2 - 1)), not 10000^(-2 j / d) (M2M-100)
  bool channelsLast = false;    ///< of the values of a patch, for an encoder of any size (SigLIP 2)
  bool sinksAreOutside = false; ///< what a head writes is multiplied by the part of the softmax
                                ///< that is not the sink's, and recorded attention is that
                                ///< before, as the original code returns it (Granite)
  bool alignsPositions = false; ///< of images of any size: the vectors of the corners of a picture
                                ///< are those of the corners of the stored square (Qwen3-VL)
  bool alternatesAxes = false;  ///< RotaryOfPatches: rows and columns have the frequencies of
                                ///< headDimension components by turns (Pixtral)

  std::vector<std::int64_t> chunks; ///< per layer: query i sees the keys from c floor(i / c) on; 0:
                                    ///< all. Empty: all 0 (Llama 4)
  bool growsUnrotated = false; ///< queryGrowth is that of layers without rotation alone, and of the
                               ///< position p + 1 (Llama 4)
  ExpertScores expertScores = ExpertScores::Softmax;
  bool expertBias = false; ///< experts are chosen by their scores, after softmax or sigmoid, and a
                           ///< bias of each, and weighed without it (DeepSeek-V3)
  std::int64_t expertGroupScores = 1; ///< a group scores the sum of this many of its best scores
  double expertLeastSum = 0;          ///< by which weights are divided, at least (ERNIE 4.5)
  bool expertScalesInput = false;     ///< weights are factors of what experts read (Llama 4)
  double expertTolerance = 0;         ///< SparseMixer
  std::int64_t predictionLayers = 0;  ///< layers behind those of the model, which predict further
                                      ///< tokens, that its files may have and a run leaves out

  std::vector<Mixer> mixers;   ///< per layer; empty: all have attention. What follows is of those
                               ///< without, see LayerMixer
  std::int64_t mixerTaps = 0;  ///< tokens that their convolutions read, up to the token itself
  bool mixerBias = false;      ///< ShortConvolution, StateSpace: whether the matrices have one
  std::int64_t mixerHeads = 0; ///< DeltaRule, StateSpace: heads of values, and
  std::int64_t mixerKeyHeads = 0;       ///< of queries and keys, which divide them
  std::int64_t mixerValueDimension = 0; ///< of a head
  std::int64_t mixerKeyDimension = 0;   ///< likewise
  double mixerRate = 1;    ///< the most that a token replaces of what a key had; up to 2
  double mixerEpsilon = 0; ///< of what heads write; 0: epsilon
  NormPlace mixerNormPlace = NormPlace::BeforeSublayer; ///< in their layers
  bool gatesAttention = false; ///< what a head writes is multiplied by the sigmoid of a vector that
                               ///< is linear in what its query is (Qiu et al. 2025)
  bool mixerTapsBias = false;  ///< whether the convolutions of layers without attention have a bias
  double mixerLeastStep = 0;   ///< StateSpace: limits of the steps of time of tokens
  double mixerMostStep = 0;    ///< likewise; 0: none
  double expertSumOffset = 0;  ///< added to the sum by which weights of experts are divided (LFM2)
  bool expertsBesideMlp = false; ///< layers have an MLP and experts, each with a normalization
                                 ///< before and one after; their sum is what is added (Gemma 4).
                                 ///< Routers have a normalization of their own

  std::shared_ptr<const SoundConfig> sound; ///< of an encoder of waveforms; null: it reads none
  std::int64_t patchRowStep = 0;    ///< pixels from a patch to the one below it; 0: patchHeight
  std::int64_t patchColumnStep = 0; ///< likewise to the right; 0: patchWidth
  bool rotatesValues = false;       ///< Rotary: values are rotated, too (RoFormer)
  bool roundsSlopes = false;        ///< Alibi: slopes, positions and their products are rounded to
                                    ///< BF16 before slopeScale (Falcon)

  /// Whether layer l has attention.
  bool HasAttention(std::int64_t layer) const
  {
    return this->mixers.empty() || this->mixers[layer] == Mixer::Attention;
  }

  /// The number of layers with attention before layer l; with L that of all.
  std::int64_t AttentionsBefore(std::int64_t layer) const;

  /// What slopes of ALiBi are rounded before, or 0 if they are not.
  double SlopeUnit() const
  {
    return this->roundsSlopes && this->position == PositionKind::Alibi ? this->slopeScale : 0;
  }

  std::int64_t PatchRows() const
  {
    return (this->imageHeight - this->patchHeight) / this->RowStep() + 1;
  }
  std::int64_t PatchColumns() const
  {
    return (this->imageWidth - this->patchWidth) / this->ColumnStep() + 1;
  }

  /// Pixels from a patch to the one below it, and to the one at its right.
  std::int64_t RowStep() const
  {
    return this->patchRowStep > 0 ? this->patchRowStep : this->patchHeight;
  }
  std::int64_t ColumnStep() const
  {
    return this->patchColumnStep > 0 ? this->patchColumnStep : this->patchWidth;
  }

  /// Whether tokens are patches of images or, by rows of bands, of the features of sound.
  bool HasPatches() const { return this->patchHeight > 0; }

  /// Sound with melBands: the frames of its features.
  std::int64_t SoundFrames() const
  {
    return this->HasPatches() ? this->imageWidth : 2 * this->positions;
  }

  /// The factor of query . key in layer l: 1 / attentionScale, or 1 / (attentionScale (l + 1)) if
  /// scaleByLayer.
  double ScoreScale(std::int64_t layer) const;

  /// The window of layer l, or 0.
  std::int64_t Window(std::int64_t layer) const
  {
    return this->windows.empty() ? 0 : this->windows[layer];
  }

  /// The chunks of layer l, or 0.
  std::int64_t Chunk(std::int64_t layer) const
  {
    return this->chunks.empty() ? 0 : this->chunks[layer];
  }

  /// The window of patches of layer l, or 0.
  std::int64_t PatchWindow(std::int64_t layer) const
  {
    return this->patchWindows.empty() ? 0 : this->patchWindows[layer];
  }

  /// The number of components of the values of a head.
  std::int64_t ValueDimension() const
  {
    return this->valueDimension > 0 ? this->valueDimension : this->headDimension;
  }

  /// Whether layer l has experts in place of one MLP.
  bool HasExperts(std::int64_t layer) const
  {
    return this->experts > 0 && (this->expertLayers.empty() || this->expertLayers[layer]);
  }

  /// The number of components of a head that are rotated.
  std::int64_t RotatedDimension() const
  {
    return this->rotaryDimension > 0 ? this->rotaryDimension : this->headDimension;
  }

  /// The scaling of the rotary frequencies of layer l.
  const RotaryScaling& RotaryScalingOf(std::int64_t layer) const
  {
    return this->HasOwnRotation(layer) ? this->windowRotaryScaling : this->rotaryScaling;
  }

  /// Whether layer l rotates queries and keys, if the model does.
  bool Rotates(std::int64_t layer) const
  {
    return this->rotatedLayers.empty() || this->rotatedLayers[layer];
  }

  /// Whether layers differ in their sizes.
  bool HasLayerSizes() const
  {
    return !this->headDimensions.empty() || !this->keyHeadCounts.empty() ||
           !this->mlpDimensions.empty();
  }

  /// Whether layers differ in these, or in where they have normalizations.
  bool HasLayerConfigs() const
  {
    return this->HasLayerSizes() ||
           (!this->mixers.empty() && this->mixerNormPlace != this->normPlace);
  }

  /// This configuration with the sizes of layer l, and its places of normalizations.
  TransformerConfig WithSizesOf(std::int64_t layer) const;

  /// The layer whose keys and values layer l has.
  std::int64_t KeyLayer(std::int64_t layer) const;

  /// Whether layers have more than attention, MLP and their residual stream.
  bool HasLayerSides() const
  {
    return this->layerInput > 0 || this->layerFactors || this->streams > 1;
  }

  /// The rotary base of layer l.
  double RotaryBaseOf(std::int64_t layer) const
  {
    return !this->rotaryBases.empty()    ? this->rotaryBases[layer]
           : this->HasOwnRotation(layer) ? this->windowRotaryBase
                                         : this->rotaryBase;
  }

  /// Whether layer l has the rotary base of layers with a window.
  bool HasOwnRotation(std::int64_t layer) const
  {
    return this->windowRotaryBase > 0 && this->Window(layer) > 0;
  }

  /// The number of components of the token embedding.
  std::int64_t EmbeddingDimension() const
  {
    return this->embeddingDimension > 0 ? this->embeddingDimension : this->modelDimension;
  }

  /// Whether a vector per position is added to the embedding.
  bool HasPositionVectors() const
  {
    return this->position == PositionKind::Learned || this->addsPositions;
  }

  /// The number of components of the sum of embeddings of tokens, positions and segments.
  std::int64_t SumDimension() const
  {
    return this->embeddingProjection == EmbeddingProjection::OfTokens ? this->modelDimension
                                                                      : this->EmbeddingDimension();
  }

  /// The number of components of what the unembedding reads.
  std::int64_t UnembeddingInputs() const
  {
    return this->transformDimension > 0 ? this->transformDimension : this->EmbeddingDimension();
  }

  /// Images: the tokens before the patches.
  std::int64_t TokensBeforePatches() const { return this->classTokens + this->registers; }

  /// Images: whether they may have any size; imageHeight and imageWidth are 0 then.
  bool ReadsAnySize() const { return this->input == InputKind::Images && this->imageHeight == 0; }
};

/// How a model turns pictures into tokens among words: an encoder of patches, then a projector,
/// whose vectors take the places of image tokens in the text (Liu et al. 2023: LLaVA).
///
/// The projector joins the hidden states of merge x merge neighboring patches, row by row, to one
/// vector (pixel unshuffle, patch merger), and maps it to the d_model of the text by one or two
/// matrices.
///
/// With gridSizes the tokens of a picture in tiles are those of all of it, then those of all tiles
/// by rows, without those of its padding, and an image token for the end of each row. Of more than
/// mostTiles tiles they are interpolated first (LLaVA-OneVision). A picture without tiles has one
/// such token behind it.
struct VisionConfig
{
  /// Where the projector normalizes.
  enum class ProjectorNorm
  {
    None,
    OfPatches, ///< each patch, before it is joined to others (Qwen2-VL), as the encoder's norm
    OfMerged   ///< the joined vector (InternVL), LayerNorm, or RMSNorm if `averages`
  };

  std::shared_ptr<const TransformerConfig> encoder; ///< its input is Images, it has no logits
  std::int64_t layersRead = 0; ///< the projector reads the output of this number of layers
                               ///< (LLaVA: all but the last), then the encoder's finalNorm, if
                               ///< all are read and it has one, and never class tokens
  std::int64_t merge = 1;      ///< patches on a side of the square that makes a token
  ProjectorNorm projectorNorm = ProjectorNorm::None;
  double projectorEpsilon = 1e-5; ///< of this norm
  bool projectorHasTwo = true;    ///< two matrices with an activation between them, else one
  Activation projectorActivation = Activation::Gelu;

  std::int64_t imageToken = -1; ///< id that stands for each token of a picture
  std::int64_t videoToken = -1; ///< that of a video; -1: no videos, or their frames are pictures

  /// Multimodal rotary positions (Wang et al. 2024: Qwen2-VL): of the component pairs, so many are
  /// rotated by the frame's position, the row's and the column's; a word has the same for all
  /// three, and positions go on from the largest + 1. Empty: every token has the position after the
  /// one before.
  std::vector<std::int64_t> rotarySections;
  double positionsPerSecond = 0; ///< of frames (Qwen2.5-VL); 0: a position per pair of frames
  bool averages = false; ///< hidden states are averaged, not joined; gains are stored less 1, and
                         ///< what is left of the patches at the right and below is not seen
                         ///< (Gemma 3)
  bool joinsByMatrix = false; ///< another matrix, which reads the joined vector component by
                              ///< component, gives the d_model of the encoder first (Mistral 3)
  bool interleavesSections = false; ///< pairs 1, 4, 7, ... and 2, 5, 8, ... are those of rows and
                                    ///< columns, as many as these have, all others those of frames;
                                    ///< and each group of frames begins at its first token's
                                    ///< position (Qwen3-VL)
  std::vector<std::int64_t> deepLayers; ///< numbers of layers of the encoder, in order, after which
                                        ///< further projectors, with OfMerged, read: what the n-th
                                        ///< gives is added behind layer n of the text (Meng et al.
                                        ///< 2024: DeepStack)
  std::vector<std::int64_t> deepProjectors; ///< the number of each in its file
  bool seesWholePictures = false; ///< a token of a picture sees all others of it, too, under a
                                  ///< causal mask (Gemma 3)
  std::vector<std::pair<std::int64_t, std::int64_t>> gridSizes; ///< height and width of pictures
                                                                ///< that are cut into tiles
  std::int64_t mostTiles = 0;
  std::vector<std::int64_t> moreLayersRead; ///< like layersRead; a patch's hidden states there are
                                            ///< joined behind that one (LLaVA)
  std::int64_t startToken = -1;  ///< ids before and behind the tokens of a picture (Gemma 3); -1:
  std::int64_t endToken = -1;    ///< none
  bool seesWholePrompts = false; ///< tokens of a prompt see all of it, under a causal mask of those
                                 ///< that are generated (PaliGemma)
};

/// The names of the supported architectures, separated by ", ".
std::string KnownArchitectures();

/// Parses a config.json as written by Hugging Face for one of KnownArchitectures, or one with the
/// setting names of TransformerLens (positions standard, shortformer, rotary, and alibi with a
/// causal mask; model_type transformer_lens), of nanoGPT (n_layer, n_head, n_embd, block_size,
/// vocab_size and bias; model_type nanogpt) or of Meta's Llama and llama2.c (dim, n_layers,
/// n_heads, vocab_size and others; model_type meta_llama), which may leave out their model_type.
/// Missing settings have the default of the original code. Of a model with text_config or
/// vision_config, the part that its architecture reads is parsed. Throws FormatError if it is not a
/// JSON object. Throws ModelError if sizes do not match, if the architecture, activation or variant
/// of attention is unknown, if weights are quantized, or if a setting that the architecture does
/// not have changes numbers where models have it; the message starts with `source`. Unless it is
/// empty, `architecture` replaces the model_type of the text.
TransformerConfig ParseTransformerConfig(
  std::string_view text, const std::string& source, const std::string& architecture = {});

/// The file beside a config.json that says how texts are generated.
inline constexpr const char* GenerationConfigFile = "generation_config.json";

/// Reads a config.json. The eos_token_id of a generation_config.json beside it replaces its own, as
/// in the original. Throws as ParseTransformerConfig does, and FileError.
TransformerConfig ReadTransformerConfig(
  const std::filesystem::path& path, const std::string& architecture = {});

/// The ALiBi slopes of H >= 1 heads (Press et al. 2022; for other H than powers of two, the
/// original code of BLOOM). With P the largest power of two up to H and the exponent e = 8, the
/// first P slopes are 2^(-ek/P), k = 1 ... P, and the others 2^(-e(2k-1)/(2P)), k = 1 ... H - P.
std::vector<double> AlibiSlopes(std::int64_t heads, double exponent = 8);

/// The bucket of the distance key - query for PositionKind::Relative (Raffel et al. 2020), of B
/// buckets and a longest distance D. With a causal mask, n = B, and keys after the query have
/// bucket 0. Otherwise n = B / 2, and keys after the query have the second half of the buckets. The
/// first n / 2 distances have a bucket each, the others up to D share those left by their
/// logarithm.
std::int64_t RelativeBucket(const TransformerConfig& config, std::int64_t distance);

/// The row of the vectors of distances of PositionKind::Disentangled for query - key = distance, of
/// 2 S rows: S + the bucket of the distance, from 0 to 2 S - 1. S is relativeBuckets; with 0 it is
/// relativeDistance, and each distance is its bucket. Otherwise, with m = floor(S / 2), the bucket
/// of n > m is m + ceil((m - 1) log(n / m) / log((relativeDistance - 1) / m)), that of -n less than
/// 0 (He et al. 2021).
std::int64_t DistanceRow(const TransformerConfig& config, std::int64_t distance);

/// The rotation in radians per position of each of the r / 2 component pairs of r rotated ones in
/// layer l: base^(-2i / r) (Su et al. 2021), with its scaling applied. `length` is the number of
/// tokens of the sequence, on which LongRope depends.
std::vector<float> RotaryFrequencies(
  const TransformerConfig& config, std::int64_t layer = 0, std::int64_t length = 0);

}
