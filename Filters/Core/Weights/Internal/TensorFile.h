#pragma once

// Internal to Core.

#include "Files/MappedFile.h"
#include "Files/Tensor.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// A file of weights of any format, or the shards of a GGUF file.
struct TensorFile
{
  std::vector<std::shared_ptr<const MappedFile>> files;
  TensorViews tensors;
  std::vector<std::shared_ptr<const void>> owners; ///< of what is not in the files themselves
  std::map<std::string, std::string, std::less<>> origins; ///< the shard of each tensor, if several
};

/// Reads the weights of a file; the format is detected from the first bytes, and failing that from
/// the name.
///
/// A PyTorch file of a training may hold more than the weights, or hold them under another name. If
/// there are tensors below one of the entries state_dict, model_state_dict, model or module of the
/// outermost dictionary, in this order, only those below it are read, and so on; below the latter
/// two only if the dictionary holds no weights itself, of which they may be modules. Without such
/// an entry, and without weights of its own, they are those of the only dictionary in it that holds
/// weights. Weights are tensors whose names have a dot, or with two axes or more. Then prefixes
/// that all names have are dropped: module. (of DataParallel), _orig_mod. (of torch.compile), and
/// model. (of Lightning) unless the model itself has this name. `isShard`: the file is one of
/// several, whose tensors are all read under their own names.
///
/// A safetensors file may hold one of several tensors that share memory, and name the others in its
/// metadata, each with the name of that one, as safetensors' save_model writes them. They are read
/// under all of their names.
///
/// Throws FileError or FormatError.
TensorFile ReadTensorFile(const std::filesystem::path& path, bool isShard);

/// Whether a file of weights of this name is PyTorch's: .bin, .pt, .pth or .ckpt.
bool HasTorchExtension(const std::filesystem::path& path);

}
