#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace atlas::test
{

/// An empty folder for a test, removed with its content at the end of its scope.
class TemporaryDirectory
{
public:
  TemporaryDirectory()
  {
    std::string name = (std::filesystem::temp_directory_path() / "attention-atlas-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
    {
      throw std::system_error(errno, std::generic_category(), name);
    }
    this->Folder = name;
  }
  ~TemporaryDirectory()
  {
    std::error_code ignored;
    std::filesystem::remove_all(this->Folder, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& Path() const { return this->Folder; }

  std::filesystem::path operator/(const std::string& name) const { return this->Folder / name; }

  /// The names of the files and folders in it, to see what a writer left behind.
  std::set<std::string> Entries() const
  {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(this->Folder))
    {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

private:
  std::filesystem::path Folder;
};

inline void WriteBytes(const std::filesystem::path& path, const std::string& bytes)
{
  std::ofstream stream(path, std::ios::binary);
  stream.exceptions(std::ios::failbit | std::ios::badbit);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string ReadBytes(const std::filesystem::path& path)
{
  std::ifstream stream(path, std::ios::binary);
  stream.exceptions(std::ios::badbit);
  return { std::istreambuf_iterator<char>(stream), {} };
}

}
