#pragma once

#include "DataFields.h"

#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkTypeInt64Array.h>
#include <vtkUnsignedCharArray.h>

#include <functional>
#include <string>

namespace AttentionAtlas
{

/// Makes an array of this many tuples, not yet set.
template<class Array>
vtkSmartPointer<Array> NewTuples(const std::string& name, int components, vtkIdType count)
{
  auto array = vtkSmartPointer<Array>::New();
  array->SetName(name.c_str());
  array->SetNumberOfComponents(components);
  array->SetNumberOfTuples(count);
  return array;
}

/// An item of a list as its own value.
struct Itself
{
  template<class Item>
  Item operator()(const Item& item) const
  {
    return item;
  }
};

/// Adds arrays with a value of each item of a list to field, point, cell or row data, one after
/// another. `valueOf`: a function of an item, or a member of it; numbers are converted.
template<class List>
class ListArrays
{
public:
  /// Both are used as long as this object exists.
  ListArrays(const List& list, vtkFieldData* data)
    : Items(list)
    , Data(data)
  {
  }

  template<class Value = Itself>
  const ListArrays& Int(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkIntArray>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Int64(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkTypeInt64Array>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Id(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkIdTypeArray>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Byte(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkUnsignedCharArray>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Float(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkFloatArray>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Double(const std::string& name, Value&& valueOf = {}) const
  {
    return this->Numbers<vtkDoubleArray>(name, valueOf);
  }
  template<class Value = Itself>
  const ListArrays& Text(const std::string& name, Value&& valueOf = {}) const
  {
    this->Data->AddArray(MakeArray<vtkStringArray>(name, this->Items,
      [&](const auto& item) { return std::string(std::invoke(valueOf, item)); }));
    return *this;
  }

  /// An array of numbers of this type.
  template<class Array, class Value = Itself>
  const ListArrays& Numbers(const std::string& name, Value&& valueOf = {}) const
  {
    this->Data->AddArray(MakeArray<Array>(name, this->Items, [&](const auto& item)
      { return static_cast<typename Array::ValueType>(std::invoke(valueOf, item)); }));
    return *this;
  }

  /// An array with as many components as the std::array that tupleOf gives, such as a color.
  template<class Array = vtkUnsignedCharArray, class Tuple = Itself>
  const ListArrays& Tuples(const std::string& name, Tuple&& tupleOf = {}) const
  {
    using Item = decltype(*std::begin(this->Items));
    using Values = std::decay_t<std::invoke_result_t<Tuple&, Item>>;
    const auto array = NewTuples<Array>(name, static_cast<int>(std::tuple_size_v<Values>),
      static_cast<vtkIdType>(this->Items.size()));
    vtkIdType i = 0;
    for (const auto& item : this->Items)
    {
      array->SetTypedTuple(i++, Values(std::invoke(tupleOf, item)).data());
    }
    this->Data->AddArray(array);
    return *this;
  }

private:
  const List& Items;
  vtkFieldData* Data;
};

}
