#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>

namespace atlas
{

/// A file that appears whole or not at all: bytes go to a temporary file in the same folder, which
/// Commit renames to the wanted name. Without Commit the temporary file is removed. Commit waits
/// for the disk, so that this holds after a loss of power too.
class AtomicFile
{
public:
  /// Throws FileError if the temporary file cannot be created.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws FileError once something could not be written.
  void Write(const char* data, std::size_t size);

  /// For those who write to streams.
  std::ostream& GetStream() { return this->Stream; }

  /// Throws FileError if anything was not written or cannot be synced to the disk, or the file
  /// cannot be renamed.
  void Commit();

private:
  std::filesystem::path Path;
  std::filesystem::path TemporaryPath;
  std::ofstream Stream;
  bool Committed = false;

  void RequireWritten() const;
};

}
