#pragma once

#include <string>
#include <vector>

class vtkPVArrayInformation;
class vtkPVDataInformation;
class vtkPVXMLElement;
class vtkSMProxy;

/// What a representation shows, and the hints of its source.
namespace AttentionAtlas
{

/// Whether an array has this name, with or without a head or class number.
bool IsNamed(const std::string& array, const std::string& name);

bool EndsWith(const std::string& text, const std::string& end);

/// The hint AtlasRepresentation of the source of a representation, or null. RepresentationHints.h
/// lists its elements.
vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation);

/// The elements of this hint that apply to the output port that the representation shows, in order.
std::vector<vtkPVXMLElement*> HintElements(vtkSMProxy* representation);

/// The data that a representation shows.
vtkPVDataInformation* ShownData(vtkSMProxy* representation);

/// The array that colors a representation, and the data that it belongs to.
struct Coloring
{
  std::string array;
  vtkPVArrayInformation* arrayInformation = nullptr;
  int classes = 0; ///< of the model that the data come from; 0 if unknown
  std::string
    legend; ///< of categories, and of colors with a field array "... Legend"; see SetLegend
  bool hasWords = false; ///< whether its points have words (Token), which are written on them
  bool onPlaces = false; ///< whether its places are tokens (Bind Tokens)
  bool ours = false;     ///< from a filter of this plugin, or computed from such data

  explicit Coloring(vtkSMProxy* representation);

  bool IsKnown() const { return this->ours && this->arrayInformation != nullptr; }

  /// Whether the values are themselves colors.
  bool ShowsColors() const;

  /// Whether these colors have an opacity.
  bool HasOpacity() const;

  /// Whether the values are class numbers or class colors.
  bool ShowsClasses() const;

  /// Whether colors are shown that have a legend, such as those of tokens, of more than one entry.
  bool HasLegend() const;

  /// What is shown, with its unit, if the name of the array does not say it; else empty.
  std::string Title() const;

  /// Whether weights are shown as heat, from 0 to the largest of the data.
  bool IsHeat() const
  {
    return this->IsKnown() && (this->array == "Heat" || this->array == "RelativeHeat" ||
                                (this->onPlaces && this->array == "Attention"));
  }

  /// Whether entries of circuits, contributions or effects are shown, from less than 0 to more,
  /// with white at 0 and equally long sides that end at the largest magnitude of the data.
  bool IsSigned() const;

  /// Whether the values are at least 0 and mean more if larger, without a fixed maximum.
  bool IsShare() const;

  /// Whether the scale is fitted to the range of the data.
  bool IsFitted() const;

  bool Shows(const std::string& name) const { return IsNamed(this->array, name); }
};

}
