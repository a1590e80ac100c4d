#include "TokenSelection.h"

#include "DataFormat.h"

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

#include <array>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

constexpr const char* TokenSource = "PedigreeIDSelectionSource";

/// The range of an array of points or else of cells.
std::optional<std::array<int, 2>> RangeOf(vtkPVDataInformation* data, const char* name)
{
  for (const int association : { vtkDataObject::POINT, vtkDataObject::CELL })
  {
    if (vtkPVArrayInformation* array = data->GetArrayInformation(name, association))
    {
      const double* range = array->GetComponentRange(0);
      return std::array<int, 2>{ static_cast<int>(range[0]), static_cast<int>(range[1]) };
    }
  }
  return std::nullopt;
}

/// A proxy that is not registered, so no panel lists it.
vtkSmartPointer<vtkSMSourceProxy> NewHidden(vtkSMProxy* beside, const char* group, const char* name)
{
  auto proxy = vtkSmartPointer<vtkSMSourceProxy>::Take(
    vtkSMSourceProxy::SafeDownCast(beside->GetSessionProxyManager()->NewProxy(group, name)));
  proxy->SetLocation(vtkPVSession::DATA_SERVER);
  return proxy;
}

/// The token indices that the ranks have found.
std::vector<vtkIdType> Gather(vtkSMSourceProxy* tokens)
{
  vtkNew<vtkPVSelectionInformation> information;
  tokens->GetSession()->GatherInformation(
    vtkPVSession::DATA_SERVER, information, tokens->GetGlobalID());
  std::vector<vtkIdType> indices;
  vtkSelection* selection = information->GetSelection();
  for (unsigned int i = 0; i < selection->GetNumberOfNodes(); ++i)
  {
    auto* list = vtkDataArray::SafeDownCast(selection->GetNode(i)->GetSelectionList());
    for (vtkIdType j = 0; list != nullptr && j < list->GetNumberOfTuples(); ++j)
    {
      indices.push_back(static_cast<vtkIdType>(list->GetComponent(j, 0)));
    }
  }
  return indices;
}

}

bool ShowsTokens(vtkPVDataInformation* data)
{
  vtkPVArrayInformation* ids =
    data->GetPointDataInformation()->GetAttributeInformation(vtkDataSetAttributes::PEDIGREEIDS);
  return ids != nullptr && std::string(ids->GetName()) == "Token Index";
}

bool ShowsSeveralHeads(vtkPVDataInformation* data)
{
  const auto layers = RangeOf(data, "Layer");
  const auto heads = RangeOf(data, "Head");
  return layers && heads && ((*layers)[0] < (*layers)[1] || (*heads)[0] < (*heads)[1]);
}

std::optional<HeadNumber> OnlyHead(vtkPVDataInformation* data)
{
  const auto layers = RangeOf(data, "Layer");
  const auto heads = RangeOf(data, "Head");
  const bool isOne = layers && heads && (*layers)[0] == (*layers)[1] && (*heads)[0] == (*heads)[1];
  return isOne ? std::optional(HeadNumber{ (*layers)[0], (*heads)[0] }) : std::nullopt;
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

vtkSmartPointer<vtkSMSourceProxy> SelectTokensOf(vtkSMSourceProxy* points, vtkIdType limit)
{
  auto tokens = NewHidden(points, "internal_filters", "SelectedTokens");
  vtkSMPropertyHelper(tokens, "Input").Set(points);
  tokens->UpdateVTKObjects();
  tokens->UpdatePipeline();
  const std::vector<vtkIdType> indices = Gather(tokens);
  if (indices.empty() || static_cast<vtkIdType>(indices.size()) > limit)
  {
    return nullptr;
  }
  auto ids = NewHidden(points, "sources", TokenSource);
  vtkSMPropertyHelper(ids, "FieldType").Set(vtkSelectionNode::POINT);
  std::vector<std::string> texts; // pairs of a domain, here of all, and an id
  for (const vtkIdType index : indices)
  {
    texts.emplace_back();
    texts.push_back(std::to_string(index));
  }
  vtkSMPropertyHelper property(ids, "IDs");
  property.SetNumberOfElements(static_cast<unsigned int>(texts.size()));
  for (std::size_t i = 0; i < texts.size(); ++i)
  {
    property.Set(static_cast<unsigned int>(i), texts[i].c_str());
  }
  ids->UpdateVTKObjects();
  return vtkSmartPointer<vtkSMSourceProxy>::Take(vtkSMSourceProxy::SafeDownCast(
    vtkSMSelectionHelper::NewAppendSelectionsFromSelectionSource(ids)));
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

vtkSMSourceProxy* RecordingOf(vtkSMProxy* proxy)
{
  auto* source = vtkSMSourceProxy::SafeDownCast(proxy);
  while (source != nullptr && source->GetNumberOfOutputPorts() > 0)
  {
    vtkPVArrayInformation* format =
      source->GetDataInformation(0)->GetArrayInformation(FormatField, vtkDataObject::FIELD);
    if (format != nullptr && format->GetNumberOfStringValues() > 0 &&
        std::string(format->GetStringValue(0)) == Formats::Recording)
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

}
