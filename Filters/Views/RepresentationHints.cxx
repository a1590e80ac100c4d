#include "RepresentationHints.h"

#include "ColorBars.h"
#include "ColorMaps.h"
#include "Coloring.h"
#include "Drawing/ClassPalette.h"
#include "ProxyValues.h"

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVDataSetAttributesInformation.h>
#include <vtkPVSession.h>
#include <vtkPVXMLElement.h>
#include <vtkSMProperty.h>
#include <vtkSMSession.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMViewProxy.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// Colors a representation by the first point or cell array with this name or, if `suffix`, a name
/// with this ending. Does nothing if there is none.
void ColorBy(vtkSMProxy* representation, const std::string& name, bool suffix)
{
  if (representation->GetProperty("ColorArrayName") == nullptr) // a chart or a spreadsheet
  {
    return;
  }
  for (const int association : { vtkDataObject::POINT, vtkDataObject::CELL })
  {
    auto* arrays = ShownData(representation)->GetAttributeInformation(association);
    for (int i = 0; arrays != nullptr && i < arrays->GetNumberOfArrays(); ++i)
    {
      const std::string found = arrays->GetArrayInformation(i)->GetName();
      if (suffix ? EndsWith(found, name) : found == name)
      {
        vtkSMPropertyHelper(representation, "ColorArrayName")
          .SetInputArrayToProcess(association, found.c_str());
        return;
      }
    }
  }
}

/// Sets a property of a representation, if it exists, from the attributes `values` or `text`.
void SetProperty(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const char* name = element->GetAttributeOrEmpty("name");
  if (representation->GetProperty(name) == nullptr)
  {
    return;
  }
  vtkSMPropertyHelper property(representation, name);
  if (const char* text = element->GetAttribute("text"))
  {
    property.Set(text);
  }
  std::array<double, 3> values;
  const int count = element->GetVectorAttribute("values", 3, values.data());
  // One by one, since integer properties do not accept an array of doubles.
  for (int c = 0; c < count; ++c)
  {
    property.Set(static_cast<unsigned int>(c), values.at(c));
  }
}

/// Whether several ranks render.
bool HasManyRanks(vtkSMProxy* representation)
{
  return representation->GetSession()->GetNumberOfProcesses(vtkPVSession::RENDER_SERVER) > 1;
}

/// Changes the type of a representation if several ranks render.
void ReplaceOnRanks(vtkSMProxy* representation, const std::string& type, const char* other)
{
  vtkSMPropertyHelper shown(representation, "Representation", true);
  if (TextOf(shown) == type && HasManyRanks(representation))
  {
    shown.Set(other);
  }
}

/// A disc in the color of the point with a white and a black rim, which is visible on any color. It
/// is drawn a fiftieth of the scene's depth in front of its point, so that a surface through the
/// point does not cut it.
constexpr const char* DiscShader = R"(//VTK::Color::Impl
float radius = length(offsetVCVSOutput.xy);
if (radius > 1.0) { discard; }
if (radius > 0.62) { diffuseColor = vec3(0.0); ambientColor = radius > 0.82 ? vec3(0.0) : vec3(1.0); }
else { ambientColor = diffuseColor; diffuseColor = vec3(0.0); }
gl_FragDepth = max(0.0, gl_FragCoord.z - 0.02);
)";

/// The faces of a box whose edges at the left and at the bottom have labels.
constexpr int LowerAxes = 3;

