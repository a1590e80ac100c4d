#include "ColorBars.h"

#include "ColorMaps.h"
#include "Coloring.h"
#include "ProxyValues.h"
#include "ViewTexts.h"
#include "vtkDiagramView.h"

#include <vtkBoundingBox.h>
#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkMath.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVGeneralSettings.h>
#include <vtkRenderWindow.h>
#include <vtkSMProperty.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMTransferFunctionProxy.h>
#include <vtkVector.h>

#if __has_include(<vtkVectorOperators.h>) // in VTK 9.6 part of vtkVector.h
#include <vtkVectorOperators.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

bool IsBar(vtkSMProxy* proxy)
{
  return proxy->GetProperty("ScalarBarThickness") != nullptr;
}

bool IsData(vtkSMProxy* proxy)
{
  return proxy->GetProperty("ColorArrayName") != nullptr;
}

/// Whether a bar or legend explains the colors of a representation.
bool IsExplained(const Coloring& coloring)
{
  return !coloring.ShowsColors() || coloring.HasLegend() || coloring.ShowsClasses();
}

/// A representation of our data that a bar explains; null if there is none.
vtkSMProxy* OurDataOf(vtkSMProxy* bar)
{
  vtkSMProxy* table = TableOf(bar);
  const auto all = ProxiesOf(bar->GetSessionProxyManager(), "representations");
  const auto found = std::find_if(all.begin(), all.end(), [table](vtkSMProxy* data)
    { return IsData(data) && TableOf(data) == table && Coloring(data).ours; });
  return table != nullptr && found != all.end() ? *found : nullptr;
}

/// Whether what is visible in a view has data with these colors that meet a condition.
template<class Condition>
bool IsUsed(vtkSMProxy* table, vtkSMViewProxy* view, const Condition& condition)
{
  const std::vector<vtkSMProxy*> shown = VisibleIn(view);
  return std::any_of(shown.begin(), shown.end(),
    [&](vtkSMProxy* data) { return IsData(data) && TableOf(data) == table && condition(data); });
}

/// Hides a bar whenever it is shown.
class BarHider : public vtkCommand
{
public:
  static BarHider* New() { return new BarHider; }
  vtkTypeMacro(BarHider, vtkCommand);

  void Observe(vtkSMProxy* bar)
  {
    vtkSMProperty* visibility = bar->GetProperty("Visibility");
    visibility->AddObserver(vtkCommand::ModifiedEvent, this);
    this->Execute(visibility, vtkCommand::ModifiedEvent, nullptr);
    bar->UpdateVTKObjects();
  }

  void Execute(vtkObject* caller, unsigned long, void*) override
  {
    vtkSMPropertyHelper visibility(vtkSMProperty::SafeDownCast(caller));
    if (visibility.GetAsInt() != 0)
    {
      visibility.Set(0);
    }
  }
};

/// Letters are about half as wide as they are high.
constexpr double LetterWidth = 0.55;

/// The size of the letters of a bar, in points, near that of other texts of a view.
constexpr int BarFontSize = 12;

/// The letters of a number on a bar.
std::size_t LettersOf(double number)
{
  std::array<char, 32> text;
  return static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%#.3g", number));
}

/// How the ends of a bar are written: integers without decimals; other numbers as its labels are,
/// but from 100 on without the point with which these end. Spaces, which labels end with, hold the
/// title off.
std::string RangeFormat(vtkPVArrayInformation* array, const std::string& other)
{
  if (array == nullptr)
  {
    return other;
  }
  const bool isReal = array->GetDataType() == VTK_FLOAT || array->GetDataType() == VTK_DOUBLE;
  const double* range = array->GetComponentRange(0);
  constexpr double ThreeDigits = 99.95;                    // rounded
  const bool isNew = other.find('{') != std::string::npos; // of std::format: ParaView 6.1
  if (!isReal)
  {
    return isNew ? "{:<.10g}  " : "%-.10g  ";
  }
  if (std::max(std::abs(range[0]), std::abs(range[1])) >= ThreeDigits)
  {
    return isNew ? "{:<.3g}  " : "%-.3g  ";
  }
  return other;
}

