#pragma once

#include <cstddef>
#include <filesystem>

namespace atlas
{

/// The bytes of a file, mapped read-only into memory for as long as the object lives.
class MappedFile
{
public:
  /// Maps the whole of `path`. Throws FileError if it is missing, a directory, or unreadable. An
  /// empty file is mapped as zero bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// First byte, or nullptr for an empty file.
  const std::byte* Data() const { return this->Begin; }

  /// Size in bytes.
  std::size_t Size() const { return this->Length; }

private:
  const std::byte* Begin = nullptr;
  std::size_t Length = 0;
};

}
