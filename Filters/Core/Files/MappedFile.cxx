#include "MappedFile.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <system_error>

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
  throw FileError(path.string(), ": ", what, ": ", std::generic_category().message(error), ".");
}

[[noreturn]] void FailTruncated(const std::filesystem::path& path)
{
  throw FileError(path.string(), ": the file was truncated while in use.");
}

/// A regular file that is open for reading during the lifetime of the object.
class Descriptor
{
public:
  explicit Descriptor(const std::filesystem::path& path)
    : Path(path)
    // O_NONBLOCK: accidentally opening a pipe or a device must not block.
    , Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))
  {
    if (this->Fd < 0)
    {
      Fail(path, "cannot open file", errno);
    }
  }
  ~Descriptor() { ::close(this->Fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int Get() const { return this->Fd; }
  const std::filesystem::path& GetPath() const { return this->Path; }

  struct stat Status() const
  {
    struct stat status = {};
    if (::fstat(this->Fd, &status) != 0)
    {
      Fail(this->Path, "cannot examine file", errno);
    }
    if (!S_ISREG(status.st_mode))
    {
      throw FileError(this->Path.string(), ": expected a regular file, found ",
        S_ISDIR(status.st_mode) ? "a folder." : "something else.");
    }
    return status;
  }

private:
  std::filesystem::path Path;
  int Fd;
};

/// An address range into which a file is mapped, for the handler of bus errors. The handler cannot
/// lock, so slots are in a list that only grows, and are reused.
struct Slot
{
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0; ///< end of the last page; 0: the slot is free
  std::atomic<bool> torn = false;      ///< the handler mapped zeros there
  const FileMapping* mapping = nullptr;
  Slot* next = nullptr;

  bool Holds(std::uintptr_t address) const { return address >= this->begin && address < this->end; }
};

std::atomic<Slot*> FirstSlot = nullptr;
std::atomic<std::uintptr_t> PageSize = 0;
struct sigaction EarlierAction = {};

/// Guards the slots against everything except the handler.
std::mutex SlotMutex;

/// Returns a free slot, or a new one. The caller must hold SlotMutex.
Slot& FreeSlot()
{
  for (Slot* slot = FirstSlot; slot != nullptr; slot = slot->next)
  {
    if (slot->mapping == nullptr)
    {
      return *slot;
    }
  }
  auto* slot = new Slot; // never deleted, as it stays in the list
  slot->next = FirstSlot;
  FirstSlot = slot;
  return *slot;
}

/// Does what would have happened without our handler.
void PassOn(int signal, siginfo_t* info, void* context)
{
  if ((EarlierAction.sa_flags & SA_SIGINFO) != 0)
  {
    EarlierAction.sa_sigaction(signal, info, context);
  }
  else if (EarlierAction.sa_handler != SIG_DFL && EarlierAction.sa_handler != SIG_IGN)
  {
    EarlierAction.sa_handler(signal);
  }
  else if (EarlierAction.sa_handler == SIG_DFL || info->si_code > 0)
  {
    // The failing instruction runs again, now without a handler.
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    if (info->si_code <= 0) // sent by a program
    {
      ::raise(signal);
    }
  }
}

void HandleBusError(int signal, siginfo_t* info, void* context)
{
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Slot* slot = FirstSlot; slot != nullptr && info->si_code > 0; slot = slot->next)
  {
    if (slot->Holds(address))
    {
      // Starting at this page, as the pages before it may be in use.
      const std::uintptr_t behind = address % PageSize;
      void* page = static_cast<char*>(info->si_addr) - behind;
      slot->torn = true;
      void* zeros = ::mmap(page, slot->end - address + behind, PROT_READ,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      if (zeros != MAP_FAILED)
      {
        errno = error;
        return;
      }
    }
  }
  PassOn(signal, info, context);
}

void InstallHandler()
{
  static std::once_flag once;
  std::call_once(once,
    []
    {
      PageSize = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
      struct sigaction action = {};
      action.sa_sigaction = HandleBusError;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      ::sigemptyset(&action.sa_mask);
      ::sigaction(SIGBUS, nullptr, &EarlierAction); // must be set before the handler runs
      ::sigaction(SIGBUS, &action, nullptr);
    });
}

}

/// A mapped file and its slot.
class FileMapping
{
public:
  explicit FileMapping(const std::filesystem::path& path)
    : File(path)
    , Opened(this->File.Status())
  {
    if (this->Size() == 0)
    {
      return;
    }
    InstallHandler();
    void* address = ::mmap(nullptr, this->Size(), PROT_READ, MAP_PRIVATE, this->File.Get(), 0);
    if (address == MAP_FAILED)
    {
      Fail(path, "cannot map file into memory", errno);
    }
    this->Begin = static_cast<const std::byte*>(address);
    const std::lock_guard<std::mutex> lock(SlotMutex);
    this->Place = &FreeSlot();
    this->Place->mapping = this;
    this->Place->torn = false;
    this->Place->begin = reinterpret_cast<std::uintptr_t>(address);
    this->Place->end = this->Place->begin + (this->Size() + PageSize - 1) / PageSize * PageSize;
  }
  ~FileMapping()
  {
    if (this->Begin != nullptr)
    {
      {
        const std::lock_guard<std::mutex> lock(SlotMutex);
        this->Place->end = 0;
        this->Place->mapping = nullptr;
      }
      ::munmap(const_cast<std::byte*>(this->Begin), this->Size());
    }
  }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  const std::byte* Data() const { return this->Begin; }
  std::size_t Size() const { return this->Opened.st_size; }

  FileStamp Stamp() const { return { this->File.GetPath(), this->Opened }; }

  void RequireIntact() const
  {
    const struct stat now = this->File.Status();
    if (now.st_size < this->Opened.st_size || (this->Place != nullptr && this->Place->torn))
    {
      FailTruncated(this->File.GetPath());
    }
    if (now.st_size != this->Opened.st_size || now.st_mtim.tv_sec != this->Opened.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != this->Opened.st_mtim.tv_nsec)
    {
      throw FileError(this->File.GetPath().string(), ": the file was changed while in use.");
    }
  }

private:
  Descriptor File;
  struct stat Opened;
  const std::byte* Begin = nullptr;
  Slot* Place = nullptr;
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
  const FileMapping* mapping = nullptr;
  {
    const std::lock_guard<std::mutex> lock(SlotMutex);
    for (const Slot* slot = FirstSlot; slot != nullptr && mapping == nullptr; slot = slot->next)
    {
      if (slot->Holds(reinterpret_cast<std::uintptr_t>(data)))
      {
        mapping = slot->mapping;
      }
    }
  }
  if (mapping != nullptr)
  {
    mapping->RequireIntact(); // it lives as long as its memory is in use
  }
}

bool FileExists(const std::filesystem::path& path)
{
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string ReadFile(const std::filesystem::path& path)
{
  const Descriptor file(path);
  std::string bytes(file.Status().st_size, '\0');
  for (std::size_t begin = 0; begin < bytes.size();)
  {
    const ssize_t count = ::read(file.Get(), bytes.data() + begin, bytes.size() - begin);
    if (count == 0)
    {
      FailTruncated(path);
    }
    if (count < 0 && errno != EINTR)
    {
      Fail(path, "cannot read file", errno);
    }
    begin += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  return bytes;
}

}
