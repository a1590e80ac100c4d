#include "pqFilterReasonBehavior.h"

#include "OpenedViews.h"
#include "OurProxies.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqServer.h>

#include <vtkPVXMLElement.h>
#include <vtkSMDocumentation.h>
#include <vtkSMDomain.h>
#include <vtkSMProperty.h>
#include <vtkSMProxy.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>

#include <QAction>
#include <QMenu>
#include <QStringList>

namespace
{

/// The property that chooses the second input of a filter; null if it has none.
vtkSMProperty* SecondInput(vtkSMProxy* filter)
{
  vtkPVXMLElement* helper = filter->GetHints()->FindNestedElementByName("InitializationHelper");
  return helper != nullptr ? filter->GetProperty(helper->GetAttributeOrEmpty("property")) : nullptr;
}

/// What a filter lacks if it cannot take an output; empty if it can.
QString ReasonOf(vtkSMProxy* filter, pqOutputPort* port)
{
  vtkSMDomain* domain = AttentionAtlas::RefusingDomain(filter, port);
  if (domain == nullptr)
  {
    return {};
  }
  const bool isSecond = domain->IsA("vtkSMAtlasSecondInputDomain") != 0;
  vtkSMProperty* lacking = isSecond ? SecondInput(filter) : filter->GetProperty("Input");
  vtkSMDocumentation* text = lacking != nullptr ? lacking->GetDocumentation() : nullptr;
  return text != nullptr
           ? QString("%1, which is required: %2")
               .arg(lacking->GetXMLLabel(), QString(text->GetDescription()).simplified())
           : QString();
}

}

void pqFilterReasonBehavior::startup()
{
  this->find();
  if (this->Menu == nullptr) // a plugin of the command line, which is loaded before the window
  {
    this->connect(pqApplicationCore::instance(), SIGNAL(clientEnvironmentDone()), SLOT(find()));
  }
}

void pqFilterReasonBehavior::find()
{
  QWidget* window = pqCoreUtilities::mainWidget();
  if (this->Menu == nullptr && window != nullptr)
  {
    this->Menu = window->findChild<QMenu*>("menuFilters");
    if (this->Menu != nullptr) // ParaView, which was connected before, has enabled its entries
    {
      this->connect(this->Menu, SIGNAL(aboutToShow()), SLOT(explain()));
    }
  }
}

void pqFilterReasonBehavior::explain()
{
  pqOutputPort* port = pqActiveObjects::instance().activePort();
  if (port == nullptr || port->getSource()->modifiedState() == pqProxy::UNINITIALIZED)
  {
    return;
  }
  for (QAction* action : this->Menu->findChildren<QAction*>())
  {
    const QStringList names = action->data().toStringList(); // of the group and of the filter
    vtkSMProxy* filter = names.size() == 2 && !action->isEnabled()
                           ? port->getServer()->proxyManager()->GetPrototypeProxy(
                               names[0].toUtf8().constData(), names[1].toUtf8().constData())
                           : nullptr;
    if (filter != nullptr && IsOurs(filter))
    {
      const QString reason = ReasonOf(filter, port);
      if (!reason.isEmpty())
      {
        action->setStatusTip(reason);
      }
    }
  }
}
