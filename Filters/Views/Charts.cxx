#include "Charts.h"

#include "ColorBars.h"
#include "Coloring.h"

#include <vtkAbstractArray.h>
#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewProxy.h>
#include <vtkStringArray.h>
#include <vtkTable.h>
#include <vtkVariant.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// An axis of an image of this plugin.
struct Axis
{
  const char* side; ///< begins the names of the view's properties
  const char* angle;
  const char* role;   ///< of the tokens of an attention map
  const char* tokens; ///< field array
  double first;       ///< where the middle of the first token lies
  double step;
  std::size_t letters; ///< for how many the axis has room
};

constexpr std::array<Axis, 2> Axes = { { { "Bottom", "theta_1", "Key", "Key Token", 0.5, 1, 90 },
  { "Left", "theta_2", "Query", "Query Token", 0.5, -1, 40 } } };

/// A property of an axis of a view.
vtkSMPropertyHelper AxisProperty(vtkSMProxy* view, const Axis& axis, const char* name)
{
  const std::string property = std::string(axis.side) + "Axis" + name;
  return { view, property.c_str(), true };
}

/// What a representation shows; null if it is on a server.
vtkDataObject* ClientData(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input");
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  auto* algorithm = vtkAlgorithm::SafeDownCast(producer->GetClientSideObject());
  return algorithm != nullptr
           ? algorithm->GetOutputDataObject(static_cast<int>(input.GetOutputPort()))
           : nullptr;
}

/// The tokens of an attention map, or their numbers if the map is on a server.
std::vector<std::string> Tokens(vtkSMProxy* representation, const Axis& axis)
{
  vtkDataObject* data = ClientData(representation);
  auto* texts = data != nullptr ? vtkStringArray::SafeDownCast(
                                    data->GetFieldData()->GetAbstractArray(axis.tokens))
                                : nullptr;
  vtkPVArrayInformation* known =
    ShownData(representation)->GetArrayInformation(axis.tokens, vtkDataObject::FIELD);
  const auto count = static_cast<vtkIdType>(known->GetNumberOfTuples());
  std::vector<std::string> tokens;
  tokens.reserve(count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    tokens.push_back(
      texts != nullptr && i < texts->GetNumberOfValues() ? texts->GetValue(i) : std::to_string(i));
  }
  return tokens;
}

/// What the title of an axis is, if not its role in an attention map.
std::string RoleOf(vtkSMProxy* representation, const Axis& axis)
{
  const std::string field = std::string(axis.role) + " Title";
  vtkPVArrayInformation* title =
    ShownData(representation)->GetArrayInformation(field.c_str(), vtkDataObject::FIELD);
  return title != nullptr && title->GetNumberOfStringValues() > 0 ? title->GetStringValue(0)
                                                                  : axis.role;
}

/// Whether a title is one that an axis has without the user.
bool IsOurTitle(const std::string& title, const Axis& axis)
{
  const std::array<std::string, 11> ours = { "", axis.angle, axis.role, "Source", "Destination",
    "Output", "Component", "Token", "Layer", "Head", "Position" };
  return std::find(ours.begin(), ours.end(), title) != ours.end();
}

/// The distance of the columns of the image that a representation shows.
double ColumnStep(vtkSMProxy* representation)
{
  vtkPVDataInformation* shown = ShownData(representation);
  const int* extent = shown->GetExtent();
  const double* bounds = shown->GetBounds();
  return extent[1] > extent[0] ? (bounds[1] - bounds[0]) / (extent[1] - extent[0]) : 1;
}

/// Places and labels: every token, or every second, third and so on if there is no room.
/// `distance`: of tokens.
std::vector<std::string> Labels(
  const std::vector<std::string>& tokens, const Axis& axis, double distance)
{
  // On the left a label takes a line.
  std::size_t longest = 1;
  for (const std::string& token : tokens)
  {
    longest = axis.step > 0 ? std::max(longest, token.size() + 1) : longest;
  }
  const std::size_t every = 1 + (longest * tokens.size() - 1) / axis.letters;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < tokens.size(); i += every)
  {
    labels.push_back(std::to_string(distance * (axis.first + axis.step * static_cast<double>(i))));
    labels.push_back(tokens[i]);
  }
  return labels;
}

/// The labels of an axis of a view; none: numbers.
std::vector<std::string> LabelsOf(vtkSMProxy* view, const Axis& axis)
{
  vtkSMPropertyHelper property = AxisProperty(view, axis, "Labels");
  const bool used = AxisProperty(view, axis, "UseCustomLabels").GetAsInt() != 0;
  std::vector<std::string> labels;
  for (unsigned int i = 0; used && i < property.GetNumberOfElements(); ++i)
  {
    labels.emplace_back(property.GetAsString(i));
  }
  return labels;
}

