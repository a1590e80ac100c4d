#include "vtkPatchAttention.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "MatrixPanels.h"
#include "PanelTitles.h"
#include "PatchOutput.h"
#include "PointArrays.h"
#include "Preprocessing/RecordPictures.h"
#include "Recording/PatchAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
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
#include <vtkPolyData.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr int PicturePort = 3;
constexpr int TitlesPort = 5;
constexpr int CellsPort = 6;

/// The quantities of this filter, in the order of QuantityType.
constexpr std::array<atlas::AttentionQuantity, 3> PatchQuantities = {
  atlas::AttentionQuantity::Weights, atlas::AttentionQuantity::NormWeighted,
  atlas::AttentionQuantity::Rollout
};

/// In place of a layer: none, so that tokens and pictures alone are read.
constexpr std::int64_t NoLayer = -1;

/// The width and height of the pictures of a recording in pixels, if all have the same; 1, 1 for
/// sizes that there are not, so that something is asked for and the error told.
std::optional<std::array<int, 2>> CommonSize(vtkMultiBlockDataSet* recording)
{
  vtkDataArray* size = recording->GetFieldData()->GetArray(PictureSizeField);
  if (size == nullptr || size->GetNumberOfValues() != 2)
  {
    return std::nullopt;
  }
  const double height = size->GetComponent(0, 0);
  const double width = size->GetComponent(0, 1);
  const auto most = static_cast<double>(atlas::MaximumPictureSide * atlas::MaximumPictureSide);
  return height >= 1 && width >= 1 && height * width <= most
           ? std::array{ static_cast<int>(width), static_cast<int>(height) }
           : std::array{ 1, 1 };
}

/// The pictures of the text of which `part` is the encoder of images; none of other parts.
atlas::RecordedPictures PicturesOf(vtkMultiBlockDataSet* recording, vtkMultiBlockDataSet* part)
{
  return part == recording ? atlas::RecordedPictures()
                           : ToRecording(recording, NoLayer, 0).pictures;
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
  vtkDataArray* tokens =
    cells != nullptr ? cells->GetCellData()->GetArray(ArrayNames::TokenIndex) : nullptr;
  return tokens != nullptr ? Integers(tokens) : std::vector<std::int64_t>();
}

}

vtkStandardNewMacro(vtkPatchAttention);

vtkPatchAttention::vtkPatchAttention()
  : vtkHeadAlgorithm(WITH_MEANS, { "vtkMultiBlockDataSet", "vtkSelection?" },
      { "vtkPolyData", "vtkPolyData", "vtkPolyData", "vtkImageData", "vtkPolyData", "vtkPolyData",
        "vtkPolyData" },
      WHOLE_INPUT)
{
}

int vtkPatchAttention::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  const std::array<int, 2> size =
    IsEmpty(recording) ? std::array{ 0, 0 } : this->FindSize(recording);
  const std::array<int, 6> extent = { 0, size[0] - 1, 0, size[1] - 1, 0, size[0] == 0 ? -1 : 0 };
  vtkInformation* info = outputVector->GetInformationObject(PicturePort);
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, VTK_UNSIGNED_CHAR, 3);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// The size of the picture, from the recording that has been updated; what else the filter tells of
/// its input. 1, 1 if there is no such picture, so that something is asked for and the error told.
std::array<int, 2> vtkPatchAttention::FindSize(vtkMultiBlockDataSet* recording)
{
  this->HasWords = 0;
  this->PictureRange[1] = this->TokenRange[1] = 0;
  vtkMultiBlockDataSet* part = this->KnownPart();
  if (part == nullptr)
  {
    return { 1, 1 };
  }
  const auto common = CommonSize(part);
  if (common && !this->AllHeads)
  {
    return *common;
  }
  try
  {
    const atlas::Recording read = ToRecording(part, NoLayer, 0);
    this->HasWords = read.tokens.picture.empty() ? 0 : 1;
    this->TokenRange[1] = SequenceTokens(part, this->Sequence) - 1;
    const atlas::PatchGrid all = atlas::FindPatches(read, this->Sequence);
    this->PictureRange[1] = std::max(0, static_cast<int>(all.pictures.size()) - 1);
    const PatchCanvas canvas =
      FindCanvas(read, atlas::FindPatches(read, this->Sequence, this->Picture), this->Sequence,
        PicturesOf(recording, part));
    return this->AllHeads ? RepeatCanvas(canvas, this->PanelsOf(part, canvas)).size : canvas.size;
  }
  catch (const atlas::Error&) // told by Execute
  {
    return { 1, 1 };
  }
}