/// How wide a bar is in pixels.
double WidthOf(vtkSMProxy* bar)
{
  vtkSMProxy* table = TableOf(bar);
  std::size_t letters = 1;
  if (Number(table, "IndexedLookup") != 0)
  {
    const std::vector<std::string> names = TextsOf({ table, "Annotations" });
    for (std::size_t i = 1; i < names.size(); i += 2)
    {
      letters = std::max(letters, names[i].size());
    }
  }
  else
  {
    vtkSMPropertyHelper points(table, "RGBPoints"); // a value and its color by turns
    const unsigned int count = points.GetNumberOfElements() / 4;
    for (unsigned int i = 0; i < count; i += std::max(count - 1, 1U))
    {
      letters = std::max(letters, LettersOf(points.GetAsDouble(4 * i)));
    }
  }
  constexpr double Gaps = 16; // to the border, and between bar, numbers and title
  return Gaps + Number(bar, "ScalarBarThickness") + 2. * Number(bar, "TitleFontSize") +
         LetterWidth * static_cast<double>(letters) * Number(bar, "LabelFontSize");
}

/// The background of a view that may not have been rendered yet, its own or that of the palette.
std::vector<double> BackOf(vtkSMViewProxy* view)
{
  vtkSMProxy* palette = view->GetSessionProxyManager()->GetProxy("settings", "ColorPalette");
  return palette != nullptr && Number(view, "UseColorPaletteForBackground") != 0
           ? vtkSMPropertyHelper(palette, "BackgroundColor").GetDoubleArray()
           : vtkSMPropertyHelper(view, "Background").GetDoubleArray();
}

/// Whether a legend has a color that is hardly seen in a view.
bool HasHiddenColor(vtkSMProxy* bar, vtkSMViewProxy* view)
{
  constexpr double Contrast = 0.1;
  vtkSMProxy* table = TableOf(bar);
  if (table == nullptr || Number(table, "IndexedLookup") == 0)
  {
    return false;
  }
  const std::vector<double> back = BackOf(view);
  const std::vector<double> colors = vtkSMPropertyHelper(table, "IndexedColors").GetDoubleArray();
  for (std::size_t i = 0; i + 2 < colors.size(); i += 3)
  {
    double difference = 0;
    for (std::size_t channel = 0; channel < 3; ++channel)
    {
      difference = std::max(difference, std::abs(colors[i + channel] - back[channel]));
    }
    if (difference < Contrast)
    {
      return true;
    }
  }
  return false;
}

/// The annotation of a bar that remembers the ground that it has from us.
constexpr const char* GroundAnnotation = "AtlasGround";

/// What a bar lies on: a color, or nothing.
std::string GroundOf(vtkSMProxy* bar)
{
  std::ostringstream ground;
  for (const double channel : vtkSMPropertyHelper(bar, "BackgroundColor").GetDoubleArray())
  {
    ground << channel << " ";
  }
  return Number(bar, "DrawBackground") != 0 ? ground.str() : "none";
}

/// Lays a legend of our data on a gray ground if it has a color like the background, since swatches
/// have no outlines; no longer if it has none. A ground that the user has set or taken away
/// remains.
void SetGround(vtkSMProxy* bar, vtkSMViewProxy* view)
{
  const char* known = bar->GetAnnotation(GroundAnnotation);
  if (view == nullptr || view->GetProperty("Background") == nullptr || OurDataOf(bar) == nullptr ||
      GroundOf(bar) != (known != nullptr ? known : "none"))
  {
    return;
  }
  const bool isHidden = HasHiddenColor(bar, view);
  if (isHidden)
  {
    const double back = Lightness(BackOf(view).data());
    const double gray = back > 0.5 ? back - 0.12 : back + 0.2;
    const std::array<double, 4> opaque = { gray, gray, gray, 1 }; // else it dims the swatches
    vtkSMPropertyHelper(bar, "BackgroundColor").Set(opaque.data(), 4);
  }
  vtkSMPropertyHelper(bar, "DrawBackground").Set(isHidden ? 1 : 0);
  const std::string ground = GroundOf(bar);
  if (known == nullptr || ground != known)
  {
    bar->SetAnnotation(GroundAnnotation, ground.c_str());
  }
}

/// How many entries a legend has; 0 if it is a scale.
std::size_t EntriesOf(vtkSMProxy* bar)
{
  return vtkSMPropertyHelper(TableOf(bar), "Annotations").GetNumberOfElements() / 2;
}

/// The length of a legend: a line for each entry, in a view of usual height. More would be taken
/// from the data.
double LengthOf(std::size_t entries)
{
  return std::clamp(0.055 * static_cast<double>(entries), 0.11, 0.9);
}

