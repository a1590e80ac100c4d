#include "vtkRandomPrompts.h"

#include "DataFormat.h"
#include "Task.h"
#include "Text/Prompts.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>
#include <vtkTypeInt64Array.h>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkRandomPrompts);

vtkRandomPrompts::vtkRandomPrompts()
  : vtkTaskAlgorithm({}, { "vtkTable" })
{
}

int vtkRandomPrompts::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  // Otherwise VTK would leave all pieces except the first empty.
  outputVector->GetInformationObject(0)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  return 1;
}

void vtkRandomPrompts::Execute(Task& task)
{
  atlas::RandomPromptOptions options;
  options.kind = static_cast<atlas::RandomPromptKind>(this->Kind);
  options.length = this->Length;
  options.count = this->Count;
  options.block = this->Block;
  options.firstId = this->IdRange[0];
  options.lastId = this->IdRange[1];
  options.seed = static_cast<std::uint64_t>(this->Seed);
  vtkNew<vtkIntArray> sequences;
  vtkNew<vtkIntArray> positions;
  vtkNew<vtkTypeInt64Array> ids;
  sequences->SetName("Sequence");
  positions->SetName("Position");
  ids->SetName("TokenId");
  constexpr double bytes = 3 * sizeof(std::int64_t);
  RequireMemory(bytes * this->Length * this->Count,
    std::to_string(this->Count) + " sequences of " + std::to_string(this->Length) + " tokens",
    "lower Length or Count.");
  int sequence = 0;
  for (const std::vector<std::int64_t>& prompt : atlas::MakeRandomPrompts(options))
  {
    int position = 0;
    for (const std::int64_t id : prompt)
    {
      sequences->InsertNextValue(sequence);
      positions->InsertNextValue(position++);
      ids->InsertNextValue(id);
    }
    ++sequence;
  }
  auto* output = task.Output<vtkTable>();
  output->AddColumn(sequences);
  output->AddColumn(positions);
  output->AddColumn(ids);
  SetFormat(output, Formats::RandomPrompts);
}