/// The panels of all heads of a part of the recording.
MatrixPanels vtkPatchAttention::PanelsOf(
  vtkMultiBlockDataSet* part, const PatchCanvas& canvas) const
{
  const int heads = this->Quantity == ROLLOUT ? 0 : RecordingRanges(part).head[1] + 1;
  return { RecordedLayers(part), heads, static_cast<int>(canvas.columns),
    static_cast<int>(canvas.rows), false };
}

/// The positions of the chosen tokens in the image, rising.
std::vector<std::int64_t> vtkPatchAttention::ChooseTokens(
  ShownPatches& shown, const MatrixPanels& panels, vtkSelection* selection) const
{
  std::vector<std::int64_t> rows(this->SelectedTokens.begin(), this->SelectedTokens.end());
  const std::int64_t count = shown.recording.tokens.Count();
  for (const std::int64_t row : rows)
  {
    atlas::ThrowIf<atlas::OptionError>(row < 0 || row >= count,
      "SelectedTokens: expected tokens from 0 to ", count - 1, ", found ", row, ".");
  }
  const std::size_t tokens = shown.grid.row.size();
  if (selection != nullptr && selection->GetNumberOfNodes() > 0)
  {
    shown.attention.weights.assign(tokens, 0); // the cells, for now
    const std::vector<std::int64_t> cells = shown.tokens;
    std::vector<std::int64_t> others; // words are selected in other views
    for (std::size_t i = 0; i < tokens; ++i)
    {
      const auto token = static_cast<std::int64_t>(i);
      const bool isShown = std::binary_search(cells.begin(), cells.end(), token);
      if (!isShown || (this->AllHeads && !shown.grid.IsPatch(token)))
      {
        others.push_back(token);
      }
    }
    vtkNew<vtkPolyData> patches;
    if (this->AllHeads)
    {
      MakePatchesOfHeads(
        shown, { panels, { panels.Heads().size(), shown.attention.weights } }, others, patches);
    }
    else
    {
      shown.tokens.insert(shown.tokens.end(), others.begin(), others.end());
      MakePatches(shown, patches);
      shown.tokens = cells;
    }
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
  if (!chosen.empty())
  {
    return chosen;
  }
  if (shown.grid.IsAmongWords() && this->Patch[0] == -1 && this->Patch[1] == -1)
  {
    return { atlas::ChooseToken(shown.grid, this->Token) };
  }
  return atlas::ChoosePatch(shown.grid, this->Patch[0], this->Patch[1], this->PatchPicture);
}

/// Makes the picture; tells once per image if there is none.
void vtkPatchAttention::ShowPicture(const ShownPatches& shown, const PatchCanvas& canvas,
  const atlas::RecordedPictures& pictures, const Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const std::pair<vtkMTimeType, int> place = { TimeOf(input), this->Sequence };
  const bool isTold = !task.IsFirst() || this->Told == place || this->Sequence < 0;
  std::vector<std::shared_ptr<const std::uint8_t>> pixels(canvas.parts.size());
  std::map<std::int64_t, std::shared_ptr<const std::uint8_t>> known; // by entry
  bool isMissing = false;
  try
  {
    for (std::size_t n = 0; n < pixels.size(); ++n)
    {
      const std::int64_t entry = canvas.parts[n].source.entry;
      const bool isThere = entry >= 0 && (pictures.pixels != nullptr || !pictures.sources.empty());
      if (isThere && known.count(entry) == 0)
      {
        known[entry] = atlas::FindPicture(pictures, entry);
      }
      pixels[n] = isThere ? known[entry] : nullptr;
      isMissing = isMissing || !isThere;
    }
    if (isMissing && !isTold)
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
  const bool isWhole = std::all_of(
    pixels.begin(), pixels.end(), [](const auto& picture) { return picture != nullptr; });
  this->Told = isWhole ? std::pair<vtkMTimeType, int>() : place;
  MakePicture(
    shown, canvas, pixels, PartOf(canvas.size, task), task.Output<vtkImageData>(PicturePort));
}

/// Shows one head.
void vtkPatchAttention::ShowHead(
  ShownPatches& shown, atlas::PatchOptions& options, const Task& task)
{
  options.tokens = this->ChooseTokens(shown, {}, task.Input<vtkSelection>(1));
  shown.attention = atlas::EvaluatePatches(shown.recording, options);
  RequireMemory(static_cast<double>(shown.attention.arrows.size()) * BytesPerArrow,
    std::to_string(shown.attention.arrows.size()) + " arrows", "raise ArrowThreshold.");
  auto* arrows = task.Output<vtkPolyData>(1);
  auto* marks = task.Output<vtkPolyData>(2);
  auto* frames = task.Output<vtkPolyData>(4);
  MakePatches(shown, task.Output<vtkPolyData>(0));
  MakeArrows(shown, arrows);
  MakeMarks(shown, marks);
  MakeFrames(shown, frames);
  ExplainMarks({ arrows, marks, frames });
}

/// Shows all heads. Their arrows, marks and frames would hide small pictures.
void vtkPatchAttention::ShowAllHeads(
  ShownPatches& shown, atlas::PatchOptions& options, const MatrixPanels& panels, const Task& task)
{
  const std::vector<atlas::HeadPlace>& heads = panels.Heads();
  RequireMemory(
    static_cast<double>(heads.size()) * static_cast<double>(shown.tokens.size()) * BytesPerPatch,
    "the patches of " + std::to_string(heads.size()) + " heads", "turn AllHeads off.");
  options.tokens = this->ChooseTokens(shown, panels, task.Input<vtkSelection>(1));
  PatchPanels shownHeads = { panels, {} };
  const atlas::Progress progress = options.progress;
  for (std::size_t i = 0; i < heads.size(); ++i)
  {
    options.layer = heads[i].layer;
    options.head = heads[i].head;
    options.progress = progress.Part(i, i + 1, heads.size());
    shownHeads.weights.push_back(atlas::EvaluatePatches(shown.recording, options).weights);
  }
  MakePatchesOfHeads(shown, shownHeads, {}, task.Output<vtkPolyData>(0));
  shown.attention = {};
  options.tokens.clear();
  options.layer = atlas::AllLayers;
  options.head = atlas::AllHeads;
  MakeArrows(shown, task.Output<vtkPolyData>(1));
  MakeMarks(shown, task.Output<vtkPolyData>(2));
  MakeFrames(shown, task.Output<vtkPolyData>(4));
  panels.MakeTitles(
    task.Output<vtkPolyData>(TitlesPort), Formats::PatchAttentionTitles, shown.patchHeight);
}

void vtkPatchAttention::Execute(Task& task)
{
  atlas::ThrowIf<atlas::OptionError>(this->AttentionKind == CROSS,
    "AttentionKind: expected Decoder or Encoder, which pictures have, found Cross.");
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (IsEmpty(input))
  {
    return;
  }
  atlas::ThrowIf<atlas::OptionError>(!(this->HeatSide > 0 && this->HeatSide <= 1),
    "HeatSide: expected a share above 0 and at most 1, found ", this->HeatSide, ".");
  atlas::PatchOptions options;
  options.sequence = this->Sequence;
  options.picture = this->Picture;
  options.layer = this->MeanOfLayers ? atlas::AllLayers : this->Layer;
  options.head = this->Head;
  options.quantity = PatchQuantities.at(this->Quantity);
  options.direction = static_cast<atlas::PatchDirection>(this->Direction);
  options.arrows = static_cast<atlas::PatchArrows>(this->Arrows);
  options.threshold = this->ArrowThreshold;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  const atlas::Recording recording =
    this->MeanOfLayers || this->AllHeads
      ? ToRecording(input)
      : ToRecording(input, this->Layer, this->Head, options.quantity);
  ShownPatches shown{ recording, options,
    atlas::FindPatches(recording, this->Sequence, this->Picture), 1, 1, {}, {} };
  const atlas::RecordedPictures ofText = PicturesOf(task.Input<vtkMultiBlockDataSet>(), input);
  PatchCanvas canvas = FindCanvas(recording, shown.grid, this->Sequence, ofText);
  shown.patchHeight = canvas.patchHeight;
  shown.heatSide = this->HeatSide;
  for (std::size_t i = 0; i < shown.grid.row.size(); ++i)
  {
    const auto token = static_cast<std::int64_t>(i);
    if (!shown.grid.IsAmongWords() || shown.grid.IsPatch(token))
    {
      shown.tokens.push_back(token);
    }
  }
  if (task.IsFirst() && !this->AllHeads)
  {
    this->ShowHead(shown, options, task);
    PanelTitles().MoveTo(task.Output<vtkPolyData>(TitlesPort), Formats::PatchAttentionTitles);
  }
  if (this->AllHeads)
  {
    const MatrixPanels panels = this->PanelsOf(input, canvas);
    canvas = RepeatCanvas(canvas, panels);
    if (task.IsFirst())
    {
      this->ShowAllHeads(shown, options, panels, task);
    }
  }
  if (task.IsFirst())
  {
    MakeCells(task.Output<vtkPolyData>(0), this->HeatSide, task.Output<vtkPolyData>(CellsPort));
  }
  this->ShowPicture(
    shown, canvas, recording.pictures.IsEmpty() ? ofText : recording.pictures, task);
  for (const int port : { 0, 1, 2, 4, CellsPort })
  {
    this->AddKind(task.Output<vtkPolyData>(port));
  }
}
