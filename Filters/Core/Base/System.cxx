#include "System.h"

#include "Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <mutex>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#else
#include <climits>
#include <mach-o/dyld.h>
#endif

namespace atlas::system
{

int ProcessId()
{
  return ::getpid();
}

int ParentProcessId()
{
  return ::getppid();
}

#ifdef __linux__

int AllowedProcessors(int process)
{
  // A mask has as many bits as the kernel has processors.
  constexpr std::size_t most = std::size_t{ 1024 } * CPU_SETSIZE;
  for (std::size_t bits = CPU_SETSIZE; bits <= most; bits *= 2)
  {
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    std::vector<cpu_set_t> mask(bytes / sizeof(cpu_set_t) + 1);
    if (sched_getaffinity(process, bytes, mask.data()) == 0)
    {
      return std::max(CPU_COUNT_S(bytes, mask.data()), 1);
    }
  }
  return 0;
}

double ProcessMemory()
{
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  double shared = 0; // pages of files
  file >> total >> resident >> shared;
  return (resident - shared) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::filesystem::path ProgramPath()
{
  return std::filesystem::canonical("/proc/self/exe");
}

std::array<std::int64_t, 2> ContentTime(const struct stat& status)
{
  return { status.st_mtim.tv_sec, status.st_mtim.tv_nsec };
}

std::array<std::int64_t, 2> InodeTime(const struct stat& status)
{
  return { status.st_ctim.tv_sec, status.st_ctim.tv_nsec };
}

#else // macOS, untried

int AllowedProcessors(int /*process*/)
{
  return 0;
}

double ProcessMemory()
{
  return 0;
}

std::filesystem::path ProgramPath()
{
  std::string path(PATH_MAX, '\0');
  std::uint32_t size = PATH_MAX;
  ThrowIf<FileError>(_NSGetExecutablePath(path.data(), &size) != 0,
    "program: expected a path of at most ", PATH_MAX, " bytes, found a longer one.");
  return std::filesystem::canonical(path.c_str());
}

std::array<std::int64_t, 2> ContentTime(const struct stat& status)
{
  return { status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec };
}

std::array<std::int64_t, 2> InodeTime(const struct stat& status)
{
  return { status.st_ctimespec.tv_sec, status.st_ctimespec.tv_nsec };
}

#endif

double ProcessMemoryLimit()
{
  double limit = std::numeric_limits<double>::infinity();
  for (const auto resource : { RLIMIT_DATA, RLIMIT_AS })
  {
    rlimit found{};
    if (::getrlimit(resource, &found) == 0 && found.rlim_cur != RLIM_INFINITY)
    {
      limit = std::min(limit, static_cast<double>(found.rlim_cur));
    }
  }
  return limit;
}

void CallInChild(void (*function)())
{
  ::pthread_atfork(nullptr, nullptr, function);
}

bool ErrorsAreOnTerminal()
{
  return ::isatty(STDERR_FILENO) == 1;
}

int Synchronize(const std::filesystem::path& path, bool isFolder)
{
  const int file = ::open(path.c_str(), (isFolder ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
  if (file < 0)
  {
    return errno;
  }
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error == EINVAL || error == ENOTSUP || error == ENOSYS ? 0 : error;
}

FolderLock::FolderLock(const std::filesystem::path& folder)
  : Folder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
{
  this->Taken =
    this->Folder >= 0 && ::flock(this->Folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FolderLock::~FolderLock()
{
  if (this->Folder >= 0)
  {
    ::close(this->Folder);
  }
}

namespace
{

[[noreturn]] void Fail(const std::filesystem::path& path, const char* what, int error)
{
  throw FileError(path.string(), ": ", what, ": ", std::generic_category().message(error), ".");
}

}

InputFile::InputFile(const std::filesystem::path& path)
  : Name(path)
  // O_NONBLOCK: accidentally opening a pipe or a device must not block.
  , Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))
{
  if (this->Descriptor < 0)
  {
    Fail(path, "cannot open file", errno);
  }
}

InputFile::~InputFile()
{
  ::close(this->Descriptor);
}

struct stat InputFile::Status() const
{
  struct stat status = {};
  if (::fstat(this->Descriptor, &status) != 0)
  {
    Fail(this->Name, "cannot examine file", errno);
  }
  if (!S_ISREG(status.st_mode))
  {
    throw FileError(this->Name.string(), ": expected a regular file, found ",
      S_ISDIR(status.st_mode) ? "a folder." : "something else.");
  }
  return status;
}

std::size_t InputFile::Read(char* bytes, std::size_t size) const
{
  for (;;)
  {
    const ssize_t count = ::read(this->Descriptor, bytes, size);
    if (count >= 0)
    {
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR)
    {
      Fail(this->Name, "cannot read file", errno);
    }
  }
}

/// An address range into which a file is mapped, for the handler of bus errors. The handler cannot
/// lock, so slots are in a list that only grows, and are reused.
struct Mapping::Slot
{
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0; ///< end of the last page; 0: the slot is free
  std::atomic<bool> torn = false;      ///< the handler mapped zeros there
  const void* owner = nullptr;
  Slot* next = nullptr;

  bool Holds(std::uintptr_t address) const { return address >= this->begin && address < this->end; }
};

/// The list of slots, and the handler.
struct Mapping::Slots
{
  static std::atomic<Slot*> First;
  static std::atomic<std::uintptr_t> PageSize;
  static struct sigaction Earlier;
  static std::mutex Mutex; ///< guards the slots against everything except the handler

  /// Returns a free slot, or a new one. The caller must hold the mutex.
  static Slot& Free()
  {
    for (Slot* slot = First; slot != nullptr; slot = slot->next)
    {
      if (slot->owner == nullptr)
      {
        return *slot;
      }
    }
    auto* slot = new Slot; // never deleted, as it stays in the list
    slot->next = First;
    First = slot;
    return *slot;
  }

  /// Does what would have happened without our handler.
  static void PassOn(int signal, siginfo_t* info, void* context)
  {
    if ((Earlier.sa_flags & SA_SIGINFO) != 0)
    {
      Earlier.sa_sigaction(signal, info, context);
    }
    else if (Earlier.sa_handler != SIG_DFL && Earlier.sa_handler != SIG_IGN)
    {
      Earlier.sa_handler(signal);
    }
    else if (Earlier.sa_handler == SIG_DFL || info->si_code > 0)
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

  static void Handle(int signal, siginfo_t* info, void* context)
  {
    const int error = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (Slot* slot = First; slot != nullptr && info->si_code > 0; slot = slot->next)
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

  static void InstallHandler()
  {
    static std::once_flag once;
    std::call_once(once,
      []
      {
        PageSize = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        struct sigaction action = {};
        action.sa_sigaction = Handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, nullptr, &Earlier); // must be set before the handler runs
        ::sigaction(SIGBUS, &action, nullptr);
      });
  }
};

std::atomic<Mapping::Slot*> Mapping::Slots::First = nullptr;
std::atomic<std::uintptr_t> Mapping::Slots::PageSize = 0;
struct sigaction Mapping::Slots::Earlier = {};
std::mutex Mapping::Slots::Mutex;

Mapping::Mapping(const InputFile& file, std::size_t size, const void* owner)
  : Size(size)
{
  Slots::InstallHandler();
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.Descriptor, 0);
  if (address == MAP_FAILED)
  {
    Fail(file.Path(), "cannot map file into memory", errno);
  }
  this->Begin = static_cast<const std::byte*>(address);
  const std::lock_guard<std::mutex> lock(Slots::Mutex);
  this->Place = &Slots::Free();
  this->Place->owner = owner;
  this->Place->torn = false;
  this->Place->begin = reinterpret_cast<std::uintptr_t>(address);
  this->Place->end =
    this->Place->begin + (size + Slots::PageSize - 1) / Slots::PageSize * Slots::PageSize;
}

Mapping::~Mapping()
{
  {
    const std::lock_guard<std::mutex> lock(Slots::Mutex);
    this->Place->end = 0;
    this->Place->owner = nullptr;
  }
  ::munmap(const_cast<std::byte*>(this->Begin), this->Size);
}

bool Mapping::IsTorn() const
{
  return this->Place->torn;
}

const void* Mapping::OwnerOf(const void* address)
{
  const std::lock_guard<std::mutex> lock(Slots::Mutex);
  for (const Slot* slot = Slots::First; slot != nullptr; slot = slot->next)
  {
    if (slot->Holds(reinterpret_cast<std::uintptr_t>(address)))
    {
      return slot->owner;
    }
  }
  return nullptr;
}

}