/// Shows points as discs if the data has the point array named in the attribute `array`, which
/// contains their colors. `z` is the height to which they are raised, `radius` that of the discs
/// (default 0.1).
void ShowDiscs(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const char* array = element->GetAttribute("array");
  if (representation->GetProperty("CustomShader") == nullptr ||
      (array != nullptr &&
        ShownData(representation)->GetArrayInformation(array, vtkDataObject::POINT) == nullptr))
  {
    return;
  }
  if (array != nullptr)
  {
    ColorBy(representation, array, false);
  }
  double radius = 0.1;
  element->GetScalarAttribute("radius", &radius);
  double z = 0;
  element->GetScalarAttribute("z", &z);
  vtkSMPropertyHelper(representation, "Representation")
    .Set(HasManyRanks(representation) ? "Collected Discs" : "Point Gaussian");
  vtkSMPropertyHelper(representation, "GaussianRadius").Set(radius);
  const bool isMoved = representation->GetProperty("Translation") != nullptr; // ParaView 5.13
  vtkSMPropertyHelper(representation, isMoved ? "Translation" : "Position").Set(2, z);
  vtkSMPropertyHelper(representation, "ShaderPreset").Set("Custom");
  vtkSMPropertyHelper(representation, "CustomShader").Set(DiscShader);
  // Selected points are drawn as squares behind the discs, large enough to be visible around them.
  vtkSMPropertyHelper(representation, "SelectionPointSize", true).Set(26);
}

/// Gives a series of a chart the values of a property that lists each series with its values.
void SetSeries(vtkSMProxy* chart, const char* property, const std::string& series,
  const std::vector<std::string>& values)
{
  vtkSMPropertyHelper listed(chart, property, true);
  const auto count = static_cast<unsigned int>(values.size());
  for (unsigned int i = 0; i + count < listed.GetNumberOfElements(); i += count + 1)
  {
    for (unsigned int c = 0; listed.GetAsString(i) == series && c < count; ++c)
    {
      listed.Set(i + 1 + c, values[c].c_str());
    }
  }
}

/// Whether a column of a chart is 0 everywhere.
bool IsZero(vtkSMProxy* chart, const std::string& column)
{
  vtkPVArrayInformation* array =
    AttentionAtlas::ShownData(chart)->GetArrayInformation(column.c_str(), vtkDataObject::ROW);
  const double* range = array != nullptr ? array->GetComponentRange(0) : nullptr;
  return range != nullptr && range[0] == 0 && range[1] == 0;
}

/// ParaView's styles of lines: solid, dashed, dashed and dotted in two ways, the first of these
/// again. Dots alone are hardly seen.
constexpr std::array<const char*, 5> LineStyles = { "1", "2", "4", "5", "4" };

/// Shows the series of a chart in the attribute `names` and no others, in the colors of classes and
/// with points of a good size, or all others and not these. With the attribute `zeros` of 0, those
/// that are 0 everywhere, as what a model does not have, are hidden.
void ChooseSeries(vtkSMProxy* chart, vtkPVXMLElement* element, bool shown)
{
  if (chart->GetProperty("SeriesVisibility") == nullptr)
  {
    return;
  }
  const std::vector<std::string> names = NamesIn(element->GetAttributeOrEmpty("names"));
  int zeros = 1;
  element->GetScalarAttribute("zeros", &zeros);
  vtkSMPropertyHelper visibility(chart, "SeriesVisibility");
  int colors = 0;
  for (unsigned int i = 0; i + 1 < visibility.GetNumberOfElements(); i += 2)
  {
    const std::string series = visibility.GetAsString(i);
    const bool isNamed = std::any_of(names.begin(), names.end(),
      [&series](const std::string& name) { return IsNamed(series, name); });
    const bool isShown = isNamed == shown && (zeros != 0 || !IsZero(chart, series));
    visibility.Set(i + 1, isShown ? "1" : "0");
    if (isShown)
    {
      std::vector<std::string> color;
      for (const std::uint8_t channel : atlas::ClassColor(colors++))
      {
        color.push_back(std::to_string(channel / 255.));
      }
      if (chart->GetXMLName() == std::string("XYChartRepresentation"))
      {
        // Lines that lie on each other are told apart by their gaps.
        SetSeries(
          chart, "SeriesLineStyle", series, { LineStyles.at((colors - 1) % LineStyles.size()) });
      }
      SetSeries(chart, "SeriesColor", series, color);
    }
    if (chart->GetXMLName() == std::string("XYPointChartRepresentation"))
    {
      SetSeries(chart, "SeriesMarkerStyle", series, { "4" }); // circles
      SetSeries(chart, "SeriesMarkerSize", series, { "6" });
    }
  }
}

