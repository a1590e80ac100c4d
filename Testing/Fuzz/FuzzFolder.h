#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace atlas::fuzz
{

/// A folder for readers that take files alone. It is the current folder while this lives, so that
/// messages begin with names of files in it.
class Folder
{
public:
  Folder()
    : Before(std::filesystem::current_path())
  {
    std::string name = (std::filesystem::temp_directory_path() / "attention-atlas-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
    {
      std::abort();
    }
    this->Path = name;
    std::filesystem::current_path(name);
  }
  ~Folder()
  {
    std::error_code ignored;
    std::filesystem::current_path(this->Before, ignored);
    std::filesystem::remove_all(this->Path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Writes a file of the current folder, a new one: some file systems write what is replaced to
  /// disk at once.
  static void Write(const std::string& name, std::string_view bytes)
  {
    std::filesystem::remove(name);
    std::ofstream stream(name, std::ios::binary);
    stream.exceptions(std::ios::failbit | std::ios::badbit);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

private:
  std::filesystem::path Before;
  std::filesystem::path Path;
};

}