/// How high a bar is as a share of its view, whose height is given in pixels.
double HeightOf(vtkSMProxy* bar, double height)
{
  const std::string title = vtkSMPropertyHelper(bar, "Title").GetAsString();
  return std::max(vtkSMPropertyHelper(bar, "ScalarBarLength").GetAsDouble(),
    LetterWidth * static_cast<double>(title.size()) * Number(bar, "TitleFontSize") / height);
}

/// Whether a bar is in a corner, whose name may be given by its end, and the user has not moved it.
bool IsIn(vtkSMProxy* bar, const char* corner)
{
  return EndsWith(TextOf({ bar, "WindowLocation", true }), corner);
}

/// The labelled axes of a representation; null if it has none.
vtkSMProxy* AxesOf(vtkSMProxy* representation)
{
  vtkSMProxy* axes = representation->GetProperty("DataAxesGrid") != nullptr
                       ? vtkSMPropertyHelper(representation, "DataAxesGrid").GetAsProxy()
                       : nullptr;
  return axes != nullptr && Number(axes, "GridAxesVisibility") != 0 ? axes : nullptr;
}

/// Whether a representation has texts beside its points whose size is that of a font.
bool HasTexts(vtkSMProxy* representation)
{
  return TextOf({ representation, "Representation", true }) == "Token Labels" &&
         vtkSMPropertyHelper(representation, "LabelHeight").GetAsDouble() == 0 &&
         ShownData(representation)->GetNumberOfPoints() > 0;
}

/// Shares of a view that data must leave free.
struct Margins
{
  double left;
  double right;
  double bottom;
  double top;
};

/// Margins that leave a part of a small view to data: each has half of the rest, and what the other
/// one does not need of its half.
Margins LeavingSome(const Margins& wanted)
{
  constexpr double Most = 0.85;
  const auto given = [](double margin, double other)
  { return std::min(margin, std::max(Most - other, Most / 2)); };
  return { given(wanted.left, wanted.right), given(wanted.right, wanted.left),
    given(wanted.bottom, wanted.top), given(wanted.top, wanted.bottom) };
}

/// The margins around our data: beside their color bars and, if all of these are in the lower right
/// corner, above them. None without bars and axes, unless the view is a diagram, or shows flat
/// data, below a title.
std::vector<Margins> RoomsFor(const std::vector<vtkSMProxy*>& shown, double width, double height,
  vtkDiagramView* diagram, bool hasTitle)
{
  const bool isDiagram = diagram != nullptr;
  const vtkDiagramView::Room texts = isDiagram ? diagram->GetTextRoom() : vtkDiagramView::Room();
  constexpr double Gap = 8;        // in pixels, as the others; beside points that are dots
  constexpr double AxisRoom = 92;  // title, numbers and ticks
  constexpr double WideRoom = 110; // likewise, beside each other
  constexpr double TextRoom = 52;
  constexpr double TextHeight = 20;
  constexpr double TitleRoom = 26; // of a render view
  constexpr double LabelRoom = 24; // half of a short text, in the middle above its point
  double bars = 0;
  double tallest = 0;
  double left = 0;
  double top = 0;
  double dot = 0; // the radius of the largest
  bool isLow = true;
  for (vtkSMProxy* data : shown)
  {
    if (!IsData(data) || !Coloring(data).ours)
    {
      continue;
    }
    left = std::max(left, AxesOf(data) != nullptr ? WideRoom : HasTexts(data) ? TextRoom : 0);
    top = HasTexts(data) ? TextHeight : top;
    constexpr int DefaultSize = 2; // also of what is no points
    const int size = Number(data, "PointSize");
    dot = size > DefaultSize ? std::max(dot, size / 2.) : dot;
    for (vtkSMProxy* bar : shown)
    {
      const bool isOfData = IsBar(bar) && TableOf(bar) == TableOf(data);
      if (isOfData && IsIn(bar, "Right Corner"))
      {
        bars = std::max(bars, WidthOf(bar));
        tallest = std::max(tallest, HeightOf(bar, height));
        isLow = isLow && IsIn(bar, "Lower Right Corner");
      }
    }
  }
  const double bottom = left == WideRoom ? AxisRoom : 0;
  top = std::max(top, hasTitle ? TitleRoom : 0);
  if (bars == 0 && bottom == 0 && !isDiagram && !hasTitle)
  {
    return {};
  }
  if (isDiagram)
  {
    top = std::max(top, texts.top) + diagram->GetTitleHeight();
    left = std::max({ left, LabelRoom, texts.left });
  }
  const double right = std::max(isDiagram ? LabelRoom : 0, texts.right + bars);
  const double under = std::max({ bottom, isDiagram ? TextHeight : 0, texts.bottom });
  const auto share = [dot](double room, double side) { return (room + Gap + dot) / side; };
  std::vector<Margins> rooms = { LeavingSome(
    { share(left, width), share(right, width), share(under, height), share(top, height) }) };
  if (isLow && bottom == 0)
  {
    rooms.push_back(LeavingSome({ share(left, width), share(isDiagram ? LabelRoom : 0, width),
      tallest + share(std::max(Gap, under), height), share(top, height) }));
  }
  return rooms;
}

