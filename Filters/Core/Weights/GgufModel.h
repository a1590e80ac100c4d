#pragma once

#include "GgufFile.h"
#include "TransformerConfig.h"

#include <filesystem>
#include <string>

namespace atlas
{

/// The GGUF file of a model whose path is given as for Transformer::Read: the path itself if it is
/// one, or the only one in a folder without config.json. Empty if there is none. Throws FileError
/// if the folder holds several.
std::filesystem::path FindGguf(const std::filesystem::path& path);

/// The settings in a GGUF file as the text of the config.json from which llama.cpp made it. Knows
/// the architectures llama (with Mistral, which llama.cpp calls so too), qwen2 and qwen3. Throws
/// FormatError if a setting is missing or has another type, and ModelError for another
/// architecture.
std::string GgufConfigText(const GgufFile& file);

/// The configuration of the model in a GGUF file. The frequencies of a rotary embedding are divided
/// by the numbers in `rope_freqs.weight`, if there is such a tensor. Throws as GgufConfigText and
/// ParseTransformerConfig do, and FileError; `architecture` is as there.
TransformerConfig ReadGgufConfig(
  const std::filesystem::path& path, const std::string& architecture = {});

/// The tensors of a GGUF file by the names that Hugging Face gives them. llama.cpp stores the rows
/// of the queries and keys of llama so that it can rotate neighbors; the views undo this
/// (TensorView::interleavedRows). Tensors without such a name keep their own, in layers behind the
/// prefix of the layer. Throws as GgufConfigText does.
TensorViews GgufTensors(const GgufFile& file);

}
