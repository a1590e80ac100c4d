#pragma once

#include "Files/MappedFile.h"
#include "Files/Tensor.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The tensors of one or more safetensors or PyTorch files, or of a GGUF file. The files stay
/// mapped as long as any copy of this object exists.
class WeightFiles
{
public:
  /// No tensors.
  WeightFiles() = default;

  /// Tensors in memory that is owned elsewhere; messages refer to them as `source`.
  WeightFiles(TensorViews tensors, std::string source);

  /// Maps a file of weights, or the shards listed in an index such as model.safetensors.index.json
  /// or pytorch_model.bin.index.json, which are in the same folder. The format is that of the
  /// content: safetensors; GGUF, whose tensors get the names of Hugging Face (GgufModel.h); or
  /// PyTorch's (TorchFile.h), of which a checkpoint of a training gives its model's weights alone,
  /// without a common prefix module. or model. Throws FileError if a file is missing, FormatError
  /// if one is invalid, and ModelError if two shards hold the same tensor.
  static WeightFiles Read(const std::filesystem::path& path);

  const TensorViews& GetTensors() const { return this->Views; }

  /// The tensors that an index lists although its shard does not contain them, with that shard.
  /// They are those that share memory with others, or the model is incomplete.
  const std::map<std::string, std::string, std::less<>>& GetMissing() const
  {
    return this->Missing;
  }

  /// Puts a tensor in the place of the one of this name, if there is one. What its view points into
  /// must be in memory that is owned elsewhere or in a file of Keep. Messages refer to it as
  /// `origin`.
  void Set(const std::string& name, TensorView view, const std::string& origin);

  /// Likewise, with the bytes of the tensor.
  void Set(const std::string& name, Tensor tensor, const std::string& origin);

  /// Takes a tensor away; what it points into stays.
  void Remove(const std::string& name) { this->Views.erase(name); }

  /// Keeps the files of `others` mapped too, and counts them among those of Stamps.
  void Keep(const WeightFiles& others);

  /// Throws FileError if a file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const;

  /// The stamps of the mapped files, which do not include an index.
  std::vector<FileStamp> Stamps() const;

  /// For messages: the file that holds a tensor, or should, or the path passed to Read.
  const std::string& FileOf(std::string_view tensor) const;

private:
  std::vector<std::shared_ptr<const MappedFile>> Files; ///< which Views point into
  std::vector<std::shared_ptr<const void>> Owners;      ///< of what is not in a file as it is
  TensorViews Views;
  std::string Source;
  std::map<std::string, std::string, std::less<>> Origins;
  std::map<std::string, std::string, std::less<>> Missing;

  void AddFile(const std::filesystem::path& path, bool isShard);
};

}
