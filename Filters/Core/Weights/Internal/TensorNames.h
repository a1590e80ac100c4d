#pragma once

// Internal to Core: the names of the tensors of each architecture.

#include "TransformerWeights.h"

#include <array>
#include <string>
#include <string_view>

namespace atlas
{

/// The order of outputs in a single tensor of queries, keys and values.
enum class Fused
{
  No,
  KindHead, ///< all queries, all keys, all values; each in order of heads
  HeadKind  ///< in order of heads; for each head query, key, value
};

struct NormNames
{
  std::string_view gain;
  std::string_view shift;
};

struct LinearNames
{
  std::string_view weight;
  std::string_view bias;
};

/// The names of the tensors of an architecture. Names in layers are without their prefix, such as
/// "h.3."; an empty name means that there is no such tensor.
struct TensorNames
{
  std::string_view prefix; ///< prefix of the base model; may be missing in a file
  std::string_view tokens;
  std::string_view positions;
  std::string_view segments;
  NormNames embeddingNorm;
  std::string_view layers; ///< prefix before the index of the layer
  WeightLayout layout = WeightLayout::OutputInput;
  Fused fused = Fused::No;
  LinearNames query; ///< or queries, keys and values, if they are fused
  LinearNames key;
  LinearNames value;
  LinearNames output;
  NormNames attentionNorm;
  NormNames mlpNorm;
  LinearNames gate; ///< or gate and up in one tensor, gate first, if `up` has no name
  LinearNames up;
  LinearNames down;
  NormNames finalNorm;
  LinearNames unembedding;      ///< never with the prefix
  LinearNames transform = {};   ///< likewise
  NormNames transformNorm = {}; ///< likewise
  NormNames queryNorm = {};     ///< of each head: with "*" for its number
  NormNames keyNorm = {};       ///< likewise
  LinearNames queryLatent = {}; ///< the first factor of queries; `query` is the second
  NormNames queryLatentNorm = {};
  LinearNames keyLatent = {}; ///< the first factor of keys and values; `key` is the second of both
  NormNames keyLatentNorm = {};
  NormNames attentionAfter = {}; ///< of what the attention adds
  NormNames mlpAfter = {};       ///< of what the MLP adds
  NormNames crossNorm = {};
  // NOLINTBEGIN(readability-redundant-member-init): tables leave these out
  std::string_view attentionScale = {}; ///< of what the attention adds
  std::string_view mlpScale = {};       ///< of what the MLP adds
  std::string_view sinks = {};
  LinearNames router = {};
  LinearNames expertsGate = {}; ///< of each expert: with "*" for its number; else one tensor of all
  LinearNames expertsUp = {};   ///< likewise; without a name expertsGate has gate and up by turns
  LinearNames expertsDown = {}; ///< likewise
  std::string_view sharedGate = {};
  std::string_view sharedUp = {};
  std::string_view sharedDown = {};
  std::string_view sharedFactor = {};
  LinearNames patches = {};
  std::string_view classToken = {};
  std::string_view distillationToken = {};
  std::string_view registers = {};
  std::string_view projectIn = {};
  std::string_view projectOut = {};
  std::array<std::string_view, 3> sharedTokens = {}; ///< in place of `tokens`: where the embedding
                                                     ///< that encoder and decoder share may be; the
                                                     ///< first that is there counts
  std::string_view relativeBias = {};
  LinearNames crossQuery = {};
  LinearNames crossKey = {};
  LinearNames crossValue = {};
  LinearNames crossOutput = {};
  LinearNames firstConvolution = {};
  LinearNames secondConvolution = {};
  // NOLINTEND(readability-redundant-member-init)
};

/// The names of an architecture of Hugging Face. Those of an encoder beside a decoder, which has
/// the same architecture, are told by its mask.
const TensorNames& NamesFor(const TransformerConfig& config);

/// The projector of a model of pictures among words.
struct ProjectorNames
{
  NormNames norm;
  LinearNames in;
  LinearNames out;
};

/// The names of the projector of a model of pictures among words.
const ProjectorNames& ProjectorNamesFor(const TransformerConfig& config);

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
extern const TensorNames LensNames;

/// The names of BERT in TransformerLens.
extern const TensorNames LensEncoderNames;

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

/// Prefixes of projectors that are not behind that of the encoder.
inline constexpr std::array<std::string_view, 2> ProjectorPrefixes = { "", "model." };

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
