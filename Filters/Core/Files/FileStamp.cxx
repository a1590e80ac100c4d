#include "FileStamp.h"

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
  return { true, status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
    status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec };
}

FileStamp::Numbers FileStamp::NumbersOf(const std::filesystem::path& path)
{
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? NumbersOf(status) : Numbers();
}

}
