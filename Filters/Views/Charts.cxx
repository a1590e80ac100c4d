#include "Charts.h"

#include "ColorBars.h"
#include "Coloring.h"
#include "ProxyValues.h"

#include <vtkAbstractArray.h>
#include <vtkAlgorithm.h>
#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewProxy.h>
#include <vtkTable.h>
#include <vtkVariant.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// The size of the title of an axis of a chart, in points.
constexpr int AxisFontSize = 14;

/// A property of an axis of a view, the horizontal one ("Bottom") or the other ("Left").
vtkSMPropertyHelper AxisProperty(vtkSMProxy* view, const char* name, const char* side = "Bottom")
{
  return { view, (std::string(side) + "Axis" + name).c_str(), true };
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

/// Every label, or every second, third and so on if an axis has no room for all. A label is a place
/// and a word.
std::vector<std::string> Fitting(const std::vector<std::string>& labels, std::size_t letters)
{
  std::size_t longest = 1;
  for (std::size_t i = 1; i < labels.size(); i += 2)
  {
    longest = std::max(longest, labels[i].size() + 1);
  }
  const std::size_t every = 1 + (longest * labels.size() / 2 - 1) / letters;
  std::vector<std::string> fitting;
  for (std::size_t i = 0; i < labels.size(); i += 2 * every)
  {
    fitting.insert(fitting.end(), { labels[i], labels[i + 1] });
  }
  return fitting;
}

/// The labels of the horizontal axis of a view; none: numbers.
std::vector<std::string> LabelsOf(vtkSMProxy* view)
{
  const bool isUsed = AxisProperty(view, "UseCustomLabels").GetAsInt() != 0;
  return isUsed ? TextsOf(AxisProperty(view, "Labels")) : std::vector<std::string>();
}

/// Sets these. Returns whether they were others.
bool SetLabels(vtkSMProxy* view, const std::vector<std::string>& labels)
{
  if (labels == LabelsOf(view))
  {
    return false;
  }
  AxisProperty(view, "UseCustomLabels").Set(labels.empty() ? 0 : 1);
  SetTexts(view, "BottomAxisLabels", labels);
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

/// An attribute of a hint; empty without a hint.
std::string AttributeOf(vtkPVXMLElement* hint, const char* name)
{
  return hint != nullptr ? hint->GetAttributeOrEmpty(name) : "";
}

/// The column along the horizontal axis of a chart; empty: the numbers of rows.
std::string ColumnAlong(vtkSMProxy* representation)
{
  return Number(representation, "UseIndexForXAxis") != 0
           ? ""
           : TextOf({ representation, "XArrayName", true });
}

/// The same as the hint of the source has it, which its hint Chart is about.
std::string HintedColumn(vtkSMProxy* representation)
{
  std::string column;
  for (vtkPVXMLElement* element : HintElements(representation))
  {
    if (element->GetName() == std::string("Property") &&
        element->GetAttributeOrEmpty("name") == std::string("XArrayName"))
    {
      column = element->GetAttributeOrEmpty("text");
    }
  }
  return column;
}

/// The columns with the words of rows: those of the hint Chart, or those that name heads.
std::vector<std::string> WordColumns(vtkSMProxy* representation, vtkPVXMLElement* hint)
{
  const std::string labels = AttributeOf(hint, "labels");
  vtkPVDataInformation* data = ShownData(representation);
  const auto has = [data](const char* column)
  { return data->GetArrayInformation(column, vtkDataObject::ROW) != nullptr; };
  return !labels.empty() || !has("Layer") || !has("Head")
           ? NamesIn(labels.c_str())
           : std::vector<std::string>{ "Layer", "Head" };
}

/// The values of a column of whole numbers that are few, each once; none of another column.
/// ParaView would divide the steps between them.
std::vector<std::string> WholeNumbers(vtkAbstractArray* column)
{
  constexpr int MostSteps = 30;
  auto* numbers = vtkDataArray::SafeDownCast(column);
  if (numbers == nullptr || numbers->GetDataType() == VTK_FLOAT ||
      numbers->GetDataType() == VTK_DOUBLE ||
      numbers->GetRange()[1] - numbers->GetRange()[0] > MostSteps)
  {
    return {};
  }
  std::set<int> values;
  for (vtkIdType row = 0; row < numbers->GetNumberOfTuples(); ++row)
  {
    values.insert(static_cast<int>(numbers->GetComponent(row, 0)));
  }
  std::vector<std::string> labels;
  for (const int value : values)
  {
    labels.insert(labels.end(), 2, std::to_string(value));
  }
  return labels;
}

/// The labels along the horizontal axis of a chart, a place and a word each: the words of rows, or
/// whole numbers; none if neither is there.
std::vector<std::string> RowLabels(vtkSMProxy* representation, vtkPVXMLElement* hint)
{
  auto* table = vtkTable::SafeDownCast(ClientData(representation));
  if (table == nullptr)
  {
    return {};
  }
  const std::vector<std::string> columns = WordColumns(representation, hint);
  const std::string along = ColumnAlong(representation);
  vtkAbstractArray* places = table->GetColumnByName(along.c_str());
  if (columns.empty() || along != AttributeOf(hint, "at"))
  {
    return WholeNumbers(places);
  }
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

/// The titles of an axis along the rows of a table: of one with a row per head, and of others.
constexpr const char* HeadTitle = "Head (layer.head)";
constexpr const char* RowTitle = "Row";

/// The title of the horizontal axis of a chart that is along another column than its hint is about,
/// or has no hint.
std::string ColumnTitle(vtkSMProxy* representation, vtkPVXMLElement* hint)
{
  const std::string along = ColumnAlong(representation);
  const bool hasHeads = hint == nullptr && !WordColumns(representation, hint).empty();
  return !along.empty() ? along : hasHeads ? HeadTitle : RowTitle;
}

/// Whether a title may be one of these.
bool IsColumnTitle(vtkSMProxy* representation, const std::string& title)
{
  return title == HeadTitle || title == RowTitle ||
         ShownData(representation)->GetArrayInformation(title.c_str(), vtkDataObject::ROW) !=
           nullptr;
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
  vtkSMPropertyHelper use = AxisProperty(view, "UseCustomRange");
  vtkSMPropertyHelper minimum = AxisProperty(view, "RangeMinimum");
  vtkSMPropertyHelper maximum = AxisProperty(view, "RangeMaximum");
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

/// The number of series that a chart shows.
std::size_t SeriesIn(vtkSMViewProxy* view)
{
  std::size_t count = 0;
  for (vtkSMProxy* chart : VisibleIn(view))
  {
    if (chart->GetProperty("SeriesVisibility") != nullptr)
    {
      const std::vector<std::string> series = TextsOf({ chart, "SeriesVisibility" });
      for (std::size_t name = 0; name + 1 < series.size(); name += 2)
      {
        count += series[name + 1] != "0" ? 1 : 0;
      }
    }
  }
  return count;
}

}

void TitleAxes(vtkSMProxy* representation, bool isNew)
{
  vtkPVXMLElement* hint = ChartHint(representation);
  vtkSMViewProxy* view = ViewWith("BottomAxisTitle", representation);
  if (RepresentationHint(representation) == nullptr || view == nullptr)
  {
    return;
  }
  vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
  const std::string by = AttributeOf(hint, "by");
  const std::size_t number = by.empty() ? 0 : Number(source, by.c_str());
  for (const char* side : { "Bottom", "Left" })
  {
    const bool isBottom = side[0] == 'B';
    vtkSMPropertyHelper title = AxisProperty(view, "Title", side);
    const std::string old = TextOf(title);
    const std::vector<std::string> titles =
      NamesIn(AttributeOf(hint, isBottom ? "bottom" : "left").c_str());
    const bool isOther =
      isBottom && (hint == nullptr || ColumnAlong(representation) != HintedColumn(representation));
    const std::string wanted = isOther                  ? ColumnTitle(representation, hint)
                               : number < titles.size() ? titles[number]
                                                        : "";
    const bool isOurs = std::find(titles.begin(), titles.end(), old) != titles.end() ||
                        (isBottom && IsColumnTitle(representation, old));
    if (isOurs ? old != wanted : isNew && old.empty())
    {
      title.Set(wanted.c_str());
      AxisProperty(view, "TitleFontSize", side).Set(AxisFontSize);
      AxisProperty(view, "TitleBold", side).Set(0);
    }
  }
  view->UpdateVTKObjects();
}

void FitLegend(vtkSMProxy* representation)
{
  constexpr const char* Annotation = "AtlasHidLegend";
  vtkSMViewProxy* view = ViewWith("ShowLegend", representation);
  if (RepresentationHint(representation) == nullptr || view == nullptr)
  {
    return;
  }
  const std::size_t count = SeriesIn(view);
  vtkSMPropertyHelper shows(view, "ShowLegend");
  const bool wasHidden = view->HasAnnotation(Annotation);
  if (count == 1 && shows.GetAsInt() != 0 && !wasHidden)
  {
    view->SetAnnotation(Annotation, "1");
    shows.Set(0);
  }
  else if (count > 1 && wasHidden)
  {
    view->RemoveAnnotation(Annotation);
    shows.Set(1);
  }
  view->UpdateVTKObjects();
}

void LabelChart(vtkSMProxy* representation, std::vector<std::string>& labels)
{
  vtkPVXMLElement* hint = ChartHint(representation);
  vtkSMViewProxy* view = ViewWith("BottomAxisLabels", representation);
  if (RepresentationHint(representation) == nullptr || view == nullptr)
  {
    return;
  }
  const std::vector<std::string> all = RowLabels(representation, hint);
  const std::vector<std::string> old = LabelsOf(view);
  if (!AreSome(old, labels) && !AreSome(old, all))
  {
    return;
  }
  const bool isOther = SetRange(view, all, labels);
  labels = all;
  // A letter is two thirds as wide as the font is high.
  const int font = std::max(1, AxisProperty(view, "LabelFontSize").GetAsInt());
  const int width = vtkSMPropertyHelper(view, "ViewSize").GetAsInt();
  const auto letters = static_cast<std::size_t>(std::max(1, 3 * width / (2 * font)));
  std::vector<std::string> fitting = Fitting(all, letters);
  if (fitting.size() < all.size() && WordColumns(representation, hint).size() > 1)
  {
    fitting = Fitting(Firsts(all), letters);
  }
  if (SetLabels(view, fitting) || isOther)
  {
    view->UpdateVTKObjects();
    view->Update(); // which hands labels to the chart
  }
}

}
