#include "SecondInputs.h"

#include <vtkNew.h>
#include <vtkSMInputProperty.h>
#include <vtkSMOrderedPropertyIterator.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyIterator.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>

#include <algorithm>

namespace AttentionAtlas
{

std::vector<vtkSMProxy*> InputsOf(vtkSMProxy* proxy)
{
  std::vector<vtkSMProxy*> found;
  vtkNew<vtkSMOrderedPropertyIterator> properties;
  properties->SetProxy(proxy);
  for (properties->Begin(); !properties->IsAtEnd(); properties->Next())
  {
    auto* input = vtkSMInputProperty::SafeDownCast(properties->GetProperty());
    for (unsigned int i = 0; input != nullptr && i < input->GetNumberOfProxies(); ++i)
    {
      if (input->GetProxy(i) != nullptr)
      {
        found.push_back(input->GetProxy(i));
      }
    }
  }
  return found;
}

std::vector<vtkSMSourceProxy*> UpstreamOf(vtkSMProxy* proxy)
{
  std::vector<vtkSMSourceProxy*> found;
  const auto add = [&found](vtkSMProxy* input)
  {
    auto* source = vtkSMSourceProxy::SafeDownCast(input);
    if (source != nullptr && std::find(found.begin(), found.end(), source) == found.end())
    {
      found.push_back(source);
    }
  };
  add(proxy);
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    const std::vector<vtkSMProxy*> inputs = InputsOf(found[i]);
    std::for_each(inputs.begin(), inputs.end(), add);
  }
  return found;
}

vtkSMInputProperty* PrototypeInput(vtkSMProxy* filter, const char* name)
{
  vtkSMSessionProxyManager* manager = filter->GetSessionProxyManager();
  vtkSMProxy* prototype =
    manager != nullptr ? manager->GetPrototypeProxy(filter->GetXMLGroup(), filter->GetXMLName())
                       : nullptr;
  return prototype != nullptr ? vtkSMInputProperty::SafeDownCast(prototype->GetProperty(name))
                              : nullptr;
}

std::vector<FittingOutput> FittingOutputs(vtkSMInputProperty* prototype, vtkSMProxy* source)
{
  std::vector<FittingOutput> found;
  auto* producer = vtkSMSourceProxy::SafeDownCast(source);
  if (producer == nullptr || !producer->GetObjectsCreated())
  {
    return found;
  }
  producer->CreateOutputPorts();
  for (unsigned int port = 0; port < producer->GetNumberOfOutputPorts(); ++port)
  {
    prototype->RemoveAllUncheckedProxies();
    prototype->AddUncheckedInputConnection(producer, port);
    if (prototype->IsInDomains() != 0)
    {
      found.push_back({ producer, port });
    }
  }
  prototype->RemoveAllUncheckedProxies();
  return found;
}

std::vector<FittingOutput> AllFittingOutputs(vtkSMInputProperty* prototype, vtkSMProxy* filter)
{
  std::vector<vtkSMProxy*> sources;
  vtkNew<vtkSMProxyIterator> iterator;
  iterator->SetSession(filter->GetSession());
  for (iterator->Begin("sources"); !iterator->IsAtEnd(); iterator->Next())
  {
    sources.push_back(iterator->GetProxy());
  }
  std::sort(sources.begin(), sources.end(),
    [](vtkSMProxy* a, vtkSMProxy* b) { return a->GetGlobalID() > b->GetGlobalID(); });
  std::vector<FittingOutput> found;
  for (vtkSMProxy* source : sources)
  {
    const std::vector<FittingOutput> own = FittingOutputs(prototype, source);
    found.insert(found.end(), own.begin(), own.end());
  }
  return found;
}

}
