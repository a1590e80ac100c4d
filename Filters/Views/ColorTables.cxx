#include "ColorTables.h"

#include "ClassPalette.h"
#include "Coloring.h"

#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMTransferFunctionProxy.h>

#include <algorithm>
#include <cmath>
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

/// Makes class k the entry "k" of the legend.
void SetClassNames(vtkSMProxy* table, int known, int classes)
{
  vtkSMPropertyHelper annotations(table, "Annotations");
  annotations.SetNumberOfElements(static_cast<unsigned int>(2 * classes));
  for (int k = known; k < classes; ++k)
  {
    const std::string text = std::to_string(k);
    annotations.Set(static_cast<unsigned int>(2 * k), text.c_str());
    annotations.Set(static_cast<unsigned int>(2 * k + 1), text.c_str());
  }
}

/// Gives each class from `known` to `classes` a legend entry and a color.
void SetClassTable(vtkSMProxy* table, int known, int classes)
{
  std::vector<double> colors = GetDoubles(table, "IndexedColors");
  colors.resize(std::min(colors.size(), static_cast<std::size_t>(3 * known)));
  for (int k = static_cast<int>(colors.size() / 3); k < classes; ++k)
  {
    for (const std::uint8_t c : atlas::ClassColor(k))
    {
      colors.push_back(c / 255.);
    }
  }
  SetClassNames(table, known, classes);
  SetDoubles(table, "IndexedColors", colors);
  // Otherwise the GUI would replace the legend by the values in the data, and search all of them at
  // each Apply.
  vtkSMPropertyHelper(table, "AnnotationsInitialized", true).Set(1);
  KeepRange(table);
  vtkSMPropertyHelper(table, "IndexedLookup").Set(1);
  table->UpdateVTKObjects();
}

/// Completes the table of a model's classes: a new one, or one with fewer classes.
void PrepareClassTable(vtkSMProxy* table, int classes, bool isNew)
{
  const auto known =
    static_cast<int>(vtkSMPropertyHelper(table, "Annotations").GetNumberOfElements() / 2);
  const bool isIndexed = vtkSMPropertyHelper(table, "IndexedLookup").GetAsInt() != 0;
  if (isNew || (isIndexed && known < classes))
  {
    SetClassTable(table, isNew ? 0 : known, classes);
  }
}

