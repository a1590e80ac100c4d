#include "vtkRecordingReader.h"

#include "Base/Error.h"
#include "Recording/RecordingFile.h"
#include "RecordingConversion.h"
#include "Task.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

using namespace AttentionAtlas;

namespace
{

/// Whether an array of this name can be part of a recording, under native or foreign names.
bool IsOfRecording(const std::string& name)
{
  constexpr std::array<std::string_view, 4> names = { "attention", "scores", "array",
    "sequence_offsets" };
  constexpr std::array<std::string_view, 3> ends = { ".query", ".attention", ".scores" };
  const auto isEnd = [&name](std::string_view end)
  {
    return name.size() > end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0 && name.find("heads.") != 0;
  };
  return name.find("hook_") != std::string::npos ||
         std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(ends.begin(), ends.end(), isEnd);
}

}

vtkStandardNewMacro(vtkRecordingReader);

vtkRecordingReader::vtkRecordingReader()
  : vtkTaskAlgorithm({}, { "vtkMultiBlockDataSet" })
{
}

int vtkRecordingReader::CanReadFile(const char* fileName)
{
  try
  {
    const atlas::ArrayFile file(fileName);
    const atlas::ArrayFile::Entries& entries = file.GetEntries();
    return std::any_of(entries.begin(), entries.end(),
             [](const auto& entry) { return IsOfRecording(entry.first); })
             ? 1
             : 0;
  }
  catch (const std::exception&)
  {
    // Reading tells what is wrong, but for files that are more often models.
    const std::string ending = std::filesystem::path(fileName).extension().string();
    return ending == ".pt" || ending == ".pth" || ending == ".json" ? 0 : 1;
  }
}

void vtkRecordingReader::Execute(Task& task)
{
  atlas::ThrowIf<atlas::OptionError>(this->FileName.empty(),
    "FileName: expected the name of a safetensors, npy, npz or PyTorch file, found none.");
  task.Reads(this->FileName.c_str());
  atlas::RecordingReadOptions options;
  options.tokensFile = this->TokensFile;
  options.architecture = this->Architecture;
  options.headCount = this->HeadCount;
  options.threads = ThreadLimit();
  if (this->Mask != AUTOMATIC_MASK)
  {
    options.mask =
      this->Mask == CAUSAL ? atlas::AttentionMask::Causal : atlas::AttentionMask::Bidirectional;
  }
  if (this->ScoreScale != 0)
  {
    options.scoreScale = this->ScoreScale;
  }
  if (this->WeightProcessing != AUTOMATIC_WEIGHT_PROCESSING)
  {
    options.processing = this->WeightProcessing == PROCESSED ? atlas::WeightProcessing::Processed
                                                             : atlas::WeightProcessing::Unprocessed;
  }
  const atlas::RecordingContent content = atlas::ReadRecording(this->FileName, options);
  ToDataSet(content.recording, task.Output<vtkMultiBlockDataSet>());
  for (const std::string& warning : content.warnings)
  {
    vtkWarningMacro(<< this->FileName << ": " << warning);
  }
}
