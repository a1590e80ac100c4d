#include "vtkHeadScatter.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/Pi.h"
#include "Corpus/HeadClusters.h"
#include "CorpusConversion.h"
#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "ListArrays.h"
#include "PanelTitles.h"
#include "Shapes.h"
#include "Signs.h"
#include "Task.h"

#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using Columns = std::vector<std::pair<std::string, std::vector<double>>>;

const std::vector<double>& FindColumn(
  const Columns& columns, const std::string& name, const char* property)
{
  const auto found = std::find_if(
    columns.begin(), columns.end(), [&](const auto& column) { return column.first == name; });
  if (found == columns.end())
  {
    throw atlas::OptionError(property, ": expected one of ",
      atlas::Joined(columns, [](const auto& column) { return column.first; }), ", found '", name,
      "'.");
  }
  return found->second;
}

/// A column with its unit, where the name does not say it.
std::string TitleOf(const std::string& column)
{
  using Unit = std::pair<const char*, const char*>;
  for (const auto& [part, unit] : { Unit("Distance", "tokens"), Unit("Next Token Effect", "logits"),
         Unit("Written Norm", "length"), Unit("Entropy", "share of its maximum"),
         Unit("Strongest Is", "share of queries"), Unit("Sink Rate", "share of queries"),
         Unit("Copying", "share of raised logits"), Unit("Concentration", "difference of weights"),
         Unit("Sink", "weight"), Unit("Token", "weight"), Unit("Induction", "weight"),
         Unit("Prefix Matching", "weight") })
  {
    if (column.find(part) != std::string::npos)
    {
      return column + " (" + unit + ")";
    }
  }
  return column;
}

/// What circles, their areas and their distances mean.
std::string SignsOf(const std::string& size, const std::vector<double>& values, int layout)
{
  std::string signs = "A circle is a head (layer.head).";
  if (!size.empty())
  {
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    signs += " Its area: " + TitleOf(size) + ", from " + ShortNumber(*least) + " (smallest) to " +
             ShortNumber(*largest) + ".";
  }
  return layout == vtkHeadScatter::COLUMNS ? signs
         : layout == vtkHeadScatter::SIMILAR_ATTENTION
           ? signs + " The nearer two are, the more often they attend to the same key."
           : signs + " The nearer two are, the more alike their statistics.";
}

/// Each cluster with its color and first heads.
std::string LegendOf(
  const std::vector<std::int32_t>& clusters, const std::vector<std::string>& names)
{
  constexpr std::size_t MostNames = 4;
  std::vector<std::vector<std::string>> members;
  for (std::size_t h = 0; h < clusters.size(); ++h)
  {
    members.resize(std::max<std::size_t>(members.size(), clusters[h] + 1));
    members[clusters[h]].push_back(names[h]);
  }
  atlas::ColorLegend legend("Cluster: heads");
  for (std::size_t cluster = 0; cluster < members.size(); ++cluster)
  {
    std::string text = std::to_string(cluster) + ":";
    const std::vector<std::string>& heads = members[cluster];
    for (std::size_t i = 0; i < std::min(heads.size(), MostNames); ++i)
    {
      text += " " + heads[i];
    }
    text += heads.size() > MostNames ? " +" + std::to_string(heads.size() - MostNames) : "";
    legend.Add(atlas::ClassColor(static_cast<std::int32_t>(cluster)), text);
  }
  return legend.Text();
}

/// An axis from a round number below all values to one above.
struct Axis
{
  double first = 0;
  double step = 1;
  int steps = 1;

  explicit Axis(const std::vector<double>& values)
  {
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    const double range = *largest > *least ? *largest - *least : std::max(std::abs(*largest), 1.);
    const double rough = range / 4;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double mantissa = rough / power;
    this->step = power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
    this->first = std::floor(*least / this->step) * this->step;
    this->steps =
      std::max(1, static_cast<int>(std::ceil((*largest - this->first) / this->step - 1e-9)));
  }

