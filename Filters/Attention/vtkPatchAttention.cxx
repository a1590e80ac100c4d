#include "vtkPatchAttention.h"

#include "ArrayNames.h"
#include "Error.h"
#include "Execution.h"
#include "Index.h"
#include "PatchAttention.h"
#include "PatchOutput.h"
#include "PointArrays.h"
#include "RecordPictures.h"
#include "RecordingConversion.h"

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
#include <optional>
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr int PicturePort = 3;
constexpr int Ports = 5;

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

/// What is asked for.
struct vtkPatchAttention::Part
{
  bool isFirst = true;       ///< has the cells, and tells errors
  std::array<int, 2> size;   ///< of the picture
  std::array<int, 6> extent; ///< of the part of the picture

  Part(vtkMultiBlockDataSet* recording, vtkInformation* request, vtkInformationVector* outputVector)
    : size(PictureSize(recording))
    , extent{ 0, this->size[0] - 1, 0, this->size[1] - 1, 0, 0 }
  {
    const int port = std::max(request->Get(SDDP::FROM_OUTPUT_PORT()), 0);
    vtkInformation* info = outputVector->GetInformationObject(port);
    const int piece = info->Get(SDDP::UPDATE_PIECE_NUMBER());
    const int pieces = info->Get(SDDP::UPDATE_NUMBER_OF_PIECES());
    this->isFirst = piece <= 0;
    if (port == PicturePort && info->Has(SDDP::UPDATE_EXTENT()))
    {
      info->Get(SDDP::UPDATE_EXTENT(), this->extent.data());
    }
    else if (pieces > 1)
    {
      std::array<int, 6> whole = this->extent;
      vtkNew<vtkExtentTranslator> translator;
      translator->PieceToExtentThreadSafe(
        piece, pieces, 0, whole.data(), this->extent.data(), vtkExtentTranslator::BLOCK_MODE, 0);
    }
  }
};

vtkPatchAttention::vtkPatchAttention()
{
  this->SetNumberOfInputPorts(2);
  this->SetNumberOfOutputPorts(Ports);
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

int vtkPatchAttention::FillInputPortInformation(int port, vtkInformation* info)
{
  const bool isSelection = port == 1;
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(),
    isSelection ? "vtkSelection" : "vtkMultiBlockDataSet");
  info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), isSelection ? 1 : 0);
  return 1;
}

int vtkPatchAttention::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == PicturePort ? "vtkImageData" : "vtkPolyData");
  return 1;
}

int vtkPatchAttention::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  this->Ranges.Find(recording);
  if (!AttentionAtlas::IsEmpty(recording))
  {
    this->Ranges.sequence[0] = static_cast<int>(atlas::AllSequences);
    this->Ranges.head[0] = static_cast<int>(atlas::AllHeads);
  }
  const std::array<int, 2> size =
    AttentionAtlas::IsEmpty(recording) ? std::array{ 0, 0 } : PictureSize(recording);
  const std::array<int, 6> extent = { 0, size[0] - 1, 0, size[1] - 1, 0, size[0] == 0 ? -1 : 0 };
  vtkInformation* info = outputVector->GetInformationObject(PicturePort);
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, VTK_UNSIGNED_CHAR, 3);
  return 1;
}

int vtkPatchAttention::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  // The whole recording, whatever part of the picture.
  if (inputVector[0]->GetNumberOfInformationObjects() > 0)
  {
    AttentionAtlas::KeepRequest(inputVector[0]->GetInformationObject(0));
  }
  return 1;
}

/// The positions of the chosen tokens in the image, rising.
std::vector<std::int64_t> vtkPatchAttention::ChooseTokens(
  AttentionAtlas::ShownPatches& shown, vtkInformationVector** inputVector) const
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
  vtkSelection* selection = vtkSelection::GetData(inputVector[1]);
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
void vtkPatchAttention::ShowPicture(const AttentionAtlas::ShownPatches& shown, vtkMTimeType input,
  const Part& part, vtkInformationVector* outputVector)
{
  const atlas::RecordedPictures& pictures = shown.recording.pictures;
  const std::pair<vtkMTimeType, int> place = { input, this->Sequence };
  const bool isTold = !part.isFirst || this->Told == place || this->Sequence < 0;
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
  MakePicture(
    shown, pixels.get(), part.size, part.extent, vtkImageData::GetData(outputVector, PicturePort));
}

/// Makes all outputs. Returns false if the user has canceled.
bool vtkPatchAttention::Show(
  vtkInformationVector** inputVector, const Part& part, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  atlas::PatchOptions options;
  options.sequence = this->Sequence;
  options.layer = this->Layer;
  options.head = this->Head;
  options.quantity = PatchQuantities.at(static_cast<std::size_t>(this->Quantity));
  options.direction = static_cast<atlas::PatchDirection>(this->Direction);
  options.arrows = static_cast<atlas::PatchArrows>(this->Arrows);
  options.threshold = this->ArrowThreshold;
  options.threads = AttentionAtlas::ThreadLimit();
  options.progress = [this](double done)
  { return AttentionAtlas::ReportProgress(this, 0.9 * done); };
  const atlas::Recording recording =
    AttentionAtlas::ToRecording(input, this->Layer, this->Head, options.quantity);
  AttentionAtlas::ShownPatches shown{ recording, options,
    atlas::FindPatches(recording, this->Sequence), {} };
  if (part.isFirst)
  {
    options.tokens = this->ChooseTokens(shown, inputVector);
    std::optional<atlas::PatchAttention> attention = atlas::EvaluatePatches(recording, options);
    if (!attention)
    {
      return false;
    }
    shown.attention = std::move(*attention);
    AttentionAtlas::RequireMemory(
      static_cast<double>(shown.attention.arrows.size()) * AttentionAtlas::BytesPerArrow,
      std::to_string(shown.attention.arrows.size()) + " arrows", "raise ArrowThreshold.");
    MakePatches(shown, vtkPolyData::GetData(outputVector, 0));
    MakeArrows(shown, vtkPolyData::GetData(outputVector, 1));
    MakeMarks(shown, vtkPolyData::GetData(outputVector, 2));
    MakeFrames(shown, vtkPolyData::GetData(outputVector, 4));
  }
  this->ShowPicture(shown, input->GetMTime(), part, outputVector);
  return true;
}

int vtkPatchAttention::RequestData(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const auto clear = [outputVector]()
  {
    for (int port = 0; port < Ports; ++port)
    {
      vtkDataObject::GetData(outputVector, port)->Initialize();
    }
  };
  clear();
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  if (AttentionAtlas::IsEmpty(input))
  {
    return 1;
  }
  const Part part(input, request, outputVector);
  try
  {
    if (!this->Show(inputVector, part, outputVector))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
  }
  catch (const std::exception& e)
  {
    clear();
    if (part.isFirst && this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkPatchAttention::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Sequence: " << this->Sequence << "\n";
  os << indent << "Layer: " << this->Layer << "\n";
  os << indent << "Head: " << this->Head << "\n";
  os << indent << "Quantity: " << this->Quantity << "\n";
  os << indent << "Patch: " << this->Patch[0] << " " << this->Patch[1] << "\n";
  os << indent << "Direction: " << this->Direction << "\n";
  os << indent << "Arrows: " << this->Arrows << "\n";
  os << indent << "ArrowThreshold: " << this->ArrowThreshold << "\n";
  os << indent << "SelectedTokens:";
  for (const vtkIdType token : this->SelectedTokens)
  {
    os << " " << token;
  }
  os << "\n";
}
