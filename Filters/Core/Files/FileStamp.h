#pragma once

#include <cstdint>
#include <filesystem>
#include <tuple>

struct stat;

namespace atlas
{

/// Detects whether a file was changed or replaced, without opening it, by device and inode, size,
/// and the times of the last change of its content and of its inode. A path without a file has a
/// stamp too. A change that keeps the size and happens within one tick of the file system's clock,
/// a few milliseconds, is not detected.
class FileStamp
{
public:
  /// The stamp of the file that currently has this path, or of its absence.
  explicit FileStamp(std::filesystem::path path);

  /// The stamp of an open file, from the result of fstat.
  FileStamp(std::filesystem::path path, const struct stat& status);

  /// Whether the path still refers to the same, unchanged file, or still to none.
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
