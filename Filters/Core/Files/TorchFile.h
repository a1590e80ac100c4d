#pragma once

#include "MappedFile.h"
#include "NumpyArray.h"
#include "Tensor.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace atlas
{

/// The tensors of a file that PyTorch's torch.save wrote: .bin, .pt, .pth or .ckpt, as a zip
/// archive or, before version 1.6, as a row of pickles. Nothing in the file is executed:
/// PickleReader.h says what is read instead. Only dense tensors with types of DType are; a file
/// with others, or with objects of any other class, throws FormatError, which names them.
///
/// Tensors in dictionaries and lists have the keys and indices joined by dots as names, such as
/// "model.blocks.0.w"; a single tensor is called "array". Everything else, such as the step of a
/// training, is left out. Opening reads the objects but no tensor.
///
/// Tensors that are transposed, strided or expanded are copied. They take at most 64 MB and four
/// times the size of the file; otherwise the file is refused. Loading throws FormatError, too, if
/// the bytes do not have the checksum in the file, which is compared once for each storage.
class TorchFile
{
public:
  /// Maps a file. Throws FileError or FormatError.
  explicit TorchFile(const std::filesystem::path& path);

  /// Same, from bytes in memory that `owner` keeps alive. The message starts with `source`.
  TorchFile(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);

  const ArrayEntries& GetTensors() const { return this->Tensors; }

  /// What is not a tensor, as JSON: the objects of the file with their dictionaries, lists,
  /// numbers, texts, truth values and None, up to 4 deep, without tensors and anything else. Keys
  /// that are integers are written as texts. Null if there are more than 100,000 values.
  std::string GetSettings() const { return this->Settings; }

  /// The mapped file; nullptr if bytes were given.
  const std::shared_ptr<const MappedFile>& GetFile() const { return this->File; }

private:
  std::shared_ptr<const MappedFile> File;
  ArrayEntries Tensors;
  std::string Settings;

  void Parse(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);
};

/// The data of a pickle that Python's pickle.dump wrote, as JSON text like
/// TorchFile::GetSettings. Throws FileError, and FormatError if there is anything but dictionaries,
/// lists, numbers and texts.
std::string ReadPickledData(const std::filesystem::path& path);

/// Whether the first bytes are those of a zip archive with a PyTorch file, or of a pickle.
bool LooksLikeTorch(const std::byte* data, std::size_t size);

}
