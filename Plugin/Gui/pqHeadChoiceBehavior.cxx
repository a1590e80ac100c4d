#include "pqHeadChoiceBehavior.h"

#include "TokenSelection.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqObjectBuilder.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqSelectionManager.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkCommand.h>
#include <vtkEventQtSlotConnect.h>
#include <vtkNew.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkSMParaViewPipelineControllerWithRendering.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSelectionLink.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewLayoutProxy.h>

#include <array>

using AttentionAtlas::HeadNumber;

namespace
{

/// The largest number of tokens that a selection in one head selects in all.
constexpr vtkIdType TokenLimit = 100'000;
/// How far from a double click a point may be, in pixels.
constexpr int Nearby = 8;

pqServerManagerModel* Model()
{
  return pqApplicationCore::instance()->getServerManagerModel();
}

pqSelectionManager* Selections()
{
  return qobject_cast<pqSelectionManager*>(
    pqApplicationCore::instance()->manager("SELECTION_MANAGER"));
}

vtkPVXMLElement* HintOf(vtkSMProxy* proxy)
{
  vtkPVXMLElement* hints = proxy->GetHints();
  return hints != nullptr ? hints->FindNestedElementByName("AtlasShowsHead") : nullptr;
}

/// The filters that show one head of a recording.
QList<pqPipelineSource*> FindViewsOfHeads(vtkSMProxy* recording)
{
  QList<pqPipelineSource*> found;
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    vtkSMProxy* proxy = source->getProxy();
    if (HintOf(proxy) != nullptr && AttentionAtlas::RecordingOf(proxy) == recording &&
        vtkSMPropertyHelper(proxy, "Layer").GetAsInt() >= 0 &&
        vtkSMPropertyHelper(proxy, "Head").GetAsInt() >= 0)
    {
      found.push_back(source);
    }
  }
  return found;
}

void SetHead(vtkSMProxy* proxy, const HeadNumber& number)
{
  vtkSMPropertyHelper(proxy, "Layer").Set(number.layer);
  vtkSMPropertyHelper(proxy, "Head").Set(number.head);
  proxy->UpdateVTKObjects();
}

/// Lets the filters of a recording show this head.
void Follow(vtkSMProxy* recording, const HeadNumber& number)
{
  const QList<pqPipelineSource*> views = FindViewsOfHeads(recording);
  if (views.isEmpty())
  {
    return;
  }
  BEGIN_UNDO_SET(QString("Show Head %1 of Layer %2").arg(number.head).arg(number.layer));
  for (pqPipelineSource* view : views)
  {
    SetHead(view->getProxy(), number);
  }
  END_UNDO_SET();
}

/// The nearest filter upstream whose hint names a filter to open.
vtkSMSourceProxy* FindOpener(vtkSMProxy* proxy)
{
  auto* source = vtkSMSourceProxy::SafeDownCast(proxy);
  while (source != nullptr)
  {
    vtkPVXMLElement* hint = HintOf(source);
    if (hint != nullptr && hint->GetAttribute("opens") != nullptr)
    {
      return source;
    }
    vtkSMPropertyHelper input(source, "Input", true);
    source = input.GetNumberOfElements() > 0 ? vtkSMSourceProxy::SafeDownCast(input.GetAsProxy())
                                             : nullptr;
  }
  return nullptr;
}

/// A new render view to the right of one.
pqView* SplitView(pqView* view)
{
  pqView* beside = pqApplicationCore::instance()->getObjectBuilder()->createView(
    pqRenderView::renderViewType(), view->getServer());
  vtkSMViewLayoutProxy* layout = vtkSMViewLayoutProxy::FindLayout(view->getViewProxy());
  if (layout != nullptr)
  {
    layout->RemoveView(beside->getViewProxy());
    const int left = layout->SplitHorizontal(layout->GetViewLocation(view->getViewProxy()), 0.6);
    layout->AssignView(left + 1, beside->getViewProxy());
  }
  return beside;
}

/// Selects the same tokens in two sources, now and later.
void LinkTokens(vtkSMSourceProxy* first, vtkSMSourceProxy* second)
{
  vtkNew<vtkSMSelectionLink> link;
  link->SetConvertToIndices(false);
  link->AddLinkedSelection(first, vtkSMLink::INPUT);
  link->AddLinkedSelection(second, vtkSMLink::OUTPUT);
  link->AddLinkedSelection(second, vtkSMLink::INPUT);
  link->AddLinkedSelection(first, vtkSMLink::OUTPUT);
  vtkSMSessionProxyManager* proxies = first->GetSessionProxyManager();
  const auto nameOf = [&](vtkSMProxy* proxy)
  { return QString(proxies->GetProxyName("sources", proxy)); };
  const QString name = "Tokens of " + nameOf(first) + " and " + nameOf(second);
  proxies->RegisterLink(name.toUtf8().constData(), link);
  if (vtkSMSourceProxy* selection = first->GetSelectionInput(0))
  {
    second->SetSelectionInput(0, selection, 0);
  }
}

