#include "ColorTables.h"

#include "Coloring.h"
#include "Drawing/ClassPalette.h"
#include "ProxyValues.h"

#include <vtkPVArrayInformation.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMTransferFunctionProxy.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// Legends with more classes would be unreadable.
constexpr int MaximumLegend = 1024;

void KeepRange(vtkSMProxy* table)
{
  vtkSMPropertyHelper(table, "AutomaticRescaleRangeMode").Set(vtkSMTransferFunctionManager::NEVER);
}

std::vector<double> GetDoubles(vtkSMProxy* proxy, const char* property)
{
  return vtkSMPropertyHelper(proxy, property).GetDoubleArray();
}

void SetDoubles(vtkSMProxy* proxy, const char* property, const std::vector<double>& values)
{
  vtkSMPropertyHelper(proxy, property).Set(values.data(), static_cast<unsigned int>(values.size()));
}

/// Makes values the categories of a table. `entries`: a value and what it means by turns.
void SetCategories(
  vtkSMProxy* table, const std::vector<std::string>& entries, const std::vector<double>& colors)
{
  SetTexts(table, "Annotations", entries);
  SetDoubles(table, "IndexedColors", colors);
  // Otherwise the GUI would replace the legend by the values in the data, and search all of them at
  // each Apply.
  vtkSMPropertyHelper(table, "AnnotationsInitialized", true).Set(1);
  KeepRange(table);
  vtkSMPropertyHelper(table, "IndexedLookup").Set(1);
  table->UpdateVTKObjects();
}

/// Completes the table of a model's classes: a new one, or one with fewer classes. Class k is the
/// entry "k".
void PrepareClassTable(vtkSMProxy* table, int classes, bool isNew)
{
  std::vector<std::string> entries = TextsOf({ table, "Annotations" });
  const int known = isNew ? 0 : static_cast<int>(entries.size() / 2);
  if (!isNew && (Number(table, "IndexedLookup") == 0 || known >= classes))
  {
    return;
  }
  std::vector<double> colors = GetDoubles(table, "IndexedColors");
  colors.resize(std::min(colors.size(), static_cast<std::size_t>(3 * known)));
  for (int k = static_cast<int>(colors.size() / 3); k < classes; ++k)
  {
    for (const std::uint8_t c : atlas::ClassColor(k))
    {
      colors.push_back(c / 255.);
    }
  }
  entries.resize(2 * static_cast<std::size_t>(known));
  for (int k = known; k < classes; ++k)
  {
    entries.insert(entries.end(), 2, std::to_string(k));
  }
  SetCategories(table, entries, colors);
}

/// The titles of legends as they were last set here, by array: another one is the user's.
std::map<std::string, std::string>& LegendTitles()
{
  static std::map<std::string, std::string> titles;
  return titles;
}

/// Sets the titles of the color bars of a table, of all or of those that have the title `from`.
void TitleBars(vtkSMProxy* table, const std::string& title, const std::string* from)
{
  for (vtkSMProxy* bar : ProxiesOf(table->GetSessionProxyManager(), "scalar_bars"))
  {
    if (TableOf(bar) == table && (from == nullptr || *from == TextOf({ bar, "Title" })))
    {
      vtkSMPropertyHelper(bar, "Title").Set(title.c_str());
      bar->UpdateVTKObjects();
    }
  }
}

/// Makes a legend that is written as one text, see TokenLegend.h in Filters/Tokens, that of a
/// table, unless it is; then its title alone.
void SetLegend(vtkSMProxy* table, const std::string& array, const std::string& legend)
{
  std::istringstream lines(legend);
  std::string title;
  std::getline(lines, title);
  std::string line;
  std::vector<std::string> entries;
  std::vector<double> colors;
  while (std::getline(lines, line))
  {
    std::istringstream words(line);
    std::array<double, 3> color = {};
    words >> color[0] >> color[1] >> color[2] >> std::ws;
    std::getline(words, line);
    for (const double channel : color)
    {
      colors.push_back(channel / 255);
    }
    entries.insert(entries.end(), { std::to_string(entries.size() / 2), line });
  }
  const std::string before = LegendTitles().emplace(array, title).first->second;
  LegendTitles()[array] = title;
  std::vector<std::string> known = TextsOf({ table, "Annotations" });
  for (std::size_t i = 0; i < std::min(known.size(), entries.size()); i += 2)
  {
    known[i] = entries[i]; // values that the user has changed remain
  }
  if (known == entries)
  {
    if (before != title)
    {
      TitleBars(table, title, &before);
    }
    return;
  }
  TitleBars(table, title, nullptr);
  SetCategories(table, entries, colors);
}

