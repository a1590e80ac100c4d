#include "vtkTokenLabelsRepresentation.h"

#include "LabelPlacement.h"

#include <vtkAlgorithm.h>
#include <vtkAlgorithmOutput.h>
#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkCoordinate.h>
#include <vtkDataArray.h>
#include <vtkDataSet.h>
#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkMatrix4x4.h>
#include <vtkMultiProcessController.h>
#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkPVRenderView.h>
#include <vtkPointData.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>
#include <vtkTextActor.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>
#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace
{

/// The distance of a label from its point, and the room around it, in pixels.
constexpr int Gap = 4;
constexpr int Room = 1;

/// The points on the screen that are tried before a rendering goes on without further labels.
constexpr int MaximumTries = 20000;

/// A point that can have a label.
struct Candidate
{
  std::array<double, 3> point;
  std::string token;
};

/// Adds the points of a dataset that have this Match, in an even order, until there are enough.
void AddCandidates(vtkDataSet* data, bool isMatch, std::vector<Candidate>& candidates)
{
  auto* tokens = vtkStringArray::SafeDownCast(data->GetPointData()->GetAbstractArray("Token"));
  vtkDataArray* match = data->GetPointData()->GetArray("Match");
  if (tokens == nullptr || (match == nullptr && isMatch))
  {
    return;
  }
  const auto most = static_cast<std::size_t>(vtkTokenLabelsRepresentation::MaximumCandidates);
  for (const std::int64_t i : atlas::SpreadOrder(data->GetNumberOfPoints()))
  {
    if (candidates.size() >= most)
    {
      return;
    }
    if (match == nullptr || (match->GetComponent(i, 0) != 0) == isMatch)
    {
      Candidate candidate;
      data->GetPoint(i, candidate.point.data());
      candidate.token = tokens->GetValue(i);
      candidates.push_back(std::move(candidate));
    }
  }
}

std::vector<vtkDataSet*> Leaves(vtkDataObject* data)
{
  std::vector<vtkDataSet*> leaves;
  if (auto* one = vtkDataSet::SafeDownCast(data))
  {
    leaves.push_back(one);
  }
  else if (auto* composite = vtkCompositeDataSet::SafeDownCast(data))
  {
    const auto blocks = vtkSmartPointer<vtkCompositeDataIterator>::Take(composite->NewIterator());
    for (blocks->InitTraversal(); !blocks->IsDoneWithTraversal(); blocks->GoToNextItem())
    {
      if (auto* leaf = vtkDataSet::SafeDownCast(blocks->GetCurrentDataObject()))
      {
        leaves.push_back(leaf);
      }
    }
  }
  return leaves;
}

/// Whether a point is between the planes of the camera, with x and y from 0 to 1.
bool IsOnScreen(const std::array<double, 4>& place)
{
  const double w = place[3];
  return w > 0 && place[0] >= 0 && place[0] <= w && place[1] >= 0 && place[1] <= w &&
         std::abs(place[2]) <= w;
}

}

/// The labels of a view.
struct vtkTokenLabelsRepresentation::Labels
{
  vtkTokenLabelsRepresentation* owner;
  vtkWeakPointer<vtkRenderer> renderer;           ///< of what lies over the scene
  vtkWeakPointer<vtkRenderer> backgroundRenderer; ///< of the scene
  unsigned long observer = 0;
  std::vector<Candidate> candidates; ///< the most important first
  vtkMTimeType dataTime = 0;         ///< of the data that these belong to
  std::vector<vtkSmartPointer<vtkTextActor>> actors;
  std::size_t used = 0; ///< of the actors
  vtkNew<vtkTextProperty> style;
  std::unordered_map<std::string, std::array<int, 2>> sizes; ///< of texts in pixels, for sizesDpi
  int sizesDpi = 0;

  explicit Labels(vtkTokenLabelsRepresentation* representation)
    : owner(representation)
  {
    this->style->SetVerticalJustificationToBottom();
    this->style->SetFontSize(representation->LabelFontSize);
  }