/// Half of what data takes in the directions of a camera, from its middle.
struct Extent
{
  double across;
  double up;
  bool isFlat; ///< as seen by the camera
};

/// What the camera, which was just reset, looks at: a box around its focal point with a diagonal
/// that is known from its scale, and that holds the bounds of the data. It is larger than these by
/// the room of texts beside them. All 0 if it is smaller: the user has zoomed to a part.
Extent ExtentOf(const std::vector<vtkSMProxy*>& shown, vtkCamera* camera, double aspect)
{
  const double radius = camera->GetParallelScale() * std::min(1., aspect);
  vtkBoundingBox box;
  vtkBoundingBox drawn; // with the balls or discs around points
  for (vtkSMProxy* data : shown)
  {
    if (IsData(data))
    {
      const std::string type = TextOf({ data, "Representation", true });
      const bool isBalls = type == "Point Gaussian" || type == "Collected Discs";
      vtkBoundingBox own(ShownData(data)->GetBounds());
      box.AddBox(own);
      own.Inflate(isBalls ? vtkSMPropertyHelper(data, "GaussianRadius").GetAsDouble() : 0);
      drawn.AddBox(own);
    }
  }
  if (box.IsValid() && 2 * radius < 0.99 * box.GetDiagonalLength())
  {
    return {};
  }
  const double* direction = camera->GetDirectionOfProjection();
  const bool looksDown = std::abs(direction[2]) > 0.999 && std::abs(camera->GetViewUp()[1]) > 0.999;
  if (!box.IsValid() || !looksDown || box.GetLength(2) > 0.15 * box.GetMaxLength())
  {
    return { radius, radius, false };
  }
  const double w = box.GetLength(0);
  double h = box.GetLength(1);
  // Room on one side moves the middle by half of it. Panels with titles at their left have room for
  // labels below them only.
  std::array<double, 3> middle;
  box.GetCenter(middle.data());
  const double* focus = camera->GetFocalPoint();
  const double below = 2 * (middle[1] - focus[1] - std::max(middle[0] - focus[0], 0.));
  if (below > 0.01 * h)
  {
    h += below;
  }
  // Otherwise both sides grow by the same length r: (w + r)^2 + (h + r)^2 = (2 radius)^2.
  const double under = 8 * radius * radius - (w - h) * (w - h);
  const double grown = std::max(0., (std::sqrt(std::max(0., under)) - w - h) / 2);
  // The box holds the data on the side where there is least room, too.
  return { std::max((w + grown) / 2, drawn.GetLength(0) / 2 + std::abs(middle[0] - focus[0])),
    std::max((h + grown) / 2, drawn.GetLength(1) / 2 + std::abs(middle[1] - focus[1])), true };
}

}

bool AreBarsByHand()
{
  return vtkPVGeneralSettings::GetInstance()->GetScalarBarMode() ==
         vtkPVGeneralSettings::MANUAL_SCALAR_BARS;
}

void SetInk(vtkSMProxy* proxy, vtkSMViewProxy* view)
{
  vtkSMProxy* data = IsBar(proxy) ? OurDataOf(proxy) : proxy;
  vtkSMProxy* target = IsBar(proxy) ? proxy : AxesOf(proxy);
  const bool isOurs =
    data != nullptr && (RepresentationHint(data) != nullptr || Coloring(data).ours);
  if (target == nullptr || !isOurs ||
      view->GetProperty("UseColorPaletteForBackground") == nullptr ||
      Number(view, "UseColorPaletteForBackground") != 0)
  {
    return;
  }
  const std::vector<double> back = vtkSMPropertyHelper(view, "Background").GetDoubleArray();
  const std::vector<double> ink(3, InkOn(back.data()));
  for (const char* name : { "TitleColor", "LabelColor", "GridColor", "XTitleColor", "YTitleColor",
         "XLabelColor", "YLabelColor" })
  {
    if (target->GetProperty(name) != nullptr)
    {
      vtkSMPropertyHelper(target, name).Set(ink.data(), 3);
    }
  }
  target->UpdateVTKObjects();
}

