#pragma once

#include "Files/GgufFile.h"
#include "TransformerConfig.h"

#include <filesystem>
#include <string>

namespace atlas
{

/// The GGUF file of a model whose path is given as for Transformer::Read: the path itself if it is
/// one, or the only one in a folder without config.json, or the first shard of it (GgufFile).
/// Empty if there is none. Throws FileError if the folder holds several.
std::filesystem::path FindGguf(const std::filesystem::path& path);

/// Whether a GGUF file has no tensors, but for instance a tokenizer. False if it cannot be read.
bool IsVocabularyAlone(const std::filesystem::path& path);

/// The configuration of the model in a GGUF file, as llama.cpp converts it: of an architecture that
/// a row of Weights/Architectures names under "gguf". Of encoders the head that predicts masked
/// words is left out; those of `bert` are DistilBERT and RoBERTa, too.
/// Biases are those that the first layer has. The frequencies of a
/// rotary embedding are divided by the numbers in `rope_freqs.weight`, or in
/// `rope_factors_short.weight` and `rope_factors_long.weight`, if there are such tensors.
/// `architecture` is as for ParseTransformerConfig. Throws FileError, FormatError if a setting is
/// missing or has another type, and ModelError for another architecture, and as
/// ParseTransformerConfig does.
TransformerConfig ReadGgufConfig(
  const std::filesystem::path& path, const std::string& architecture = {});

/// The tensors of a GGUF file by their names there, without those that are part of the
/// configuration, and with a matrix each where they have stacks of residual streams. llama.cpp
/// stores the rows of the queries and keys of some architectures so that it can rotate neighbors;
/// the views undo this (TensorView::interleavedRows). Throws as
/// ReadGgufConfig does.
TensorViews GgufTensors(const GgufFile& file);

}
