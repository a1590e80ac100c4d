#include "TokenSelection.h"

#include "DataFormat.h"
#include "SecondInputs.h"

#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkIdTypeArray.h>
#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVDataSetAttributesInformation.h>
#include <vtkPVSelectionInformation.h>
#include <vtkSMInputProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSelectionHelper.h>
#include <vtkSMSession.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

constexpr const char* TokenSource = "PedigreeIDSelectionSource";
/// Where heads are looked for.
constexpr std::array<int, 3> Associations = { vtkDataObject::POINT, vtkDataObject::CELL,
  vtkDataObject::ROW };

/// The range of an array of points, cells or rows.
std::optional<std::array<int, 2>> RangeOf(
  vtkPVDataInformation* data, const char* name, int association)
{
  vtkPVArrayInformation* array = data->GetArrayInformation(name, association);
  if (array == nullptr)
  {
    return std::nullopt;
  }
  const double* range = array->GetComponentRange(0);
  return std::array<int, 2>{ static_cast<int>(range[0]), static_cast<int>(range[1]) };
}

std::optional<int> OnlyValue(vtkPVDataInformation* data, const char* name, int association)
{
  const auto range = RangeOf(data, name, association);
  return range && (*range)[0] == (*range)[1] ? std::optional((*range)[0]) : std::nullopt;
}

/// The first value of a field array of the first output of a source; empty if there is none.
std::string FieldText(vtkSMSourceProxy* source, const char* name)
{
  vtkPVArrayInformation* found =
    source->GetDataInformation(0)->GetArrayInformation(name, vtkDataObject::FIELD);
  return found != nullptr && found->GetNumberOfStringValues() > 0 ? found->GetStringValue(0) : "";
}

/// A proxy that is not registered, so no panel lists it.
vtkSmartPointer<vtkSMSourceProxy> NewHidden(vtkSMProxy* beside, const char* group, const char* name)
{
  auto proxy = vtkSmartPointer<vtkSMSourceProxy>::Take(
    vtkSMSourceProxy::SafeDownCast(beside->GetSessionProxyManager()->NewProxy(group, name)));
  proxy->SetLocation(vtkPVSession::DATA_SERVER);
  return proxy;
}

/// The token indices that the ranks have found, in ascending order.
std::vector<vtkIdType> Gather(vtkSMSourceProxy* tokens)
{
  vtkNew<vtkPVSelectionInformation> information;
  tokens->GetSession()->GatherInformation(
    vtkPVSession::DATA_SERVER, information, tokens->GetGlobalID());
  std::set<vtkIdType> indices;
  vtkSelection* selection = information->GetSelection();
  for (unsigned int i = 0; i < selection->GetNumberOfNodes(); ++i)
  {
    auto* list = vtkDataArray::SafeDownCast(selection->GetNode(i)->GetSelectionList());
    for (vtkIdType j = 0; list != nullptr && j < list->GetNumberOfTuples(); ++j)
    {
      indices.insert(static_cast<vtkIdType>(list->GetComponent(j, 0)));
    }
  }
  return { indices.begin(), indices.end() };
}

}

int TokenAssociation(vtkPVDataInformation* data)
{
  for (const int association : { vtkDataObject::POINT, vtkDataObject::CELL })
  {
    vtkPVDataSetAttributesInformation* arrays = data->GetAttributeInformation(association);
    vtkPVArrayInformation* ids =
      arrays != nullptr ? arrays->GetAttributeInformation(vtkDataSetAttributes::PEDIGREEIDS)
                        : nullptr;
    if (ids != nullptr && std::string(ids->GetName()) == "Token Index")
    {
      return association;
    }
  }
  return -1;
}

bool ShowsSeveralHeads(vtkPVDataInformation* data)
{
  return std::any_of(Associations.begin(), Associations.end(),
    [data](int association)
    {
      const auto layers = RangeOf(data, "Layer", association);
      const auto heads = RangeOf(data, "Head", association);
      return layers && heads && ((*layers)[0] < (*layers)[1] || (*heads)[0] < (*heads)[1]);
    });
}

