#include "AtomicFile.h"

#include "Base/Error.h"
#include "Base/System.h"

#include <cerrno>
#include <random>
#include <string>
#include <system_error>

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
  if (const int error = system::Synchronize(this->TemporaryPath, false))
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
  system::Synchronize(this->Path.has_parent_path() ? this->Path.parent_path() : ".", true);
}

}