/// A continuous scale through `points` (value, red, green, blue).
void SetScale(vtkSMProxy* table, const std::vector<double>& points, bool keepRange)
{
  SetDoubles(table, "RGBPoints", points);
  SetDoubles(table, "NanColor", { 0.8, 0.8, 0.8 }); // gaps between panels
  vtkSMPropertyHelper(table, "ColorSpace").Set("Lab");
  if (keepRange)
  {
    KeepRange(table);
  }
  vtkSMPropertyHelper(table, "ScalarRangeInitialized", true).Set(1);
  table->UpdateVTKObjects();
}

/// Attention and probability: white is 0 and black is 1, in every image.
const std::vector<double> ShareScale = { 0, 1, 1, 1, 1, 0, 0, 0 };

/// Probability below black words: white is 0, blue is 1.
const std::vector<double> WordScale = { 0, 1, 1, 1, 0.5, 0.72, 0.86, 0.96, 1, 0.36, 0.66, 0.89 };

/// Accuracy: white is 0, dark orange is 1.
const std::vector<double> AccuracyScale = { 0, 1, 0.96, 0.92, 0.5, 0.99, 0.55, 0.23, 1, 0.5, 0.15,
  0.01 };

/// Weights of AttentionMap: white is 0, dark blue is 1.
const std::vector<double> WeightScale = { 0, 1, 1, 1, 0.2, 0.91, 0.95, 1, 0.4, 0.62, 0.79, 0.88,
  0.6, 0.26, 0.57, 0.78, 0.8, 0.03, 0.32, 0.61, 1, 0.03, 0.15, 0.36 };

/// Heat: inferno (van der Walt and Smith), perceptually uniform, from black at 0 to yellow at 1.
const std::vector<double> HeatScale = { 0, 0.001, 0, 0.014, 0.125, 0.129, 0.047, 0.291, 0.25, 0.342,
  0.062, 0.429, 0.375, 0.541, 0.135, 0.415, 0.5, 0.736, 0.216, 0.33, 0.625, 0.894, 0.353, 0.194,
  0.75, 0.978, 0.558, 0.035, 0.875, 0.975, 0.798, 0.206, 1, 0.988, 0.998, 0.645 };

/// Lines of attention, on any background: pale to dark amber.
const std::vector<double> LineScale = { 0, 1, 0.93, 0.66, 0.5, 0.93, 0.66, 0.08, 1, 0.42, 0.25, 0 };

/// Scores, and other values on both sides of 0: white is 0, of scores the decision boundary of the
/// hardmax.
const std::vector<double> SignedScale = { -1, 0.23, 0.3, 0.75, 0, 1, 1, 1, 1, 0.7, 0.02, 0.15 };

double LargestMagnitude(vtkPVArrayInformation* values)
{
  const double* range = values->GetComponentRange(0);
  return std::max({ std::abs(range[0]), std::abs(range[1]), 1e-30 });
}

/// The input of the softmax of AttentionMap: light to dark orange over the range of the data.
std::vector<double> RangeScale(vtkPVArrayInformation* values)
{
  const double* range = values->GetComponentRange(0);
  const double low = range[0];
  const double step = std::max(range[1] - range[0], 1e-30) / 4;
  return { low, 1, 0.96, 0.92, low + step, 0.99, 0.82, 0.64, low + 2 * step, 0.99, 0.55, 0.24,
    low + 3 * step, 0.85, 0.28, 0, low + 4 * step, 0.5, 0.15, 0.02 };
}

