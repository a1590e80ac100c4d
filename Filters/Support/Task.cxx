#include "Task.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkExecutive.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>

#include <algorithm>

namespace AttentionAtlas
{

Task::Task(vtkAlgorithm* filter, vtkInformation* request, vtkInformationVector** inputVector,
  vtkInformationVector* outputVector, const RankGroup& ranks)
  : Filter(filter)
  , InputVector(inputVector)
  , OutputVector(outputVector)
  , AskedPort(std::max(request->Get(vtkExecutive::FROM_OUTPUT_PORT()), 0))
  , Group(ranks)
  , Report(
      [this](double done)
      {
        if (!this->GoesOn(done))
        {
          throw atlas::Canceled();
        }
      })
{
}

vtkMTimeType Task::FilterTime() const
{
  return this->Filter->GetMTime();
}

vtkInformation* Task::InputInformation(int port) const
{
  return this->InputVector[port]->GetInformationObject(0);
}

vtkInformation* Task::OutputInformation(int port) const
{
  return this->OutputVector->GetInformationObject(port);
}

bool Task::IsFirst() const
{
  return IsFirstPiece(this->OutputVector);
}

bool Task::GoesOn(double done, std::string text) const
{
  const std::string left = this->Time(done);
  text += text.empty() || left.empty() ? left : ", " + left;
  this->Filter->SetProgressText(text.empty() ? nullptr : text.c_str());
  return ReportProgress(this->Filter, done);
}

void Task::Reads(const char* fileName)
{
  if (fileName != nullptr && *fileName != '\0')
  {
    this->Files.emplace_back(fileName);
  }
}

void Task::KeepCanceled() const
{
  WithdrawCancel(this->Filter);
}

vtkDataObject* Task::InputObject(int port) const
{
  return this->InputVector[port]->GetNumberOfInformationObjects() > 0
           ? vtkDataObject::GetData(this->InputVector[port])
           : nullptr;
}

vtkDataObject* Task::OutputObject(int port) const
{
  return vtkDataObject::GetData(this->OutputVector, port);
}

}
