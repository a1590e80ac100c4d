#pragma once

#include <vtkDoubleArray.h>
#include <vtkFieldData.h>
#include <vtkIntArray.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <array>
#include <string>
#include <type_traits>

/// Columns of tables and field arrays: arrays with one number or text per row.
namespace AttentionAtlas
{

/// Makes an array of this many values, not yet set.
template<class Array>
vtkSmartPointer<Array> NewArray(const char* name, vtkIdType count)
{
  auto array = vtkSmartPointer<Array>::New();
  array->SetName(name);
  array->SetNumberOfValues(count);
  return array;
}

/// Makes an array of value(row) for each row of a list.
template<class Array, class List, class Value>
vtkSmartPointer<Array> MakeArray(const std::string& name, const List& rows, const Value& value)
{
  auto array = NewArray<Array>(name.c_str(), static_cast<vtkIdType>(rows.size()));
  vtkIdType i = 0;
  for (const auto& row : rows)
  {
    array->SetValue(i++, value(row));
  }
  return array;
}

/// Makes an array of the numbers or texts of a list.
template<class Array, class List>
vtkSmartPointer<Array> MakeArray(const std::string& name, const List& values)
{
  return MakeArray<Array>(name, values, [](const auto& value) { return value; });
}

/// Adds the array that MakeArray makes from the same arguments.
template<class Array, class... List>
void AddColumn(vtkTable* table, const std::string& name, const List&... list)
{
  table->AddColumn(MakeArray<Array>(name, list...));
}

/// Adds an array of a single value.
inline void AddField(vtkFieldData* fields, const std::string& name, const std::string& text)
{
  fields->AddArray(MakeArray<vtkStringArray>(name, std::array{ text }));
}

inline void AddField(vtkFieldData* fields, const std::string& name, double number)
{
  fields->AddArray(MakeArray<vtkDoubleArray>(name, std::array{ number }));
}

template<class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
void AddField(vtkFieldData* fields, const std::string& name, Integer number)
{
  fields->AddArray(MakeArray<vtkIntArray>(name, std::array{ static_cast<int>(number) }));
}

/// The first value of a string array; an empty string if there is none.
inline std::string FieldText(vtkFieldData* fields, const char* name)
{
  auto* array = vtkStringArray::SafeDownCast(fields->GetAbstractArray(name));
  return array != nullptr && array->GetNumberOfValues() > 0 ? std::string(array->GetValue(0))
                                                            : std::string();
}

}
