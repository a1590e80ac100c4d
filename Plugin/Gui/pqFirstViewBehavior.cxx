#include "pqFirstViewBehavior.h"

#include "NestedElements.h"
#include "OpenedViews.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqObjectBuilder.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqPropertiesPanel.h>
#include <pqServer.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>
#include <pqView.h>

#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>

#include <QList>
#include <QString>
#include <QTimer>

#include <algorithm>
#include <limits>
#include <vector>

namespace
{

std::vector<vtkPVXMLElement*> FirstViews(pqPipelineSource* source)
{
  return AttentionAtlas::ElementsIn(source->getProxy()->GetHints(), "AtlasFirstView");
}

/// Whether the numbers that a hint states are so in the field data of an output.
bool Holds(vtkPVXMLElement* hint, vtkPVDataInformation* data)
{
  const std::vector<vtkPVXMLElement*> fields = AttentionAtlas::ElementsIn(hint, "Field");
  return std::all_of(fields.begin(), fields.end(),
    [data](vtkPVXMLElement* field)
    {
      double least = -std::numeric_limits<double>::infinity();
      double most = std::numeric_limits<double>::infinity();
      field->GetScalarAttribute("min", &least);
      field->GetScalarAttribute("max", &most);
      vtkPVArrayInformation* array =
        data->GetArrayInformation(field->GetAttributeOrEmpty("name"), vtkDataObject::FIELD);
      return array != nullptr && array->GetComponentRange(0)[0] >= least &&
             array->GetComponentRange(0)[1] <= most;
    });
}

/// The filters of the first view of a source.
QList<QString> FirstFilters(pqPipelineSource* source)
{
  pqOutputPort* port = source->getOutputPort(0);
  vtkSMSessionProxyManager* proxies = source->getServer()->proxyManager();
  QList<QString> names;
  for (vtkPVXMLElement* hint : FirstViews(source))
  {
    const char* name = hint->GetAttributeOrEmpty("filter");
    vtkSMProxy* filter = proxies->GetPrototypeProxy("filters", name);
    if (filter != nullptr && Holds(hint, port->getDataInformation()) &&
        AttentionAtlas::RefusingDomain(filter, port) == nullptr)
    {
      names.push_back(name);
    }
  }
  return names;
}

bool IsSwitchedOn(pqServer* server)
{
  vtkSMProxy* settings = server->proxyManager()->GetProxy("settings", "AttentionAtlasSettings");
  return settings == nullptr || vtkSMPropertyHelper(settings, "OpenFirstView").GetAsInt() != 0;
}

bool IsNothingShown()
{
  const auto views = AttentionAtlas::Model()->findItems<pqView*>();
  return std::all_of(views.begin(), views.end(), AttentionAtlas::IsEmpty);
}

/// Makes the view in which a filter is shown, unless it is there.
void MakeView(pqServer* server, const QString& filter)
{
  const QString type = AttentionAtlas::PreferredView(
    server->proxyManager()->GetPrototypeProxy("filters", filter.toUtf8().constData()));
  if (!type.isEmpty() && AttentionAtlas::FindEmptyView(type) == nullptr)
  {
    AttentionAtlas::CreateOwnView(type, server);
  }
}

/// Opens the first view of a source as a user does: each filter by its menu, then Apply.
void OpenFirstView(pqPipelineSource* source)
{
  if (!IsSwitchedOn(source->getServer()) || !IsNothingShown() ||
      !source->getAllConsumers().isEmpty())
  {
    return;
  }
  auto* panel = pqCoreUtilities::mainWidget()->findChild<pqPropertiesPanel*>();
  const QList<QString> filters = FirstFilters(source);
  if (panel == nullptr || filters.isEmpty())
  {
    return;
  }
  // Before what can be undone: Redo shows data in a view that is there.
  MakeView(source->getServer(), filters.front());
  BEGIN_UNDO_SET("Open First View");
  for (const QString& name : filters)
  {
    pqApplicationCore::instance()->getObjectBuilder()->createFilter("filters", name, source);
    panel->apply();
  }
  END_UNDO_SET();
  pqActiveObjects::instance().setActiveSource(source);
}

}

void pqFirstViewBehavior::startup()
{
  this->connect(pqApplicationCore::instance()->getObjectBuilder(),
    SIGNAL(readerCreated(pqPipelineSource*, const QStringList&)), SLOT(meet(pqPipelineSource*)));
}

void pqFirstViewBehavior::shutdown()
{
  pqApplicationCore::instance()->getObjectBuilder()->disconnect(this);
}

void pqFirstViewBehavior::meet(pqPipelineSource* source)
{
  if (!FirstViews(source).empty())
  {
    this->connect(source, SIGNAL(modifiedStateChanged(pqServerManagerModelItem*)),
      SLOT(hear(pqServerManagerModelItem*)));
  }
}

void pqFirstViewBehavior::hear(pqServerManagerModelItem* source)
{
  auto* applied = qobject_cast<pqPipelineSource*>(source);
  if (applied->modifiedState() == pqProxy::UNMODIFIED)
  {
    applied->disconnect(this);                                             // once
    QTimer::singleShot(0, applied, [applied] { OpenFirstView(applied); }); // after Apply
  }
}