/// A scale from 0 to 1, stretched to end at `largest`.
std::vector<double> Stretched(std::vector<double> points, double largest)
{
  for (std::size_t i = 0; i < points.size(); i += 4)
  {
    points[i] *= largest;
  }
  return points;
}

/// The colors of weights, from 0 to the largest value of the data.
std::vector<double> GrowingScale(vtkPVArrayInformation* values)
{
  return Stretched(WeightScale, std::max(values->GetComponentRange(0)[1], 1e-30));
}

/// The largest magnitude that any representation shows of an array of heat or signed values.
double LargestShown(const std::string& array, vtkSMSessionProxyManager* manager)
{
  double largest = 1e-30;
  for (vtkSMProxy* data : ProxiesOf(manager, "representations"))
  {
    const Coloring coloring(data); // of no array if it is a chart
    if (coloring.array == array && (coloring.IsHeat() || coloring.IsSigned()))
    {
      largest = std::max(largest, LargestMagnitude(coloring.arrayInformation));
    }
  }
  return largest;
}

/// The ends of the scales of heat and signed values as they were last set here, by array: another
/// one is the user's.
std::map<std::string, double>& FittedEnds()
{
  static std::map<std::string, double> ends;
  return ends;
}

const std::vector<double>& FittedScale(const Coloring& coloring)
{
  return coloring.IsHeat() ? HeatScale : SignedScale;
}

void SetFitted(vtkSMProxy* table, const Coloring& coloring, double largest)
{
  SetScale(table, Stretched(FittedScale(coloring), largest), true);
  FittedEnds()[coloring.array] = largest;
}

/// The scale of an array whose values have the same range in every image; empty for others.
std::vector<double> FixedScale(const Coloring& coloring)
{
  static const double pi = std::acos(-1.0);
  // Expert Weight is below numbers of experts. Angles from -pi to pi: red for the first token and
  // blue for the second, as in the source post.
  static const std::map<std::string, std::vector<double>> scales = { { "Expert Weight", WordScale },
    { "Copying Score", SignedScale }, { "Weight", LineScale }, { "Weights", WeightScale },
    { "Theta1", { -pi, 1, 0.94, 0.9, 0, 0.94, 0.36, 0.26, pi, 0.4, 0, 0.05 } },
    { "Theta2", { -pi, 0.93, 0.96, 1, 0, 0.32, 0.6, 0.82, pi, 0.03, 0.19, 0.42 } } };
  if (coloring.Shows("Attention") || coloring.array == "Probability")
  {
    return coloring.hasWords ? WordScale : ShareScale;
  }
  const auto found = scales.find(coloring.array);
  return found != scales.end()        ? found->second
         : coloring.Shows("Accuracy") ? AccuracyScale
                                      : std::vector<double>();
}

/// Whether a table has not been rescaled or annotated yet.
bool IsNew(vtkSMProxy* table)
{
  return Number(table, "IndexedLookup") == 0 && Number(table, "ScalarRangeInitialized") == 0;
}

/// Whether a table has the colors with which ParaView begins.
bool HasDefaultColors(vtkSMProxy* table)
{
  vtkSMProxy* prototype =
    table->GetSessionProxyManager()->GetPrototypeProxy(table->GetXMLGroup(), table->GetXMLName());
  const std::vector<double> points = GetDoubles(table, "RGBPoints");
  std::vector<double> begin = GetDoubles(prototype, "RGBPoints");
  for (std::size_t i = 0; i < std::min(points.size(), begin.size()); i += 4)
  {
    begin[i] = points[i]; // a value, before red, green and blue
  }
  return points == begin;
}

/// Whether a table belongs to the user or to another representation. ParaView 6.1 rescales it to
/// the range of the data before it registers the representation that is colored by it.
bool IsOwned(vtkSMProxy* table, vtkPVArrayInformation* values, vtkSMSessionProxyManager* manager)
{
  const std::vector<double> points = GetDoubles(table, "RGBPoints");
  if (values == nullptr || points.empty() || !HasDefaultColors(table) ||
      Number(table, "IndexedLookup") != 0)
  {
    return true;
  }
  const double* range = values->GetComponentRange(values->GetNumberOfComponents() > 1 ? -1 : 0);
  const auto all = ProxiesOf(manager, "representations");
  const auto uses = std::count_if(
    all.begin(), all.end(), [table](vtkSMProxy* data) { return TableOf(data) == table; });
  return points.front() != range[0] || points[points.size() - 4] != range[1] || uses > 1;
}

}

