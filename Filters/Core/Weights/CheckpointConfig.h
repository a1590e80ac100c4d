#pragma once

#include "TransformerConfig.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace atlas
{

/// The configuration in a folder of Meta's models, beside consolidated.00.pth.
inline constexpr const char* MetaConfigFile = "params.json";

/// The configuration of weights without a config.json: that of a params.json beside them, or the
/// settings in the checkpoint itself, such as the model_args of nanoGPT and llama2.c. They are
/// those of the first dictionary in it, or in a dictionary of it, that names all sizes
/// (ParseTransformerConfig). Throws FileError and FormatError. Throws ModelError if there are no
/// such settings; the message says what to write into a config.json, as far as the shapes of the
/// weights tell. For `architecture` see ParseTransformerConfig.
TransformerConfig ReadCheckpointConfig(
  const std::filesystem::path& weights, const std::string& architecture = {});

/// Whether a PyTorch file is a transformer that needs no config.json, or would be one with it: it
/// has a params.json beside it, settings of its own, or weights whose names are known. False for a
/// file that cannot be read.
bool IsTransformerCheckpoint(const std::filesystem::path& path);

/// The folder with the meta.pkl of the data that nanoGPT trained a model on, data/DATASET beside
/// the folder of the checkpoint; empty if there is none.
std::filesystem::path FindTrainingData(const std::filesystem::path& weights);

/// The number N in the name prefix N suffix of a file or folder; none for other names.
std::optional<std::int64_t> StepInName(
  const std::filesystem::path& path, std::string_view prefix, std::string_view suffix = "");

/// The step N of a folder with the name of a checkpoint, checkpoint-N; none for other names.
std::optional<std::int64_t> CheckpointStep(const std::filesystem::path& folder);

}
