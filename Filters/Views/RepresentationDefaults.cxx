#include "RepresentationDefaults.h"

#include "Charts.h"
#include "ColorBars.h"
#include "ColorTables.h"
#include "Coloring.h"
#include "OldStates.h"
#include "ProxyValues.h"
#include "RepresentationHints.h"
#include "Titles.h"
#include "ViewTexts.h"
#include "vtkDiagramView.h"

#include <vtkClientServerStream.h>
#include <vtkCommand.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVRenderView.h>
#include <vtkPVXMLElement.h>
#include <vtkProcessModule.h>
#include <vtkSMProperty.h>
#include <vtkSMProxyManager.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSession.h>
#include <vtkSessionIterator.h>
#include <vtkSmartPointer.h>
#include <vtkWeakPointer.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace
{

using AttentionAtlas::Coloring;

/// Whether no state is being restored, by loading, undo or redo: it sets the appearance of its
/// proxies itself. Not for a proxy that has gone.
bool IsFree(vtkSMProxy* proxy)
{
  vtkSMSessionProxyManager* manager = proxy != nullptr ? proxy->GetSessionProxyManager() : nullptr;
  return manager != nullptr && !manager->GetInLoadXMLState() &&
         manager->IsStateUpdateNotificationEnabled();
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
    if (event == vtkCommand::UpdateDataEvent && IsFree(this->Representation))
    {
      AttentionAtlas::FollowArray(this->Representation);
      const Coloring coloring(this->Representation);
      AttentionAtlas::FitScale(coloring, this->Representation->GetSessionProxyManager());
      // What comes after a state that was loaded follows its legend as it is.
      if (this->Array.empty() && coloring.arrayInformation != nullptr)
      {
        this->Array = coloring.array;
        this->HasLegend = coloring.HasLegend();
        AttentionAtlas::MeetLegend(coloring, this->Representation);
      }
      this->FollowLegend(coloring);
    }
    // The array may be chosen before there is data, and other data may have another legend.
    if (event == vtkCommand::ModifiedEvent || this->Waits || this->HasLegend)
    {
      this->Update();
    }
  }

  void Update(bool first = false)
  {
    if (!IsFree(this->Representation))
    {
      return;
    }
    const Coloring coloring(this->Representation);
    this->HasLegend = coloring.HasLegend();
    this->HidLegend = this->HidLegend && coloring.array == this->Array;
    this->Array = coloring.array;
    this->Waits = !coloring.array.empty() && coloring.arrayInformation == nullptr;
    if (coloring.IsKnown())
    {
      AttentionAtlas::SetMapScalars(this->Representation, !coloring.ShowsColors());
    }
    if (coloring.ShowsColors() && !coloring.HasOpacity())
    {
      AttentionAtlas::UseOpaqueSurface(this->Representation);
    }
    // Two legends of one array, as of the tokens of two views, are two tables.
    if (coloring.ours && AttentionAtlas::IsLegendOfOthers(coloring, this->Representation))
    {
      vtkSMPropertyHelper(this->Representation, "UseSeparateColorMap").Set(1);
      if (first) // ParaView has yet to give it the table of all, see MeetAwaited
      {
        return;
      }
      AttentionAtlas::Recolor(this->Representation, coloring.array.c_str());
    }
    if (coloring.ours)
    {
      AttentionAtlas::PrepareTable(coloring, first, this->Representation);
    }
  }

private:
  vtkWeakPointer<vtkSMProxy> Representation;
  std::string Array;
  bool Waits = false;     ///< waiting for the data of the array
  bool HasLegend = false; ///< which comes with the data
  bool HidLegend = false; ///< since the data had none

  /// The same colors may lose their legend with new data, as the marks of patches do beside all
  /// heads, and get it again.
  void FollowLegend(const Coloring& coloring)
  {
    vtkSMViewProxy* view = vtkSMViewProxy::FindView(this->Representation);
    if (this->Waits || coloring.array != this->Array || view == nullptr ||
        coloring.HasLegend() == this->HasLegend ||
        !AttentionAtlas::EndsWith(coloring.array, "Color"))
    {
      return;
    }
    if (this->HasLegend)
    {
      this->HasLegend = false;
      this->HidLegend = AttentionAtlas::HideLegend(this->Representation, view);
      return;
    }
    this->Update(); // its entries
    AttentionAtlas::ShowLegend(this->Representation, view, this->HidLegend);
    this->HidLegend = false;
  }
};

