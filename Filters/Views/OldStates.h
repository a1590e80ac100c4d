#pragma once

class vtkPVXMLElement;
class vtkSMProxyLocator;

/// What states of older versions of ParaView say that the present one does not understand.
namespace AttentionAtlas
{

/// Moves the representations of our sources as a state before ParaView 5.13 says in their property
/// Position, which is Translation since then. `state` is the root of the state that was loaded.
void RestoreTranslations(vtkPVXMLElement* state, vtkSMProxyLocator* locator);

}
