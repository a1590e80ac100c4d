#pragma once

#include <cstdint>
#include <filesystem>
#include <tuple>

struct stat;

namespace atlas
{

/// What distinguishes a file from later ones of its name without opening it: device and inode,
/// size, and the times of the last change of its content and of its inode. A name without a file
/// has a stamp too. Changes of equal size within one tick of the file system's clock, a few
/// milliseconds, go unnoticed.
class FileStamp
{
public:
  /// The file that now has this name, or that there is none.
  explicit FileStamp(std::filesystem::path path);

  /// A file that is open, by what fstat returned.
  FileStamp(std::filesystem::path path, const struct stat& status);

  /// Whether the name still leads to the same, unchanged file, or still to none.
  bool IsCurrent() const;

private:
  using Numbers = std::tuple<bool, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t,
    std::int64_t, std::int64_t, std::int64_t>;

  std::filesystem::path Path;
  Numbers Known;

  static Numbers NumbersOf(const struct stat& status);
  static Numbers NumbersOf(const std::filesystem::path& path);
};

}
