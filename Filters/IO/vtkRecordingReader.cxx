#include "vtkRecordingReader.h"

#include "Execution.h"
#include "RecordingConversion.h"
#include "RecordingFile.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace
{

std::string Text(const char* text)
{
  return text != nullptr ? text : "";
}

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
{
  this->SetNumberOfInputPorts(0);
}

vtkRecordingReader::~vtkRecordingReader()
{
  this->SetFileName(nullptr);
  this->SetTokensFile(nullptr);
  this->SetArchitecture(nullptr);
}

vtkMTimeType vtkRecordingReader::GetMTime()
{
  this->Failed.Touch(this);
  return this->Superclass::GetMTime();
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
    return ending == ".pt" || ending == ".pth" ? 0 : 1;
  }
}

int vtkRecordingReader::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (Text(this->FileName).empty())
  {
    vtkErrorMacro(
      "FileName: expected the name of a safetensors, npy, npz or PyTorch file, found none.");
    return 0;
  }
  atlas::RecordingReadOptions options;
  options.tokensFile = Text(this->TokensFile);
  options.architecture = Text(this->Architecture);
  options.headCount = this->HeadCount;
  options.threads = AttentionAtlas::ThreadLimit();
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
  auto* output = vtkMultiBlockDataSet::GetData(outputVector);
  this->Failed.Forget();
  try
  {
    const atlas::RecordingContent content = atlas::ReadRecording(this->FileName, options);
    AttentionAtlas::ToDataSet(content.recording, output);
    for (const std::string& warning : content.warnings)
    {
      vtkWarningMacro(<< this->FileName << ": " << warning);
    }
  }
  catch (const std::exception& e)
  {
    output->Initialize();
    this->Failed.Remember({ this->FileName });
    vtkErrorMacro(<< e.what());
    return 1; // as in vtkModelAlgorithm
  }
  return 1;
}

void vtkRecordingReader::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
  os << indent << "TokensFile: " << (this->TokensFile ? this->TokensFile : "(none)") << "\n";
  os << indent << "Architecture: " << (this->Architecture ? this->Architecture : "(none)") << "\n";
  os << indent << "Mask: " << this->Mask << "\n";
  os << indent << "ScoreScale: " << this->ScoreScale << "\n";
  os << indent << "WeightProcessing: " << this->WeightProcessing << "\n";
  os << indent << "HeadCount: " << this->HeadCount << "\n";
}
