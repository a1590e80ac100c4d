#pragma once

#include <vtkFieldData.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkStringArray.h>

#include <string>

/// Field arrays of single values.
namespace AttentionAtlas
{

inline void AddField(vtkFieldData* fields, const std::string& name, const std::string& text)
{
  vtkNew<vtkStringArray> array;
  array->SetName(name.c_str());
  array->InsertNextValue(text);
  fields->AddArray(array);
}

template<class Integer>
void AddField(vtkFieldData* fields, const std::string& name, Integer number)
{
  vtkNew<vtkIntArray> array;
  array->SetName(name.c_str());
  array->InsertNextValue(static_cast<int>(number));
  fields->AddArray(array);
}

/// The first value of a text array; an empty text if there is none.
inline std::string FieldText(vtkFieldData* fields, const char* name)
{
  auto* array = vtkStringArray::SafeDownCast(fields->GetAbstractArray(name));
  return array != nullptr && array->GetNumberOfValues() > 0 ? std::string(array->GetValue(0))
                                                            : std::string();
}

}