  void Read(vtkDataObject* data)
  {
    if (data == nullptr || data->GetMTime() == this->dataTime)
    {
      return;
    }
    this->dataTime = data->GetMTime();
    this->candidates.clear();
    for (const bool isMatch : { true, false })
    {
      for (vtkDataSet* leaf : Leaves(data))
      {
        AddCandidates(leaf, isMatch, this->candidates);
      }
    }
  }

  /// Width and height of a text.
  const std::array<int, 2>& SizeOf(const std::string& text, int dpi)
  {
    if (dpi != this->sizesDpi)
    {
      this->sizes.clear();
      this->sizesDpi = dpi;
    }
    const auto [entry, isNew] = this->sizes.try_emplace(text, std::array<int, 2>{ 0, 0 });
    if (isNew)
    {
      std::array<int, 4> box = { 0, -1, 0, -1 };
      vtkTextRenderer::GetInstance()->GetBoundingBox(this->style, text, box.data(), dpi);
      entry->second = { box[1] - box[0] + 1, box[3] - box[2] + 1 };
    }
    return entry->second;
  }

  /// Shows a text with its lower left corner at a place of the screen.
  void Show(const std::string& text, int x, int y)
  {
    if (this->used == this->actors.size())
    {
      const auto actor = vtkSmartPointer<vtkTextActor>::New();
      actor->SetTextProperty(this->style);
      actor->GetPositionCoordinate()->SetCoordinateSystemToViewport();
      actor->PickableOff();
      this->renderer->AddActor(actor);
      this->actors.push_back(actor);
    }
    vtkTextActor* actor = this->actors[this->used++];
    actor->SetInput(text.c_str());
    actor->SetPosition(x, y);
    actor->VisibilityOn();
  }

  void HideFrom(std::size_t first)
  {
    this->used = std::min(this->used, first);
    for (std::size_t i = first; i < this->actors.size(); ++i)
    {
      this->actors[i]->VisibilityOff();
    }
  }

  /// Before each rendering. A larger picture is rendered tile by tile, all with the labels of the
  /// first, at the lower left.
  void Place()
  {
    if (this->renderer == nullptr || this->renderer->GetRenderWindow()->GetTileViewport()[0] > 0 ||
        this->renderer->GetRenderWindow()->GetTileViewport()[1] > 0)
    {
      return;
    }
    this->used = 0;
    if (this->owner->GetVisibility() && this->backgroundRenderer != nullptr)
    {
      this->ChooseInk();
      this->PlaceOnScreen();
    }
    this->HideFrom(this->used);
  }

  void ChooseInk()
  {
    std::array<double, 3> back;
    this->backgroundRenderer->GetBackground(back.data());
    const double luminance = 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2];
    const double ink = luminance > 0.5 ? 0 : 1;
    this->style->SetColor(ink, ink, ink);
  }

  /// From the scene to the screen, x and y from 0 to 1. The camera is that of a tile.
  vtkSmartPointer<vtkMatrix4x4> ToScreen() const
  {
    auto matrix = vtkSmartPointer<vtkMatrix4x4>::New();
    matrix->DeepCopy(this->renderer->GetActiveCamera()->GetCompositeProjectionTransformMatrix(
      this->renderer->GetTiledAspectRatio(), -1, 1));
    vtkMatrix4x4::Multiply4x4(matrix, this->owner->Actor->GetMatrix(), matrix);
    const double* tile = this->renderer->GetRenderWindow()->GetTileViewport();
    vtkNew<vtkMatrix4x4> place;
    for (int axis : { 0, 1 })
    {
      const double half = (tile[axis + 2] - tile[axis]) / 2;
      place->SetElement(axis, axis, half);
      place->SetElement(axis, 3, tile[axis] + half);
    }
    vtkMatrix4x4::Multiply4x4(place, matrix, matrix);
    return matrix;
  }

  void PlaceOnScreen()
  {
    const int* size = this->renderer->GetSize();
    const int* scale = this->renderer->GetRenderWindow()->GetTileScale(); // also that of letters
    const int dpi = this->renderer->GetRenderWindow()->GetDPI();
    const auto toScreen = this->ToScreen();
    atlas::LabelBoxes boxes(size[0], size[1]);
    int tries = 0;
    for (const Candidate& candidate : this->candidates)
    {
      if (this->used >= static_cast<std::size_t>(this->owner->MaximumLabels) ||
          tries >= MaximumTries)
      {
        return;
      }
      std::array<double, 4> place = { candidate.point[0], candidate.point[1], candidate.point[2],
        1 };
      toScreen->MultiplyPoint(place.data(), place.data());
      if (!IsOnScreen(place))
      {
        continue;
      }
      ++tries;
      const int x = static_cast<int>(place[0] / place[3] * size[0]) + Gap * scale[0];
      const int y = static_cast<int>(place[1] / place[3] * size[1]) + Gap * scale[1];
      const std::string text = atlas::TokenLabel(candidate.token);
      const std::array<int, 2>& extent = this->SizeOf(text, dpi);
      if (boxes.Place({ x - Room, y - Room, x + extent[0] * scale[0] + Room,
            y + extent[1] * scale[1] + Room }))
      {
        this->Show(text, x, y);
      }
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
    this->actors.clear();
    this->used = 0;
    this->renderer = nullptr;
  }
};

