#include "ColorTables.h"

#include "ColorBars.h"
#include "Coloring.h"
#include "Drawing/ClassPalette.h"
#include "ProxyValues.h"

#include <vtkPVArrayInformation.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMTransferFunctionProxy.h>
#include <vtkSMViewProxy.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

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

/// The table of the colors of a representation, its own or that of all with its array.
vtkSMProxy* TableFor(vtkSMProxy* representation, const Coloring& coloring)
{
  if (HasOwnTable(representation) && TableOf(representation) != nullptr)
  {
    return TableOf(representation);
  }
  vtkNew<vtkSMTransferFunctionManager> tables;
  return tables->GetColorTransferFunction(
    coloring.array.c_str(), representation->GetSessionProxyManager());
}

/// The titles of legends and bars as they were last set here, by array, or by the table of one
/// representation: another one is the user's.
std::map<std::string, std::string>& BarTitles()
{
  static std::map<std::string, std::string> titles;
  return titles;
}

std::string KeyOf(vtkSMProxy* representation, const Coloring& coloring)
{
  return HasOwnTable(representation) ? TableFor(representation, coloring)->GetGlobalIDAsString()
                                     : coloring.array;
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

/// An entry of a legend: what it means, and its color in 255ths.
struct Entry
{
  std::string text;
  std::array<double, 3> color = {};
};

/// A legend that is written as one text, see TokenLegend.h in Filters/Tokens.
struct Legend
{
  std::string title;
  std::vector<Entry> entries;

  explicit Legend(const std::string& written)
  {
    std::istringstream lines(written);
    std::getline(lines, this->title);
    std::string line;
    while (std::getline(lines, line))
    {
      Entry& entry = this->entries.emplace_back();
      std::istringstream words(line);
      words >> entry.color[0] >> entry.color[1] >> entry.color[2] >> std::ws;
      std::getline(words, entry.text);
    }
  }
};

/// What the user has made of an entry.
struct Change
{
  std::optional<std::string> text;
  std::optional<std::array<double, 3>> color; ///< from 0 to 1
};

/// The entries of a legend as they were last set here, and what the user has changed since the
/// legend is there, by their texts.
struct KnownEntries
{
  std::vector<Entry> entries;
  std::map<std::string, Change> changes;

  bool Has(const std::string& text) const
  {
    return std::any_of(this->entries.begin(), this->entries.end(),
      [&text](const Entry& entry) { return entry.text == text; });
  }

  /// Takes what differs in a table; nothing if it has another number of entries.
  void FindChanges(const std::vector<std::string>& annotations, const std::vector<double>& colors)
  {
    if (annotations.size() != 2 * this->entries.size() || colors.size() != 3 * this->entries.size())
    {
      return;
    }
    for (std::size_t i = 0; i < this->entries.size(); ++i)
    {
      const Entry& entry = this->entries[i];
      const std::string& text = annotations[2 * i + 1];
      const std::array<double, 3> color = { colors[3 * i], colors[3 * i + 1], colors[3 * i + 2] };
      const bool isColored = !std::equal(color.begin(), color.end(), entry.color.begin(),
        [](double a, double b) { return std::lround(255 * a) == std::lround(b); });
      this->changes[entry.text] = { text != entry.text ? std::optional(text) : std::nullopt,
        isColored ? std::optional(color) : std::nullopt };
    }
  }
};

/// By what BarTitles is, too.
std::map<std::string, KnownEntries>& AllKnownEntries()
{
  static std::map<std::string, KnownEntries> all;
  return all;
}

/// Makes a legend that of a table, unless it is; then its title alone. What the user has changed
/// remains when only some entries have gone or come.
void SetLegend(vtkSMProxy* table, const std::string& key, const Legend& legend)
{
  const std::vector<std::string> annotations = TextsOf({ table, "Annotations" });
  KnownEntries& known = AllKnownEntries()[key];
  known.FindChanges(annotations, GetDoubles(table, "IndexedColors"));
  std::string& shown = BarTitles().emplace(key, legend.title).first->second;
  const std::string before = std::exchange(shown, legend.title);
  const bool isSame =
    !annotations.empty() && !known.entries.empty() &&
    (before == legend.title || std::any_of(legend.entries.begin(), legend.entries.end(),
                                 [&known](const Entry& entry) { return known.Has(entry.text); }));
  if (!isSame)
  {
    known.changes.clear();
  }
  known.entries = legend.entries;

  std::vector<std::string> entries;
  std::vector<double> colors;
  for (const Entry& entry : legend.entries)
  {
    const Change& change = known.changes[entry.text];
    std::array<double, 3> color = entry.color;
    std::for_each(color.begin(), color.end(), [](double& channel) { channel /= 255; });
    color = change.color.value_or(color);
    colors.insert(colors.end(), color.begin(), color.end());
    entries.insert(
      entries.end(), { std::to_string(entries.size() / 2), change.text.value_or(entry.text) });
  }
  std::vector<std::string> same = annotations;
  for (std::size_t i = 0; i < std::min(same.size(), entries.size()); i += 2)
  {
    same[i] = entries[i]; // values that the user has changed remain
  }
  if (same != entries && !isSame)
  {
    TitleBars(table, legend.title, nullptr);
  }
  else if (before != legend.title)
  {
    TitleBars(table, legend.title, &before);
  }
  if (same != entries)
  {
    SetCategories(table, entries, colors);
    FitBars(table, annotations.size() / 2);
  }
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

/// The largest magnitude that any representation shows of an array of heat or signed values.
double LargestShown(const std::string& array, vtkSMSessionProxyManager* manager)
{
  double largest = 1e-30;
  for (vtkSMProxy* data : ProxiesOf(manager, "representations"))
  {
    const Coloring coloring(data); // of no array if it is a chart
    if (coloring.array == array && (coloring.IsHeat() || coloring.IsSigned()))
    {
      largest = std::max(largest, coloring.LargestMagnitude());
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

void SetFitted(vtkSMProxy* table, const Coloring& coloring, double largest)
{
  SetScale(table, coloring.Scale(largest), true);
  FittedEnds()[coloring.array] = largest;
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
  const std::string title = coloring.Title();
  const std::string before = std::exchange(BarTitles()[coloring.array], title);
  if (!before.empty() && before != title)
  {
    TitleBars(table, title, &before);
  }
  const double largest = LargestShown(coloring.array, manager);
  const double end =
    FittedEnds().emplace(coloring.array, largest).first->second; // new: of a state that was loaded
  if (end != largest && GetDoubles(table, "RGBPoints") == coloring.Scale(end))
  {
    SetFitted(table, coloring, largest);
  }
}

void MeetLegend(const Coloring& coloring, vtkSMProxy* representation)
{
  if (coloring.HasLegend())
  {
    const std::string key = KeyOf(representation, coloring);
    Legend legend(coloring.legend);
    BarTitles().emplace(key, std::move(legend.title));
    KnownEntries known = { std::move(legend.entries), {} };
    // The state may have the legend of other data.
    const std::vector<std::string> shown =
      TextsOf({ TableFor(representation, coloring), "Annotations" });
    const bool isOfData = std::any_of(
      shown.begin(), shown.end(), [&known](const std::string& text) { return known.Has(text); });
    AllKnownEntries()[key] = isOfData ? std::move(known) : KnownEntries();
  }
}

bool HasOwnTable(vtkSMProxy* representation)
{
  return Number(representation, "UseSeparateColorMap") != 0;
}

bool IsLegendOfOthers(const Coloring& coloring, vtkSMProxy* representation)
{
  const auto sourceOf = [](vtkSMProxy* data)
  { return vtkSMPropertyHelper(data, "Input", true).GetAsProxy(); };
  const auto all = ProxiesOf(representation->GetSessionProxyManager(), "representations");
  return coloring.HasLegend() && representation->GetProperty("UseSeparateColorMap") != nullptr &&
         !HasOwnTable(representation) &&
         std::any_of(all.begin(), all.end(),
           [&](vtkSMProxy* other)
           {
             const Coloring shown(other); // of no array if it is a chart
             return shown.array == coloring.array && sourceOf(other) != sourceOf(representation) &&
                    vtkSMViewProxy::FindView(other) != vtkSMViewProxy::FindView(representation) &&
                    shown.HasLegend() && shown.legend != coloring.legend &&
                    Number(other, "Visibility") != 0 && !HasOwnTable(other);
           });
}

void PrepareTable(const Coloring& coloring, bool first, vtkSMProxy* representation)
{
  const std::vector<double> scale = coloring.Scale(coloring.LargestMagnitude());
  if (coloring.arrayInformation == nullptr && scale.empty() && !coloring.ShowsClasses())
  {
    return;
  }
  vtkSMSessionProxyManager* manager = representation->GetSessionProxyManager();
  vtkSMProxy* table = TableFor(representation, coloring);
  const bool isNew = IsNew(table) || (first && !IsOwned(table, coloring.arrayInformation, manager));
  if (coloring.HasLegend())
  {
    SetLegend(table, KeyOf(representation, coloring), Legend(coloring.legend));
  }
  else if (coloring.ShowsClasses())
  {
    PrepareClassTable(table, std::min(coloring.classes, atlas::MaximumLegend), isNew);
  }
  else if (isNew && (coloring.IsHeat() || coloring.IsSigned()))
  {
    SetFitted(table, coloring, LargestShown(coloring.array, manager));
  }
  else if (isNew && !scale.empty())
  {
    SetScale(table, scale, !coloring.IsFitted());
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
