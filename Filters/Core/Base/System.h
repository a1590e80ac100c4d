#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

struct stat;

/// What Core asks of the operating system beyond the C++ library. System.cxx has all of it that is
/// bound to Linux (sched_getaffinity, /proc) or to POSIX (mmap, signals, fork, fsync, flock). A
/// number that a system does not give is unknown, for which each function below says what it
/// returns; an unknown limit limits nothing.
///
/// Beside it, what the system's files say of control groups and free memory is read by
/// SystemLimits.cxx, which finds nothing where they are not there; FileStamp.cxx takes inodes from
/// stat; and the programs that start ParaView use fork, exec and the environment (Filters/Programs:
/// VirtualDisplay.cxx, ParaViewCommands.cxx).
namespace atlas::system
{

int ProcessId();
int ParentProcessId();

/// The processors that a process may use by its mask; 0: this process. Returns 0 if unknown.
int AllowedProcessors(int process);

/// The bytes that this process holds beside mapped files, whose pages the system takes back when it
/// needs them; 0 if unknown.
double ProcessMemory();

/// The bytes that this process may have by its own limits (ulimit); infinite if unknown.
double ProcessMemoryLimit();

/// Calls a function in each child that is forked from this process.
void CallInChild(void (*function)());

/// Whether what is written to stderr is seen on a terminal.
bool ErrorsAreOnTerminal();

/// The path of the program of this process.
std::filesystem::path ProgramPath();

/// When the content of a file, and when its inode was changed last: seconds and nanoseconds.
std::array<std::int64_t, 2> ContentTime(const struct stat& status);
std::array<std::int64_t, 2> InodeTime(const struct stat& status);

/// Waits until the content of a file, or the names in a folder, are on the disk. Returns the error
/// number, or 0, also if the file system does not support this.
int Synchronize(const std::filesystem::path& path, bool isFolder);

/// Keeps other processes that ask for it out of a folder, as long as it lives.
class FolderLock
{
public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Whether another process has it. A folder that cannot be opened counts as free, since writing
  /// into it fails with a clear error.
  bool IsTaken() const { return this->Taken; }

private:
  int Folder;
  bool Taken = false;
};

/// A regular file that is open for reading during the lifetime of the object.
class InputFile
{
public:
  /// Throws FileError if it cannot be opened. A pipe or a device does not block.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& Path() const { return this->Name; }

  /// As fstat gives it. Throws FileError if it is no regular file.
  struct stat Status() const;

  /// Reads up to `size` bytes from where the last call ended, and returns how many; 0 at the end.
  /// Throws FileError.
  std::size_t Read(char* bytes, std::size_t size) const;

private:
  friend class Mapping;

  std::filesystem::path Name;
  int Descriptor;
};

/// The first bytes of an open file, mapped read-only into memory. Where another program truncates
/// the file meanwhile, a handler of SIGBUS, installed with the first mapping, maps zeros, whichever
/// code reads, and passes other bus errors on.
class Mapping
{
public:
  /// `size` > 0. `owner`: what OwnerOf returns. Throws FileError.
  Mapping(const InputFile& file, std::size_t size, const void* owner);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::byte* Data() const { return this->Begin; }

  /// Whether zeros were mapped.
  bool IsTorn() const;

  /// The owner of the mapping that an address is in, or nullptr.
  static const void* OwnerOf(const void* address);

private:
  struct Slot;
  struct Slots;

  const std::byte* Begin;
  std::size_t Size;
  Slot* Place;
};

}
