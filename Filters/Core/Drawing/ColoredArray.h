#pragma once

#include <string>
#include <vector>

namespace atlas
{

/// Legends with more classes would be unreadable.
inline constexpr int MaximumLegend = 1024;

/// Whether an array has this name, with or without a head or class number.
bool IsNamed(const std::string& array, const std::string& name);

/// An array whose values are shown as colors, with what its data say of them: the one place that
/// knows which colors our arrays have, in ParaView as in web pages.
struct ColoredArray
{
  std::string array;     ///< its name
  int components = 0;    ///< of each value; 0 while the data have no such array
  bool hasBytes = false; ///< whether the values are bytes
  double low = 0;        ///< the least value of the first component
  double high = 0;       ///< and the largest
  int classes = 0;       ///< of the model that the data come from; 0 if unknown
  std::string legend;    ///< of categories, and of colors with a field array "... Legend": the text
                         ///< of a ColorLegend
  std::string title;     ///< what the field array "... Title" says of its values
  bool hasWords = false; ///< whether its points have words (Token), which are written on them
  bool onPlaces = false; ///< whether its places are tokens (Bind Tokens)
  bool onRibbon = false; ///< whether they are those of a ribbon (Mmcif Reader), which is shaded
  bool ours = false;     ///< from a filter of this plugin, or computed from such data

  /// Sets legend and ours. `field`: the text of the field array with its legend, if there is one.
  /// `hasHints`: whether its data come from a filter with hints for views.
  void Explain(const std::string& field, bool hasHints);

  bool IsKnown() const { return this->ours && this->components > 0; }

  /// Whether the values are themselves colors.
  bool ShowsColors() const;

  /// Whether these colors have an opacity.
  bool HasOpacity() const { return this->ShowsColors() && this->components == 4; }

  /// Whether the values are class numbers or class colors.
  bool ShowsClasses() const;

  /// Whether colors are shown that have a legend, such as those of tokens, of more than one entry.
  bool HasLegend() const;

  /// What is shown, with its unit, if the name of the array does not say it; else empty.
  std::string Title() const;

  /// Whether weights are shown as heat, from 0 to the largest of the data.
  bool IsHeat() const;

  /// Whether entries of circuits, contributions or effects are shown, from less than 0 to more,
  /// with white at 0 and equally long sides that end at the largest magnitude of the data.
  bool IsSigned() const;

  /// Whether the values are at least 0 and mean more if larger, without a fixed maximum.
  bool IsShare() const;

  /// Whether the scale is fitted to the range of the data.
  bool IsFitted() const;

  bool Shows(const std::string& name) const { return IsNamed(this->array, name); }

  /// The largest magnitude of the values, above 0.
  double LargestMagnitude() const;

  /// The points of its scale, in ascending order: a value, then red, green and blue from 0 to 1,
  /// which are mixed in CIE Lab between points. Empty for categories, and for arrays without a
  /// scale of their own. `largest`: where scales of heat and of signed values end.
  std::vector<double> Scale(double largest) const;
};

}
