#pragma once

#include "Tensor.h"

#include <filesystem>
#include <map>
#include <string>

namespace atlas
{

/// Which file of its folder has each tensor of a model or recording, as written by Hugging Face
/// beside shards: model.safetensors.index.json, or pytorch_model.bin.index.json.
struct ShardIndex
{
  std::map<std::string, std::filesystem::path, std::less<>> files; ///< of each tensor
  Metadata metadata; ///< the texts of its object `metadata`; other values are left out
};

/// Throws FileError if the index or one of its files is missing, and FormatError if it is invalid.
ShardIndex ReadShardIndex(const std::filesystem::path& path);

}
