#include "TokenLegend.h"

#include "ArrayNames.h"
#include "Drawing/ColorLegend.h"
#include "ListArrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace AttentionAtlas
{
namespace
{

using atlas::TokenKind;

constexpr double NoValue = std::numeric_limits<double>::quiet_NaN();
constexpr int BothKinds = -1;

/// The names of quantities in titles and before the values of a legend, and their units.
struct QuantityText
{
  const char* title;
  const char* name;
};
constexpr std::array<QuantityText, 13> Texts = { {
  { "Kind", "" },
  { "Position (tokens)", "position" },
  { "Relative position", "relative position" },
  { "Position, repeating", "position" },
  { "Norm", "norm" },
  { "Token count (log scale)", "count" },
  { "Row (patches)", "row" },
  { "Column (patches)", "column" },
  { "Hue (degrees)", "hue" },
  { "Brightness (0 to 1)", "brightness" },
  { "Segment", "segment" },
  { "Sequence length (tokens)", "length" },
  { "Mean color of the patch", "" },
} };

const QuantityText& TextOf(TokenQuantity quantity)
{
  return Texts.at(static_cast<std::size_t>(quantity));
}

std::string Text(double value)
{
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

/// A value of a ramp, its place from 0 to 1, and its text. Where the names of two kinds take the
/// room, the name of the quantity is in the title of the legend alone.
struct Tick
{
  double value;
  double share;
  std::string text;
};

bool IsWhole(TokenQuantity quantity)
{
  return quantity != TokenQuantity::RelativePosition && quantity != TokenQuantity::Brightness &&
         quantity != TokenQuantity::Norm;
}

bool HasTwoKinds(const TokenScale& scale)
{
  return scale.hasQueries && scale.hasKeys;
}

Tick TickAt(const TokenScale& scale, double share)
{
  const std::string name =
    HasTwoKinds(scale) ? std::string() : std::string(TextOf(scale.quantity).name) + " ";
  if (scale.quantity == TokenQuantity::Norm && !scale.hasOneHead)
  {
    const std::string place = Text(100 * share) + " % of its head's range";
    return { NoValue, share, name + place };
  }
  double value = scale.least + share * (scale.largest - scale.least);
  if (scale.quantity == TokenQuantity::TokenCount)
  {
    value = std::round(std::pow(scale.largest, share));
    share = scale.largest > 1 ? std::log(value) / std::log(scale.largest) : 0;
  }
  else if (IsWhole(scale.quantity))
  {
    value = std::round(value);
    share = scale.largest > 0 ? value / scale.largest : 0;
  }
  return { value, share, name + Text(value) };
}

/// The values of a ramp, fewer of each of two kinds; whole numbers once.
std::vector<Tick> Ticks(const TokenScale& scale)
{
  std::vector<Tick> ticks;
  for (const double share :
    HasTwoKinds(scale) ? std::vector{ 0., 0.5, 1. } : std::vector{ 0., 0.25, 0.5, 0.75, 1. })
  {
    const Tick tick = TickAt(scale, share);
    const bool isKnown = std::any_of(
      ticks.begin(), ticks.end(), [&](const Tick& other) { return other.text == tick.text; });
    const bool isPossible =
      scale.quantity != TokenQuantity::SentenceLength || tick.value > 0; // no length is 0
    if (!isKnown && isPossible)
    {
      ticks.push_back(tick);
    }
  }
  return ticks;
}

void AddKind(const TokenScale& scale, TokenKind kind, std::vector<LegendEntry>& entries)
{
  const bool hasBoth = scale.hasQueries || scale.hasKeys;
  const std::string name =
    hasBoth ? std::string(kind == TokenKind::Query ? "query" : "key") : std::string();
  const std::string prefix = name.empty() ? name : name + ", ";
  const int number = hasBoth ? static_cast<int>(kind) : BothKinds;
  if (scale.quantity == TokenQuantity::Kind)
  {
    entries.push_back({ name.empty() ? "token" : name, NoValue, number, atlas::KindColor(kind) });
  }
  else if (scale.quantity == TokenQuantity::PositionMod5)
  {
    for (int phase = 0; phase < scale.periods; ++phase)
    {
      const std::string text = std::to_string(phase) + " mod " + std::to_string(scale.periods);
      entries.push_back({ prefix + text, static_cast<double>(phase), number,
        atlas::PeriodicColor(kind, phase, scale.periods) });
    }
  }
  else
  {
    for (const Tick& tick : Ticks(scale))
    {
      entries.push_back(
        { prefix + tick.text, tick.value, number, atlas::ShadedColor(kind, tick.share) });
    }
  }
}

void AddHues(std::vector<LegendEntry>& entries)
{
  for (int degrees = 0; degrees < 360; degrees += 60)
  {
    entries.push_back({ "hue " + std::to_string(degrees) + "\u00B0", static_cast<double>(degrees),
      BothKinds, atlas::HueColor(degrees / 360.) });
  }
}

}

std::string LegendTitle(TokenQuantity quantity)
{
  return TextOf(quantity).title;
}

std::vector<LegendEntry> MakeLegend(const TokenScale& scale)
{
  std::vector<LegendEntry> entries;
  if (scale.quantity == TokenQuantity::Hue)
  {
    AddHues(entries);
  }
  else if (scale.quantity != TokenQuantity::PatchColor)
  {
    if (scale.hasQueries || !scale.hasKeys)
    {
      AddKind(scale, TokenKind::Query, entries);
    }
    if (scale.hasKeys)
    {
      AddKind(scale, TokenKind::Key, entries);
    }
  }
  if (scale.hasUnknown)
  {
    entries.push_back({ "no value", NoValue, BothKinds, atlas::ClassColor(-1) });
  }
  return entries;
}

std::string LegendText(const std::string& title, const std::vector<LegendEntry>& entries)
{
  atlas::ColorLegend legend(title);
  for (const LegendEntry& entry : entries)
  {
    legend.Add(entry.color, entry.label);
  }
  return legend.Text();
}

void FillLegend(const std::vector<LegendEntry>& entries, vtkTable* table)
{
  ListArrays(entries, table->GetRowData())
    .Text("Label", &LegendEntry::label)
    .Double("Value", &LegendEntry::value)
    .Int(ArrayNames::Kind, &LegendEntry::kind)
    .Tuples(ArrayNames::TokenColor, &LegendEntry::color);
}

}
