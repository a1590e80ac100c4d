#include "vtkTokenColors.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "Drawing/TokenPalette.h"
#include "ListArrays.h"
#include "PointArrays.h"
#include "RecordingConversion.h"
#include "Task.h"
#include "TokenLegend.h"
#include "TokenValues.h"

#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using atlas::TokenKind;

namespace
{

constexpr double Infinity = std::numeric_limits<double>::infinity();

/// Points between two reports of progress, each a chance to cancel.
constexpr vtkIdType PointsPerStep = vtkIdType{ 1 } << 20;

/// The range of the values of a head.
struct Range
{
  double least = Infinity;
  double largest = -Infinity;

  void Add(double value)
  {
    this->least = std::min(this->least, value);
    this->largest = std::max(this->largest, value);
  }
};

/// Everything that colors depend on, of the tokens of this rank.
struct Tokens
{
  std::vector<std::int64_t> kinds;            ///< empty if unknown
  std::vector<double> values;                 ///< empty for Kind and the colors of patches
  std::vector<std::array<double, 3>> patches; ///< empty but for those
  std::vector<std::size_t> head; ///< of each value: an index of `ranges`; only for Norm
  std::vector<Range> ranges;     ///< only for Norm

  Tokens() = default;
  Tokens(const TokenValues& source, TokenQuantity quantity)
    : kinds(source.Kinds())
  {
    switch (quantity)
    {
      case TokenQuantity::Kind:
        break;
      case TokenQuantity::Hue:
      case TokenQuantity::Brightness:
      case TokenQuantity::PatchColor:
        this->patches = source.PatchColors();
        break;
      default:
        this->values = source.Numbers(quantity);
    }
  }

  TokenKind KindOf(vtkIdType i) const
  {
    const bool isKey = !this->kinds.empty() && this->kinds[i] != 0;
    return isKey ? TokenKind::Key : TokenKind::Query;
  }
};

Tokens ReadTokens(vtkDataSetAttributes* arrays, vtkIdType count, vtkMultiBlockDataSet* recording,
  TokenQuantity quantity)
{
  if (recording == nullptr || recording->GetNumberOfBlocks() == 0)
  {
    return { TokenValues(arrays, count, nullptr), quantity };
  }
  const atlas::Recording source = ToRecording(recording);
  return { TokenValues(arrays, count, &source), quantity };
}

void RequirePeriods(int periods)
{
  atlas::ThrowIf<atlas::OptionError>(periods < 1 || periods > atlas::BaseColorCount,
    "Periods: expected 1 to ", atlas::BaseColorCount, ", found ", periods, ".");
}

/// Finds the range of each head, over all ranks. Returns whether there is one head only.
bool FindHeadRanges(const std::vector<HeadRows>& heads, const RankGroup& ranks, Tokens& tokens)
{
  std::vector<double> mine; // layer, head, least, largest
  tokens.head.resize(tokens.values.size());
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    Range range;
    for (const vtkIdType i : heads[h].rows)
    {
      range.Add(tokens.values[i]);
      tokens.head[i] = h;
    }
    mine.insert(mine.end(), { static_cast<double>(heads[h].layer),
                              static_cast<double>(heads[h].head), range.least, range.largest });
  }
  const std::vector<double> all = ranks.Gather(mine);
  std::map<std::pair<double, double>, Range> byHead;
  for (std::size_t i = 0; i < all.size(); i += 4)
  {
    Range& range = byHead[{ all[i], all[i + 1] }];
    range.Add(all[i + 2]);
    range.Add(all[i + 3]);
  }
  for (std::size_t i = 0; i < mine.size(); i += 4)
  {
    tokens.ranges.push_back(byHead[{ mine[i], mine[i + 1] }]);
  }
  return byHead.size() == 1;
}

/// The scale over all ranks.
TokenScale FindScale(TokenQuantity quantity, int periods, const std::vector<HeadRows>& heads,
  const RankGroup& ranks, Tokens& tokens)
{
  TokenScale scale;
  scale.quantity = quantity;
  scale.periods = periods;
  if (quantity == TokenQuantity::Norm)
  {
    scale.hasOneHead = FindHeadRanges(heads, ranks, tokens);
  }
  double largest = 0;
  double least = Infinity;
  double hasUnknown = 0;
  for (const double value : tokens.values)
  {
    largest = std::max(largest, value);
    least = std::min(least, value);
    hasUnknown = value < 0 ? 1 : hasUnknown;
  }
  for (const std::array<double, 3>& patch : tokens.patches)
  {
    hasUnknown = std::isnan(patch[0]) ? 1 : hasUnknown;
  }
  const auto has = [&tokens](std::int64_t kind)
  { return std::count(tokens.kinds.begin(), tokens.kinds.end(), kind) > 0 ? 1. : 0.; };
  const std::vector<double> all =
    ranks.Gather(std::vector<double>{ largest, -least, hasUnknown, has(0), has(1) });
  const auto most = [&all](std::size_t column)
  {
    double found = -Infinity;
    for (std::size_t i = column; i < all.size(); i += 5)
    {
      found = std::max(found, all[i]);
    }
    return found;
  };
  const bool isShare =
    quantity == TokenQuantity::RelativePosition || quantity == TokenQuantity::Brightness;
  scale.largest = isShare ? 1 : most(0);
  scale.least = quantity == TokenQuantity::Norm ? -most(1) : 0;
  scale.hasUnknown = most(2) > 0;
  scale.hasQueries = most(3) > 0;
  scale.hasKeys = most(4) > 0;
  return scale;
}