vtkStandardNewMacro(vtkTokenLabelsRepresentation);

vtkTokenLabelsRepresentation::vtkTokenLabelsRepresentation()
  : Shown(std::make_unique<Labels>(this))
{
}

vtkTokenLabelsRepresentation::~vtkTokenLabelsRepresentation()
{
  this->Shown->Leave();
}

void vtkTokenLabelsRepresentation::SetMaximumLabels(int count)
{
  this->MaximumLabels = std::max(count, 0);
}

void vtkTokenLabelsRepresentation::SetLabelFontSize(int size)
{
  this->LabelFontSize = std::max(size, 1);
  this->Shown->style->SetFontSize(this->LabelFontSize);
  this->Shown->sizes.clear();
}

void vtkTokenLabelsRepresentation::SetVisibility(bool visible)
{
  this->Superclass::SetVisibility(visible);
  if (!visible)
  {
    this->Shown->HideFrom(0);
  }
}

int vtkTokenLabelsRepresentation::ProcessViewRequest(
  vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output)
{
  if (this->Superclass::ProcessViewRequest(request, input, output) == 0)
  {
    return 0;
  }
  if (request == vtkPVView::REQUEST_UPDATE())
  {
    vtkPVRenderView::SetForceDataDistributionMode(input, vtkMPIMoveData::COLLECT);
  }
  if (request == vtkPVView::REQUEST_RENDER())
  {
    vtkAlgorithmOutput* port = vtkPVRenderView::GetPieceProducer(input, this);
    vtkAlgorithm* producer = port != nullptr ? port->GetProducer() : nullptr;
    this->Shown->Read(
      producer != nullptr ? producer->GetOutputDataObject(port->GetIndex()) : nullptr);
  }
  return 1;
}

bool vtkTokenLabelsRepresentation::AddToView(vtkView* view)
{
  auto* shown = vtkPVRenderView::SafeDownCast(view);
  if (shown == nullptr || !this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Shown->renderer = shown->GetRenderer(vtkPVRenderView::NON_COMPOSITED_RENDERER);
  this->Shown->backgroundRenderer = shown->GetRenderer();
  this->Shown->observer =
    this->Shown->renderer->AddObserver(vtkCommand::StartEvent, this->Shown.get(), &Labels::Place);
  return true;
}

bool vtkTokenLabelsRepresentation::RemoveFromView(vtkView* view)
{
  this->Shown->Leave();
  return this->Superclass::RemoveFromView(view);
}

void vtkTokenLabelsRepresentation::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "MaximumLabels: " << this->MaximumLabels << "\n";
  os << indent << "LabelFontSize: " << this->LabelFontSize << "\n";
}
