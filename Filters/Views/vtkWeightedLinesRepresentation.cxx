#include "vtkWeightedLinesRepresentation.h"

#include "ShownPiece.h"

#include <vtkActor.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkCommand.h>
#include <vtkIdList.h>
#include <vtkMapper.h>
#include <vtkMath.h>
#include <vtkMultiProcessController.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderer.h>
#include <vtkUnsignedCharArray.h>
#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace
{

constexpr int Widths = 5;
constexpr const char* Opacity = "Opacity";

bool HasWeightedLines(vtkPolyData* data)
{
  return data != nullptr && data->GetNumberOfLines() > 0 &&
         data->GetNumberOfLines() == data->GetNumberOfCells() &&
         data->GetCellData()->GetArray(Opacity) != nullptr;
}

bool IsAlone()
{
  auto* controller = vtkMultiProcessController::GetGlobalController();
  return controller == nullptr || controller->GetNumberOfProcesses() == 1;
}

/// How far the strongest lines lie before the weakest, in lengths of the data's diagonal. Lines in
/// one plane would cut each other where they cross, instead of showing through.
constexpr double Relief = 1e-3;

/// The lines of one width, with points of their own.
vtkSmartPointer<vtkPolyData> LinesOf(vtkPolyData* data, int width)
{
  vtkDataArray* opacity = data->GetCellData()->GetArray(Opacity);
  const double relief = Relief * data->GetLength();
  auto lines = vtkSmartPointer<vtkPolyData>::New();
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> cells;
  vtkNew<vtkIdList> ends;
  lines->GetPointData()->CopyAllocate(data->GetPointData());
  lines->GetCellData()->CopyAllocate(data->GetCellData());
  for (vtkIdType i = 0; i < data->GetNumberOfLines(); ++i)
  {
    const double share = opacity->GetComponent(i, 0);
    if (std::clamp(static_cast<int>(share * Widths), 0, Widths - 1) != width)
    {
      continue;
    }
    data->GetLines()->GetCellAtId(i, ends);
    for (vtkIdType k = 0; k < ends->GetNumberOfIds(); ++k)
    {
      std::array<double, 3> place;
      data->GetPoint(ends->GetId(k), place.data());
      place[2] += relief * share;
      const vtkIdType point = points->InsertNextPoint(place.data());
      lines->GetPointData()->CopyData(data->GetPointData(), ends->GetId(k), point);
      ends->SetId(k, point);
    }
    lines->GetCellData()->CopyData(data->GetCellData(), i, cells->InsertNextCell(ends));
  }
  lines->SetPoints(points);
  lines->SetLines(cells);
  return lines;
}

/// The colors of data if these have an opacity; else null.
vtkUnsignedCharArray* TranslucentColors(vtkPolyData* data, const char* name)
{
  auto* colors = vtkUnsignedCharArray::SafeDownCast(
    data != nullptr && name != nullptr ? data->GetCellData()->GetArray(name) : nullptr);
  return colors != nullptr && colors->GetNumberOfComponents() == 4 ? colors : nullptr;
}

/// Colors as they look on a background.
vtkSmartPointer<vtkUnsignedCharArray> OnBackground(
  vtkUnsignedCharArray* colors, const std::array<double, 3>& background)
{
  auto opaque = vtkSmartPointer<vtkUnsignedCharArray>::New();
  opaque->SetName(colors->GetName());
  opaque->SetNumberOfComponents(3);
  opaque->SetNumberOfTuples(colors->GetNumberOfTuples());
  for (vtkIdType i = 0; i < colors->GetNumberOfTuples(); ++i)
  {
    const double opacity = colors->GetTypedComponent(i, 3) / 255.;
    for (int c = 0; c < 3; ++c)
    {
      const double back = 255 * background.at(c);
      const double mixed = back + opacity * (colors->GetTypedComponent(i, c) - back);
      opaque->SetTypedComponent(i, c, static_cast<unsigned char>(std::lround(mixed)));
    }
  }
  return opaque;
}

/// Makes a mapper color as another one.
void CopyColoring(vtkMapper* from, vtkMapper* to)
{
  to->SetLookupTable(from->GetLookupTable());
  to->SetScalarVisibility(from->GetScalarVisibility());
  to->SetScalarMode(from->GetScalarMode());
  to->SetColorMode(from->GetColorMode());
  to->SelectColorArray(from->GetArrayName());
  to->SetArrayComponent(from->GetArrayComponent());
  to->SetUseLookupTableScalarRange(from->GetUseLookupTableScalarRange());
}

}

/// The lines in a view, and their actors.
struct vtkWeightedLinesRepresentation::Lines
{
  vtkWeightedLinesRepresentation* owner;
  vtkWeakPointer<vtkRenderer> renderer;
  unsigned long observer = 0;
  std::array<vtkNew<vtkActor>, Widths> actors;
  std::array<vtkNew<vtkPolyDataMapper>, Widths> mappers;
  std::array<vtkSmartPointer<vtkPolyData>, Widths> lines;
  std::array<double, 3> background = { 0, 0, 0 };
  bool isMixed = false;      ///< whether colors are those on the background
  bool isUsed = false;       ///< whether these are what is drawn
  vtkMTimeType dataTime = 0; ///< of the data that they belong to

