#include "Charts.h"

#include "ColorBars.h"
#include "Coloring.h"
#include "ProxyValues.h"

#include <vtkAbstractArray.h>
#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewProxy.h>
#include <vtkStringArray.h>
#include <vtkTable.h>
#include <vtkVariant.h>

#include <algorithm>
#include <array>
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
std::string NameOf(const Axis& axis, const char* name)
{
  return std::string(axis.side) + "Axis" + name;
}

vtkSMPropertyHelper AxisProperty(vtkSMProxy* view, const Axis& axis, const char* name)
{
  return { view, NameOf(axis, name).c_str(), true };
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

/// Every label, or every second, third and so on if an axis has no room for all. A label is a place
/// and a word.
std::vector<std::string> Fitting(
  const std::vector<std::string>& labels, const Axis& axis, std::size_t letters)
{
  // On the left a label takes a line.
  std::size_t longest = 1;
  for (std::size_t i = 1; i < labels.size(); i += 2)
  {
    longest = axis.step > 0 ? std::max(longest, labels[i].size() + 1) : longest;
  }
  const std::size_t every = 1 + (longest * labels.size() / 2 - 1) / letters;
  std::vector<std::string> fitting;
  for (std::size_t i = 0; i < labels.size(); i += 2 * every)
  {
    fitting.insert(fitting.end(), { labels[i], labels[i + 1] });
  }
  return fitting;
}

/// The labels of tokens, as many as fit. `distance`: of tokens.
std::vector<std::string> Labels(
  const std::vector<std::string>& tokens, const Axis& axis, double distance)
{
  std::vector<std::string> labels;
  for (const std::string& token : tokens)
  {
    const std::size_t i = labels.size() / 2;
    labels.push_back(std::to_string(distance * (axis.first + axis.step * static_cast<double>(i))));
    labels.push_back(token);
  }
  return Fitting(labels, axis, axis.letters);
}

/// The labels of an axis of a view; none: numbers.
std::vector<std::string> LabelsOf(vtkSMProxy* view, const Axis& axis)
{
  const bool isUsed = AxisProperty(view, axis, "UseCustomLabels").GetAsInt() != 0;
  return isUsed ? TextsOf(AxisProperty(view, axis, "Labels")) : std::vector<std::string>();
}

/// Sets the labels of an axis of a view; none: numbers. Returns whether they were others.
bool SetLabels(vtkSMProxy* view, const Axis& axis, const std::vector<std::string>& labels)
{
  if (labels == LabelsOf(view, axis))
  {
    return false;
  }
  AxisProperty(view, axis, "UseCustomLabels").Set(labels.empty() ? 0 : 1);
  SetTexts(view, NameOf(axis, "Labels"), labels);
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

/// The view that shows a chart; null if it has no such property, or the user chooses what it says.
vtkSMViewProxy* ViewWith(const char* property, vtkSMProxy* representation)
{
  vtkSMViewProxy* view = vtkSMViewProxy::FindView(representation);
  return view != nullptr && view->GetProperty(property) != nullptr && !AreBarsByHand() ? view
                                                                                       : nullptr;
}

/// The labels of the rows of a table by a hint Chart, one for each place; none if the chart has
/// another horizontal axis.
std::vector<std::string> RowLabels(vtkSMProxy* representation, vtkPVXMLElement* hint)
{
  auto* table = vtkTable::SafeDownCast(ClientData(representation));
  const std::string at = hint->GetAttributeOrEmpty("at");
  const bool isByRows = Number(representation, "UseIndexForXAxis") != 0;
  if (table == nullptr || (isByRows ? "" : TextOf({ representation, "XArrayName" })) != at)
  {
    return {};
  }
  vtkAbstractArray* places = table->GetColumnByName(at.c_str());
  const std::vector<std::string> columns = NamesIn(hint->GetAttributeOrEmpty("labels"));
  std::vector<std::string> labels;
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    const vtkVariant place = places != nullptr ? places->GetVariantValue(row) : vtkVariant(row);
    if (places != nullptr && row > 0 && place == places->GetVariantValue(row - 1))
    {
      continue;
    }
    std::string words;
    for (const std::string& column : columns)
    {
      const std::string word = table->GetValueByName(row, column.c_str()).ToString();
      words += words.empty() ? word : "." + word;
    }
    labels.insert(labels.end(), { place.ToString(), words });
  }
  return labels;
}

/// Whether labels are some of others, in their order.
bool AreSome(const std::vector<std::string>& labels, const std::vector<std::string>& of)
{
  std::size_t found = 0;
  for (std::size_t i = 0; i < of.size() && found < labels.size(); i += 2)
  {
    found += labels[found] == of[i] && labels[found + 1] == of[i + 1] ? 2 : 0;
  }
  return found == labels.size();
}

/// Labels without those that begin with the same word as the one before, which points separate.
std::vector<std::string> Firsts(const std::vector<std::string>& labels)
{
  std::vector<std::string> firsts;
  std::string last;
  for (std::size_t i = 0; i < labels.size(); i += 2)
  {
    const std::string first = labels[i + 1].substr(0, labels[i + 1].find('.'));
    if (i == 0 || first != last)
    {
      firsts.insert(firsts.end(), { labels[i], labels[i + 1] });
    }
    last = first;
  }
  return firsts;
}

/// Where an axis with labels begins and ends, so that no point is on the border or behind the
/// legend.
std::array<double, 2> RangeOf(const std::vector<std::string>& labels)
{
  if (labels.empty())
  {
    return {};
  }
  const double first = std::stod(labels.front()) - 0.5;
  const double last = std::stod(*(labels.end() - 2)) + 0.5;
  return { first, last + (last - first) / 4 };
}

/// Gives the horizontal axis of a view of points the range of labels, or that of its data if there
/// are none, unless it has one that is neither this nor that of the labels before. Bars have room
/// at the borders. Returns whether the range was another.
bool SetRange(
  vtkSMProxy* view, const std::vector<std::string>& labels, const std::vector<std::string>& before)
{
  vtkSMPropertyHelper use = AxisProperty(view, Axes[0], "UseCustomRange");
  vtkSMPropertyHelper minimum = AxisProperty(view, Axes[0], "RangeMinimum");
  vtkSMPropertyHelper maximum = AxisProperty(view, Axes[0], "RangeMaximum");
  const std::array<double, 2> old = { minimum.GetAsDouble(), maximum.GetAsDouble() };
  const std::array<double, 2> range = RangeOf(labels);
  const bool isUsed = use.GetAsInt() != 0;
  if (view->GetXMLName() != std::string("XYPointChartView") || (isUsed && old == range) ||
      (isUsed ? old != RangeOf(before) : labels.empty()))
  {
    return false;
  }
  minimum.Set(range[0]);
  maximum.Set(range[1]);
  use.Set(labels.empty() ? 0 : 1);
  return true;
}

}