void FitBar(vtkSMProxy* bar, vtkSMViewProxy* view)
{
  const bool isInDiagram = vtkDiagramView::SafeDownCast(view->GetClientSideObject()) != nullptr;
  if (!IsBar(bar) || (!isInDiagram && OurDataOf(bar) == nullptr))
  {
    return;
  }
  for (const char* name : { "TitleFontSize", "LabelFontSize" })
  {
    vtkSMPropertyHelper(bar, name).Set(BarFontSize);
  }
  SetGround(bar, view);
  bar->UpdateVTKObjects();
}

void FitBars(vtkSMProxy* table, std::size_t before)
{
  for (vtkSMProxy* bar : ProxiesOf(table->GetSessionProxyManager(), "scalar_bars"))
  {
    if (TableOf(bar) == table)
    {
      vtkSMPropertyHelper length(bar, "ScalarBarLength");
      if (before > 0 && length.GetAsDouble() == LengthOf(before))
      {
        length.Set(LengthOf(EntriesOf(bar)));
      }
      SetGround(bar, vtkSMViewProxy::FindView(bar));
      bar->UpdateVTKObjects();
    }
  }
}

void ShowBar(vtkSMProxy* representation, vtkSMViewProxy* view)
{
  const Coloring coloring(representation);
  vtkSMProxy* table = TableOf(representation);
  if (!coloring.IsKnown() || !IsExplained(coloring) || table == nullptr || AreBarsByHand())
  {
    return;
  }
  if (vtkSMTransferFunctionProxy::FindScalarBarRepresentation(table, view) == nullptr ||
      !IsUsed(table, view, [&](vtkSMProxy* other) { return other != representation; }))
  {
    ColorMaps::SetScalarBarVisibility(representation, view, true);
  }
}

bool HideLegend(vtkSMProxy* representation, vtkSMViewProxy* view)
{
  vtkSMProxy* table = TableOf(representation);
  vtkSMProxy* bar = table != nullptr
                      ? vtkSMTransferFunctionProxy::FindScalarBarRepresentation(table, view)
                      : nullptr;
  if (bar == nullptr || Number(bar, "Visibility") == 0 ||
      IsUsed(table, view, [](vtkSMProxy* other) { return Coloring(other).HasLegend(); }))
  {
    return false;
  }
  ColorMaps::SetScalarBarVisibility(representation, view, false);
  return true;
}

void ShowLegend(vtkSMProxy* representation, vtkSMViewProxy* view, bool wasHidden)
{
  vtkSMProxy* table = TableOf(representation);
  if (wasHidden)
  {
    ColorMaps::SetScalarBarVisibility(representation, view, true);
  }
  else if (table != nullptr &&
           vtkSMTransferFunctionProxy::FindScalarBarRepresentation(table, view) == nullptr)
  {
    ShowBar(representation, view);
  }
}

void CompleteBar(vtkSMProxy* bar)
{
  vtkSMProxy* data = OurDataOf(bar);
  if (data == nullptr)
  {
    return;
  }
  const Coloring coloring(data);
  if (!IsExplained(coloring))
  {
    vtkNew<BarHider> hider; // kept alive by the observed property
    hider->Observe(bar);
    return;
  }
  const std::string title = coloring.Title();
  if (!title.empty())
  {
    vtkSMPropertyHelper(bar, "Title").Set(title.c_str());
    vtkSMPropertyHelper(bar, "ComponentTitle").Set("");
  }
  if (EntriesOf(bar) > 0)
  {
    vtkSMPropertyHelper(bar, "ScalarBarLength").Set(LengthOf(EntriesOf(bar)));
  }
  // Whose default shows 0 as 0.0e+00.
  vtkSMPropertyHelper(bar, "RangeLabelFormat")
    .Set(RangeFormat(coloring.arrayInformation, TextOf({ bar, "LabelFormat" })).c_str());
  bar->UpdateVTKObjects();
}

