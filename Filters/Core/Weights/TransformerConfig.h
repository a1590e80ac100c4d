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
  LayerNorm, ///< gain (x - mean) / sqrt(variance + epsilon) + shift
  RmsNorm    ///< gain x / sqrt(mean of x^2 + epsilon)
};

enum class NormPlace
{
  BeforeSublayer, ///< x + f(norm(x))
  AfterSublayer   ///< norm(x + f(x)), as in BERT
};

enum class PositionKind
{
  Learned,     ///< a vector per position is added to the embedding
  Shortformer, ///< a vector per position is added to what queries and keys read, and to nothing
               ///< else
  Alibi,       ///< slope of the head * position of the key is added to the score
  Rotary       ///< queries and keys are rotated by an angle that grows with the position
};

enum class Activation
{
  Gelu,     ///< x/2 (1 + erf(x / sqrt 2))
  GeluTanh, ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), called gelu_new
  Relu,
  Silu ///< x / (1 + exp(-x))
};

enum class InputKind
{
  Tokens,
  Images
};

/// How the frequencies of a rotary embedding are stretched for texts longer than those of training.
struct RotaryScaling
{
  enum class Kind
  {
    None,
    Linear, ///< all divided by the factor
    Llama3  ///< low ones divided by the factor, high ones kept, those between interpolated
  };
  Kind kind = Kind::None;
  double factor = 1;
  double lowFactor = 1;  ///< Llama3: wave lengths above originalPositions / lowFactor are low
  double highFactor = 4; ///< Llama3: those below originalPositions / highFactor are high
  double originalPositions = 0; ///< Llama3: positions of the training
};

/// Everything but the weights that makes up a transformer: sizes, and its block as data, so that
/// one forward pass serves all architectures.
struct TransformerConfig
{
  std::string architecture; ///< model_type: bert, bloom, gpt2, llama, transformer_lens, vit
  InputKind input = InputKind::Tokens;

  std::int64_t layers = 0;           ///< L
  std::int64_t heads = 0;            ///< H
  std::int64_t keyHeads = 0;         ///< H_kv; divides H. Query head h uses key head h / (H / H_kv)
  std::int64_t headDimension = 0;    ///< d_head
  std::int64_t modelDimension = 0;   ///< d_model
  std::int64_t mlpDimension = 0;     ///< 0: blocks of attention only
  std::int64_t vocabulary = 0;       ///< token ids are below; 0 for images
  std::int64_t outputVocabulary = 0; ///< length of the logits, if there are any
  std::int64_t positions = 0;        ///< longest sequence; 0: no limit
  std::int64_t segments = 0;         ///< token types; 0: none

  std::int64_t imageHeight = 0; ///< pixels
  std::int64_t imageWidth = 0;  ///< pixels
  std::int64_t patchHeight = 0; ///< pixels; divides the height
  std::int64_t patchWidth = 0;  ///< pixels; divides the width
  std::int64_t channels = 0;    ///< of an image

  NormKind norm = NormKind::LayerNorm;
  NormPlace normPlace = NormPlace::BeforeSublayer;
  double epsilon = 1e-5;       ///< of every normalization
  bool normsAreFolded = false; ///< gains and shifts are part of the next weights (LNPre, RMSPre)
  bool embeddingNorm = false;
  bool finalNorm = true;
  bool lastResidualIsNormed = false; ///< the original returns its last hidden state after finalNorm

  PositionKind position = PositionKind::Learned;
  double rotaryBase = 10000;
  RotaryScaling rotaryScaling;

  Activation activation = Activation::Gelu;
  bool gated =
    false; ///< MLP: activation(x W_gate) * (x W_up) W_down, else activation(x W_up) W_down
  AttentionMask mask = AttentionMask::Causal;
  double attentionScale = 0;   ///< scores are divided by it; usually sqrt(d_head)
  bool scaleByLayer = false;   ///< and by l + 1
  bool inputBias = true;       ///< whether queries, keys and values have biases
  bool outputBias = true;      ///< whether W_O has
  bool mlpBias = true;         ///< whether the MLP has
  bool tiedUnembedding = true; ///< without an unembedding of its own the token embedding serves

  std::int64_t PatchRows() const { return this->imageHeight / this->patchHeight; }
  std::int64_t PatchColumns() const { return this->imageWidth / this->patchWidth; }

  /// The factor of query . key in layer l: 1 / attentionScale, or that / (l + 1).
  double ScoreScale(std::int64_t layer) const;
};

/// Names of the architectures that are known, separated by ", ".
std::string KnownArchitectures();

/// Reads the text of a config.json as Hugging Face writes it for gpt2, bert, vit, bloom and llama,
/// or with TransformerLens' names of settings and the model_type transformer_lens. What a file
/// leaves out has the default of the original code. Throws FormatError if it is not a JSON object,
/// ModelError for an unknown architecture, activation or variant of attention, naming it and what
/// is known, and for sizes that do not fit together; the message starts with `source`. Unless it is
/// empty, `architecture` is the model_type, whatever the text says.
TransformerConfig ParseTransformerConfig(
  std::string_view text, const std::string& source, const std::string& architecture = {});

/// Reads a file. Throws FileError too.
TransformerConfig ReadTransformerConfig(
  const std::filesystem::path& path, const std::string& architecture = {});

/// The slopes of ALiBi for any number of heads H >= 1. With P the largest power of two up to H: the
/// first P are 2^(-8k/P), k = 1 ... P, the others 2^(-4(2k-1)/P), k = 1 ... H - P (Press et al.,
/// "Train short, test long", and the original code of BLOOM).
std::vector<double> AlibiSlopes(std::int64_t heads);

/// Radians per position of each of the d_head / 2 pairs (i, i + d_head / 2) of components:
/// base^(-2i / d_head), then the scaling.
std::vector<float> RotaryFrequencies(const TransformerConfig& config);

}
