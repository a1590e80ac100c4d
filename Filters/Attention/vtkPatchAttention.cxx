#include "vtkPatchAttention.h"

#include "ArrayNames.h"
#include "Error.h"
#include "Index.h"
#include "PatchAttention.h"
#include "PatchOutput.h"
#include "PointArrays.h"
#include "RecordPictures.h"
#include "RecordingConversion.h"
#include "Task.h"

#include <vtkCellData.h>
#include <vtkDataObject.h>
#include <vtkExtentTranslator.h>
#include <vtkExtractSelection.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;
using AttentionAtlas::Task;

namespace
{

constexpr int PicturePort = 3;

/// The quantities of this filter, in the order of QuantityType.
constexpr std::array<atlas::AttentionQuantity, 3> PatchQuantities = {
  atlas::AttentionQuantity::Weights, atlas::AttentionQuantity::NormWeighted,
  atlas::AttentionQuantity::Rollout
};

/// The width and height of the pictures of a recording in pixels; without pictures, a pixel per
/// patch; 1, 1 if there are none, so that something is asked for and the error told.
std::array<int, 2> PictureSize(vtkMultiBlockDataSet* recording)
{
  for (const char* name : { AttentionAtlas::PictureSizeField, AttentionAtlas::PatchGridField })
  {
    vtkDataArray* size = recording->GetFieldData()->GetArray(name);
    if (size != nullptr && size->GetNumberOfValues() == 2)
    {
      const double height = size->GetComponent(0, 0);
      const double width = size->GetComponent(0, 1);
      const auto most = static_cast<double>(atlas::MaximumPictureSide * atlas::MaximumPictureSide);
      return height >= 1 && width >= 1 && height * width <= most
               ? std::array{ static_cast<int>(width), static_cast<int>(height) }
               : std::array{ 1, 1 };
    }
  }
  return { 1, 1 };
}

/// The part of a picture of that size that is asked for, or that belongs to the piece of the output
/// that is asked for.
std::array<int, 6> PartOf(const std::array<int, 2>& size, const Task& task)
{
  std::array<int, 6> whole = { 0, size[0] - 1, 0, size[1] - 1, 0, 0 };
  std::array<int, 6> part = whole;
  vtkInformation* info = task.OutputInformation(task.Port());
  const int pieces = info->Get(SDDP::UPDATE_NUMBER_OF_PIECES());
  if (task.Port() == PicturePort && info->Has(SDDP::UPDATE_EXTENT()))
  {
    info->Get(SDDP::UPDATE_EXTENT(), part.data());
  }
  else if (pieces > 1)
  {
    vtkNew<vtkExtentTranslator> translator;
    translator->PieceToExtentThreadSafe(info->Get(SDDP::UPDATE_PIECE_NUMBER()), pieces, 0,
      whole.data(), part.data(), vtkExtentTranslator::BLOCK_MODE, 0);
  }
  return part;
}

/// The tokens of the cells of output 0 that are selected. Values of Token Index may belong to
/// points or rows of other views.
std::vector<std::int64_t> SelectedTokens(vtkSelection* selection, vtkPolyData* patches)
{
  vtkNew<vtkSelection> ofCells;
  ofCells->DeepCopy(selection);
  for (unsigned int i = 0; i < ofCells->GetNumberOfNodes(); ++i)
  {
    vtkSelectionNode* node = ofCells->GetNode(i);
    const int content = node->GetContentType();
    if (content == vtkSelectionNode::PEDIGREEIDS || content == vtkSelectionNode::VALUES)
    {
      node->SetFieldType(vtkSelectionNode::CELL);
    }
    else if (node->GetFieldType() == vtkSelectionNode::POINT)
    {
      node->GetProperties()->Set(vtkSelectionNode::CONTAINING_CELLS(), 1);
    }
  }
  vtkNew<vtkExtractSelection> extract;
  extract->SetInputDataObject(0, patches);
  extract->SetInputDataObject(1, ofCells);
  extract->Update();
  auto* cells = vtkDataSet::SafeDownCast(extract->GetOutputDataObject(0));
  vtkDataArray* tokens = cells != nullptr
                           ? cells->GetCellData()->GetArray(AttentionAtlas::ArrayNames::TokenIndex)
                           : nullptr;
  return tokens != nullptr ? AttentionAtlas::Integers(tokens) : std::vector<std::int64_t>();
}

}

vtkStandardNewMacro(vtkPatchAttention);

vtkPatchAttention::vtkPatchAttention()
  : vtkHeadAlgorithm(WITH_MEANS, { "vtkMultiBlockDataSet", "vtkSelection?" },
      { "vtkPolyData", "vtkPolyData", "vtkPolyData", "vtkImageData", "vtkPolyData" }, WHOLE_INPUT)
{
}

void vtkPatchAttention::AddSelectedToken(vtkIdType token)
{
  this->SelectedTokens.push_back(token);
  this->Modified();
}

