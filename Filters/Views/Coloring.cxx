#include "Coloring.h"

#include "ClassPalette.h"
#include "TokenPalette.h"

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSourceProxy.h>

#include <algorithm>
#include <array>
#include <utility>

namespace AttentionAtlas
{
namespace
{

constexpr const char* VocabularySizeField = "VocabularySize";
constexpr const char* Kind = "Kind";
/// What the name of an array of colors and that of the field array with its legend end in.
constexpr const char* ColorEnd = "Color";
constexpr const char* LegendEnd = " Legend";

/// An entry of a legend, written as that of TokenColors.
std::string Entry(const atlas::Rgb& color, const std::string& text)
{
  return "\n" + std::to_string(color[0]) + " " + std::to_string(color[1]) + " " +
         std::to_string(color[2]) + " " + text;
}

/// Numbers up to this are categories.
constexpr int MaximumNumber = 15;

/// The legend of an array whose numbers are categories: queries and keys, what a search has found,
/// or a few heads. Empty for others.
std::string NumberLegend(const std::string& array, vtkPVArrayInformation* values)
{
  if (array == Kind)
  {
    return array + Entry(atlas::KindColor(atlas::TokenKind::Query), "query") +
           Entry(atlas::KindColor(atlas::TokenKind::Key), "key");
  }
  if (array == "Match")
  {
    return array + Entry({ 204, 204, 204 }, "other") + Entry({ 178, 18, 31 }, "found");
  }
  std::string legend;
  if (array == "Head" && values != nullptr && values->GetComponentRange(0)[1] <= MaximumNumber)
  {
    legend = array;
    for (int i = 0; i <= static_cast<int>(values->GetComponentRange(0)[1]); ++i)
    {
      legend += Entry(atlas::ClassColor(i), std::to_string(i));
    }
  }
  return legend;
}

}

bool IsNamed(const std::string& array, const std::string& name)
{
  const std::string begin = name + " ";
  return array == name || array.compare(0, begin.size(), begin) == 0;
}

bool EndsWith(const std::string& text, const std::string& end)
{
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation)
{
  vtkSMProxy* producer = vtkSMPropertyHelper(representation, "Input", true).GetAsProxy();
  vtkPVXMLElement* hints = producer != nullptr ? producer->GetHints() : nullptr;
  return hints != nullptr ? hints->FindNestedElementByName("AtlasRepresentation") : nullptr;
}

std::vector<vtkPVXMLElement*> HintElements(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  const auto shown = static_cast<int>(vtkSMPropertyHelper(representation, "Input").GetOutputPort());
  std::vector<vtkPVXMLElement*> elements;
  for (unsigned int i = 0; hint != nullptr && i < hint->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* element = hint->GetNestedElement(i);
    int port = shown;
    element->GetScalarAttribute("port", &port);
    if (port == shown)
    {
      elements.push_back(element);
    }
  }
  return elements;
}

vtkPVDataInformation* ShownData(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  return producer->GetDataInformation(input.GetOutputPort());
}

Coloring::Coloring(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  vtkSMPropertyHelper color(representation, "ColorArrayName", true);
  const char* name = color.GetInputArrayNameToProcess();
  if (producer == nullptr || name == nullptr)
  {
    return;
  }
  this->array = name;
  vtkPVDataInformation* data = producer->GetDataInformation(input.GetOutputPort());
  this->arrayInformation = data->GetArrayInformation(name, color.GetInputArrayAssociation());
  if (auto* field = data->GetArrayInformation(VocabularySizeField, vtkDataObject::FIELD))
  {
    this->classes = static_cast<int>(field->GetComponentRange(0)[1]);
  }
  this->onPlaces = data->GetArrayInformation("Token Binding", vtkDataObject::FIELD) != nullptr;
  this->hasWords = data->GetArrayInformation("Token", vtkDataObject::POINT) != nullptr;
  const std::string legendField = this->array + LegendEnd;
  auto* texts = data->GetArrayInformation(legendField.c_str(), vtkDataObject::FIELD);
  if (EndsWith(this->array, ColorEnd) && texts != nullptr && texts->GetNumberOfStringValues() > 0)
  {
    this->legend = texts->GetStringValue(0);
  }
  else if (RepresentationHint(representation) != nullptr)
  {
    this->legend = NumberLegend(this->array, this->arrayInformation);
  }
  this->ours =
    this->classes > 0 || this->HasLegend() || RepresentationHint(representation) != nullptr;
}

bool Coloring::ShowsColors() const
{
  const int components = this->IsKnown() ? this->arrayInformation->GetNumberOfComponents() : 0;
  return (components == 3 || components == 4) &&
         this->arrayInformation->GetDataType() == VTK_UNSIGNED_CHAR &&
         EndsWith(this->array, ColorEnd);
}

bool Coloring::HasOpacity() const
{
  return this->ShowsColors() && this->arrayInformation->GetNumberOfComponents() == 4;
}

bool Coloring::ShowsClasses() const
{
  static const std::array<const char*, 7> names = { "Class", "Target", "Predicted", "First",
    "Second", "ClassColor", "TargetColor" };
  return this->classes > 0 && std::find(names.begin(), names.end(), this->array) != names.end();
}

bool Coloring::IsSigned() const
{
  constexpr std::array<const char*, 8> Names = { "QK", "OV", "PositionQK", "Virtual Weights",
    "Contribution", "ScoreContribution", "Effect", "Logit Difference" };
  return this->IsKnown() && std::find(Names.begin(), Names.end(), this->array) != Names.end();
}

bool Coloring::IsShare() const
{
  constexpr std::array<const char*, 10> Names = { "Shared Tokens", "NormWeighted", "Rollout",
    "Previous Token", "Duplicate Token", "Induction", "Prefix Matching", "Copying", "Sink",
    "Share" };
  return std::find(Names.begin(), Names.end(), this->array) != Names.end();
}

bool Coloring::IsFitted() const
{
  return this->array == "Scores" || this->array == "Content" || this->array == "Bias" ||
         this->IsShare();
}

}
