#include "AtomicFile.h"

#include "Error.h"

#include <cerrno>
#include <random>
#include <system_error>

namespace atlas
{
namespace
{

/// A name that no other writer uses at the same time, even on another machine.
std::filesystem::path TemporaryName(const std::filesystem::path& path)
{
  std::random_device random;
  std::filesystem::path name = path;
  name += "." + std::to_string(random()) + ".tmp";
  return name;
}

}

AtomicFile::AtomicFile(std::filesystem::path path)
  : Path(std::move(path))
  , TemporaryPath(TemporaryName(this->Path))
  , Stream(this->TemporaryPath, std::ios::binary)
{
  if (!this->Stream)
  {
    const int error = errno;
    throw FileError(
      this->Path.string() + ": cannot write file: " + std::generic_category().message(error) + ".");
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
}

void AtomicFile::Commit()
{
  this->Stream.close();
  if (!this->Stream)
  {
    throw FileError(this->Path.string() + ": cannot write file; is the disk full?");
  }
  std::error_code error;
  std::filesystem::rename(this->TemporaryPath, this->Path, error);
  if (error)
  {
    throw FileError(this->Path.string() + ": cannot write file: " + error.message() + ".");
  }
  this->Committed = true;
}

}