/// Titles the axes of a chart and labels its rows in words, with every change of its data or size
/// and after Reset Camera.
class ChartObserver : public vtkCommand
{
public:
  static ChartObserver* New() { return new ChartObserver; }
  vtkTypeMacro(ChartObserver, vtkCommand);

  void Observe(vtkSMProxy* representation)
  {
    this->Representation = representation;
    representation->AddObserver(vtkCommand::UpdateDataEvent, this);
  }

  void Execute(vtkObject*, unsigned long, void*) override
  {
    if (IsFree(this->Representation))
    {
      AttentionAtlas::TitleAxes(this->Representation, false);
      AttentionAtlas::FitLegend(this->Representation);
      AttentionAtlas::LabelChart(this->Representation, this->Labels);
      vtkSMProxy* view = vtkSMViewProxy::FindView(this->Representation);
      this->Follow(this->Representation, { "UseIndexForXAxis", "XArrayName" });
      this->Follow(view, { "ViewSize", "BottomAxisUseCustomRange" });
    }
  }

private:
  void Follow(vtkSMProxy* proxy, const std::array<const char*, 2>& names)
  {
    for (const char* name : names)
    {
      vtkSMProperty* property = proxy != nullptr ? proxy->GetProperty(name) : nullptr;
      if (property != nullptr && property->HasObserver(vtkCommand::ModifiedEvent, this) == 0)
      {
        property->AddObserver(vtkCommand::ModifiedEvent, this);
      }
    }
  }

  vtkWeakPointer<vtkSMProxy> Representation;
  std::vector<std::string> Labels;
};

/// Titles a view with each change of its data and before each rendering, which may follow a change
/// of names alone; and draws the title of a render view, but of a diagram, which draws its own.
/// While a render view shows our data, its points grow with letters.
class ViewObserver : public vtkCommand
{
public:
  static ViewObserver* New() { return new ViewObserver; }
  vtkTypeMacro(ViewObserver, vtkCommand);

  void Observe(vtkSMViewProxy* view)
  {
    this->View = view;
    view->AddObserver(vtkCommand::StartEvent, this);
    view->AddObserver(vtkCommand::UpdateDataEvent, this);
  }

  void Execute(vtkObject*, unsigned long, void*) override
  {
    if (!IsFree(this->View))
    {
      return;
    }
    AttentionAtlas::ShowTitle(this->View);
    auto* rendered = vtkPVRenderView::SafeDownCast(this->View->GetClientSideObject());
    auto* diagram = vtkDiagramView::SafeDownCast(rendered);
    this->Beside = rendered != nullptr ? AttentionAtlas::RoomBesideTitle(this->View) : 0;
    if (diagram != nullptr)
    {
      diagram->SetRoomBesideTitle(this->Beside);
    }
    else if (!this->Draws && rendered != nullptr &&
             (AttentionAtlas::FirstShown(this->View) != nullptr || !this->TitleOf().empty()))
    {
      this->Draws = true;
      this->Grow();
      this->Texts.Enter(rendered,
        [this]
        {
          const AttentionAtlas::TitleLines lines(this->Texts, this->TitleOf(), "", this->Beside);
          lines.Show(this->Texts);
        });
    }
    if (this->Growth != nullptr)
    {
      vtkSMPropertyHelper(this->Growth, "On")
        .Set(AttentionAtlas::FirstShown(this->View) != nullptr ? 1 : 0);
      this->Growth->UpdateVTKObjects();
    }
  }

protected:
  ~ViewObserver() override { this->Texts.Leave(); }

private:
  /// Lets the view grow wherever it is rendered.
  void Grow()
  {
    this->Growth = vtkSmartPointer<vtkSMProxy>::Take(
      this->View->GetSessionProxyManager()->NewProxy("misc", "AtlasViewGrowth"));
    if (this->Growth != nullptr)
    {
      this->Growth->UpdateVTKObjects();
      vtkClientServerStream stream; // a property would keep the view
      stream << vtkClientServerStream::Invoke << VTKOBJECT(this->Growth) << "SetView"
             << VTKOBJECT(this->View) << vtkClientServerStream::End;
      this->View->GetSession()->ExecuteStream(this->Growth->GetLocation(), stream);
    }
  }

