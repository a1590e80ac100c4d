#include "FileStamp.h"

#include "Base/System.h"

#include <utility>

#include <sys/stat.h>

namespace atlas
{

FileStamp::FileStamp(std::filesystem::path path)
  : Path(std::move(path))
  , Known(NumbersOf(this->Path))
{
}

FileStamp::FileStamp(std::filesystem::path path, const struct stat& status)
  : Path(std::move(path))
  , Known(NumbersOf(status))
{
}

bool FileStamp::IsCurrent() const
{
  return NumbersOf(this->Path) == this->Known;
}

FileStamp::Numbers FileStamp::NumbersOf(const struct stat& status)
{
  const auto content = system::ContentTime(status);
  const auto inode = system::InodeTime(status);
  return { true, status.st_dev, status.st_ino, status.st_size, content[0], content[1], inode[0],
    inode[1] };
}

FileStamp::Numbers FileStamp::NumbersOf(const std::filesystem::path& path)
{
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? NumbersOf(status) : Numbers();
}

}
