#include "vtkSMAtlasSecondInputHelper.h"

#include "SecondInputs.h"

#include <vtkObjectFactory.h>
#include <vtkPVXMLElement.h>
#include <vtkSMInputProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSourceProxy.h>

#include <cstddef>
#include <set>
#include <vector>

namespace
{

using AttentionAtlas::FittingOutput;

/// The nearest outputs upstream of a filter that fit.
std::vector<FittingOutput> FindUpstream(vtkSMInputProperty* prototype, vtkSMProxy* filter)
{
  std::vector<vtkSMProxy*> near = AttentionAtlas::InputsOf(filter);
  std::set<vtkSMProxy*> seen(near.begin(), near.end());
  for (std::size_t i = 0; i < near.size(); ++i)
  {
    std::vector<FittingOutput> found = AttentionAtlas::FittingOutputs(prototype, near[i]);
    if (!found.empty())
    {
      return found;
    }
    for (vtkSMProxy* next : AttentionAtlas::InputsOf(near[i]))
    {
      if (seen.insert(next).second)
      {
        near.push_back(next);
      }
    }
  }
  return {};
}

}

vtkStandardNewMacro(vtkSMAtlasSecondInputHelper);

void vtkSMAtlasSecondInputHelper::PostInitializeProxy(
  vtkSMProxy* proxy, vtkPVXMLElement* xml, vtkMTimeType initializationTimeStamp)
{
  const char* name = xml->GetAttributeOrEmpty("property");
  auto* property = vtkSMInputProperty::SafeDownCast(proxy->GetProperty(name));
  vtkSMInputProperty* prototype = AttentionAtlas::PrototypeInput(proxy, name);
  if (property == nullptr || prototype == nullptr ||
      property->GetMTime() > initializationTimeStamp || property->GetNumberOfProxies() > 0)
  {
    return;
  }
  std::vector<FittingOutput> found = FindUpstream(prototype, proxy);
  if (found.empty())
  {
    found = AttentionAtlas::AllFittingOutputs(prototype, proxy);
  }
  if (!found.empty())
  {
    vtkSMPropertyHelper(property).Set(found.front().source, found.front().port);
    proxy->UpdateVTKObjects();
  }
}
