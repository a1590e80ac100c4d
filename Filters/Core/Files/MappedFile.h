#pragma once

#include "Error.h"
#include "FileStamp.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace atlas
{

class FileMapping;

/// The bytes of a file, mapped read-only into memory for as long as the object lives, so that large
/// weights and recordings are read where and when they are needed, by anyone, and never copied.
///
/// Another program may truncate the file meanwhile. Reading what is gone would end the process with
/// SIGBUS. A handler, installed with the first mapped file, puts zeros there instead, so that the
/// process lives whoever reads, be it a matrix product on several threads or a view of ParaView;
/// other bus errors go on to the handler that was there before. Zeros are no data: who has read
/// asks RequireIntact, or reads in ReadIntact.
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
  const std::byte* Data() const;

  /// Size in bytes.
  std::size_t Size() const;

  /// Throws FileError if the file was truncated, or changed (by size and time of modification),
  /// since it was mapped. A file that another one replaced under the same name is intact.
  void RequireIntact() const;

  /// The stamp of the file that is mapped.
  FileStamp Stamp() const;

private:
  std::unique_ptr<const FileMapping> Mapping;
};

/// The same for the mapped file in whose memory `data` points, if there is one: arrays know no
/// files.
void RequireIntact(const void* data);

/// Returns what `call` makes of what it reads in `file`, a MappedFile or what else has
/// RequireIntact, and throws FileError if the file was not intact, rather than what `call` throws
/// for zeros.
template<class File, class Call>
auto ReadIntact(const File& file, const Call& call)
{
  try
  {
    auto result = call();
    file.RequireIntact();
    return result;
  }
  catch (const Error&)
  {
    file.RequireIntact();
    throw;
  }
}

/// The bytes of a file, copied: for those that are read as a whole, such as texts. Throws FileError
/// as MappedFile does, and if the file was truncated meanwhile.
std::string ReadFile(const std::filesystem::path& path);

}
