#include "RepresentationDefaults.h"

#include "ColorTables.h"
#include "Coloring.h"
#include "ImageCharts.h"
#include "OldStates.h"
#include "RepresentationHints.h"

#include <vtkCommand.h>
#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkProcessModule.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyIterator.h>
#include <vtkSMProxyManager.h>
#include <vtkSMSession.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSessionIterator.h>
#include <vtkSmartPointer.h>
#include <vtkWeakPointer.h>

#include <string>
#include <utility>

namespace
{

using AttentionAtlas::Coloring;

/// Whether a state is being restored, by loading, undo or redo; it sets the appearance of its
/// proxies itself.
bool IsRestoring(vtkSMSessionProxyManager* manager)
{
  return manager->GetInLoadXMLState() || !manager->IsStateUpdateNotificationEnabled();
}

/// Observes the array that colors a representation.
class ColoringObserver : public vtkCommand
{
public:
  static ColoringObserver* New() { return new ColoringObserver; }
  vtkTypeMacro(ColoringObserver, vtkCommand);

  void Observe(vtkSMProxy* representation)
  {
    this->Representation = representation;
    representation->GetProperty("ColorArrayName")->AddObserver(vtkCommand::ModifiedEvent, this);
    representation->AddObserver(vtkCommand::UpdateDataEvent, this);
  }

  void Execute(vtkObject*, unsigned long event, void*) override
  {
    if (event == vtkCommand::UpdateDataEvent && this->Representation != nullptr &&
        !IsRestoring(this->Representation->GetSessionProxyManager()))
    {
      AttentionAtlas::FollowArray(this->Representation);
      AttentionAtlas::FitScale(
        Coloring(this->Representation), this->Representation->GetSessionProxyManager());
      if (AttentionAtlas::IsImageChart(this->Representation))
      {
        AttentionAtlas::CompleteImageChart(this->Representation);
      }
    }
    // The array may be chosen before there is data, and other data may have another legend.
    if (event == vtkCommand::ModifiedEvent || this->Waits || this->HasLegend)
    {
      this->Update();
    }
  }

  void Update(bool first = false)
  {
    if (this->Representation == nullptr ||
        IsRestoring(this->Representation->GetSessionProxyManager()))
    {
      return;
    }
    const Coloring coloring(this->Representation);
    this->HasLegend = coloring.HasLegend();
    this->Waits = !coloring.array.empty() && coloring.arrayInformation == nullptr;
    if (coloring.IsKnown())
    {
      AttentionAtlas::SetMapScalars(this->Representation, !coloring.ShowsColors());
    }
    if (coloring.ShowsColors() && !coloring.HasOpacity())
    {
      AttentionAtlas::UseOpaqueSurface(this->Representation);
    }
    if (coloring.ours)
    {
      AttentionAtlas::PrepareTable(coloring, first, this->Representation->GetSessionProxyManager());
    }
  }

private:
  vtkWeakPointer<vtkSMProxy> Representation;
  bool Waits = false;     ///< waiting for the data of the array
  bool HasLegend = false; ///< which comes with the data
};

/// The title of the legend of a table of tokens' colors; empty for other tables.
std::string TokenTitle(vtkSMProxy* table)
{
  vtkNew<vtkSMProxyIterator> representations;
  representations->SetSession(table->GetSession());
  for (representations->Begin("representations"); !representations->IsAtEnd();
    representations->Next())
  {
    vtkSMProxy* representation = representations->GetProxy();
    if (representation->GetProperty("Input") != nullptr &&
        vtkSMPropertyHelper(representation, "LookupTable", true).GetAsProxy() == table)
    {
      const std::string legend = Coloring(representation).legend;
      return legend.substr(0, legend.find('\n'));
    }
  }
  return {};
}

/// Whether a table has the colors of a picture, which no legend explains.
bool IsOfPicture(vtkSMProxy* table)
{
  const char* name = table != nullptr
                       ? table->GetSessionProxyManager()->GetProxyName("lookup_tables", table)
                       : nullptr;
  return name != nullptr && std::string(name).rfind("PictureColor.", 0) == 0;
}

/// Hides a legend whenever it is shown.
class LegendHider : public vtkCommand
{
public:
  static LegendHider* New() { return new LegendHider; }
  vtkTypeMacro(LegendHider, vtkCommand);

  void Observe(vtkSMProxy* legend)
  {
    vtkSMProperty* visibility = legend->GetProperty("Visibility");
    visibility->AddObserver(vtkCommand::ModifiedEvent, this);
    this->Execute(visibility, vtkCommand::ModifiedEvent, nullptr);
    legend->UpdateVTKObjects();
  }

