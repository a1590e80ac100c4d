#pragma once

#include <string>

class vtkPVArrayInformation;
class vtkPVDataInformation;
class vtkPVXMLElement;
class vtkSMProxy;

/// What a representation shows, and how its source asks to be shown.
namespace AttentionAtlas
{

/// Whether an array has this name, with or without the number of a head or a class.
bool IsNamed(const std::string& array, const std::string& name);

bool EndsWith(const std::string& text, const std::string& end);

/// The hint AtlasRepresentation of the source of a representation, or null. RepresentationHints.h
/// lists its elements.
vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation);

/// The data that a representation shows.
vtkPVDataInformation* ShownData(vtkSMProxy* representation);

/// The array that colours a representation and the data that the array is of.
struct Coloring
{
  std::string array;
  vtkPVArrayInformation* arrayInformation = nullptr;
  int classes = 0;   ///< of the model that the data come from, 0 if they say nothing of any
  bool ours = false; ///< from a filter of this plugin, or computed from what one gave

  explicit Coloring(vtkSMProxy* representation);

  bool IsKnown() const { return this->ours && this->arrayInformation != nullptr; }

  /// Whether the values are colours themselves.
  bool ShowsColors() const;

  /// Whether the values are class numbers, or colours of classes.
  bool ShowsClasses() const;

  /// Whether the range of the scale is that of the data.
  bool IsFitted() const;

  bool Shows(const std::string& name) const { return IsNamed(this->array, name); }
};

}
