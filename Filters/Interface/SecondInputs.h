#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vector>

class vtkSMInputProperty;
class vtkSMProxy;
class vtkSMSourceProxy;

/// The second input of a filter, such as the model of a recording.
namespace AttentionAtlas
{

/// An output of a source or filter.
struct FittingOutput
{
  vtkSMSourceProxy* source = nullptr;
  unsigned int port = 0;
};

/// The sources that are connected to the inputs of a proxy.
std::vector<vtkSMProxy*> InputsOf(vtkSMProxy* proxy);

/// A source and all before it, the nearest first.
ATTENTIONATLASINTERFACE_EXPORT std::vector<vtkSMSourceProxy*> UpstreamOf(vtkSMProxy* proxy);

/// The input property of a prototype with this name; null if there is none. Its unchecked values
/// can be set without a trace in the panel of a filter.
vtkSMInputProperty* PrototypeInput(vtkSMProxy* filter, const char* name);

/// The outputs of a source that are in the domains of an input property of a prototype.
std::vector<FittingOutput> FittingOutputs(vtkSMInputProperty* prototype, vtkSMProxy* source);

/// Those of all sources and filters of the session, the latest source first.
std::vector<FittingOutput> AllFittingOutputs(vtkSMInputProperty* prototype, vtkSMProxy* filter);

}
