#include "TaskErrors.h"

#include "Files/FileStamp.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>

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

struct TaskErrors::Stamps
{
  std::vector<atlas::FileStamp> all;
};

bool TaskErrors::Add(
  vtkAlgorithm* filter, const std::string& error, const std::vector<std::string>& files)
{
  vtkMTimeType changed = filter->GetMTime();
  for (int port = 0; port < filter->GetNumberOfInputPorts(); ++port)
  {
    for (int i = 0; i < filter->GetNumberOfInputConnections(port); ++i)
    {
      if (vtkDataObject* data = filter->GetInputDataObject(port, i))
      {
        changed = std::max({ changed, data->GetMTime(), data->GetUpdateTime() });
      }
    }
  }
  const bool isNew = changed > this->Told.GetMTime() || error != this->Last;
  this->Told.Modified();
  this->Last = error;
  auto stamps = std::make_shared<Stamps>();
  for (const std::string& file : files)
  {
    std::error_code ignored;
    const std::filesystem::path place = std::filesystem::absolute(file, ignored);
    stamps->all.emplace_back(place);
    stamps->all.emplace_back(place.parent_path());
    for (std::filesystem::path& entry : EntriesOf(place.parent_path()))
    {
      stamps->all.emplace_back(std::move(entry));
    }
  }
  this->Files = std::move(stamps);
  return isNew;
}

void TaskErrors::Clear()
{
  this->Last.clear();
  this->Files.reset();
}

bool TaskErrors::AreMended()
{
  const bool areMended =
    this->Files != nullptr && !std::all_of(this->Files->all.begin(), this->Files->all.end(),
                                [](const atlas::FileStamp& stamp) { return stamp.IsCurrent(); });
  if (areMended)
  {
    this->Files.reset();
  }
  return areMended;
}

}