  /// Where a value is, from 0 to 1.
  double At(double value) const { return (value - this->first) / (this->step * this->steps); }

  std::string TextAt(int tick) const
  {
    const double value = this->first + this->step * tick;
    std::array<char, 32> text = {};
    std::snprintf(text.data(), text.size(), "%.6g", std::abs(value) < this->step / 2 ? 0. : value);
    return text.data();
  }
};

/// Places from ScaleDistances in the square from 0 to 1.
std::vector<std::array<double, 2>> PlacesOf(
  const atlas::CorpusStatistics& statistics, atlas::ClusterDistance distance)
{
  const Eigen::MatrixX2d scaled = atlas::ScaleDistances(atlas::HeadDistances(statistics, distance));
  const double most = scaled.cwiseAbs().maxCoeff();
  const double scale = most > 0 ? 0.47 / most : 0;
  std::vector<std::array<double, 2>> places;
  places.reserve(statistics.heads.size());
  for (std::int64_t i = 0; i < scaled.rows(); ++i)
  {
    places.push_back({ 0.5 + scale * scaled(i, 0), 0.5 + scale * scaled(i, 1) });
  }
  return places;
}

/// Radii of discs whose areas grow with values.
std::vector<double> RadiiOf(const std::vector<double>& values, double largest)
{
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::vector<double> radii;
  for (const double value : values)
  {
    const double share = *most > *least ? (value - *least) / (*most - *least) : 1;
    radii.push_back(largest * std::sqrt(0.1 + 0.9 * share));
  }
  return radii;
}

constexpr int Corners = 32; ///< of a disc

std::vector<std::array<double, 2>> DiscAround(const std::array<double, 2>& place, double radius)
{
  std::vector<std::array<double, 2>> corners;
  for (int i = 0; i < Corners; ++i)
  {
    const double angle = 2 * atlas::Pi * i / Corners;
    corners.push_back({ place[0] + radius * std::cos(angle), place[1] + radius * std::sin(angle) });
  }
  return corners;
}

}

struct vtkHeadScatter::Results
{
  LastResult<std::vector<std::array<double, 2>>> places; ///< unless by columns
  LastResult<std::vector<atlas::HeadMerge>> merges;
};

vtkStandardNewMacro(vtkHeadScatter);

vtkHeadScatter::vtkHeadScatter()
  : vtkCorpusAlgorithm({ "vtkPolyData", "vtkPolyData", "vtkPolyData" })
  , Last(std::make_unique<Results>())
{
}

