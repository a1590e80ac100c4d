#pragma once

#include "LearningRun.h"
#include "Tensor.h"
#include "Transformer.h"

#include <filesystem>
#include <map>
#include <string>

namespace atlas
{

/// A config.json for a model that is trained here, as TransformerLens and, for bert and vit,
/// Hugging Face write it. ParseTransformerConfig reads it.
std::string ToConfigText(const TransformerConfig& config);

/// Writes a model to a folder, which is created: config.json, model.safetensors (`dtype` F32 or
/// F16) and `files`. TransformerLens' tensors that the model does not have, such as biases, are
/// written as zeros, and the unembedding of a tied model as a copy, as the original expects them.
/// Each file appears completely or not at all. Throws FileError.
void WriteCheckpoint(const std::filesystem::path& folder, const Transformer& model,
  const std::map<std::string, std::string>& files, DType dtype = DType::F32);

/// Writes curves.csv. Throws FileError.
void WriteCurves(const std::filesystem::path& path, const LearningCurves& curves);

/// The folders checkpoint-N in the folder of a model, as the Trainer of Hugging Face makes them, by
/// N. Only those with a config.json.
std::map<std::int64_t, std::filesystem::path> FindCheckpoints(const std::filesystem::path& folder);

}
