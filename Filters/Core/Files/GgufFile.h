#pragma once

#include "MappedFile.h"
#include "Tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The types of metadata in a GGUF file, numbered as there.
enum class GgufType : std::uint32_t
{
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String, ///< 8 bytes length n, n bytes UTF-8
  Array,
  U64,
  I64,
  F64
};

/// A value of the metadata, or an array of values. Points into the parsed bytes.
struct GgufValue
{
  GgufType type = GgufType::U8; ///< of the value or of each element
  bool isArray = false;
  std::uint64_t count = 1;
  const std::byte* data = nullptr;
};

/// The metadata of a GGUF file: values by key, such as "general.architecture". The functions throw
/// FormatError if the key is missing or its value has another type; the message gives the file and
/// the key. Numbers of any width count as Integer, and integers as Number too.
class GgufMetadata
{
public:
  using Values = std::map<std::string, GgufValue, std::less<>>;

  GgufMetadata() = default;
  GgufMetadata(Values values, std::string source)
    : All(std::move(values))
    , Source(std::move(source))
  {
  }

  const Values& GetValues() const { return this->All; }
  const std::string& GetSource() const { return this->Source; }
  bool Has(std::string_view key) const { return this->All.count(key) != 0; }

  /// Valid UTF-8.
  std::string Text(std::string_view key) const;
  std::string Text(std::string_view key, const std::string& otherwise) const;

  /// An integer from -2^63 to 2^63 - 1.
  std::int64_t Integer(std::string_view key) const;
  std::int64_t Integer(std::string_view key, std::int64_t otherwise) const;

  double Number(std::string_view key) const;
  double Number(std::string_view key, double otherwise) const;

  bool Flag(std::string_view key, bool otherwise) const;

  /// Arrays. Texts point into the file and may be of any bytes.
  std::vector<std::string_view> Texts(std::string_view key) const;
  std::vector<std::int64_t> Integers(std::string_view key) const;
  std::vector<double> Numbers(std::string_view key) const;

private:
  Values All;
  std::string Source;

  [[noreturn]] void Fail(
    std::string_view key, const std::string& expected, const std::string& found) const;
  const GgufValue& Get(std::string_view key, bool isArray, const char* expected,
    std::optional<GgufType> type = {}) const;
  std::int64_t ToInteger(std::string_view key, const GgufValue& value, std::uint64_t i) const;
  double ToNumber(std::string_view key, const GgufValue& value, std::uint64_t i) const;
};

/// The content of a GGUF file. Everything points into the parsed bytes.
struct GgufContent
{
  GgufMetadata metadata;
  TensorViews tensors;
};

/// Parses a GGUF file in memory, the format of llama.cpp, versions 2 and 3, little-endian: "GGUF";
/// 4 bytes version; 8 bytes number of tensors, 8 bytes number of metadata; for each of these key,
/// type and value; for each tensor name, number of axes (at most 4), their sizes, the fastest first
/// (a view has them in the usual order), type and offset; at the next multiple of
/// `general.alignment` (a power of two, 32 if missing) the data, to which the offsets are relative.
/// Strict: keys and names are unique and UTF-8; offsets are multiples of the alignment; tensors do
/// not overlap, fit in the file, and have one of the types of Tensor.h; rows are whole blocks; no
/// arrays of arrays. Takes memory for keys and tensors only. Throws FormatError, beginning with
/// `source`, usually the file name.
GgufContent ParseGguf(const std::byte* data, std::size_t size, const std::string& source);

/// Whether a file's name ends with .gguf.
bool IsGgufName(const std::filesystem::path& path);

/// The first file of a model that llama.cpp split into several, whose names end with
/// -00001-of-00003.gguf and so on, by the name of any of them; the path itself for another name.
std::filesystem::path FirstGgufShard(const std::filesystem::path& path);

/// A memory-mapped GGUF file, or all of those that llama.cpp split a model into. Opening reads the
/// headers but not the tensors.
class GgufFile
{
public:
  /// Opens a file. If its metadata split.count is more than 1, all others are opened too, which are
  /// beside it (FirstGgufShard): the metadata are those of the first, the tensors those of all.
  /// Throws FileError, also for a missing shard, and FormatError, also for shards whose split.no,
  /// split.count or split.tensors.count do not fit.
  explicit GgufFile(const std::filesystem::path& path);

  const GgufMetadata& GetMetadata() const { return this->Content.metadata; }
  const TensorViews& GetTensors() const { return this->Content.tensors; }

  /// Throws FileError if a file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const;

  /// The mapped files, which everything points into.
  const std::vector<std::shared_ptr<const MappedFile>>& GetFiles() const { return this->Files; }

  /// The file that has each tensor.
  const std::map<std::string, std::string, std::less<>>& GetOrigins() const
  {
    return this->Origins;
  }

private:
  std::vector<std::shared_ptr<const MappedFile>> Files;
  GgufContent Content;
  std::map<std::string, std::string, std::less<>> Origins;

  GgufContent Read(const std::filesystem::path& path);
  void ReadShards(const std::filesystem::path& path);
};

}
