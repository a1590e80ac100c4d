#include "FailedFiles.h"

#include "FileStamp.h"

#include <vtkObject.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

namespace AttentionAtlas
{
namespace
{

constexpr std::size_t MostFiles = 256;

/// What is in a folder; nothing if there is more than that.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder)
{
  std::vector<std::filesystem::path> entries;
  std::error_code ignored;
  std::filesystem::directory_iterator entry(folder, ignored);
  for (; entry != end(entry) && entries.size() <= MostFiles; entry.increment(ignored))
  {
    entries.push_back(entry->path());
  }
  return entries.size() <= MostFiles ? entries : std::vector<std::filesystem::path>();
}

}

struct FailedFiles::Stamps
{
  std::vector<atlas::FileStamp> all;
};

void FailedFiles::Remember(const std::vector<const char*>& fileNames)
{
  auto stamps = std::make_shared<Stamps>();
  for (const char* fileName : fileNames)
  {
    if (fileName == nullptr || *fileName == '\0')
    {
      continue;
    }
    std::error_code ignored;
    const std::filesystem::path place = std::filesystem::absolute(fileName, ignored);
    stamps->all.emplace_back(place);
    stamps->all.emplace_back(place.parent_path());
    for (std::filesystem::path& entry : EntriesOf(place.parent_path()))
    {
      stamps->all.emplace_back(std::move(entry));
    }
  }
  this->Known = std::move(stamps);
}

void FailedFiles::Touch(vtkObject* algorithm)
{
  if (this->Known != nullptr && !std::all_of(this->Known->all.begin(), this->Known->all.end(),
                                  [](const atlas::FileStamp& stamp) { return stamp.IsCurrent(); }))
  {
    this->Forget();
    algorithm->Modified();
  }
}

}
