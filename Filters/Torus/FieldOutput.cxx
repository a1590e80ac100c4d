#include "FieldOutput.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Joined.h"

#include <vtkDataArraySelection.h>
#include <vtkDataSetAttributes.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <variant>

namespace AttentionAtlas
{
namespace
{

using Arrays = atlas::FieldArrays;
using PerHead = std::vector<float*> Arrays::*;

struct Quantity
{
  const char* name;
  int type;
  int components; ///< 0: one per class
  std::variant<PerHead, float * Arrays::*, std::int32_t * Arrays::*, std::uint8_t * Arrays::*>
    destination;
  bool byDefault;

  bool IsPerHead() const { return std::holds_alternative<PerHead>(this->destination); }
};

// In the order of the user interface and of the output arrays.
constexpr std::array<Quantity, 11> Quantities = { {
  { ArrayNames::Class, VTK_INT, 1, &Arrays::predicted, true },
  { ArrayNames::Probability, VTK_FLOAT, 1, &Arrays::probability, true },
  { ArrayNames::ClassColor, VTK_UNSIGNED_CHAR, 3, &Arrays::classColor, true },
  { ArrayNames::Logits, VTK_FLOAT, 0, &Arrays::logits, false },
  { ArrayNames::Score, VTK_FLOAT, 1, &Arrays::score, false },
  { ArrayNames::Attention, VTK_FLOAT, 1, &Arrays::attention, false },
  { ArrayNames::WordMix, VTK_FLOAT, 3, &Arrays::wordMix, false },
  { ArrayNames::PositionMix, VTK_FLOAT, 3, &Arrays::positionMix, false },
  { ArrayNames::Mix, VTK_FLOAT, 3, &Arrays::mix, false },
  { ArrayNames::HeadOutput, VTK_FLOAT, 3, &Arrays::headOutput, false },
  { ArrayNames::Output, VTK_FLOAT, 3, &Arrays::output, false },
} };

std::string HeadName(const Quantity& quantity, int head)
{
  return ArrayNames::OfHead(quantity.name, head);
}

/// The start of an array's values, or nullptr if the array is null.
template<class T>
T* Values(vtkDataArray* array)
{
  return array == nullptr ? nullptr : static_cast<T*>(array->GetVoidPointer(0));
}

/// Lets a member of the arrays begin where the array does.
template<class T>
void Point(Arrays& arrays, T* Arrays::* member, vtkDataArray* array, int /*head*/, int /*heads*/)
{
  arrays.*member = Values<T>(array);
}

void Point(Arrays& arrays, PerHead member, vtkDataArray* array, int head, int heads)
{
  (arrays.*member).resize(heads, nullptr);
  (arrays.*member)[head] = Values<float>(array);
}

}

void FieldOutput::AddQuantities(vtkDataArraySelection* selection)
{
  for (const Quantity& quantity : Quantities)
  {
    selection->AddArray(quantity.name, quantity.byDefault);
  }
}

FieldOutput::FieldOutput(vtkDataArraySelection* selection, int heads, int classes)
  : Heads(heads)
{
  std::set<std::string> wanted;
  for (int i = 0; i < selection->GetNumberOfArrays(); ++i)
  {
    if (selection->GetArraySetting(i) != 0)
    {
      wanted.insert(selection->GetArrayName(i));
    }
  }
  std::set<std::string> unknown = wanted;
  for (std::size_t q = 0; q < Quantities.size(); ++q)
  {
    const Quantity& quantity = Quantities[q];
    const int components = quantity.components == 0 ? classes : quantity.components;
    const bool all = wanted.count(quantity.name) != 0;
    unknown.erase(quantity.name);
    if (!quantity.IsPerHead() && all)
    {
      this->Items.push_back({ q, -1, quantity.name, components, nullptr });
    }
    for (int h = 0; quantity.IsPerHead() && h < heads; ++h)
    {
      const std::string name = HeadName(quantity, h);
      if (all || wanted.count(name) != 0)
      {
        this->Items.push_back({ q, h, name, components, nullptr });
      }
      unknown.erase(name);
    }
  }
  if (!unknown.empty())
  {
    throw std::runtime_error(atlas::Concat("Quantities: '", *unknown.begin(),
      "' is unknown; expected some of ", atlas::NamesOf(Quantities),
      ", or one of these of a single head from 0 to ", heads - 1, ", such as 'Attention 0'."));
  }
}

double FieldOutput::BytesPerPoint() const
{
  double bytes = 0;
  for (const Item& item : this->Items)
  {
    bytes += item.components *
             static_cast<double>(vtkDataArray::GetDataTypeSize(Quantities[item.quantity].type));
  }
  return bytes;
}

atlas::FieldArrays FieldOutput::Allocate(ArrayPool& pool, vtkIdType points)
{
  atlas::FieldArrays arrays;
  for (Item& item : this->Items)
  {
    const Quantity& quantity = Quantities[item.quantity];
    item.array = pool.Take(quantity.type, item.components, points);
    item.array->SetName(item.name.c_str());
    std::visit([&](auto member) { Point(arrays, member, item.array, item.head, this->Heads); },
      quantity.destination);
  }
  pool.ForgetFree();
  return arrays;
}

std::vector<vtkDataArray*> FieldOutput::Arrays() const
{
  std::vector<vtkDataArray*> arrays;
  arrays.reserve(this->Items.size());
  for (const Item& item : this->Items)
  {
    arrays.push_back(item.array);
  }
  return arrays;
}

void FieldOutput::Attach(vtkDataSetAttributes* attributes) const
{
  for (const Item& item : this->Items)
  {
    attributes->AddArray(item.array);
  }
  // The active scalars must have one component: vtkFlyingEdges2D (VTK 9.2) uses their number of
  // components as the stride of any array that it contours.
  const auto single = std::find_if(
    this->Items.begin(), this->Items.end(), [](const Item& item) { return item.components == 1; });
  if (single != this->Items.end())
  {
    attributes->SetActiveScalars(single->name.c_str());
  }
}

}
