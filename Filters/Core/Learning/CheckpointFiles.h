#pragma once

#include "Files/Tensor.h"
#include "LearningRun.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace atlas
{

/// A config.json for a model that is trained here, with the settings of TransformerLens'
/// HookedTransformerConfig or, for bert and vit, of Hugging Face's BertForMaskedLM and
/// ViTForImageClassification. ParseTransformerConfig reads it as the same configuration, except for
/// what TransformerLens does not know: biases are always present (zeros), the unembedding is never
/// tied (a copy), and a model without positions has learned ones (zeros). `labels` are the names of
/// the classes of a vit, LABEL_0, LABEL_1, ... if empty; `dtype` is that of the weights. Throws
/// OptionError if the original cannot express the configuration.
std::string ToConfigText(const TransformerConfig& config,
  const std::vector<std::string>& labels = {}, DType dtype = DType::F32);

/// Writes a model to a folder, which is created: config.json, model.safetensors (`dtype` F32 or
/// F16, rounded to nearest even) and `files`. TransformerLens' tensors that the model does not
/// have, such as biases, are written as zeros, and the unembedding of a tied model as a copy, as
/// the original expects them. Each file appears completely or not at all. Throws FileError, and
/// OptionError as ToConfigText does, for another dtype, and for F16 if a weight is beyond 65504.
void WriteCheckpoint(const std::filesystem::path& folder, const Transformer& model,
  const std::map<std::string, std::string>& files, DType dtype = DType::F32,
  const std::vector<std::string>& labels = {});

/// The files of a task's models, for WriteCheckpoint: LearningTask::Files and, for a task that has
/// TokenNames, a tokenizer.json of type WordLevel with which "3 5 =" can be typed (WordLevelText).
std::map<std::string, std::string> FilesOf(const LearningTask& task);

/// Writes curves.csv: the names, then a line per row. Numbers are the shortest that are read back
/// as the same; NaN is nan. Throws FileError.
void WriteCurves(const std::filesystem::path& path, const LearningCurves& curves);

/// Curves with the rows before theirs of a curves.csv of the same columns, if there is one: those
/// of a training that has gone on.
LearningCurves WithEarlierRows(const std::filesystem::path& path, LearningCurves curves);

/// The folders checkpoint-N in the folder of a model, as the Trainer of Hugging Face makes them, by
/// N. Only those with a config.json or an adapter. None if the folder cannot be read.
std::map<std::int64_t, std::filesystem::path> FindCheckpoints(const std::filesystem::path& folder);

/// The name of the file of a checkpoint of TokenPairs after a step of `steps`:
/// step-0010.safetensors, with as many digits as the last one.
std::string PairCheckpointName(std::int64_t step, std::int64_t steps);

/// The files with such names in a folder. None if the folder cannot be read.
std::vector<std::filesystem::path> FindPairCheckpoints(const std::filesystem::path& folder);

}
