#pragma once

#include "TransformerConfig.h"
#include "WeightFiles.h"

#include <array>
#include <filesystem>
#include <optional>

namespace atlas
{

/// The files of an adapter of the library peft, in a folder of its own or in that of the model.
inline constexpr const char* AdapterConfigFile = "adapter_config.json";
inline constexpr std::array<const char*, 2> AdapterWeightsFiles = { "adapter_model.safetensors",
  "adapter_model.bin" };

/// An adapter, and the model that it changes.
struct AdapterPlace
{
  std::filesystem::path folder;
  std::filesystem::path base; ///< folder with config.json and weights; the same one, or another
};

/// The adapter of a model whose path is given as for Transformer::Read: that in the folder, unless
/// the path is a file of weights, which is then read alone. Its base is the model in the folder
/// that adapter_config.json names, absolute or relative to its own, or else the one beside it, such
/// as a copy of a model that is named as on a server. Throws FileError if there is no base, or if
/// settings or weights of the adapter are missing; FormatError and ModelError as ApplyAdapter does.
std::optional<AdapterPlace> FindAdapter(const std::filesystem::path& path);

/// The weights of a model with its adapter: for LoRA, of each module that has matrices A [r,
/// inputs] and B [outputs, r],
///
///   W' = W + s B A,  s = alpha / r, or alpha / sqrt(r) (rsLoRA)
///   DoRA: each output (for embeddings, each component) of W' is given the length that is stored
///
/// added in double precision; those of W' are floats in memory, or double if W is. Biases of B,
/// modules that are stored as a whole, and rows of embeddings that are, are applied too. Where the
/// token embedding is tied to the unembedding and the adapter changes one of them, the other stays
/// as it is, as in peft, unless the settings say otherwise. A stored embedding may have more tokens
/// than that of the base; `config`, the base's, then has as many.
///
/// Adapters of other kinds, settings that are not known, tensors that do not fit, and modules that
/// the model does not have or the settings do not name are refused. Throws FileError, FormatError,
/// ModelError, and std::runtime_error if there is not enough memory.
WeightFiles ApplyAdapter(
  const AdapterPlace& adapter, const WeightFiles& base, TransformerConfig& config);

}
