#pragma once

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkMultiBlockDataSetAlgorithm.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace atlas::test
{

/// A source of composite data that change in time.
class TimedSource : public vtkMultiBlockDataSetAlgorithm
{
public:
  static TimedSource* New() { VTK_STANDARD_NEW_BODY(TimedSource); }
  vtkTypeMacro(TimedSource, vtkMultiBlockDataSetAlgorithm);

  using Make = std::function<void(double time, vtkMultiBlockDataSet* output)>;

  void Set(const std::vector<double>& times, Make make)
  {
    this->Times = times;
    this->MakeAt = std::move(make);
    this->Modified();
  }

protected:
  TimedSource() { this->SetNumberOfInputPorts(0); }

  int RequestInformation(
    vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector) override
  {
    using SDDP = vtkStreamingDemandDrivenPipeline;
    vtkInformation* info = outputVector->GetInformationObject(0);
    const std::array<double, 2> range = { this->Times.front(), this->Times.back() };
    info->Set(SDDP::TIME_STEPS(), this->Times.data(), static_cast<int>(this->Times.size()));
    info->Set(SDDP::TIME_RANGE(), range.data(), 2);
    return 1;
  }

  int RequestData(
    vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector) override
  {
    vtkInformation* info = outputVector->GetInformationObject(0);
    auto* key = vtkStreamingDemandDrivenPipeline::UPDATE_TIME_STEP();
    const double time = info->Has(key) != 0 ? info->Get(key) : this->Times.front();
    auto* output = vtkMultiBlockDataSet::GetData(info);
    this->MakeAt(time, output);
    output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), time);
    return 1;
  }

private:
  std::vector<double> Times;
  Make MakeAt;
};

}
