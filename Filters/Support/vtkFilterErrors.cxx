#include "vtkFilterErrors.h"

#include "vtkTaskAlgorithm.h"

#include <vtkAlgorithm.h>
#include <vtkCommand.h>
#include <vtkMultiProcessController.h>
#include <vtkObjectFactory.h>
#include <vtkOutputWindow.h>

#include <algorithm>

namespace
{

/// What an error event says, without the file, line and object that VTK puts before it.
std::string MessageOf(const std::string& text)
{
  const std::string before = "): ";
  const std::size_t place = text.find(before);
  const std::size_t first = place == std::string::npos ? 0 : place + before.size();
  const std::size_t last = text.find_last_not_of(" \n");
  return last == std::string::npos || last < first ? "" : text.substr(first, last + 1 - first);
}

/// The first text of all ranks that is not empty.
std::string FirstOfAll(const std::string& mine, vtkMultiProcessController* controller)
{
  const auto length = static_cast<vtkIdType>(mine.size());
  std::vector<vtkIdType> lengths(controller->GetNumberOfProcesses());
  controller->AllGather(&length, lengths.data(), 1);
  const auto rank =
    std::find_if(lengths.begin(), lengths.end(), [](vtkIdType candidate) { return candidate > 0; });
  if (rank == lengths.end())
  {
    return "";
  }
  std::string text = mine;
  text.resize(*rank);
  controller->Broadcast(text.data(), *rank, static_cast<int>(rank - lengths.begin()));
  return text;
}

}

vtkStandardNewMacro(vtkFilterErrors);

vtkFilterErrors::~vtkFilterErrors()
{
  this->RemoveAllFilters();
}

void vtkFilterErrors::AddFilter(vtkAlgorithm* filter)
{
  if (filter != nullptr)
  {
    this->Filters.push_back(
      { filter, filter->AddObserver(vtkCommand::ErrorEvent, this, &vtkFilterErrors::Keep), "" });
  }
}

void vtkFilterErrors::RemoveAllFilters()
{
  for (const Watched& watched : this->Filters)
  {
    if (watched.filter)
    {
      watched.filter->RemoveObserver(watched.observer);
    }
  }
  this->Filters.clear();
}

void vtkFilterErrors::Keep(vtkObject* filter, unsigned long, void* text)
{
  const auto watched = std::find_if(this->Filters.begin(), this->Filters.end(),
    [filter](const Watched& candidate) { return candidate.filter == filter; });
  const std::string message = MessageOf(static_cast<const char*>(text));
  auto* task = vtkTaskAlgorithm::SafeDownCast(filter);
  if (task != nullptr && message != MessageOf(task->GetLastError()))
  {
    // It goes on in spite of this.
    vtkOutputWindowDisplayErrorText(static_cast<const char*>(text));
  }
  else if (task == nullptr && watched != this->Filters.end() && watched->told.empty())
  {
    watched->told = message;
  }
}

void vtkFilterErrors::Gather()
{
  this->Text.clear();
  for (const Watched& watched : this->Filters)
  {
    auto* task = vtkTaskAlgorithm::SafeDownCast(watched.filter);
    if (this->Text.empty())
    {
      this->Text = task == nullptr ? watched.told : task->GetLastError();
    }
  }
  auto* controller = vtkMultiProcessController::GetGlobalController();
  if (controller != nullptr && controller->GetNumberOfProcesses() > 1)
  {
    this->Text = FirstOfAll(this->Text, controller);
  }
}
