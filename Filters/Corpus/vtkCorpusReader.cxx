#include "vtkCorpusReader.h"

#include "CorpusConversion.h"
#include "CorpusFile.h"
#include "Safetensors.h"
#include "Task.h"

#include <vtkObjectFactory.h>
#include <vtkTable.h>

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

void vtkCorpusReader::Execute(AttentionAtlas::Task& task)
{
  if (this->FileName.empty() || !task.IsFirst())
  {
    return;
  }
  task.Reads(this->FileName.c_str());
  AttentionAtlas::ToTable(
    std::make_shared<const atlas::CorpusStatistics>(atlas::ReadCorpus(this->FileName)),
    task.Output<vtkTable>());
}
