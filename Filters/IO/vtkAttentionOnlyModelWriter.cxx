#include "vtkAttentionOnlyModelWriter.h"

#include "AttentionOnly/AttentionOnlyModel.h"
#include "ModelConversion.h"

#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkAttentionOnlyModelWriter);

void vtkAttentionOnlyModelWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  atlas::WriteAttentionOnlyModel(fileName, AttentionAtlas::ToModel(input));
}