void TitleChart(vtkSMProxy* representation, bool isNew)
{
  vtkPVXMLElement* hint = ChartHint(representation);
  vtkSMViewProxy* view = ViewWith("BottomAxisTitle", representation);
  if (hint == nullptr || view == nullptr)
  {
    return;
  }
  vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
  const char* by = hint->GetAttribute("by");
  const std::size_t number = by != nullptr && source != nullptr ? Number(source, by) : 0;
  for (const auto& [axis, attribute] : { std::pair(Axes[0], "bottom"), std::pair(Axes[1], "left") })
  {
    vtkSMPropertyHelper title = AxisProperty(view, axis, "Title");
    const std::string old = TextOf(title);
    const std::vector<std::string> titles = NamesIn(hint->GetAttributeOrEmpty(attribute));
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
  vtkSMViewProxy* view = ViewWith("BottomAxisLabels", representation);
  if (hint == nullptr || hint->GetAttribute("labels") == nullptr || view == nullptr)
  {
    return;
  }
  const std::vector<std::string> all = RowLabels(representation, hint);
  const std::vector<std::string> old = LabelsOf(view, Axes[0]);
  if (!AreSome(old, labels) && !AreSome(old, all))
  {
    return;
  }
  const bool isOther = SetRange(view, all, labels);
  labels = all;
  // A letter is two thirds as wide as the font is high.
  const int font = std::max(1, AxisProperty(view, Axes[0], "LabelFontSize").GetAsInt());
  const int width = vtkSMPropertyHelper(view, "ViewSize").GetAsInt();
  const auto letters = static_cast<std::size_t>(std::max(1, 3 * width / (2 * font)));
  std::vector<std::string> fitting = Fitting(all, Axes[0], letters);
  if (fitting.size() < all.size() && NamesIn(hint->GetAttribute("labels")).size() > 1)
  {
    fitting = Fitting(Firsts(all), Axes[0], letters);
  }
  if (SetLabels(view, Axes[0], fitting) || isOther)
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
    if (!IsOurTitle(TextOf(title), axis))
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
