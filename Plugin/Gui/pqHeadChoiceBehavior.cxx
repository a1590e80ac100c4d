#include "pqHeadChoiceBehavior.h"

#include "ContextChoice.h"
#include "OpenedViews.h"
#include "PropertyHints.h"
#include "TokenSelection.h"

#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqSelectionManager.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkCommand.h>
#include <vtkPVDataInformation.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkSMEnumerationDomain.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewProxy.h>
#include <vtkType.h>

#include <QTimer>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>

using AttentionAtlas::HeadNumber;
using AttentionAtlas::Model;

namespace
{

/// The largest number of tokens that a selection in one head selects in all.
constexpr std::size_t TokenLimit = 100'000;
/// How far from a double click a point may be, in pixels.
constexpr int Nearby = 8;

pqSelectionManager* Selections()
{
  return qobject_cast<pqSelectionManager*>(
    pqApplicationCore::instance()->manager("SELECTION_MANAGER"));
}

vtkPVXMLElement* HintOf(vtkSMProxy* proxy)
{
  return FindHint(proxy, "AtlasShowsHead");
}

/// Whether a filter shows one head: its Layer and Head are not those of all or of their mean.
bool ShowsOneHead(vtkSMProxy* proxy)
{
  const auto isChosen = [proxy](const char* name)
  {
    return proxy->GetProperty(name) != nullptr && vtkSMPropertyHelper(proxy, name).GetAsInt() >= 0;
  };
  return HintOf(proxy) != nullptr && isChosen("Layer") && isChosen("Head");
}

/// The filters that show one head of the model of a filter.
QList<pqPipelineSource*> FindViewsOfHeads(vtkSMProxy* filter)
{
  const std::set<vtkSMProxy*> models = AttentionAtlas::ModelsOf(filter);
  QList<pqPipelineSource*> found;
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    vtkSMProxy* proxy = source->getProxy();
    const auto others =
      ShowsOneHead(proxy) ? AttentionAtlas::ModelsOf(proxy) : std::set<vtkSMProxy*>();
    if (std::any_of(models.begin(), models.end(),
          [&others](vtkSMProxy* model) { return others.count(model) > 0; }))
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

/// Lets a filter show the text, the quantity and the kind of attention that another filter on the
/// same recording shows, as far as it has them.
void Carry(vtkSMProxy* from, vtkSMProxy* to)
{
  if (AttentionAtlas::RecordingOf(from) != AttentionAtlas::RecordingOf(to))
  {
    return;
  }
  for (const char* name : { "AttentionKind", "Sequence", "Quantity" })
  {
    vtkSMProperty* shown = from->GetProperty(name);
    vtkSMProperty* property = to->GetProperty(name);
    if (shown == nullptr || property == nullptr)
    {
      continue;
    }
    int value = vtkSMPropertyHelper(shown).GetAsInt();
    auto* words = shown->FindDomain<vtkSMEnumerationDomain>();
    auto* known = property->FindDomain<vtkSMEnumerationDomain>();
    if (words != nullptr && known != nullptr)
    {
      const char* word = words->GetEntryTextForValue(value);
      value =
        word != nullptr && known->HasEntryText(word) != 0 ? known->GetEntryValueForText(word) : -1;
    }
    if (value >= 0) // not the mean of all texts, nor what only the other one has
    {
      vtkSMPropertyHelper(property).Set(value);
    }
  }
  to->UpdateVTKObjects();
}

/// Lets the filters of the same model as a filter show this head, of the same text where they are
/// of the same recording.
void Follow(vtkSMProxy* filter, const HeadNumber& number)
{
  const QList<pqPipelineSource*> views = FindViewsOfHeads(filter);
  if (views.isEmpty())
  {
    return;
  }
  BEGIN_UNDO_SET(QString("Show Head %1 of Layer %2").arg(number.head).arg(number.layer));
  for (pqPipelineSource* view : views)
  {
    Carry(filter, view->getProxy());
    SetHead(view->getProxy(), number);
  }
  END_UNDO_SET();
}

/// Whether one of some filters is that which the hint of `opener` names.
bool IsOpen(vtkSMSourceProxy* opener, const QList<pqPipelineSource*>& filters)
{
  const QString name = HintOf(opener)->GetAttribute("opens");
  return std::any_of(filters.begin(), filters.end(),
    [&name](pqPipelineSource* filter) { return name == filter->getProxy()->GetXMLName(); });
}

void SetSelectedTokens(vtkSMSourceProxy* filter, const std::vector<vtkIdType>& tokens)
{
  vtkSMPropertyHelper list(filter, "SelectedTokens");
  list.SetNumberOfElements(static_cast<unsigned int>(tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    list.Set(static_cast<unsigned int>(i), tokens[i]);
  }
}

/// Whether a filter shows the attention of words on pictures.
bool ShowsPicturesOfWords(vtkSMProxy* filter)
{
  return FindHint(filter, "AtlasShowsPatch") != nullptr &&
         vtkSMPropertyHelper(filter, "HasWordsInfo", true).GetAsInt() != 0;
}

/// Lets a filter that can show chosen tokens alone show these, which were selected in its output;
/// none: all.
void ShowTokens(
  vtkSMSourceProxy* filter, const std::vector<vtkIdType>& tokens, vtkPVDataInformation* selected)
{
  if (FindHint(filter, "AtlasShowsTokens") != nullptr)
  {
    SetSelectedTokens(filter, tokens);
    if (const auto side = AttentionAtlas::OnlyValue(selected, "Side"))
    {
      vtkSMPropertyHelper(filter, "Direction").Set(*side);
    }
  }
  if (ShowsPicturesOfWords(filter)) // in place of words that were selected elsewhere
  {
    SetSelectedTokens(filter, {});
    if (const auto picture = AttentionAtlas::OnlyValue(selected, "Picture"))
    {
      vtkSMPropertyHelper(filter, "PatchPicture").Set(*picture);
    }
  }
  const auto row = AttentionAtlas::OnlyValue(selected, "Row");
  const auto column = AttentionAtlas::OnlyValue(selected, "Column");
  if (FindHint(filter, "AtlasShowsPatch") != nullptr && row && column && !tokens.empty())
  {
    const std::array<int, 2> patch = { *row, *column };
    vtkSMPropertyHelper(filter, "Patch").Set(patch.data(), 2);
  }
  filter->UpdateVTKObjects();
}

/// Whether a selection in an output of a filter chooses its query: its first output's.
bool ShowsPlaces(pqOutputPort* port)
{
  return port->getPortNumber() == 0 &&
         FindHint(port->getSourceProxy(), "AtlasShowsPlace") != nullptr;
}

/// Lets a filter show the query at the middle of what was selected in its output: after the
/// selection, of which ParaView keeps nothing to undo.
void ShowPlace(pqPipelineSource* filter, vtkPVDataInformation* selected)
{
  const double* bounds = selected->GetBounds();
  const std::array<double, 3> middle = { (bounds[0] + bounds[1]) / 2, (bounds[2] + bounds[3]) / 2,
    (bounds[4] + bounds[5]) / 2 };
  QTimer::singleShot(0, filter,
    [filter, middle]
    {
      vtkSMProxy* proxy = filter->getProxy();
      BEGIN_UNDO_SET("Show Attention of Place");
      vtkSMPropertyHelper(proxy, "QueryBy").Set(1); // the probe
      vtkSMPropertyHelper(proxy, "Probe").Set(middle.data(), 3);
      proxy->UpdateVTKObjects();
      END_UNDO_SET();
      pqApplicationCore::instance()->render();
    });
}

/// Whether a selection in an output chooses tokens, a head, a place or a text.
bool Chooses(pqOutputPort* port)
{
  vtkPVDataInformation* shown = port->getDataInformation();
  return AttentionAtlas::TokenAssociation(shown) >= 0 || AttentionAtlas::ShowsSeveralHeads(shown) ||
         ShowsPlaces(port) || AttentionAtlas::ShowsContexts(port->getSourceProxy());
}

/// Whether the hint of a filter names one to open.
bool Opens(vtkSMSourceProxy* source)
{
  vtkPVXMLElement* hint = HintOf(source);
  return hint != nullptr && hint->GetAttribute("opens") != nullptr;
}

/// What is nearest to a place of a view: the cell under it, if it is one of a head, else the points
/// in the smallest square around it that has some.
struct Nearest
{
  pqOutputPort* shown = nullptr; ///< null if there is nothing
  bool isCell = true;
  std::array<int, 4> region;

  Nearest(pqRenderView* view, int x, int y)
  {
    this->look(view, x, y, 0);
    if (this->shown != nullptr && this->shown->getDataInformation()->GetArrayInformation(
                                    "Head", vtkDataObject::CELL) != nullptr)
    {
      return;
    }
    this->isCell = false;
    int least = this->look(view, x, y, Nearby) ? 0 : Nearby;
    for (int most = Nearby; least < most;)
    {
      const int middle = (least + most) / 2;
      const bool isThere = this->look(view, x, y, middle);
      most = isThere ? middle : most;
      least = isThere ? least : middle + 1;
    }
    this->look(view, x, y, least);
  }

private:
  bool look(pqRenderView* view, int x, int y, int reach)
  {
    this->region = { x - reach, y - reach, x + reach, y + reach };
    pqDataRepresentation* front = AttentionAtlas::InFront(view, this->region, !this->isCell).shown;
    this->shown = front != nullptr ? front->getOutputPortFromInput() : nullptr;
    return this->shown != nullptr;
  }
};

/// Opens the filter that the hint of `opener` names, for one head, in a view beside `view`; nullptr
/// if `opener` has no input.
pqPipelineSource* OpenBeside(vtkSMSourceProxy* opener, const HeadNumber& number, pqView* view)
{
  const QString name = HintOf(opener)->GetAttribute("opens");
  auto* input =
    Model()->findItem<pqPipelineSource*>(vtkSMPropertyHelper(opener, "Input", true).GetAsProxy());
  if (input == nullptr)
  {
    return nullptr;
  }
  BEGIN_UNDO_SET(QString("Open Head %1 of Layer %2").arg(number.head).arg(number.layer));
  pqPipelineSource* filter =
    pqApplicationCore::instance()->getObjectBuilder()->createFilter("filters", name, input);
  pqView* beside = AttentionAtlas::ViewForOpened(view);
  auto* proxy = vtkSMSourceProxy::SafeDownCast(filter->getProxy());
  if (name == opener->GetXMLName()) // with the same settings, but in space
  {
    proxy->Copy(opener);
    vtkSMPropertyHelper(proxy, "Dimensions").Set(3);
  }
  Carry(opener, proxy);
  SetHead(proxy, number);
  AttentionAtlas::ShowOutputs(proxy, beside->getViewProxy());
  filter->setModifiedState(pqProxy::UNMODIFIED);
  beside->resetDisplay();
  END_UNDO_SET();
  return filter;
}

}

void pqHeadChoiceBehavior::startup()
{
  this->listen();
  this->connect(Model(), SIGNAL(serverAdded(pqServer*)), SLOT(listen()));
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

void pqHeadChoiceBehavior::listen()
{
  if (pqSelectionManager* selections = Selections())
  {
    this->connect(selections, SIGNAL(selectionChanged(pqOutputPort*)), SLOT(hear(pqOutputPort*)),
      Qt::UniqueConnection);
  }
}

void pqHeadChoiceBehavior::hear(pqOutputPort* selected)
{
  vtkSMSourceProxy* selection = selected != nullptr ? selected->getSelectionInput() : nullptr;
  if (this->Busy || (selection != nullptr && AttentionAtlas::SelectsTokens(selection)))
  {
    return;
  }
  this->Chosen = {};
  if (selection == nullptr)
  {
    this->forget();
    return;
  }
  if (!Chooses(selected))
  {
    return;
  }
  vtkPVDataInformation* shown = selected->getDataInformation();
  vtkSMSourceProxy* source = selected->getSourceProxy();
  const auto points = AttentionAtlas::ExtractSelected(source, selected->getPortNumber(), selection);
  vtkPVDataInformation* found = points->GetDataInformation(0);
  if (found->GetNumberOfPoints() == 0 && found->GetNumberOfRows() == 0)
  {
    return;
  }
  if (ShowsPlaces(selected))
  {
    ShowPlace(selected->getSource(), found);
  }
  if (AttentionAtlas::TokenAssociation(shown) >= 0)
  {
    this->selectTokens(selected, points);
  }
  const auto number = AttentionAtlas::OnlyHead(found);
  if (number && AttentionAtlas::ShowsSeveralHeads(shown))
  {
    this->Chosen = { selected, *number };
    Follow(source, *number);
  }
  if (const auto context = AttentionAtlas::ContextOf(source, found))
  {
    AttentionAtlas::RecordContext(*context);
  }
  pqApplicationCore::instance()->render();
}

void pqHeadChoiceBehavior::selectTokens(pqOutputPort* selected, vtkSMSourceProxy* points)
{
  const std::vector<vtkIdType> tokens = AttentionAtlas::TokensOf(points);
  if (tokens.empty() || tokens.size() > TokenLimit)
  {
    return;
  }
  BEGIN_UNDO_SET("Show Selected Tokens");
  ShowTokens(selected->getSourceProxy(), tokens, points->GetDataInformation(0));
  this->Tokens = tokens;
  this->Recording = AttentionAtlas::RecordingOf(selected->getSourceProxy());
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    auto* proxy = vtkSMSourceProxy::SafeDownCast(source->getProxy());
    if (proxy != nullptr && proxy != selected->getSourceProxy() && ShowsPicturesOfWords(proxy) &&
        AttentionAtlas::RecordingOf(proxy) == this->Recording)
    {
      SetSelectedTokens(proxy, tokens);
      proxy->UpdateVTKObjects();
    }
  }
  END_UNDO_SET();
  this->Busy = true;
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    this->selectIn(source);
  }
  Selections()->select(selected);
  this->Busy = false;
}

void pqHeadChoiceBehavior::selectIn(pqPipelineSource* source)
{
  if (AttentionAtlas::RecordingOf(source->getProxy()) != this->Recording)
  {
    return;
  }
  for (pqOutputPort* port : source->getOutputPorts())
  {
    const int association = AttentionAtlas::TokenAssociation(port->getDataInformation());
    if (association >= 0)
    {
      const auto tokens =
        AttentionAtlas::SelectTokens(port->getSourceProxy(), this->Tokens, association);
      port->setSelectionInput(tokens, 0);
    }
  }
}

void pqHeadChoiceBehavior::forget()
{
  if (this->Recording == nullptr)
  {
    return;
  }
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    if (AttentionAtlas::RecordingOf(source->getProxy()) != this->Recording)
    {
      continue;
    }
    for (pqOutputPort* port : source->getOutputPorts())
    {
      vtkSMSourceProxy* selection = port->getSelectionInput();
      if (selection != nullptr && AttentionAtlas::SelectsTokens(selection))
      {
        port->setSelectionInput(nullptr, 0);
        ShowTokens(port->getSourceProxy(), {}, port->getDataInformation());
      }
    }
  }
  this->Tokens.clear();
  this->Recording = nullptr;
  pqApplicationCore::instance()->render();
}