  std::string TitleOf() const
  {
    return this->View != nullptr
             ? AttentionAtlas::TextOf({ this->View.GetPointer(), "ShownTitle", true })
             : "";
  }

  vtkWeakPointer<vtkSMViewProxy> View;
  AttentionAtlas::ViewTexts Texts;
  vtkSmartPointer<vtkSMProxy> Growth;
  double Beside = 0; ///< what color bars take at the right of the title, in points
  bool Draws = false;
};

/// Handles every representation and legend when it is registered and when a view gets it, every
/// view when its camera is reset, and every state when it is loaded, in all sessions of the client.
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
      for (vtkSMProxy* view : AttentionAtlas::ProxiesOf(manager, "views"))
      {
        this->ObserveView(view);
      }
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
    if (event == vtkCommand::ResetCameraEvent)
    {
      AttentionAtlas::MakeRoom(vtkSMViewProxy::SafeDownCast(caller));
      return;
    }
    if (event == vtkCommand::ModifiedEvent)
    {
      this->MeetAwaited();
      return;
    }
    const auto* info = static_cast<vtkSMProxyManager::RegisteredProxyInformation*>(data);
    if (info->Type != vtkSMProxyManager::RegisteredProxyInformation::PROXY)
    {
      return;
    }
    const std::string group = info->GroupName;
    const bool isNew = IsFree(info->Proxy);
    if (group == "views")
    {
      this->ObserveView(info->Proxy);
    }
    if (group == "scalar_bars" && isNew)
    {
      AttentionAtlas::CompleteBar(info->Proxy);
      this->Awaited.emplace_back(info->Proxy);
    }
    if (group == "representations" && info->Proxy->GetProperty("Input") != nullptr)
    {
      this->MeetRepresentation(info->Proxy, isNew);
    }
  }

private:
  void ObserveView(vtkSMProxy* view)
  {
    vtkSMProperty* shown = view->GetProperty("Representations");
    if (shown != nullptr && shown->HasObserver(vtkCommand::ModifiedEvent, this) == 0)
    {
      shown->AddObserver(vtkCommand::ModifiedEvent, this);
      vtkNew<ViewObserver> titled; // kept alive by the view
      titled->Observe(vtkSMViewProxy::SafeDownCast(view));
      if (vtkSMRenderViewProxy::SafeDownCast(view) != nullptr)
      {
        // After the GUI, which takes the focal point for its center of rotation.
        view->AddObserver(vtkCommand::ResetCameraEvent, this, -1);
      }
    }
  }

  void MeetRepresentation(vtkSMProxy* representation, bool isNew)
  {
    const bool isChart = representation->GetProperty("ColorArrayName") == nullptr;
    vtkNew<ChartObserver> ofChart; // kept alive by what is observed
    vtkNew<ColoringObserver> ofColors;
    if (isChart)
    {
      ofChart->Observe(representation);
    }
    else
    {
      ofColors->Observe(representation);
    }
    if (isNew)
    {
      this->Awaited.emplace_back(representation);
      AttentionAtlas::ApplyHints(representation);
    }
    if (isNew && !isChart)
    {
      ofColors->Update(true);
      representation->UpdateVTKObjects();
    }
  }

  /// Completes those of the new representations and bars that a view has by now.
  void MeetAwaited()
  {
    for (const auto& proxy : std::exchange(this->Awaited, {}))
    {
      vtkSMViewProxy* view = proxy != nullptr ? vtkSMViewProxy::FindView(proxy) : nullptr;
      if (view == nullptr)
      {
        this->Awaited.push_back(proxy);
      }
      else if (proxy->GetProperty("SeriesVisibility") != nullptr)
      {
        AttentionAtlas::TitleAxes(proxy, true);
        AttentionAtlas::FitLegend(proxy);
        std::vector<std::string> labels;
        AttentionAtlas::LabelChart(proxy, labels);
      }
      else
      {
        if (AttentionAtlas::HasOwnTable(proxy))
        {
          AttentionAtlas::Recolor(proxy, Coloring(proxy).array.c_str());
        }
        AttentionAtlas::SetInk(proxy, view);
        AttentionAtlas::FitBar(proxy, view);
        AttentionAtlas::ShowBar(proxy, view);
        AttentionAtlas::SwitchTitleOn(proxy, view);
      }
    }
  }

  std::vector<vtkWeakPointer<vtkSMProxy>> Awaited; ///< which no view has yet
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