/// The place of a value in its range, 0 to 1; NaN if it is unknown.
double ShareOf(const TokenScale& scale, const Tokens& tokens, std::size_t i)
{
  const double value = tokens.values[i];
  if (scale.quantity == TokenQuantity::Norm)
  {
    const Range& range = tokens.ranges[tokens.head[i]];
    return range.largest > range.least ? (value - range.least) / (range.largest - range.least) : 0;
  }
  if (value < 0)
  {
    return UnknownValue;
  }
  if (scale.quantity == TokenQuantity::TokenCount)
  {
    return scale.largest > 1 ? std::log(std::max(value, 1.)) / std::log(scale.largest) : 0;
  }
  return scale.largest > 0 ? value / scale.largest : 0;
}

atlas::Rgb ColorOf(const TokenScale& scale, const Tokens& tokens, vtkIdType row)
{
  const std::size_t i = row;
  const TokenKind kind = tokens.KindOf(row);
  switch (scale.quantity)
  {
    case TokenQuantity::Kind:
      return atlas::KindColor(kind);
    case TokenQuantity::PositionMod5:
      return atlas::PeriodicColor(kind, static_cast<std::int64_t>(tokens.values[i]), scale.periods);
    case TokenQuantity::PatchColor:
      return atlas::ToBytes(tokens.patches[i]);
    case TokenQuantity::Brightness:
      return atlas::ShadedColor(kind,
        std::isnan(tokens.patches[i][0]) ? UnknownValue : atlas::ToHsv(tokens.patches[i]).value);
    case TokenQuantity::Hue:
    {
      const atlas::Hsv hsv = atlas::ToHsv(tokens.patches[i]);
      return hsv.saturation > 0 ? atlas::HueColor(hsv.hue) : atlas::ToBytes({ UnknownValue, 0, 0 });
    }
    default:
      return atlas::ShadedColor(kind, ShareOf(scale, tokens, i));
  }
}

}

vtkStandardNewMacro(vtkTokenColors);

vtkTokenColors::vtkTokenColors()
  : vtkTaskAlgorithm({ "vtkDataSet|vtkTable", "vtkMultiBlockDataSet?" },
      { "=vtkDataObject", "vtkTable" }, TOGETHER)
{
}

void vtkTokenColors::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  vtkDataSetAttributes* arrays = TokenAttributes(input);
  const vtkIdType count = TokenRows(input);
  const auto quantity = static_cast<TokenQuantity>(this->By);
  RequirePeriods(this->Periods);
  RequireMemory(3. * static_cast<double>(count),
    "the colors of " + std::to_string(count) + " tokens", "show fewer heads.");
  const auto colors = NewTuples<vtkUnsignedCharArray>(Names::TokenColor, 3, count);
  Tokens tokens;
  if (count > 0)
  {
    auto* recording = task.Input<vtkMultiBlockDataSet>(1);
    tokens = ReadTokens(
      arrays, count, recording == nullptr ? nullptr : FindPartOf(input, recording), quantity);
  }
  std::vector<HeadRows> heads;
  if (quantity == TokenQuantity::Norm)
  {
    heads = HeadsOf(arrays, count);
  }
  const TokenScale scale = FindScale(quantity, this->Periods, heads, task.Ranks(), tokens);
  ParallelSteps(count, PointsPerStep, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType i = begin; i < end; ++i)
      {
        const atlas::Rgb color = ColorOf(scale, tokens, i);
        colors->SetTypedTuple(i, color.data());
      }
    });
  auto* output = task.Output<vtkDataObject>();
  output->ShallowCopy(input);
  TokenAttributes(output)->AddArray(colors);
  const std::vector<LegendEntry> entries = MakeLegend(scale);
  AddField(
    output->GetFieldData(), Names::TokenColorLegend, LegendText(LegendTitle(quantity), entries));
  if (task.Ranks().Rank() == 0)
  {
    auto* legend = task.Output<vtkTable>(1);
    FillLegend(entries, legend);
    SetFormat(legend, Formats::TokenColorsLegend);
  }
}
