#include "DataFormat.h"

#include "Base/Error.h"
#include "DataFields.h"

#include <vtkDataObject.h>

namespace AttentionAtlas
{

void SetFormat(vtkDataObject* data, const char* format)
{
  AddField(data->GetFieldData(), FormatField, std::string(format));
}

std::string FormatOf(vtkDataObject* data)
{
  return FieldText(data->GetFieldData(), FormatField);
}

void RequireFormat(
  vtkDataObject* data, const char* format, const std::string& input, const std::string& advice)
{
  const std::string found = FormatOf(data);
  atlas::ThrowIf<atlas::ModelError>(found != format, input, ": expected the field array '",
    FormatField, "' to be '", format, "', found ",
    found.empty() ? "no such array" : "'" + found + "'", "; ", advice);
}

}