void vtkPatchAttention::ClearSelectedTokens()
{
  this->SelectedTokens.clear();
  this->Modified();
}

int vtkPatchAttention::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  const std::array<int, 2> size =
    AttentionAtlas::IsEmpty(recording) ? std::array{ 0, 0 } : PictureSize(recording);
  const std::array<int, 6> extent = { 0, size[0] - 1, 0, size[1] - 1, 0, size[0] == 0 ? -1 : 0 };
  vtkInformation* info = outputVector->GetInformationObject(PicturePort);
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, VTK_UNSIGNED_CHAR, 3);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// The positions of the chosen tokens in the image, rising.
std::vector<std::int64_t> vtkPatchAttention::ChooseTokens(
  AttentionAtlas::ShownPatches& shown, vtkSelection* selection) const
{
  std::vector<std::int64_t> rows(this->SelectedTokens.begin(), this->SelectedTokens.end());
  const std::int64_t count = shown.recording.tokens.Count();
  for (const std::int64_t row : rows)
  {
    if (row < 0 || row >= count)
    {
      throw atlas::OptionError("SelectedTokens: expected tokens from 0 to " +
                               std::to_string(count - 1) + ", found " + std::to_string(row) + ".");
    }
  }
  const std::size_t tokens = shown.grid.row.size();
  if (selection != nullptr && selection->GetNumberOfNodes() > 0)
  {
    shown.attention.weights.assign(tokens, 0); // the cells, for now
    vtkNew<vtkPolyData> patches;
    MakePatches(shown, patches);
    const std::vector<std::int64_t> selected = ::SelectedTokens(selection, patches);
    rows.insert(rows.end(), selected.begin(), selected.end());
  }
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < tokens; ++i)
  {
    const auto token = static_cast<std::int64_t>(i);
    if (std::find(rows.begin(), rows.end(), shown.TokenIndex(token)) != rows.end())
    {
      chosen.push_back(token);
    }
  }
  return chosen.empty() ? atlas::ChoosePatch(shown.grid, this->Patch[0], this->Patch[1]) : chosen;
}

/// Makes the picture; tells once per image if there is none.
void vtkPatchAttention::ShowPicture(const AttentionAtlas::ShownPatches& shown, const Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const atlas::RecordedPictures& pictures = shown.recording.pictures;
  const std::pair<vtkMTimeType, int> place = { AttentionAtlas::TimeOf(input), this->Sequence };
  const bool isTold = !task.IsFirst() || this->Told == place || this->Sequence < 0;
  std::shared_ptr<const std::uint8_t> pixels;
  try
  {
    if (!pictures.IsEmpty() && this->Sequence >= 0)
    {
      pixels = atlas::FindPicture(pictures, this->Sequence);
    }
    else if (!isTold)
    {
      vtkWarningMacro(<< "the recording has no pictures, so patches have their mean colors, as far "
                         "as they were recorded; record the images again with RecordPictures on.");
    }
  }
  catch (const atlas::OptionError& e)
  {
    if (!isTold)
    {
      vtkErrorMacro(<< e.what() << " Its patches have their mean colors; record the images again.");
    }
  }
  this->Told = pixels == nullptr ? place : std::pair<vtkMTimeType, int>();
  const std::array<int, 2> size = PictureSize(input);
  MakePicture(
    shown, pixels.get(), size, PartOf(size, task), task.Output<vtkImageData>(PicturePort));
}

void vtkPatchAttention::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  atlas::PatchOptions options;
  options.sequence = this->Sequence;
  options.layer = this->Layer;
  options.head = this->Head;
  options.quantity = PatchQuantities.at(this->Quantity);
  options.direction = static_cast<atlas::PatchDirection>(this->Direction);
  options.arrows = static_cast<atlas::PatchArrows>(this->Arrows);
  options.threshold = this->ArrowThreshold;
  options.threads = AttentionAtlas::ThreadLimit();
  options.progress = task.Progress();
  const atlas::Recording recording =
    AttentionAtlas::ToRecording(input, this->Layer, this->Head, options.quantity);
  AttentionAtlas::ShownPatches shown{ recording, options,
    atlas::FindPatches(recording, this->Sequence), {} };
  if (task.IsFirst())
  {
    options.tokens = this->ChooseTokens(shown, task.Input<vtkSelection>(1));
    shown.attention = atlas::EvaluatePatches(recording, options);
    AttentionAtlas::RequireMemory(
      static_cast<double>(shown.attention.arrows.size()) * AttentionAtlas::BytesPerArrow,
      std::to_string(shown.attention.arrows.size()) + " arrows", "raise ArrowThreshold.");
    MakePatches(shown, task.Output<vtkPolyData>(0));
    MakeArrows(shown, task.Output<vtkPolyData>(1));
    MakeMarks(shown, task.Output<vtkPolyData>(2));
    MakeFrames(shown, task.Output<vtkPolyData>(4));
  }
  this->ShowPicture(shown, task);
}
