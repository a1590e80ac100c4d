#include "vtkCorpusWriter.h"

#include "Base/Error.h"
#include "Corpus/CorpusFile.h"
#include "CorpusConversion.h"

#include <vtkInformation.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>

vtkStandardNewMacro(vtkCorpusWriter);

int vtkCorpusWriter::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkTable");
  return 1;
}

/// The input is a table, and no multiblock dataset.
void vtkCorpusWriter::WriteFile(vtkMultiBlockDataSet*, const char* fileName)
{
  const auto statistics = AttentionAtlas::ToCorpus(vtkTable::SafeDownCast(this->GetInput()));
  if (statistics == nullptr)
  {
    throw atlas::OptionError("input: expected statistics of a corpus, found an empty table.");
  }
  atlas::WriteCorpus(fileName, *statistics);
}