  void Execute(vtkObject* caller, unsigned long, void*) override
  {
    vtkSMPropertyHelper visibility(vtkSMProperty::SafeDownCast(caller));
    if (visibility.GetAsInt() != 0)
    {
      visibility.Set(0);
    }
  }
};

/// Sets the title of a color array's legend to the meaning of the colors, where ParaView would
/// write "ClassColor Magnitude".
void NameLegend(vtkSMProxy* scalarBar)
{
  vtkSMProxy* table = vtkSMPropertyHelper(scalarBar, "LookupTable", true).GetAsProxy();
  const char* name = table != nullptr
                       ? scalarBar->GetSessionProxyManager()->GetProxyName("lookup_tables", table)
                       : nullptr;
  const std::string title = table != nullptr ? TokenTitle(table) : std::string();
  if (!title.empty())
  {
    vtkSMPropertyHelper(scalarBar, "Title").Set(title.c_str());
    vtkSMPropertyHelper(scalarBar, "ComponentTitle").Set("");
    scalarBar->UpdateVTKObjects();
  }
  using Title = std::pair<const char*, const char*>;
  for (const auto& [array, meaning] :
    { Title("ClassColor", "Class"), Title("TargetColor", "Target"), Title("Heat", "Weight") })
  {
    if (name != nullptr && std::string(name).rfind(std::string(array) + ".", 0) == 0)
    {
      vtkSMPropertyHelper(scalarBar, "Title").Set(meaning);
      vtkSMPropertyHelper(scalarBar, "ComponentTitle").Set("");
      scalarBar->UpdateVTKObjects();
    }
  }
}

/// Handles every representation and legend when it is registered, and every state when it is
/// loaded, in all sessions of the client.
class RepresentationObserver : public vtkCommand
{
public:
  static RepresentationObserver* New() { return new RepresentationObserver; }
  vtkTypeMacro(RepresentationObserver, vtkCommand);

  void ObserveSession(vtkSMSession* session)
  {
    vtkSMSessionProxyManager* manager =
      session != nullptr ? session->GetSessionProxyManager() : nullptr;
    if (manager != nullptr && manager->HasObserver(vtkCommand::RegisterEvent, this) == 0)
    {
      manager->AddObserver(vtkCommand::RegisterEvent, this);
      manager->AddObserver(vtkCommand::LoadStateEvent, this);
    }
  }

  void Execute(vtkObject* caller, unsigned long event, void* data) override
  {
    if (event == vtkCommand::ConnectionCreatedEvent)
    {
      auto* module = vtkProcessModule::SafeDownCast(caller);
      this->ObserveSession(
        vtkSMSession::SafeDownCast(module->GetSession(*static_cast<vtkIdType*>(data))));
      return;
    }
    if (event == vtkCommand::LoadStateEvent)
    {
      const auto* state = static_cast<vtkSMProxyManager::LoadStateInformation*>(data);
      AttentionAtlas::RestoreTranslations(state->RootElement, state->ProxyLocator);
      return;
    }
    const auto* info = static_cast<vtkSMProxyManager::RegisteredProxyInformation*>(data);
    if (info->Type != vtkSMProxyManager::RegisteredProxyInformation::PROXY)
    {
      return;
    }
    const std::string group = info->GroupName;
    const bool isNew = !IsRestoring(info->Proxy->GetSessionProxyManager());
    if (group == "scalar_bars" && isNew)
    {
      NameLegend(info->Proxy);
      if (IsOfPicture(vtkSMPropertyHelper(info->Proxy, "LookupTable", true).GetAsProxy()))
      {
        vtkNew<LegendHider> hider; // kept alive by the observed property
        hider->Observe(info->Proxy);
      }
    }
    if (group == "representations" && info->Proxy->GetProperty("Input") != nullptr)
    {
      this->MeetRepresentation(info->Proxy, isNew);
    }
  }

private:
  void MeetRepresentation(vtkSMProxy* representation, bool isNew)
  {
    if (representation->GetProperty("ColorArrayName") == nullptr) // a chart
    {
      if (isNew)
      {
        AttentionAtlas::ApplyHints(representation);
      }
      return;
    }
    vtkNew<ColoringObserver> observer; // kept alive by the observed property
    observer->Observe(representation);
    if (isNew)
    {
      AttentionAtlas::ApplyHints(representation);
      observer->Update(true);
      representation->UpdateVTKObjects();
    }
  }
};

}

void InstallRepresentationDefaults()
{
  vtkProcessModule* module = vtkProcessModule::GetProcessModule();
  const auto type = vtkProcessModule::GetProcessType();
  static bool installed = false;
  if (installed || module == nullptr ||
      (type != vtkProcessModule::PROCESS_CLIENT && type != vtkProcessModule::PROCESS_BATCH))
  {
    return;
  }
  installed = true;
  vtkNew<RepresentationObserver> observer; // kept alive by the module and the sessions
  module->AddObserver(vtkCommand::ConnectionCreatedEvent, observer);
  const auto sessions = vtkSmartPointer<vtkSessionIterator>::Take(module->NewSessionIterator());
  for (sessions->InitTraversal(); !sessions->IsDoneWithTraversal(); sessions->GoToNextItem())
  {
    observer->ObserveSession(vtkSMSession::SafeDownCast(sessions->GetCurrentSession()));
  }
}