  explicit Lines(vtkWeightedLinesRepresentation* representation)
    : owner(representation)
  {
    for (std::size_t w = 0; w < Widths; ++w)
    {
      this->actors.at(w)->SetMapper(this->mappers.at(w));
      this->actors.at(w)->PickableOff();
      this->actors.at(w)->VisibilityOff();
    }
  }

  void Read(vtkDataObject* data)
  {
    const std::vector<vtkDataSet*> leaves = AttentionAtlas::LeavesOf(data);
    auto* one = leaves.size() == 1 ? vtkPolyData::SafeDownCast(leaves[0]) : nullptr;
    this->isUsed = HasWeightedLines(one);
    if (!this->isUsed || data->GetMTime() == this->dataTime)
    {
      return;
    }
    this->dataTime = data->GetMTime();
    for (int w = 0; w < Widths; ++w)
    {
      const std::size_t place = w;
      this->lines.at(place) = LinesOf(one, w);
      this->mappers.at(place)->SetInputData(this->lines.at(place));
    }
    this->isMixed = false;
  }

  /// On several ranks, which draw what is translucent behind the background, gives the lines the
  /// colors that they have on it. While it renders, a rank has another background.
  void MixColors()
  {
    if (!this->isUsed || this->renderer == nullptr || IsAlone())
    {
      return;
    }
    std::array<double, 3> back;
    this->renderer->GetBackground(back.data());
    if (this->isMixed && back == this->background)
    {
      return;
    }
    this->isMixed = true;
    this->background = back;
    for (std::size_t w = 0; w < Widths; ++w)
    {
      const char* name = this->owner->Mapper->GetArrayName();
      if (auto* colors = TranslucentColors(this->lines.at(w), name))
      {
        vtkNew<vtkPolyData> mixed;
        mixed->ShallowCopy(this->lines.at(w));
        mixed->GetCellData()->AddArray(OnBackground(colors, back));
        this->mappers.at(w)->SetInputData(mixed);
      }
    }
  }

  /// Before each rendering.
  void Choose()
  {
    const bool isSelecting = this->renderer != nullptr && this->renderer->GetSelector() != nullptr;
    const bool isVisible = this->owner->GetVisibility();
    vtkActor* all = this->owner->Actor;
    all->SetVisibility(isVisible && (!this->isUsed || isSelecting));
    for (std::size_t w = 0; w < Widths; ++w)
    {
      vtkActor* actor = this->actors.at(w);
      actor->SetVisibility(isVisible && this->isUsed && !isSelecting);
      actor->SetUserMatrix(all->GetMatrix());
      actor->GetProperty()->DeepCopy(all->GetProperty());
      const double share = static_cast<double>(w + 1) / Widths;
      actor->GetProperty()->SetLineWidth(
        std::max(1.F, static_cast<float>(share) * all->GetProperty()->GetLineWidth()));
      // As triangles, which are not cut where the tiles of a large picture meet.
      actor->GetProperty()->RenderLinesAsTubesOn();
      CopyColoring(this->owner->Mapper, this->mappers.at(w));
    }
  }

  void Leave()
  {
    if (this->renderer != nullptr)
    {
      this->renderer->RemoveObserver(this->observer);
      for (const auto& actor : this->actors)
      {
        this->renderer->RemoveActor(actor);
      }
    }
    this->renderer = nullptr;
  }
};

vtkStandardNewMacro(vtkWeightedLinesRepresentation);

vtkWeightedLinesRepresentation::vtkWeightedLinesRepresentation()
  : Shown(std::make_unique<Lines>(this))
{
}

vtkWeightedLinesRepresentation::~vtkWeightedLinesRepresentation()
{
  this->Shown->Leave();
}

int vtkWeightedLinesRepresentation::ProcessViewRequest(
  vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output)
{
  if (this->Superclass::ProcessViewRequest(request, input, output) == 0)
  {
    return 0;
  }
  if (request == vtkPVView::REQUEST_UPDATE() &&
      vtkMath::AreBoundsInitialized(this->VisibleDataBounds))
  {
    std::array<double, 6> bounds;
    std::copy_n(this->VisibleDataBounds, bounds.size(), bounds.begin());
    AttentionAtlas::AddViewBounds(this->GetRenderedDataObject(0), bounds);
    vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
  }
  if (request == vtkPVView::REQUEST_RENDER())
  {
    this->Shown->Read(AttentionAtlas::ShownPiece(input, this));
    this->Shown->MixColors();
  }
  return 1;
}

bool vtkWeightedLinesRepresentation::NeedsOrderedCompositing()
{
  return false;
}

bool vtkWeightedLinesRepresentation::AddToView(vtkView* view)
{
  if (!this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Shown->renderer = vtkPVRenderView::SafeDownCast(view)->GetRenderer();
  for (const auto& actor : this->Shown->actors)
  {
    this->Shown->renderer->AddActor(actor);
  }
  this->Shown->observer =
    this->Shown->renderer->AddObserver(vtkCommand::StartEvent, this->Shown.get(), &Lines::Choose);
  return true;
}

bool vtkWeightedLinesRepresentation::RemoveFromView(vtkView* view)
{
  this->Shown->Leave();
  return this->Superclass::RemoveFromView(view);
}
