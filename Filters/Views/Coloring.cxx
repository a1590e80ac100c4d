#include "Coloring.h"

#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/TokenPalette.h"

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSourceProxy.h>

#include <algorithm>
#include <initializer_list>
#include <map>

namespace AttentionAtlas
{
namespace
{

/// What the name of an array of colors and that of the field array with its legend end in.
constexpr const char* ColorEnd = "Color";
constexpr const char* LegendEnd = " Legend";

/// Numbers up to this are categories.
constexpr int MaximumNumber = 15;

/// The legend of an array whose numbers are categories: queries and keys, what a search has found,
/// or a few heads. Empty for others.
std::string NumberLegend(const std::string& array, vtkPVArrayInformation* values)
{
  atlas::ColorLegend legend(array);
  if (array == "Kind")
  {
    legend.Add(atlas::KindColor(atlas::TokenKind::Query), "query")
      .Add(atlas::KindColor(atlas::TokenKind::Key), "key");
  }
  else if (array == "Match")
  {
    legend.Add({ 204, 204, 204 }, "other").Add({ 178, 18, 31 }, "found");
  }
  else if (array == "Head" && values != nullptr && values->GetComponentRange(0)[1] <= MaximumNumber)
  {
    for (int i = 0; i <= static_cast<int>(values->GetComponentRange(0)[1]); ++i)
    {
      legend.Add(atlas::ClassColor(i), std::to_string(i));
    }
  }
  else
  {
    return {};
  }
  return legend.Text();
}

bool IsAmong(std::initializer_list<const char*> names, const std::string& array)
{
  return std::find(names.begin(), names.end(), array) != names.end();
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
  if (auto* field = data->GetArrayInformation("VocabularySize", vtkDataObject::FIELD))
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
    this->classes > 0 || !this->legend.empty() || RepresentationHint(representation) != nullptr;
}

std::string Coloring::Title() const
{
  if (this->HasLegend())
  {
    return this->legend.substr(0, this->legend.find('\n'));
  }
  static const std::map<std::string, const char*> titles = { { "ClassColor", "Class" },
    { "TargetColor", "Target" }, { "Heat", "Attention weight" },
    { "RelativeHeat", "Share of the head's largest weight" }, { "Weight", "Attention weight" },
    { "Weights", "Attention weight" }, { "Scores", "Attention score" },
    { "Content", "Score of content" }, { "Bias", "Score of position" },
    { "NormWeighted", "Norm of weight x value" }, { "Accuracy", "Accuracy (share)" },
    { "Contribution", "Contribution (logits)" }, { "ScoreContribution", "Contribution to score" },
    { "Effect", "Effect of patch" }, { "Logit Difference", "Difference (logits)" },
    { "QK", "QK circuit (score)" }, { "OV", "OV circuit (logits)" },
    { "PositionQK", "QK of positions (score)" }, { "Expert Weight", "Weight of the expert" },
    { "Share", "Share of tokens" }, { "Bound Token", "Bound token (its position)" },
    { "sequence", "Residue (place in its chain)" } };
  if (this->onPlaces && this->array == "Attention")
  {
    return "Attention of the query";
  }
  const auto found = titles.find(this->array);
  return found != titles.end() ? found->second : "";
}

bool Coloring::HasLegend() const
{
  return std::count(this->legend.begin(), this->legend.end(), '\n') > 1;
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
  return this->classes > 0 &&
         IsAmong({ "Class", "Target", "Predicted", "First", "Second", "ClassColor", "TargetColor" },
           this->array);
}

bool Coloring::IsSigned() const
{
  return this->IsKnown() && IsAmong({ "QK", "OV", "PositionQK", "Virtual Weights", "Contribution",
                                      "ScoreContribution", "Effect", "Logit Difference" },
                              this->array);
}

bool Coloring::IsShare() const
{
  return IsAmong({ "Shared Tokens", "NormWeighted", "Rollout", "Previous Token", "Duplicate Token",
                   "Induction", "Prefix Matching", "Copying", "Sink", "Share" },
    this->array);
}

bool Coloring::IsFitted() const
{
  return IsAmong({ "Scores", "Content", "Bias" }, this->array) || this->IsShare();
}

}
