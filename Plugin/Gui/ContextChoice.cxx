#include "ContextChoice.h"

#include "DataFormat.h"
#include "OpenedViews.h"
#include "PropertyHints.h"
#include "TokenSelection.h"

#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <QList>
#include <QMainWindow>
#include <QMap>
#include <QStatusBar>
#include <QString>

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSourceProxy.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

namespace AttentionAtlas
{
namespace
{

constexpr int Milliseconds = 10'000; ///< that a message stays

/// The output that has the tokens of the text.
constexpr unsigned int TokensPort = 3;

/// The recorders that run the text which a filter has chosen.
QList<pqPipelineSource*> RecordersOf(vtkSMSourceProxy* source)
{
  QList<pqPipelineSource*> found;
  for (pqPipelineSource* candidate : Model()->findItems<pqPipelineSource*>())
  {
    vtkSMPropertyHelper tokens(candidate->getProxy(), "Tokens", true);
    if (tokens.GetNumberOfElements() > 0 && tokens.GetAsProxy() == source &&
        tokens.GetOutputPort() == TokensPort)
    {
      found.push_back(candidate);
    }
  }
  return found;
}

/// The model of the statistics, or else the only one; null if there is none.
pqPipelineSource* ModelOf(vtkSMSourceProxy* source)
{
  const std::set<vtkSMProxy*> upstream = ModelsOf(source);
  QList<pqPipelineSource*> open;
  for (pqPipelineSource* candidate : Model()->findItems<pqPipelineSource*>())
  {
    auto* proxy = vtkSMSourceProxy::SafeDownCast(candidate->getProxy());
    if (HasFormat(proxy, Formats::Transformer))
    {
      if (upstream.count(proxy) > 0)
      {
        return candidate;
      }
      open.push_back(candidate);
    }
  }
  return open.size() == 1 ? open.front() : nullptr;
}

/// Lets a view of a recording show its only text, and what the query of this text attends to.
void ShowQuery(vtkSMProxy* view, std::optional<int> query)
{
  vtkSMPropertyHelper sequence(view, "Sequence", true);
  if (sequence.GetNumberOfElements() == 1 && sequence.GetAsInt() > 0)
  {
    sequence.Set(0);
  }
  if (FindHint(view, "AtlasShowsTokens") != nullptr && query)
  {
    vtkSMPropertyHelper(view, "SelectedTokens").Set(&*query, 1);
  }
  view->UpdateVTKObjects();
}

/// The position of the query in the text that is recorded.
std::optional<int> QueryOf(vtkSMSourceProxy* source)
{
  source->UpdatePipeline();
  vtkPVArrayInformation* query =
    source->GetDataInformation(TokensPort)->GetArrayInformation("Query", vtkDataObject::FIELD);
  return query != nullptr ? std::optional(static_cast<int>(query->GetComponentRange(0)[0]))
                          : std::nullopt;
}

/// An attribute of the hint of a filter that shows texts.
const char* HintOf(const Context& context, const char* attribute)
{
  return FindHint(context.source, "AtlasShowsContexts")->GetAttribute(attribute);
}

void Choose(const Context& context)
{
  vtkSMPropertyHelper(context.source, HintOf(context, "recorded")).Set(context.rank);
  context.source->UpdateVTKObjects();
  const QList<pqPipelineSource*> recorders = RecordersOf(context.source);
  if (recorders.isEmpty())
  {
    return;
  }
  const auto query = QueryOf(context.source);
  for (pqPipelineSource* source : Model()->findItems<pqPipelineSource*>())
  {
    vtkSMProxy* recording = RecordingOf(source->getProxy());
    for (pqPipelineSource* recorder : recorders)
    {
      if (recording == recorder->getProxy() && source != recorder)
      {
        ShowQuery(source->getProxy(), query);
      }
    }
  }
}

QString TitleOf(const Context& context)
{
  return QString("Record Text %1").arg(context.rank);
}

}

bool ShowsContexts(vtkSMSourceProxy* source)
{
  return FindHint(source, "AtlasShowsContexts") != nullptr;
}

std::optional<Context> ContextOf(vtkSMSourceProxy* source, vtkPVDataInformation* selected)
{
  const auto rank = ShowsContexts(source) ? OnlyValue(selected, "Rank") : std::nullopt;
  return rank ? std::optional(Context{ source, *rank }) : std::nullopt;
}

std::optional<Context> ContextAt(pqRenderView* view, int x, int y)
{
  const std::array<double, 2> place = PlaceInPlane(view, x, y);
  const auto rank = static_cast<int>(std::lround(-place[1])); // a text with rank r is at y = -r
  for (pqDataRepresentation* shown : VisibleDataIn(view))
  {
    pqOutputPort* port = shown->getOutputPortFromInput();
    if (!ShowsContexts(port->getSourceProxy()))
    {
      continue;
    }
    const double* bounds = port->getDataInformation()->GetBounds();
    if (place[0] >= bounds[0] && rank >= 1 && -rank >= bounds[2])
    {
      return Context{ port->getSourceProxy(), rank };
    }
  }
  return std::nullopt;
}

void RecordContext(const Context& context)
{
  BEGIN_UNDO_SET(TitleOf(context));
  Choose(context);
  END_UNDO_SET();
}

void OpenContext(const Context& context, pqRenderView* view)
{
  pqPipelineSource* model = ModelOf(context.source);
  if (!RecordersOf(context.source).isEmpty() || model == nullptr)
  {
    RecordContext(context);
    auto* window = qobject_cast<QMainWindow*>(pqCoreUtilities::mainWidget());
    if (model == nullptr && window != nullptr)
    {
      window->statusBar()->showMessage(
        "Open the model of these statistics, and no other, to record the text.", Milliseconds);
    }
    return;
  }
  pqObjectBuilder* builder = pqApplicationCore::instance()->getObjectBuilder();
  auto* contexts = Model()->findItem<pqPipelineSource*>(context.source);
  BEGIN_UNDO_SET(TitleOf(context));
  Choose(context);
  const QMap<QString, QList<pqOutputPort*>> inputs = { { "Input", { model->getOutputPort(0) } },
    { "Tokens", { contexts->getOutputPort(static_cast<int>(TokensPort)) } } };
  pqPipelineSource* recorder =
    builder->createFilter("filters", "TransformerRecorder", inputs, contexts->getServer());
  recorder->setModifiedState(pqProxy::UNMODIFIED);
  vtkSMSourceProxy::SafeDownCast(recorder->getProxy())->UpdatePipeline();
  pqPipelineSource* opened = builder->createFilter("filters", HintOf(context, "opens"), recorder);
  pqView* beside = ViewForOpened(view);
  auto* proxy = vtkSMSourceProxy::SafeDownCast(opened->getProxy());
  for (const char* name : { "Layer", "Head" })
  {
    vtkSMPropertyHelper(proxy, name).Set(vtkSMPropertyHelper(context.source, name).GetAsInt());
  }
  ShowQuery(proxy, QueryOf(context.source));
  ShowOutputs(proxy, beside->getViewProxy());
  opened->setModifiedState(pqProxy::UNMODIFIED);
  beside->resetDisplay();
  END_UNDO_SET();
}

}
