#include "vtkCorpusReader.h"

#include "Corpus/CorpusFile.h"
#include "CorpusConversion.h"
#include "Files/Safetensors.h"
#include "Task.h"

#include <vtkObjectFactory.h>
#include <vtkTable.h>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkCorpusReader);

vtkCorpusReader::vtkCorpusReader()
  : vtkTaskAlgorithm({}, { "vtkTable" })
{
}

int vtkCorpusReader::CanReadFile(const char* fileName)
{
  try
  {
    const atlas::SafetensorsFile file(fileName);
    const auto format = file.GetMetadata().find("format");
    return format != file.GetMetadata().end() && format->second == atlas::CorpusFormat ? 1 : 0;
  }
  catch (const std::exception&)
  {
    return 0;
  }
}

void vtkCorpusReader::Execute(Task& task)
{
  if (this->FileName.empty() || !task.IsFirst())
  {
    return;
  }
  task.Reads(this->FileName.c_str());
  ToTable(std::make_shared<const atlas::CorpusStatistics>(atlas::ReadCorpus(this->FileName)),
    task.Output<vtkTable>());
}