double RoomBesideTitle(vtkSMViewProxy* view)
{
  double room = 0;
  for (vtkSMProxy* shown : VisibleIn(view))
  {
    if (IsBar(shown) && TableOf(shown) != nullptr && IsIn(shown, "Upper Right Corner"))
    {
      room = std::max(room, WidthOf(shown));
    }
  }
  return room;
}

void MakeRoom(vtkSMViewProxy* view)
{
  auto* renderView = vtkSMRenderViewProxy::SafeDownCast(view);
  const std::vector<vtkSMProxy*> shown = VisibleIn(view);
  vtkSMPropertyHelper size(view, "ViewSize");
  const double letters = renderView->GetRenderWindow()->GetDPI() / 72.;
  const double width = size.GetAsDouble(0) / letters;
  const double height = size.GetAsDouble(1) / letters;
  auto* diagram = vtkDiagramView::SafeDownCast(renderView->GetClientSideObject());
  const bool hasTitle = view->GetProperty("ShowTitle") != nullptr && Number(view, "ShowTitle") != 0;
  vtkCamera* camera = renderView->GetActiveCamera();
  const double aspect = width / height;
  vtkVector3d focus;
  camera->GetFocalPoint(focus.GetData());
  Extent data;
  if (diagram != nullptr)
  {
    const std::array<double, 6> bounds = diagram->GetDataBounds();
    data = { (bounds[1] - bounds[0]) / 2, (bounds[3] - bounds[2]) / 2, true };
    focus.SetX((bounds[0] + bounds[1]) / 2);
    focus.SetY((bounds[2] + bounds[3]) / 2);
  }
  else
  {
    data = ExtentOf(shown, camera, aspect);
  }
  const std::vector<Margins> rooms =
    RoomsFor(shown, width, height, diagram, hasTitle && data.isFlat && diagram == nullptr);
  if (data.up == 0 || rooms.empty() || width <= 0 || height <= 0)
  {
    return;
  }

  // Half the height of what the view shows around the focal point.
  const double tangent = std::tan(vtkMath::RadiansFromDegrees(camera->GetViewAngle() / 2));
  const bool isParallel = camera->GetParallelProjection() != 0;
  const double old = isParallel ? camera->GetParallelScale() : camera->GetDistance() * tangent;
  const auto fits = [&](const Margins& room)
  {
    return std::max(
      data.up / (1 - room.bottom - room.top), data.across / aspect / (1 - room.left - room.right));
  };
  const auto [least, most] =
    diagram != nullptr ? diagram->GetScales() : std::array<double, 2>{ 0, 0 };
  const double largest = least > 0 ? height / 2 / least : std::numeric_limits<double>::infinity();
  const Margins& fitted = *std::min_element(rooms.begin(), rooms.end(),
    [&](const Margins& a, const Margins& b) { return fits(a) < fits(b); });
  // What is too large in any case has most rows beside its bars.
  const Margins& room = fits(fitted) > largest ? rooms.front() : fitted;
  double half = std::max(fits(room), data.isFlat ? 0 : old);
  if (diagram != nullptr)
  {
    half = std::min(std::max(half, most > 0 ? height / 2 / most : 0), largest);
    if (Number(view, "FitToData") != 0)
    {
      diagram->SetMargins(vtkDiagramView::Room{
        room.left * width, room.right * width, room.bottom * height, room.top * height });
    }
  }
  // The middle of the data, in halves of the view: as near to that of the view as the room allows,
  // which shows the upper left of what is too large.
  const double across = data.across / half / aspect;
  const double up = data.up / half;
  const double x = std::max(-1 + 2 * room.left + across, std::min(1 - 2 * room.right - across, 0.));
  const double y = std::min(1 - 2 * room.top - up, std::max(-1 + 2 * room.bottom + up, 0.));

  vtkVector3d back;
  camera->GetDirectionOfProjection(back.GetData());
  back = -1. * back;
  vtkVector3d upwards;
  camera->GetViewUp(upwards.GetData());
  const vtkVector3d right = upwards.Cross(back).Normalized();
  const vtkVector3d above = back.Cross(right);
  focus = focus - (x * half * aspect) * right - (y * half) * above;
  const double distance = isParallel ? camera->GetDistance() : half / tangent;
  camera->SetFocalPoint(focus.GetData());
  camera->SetPosition((focus + distance * back).GetData());
  if (isParallel)
  {
    camera->SetParallelScale(half);
  }
}

}
