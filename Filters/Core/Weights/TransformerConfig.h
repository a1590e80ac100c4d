#pragma once

#include "AttentionKinds.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
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
  AfterSublayer   ///< norm(x + f(x)), as in BERT
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
  None         ///< only the causal mask makes positions differ
};

enum class Activation
{
  Gelu,     ///< x/2 (1 + erf(x / sqrt 2)); Hendrycks and Gimpel 2016
  GeluTanh, ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); also called gelu_new
  Relu,
  Silu ///< x / (1 + exp(-x))
};

enum class InputKind
{
  Tokens,
  Images
};

/// How the frequencies of a rotary embedding are scaled for texts longer than those in training.
struct RotaryScaling
{
  enum class Kind
  {
    None,
    Linear, ///< all divided by the factor
    Llama3  ///< low ones divided by the factor, high ones unchanged, interpolated in between
  };
  Kind kind = Kind::None;
  double factor = 1;
  double lowFactor = 1;  ///< Llama3: wavelengths above originalPositions / lowFactor are low
                         ///< frequencies
  double highFactor = 4; ///< Llama3: wavelengths below originalPositions / highFactor are high
                         ///< frequencies
  double originalPositions = 0; ///< Llama3: context length in training
};

/// Everything that defines a transformer except its weights: its sizes and the structure of its
/// blocks. One forward pass can thus serve all architectures.
struct TransformerConfig
{
  std::string architecture; ///< model_type: bert, bloom, gpt2, llama, transformer_lens, vit
  InputKind input = InputKind::Tokens;

  std::int64_t layers = 0;           ///< L
  std::int64_t heads = 0;            ///< H
  std::int64_t keyHeads = 0;         ///< H_kv; divides H. Query head h uses key head h / (H / H_kv)
                                     ///< (grouped-query attention, Ainslie et al. 2023)
  std::int64_t headDimension = 0;    ///< d_head
  std::int64_t modelDimension = 0;   ///< d_model
  std::int64_t mlpDimension = 0;     ///< 0: no MLP (attention-only)
  std::int64_t vocabulary = 0;       ///< number of token ids; 0 for images
  std::int64_t outputVocabulary = 0; ///< number of logits, if the model has any
  std::int64_t positions = 0;        ///< longest sequence; 0: no limit
  std::int64_t segments = 0;         ///< token types; 0: none

  std::int64_t imageHeight = 0; ///< pixels
  std::int64_t imageWidth = 0;  ///< pixels
  std::int64_t patchHeight = 0; ///< pixels; divides the height
  std::int64_t patchWidth = 0;  ///< pixels; divides the width
  std::int64_t channels = 0;    ///< color channels of an image

  NormKind norm = NormKind::LayerNorm;
  NormPlace normPlace = NormPlace::BeforeSublayer;
  double epsilon = 1e-5;       ///< of every normalization
  bool normsAreFolded = false; ///< gains and shifts are folded into the next weights (LNPre,
                               ///< RMSPre)
  bool embeddingNorm = false;
  bool finalNorm = true;
  bool lastResidualIsNormed = false; ///< the last hidden state of the original code is after
                                     ///< finalNorm

  PositionKind position = PositionKind::Learned;
  double rotaryBase = 10000;
  RotaryScaling rotaryScaling;

  Activation activation = Activation::Gelu;
  bool gated =
    false; ///< MLP: (activation(x W_gate) * (x W_up)) W_down, else activation(x W_up) W_down
  AttentionMask mask = AttentionMask::Causal;
  double attentionScale = 0;   ///< scores are divided by it; usually sqrt(d_head)
  bool scaleByLayer = false;   ///< and also by l + 1 in layer l
  bool inputBias = true;       ///< whether queries, keys and values have biases
  bool outputBias = true;      ///< whether W_O has a bias
  bool mlpBias = true;         ///< whether the MLP has biases
  bool tiedUnembedding = true; ///< a model without an unembedding uses its token embedding instead

  std::int64_t PatchRows() const { return this->imageHeight / this->patchHeight; }
  std::int64_t PatchColumns() const { return this->imageWidth / this->patchWidth; }

  /// The factor of query . key in layer l: 1 / attentionScale, or 1 / (attentionScale (l + 1)) if
  /// scaleByLayer.
  double ScoreScale(std::int64_t layer) const;
};

/// The names of the supported architectures, separated by ", ".
std::string KnownArchitectures();

/// Parses a config.json as written by Hugging Face for gpt2, bert, vit, bloom and llama, or one
/// with the setting names of TransformerLens and the model_type transformer_lens (positions
/// standard, shortformer, rotary in halves of whole heads, and alibi with a causal mask). Missing
/// settings have the default of the original code. Throws FormatError if it is not a JSON object.
/// Throws ModelError if sizes do not match, or if the architecture, activation or variant of
/// attention is unknown; the message lists the supported ones and starts with `source`. Unless it
/// is empty, `architecture` replaces the model_type of the text.
TransformerConfig ParseTransformerConfig(
  std::string_view text, const std::string& source, const std::string& architecture = {});

/// Reads a config.json. Throws as ParseTransformerConfig does, and FileError.
TransformerConfig ReadTransformerConfig(
  const std::filesystem::path& path, const std::string& architecture = {});

/// The ALiBi slopes of H >= 1 heads (Press et al. 2022; for other H than powers of two, the
/// original code of BLOOM). With P the largest power of two up to H, the first P slopes are
/// 2^(-8k/P), k = 1 ... P, and the others 2^(-4(2k-1)/P), k = 1 ... H - P.
std::vector<double> AlibiSlopes(std::int64_t heads);

/// The rotation in radians per position of each of the d_head / 2 component pairs (i, i + d_head /
/// 2): base^(-2i / d_head) (Su et al. 2021), with rotaryScaling applied.
std::vector<float> RotaryFrequencies(const TransformerConfig& config);

}