void FitScale(const Coloring& coloring, vtkSMSessionProxyManager* manager)
{
  if (!coloring.IsHeat() && !coloring.IsSigned())
  {
    return;
  }
  vtkNew<vtkSMTransferFunctionManager> tables;
  vtkSMProxy* table = tables->GetColorTransferFunction(coloring.array.c_str(), manager);
  const double largest = LargestShown(coloring.array, manager);
  const double end =
    FittedEnds().emplace(coloring.array, largest).first->second; // new: of a state that was loaded
  if (end != largest && GetDoubles(table, "RGBPoints") == Stretched(FittedScale(coloring), end))
  {
    SetFitted(table, coloring, largest);
  }
}

void MeetLegend(const Coloring& coloring)
{
  if (coloring.HasLegend())
  {
    LegendTitles().emplace(coloring.array, coloring.legend.substr(0, coloring.legend.find('\n')));
  }
}

void PrepareTable(const Coloring& coloring, bool first, vtkSMSessionProxyManager* manager)
{
  const std::vector<double> fixed = FixedScale(coloring);
  const bool score = coloring.Shows("Score") && coloring.arrayInformation != nullptr;
  const bool fitted = coloring.IsFitted() && coloring.arrayInformation != nullptr;
  if (coloring.arrayInformation == nullptr && fixed.empty() && !coloring.ShowsClasses())
  {
    return;
  }
  vtkNew<vtkSMTransferFunctionManager> tables;
  vtkSMProxy* table = tables->GetColorTransferFunction(coloring.array.c_str(), manager);
  const bool isNew = IsNew(table) || (first && !IsOwned(table, coloring.arrayInformation, manager));
  if (coloring.HasLegend())
  {
    SetLegend(table, coloring.array, coloring.legend);
  }
  else if (coloring.ShowsClasses())
  {
    PrepareClassTable(table, std::min(coloring.classes, MaximumLegend), isNew);
  }
  else if (isNew && (coloring.IsHeat() || coloring.IsSigned()))
  {
    SetFitted(table, coloring, LargestShown(coloring.array, manager));
  }
  else if (isNew && fitted)
  {
    SetScale(table,
      coloring.IsShare() ? GrowingScale(coloring.arrayInformation)
                         : RangeScale(coloring.arrayInformation),
      false);
  }
  else if (isNew && (score || !fixed.empty()))
  {
    SetScale(table,
      score ? Stretched(SignedScale, LargestMagnitude(coloring.arrayInformation)) : fixed, true);
  }
  else if (isNew && HasDefaultColors(table)) // else the user has chosen another default
  {
    // ParaView's default before 6.0, so that pictures do not depend on its version.
    vtkSMTransferFunctionProxy::ApplyPreset(table, "Cool to Warm", !IsNew(table));
  }
}

void SetMapScalars(vtkSMProxy* representation, bool map)
{
  vtkSMPropertyHelper mapScalars(representation, "MapScalars", true);
  if ((mapScalars.GetAsInt() != 0) == map)
  {
    return;
  }
  struct Kept
  {
    vtkSMProxy* proxy;
    const char* property;
    std::vector<double> points;
  };
  std::vector<Kept> all;
  for (const auto& [name, property] :
    { std::pair("LookupTable", "RGBPoints"), std::pair("ScalarOpacityFunction", "Points") })
  {
    if (vtkSMProxy* proxy = vtkSMPropertyHelper(representation, name, true).GetAsProxy())
    {
      all.push_back({ proxy, property, GetDoubles(proxy, property) });
    }
  }
  mapScalars.Set(map ? 1 : 0);
  for (const auto& [proxy, property, points] : all)
  {
    if (GetDoubles(proxy, property) != points)
    {
      SetDoubles(proxy, property, points);
      proxy->UpdateVTKObjects();
    }
  }
}

}
