#include "MappedFile.h"

#include "Error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace atlas
{
namespace
{

[[noreturn]] void Fail(const std::filesystem::path& path, const char* what, int error)
{
  throw FileError(
    path.string() + ": " + what + ": " + std::generic_category().message(error) + ".");
}

/// A file descriptor that is closed at the end of its scope.
class Descriptor
{
public:
  explicit Descriptor(int fd)
    : Fd(fd)
  {
  }
  ~Descriptor()
  {
    if (this->Fd >= 0)
    {
      ::close(this->Fd);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int Get() const { return this->Fd; }

private:
  int Fd;
};

}

MappedFile::MappedFile(const std::filesystem::path& path)
{
  // O_NONBLOCK: opening a pipe or a device by mistake must not hang the program.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.Get() < 0)
  {
    Fail(path, "cannot open file", errno);
  }
  struct stat status = {};
  if (::fstat(file.Get(), &status) != 0)
  {
    Fail(path, "cannot examine file", errno);
  }
  if (!S_ISREG(status.st_mode))
  {
    throw FileError(path.string() + ": expected a regular file, found something else.");
  }
  this->Length = static_cast<std::size_t>(status.st_size);
  if (this->Length == 0)
  {
    return;
  }
  void* address = ::mmap(nullptr, this->Length, PROT_READ, MAP_PRIVATE, file.Get(), 0);
  if (address == MAP_FAILED)
  {
    Fail(path, "cannot map file into memory", errno);
  }
  this->Begin = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile()
{
  if (this->Begin != nullptr)
  {
    ::munmap(const_cast<std::byte*>(this->Begin), this->Length);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
  : Begin(std::exchange(other.Begin, nullptr))
  , Length(std::exchange(other.Length, 0))
{
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept
{
  std::swap(this->Begin, other.Begin);
  std::swap(this->Length, other.Length);
  return *this;
}

}
