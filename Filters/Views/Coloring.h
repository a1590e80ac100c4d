#pragma once

#include "Base/TextEnds.h"
#include "Drawing/ColoredArray.h"

#include <vector>

class vtkPVArrayInformation;
class vtkPVDataInformation;
class vtkPVXMLElement;
class vtkSMProxy;

/// What a representation shows, and the hints of its source.
namespace AttentionAtlas
{

using atlas::EndsWith;
using atlas::IsNamed;

/// The hint AtlasRepresentation of the source of a representation, or null. RepresentationHints.h
/// lists its elements.
vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation);

/// The elements of this hint that apply to the output port that the representation shows, in order.
std::vector<vtkPVXMLElement*> HintElements(vtkSMProxy* representation);

/// The data that a representation shows.
vtkPVDataInformation* ShownData(vtkSMProxy* representation);

/// The array that colors a representation, and the data that it belongs to.
struct Coloring : atlas::ColoredArray
{
  vtkPVArrayInformation* arrayInformation = nullptr;

  explicit Coloring(vtkSMProxy* representation);
};

}
