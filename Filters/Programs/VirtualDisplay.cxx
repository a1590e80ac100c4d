#include "VirtualDisplay.h"

#include "Base/Error.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace atlas::programs
{
namespace
{

/// The milliseconds that a server may take to start.
constexpr int LongestStart = 30000;

/// A file in memory that programs started from here can open by its path, also those that inherit
/// no open files. This process becomes ParaView's Python, and keeps its number.
struct MemoryFile
{
  int descriptor;
  std::string path;

  explicit MemoryFile(const char* name)
    : descriptor(::memfd_create(name, 0))
    , path("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(this->descriptor))
  {
    ThrowIf<OptionError>(
      this->descriptor < 0, "the display: expected a file in memory, found none.");
  }

  /// Replaces what is in it. Returns whether that worked.
  bool Set(const std::string& text) const
  {
    return ::ftruncate(this->descriptor, 0) == 0 &&
           ::pwrite(this->descriptor, text.data(), text.size(), 0) ==
             static_cast<ssize_t>(text.size());
  }

  /// What was written.
  std::string Text() const
  {
    std::string text;
    std::array<char, 4096> part;
    ::lseek(this->descriptor, 0, SEEK_SET);
    for (ssize_t size = 0; (size = ::read(this->descriptor, part.data(), part.size())) > 0;)
    {
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    return text;
  }
};

std::string RandomKey()
{
  std::random_device random;
  std::string key;
  while (key.size() < 16)
  {
    key += static_cast<char>(random());
  }
  return key;
}

/// An entry of an Xauthority file (Xau(3)) for the display of a number, or for any if that is
/// empty: a family, then address, display, name of the method and key, each after its length, in
/// two bytes.
std::string Entry(const std::string& number, const std::string& key)
{
  std::string entry("\377\377", 2); // FamilyWild
  for (const std::string& field : { std::string(), number, std::string("MIT-MAGIC-COOKIE-1"), key })
  {
    entry += '\0';
    entry += static_cast<char>(field.size());
    entry += field;
  }
  return entry;
}

/// The entries that the user has for other displays. ParaView asks each from :0 to :9 what it is.
std::string UsersEntries()
{
  const char* file = std::getenv("XAUTHORITY");
  const char* home = std::getenv("HOME");
  std::ifstream stream(
    file != nullptr ? file : std::string(home == nullptr ? "" : home) + "/.Xauthority");
  return { std::istreambuf_iterator<char>(stream), {} };
}

/// In the child. -noreset: a server that resets when its last client leaves can miss the next one;
/// ParaView opens and closes displays.
[[noreturn]] void BecomeServer(
  pid_t parent, int number, const MemoryFile& authority, const MemoryFile& log)
{
  ::setsid(); // so that Ctrl+C does not end it before its clients
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() == parent)
  {
    ::dup2(log.descriptor, STDERR_FILENO);
    ::dup2(log.descriptor, STDOUT_FILENO);
    // Not the first free number, which can be that of a server which is just ending; and ParaView
    // asks each display from :0 to :9 what it is.
    const std::string display = ":" + std::to_string(1000 + parent % 50000);
    ::execlp("Xvfb", "Xvfb", display.c_str(), "-displayfd", std::to_string(number).c_str(),
      "-screen", "0", "1280x1024x24", "-nolisten", "tcp", "-noreset", "-auth",
      authority.path.c_str(), static_cast<char*>(nullptr));
  }
  ::_exit(errno == ENOENT ? 127 : 126);
}

/// The number that the server writes once it is ready; nothing if it ends before.
std::string ReadNumber(int descriptor)
{
  std::string number;
  char digit = 0;
  pollfd ready = { descriptor, POLLIN, 0 };
  while (::poll(&ready, 1, LongestStart) > 0 && ::read(descriptor, &digit, 1) == 1 && digit != '\n')
  {
    number += digit;
  }
  return number;
}

}

bool StartVirtualDisplay()
{
  const MemoryFile authority("Xauthority");
  const MemoryFile log("Xvfb.log");
  const std::string key = RandomKey();
  std::array<int, 2> ends = {};
  ThrowIf<OptionError>(
    !authority.Set(Entry("", key)) || ::pipe(ends.data()) != 0, "the display: cannot be set up.");
  const pid_t self = ::getpid();
  const pid_t server = ::fork();
  ThrowIf<OptionError>(
    server < 0, "the display: no process can be started: ", std::strerror(errno));
  if (server == 0)
  {
    ::close(ends[0]);
    BecomeServer(self, ends[1], authority, log);
  }
  ::close(ends[1]);
  const std::string number = ReadNumber(ends[0]);
  ::close(ends[0]);
  if (number.empty())
  {
    ::kill(server, SIGKILL); // if it has not ended by itself
    int status = 0;
    ::waitpid(server, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    {
      return false;
    }
    throw OptionError("the display: expected that Xvfb starts, found\n" + log.Text());
  }
  ::close(log.descriptor);
  // From now on the key is for this display alone: others would refuse it, and report that.
  authority.Set(Entry(number, key) + UsersEntries());
  ::setenv("DISPLAY", (":" + number).c_str(), 1);
  ::setenv("XAUTHORITY", authority.path.c_str(), 1);
  return true;
}

}
