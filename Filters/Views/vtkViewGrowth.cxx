#include "vtkViewGrowth.h"

#include <vtkActor.h>
#include <vtkBoundingBox.h>
#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkMath.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPVGridAxes3DActor.h>
#include <vtkPVRenderView.h>
#include <vtkProp.h>
#include <vtkPropCollection.h>
#include <vtkProperty.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkTextProperty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace
{

constexpr double PointsPerInch = 72;

/// What else a renderer shows, as far as its bounds are concerned: without them several ranks that
/// render together cut off what is outside of the bounds of all points, halves of those at the
/// border too.
class Surroundings : public vtkProp
{
public:
  static Surroundings* New() { return new Surroundings; }
  vtkTypeMacro(Surroundings, vtkProp);

  double* GetBounds() override
  {
    if (!this->Box.IsValid())
    {
      return nullptr;
    }
    this->Box.GetBounds(this->Bounds.data());
    return this->Bounds.data();
  }

  /// While it renders: a box with this many pixels around the data.
  void Surround(vtkRenderer* renderer, double pixels)
  {
    this->Box.Reset();
    this->Box.SetBounds(renderer->ComputeVisiblePropBounds());
    if (!this->Box.IsValid())
    {
      return;
    }
    vtkCamera* camera = renderer->GetActiveCamera();
    std::array<double, 3> middle;
    this->Box.GetCenter(middle.data());
    const double farthest =
      std::sqrt(vtkMath::Distance2BetweenPoints(middle.data(), camera->GetPosition())) +
      this->Box.GetDiagonalLength() / 2;
    const double half =
      camera->GetParallelProjection() != 0
        ? camera->GetParallelScale()
        : farthest * std::tan(vtkMath::RadiansFromDegrees(camera->GetViewAngle() / 2));
    this->Box.Inflate(pixels * 2 * half / std::max(renderer->GetSize()[1], 1));
  }
  void Reset() { this->Box.Reset(); }

  /// Only while it renders; what exports a view does not meet it.
  vtkTypeBool GetVisibility() override { return this->Box.IsValid(); }

private:
  vtkBoundingBox Box;
  std::array<double, 6> Bounds = {};
};

/// Enlarges what is in a renderer while it renders. What is enlarged is kept: properties that are
/// other ones with each rendering would let VTK build all buffers anew.
class Growth : public vtkCommand
{
public:
  static Growth* New() { return new Growth; }
  vtkTypeMacro(Growth, vtkCommand);

  void Execute(vtkObject* caller, unsigned long event, void*) override
  {
    for (const auto& [actor, property] : std::exchange(this->Shown, {}))
    {
      actor->SetProperty(property);
    }
    for (const auto& [style, size] : std::exchange(this->OfTexts, {}))
    {
      style->SetFontSize(size);
    }
    this->Around->Reset();
    if (event == vtkCommand::StartEvent)
    {
      this->Enlarge(static_cast<vtkRenderer*>(caller));
    }
  }

  std::shared_ptr<bool> IsOn;
  vtkNew<Surroundings> Around; ///< which is in the renderer

private:
  /// A copy of a property with larger points and lines.
  struct Larger
  {
    vtkSmartPointer<vtkProperty> property;
    vtkMTimeType time = 0; ///< of what it is a copy of
    double scale = 0;
  };
  using AllLarger = std::map<vtkSmartPointer<vtkProperty>, Larger>;

  void Enlarge(vtkRenderer* renderer)
  {
    AllLarger before = std::exchange(this->OfShapes, {}); // with those of actors that have gone
    vtkRenderWindow* window = renderer->GetRenderWindow();
    const int tiles = window->GetTileScale()[0];
    const double scale = window->GetDPI() / PointsPerInch * tiles;
    if (!*this->IsOn)
    {
      return;
    }
    float largest = 0;
    vtkCollectionSimpleIterator place;
    vtkPropCollection* all = renderer->GetViewProps();
    all->InitTraversal(place);
    while (vtkProp* prop = all->GetNextProp(place))
    {
      auto* actor = vtkActor::SafeDownCast(prop);
      if (actor != nullptr && actor->GetVisibility() != 0)
      {
        vtkProperty* property = actor->GetProperty();
        largest = std::max({ largest, property->GetPointSize(), property->GetLineWidth() });
        if (scale == 1)
        {
          continue;
        }
        const auto [entry, isNew] = this->OfShapes.try_emplace(property);
        if (isNew)
        {
          entry->second = Enlarged(property, before[property], scale);
        }
        this->Shown.emplace_back(actor, property);
        actor->SetProperty(entry->second.property);
      }
      auto* axes = vtkPVGridAxes3DActor::SafeDownCast(prop);
      for (int axis = 0; axes != nullptr && tiles != 1 && axis < 3; ++axis)
      {
        // Which grow with the pixels per inch themselves.
        for (vtkTextProperty* style :
          { axes->GetTitleTextProperty(axis), axes->GetLabelTextProperty(axis) })
        {
          if (this->OfTexts.try_emplace(style, style->GetFontSize()).second)
          {
            style->SetFontSize(tiles * style->GetFontSize());
          }
        }
      }
    }
    this->Around->Surround(renderer, largest * scale / 2);
  }

  static Larger Enlarged(vtkProperty* property, Larger larger, double scale)
  {
    if (larger.scale != scale || larger.time != property->GetMTime())
    {
      larger.property = vtkSmartPointer<vtkProperty>::New();
      larger.property->DeepCopy(property);
      larger.property->SetPointSize(static_cast<float>(scale * property->GetPointSize()));
      larger.property->SetLineWidth(static_cast<float>(scale * property->GetLineWidth()));
      larger.time = property->GetMTime();
      larger.scale = scale;
    }
    return larger;
  }

  AllLarger OfShapes;
  std::vector<std::pair<vtkSmartPointer<vtkActor>, vtkSmartPointer<vtkProperty>>> Shown;
  std::map<vtkSmartPointer<vtkTextProperty>, int> OfTexts;
};

}

vtkStandardNewMacro(vtkViewGrowth);

vtkViewGrowth::vtkViewGrowth()
  : IsOn(std::make_shared<bool>(false))
{
}

vtkViewGrowth::~vtkViewGrowth() = default;

void vtkViewGrowth::SetView(vtkPVRenderView* view)
{
  if (view == nullptr)
  {
    return;
  }
  vtkNew<Growth> growth; // kept alive by the renderer
  growth->IsOn = this->IsOn;
  view->GetRenderer()->AddViewProp(growth->Around);
  // After all that chooses sizes.
  view->GetRenderer()->AddObserver(vtkCommand::StartEvent, growth, -1);
  view->GetRenderer()->AddObserver(vtkCommand::EndEvent, growth);
}