void pqHeadChoiceBehavior::meet(pqView* view)
{
  auto* rendered = qobject_cast<pqRenderView*>(view);
  vtkRenderWindowInteractor* interactor =
    rendered != nullptr ? rendered->getRenderViewProxy()->GetInteractor() : nullptr;
  if (interactor != nullptr)
  {
    this->Connector->Connect(
      interactor, vtkCommand::LeftButtonDoubleClickEvent, this, SLOT(open(vtkObject*)));
  }
}

void pqHeadChoiceBehavior::open(vtkObject* caller)
{
  pqRenderView* view = AttentionAtlas::ViewOf(caller);
  if (view == nullptr)
  {
    return;
  }
  const int* place = vtkRenderWindowInteractor::SafeDownCast(caller)->GetEventPosition();
  if (const auto context = AttentionAtlas::ContextAt(view, place[0], place[1]))
  {
    AttentionAtlas::OpenContext(*context, view);
    pqApplicationCore::instance()->render();
    return;
  }
  this->Chosen = {};
  Nearest nearest(view, place[0], place[1]);
  pqOutputPort* shown = nearest.shown;
  if (shown != nullptr && !Chooses(shown))
  {
    return; // the user's own selection stays as it is
  }
  if (shown != nullptr && nearest.isCell)
  {
    view->selectCellsOnSurface(nearest.region.data());
  }
  else if (shown != nullptr)
  {
    view->selectPointsOnSurface(nearest.region.data());
  }
  if (this->Chosen.port == nullptr)
  {
    this->choosePanel(view, place[0], place[1]);
  }
  if (this->Chosen.port == nullptr)
  {
    if (shown == nullptr && view->getProxy()->GetProperty("FitToData") != nullptr)
    {
      view->resetDisplay(); // a diagram
    }
    return;
  }
  vtkSMSourceProxy* source = this->Chosen.port->getSourceProxy();
  vtkSMSourceProxy* opener = AttentionAtlas::FindUpstream(source, Opens);
  if (opener == nullptr || IsOpen(opener, FindViewsOfHeads(source)))
  {
    return;
  }
  pqPipelineSource* opened = OpenBeside(opener, this->Chosen.number, view);
  if (opened != nullptr && this->Recording != nullptr)
  {
    this->selectIn(opened);
    pqApplicationCore::instance()->render();
  }
}

void pqHeadChoiceBehavior::choosePanel(pqRenderView* view, int x, int y)
{
  const std::array<double, 2> place = AttentionAtlas::PlaceInPlane(view, x, y);
  for (pqDataRepresentation* shown : AttentionAtlas::VisibleDataIn(view))
  {
    pqOutputPort* port = shown->getOutputPortFromInput();
    vtkPVDataInformation* data = port->getDataInformation();
    if (data->GetDataSetType() != VTK_IMAGE_DATA || !AttentionAtlas::ShowsSeveralHeads(data))
    {
      continue;
    }
    vtkSMSourceProxy* source = port->getSourceProxy();
    if (const auto number =
          AttentionAtlas::HeadAt(source, port->getPortNumber(), place[0], place[1]))
    {
      this->Chosen = { port, *number };
      Follow(source, *number);
      pqApplicationCore::instance()->render();
      return;
    }
  }
}
