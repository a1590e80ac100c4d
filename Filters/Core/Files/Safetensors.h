#pragma once

#include "MappedFile.h"
#include "Tensor.h"

#include <filesystem>
#include <functional>
#include <iosfwd>

namespace atlas
{

/// What a safetensors file holds. The views point into the bytes that were parsed.
struct SafetensorsContent
{
  TensorViews tensors;
  Metadata metadata;
};

/// Parses a safetensors file that lies in memory.
///
/// Layout: 8 bytes little-endian header length n; n bytes JSON object, name -> {dtype, shape,
/// data_offsets: [begin, end)}, optionally `__metadata__`: string -> string; then the data, to
/// which the offsets are relative. As in the reference implementation the header has at most 100
/// MB, the tensors fill the data without overlap or hole, and no name comes twice. Data need not be
/// aligned. Throws FormatError; the message starts with `source`, which is usually the file name.
SafetensorsContent ParseSafetensors(
  const std::byte* data, std::size_t size, const std::string& source);

/// A safetensors file on disk, memory-mapped: opening costs the header, not the tensors.
class SafetensorsFile
{
public:
  /// Throws FileError or FormatError.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const TensorViews& GetTensors() const { return this->Content.tensors; }
  const Metadata& GetMetadata() const { return this->Content.metadata; }

  /// Throws FileError if the tensors are no longer those of the file; see MappedFile.
  void RequireIntact() const { this->File.RequireIntact(); }

  FileStamp Stamp() const { return this->File.Stamp(); }

private:
  MappedFile File;
  SafetensorsContent Content;
};

/// Told the share of a file that is written. Returns whether to go on.
using WriteProgress = std::function<bool(double done)>;

/// Writes a safetensors file: tensors with wide elements first, then in the order of their names,
/// each aligned to its elements. The bytes go to a temporary file in the same folder that is
/// renamed at the end, so that `path` holds either its old content or the whole new one. Returns
/// false, with the old content left, if `progress` has returned false. Throws FileError.
bool WriteSafetensorViews(const std::filesystem::path& path, const TensorViews& tensors,
  const Metadata& metadata, const WriteProgress& progress = {});
void WriteSafetensors(
  const std::filesystem::path& path, const Tensors& tensors, const Metadata& metadata);

/// The same bytes to a stream; whether it took them all is for the caller to ask.
bool WriteSafetensorViews(std::ostream& stream, const TensorViews& tensors,
  const Metadata& metadata, const WriteProgress& progress = {});

}