void vtkHeadScatter::Show(const atlas::CorpusStatistics& statistics, Task& task)
{
  const std::vector<atlas::HeadPlace>& heads = statistics.places;
  const Columns columns = ColumnsOf(statistics);
  const auto keyOf = [&](atlas::ClusterDistance distance)
  { return MakeKey(TimeOf(task.Input<vtkTable>()), static_cast<int>(distance)); };
  std::vector<std::array<double, 2>> places(heads.size());
  PanelTitles labels;
  Shapes lines;
  if (this->Layout == COLUMNS)
  {
    const std::vector<double>& x = FindColumn(columns, this->XColumn, "XColumn");
    const std::vector<double>& y = FindColumn(columns, this->YColumn, "YColumn");
    const Axis xAxis(x);
    const Axis yAxis(y);
    for (std::size_t h = 0; h < heads.size(); ++h)
    {
      places[h] = { xAxis.At(x[h]), yAxis.At(y[h]) };
    }
    constexpr double Tick = 0.015;
    constexpr double Axes = -0.06; // apart from the largest discs
    lines.Add({ { Axes, Axes }, { 1, Axes } });
    lines.Add({ { Axes, Axes }, { Axes, 1 } });
    for (int tick = 0; tick <= xAxis.steps; ++tick)
    {
      const double at = static_cast<double>(tick) / xAxis.steps;
      lines.Add({ { at, Axes }, { at, Axes - Tick } });
      labels.AddBelow(at, Axes - Tick, xAxis.TextAt(tick));
    }
    for (int tick = 0; tick <= yAxis.steps; ++tick)
    {
      const double at = static_cast<double>(tick) / yAxis.steps;
      lines.Add({ { Axes, at }, { Axes - Tick, at } });
      labels.AddToTheLeft(Axes - 2 * Tick, at, yAxis.TextAt(tick));
    }
    labels.AddBelow(0.5, Axes - 0.1, TitleOf(this->XColumn));
    labels.Add(Axes - 0.09, 1.05, TitleOf(this->YColumn));
  }
  else
  {
    const auto distance = this->Layout == SIMILAR_ATTENTION ? atlas::ClusterDistance::Agreement
                                                            : atlas::ClusterDistance::Statistics;
    places =
      this->Last->places.Get(task, keyOf(distance), [&] { return PlacesOf(statistics, distance); });
  }
  // Discs of all heads cover a part of the square that does not depend on their number.
  const double largest =
    std::clamp(0.12 / std::sqrt(static_cast<double>(heads.size())), 0.004, 0.025);
  const std::vector<double> sizes = this->SizeColumn.empty()
                                      ? std::vector<double>()
                                      : FindColumn(columns, this->SizeColumn, "SizeColumn");
  const std::vector<double> radii =
    sizes.empty() ? std::vector<double>(heads.size(), largest) : RadiiOf(sizes, 1.5 * largest);

  auto* output = task.Output<vtkPolyData>(0);
  AddSigns(output->GetFieldData(), SignsOf(this->SizeColumn, sizes, this->Layout));
  Shapes discs;
  std::vector<std::string> names;
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    discs.Add(DiscAround(places[h], radii[h]));
    names.push_back(std::to_string(heads[h].layer) + "." + std::to_string(heads[h].head));
    labels.AddAround(places[h][0], places[h][1], radii[h], names.back());
  }
  discs.MoveToPolys(output);
  // Points have them, too, as views select points.
  std::vector<atlas::HeadPlace> headOfPoint;
  for (const atlas::HeadPlace& head : heads)
  {
    headOfPoint.insert(headOfPoint.end(), Corners, head);
  }
  ListArrays(headOfPoint, output->GetPointData())
    .Int(Names::Layer, &atlas::HeadPlace::layer)
    .Int(Names::Head, &atlas::HeadPlace::head);
  vtkCellData* data = output->GetCellData();
  ListArrays(heads, data)
    .Int(Names::Layer, &atlas::HeadPlace::layer)
    .Int(Names::Head, &atlas::HeadPlace::head);
  ListArrays(names, data).Text(Names::Name);
  const auto by = this->ClusterBy == AGREEMENT ? atlas::ClusterDistance::Agreement
                                               : atlas::ClusterDistance::Statistics;
  const std::vector<atlas::HeadMerge>& merges = this->Last->merges.Get(task, keyOf(by),
    [&] { return atlas::MergeHeads(atlas::HeadDistances(statistics, by), task.Progress()); });
  const std::vector<std::int32_t> clusters = atlas::ClustersOf(
    merges, std::min<std::int64_t>(this->Clusters, static_cast<std::int64_t>(heads.size())));
  ListArrays(clusters, data).Int(Names::Cluster).Tuples(Names::ClusterColor, atlas::ClassColor);
  AddField(output->GetFieldData(), Names::ClusterColorLegend, LegendOf(clusters, names));
  for (const auto& [name, values] : columns)
  {
    data->AddArray(MakeArray<vtkDoubleArray>(name, values));
  }
  SetFormat(output, Formats::HeadScatter);
  labels.MoveTo(task.Output<vtkPolyData>(1), Formats::HeadScatterLabels);
  auto* axes = task.Output<vtkPolyData>(2);
  lines.MoveToLines(axes);
  SetFormat(axes, Formats::HeadScatterAxes);
}
