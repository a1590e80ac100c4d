#include "RepresentationHints.h"

#include "Coloring.h"
#include "ImageCharts.h"

#include <vtkDataObject.h>
#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVDataSetAttributesInformation.h>
#include <vtkPVSession.h>
#include <vtkPVXMLElement.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSession.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMViewProxy.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

// Since 5.13, ParaView has a class of its own for the colors of representations.
#if __has_include(<vtkSMColorMapEditorHelper.h>)
#include <vtkSMColorMapEditorHelper.h>
using ColorMaps = vtkSMColorMapEditorHelper;
#else
#include <vtkSMPVRepresentationProxy.h>
using ColorMaps = vtkSMPVRepresentationProxy;
#endif

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

/// The name of the property that moves a representation, which ParaView 5.13 changed.
const char* TranslationName(vtkSMProxy* representation)
{
  return representation->GetProperty("Translation") != nullptr ? "Translation" : "Position";
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
  vtkSMPropertyHelper(representation, TranslationName(representation)).Set(2, z);
  vtkSMPropertyHelper(representation, "ShaderPreset").Set("Custom");
  vtkSMPropertyHelper(representation, "CustomShader").Set(DiscShader);
  // Selected points are drawn as squares behind the discs, large enough to be visible around them.
  vtkSMPropertyHelper(representation, "SelectionPointSize", true).Set(26);
}

/// The words of a text, separated by spaces.
std::vector<std::string> WordsOf(const char* words)
{
  std::istringstream text(words);
  return { std::istream_iterator<std::string>(text), {} };
}

/// Hides the series of a chart listed in the attribute `names`, separated by spaces.
void HideSeries(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  if (representation->GetProperty("SeriesVisibility") == nullptr)
  {
    return;
  }
  const std::vector<std::string> names = WordsOf(element->GetAttributeOrEmpty("names"));
  vtkSMPropertyHelper visibility(representation, "SeriesVisibility");
  for (unsigned int i = 0; i + 1 < visibility.GetNumberOfElements(); i += 2)
  {
    const std::string series = visibility.GetAsString(i);
    if (std::any_of(names.begin(), names.end(),
          [&series](const std::string& name) { return IsNamed(series, name); }))
    {
      visibility.Set(i + 1, "0");
    }
  }
}

/// An image is shown as a texture, which is fast. With several ranks, textures leave a seam between
/// the parts.
void AvoidSeams(vtkSMProxy* representation)
{
  vtkSMPropertyHelper type(representation, "Representation", true);
  const char* name = type.GetAsString();
  if (name != nullptr && std::string(name) == "Slice" && HasManyRanks(representation))
  {
    type.Set("Surface");
  }
}

/// Applies one element of a hint.
void ApplyElement(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const std::string kind = element->GetName();
  if (kind == "ColorArray")
  {
    const char* suffix = element->GetAttribute("suffix");
    std::string name = element->GetAttributeOrEmpty("name");
    if (IsImageChart(representation) && name == "ClassColor")
    {
      name = "Class";
    }
    ColorBy(representation, suffix != nullptr ? suffix : name, suffix != nullptr);
  }
  else if (kind == "Discs")
  {
    ShowDiscs(representation, element);
  }
  else if (kind == "HiddenSeries")
  {
    HideSeries(representation, element);
  }
  else if (kind == "Property")
  {
    SetProperty(representation, element);
  }
}

/// The point array that takes the place of the one that colors a representation if that no longer
/// exists; otherwise null.
const char* Successor(vtkSMProxy* representation, vtkPVXMLElement* follow)
{
  vtkPVDataSetAttributesInformation* arrays =
    ShownData(representation)->GetAttributeInformation(vtkDataObject::POINT);
  const char* name =
    vtkSMPropertyHelper(representation, "ColorArrayName", true).GetInputArrayNameToProcess();
  if (name == nullptr || *name == '\0' || arrays == nullptr || arrays->GetNumberOfArrays() == 0 ||
      arrays->GetArrayInformation(name) != nullptr)
  {
    return nullptr;
  }
  for (const std::string& candidate : WordsOf(follow->GetAttributeOrEmpty("names")))
  {
    if (auto* array = arrays->GetArrayInformation(candidate.c_str()))
    {
      return array->GetName();
    }
  }
  return arrays->GetArrayInformation(0)->GetName();
}

/// Colors a representation by a point array, and replaces the legend of the previous array.
void Recolor(vtkSMProxy* representation, const char* array)
{
  vtkSMProxy* view = vtkSMViewProxy::FindView(representation);
  vtkSmartPointer<vtkSMProxy> table =
    vtkSMPropertyHelper(representation, "LookupTable", true).GetAsProxy();
  const bool hasBar = view != nullptr && ColorMaps::IsScalarBarVisible(representation, view);
  ColorMaps::SetScalarColoring(representation, array, vtkDataObject::POINT);
  if (hasBar)
  {
    vtkNew<vtkSMTransferFunctionManager> tables;
    tables->HideScalarBarIfNotNeeded(table, view);
    ColorMaps::SetScalarBarVisibility(representation, view, true);
  }
}

}

void UseOpaqueSurface(vtkSMProxy* representation)
{
  vtkSMPropertyHelper type(representation, "Representation", true);
  const char* name = type.GetAsString();
  if (name != nullptr && std::string(name) == "Surface" && HasManyRanks(representation))
  {
    type.Set("Opaque Surface");
  }
}

void ApplyHints(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  const auto shown = static_cast<int>(vtkSMPropertyHelper(representation, "Input").GetOutputPort());
  for (unsigned int i = 0; hint != nullptr && i < hint->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* element = hint->GetNestedElement(i);
    int port = shown;
    element->GetScalarAttribute("port", &port);
    if (port == shown)
    {
      ApplyElement(representation, element);
    }
  }
  if (hint != nullptr)
  {
    AvoidSeams(representation);
  }
  representation->UpdateVTKObjects();
}

void FollowArray(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  vtkPVXMLElement* follow =
    hint != nullptr ? hint->FindNestedElementByName("FollowArray") : nullptr;
  if (follow == nullptr)
  {
    return;
  }
  if (const char* array = Successor(representation, follow))
  {
    Recolor(representation, array);
  }
}

}