/// Opens the filter that the hint of `opener` names, for one head, in a view beside `view`. The
/// tokens that are selected in `chosen` are selected in it.
void OpenBeside(
  vtkSMSourceProxy* opener, vtkSMSourceProxy* chosen, const HeadNumber& number, pqView* view)
{
  const QString name = HintOf(opener)->GetAttribute("opens");
  auto* recording = Model()->findItem<pqPipelineSource*>(AttentionAtlas::RecordingOf(opener));
  BEGIN_UNDO_SET(QString("Open Head %1 of Layer %2").arg(number.head).arg(number.layer));
  pqView* beside = SplitView(view);
  pqActiveObjects::instance().setActiveView(beside);
  pqPipelineSource* filter =
    pqApplicationCore::instance()->getObjectBuilder()->createFilter("filters", name, recording);
  auto* proxy = vtkSMSourceProxy::SafeDownCast(filter->getProxy());
  if (name == opener->GetXMLName()) // with the same settings, but in space
  {
    proxy->Copy(opener);
    vtkSMPropertyHelper(proxy, "Dimensions").Set(3);
  }
  SetHead(proxy, number);
  vtkNew<vtkSMParaViewPipelineControllerWithRendering> controller;
  controller->Show(proxy, 0, beside->getViewProxy());
  LinkTokens(chosen, proxy);
  filter->setModifiedState(pqProxy::UNMODIFIED);
  beside->resetDisplay();
  END_UNDO_SET();
}

}

pqHeadChoiceBehavior::pqHeadChoiceBehavior(QObject* parent)
  : QObject(parent)
{
}

pqHeadChoiceBehavior::~pqHeadChoiceBehavior() = default;

void pqHeadChoiceBehavior::startup()
{
  this->connect(Selections(), SIGNAL(selectionChanged(pqOutputPort*)), SLOT(hear(pqOutputPort*)));
  this->connect(Model(), SIGNAL(viewAdded(pqView*)), SLOT(meet(pqView*)));
  for (pqView* view : Model()->findItems<pqView*>())
  {
    this->meet(view);
  }
}

void pqHeadChoiceBehavior::shutdown()
{
  if (pqSelectionManager* selections = Selections())
  {
    selections->disconnect(this);
  }
  Model()->disconnect(this);
}

void pqHeadChoiceBehavior::hear(pqOutputPort* selected)
{
  vtkSMSourceProxy* selection = selected != nullptr ? selected->getSelectionInput() : nullptr;
  if (this->Busy || (selection != nullptr && AttentionAtlas::SelectsTokens(selection)))
  {
    return;
  }
  this->Chosen = {};
  vtkPVDataInformation* shown = selection != nullptr ? selected->getDataInformation() : nullptr;
  const bool showsTokens = shown != nullptr && AttentionAtlas::ShowsTokens(shown);
  const bool showsHeads = shown != nullptr && AttentionAtlas::ShowsSeveralHeads(shown);
  if (!showsTokens && !showsHeads)
  {
    return;
  }
  vtkSMSourceProxy* source = selected->getSourceProxy();
  const auto points = AttentionAtlas::ExtractSelected(source, selected->getPortNumber(), selection);
  vtkPVDataInformation* found = points->GetDataInformation(0);
  if (found->GetNumberOfPoints() == 0)
  {
    return;
  }
  if (showsTokens)
  {
    this->selectTokens(selected, points);
  }
  const auto number = AttentionAtlas::OnlyHead(found);
  if (showsHeads && number)
  {
    this->Chosen = { selected, number->layer, number->head };
    Follow(AttentionAtlas::RecordingOf(source), *number);
  }
  pqApplicationCore::instance()->render();
}

void pqHeadChoiceBehavior::selectTokens(pqOutputPort* port, vtkSMSourceProxy* points)
{
  if (const auto tokens = AttentionAtlas::SelectTokensOf(points, TokenLimit))
  {
    this->Busy = true;
    port->setSelectionInput(tokens, 0);
    Selections()->select(port);
    this->Busy = false;
  }
}

void pqHeadChoiceBehavior::meet(pqView* view)
{
  auto* rendered = qobject_cast<pqRenderView*>(view);
  if (rendered == nullptr)
  {
    return;
  }
  vtkRenderWindowInteractor* interactor = rendered->getRenderViewProxy()->GetInteractor();
  if (interactor != nullptr)
  {
    this->Connector->Connect(
      interactor, vtkCommand::LeftButtonDoubleClickEvent, this, SLOT(open(vtkObject*)));
  }
}

void pqHeadChoiceBehavior::open(vtkObject* caller)
{
  pqRenderView* view = nullptr;
  for (pqRenderView* candidate : Model()->findItems<pqRenderView*>())
  {
    view = candidate->getRenderViewProxy()->GetInteractor() == caller ? candidate : view;
  }
  if (view == nullptr)
  {
    return;
  }
  const int* place = vtkRenderWindowInteractor::SafeDownCast(caller)->GetEventPosition();
  std::array<int, 4> region = { place[0] - Nearby, place[1] - Nearby, place[0] + Nearby,
    place[1] + Nearby };
  this->Chosen = {};
  view->selectPointsOnSurface(region.data());
  if (this->Chosen.port == nullptr)
  {
    return;
  }
  vtkSMSourceProxy* source = this->Chosen.port->getSourceProxy();
  vtkSMSourceProxy* opener = FindOpener(source);
  vtkSMSourceProxy* recording = AttentionAtlas::RecordingOf(source);
  if (opener != nullptr && recording != nullptr && FindViewsOfHeads(recording).isEmpty())
  {
    OpenBeside(opener, source, { this->Chosen.layer, this->Chosen.head }, view);
  }
}