std::optional<int> OnlyValue(vtkPVDataInformation* data, const char* name)
{
  for (const int association : Associations)
  {
    if (const auto value = OnlyValue(data, name, association))
    {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<HeadNumber> OnlyHead(vtkPVDataInformation* data)
{
  for (const int association : Associations)
  {
    const auto layer = OnlyValue(data, "Layer", association);
    const auto head = OnlyValue(data, "Head", association);
    if (layer && head)
    {
      return *layer >= 0 && *head >= 0 ? std::optional(HeadNumber{ *layer, *head }) : std::nullopt;
    }
  }
  return std::nullopt;
}

vtkSmartPointer<vtkSMSourceProxy> ExtractSelected(
  vtkSMSourceProxy* source, int port, vtkSMSourceProxy* selection)
{
  auto extract = NewHidden(source, "filters", "ExtractSelection");
  vtkSMPropertyHelper(extract, "Input").Set(source, static_cast<unsigned int>(port));
  vtkSMPropertyHelper(extract, "Selection").Set(selection);
  extract->UpdateVTKObjects();
  extract->UpdatePipeline();
  return extract;
}

std::vector<vtkIdType> TokensOf(vtkSMSourceProxy* points)
{
  auto tokens = NewHidden(points, "internal_filters", "SelectedTokens");
  vtkSMPropertyHelper(tokens, "Input").Set(points);
  tokens->UpdateVTKObjects();
  tokens->UpdatePipeline();
  return Gather(tokens);
}

vtkSmartPointer<vtkSMSourceProxy> SelectTokens(
  vtkSMSourceProxy* source, const std::vector<vtkIdType>& tokens, int association)
{
  auto ids = NewHidden(source, "sources", TokenSource);
  vtkSMPropertyHelper(ids, "FieldType")
    .Set(vtkSelectionNode::ConvertAttributeTypeToSelectionField(association));
  vtkSMPropertyHelper property(ids, "IDs");
  property.SetNumberOfElements(static_cast<unsigned int>(2 * tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    const auto pair = static_cast<unsigned int>(2 * i); // of a domain, here of all, and an id
    property.Set(pair, "");
    property.Set(pair + 1, std::to_string(tokens[i]).c_str());
  }
  ids->UpdateVTKObjects();
  return vtkSmartPointer<vtkSMSourceProxy>::Take(vtkSMSourceProxy::SafeDownCast(
    vtkSMSelectionHelper::NewAppendSelectionsFromSelectionSource(ids)));
}

std::optional<HeadNumber> HeadAt(vtkSMSourceProxy* source, int port, double x, double y)
{
  auto location = NewHidden(source, "sources", "LocationSelectionSource");
  vtkSMPropertyHelper(location, "FieldType").Set(vtkSelectionNode::POINT);
  const std::array<double, 3> place = { std::round(x), std::round(y), 0 };
  vtkSMPropertyHelper(location, "Locations").Set(place.data(), 3);
  location->UpdateVTKObjects();
  const auto point = ExtractSelected(source, port, location);
  vtkPVDataInformation* data = point->GetDataInformation(0);
  return data->GetNumberOfPoints() > 0 ? OnlyHead(data) : std::nullopt;
}

std::string PointedText(vtkSMSourceProxy* source, int port, const std::array<double, 2>& place,
  vtkSMSourceProxy* selection, const char* quantities)
{
  auto text = NewHidden(source, "internal_filters", "PointedText");
  vtkSmartPointer<vtkSMSourceProxy> shown = source;
  if (selection != nullptr)
  {
    shown = ExtractSelected(source, std::exchange(port, 0), selection);
  }
  vtkSMPropertyHelper(text, "Input").Set(shown, static_cast<unsigned int>(port));
  for (unsigned int other = 0; other < source->GetNumberOfOutputPorts(); ++other)
  {
    vtkPVDataInformation* data = source->GetDataInformation(other);
    if (TokenAssociation(data) == vtkDataObject::POINT &&
        data->GetArrayInformation("Token", vtkDataObject::POINT) != nullptr)
    {
      vtkSMPropertyHelper(text, "Words").Set(source, other);
    }
  }
  vtkSMPropertyHelper(text, "Place").Set(place.data(), 2);
  vtkSMPropertyHelper(text, "Quantities").Set(quantities);
  text->UpdateVTKObjects();
  text->UpdatePipeline();
  return FieldText(text, "Text");
}

bool SelectsTokens(vtkSMSourceProxy* selection)
{
  vtkSMPropertyHelper inputs(selection, "Input", true);
  for (unsigned int i = 0; i < inputs.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* source = inputs.GetAsProxy(i);
    if (source == nullptr || std::string(source->GetXMLName()) != TokenSource)
    {
      return false;
    }
  }
  return inputs.GetNumberOfElements() > 0;
}

bool HasFormat(vtkSMSourceProxy* source, const char* format)
{
  return FieldText(source, FormatField) == format;
}

vtkSMSourceProxy* RecordingOf(vtkSMProxy* proxy)
{
  return FindUpstream(
    proxy, [](vtkSMSourceProxy* source) { return HasFormat(source, Formats::Recording); });
}

vtkSMSourceProxy* FindUpstream(
  vtkSMProxy* proxy, const std::function<bool(vtkSMSourceProxy*)>& condition)
{
  auto* source = vtkSMSourceProxy::SafeDownCast(proxy);
  while (source != nullptr && source->GetNumberOfOutputPorts() > 0)
  {
    if (condition(source))
    {
      return source;
    }
    auto* input = vtkSMInputProperty::SafeDownCast(source->GetProperty("Input"));
    source = input != nullptr && input->GetNumberOfProxies() > 0
               ? vtkSMSourceProxy::SafeDownCast(input->GetProxy(0))
               : nullptr;
  }
  return nullptr;
}

std::set<vtkSMProxy*> ModelsOf(vtkSMProxy* proxy)
{
  std::set<vtkSMProxy*> models;
  for (vtkSMSourceProxy* source : UpstreamOf(proxy))
  {
    if (source->GetNumberOfOutputPorts() > 0 &&
        (HasFormat(source, Formats::Recording) || HasFormat(source, Formats::Transformer) ||
          HasFormat(source, Formats::Corpus)))
    {
      models.insert(source);
    }
  }
  return models;
}

}
