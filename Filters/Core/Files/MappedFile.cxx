#include "MappedFile.h"

#include "Base/System.h"

#include <optional>
#include <system_error>

#include <sys/stat.h>

namespace atlas
{
namespace
{

[[noreturn]] void FailTruncated(const std::filesystem::path& path)
{
  throw FileError(path.string(), ": the file was truncated while in use.");
}

}

/// A file and its bytes in memory.
class FileMapping
{
public:
  explicit FileMapping(const std::filesystem::path& path)
    : File(path)
    , Opened(this->File.Status())
  {
    if (this->Size() > 0)
    {
      this->Bytes.emplace(this->File, this->Size(), this);
    }
  }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  const std::byte* Data() const { return this->Bytes ? this->Bytes->Data() : nullptr; }
  std::size_t Size() const { return this->Opened.st_size; }

  FileStamp Stamp() const { return { this->File.Path(), this->Opened }; }

  void RequireIntact() const
  {
    const struct stat now = this->File.Status();
    if (now.st_size < this->Opened.st_size || (this->Bytes && this->Bytes->IsTorn()))
    {
      FailTruncated(this->File.Path());
    }
    if (now.st_size != this->Opened.st_size ||
        system::ContentTime(now) != system::ContentTime(this->Opened))
    {
      throw FileError(this->File.Path().string(), ": the file was changed while in use.");
    }
  }

private:
  system::InputFile File;
  struct stat Opened;
  std::optional<system::Mapping> Bytes; ///< none of an empty file
};

MappedFile::MappedFile(const std::filesystem::path& path)
  : Mapping(std::make_unique<FileMapping>(path))
{
}

MappedFile::~MappedFile() = default;

const std::byte* MappedFile::Data() const
{
  return this->Mapping->Data();
}

std::size_t MappedFile::Size() const
{
  return this->Mapping->Size();
}

std::string_view MappedFile::Text() const
{
  return { reinterpret_cast<const char*>(this->Data()), this->Size() };
}

void MappedFile::RequireIntact() const
{
  this->Mapping->RequireIntact();
}

FileStamp MappedFile::Stamp() const
{
  return this->Mapping->Stamp();
}

void RequireIntact(const void* data)
{
  if (const void* owner = system::Mapping::OwnerOf(data))
  {
    static_cast<const FileMapping*>(owner)
      ->RequireIntact(); // it lives as long as its memory is used
  }
}

bool FileExists(const std::filesystem::path& path)
{
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string ReadFile(const std::filesystem::path& path)
{
  const system::InputFile file(path);
  std::string bytes(file.Status().st_size, '\0');
  for (std::size_t begin = 0; begin < bytes.size();)
  {
    const std::size_t count = file.Read(bytes.data() + begin, bytes.size() - begin);
    if (count == 0)
    {
      FailTruncated(path);
    }
    begin += count;
  }
  return bytes;
}

}