/// A continuous scale through `points` (value, red, green, blue).
void SetScale(vtkSMProxy* table, const std::vector<double>& points, bool keepRange)
{
  SetDoubles(table, "RGBPoints", points);
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

/// Accuracy: white is 0, dark orange is 1.
const std::vector<double> AccuracyScale = { 0, 1, 0.96, 0.92, 0.5, 0.99, 0.55, 0.23, 1, 0.5, 0.15,
  0.01 };

/// Weights of AttentionMap: white is 0, dark blue is 1.
const std::vector<double> WeightScale = { 0, 1, 1, 1, 0.2, 0.91, 0.95, 1, 0.4, 0.62, 0.79, 0.88,
  0.6, 0.26, 0.57, 0.78, 0.8, 0.03, 0.32, 0.61, 1, 0.03, 0.15, 0.36 };

/// Scores: white is 0, the decision boundary of the hardmax, for any range.
std::vector<double> ScoreScale(vtkPVArrayInformation* scores)
{
  const double* range = scores->GetComponentRange(0);
  const double largest = std::max({ std::abs(range[0]), std::abs(range[1]), 1e-30 });
  return { -largest, 0.23, 0.3, 0.75, 0, 1, 1, 1, largest, 0.7, 0.02, 0.15 };
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

/// Angles from -pi to pi: red for the first token and blue for the second, as in the source post.
std::vector<double> AngleScale(bool first)
{
  const double pi = std::acos(-1.0);
  return first
           ? std::vector<double>{ -pi, 1, 0.94, 0.9, 0, 0.94, 0.36, 0.26, pi, 0.4, 0, 0.05 }
           : std::vector<double>{ -pi, 0.93, 0.96, 1, 0, 0.32, 0.6, 0.82, pi, 0.03, 0.19, 0.42 };
}

/// Queries and keys: the first two colors of the classes.
std::vector<double> KindScale()
{
  std::vector<double> points;
  for (const int kind : { 0, 1 })
  {
    points.push_back(kind);
    for (const std::uint8_t c : atlas::ClassColor(kind))
    {
      points.push_back(c / 255.);
    }
  }
  return points;
}

/// The scale of an array whose values have the same range in every image; empty for others.
std::vector<double> FixedScale(const Coloring& coloring)
{
  if (coloring.Shows("Attention") || coloring.array == "Probability")
  {
    return ShareScale;
  }
  if (coloring.Shows("Accuracy"))
  {
    return AccuracyScale;
  }
  if (coloring.array == "Weights")
  {
    return WeightScale;
  }
  if (coloring.array == "Kind")
  {
    return KindScale();
  }
  if (coloring.array == "Theta1" || coloring.array == "Theta2")
  {
    return AngleScale(coloring.array == "Theta1");
  }
  return {};
}

/// Whether a table has not been rescaled or annotated yet.
bool IsNew(vtkSMProxy* table)
{
  return vtkSMPropertyHelper(table, "IndexedLookup").GetAsInt() == 0 &&
         vtkSMPropertyHelper(table, "ScalarRangeInitialized", true).GetAsInt() == 0;
}

/// Gives a table the color map that was ParaView's default before 6.0, so that pictures do not
/// depend on its version; but not if the user has chosen another default.
void SetDefaultMap(vtkSMProxy* table)
{
  vtkSMProxy* prototype =
    table->GetSessionProxyManager()->GetPrototypeProxy(table->GetXMLGroup(), table->GetXMLName());
  if (GetDoubles(table, "RGBPoints") == GetDoubles(prototype, "RGBPoints"))
  {
    vtkSMTransferFunctionProxy::ApplyPreset(table, "Cool to Warm", false);
  }
}

}

void PrepareTable(const Coloring& coloring, vtkSMSessionProxyManager* manager)
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
  const bool isNew = IsNew(table);
  if (coloring.ShowsClasses())
  {
    PrepareClassTable(table, std::min(coloring.classes, MaximumLegend), isNew);
  }
  else if (isNew && fitted)
  {
    SetScale(table, RangeScale(coloring.arrayInformation), false);
  }
  else if (isNew && (score || !fixed.empty()))
  {
    SetScale(table, score ? ScoreScale(coloring.arrayInformation) : fixed, true);
  }
  else if (isNew)
  {
    SetDefaultMap(table);
  }
}

void SetMapScalars(vtkSMProxy* representation, bool map)
{
  vtkSMPropertyHelper mapScalars(representation, "MapScalars", true);
  if ((mapScalars.GetAsInt() != 0) == map)
  {
    return;
  }
  vtkSMProxy* table = vtkSMPropertyHelper(representation, "LookupTable", true).GetAsProxy();
  vtkSMProxy* opacities =
    vtkSMPropertyHelper(representation, "ScalarOpacityFunction", true).GetAsProxy();
  const std::vector<double> colors =
    table != nullptr ? GetDoubles(table, "RGBPoints") : std::vector<double>();
  const std::vector<double> points =
    opacities != nullptr ? GetDoubles(opacities, "Points") : std::vector<double>();
  mapScalars.Set(map ? 1 : 0);
  if (table != nullptr && GetDoubles(table, "RGBPoints") != colors)
  {
    SetDoubles(table, "RGBPoints", colors);
    table->UpdateVTKObjects();
  }
  if (opacities != nullptr && GetDoubles(opacities, "Points") != points)
  {
    SetDoubles(opacities, "Points", points);
    opacities->UpdateVTKObjects();
  }
}

}
