#pragma once

#include "Base/Error.h"
#include "FileStamp.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace atlas
{

class FileMapping;

/// The bytes of a file, mapped read-only into memory for the lifetime of the object. Large weights
/// and recordings are thus read on demand and never copied.
///
/// Another program may truncate the file meanwhile. Reading the missing part would then kill the
/// process with SIGBUS; a signal handler, installed with the first file, maps zeros there instead,
/// whichever code reads, and passes other bus errors on. The zeros are not data: call RequireIntact
/// after reading, or read in ReadIntact.
class MappedFile
{
public:
  /// Maps the whole file. Throws FileError if it is missing, a directory or unreadable. An empty
  /// file gives zero bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Pointer to the first byte, or nullptr for an empty file.
  const std::byte* Data() const;

  /// Size in bytes.
  std::size_t Size() const;
  std::string_view Text() const; ///< the same bytes

  /// Throws FileError if the file was truncated or changed (size or modification time) since it was
  /// mapped. A file that was replaced by another one of the same name is intact.
  void RequireIntact() const;

  /// The stamp of the mapped file.
  FileStamp Stamp() const;

private:
  std::unique_ptr<const FileMapping> Mapping;
};

/// Same, for the mapped file that `data` points into, if any; arrays do not know their file.
void RequireIntact(const void* data);

/// Returns the result of `call`, which reads from `file`, a MappedFile or any other object with
/// RequireIntact. Throws FileError if the file was not intact, in preference to whatever `call`
/// throws because of the zeros.
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

/// Whether there is a file or folder; also false if this cannot be found out, for example in a
/// folder that may not be searched.
bool FileExists(const std::filesystem::path& path);

/// Returns a copy of the bytes of a file, for files that are read as a whole, such as texts. Throws
/// FileError as MappedFile does, and if the file was truncated while it was read.
std::string ReadFile(const std::filesystem::path& path);

}