/// Sets the labels of an axis of a view; none: numbers. Returns whether they were others.
bool SetLabels(vtkSMProxy* view, const Axis& axis, const std::vector<std::string>& labels)
{
  if (labels == LabelsOf(view, axis))
  {
    return false;
  }
  vtkSMPropertyHelper use = AxisProperty(view, axis, "UseCustomLabels");
  vtkSMPropertyHelper property = AxisProperty(view, axis, "Labels");
  use.Set(labels.empty() ? 0 : 1);
  property.SetNumberOfElements(static_cast<unsigned int>(labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i)
  {
    property.Set(static_cast<unsigned int>(i), labels[i].c_str());
  }
  return true;
}

/// The hint Chart of the source of a representation, for the port that this shows; null if none.
vtkPVXMLElement* ChartHint(vtkSMProxy* representation)
{
  const std::vector<vtkPVXMLElement*> elements = HintElements(representation);
  const auto found = std::find_if(elements.begin(), elements.end(),
    [](vtkPVXMLElement* element) { return element->GetName() == std::string("Chart"); });
  return found != elements.end() ? *found : nullptr;
}

/// The titles that a hint Chart has for an axis, separated by semicolons.
std::vector<std::string> TitlesOf(vtkPVXMLElement* hint, const char* attribute)
{
  std::vector<std::string> titles;
  std::istringstream text(hint->GetAttributeOrEmpty(attribute));
  for (std::string title; std::getline(text, title, ';');)
  {
    titles.push_back(title);
  }
  return titles;
}

/// Which of these titles a representation has: that of the value of the property `by` of its
/// source.
std::size_t TitleNumber(vtkSMProxy* representation, vtkPVXMLElement* hint)
{
  const char* property = hint->GetAttribute("by");
  vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
  return property != nullptr && source != nullptr
           ? static_cast<std::size_t>(vtkSMPropertyHelper(source, property).GetAsInt())
           : 0;
}

/// The places and words of the rows of a table.
std::vector<std::string> RowLabels(vtkTable* table, const char* column)
{
  std::vector<std::string> labels;
  vtkAbstractArray* words = table != nullptr ? table->GetColumnByName(column) : nullptr;
  for (vtkIdType row = 0; words != nullptr && row < words->GetNumberOfTuples(); ++row)
  {
    labels.push_back(std::to_string(row));
    labels.push_back(words->GetVariantValue(row).ToString());
  }
  return labels;
}

}

void TitleChart(vtkSMProxy* representation, bool isNew)
{
  vtkPVXMLElement* hint = ChartHint(representation);
  vtkSMViewProxy* view = vtkSMViewProxy::FindView(representation);
  if (hint == nullptr || view == nullptr || view->GetProperty("BottomAxisTitle") == nullptr ||
      AreBarsByHand())
  {
    return;
  }
  const std::size_t number = TitleNumber(representation, hint);
  for (const auto& [axis, attribute] : { std::pair(Axes[0], "bottom"), std::pair(Axes[1], "left") })
  {
    vtkSMPropertyHelper title = AxisProperty(view, axis, "Title");
    const std::string old = title.GetAsString() != nullptr ? title.GetAsString() : "";
    const std::vector<std::string> titles = TitlesOf(hint, attribute);
    const std::string wanted = number < titles.size() ? titles[number] : "";
    const bool isOurs = std::find(titles.begin(), titles.end(), old) != titles.end();
    if (isOurs ? old != wanted : isNew && old.empty())
    {
      title.Set(wanted.c_str());
      AxisProperty(view, axis, "TitleFontSize").Set(14);
      AxisProperty(view, axis, "TitleBold").Set(0);
    }
  }
  view->UpdateVTKObjects();
}

void LabelChart(vtkSMProxy* representation, std::vector<std::string>& labels)
{
  vtkPVXMLElement* hint = ChartHint(representation);
  const char* column = hint != nullptr ? hint->GetAttribute("labels") : nullptr;
  vtkSMViewProxy* view = vtkSMViewProxy::FindView(representation);
  if (column == nullptr || view == nullptr || view->GetProperty("BottomAxisLabels") == nullptr ||
      vtkSMPropertyHelper(representation, "UseIndexForXAxis").GetAsInt() == 0 || AreBarsByHand())
  {
    return;
  }
  const std::vector<std::string> words =
    RowLabels(vtkTable::SafeDownCast(ClientData(representation)), column);
  const std::vector<std::string> old = LabelsOf(view, Axes[0]);
  if (!old.empty() && old != labels && old != words)
  {
    return;
  }
  labels = words;
  if (SetLabels(view, Axes[0], words))
  {
    view->UpdateVTKObjects();
    view->Update(); // which hands labels to the chart
  }
}

bool IsImageChart(vtkSMProxy* representation)
{
  return std::string(representation->GetXMLName()) == "ImageChartRepresentation";
}

void CompleteImageChart(vtkSMProxy* representation)
{
  vtkSMViewProxy* view = vtkSMViewProxy::FindView(representation);
  const Coloring coloring(representation);
  if (view == nullptr || !coloring.ours || coloring.arrayInformation == nullptr)
  {
    return;
  }
  bool hasOther = false;
  for (const Axis& axis : Axes)
  {
    const bool isMap =
      ShownData(representation)->GetArrayInformation(axis.tokens, vtkDataObject::FIELD) != nullptr;
    vtkSMPropertyHelper title = AxisProperty(view, axis, "Title");
    const std::string old = title.GetAsString() != nullptr ? title.GetAsString() : "";
    if (!IsOurTitle(old, axis))
    {
      continue;
    }
    const std::string role = RoleOf(representation, axis);
    title.Set(isMap ? role.c_str() : axis.angle);
    const double distance = axis.step > 0 ? ColumnStep(representation) : 1;
    const bool isOther = SetLabels(view, axis,
      isMap ? Labels(Tokens(representation, axis), axis, distance) : std::vector<std::string>());
    hasOther = hasOther || isOther;
  }
  if (coloring.ShowsClasses())
  {
    vtkSMPropertyHelper(view, "ShowLegend", true).Set(0);
  }
  view->UpdateVTKObjects();
  if (hasOther)
  {
    view->Update(); // which hands labels to the chart
  }
}

}
