#include "PointArrays.h"

#include "ArrayNames.h"
#include "Base/Error.h"

#include <vtkDataArray.h>
#include <vtkDataArrayRange.h>
#include <vtkDataSet.h>
#include <vtkPointData.h>
#include <vtkTable.h>

#include <cmath>
#include <map>
#include <utility>

namespace AttentionAtlas
{

vtkDataSetAttributes* TokenAttributes(vtkDataObject* data)
{
  if (auto* points = vtkDataSet::SafeDownCast(data))
  {
    return points->GetPointData();
  }
  return vtkTable::SafeDownCast(data)->GetRowData();
}

vtkIdType TokenRows(vtkDataObject* data)
{
  auto* points = vtkDataSet::SafeDownCast(data);
  return points != nullptr ? points->GetNumberOfPoints()
                           : vtkTable::SafeDownCast(data)->GetNumberOfRows();
}

vtkDataArray* RequireNumbers(
  vtkDataSetAttributes* attributes, const char* name, const std::string& advice)
{
  vtkDataArray* array = attributes->GetArray(name);
  if (array == nullptr || array->GetNumberOfComponents() != 1)
  {
    throw atlas::OptionError("input: expected an array '", name,
      "' with one number per point, found ",
      array == nullptr ? "none" : atlas::Concat(array->GetNumberOfComponents(), " components"),
      "; ", advice);
  }
  return array;
}

std::vector<std::int64_t> Integers(vtkDataArray* array)
{
  std::vector<std::int64_t> numbers;
  numbers.reserve(array->GetNumberOfTuples());
  constexpr double largest = 9007199254740992; // exact in double
  for (const double number : vtk::DataArrayValueRange<1>(array))
  {
    atlas::ThrowIf<atlas::OptionError>(
      !(std::abs(number) <= largest) || number != std::floor(number), "input: array '",
      array->GetName(), "': expected integers, found ", number, " in row ", numbers.size(), ".");
    numbers.push_back(static_cast<std::int64_t>(number));
  }
  return numbers;
}

std::vector<HeadRows> GroupByHead(
  const std::vector<std::int64_t>& layers, const std::vector<std::int64_t>& heads, vtkIdType count)
{
  std::map<std::pair<std::int64_t, std::int64_t>, HeadRows> groups;
  HeadRows* last = nullptr; // rows of a head usually follow each other
  for (vtkIdType i = 0; i < count; ++i)
  {
    const std::size_t row = i;
    const std::int64_t layer = layers.empty() ? -1 : layers[row];
    const std::int64_t head = heads.empty() ? -1 : heads[row];
    if (last == nullptr || last->layer != layer || last->head != head)
    {
      last = &groups.try_emplace({ layer, head }, HeadRows{ layer, head, {} }).first->second;
    }
    last->rows.push_back(i);
  }
  std::vector<HeadRows> sorted;
  sorted.reserve(groups.size());
  for (auto& group : groups)
  {
    sorted.push_back(std::move(group.second));
  }
  return sorted;
}

std::vector<HeadRows> HeadsOf(vtkDataSetAttributes* attributes, vtkIdType count)
{
  const auto numbers = [attributes](const char* name)
  {
    vtkDataArray* array = attributes->GetArray(name);
    return array != nullptr && array->GetNumberOfComponents() == 1 ? Integers(array)
                                                                   : std::vector<std::int64_t>();
  };
  return GroupByHead(numbers(ArrayNames::Layer), numbers(ArrayNames::Head), count);
}

}
