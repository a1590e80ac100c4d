#include "Coloring.h"

#include "NestedElements.h"

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSourceProxy.h>

#include <string>

namespace AttentionAtlas
{

vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation)
{
  vtkSMProxy* producer = vtkSMPropertyHelper(representation, "Input", true).GetAsProxy();
  vtkPVXMLElement* hints = producer != nullptr ? producer->GetHints() : nullptr;
  return hints != nullptr ? hints->FindNestedElementByName("AtlasRepresentation") : nullptr;
}

std::vector<vtkPVXMLElement*> HintElements(vtkSMProxy* representation)
{
  const auto shown = static_cast<int>(vtkSMPropertyHelper(representation, "Input").GetOutputPort());
  std::vector<vtkPVXMLElement*> elements;
  for (vtkPVXMLElement* element : ElementsIn(RepresentationHint(representation)))
  {
    int port = shown;
    element->GetScalarAttribute("port", &port);
    if (port == shown)
    {
      elements.push_back(element);
    }
  }
  return elements;
}

vtkPVDataInformation* ShownData(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  return producer->GetDataInformation(input.GetOutputPort());
}

Coloring::Coloring(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  vtkSMPropertyHelper color(representation, "ColorArrayName", true);
  const char* name = color.GetInputArrayNameToProcess();
  if (producer == nullptr || name == nullptr)
  {
    return;
  }
  this->array = name;
  vtkPVDataInformation* data = producer->GetDataInformation(input.GetOutputPort());
  this->arrayInformation = data->GetArrayInformation(name, color.GetInputArrayAssociation());
  if (this->arrayInformation != nullptr)
  {
    const double* range = this->arrayInformation->GetComponentRange(0);
    this->low = range[0];
    this->high = range[1];
    this->components = this->arrayInformation->GetNumberOfComponents();
    this->hasBytes = this->arrayInformation->GetDataType() == VTK_UNSIGNED_CHAR;
  }
  if (auto* field = data->GetArrayInformation("VocabularySize", vtkDataObject::FIELD))
  {
    this->classes = static_cast<int>(field->GetComponentRange(0)[1]);
  }
  this->onPlaces = data->GetArrayInformation("Token Binding", vtkDataObject::FIELD) != nullptr;
  this->onRibbon = data->GetArrayInformation("backbone", vtkDataObject::POINT) != nullptr;
  this->hasWords = data->GetArrayInformation("Token", vtkDataObject::POINT) != nullptr;
  const auto textOf = [&](const char* what) -> std::string
  {
    auto* texts = data->GetArrayInformation((this->array + what).c_str(), vtkDataObject::FIELD);
    return texts != nullptr && texts->GetNumberOfStringValues() > 0 ? texts->GetStringValue(0) : "";
  };
  this->title = textOf(" Title");
  this->Explain(textOf(" Legend"), RepresentationHint(representation) != nullptr);
}

}
