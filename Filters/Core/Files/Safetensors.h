#pragma once

#include "Base/Progress.h"
#include "MappedFile.h"
#include "Tensor.h"

#include <filesystem>
#include <iosfwd>
#include <memory>

namespace atlas
{

/// The content of a safetensors file. The views point into the parsed bytes.
struct SafetensorsContent
{
  TensorViews tensors;
  Metadata metadata;
};

/// Whether the first bytes are those of a safetensors file: the length of its header, below 2^32,
/// and the { that begins the header. The length may look like the beginning of another format.
bool LooksLikeSafetensors(const std::byte* data, std::size_t size);

/// Parses a safetensors file in memory.
///
/// Layout: 8 bytes little-endian header length n; n bytes JSON object, name -> {dtype, shape,
/// data_offsets: [begin, end)}, optionally `__metadata__`: string -> string; then the data, to
/// which the offsets are relative. As in the reference implementation, the header has at most 100
/// MB, the tensors fill the data without overlaps or gaps, and names are unique. Data need not be
/// aligned. Throws FormatError; the message starts with `source`, usually the file name.
SafetensorsContent ParseSafetensors(
  const std::byte* data, std::size_t size, const std::string& source);

/// A memory-mapped safetensors file. Opening reads the header but not the tensors.
class SafetensorsFile
{
public:
  /// Throws FileError or FormatError.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const TensorViews& GetTensors() const { return this->Content.tensors; }
  const Metadata& GetMetadata() const { return this->Content.metadata; }

  /// Throws FileError if the file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const { this->File->RequireIntact(); }

  FileStamp Stamp() const { return this->File->Stamp(); }

  /// The mapped file, which the views point into.
  const std::shared_ptr<const MappedFile>& GetFile() const { return this->File; }

private:
  std::shared_ptr<const MappedFile> File;
  SafetensorsContent Content;
};

/// Writes a safetensors file. Tensors are sorted by descending element size, then by name, so each
/// is aligned to its element size. The bytes go to a temporary file in the same folder that is
/// renamed at the end, so `path` holds either the old content or all of the new; the old, if this
/// throws. Throws FileError, and FormatError for a tensor that is not plain (TensorView::IsPlain).
void WriteSafetensorViews(const std::filesystem::path& path, const TensorViews& tensors,
  const Metadata& metadata, const Progress& progress = {});
void WriteSafetensors(
  const std::filesystem::path& path, const Tensors& tensors, const Metadata& metadata);

/// Writes the same bytes to a stream. The caller checks the stream for errors.
void WriteSafetensorViews(std::ostream& stream, const TensorViews& tensors,
  const Metadata& metadata, const Progress& progress = {});

/// Where the parts of a safetensors file are, for those who make the data in its place.
struct SafetensorsLayout
{
  std::string header;        ///< the bytes before the data, the length among them
  std::uint64_t dataEnd = 0; ///< of the file, in bytes
  std::map<std::string, std::uint64_t, std::less<>> offsets; ///< of each tensor in the file
};

/// The layout of a file as WriteSafetensorViews writes it. The data of `tensors` is not read.
SafetensorsLayout LayOutSafetensors(const TensorViews& tensors, const Metadata& metadata);

}
