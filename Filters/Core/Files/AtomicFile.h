#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>

namespace atlas
{

/// Writes a file completely or not at all. The bytes go to a temporary file in the same folder,
/// which Commit renames to the final name. Without Commit the temporary file is removed. Commit
/// waits for the disk, so this holds even after a power failure.
class AtomicFile
{
public:
  /// Throws FileError if the temporary file cannot be created.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws FileError if something could not be written.
  void Write(const char* data, std::size_t size);

  /// The stream to write to.
  std::ostream& GetStream() { return this->Stream; }

  /// Completes the file. Throws FileError if writing or syncing to the disk fails, or if the file
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
