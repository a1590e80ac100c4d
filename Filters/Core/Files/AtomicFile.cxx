#include "AtomicFile.h"

#include "Base/Error.h"

#include <cerrno>
#include <random>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace atlas
{
namespace
{

/// A name that no other writer uses at the same time, even on another machine.
std::filesystem::path TemporaryName(const std::filesystem::path& path)
{
  return path.string() + "." + std::to_string(std::random_device()()) + ".tmp";
}

[[noreturn]] void Fail(const std::filesystem::path& path, const std::string& reason)
{
  throw FileError(path.string(), ": cannot write file: ", reason, ".");
}

/// Waits until the content of a file, or the names in a folder, are on the disk. Returns the error
/// number, or 0, also if the file system does not support this.
int Synchronize(const std::filesystem::path& path, int access)
{
  const int file = ::open(path.c_str(), access | O_CLOEXEC);
  if (file < 0)
  {
    return errno;
  }
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error == EINVAL || error == ENOTSUP || error == ENOSYS ? 0 : error;
}

}

AtomicFile::AtomicFile(std::filesystem::path path)
  : Path(std::move(path))
  , TemporaryPath(TemporaryName(this->Path))
  , Stream(this->TemporaryPath, std::ios::binary)
{
  if (!this->Stream)
  {
    Fail(this->Path, std::generic_category().message(errno));
  }
}

AtomicFile::~AtomicFile()
{
  if (!this->Committed)
  {
    this->Stream.close();
    std::error_code ignored;
    std::filesystem::remove(this->TemporaryPath, ignored);
  }
}

void AtomicFile::Write(const char* data, std::size_t size)
{
  this->Stream.write(data, static_cast<std::streamsize>(size));
  this->RequireWritten();
}

void AtomicFile::RequireWritten() const
{
  ThrowIf<FileError>(!this->Stream, this->Path.string(), ": cannot write file; is the disk full?");
}

void AtomicFile::Commit()
{
  this->Stream.close();
  this->RequireWritten();
  // Renamed only now, so after a power failure the name has either the old content or all of the
  // new.
  if (const int error = Synchronize(this->TemporaryPath, O_WRONLY))
  {
    Fail(this->Path, std::generic_category().message(error));
  }
  std::error_code error;
  std::filesystem::rename(this->TemporaryPath, this->Path, error);
  if (error)
  {
    Fail(this->Path, error.message());
  }
  this->Committed = true;
  // The file exists even if its folder cannot be opened.
  Synchronize(this->Path.has_parent_path() ? this->Path.parent_path() : ".", O_RDONLY);
}

}
