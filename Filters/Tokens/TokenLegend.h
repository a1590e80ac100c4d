#pragma once

#include "AttentionAtlasTokensModule.h"
#include "Drawing/TokenPalette.h"
#include "TokenValues.h"

#include <string>
#include <vector>

class vtkTable;

namespace AttentionAtlas
{

/// What the colors of tokens mean, on all ranks.
struct TokenScale
{
  TokenQuantity quantity = TokenQuantity::Kind;
  int periods = 5;
  double least = 0;   ///< of the norms of the only head
  double largest = 0; ///< of the values; of the norms of the only head
  bool hasOneHead = false;
  bool hasQueries = false;
  bool hasKeys = false;
  bool hasUnknown = false; ///< whether there are tokens without a value
};

/// An entry of a legend.
struct LegendEntry
{
  std::string label;
  double value; ///< NaN for entries without one
  int kind;     ///< of atlas::TokenKind, or -1 for both
  atlas::Rgb color;
};

/// "Position (tokens)"
ATTENTIONATLASTOKENS_EXPORT std::string LegendTitle(TokenQuantity quantity);

/// The entries of a legend: at most five values of one kind, three of each of two, or the hues.
ATTENTIONATLASTOKENS_EXPORT std::vector<LegendEntry> MakeLegend(const TokenScale& scale);

/// The legend as the text of a ColorLegend.
ATTENTIONATLASTOKENS_EXPORT std::string LegendText(
  const std::string& title, const std::vector<LegendEntry>& entries);

/// The legend as columns Label, Value, Kind and TokenColor.
ATTENTIONATLASTOKENS_EXPORT void FillLegend(
  const std::vector<LegendEntry>& entries, vtkTable* table);

}
