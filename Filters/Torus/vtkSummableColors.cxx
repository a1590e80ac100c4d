#include "vtkSummableColors.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/SummableColors.h"
#include "ListArrays.h"
#include "Signs.h"
#include "Task.h"

#include <vtkArrayDispatch.h>
#include <vtkDataArrayRange.h>
#include <vtkDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// Finds the range of the components of an array.
struct FindRange
{
  template<class Array>
  void operator()(Array* vectors, atlas::ComponentRange& range) const
  {
    for (const auto component : vtk::DataArrayValueRange<3>(vectors))
    {
      range.Add(static_cast<double>(component));
    }
  }
};

/// Computes the colors of an array in parallel.
struct Paint
{
  template<class Array>
  void operator()(
    Array* vectors, const atlas::ColorScale& scale, vtkUnsignedCharArray* colors) const
  {
    const auto tuples = vtk::DataArrayTupleRange<3>(vectors);
    ParallelFor(0, vectors->GetNumberOfTuples(),
      [&](vtkIdType begin, vtkIdType end)
      {
        for (vtkIdType i = begin; i < end; ++i)
        {
          std::array<double, 3> vector;
          std::copy(tuples[i].begin(), tuples[i].end(), vector.begin());
          const atlas::Rgb color = scale.Color(vector.data());
          std::copy(color.begin(), color.end(), colors->GetPointer(3 * i));
        }
      });
  }
};

/// Calls a worker with an array as its concrete type, or generically if the type is unusual.
template<class Worker, class... Arguments>
void Dispatch(vtkDataArray* array, const Worker& worker, Arguments&&... arguments)
{
  using Reals = vtkArrayDispatch::DispatchByValueType<vtkArrayDispatch::Reals>;
  if (!Reals::Execute(array, worker, arguments...))
  {
    worker(array, arguments...);
  }
}

/// What red, green and blue are, and the values of the darkest and the brightest.
std::string LegendOf(const std::string& name, const atlas::ColorScale& scale)
{
  if (!(scale.gain > 0))
  {
    return name + ": equal vectors";
  }
  const double low = scale.offset > 0 ? -scale.offset / scale.gain : 0;
  const double high = (1 - scale.offset) / scale.gain;
  const auto colorOf = [&scale](double red, double green, double blue)
  { return scale.Color(std::array{ red, green, blue }.data()); };
  const std::string most = " " + ShortNumber(high);
  atlas::ColorLegend legend(name + ": a channel per component");
  legend.Add(colorOf(high, high, high), "all" + most)
    .Add(colorOf(high, low, low), "first" + most)
    .Add(colorOf(low, high, low), "second" + most)
    .Add(colorOf(low, low, high), "third" + most);
  if (low < 0)
  {
    legend.Add(colorOf(0, 0, 0), "all 0");
  }
  legend.Add(colorOf(low, low, low), "all " + ShortNumber(low) + (low == 0 ? " or less" : ""));
  return legend.Text();
}

/// The range over all ranks, of which some may have none.
atlas::ComponentRange OfAllRanks(const RankGroup& ranks, const atlas::ComponentRange& range)
{
  std::vector<double> mine;
  if (!range.IsEmpty())
  {
    mine = { range.GetMinimum(), range.GetMaximum() };
  }
  atlas::ComponentRange all;
  for (const double value : ranks.Gather(mine))
  {
    all.Add(value);
  }
  return all;
}

}

vtkStandardNewMacro(vtkSummableColors);

vtkSummableColors::vtkSummableColors()
  : vtkTaskAlgorithm({ "vtkDataSet" }, { "=vtkDataSet" }, TOGETHER)
{
}

std::vector<vtkDataArray*> vtkSummableColors::FindVectors(vtkDataSet* input) const
{
  std::vector<vtkDataArray*> arrays;
  if (input->GetNumberOfPoints() == 0)
  {
    return arrays;
  }
  std::vector<std::string> names = this->Vectors;
  for (int i = 0; this->Vectors.empty() && i < input->GetPointData()->GetNumberOfArrays(); ++i)
  {
    vtkDataArray* array = input->GetPointData()->GetArray(i);
    if (array != nullptr && array->GetNumberOfComponents() == 3 && array->GetName() != nullptr)
    {
      names.emplace_back(array->GetName());
    }
  }
  for (const std::string& name : names)
  {
    vtkDataArray* array = input->GetPointData()->GetArray(name.c_str());
    if (array == nullptr)
    {
      throw std::runtime_error(
        "Vectors: expected point arrays of the input, found none named '" + name + "'.");
    }
    atlas::ThrowIf<std::runtime_error>(
      array->GetNumberOfComponents() != 3, atlas::Concat("Vectors: expected 3 components, found ",
                                             array->GetNumberOfComponents(), " in '", name, "'."));
    const bool isColor = array->GetDataType() == VTK_UNSIGNED_CHAR;
    if (!isColor && std::find(arrays.begin(), arrays.end(), array) == arrays.end())
    {
      arrays.push_back(array);
    }
  }
  return arrays;
}

void vtkSummableColors::Execute(Task& task)
{
  atlas::ThrowIf<std::runtime_error>(!(this->Gain >= 0) || std::isinf(this->Gain),
    atlas::Concat(
      "Gain: expected a positive number, or 0 for an automatic gain, found ", this->Gain, "."));
  auto* input = task.Input<vtkDataSet>();
  auto* output = task.Output<vtkDataSet>();
  output->ShallowCopy(input);
  const std::vector<vtkDataArray*> arrays = this->FindVectors(input);
  atlas::ComponentRange range;
  for (vtkDataArray* array : arrays)
  {
    Dispatch(array, FindRange(), range);
  }
  range = OfAllRanks(task.Ranks(), range);
  atlas::ColorScale scale =
    this->Scale == ADDITIVE ? atlas::AdditiveScale(range) : atlas::SharedRangeScale(range);
  if (this->Scale == ADDITIVE && this->Gain > 0)
  {
    scale.gain = this->Gain;
  }
  RequireMemory(3. * static_cast<double>(arrays.size()) *
                  static_cast<double>(std::max<vtkIdType>(input->GetNumberOfPoints(), 0)),
    "the colors of " + std::to_string(input->GetNumberOfPoints()) + " points",
    "choose fewer Vectors.");
  std::size_t painted = 0;
  for (vtkDataArray* array : arrays)
  {
    const auto colors = NewTuples<vtkUnsignedCharArray>(
      std::string(array->GetName()) + Names::ColorSuffix, 3, array->GetNumberOfTuples());
    Dispatch(array, Paint(), scale, colors.Get());
    output->GetPointData()->AddArray(colors);
    AddField(output->GetFieldData(), colors->GetName() + std::string(" Legend"),
      LegendOf(array->GetName(), scale));
    task.Progress()(++painted, arrays.size());
  }
  AddField(output->GetFieldData(), Names::ColorGain, scale.gain);
  AddField(output->GetFieldData(), Names::ColorOffset, scale.offset);
}
