#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include <sys/inotify.h>
#include <unistd.h>

namespace atlas::test
{

/// The files of a folder that are opened, by whoever opens them, as Linux reports it.
class OpenedFiles
{
public:
  explicit OpenedFiles(const std::filesystem::path& folder)
    : Queue(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
  {
    if (this->Queue < 0 || ::inotify_add_watch(this->Queue, folder.c_str(), IN_OPEN) < 0)
    {
      throw std::system_error(errno, std::generic_category(), "inotify");
    }
  }
  ~OpenedFiles() { ::close(this->Queue); }
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  /// Names of the files that were opened since the last call.
  std::set<std::string> Take()
  {
    std::set<std::string> names;
    std::array<char, 65536> buffer;
    for (ssize_t count = 0; (count = ::read(this->Queue, buffer.data(), buffer.size())) > 0;)
    {
      for (std::size_t begin = 0; begin < static_cast<std::size_t>(count);)
      {
        inotify_event event;
        std::memcpy(&event, buffer.data() + begin, sizeof(event));
        if (event.len > 0) // 0: the folder itself
        {
          names.insert(buffer.data() + begin + sizeof(event));
        }
        begin += sizeof(event) + event.len;
      }
    }
    return names;
  }

private:
  int Queue;
};

}