/// Labels the axes of flat data by the attributes `x` and `y`.
void ShowAxes(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  if (representation->GetProperty("DataAxesGrid") == nullptr || AreBarsByHand())
  {
    return;
  }
  vtkSMProxy* axes = vtkSMPropertyHelper(representation, "DataAxesGrid").GetAsProxy();
  vtkSMPropertyHelper(axes, "GridAxesVisibility").Set(1);
  vtkSMPropertyHelper(axes, "ShowGrid").Set(0);
  vtkSMPropertyHelper(axes, "AxesToLabel").Set(LowerAxes);
  vtkSMPropertyHelper(axes, "XTitle").Set(element->GetAttributeOrEmpty("x"));
  vtkSMPropertyHelper(axes, "YTitle").Set(element->GetAttributeOrEmpty("y"));
  axes->UpdateVTKObjects();
}

/// Applies one element of a hint.
void ApplyElement(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const std::string kind = element->GetName();
  if (kind == "ColorArray")
  {
    const char* suffix = element->GetAttribute("suffix");
    ColorBy(representation, suffix != nullptr ? suffix : element->GetAttributeOrEmpty("name"),
      suffix != nullptr);
  }
  else if (kind == "Discs")
  {
    ShowDiscs(representation, element);
  }
  else if (kind == "HiddenSeries" || kind == "ShownSeries")
  {
    ChooseSeries(representation, element, kind == "ShownSeries");
  }
  else if (kind == "Axes")
  {
    ShowAxes(representation, element);
  }
  else if (kind == "Property")
  {
    SetProperty(representation, element);
  }
}

/// The array that takes the place of the one that colors a representation, on points or on cells,
/// if that no longer exists; otherwise null.
const char* Successor(vtkSMProxy* representation, vtkPVXMLElement* follow)
{
  const vtkSMPropertyHelper coloring(representation, "ColorArrayName", true);
  vtkPVDataSetAttributesInformation* arrays =
    ShownData(representation)->GetAttributeInformation(coloring.GetInputArrayAssociation());
  const char* name = coloring.GetInputArrayNameToProcess();
  if (name == nullptr || *name == '\0' || arrays == nullptr || arrays->GetNumberOfArrays() == 0 ||
      arrays->GetArrayInformation(name) != nullptr)
  {
    return nullptr;
  }
  for (const std::string& candidate : NamesIn(follow->GetAttributeOrEmpty("names")))
  {
    if (auto* array = arrays->GetArrayInformation(candidate.c_str()))
    {
      return array->GetName();
    }
  }
  return arrays->GetArrayInformation(0)->GetName();
}

}

void Recolor(vtkSMProxy* representation, const char* array)
{
  vtkSMProxy* view = vtkSMViewProxy::FindView(representation);
  const vtkSmartPointer<vtkSMProxy> table = TableOf(representation);
  const bool hasBar = view != nullptr && ColorMaps::IsScalarBarVisible(representation, view);
  const int association =
    vtkSMPropertyHelper(representation, "ColorArrayName", true).GetInputArrayAssociation();
  ColorMaps::SetScalarColoring(representation, array, association);
  if (hasBar)
  {
    vtkNew<vtkSMTransferFunctionManager> tables;
    tables->HideScalarBarIfNotNeeded(table, view);
    ColorMaps::SetScalarBarVisibility(representation, view, true);
  }
}

void UseOpaqueSurface(vtkSMProxy* representation)
{
  ReplaceOnRanks(representation, "Surface", "Opaque Surface");
}

void ApplyHints(vtkSMProxy* representation)
{
  for (vtkPVXMLElement* element : HintElements(representation))
  {
    ApplyElement(representation, element);
  }
  if (RepresentationHint(representation) != nullptr)
  {
    // Textures, which are fast, would leave seams between the parts of several ranks.
    ReplaceOnRanks(representation, "Slice", "Surface");
  }
  representation->UpdateVTKObjects();
}

void FollowArray(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  vtkPVXMLElement* follow =
    hint != nullptr ? hint->FindNestedElementByName("FollowArray") : nullptr;
  const char* array = follow != nullptr ? Successor(representation, follow) : nullptr;
  if (array != nullptr)
  {
    Recolor(representation, array);
  }
}

}
