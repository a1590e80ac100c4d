#include "pqCancelBehavior.h"

#include <pqApplicationCore.h>
#include <pqPipelineSource.h>
#include <pqProgressManager.h>
#include <pqServer.h>
#include <pqServerManagerModel.h>

#include <QCoreApplication>
#include <QEvent>
#include <QEventLoop>
#include <QWidget>

#include <vtkAlgorithm.h>
#include <vtkPVXMLElement.h>
#include <vtkSMProxy.h>

#include <cstring>

namespace
{

pqProgressManager* Progress()
{
  return pqApplicationCore::instance()->getProgressManager();
}

/// The VTK object of a source or filter of this plugin in this process, if its class name is "vtk"
/// followed by `name`; otherwise null.
vtkAlgorithm* OurAlgorithm(pqPipelineSource* source, const QString& name)
{
  vtkSMProxy* proxy = source->getProxy();
  vtkPVXMLElement* hints = proxy->GetHints();
  vtkPVXMLElement* menu = hints != nullptr ? hints->FindNestedElementByName("ShowInMenu") : nullptr;
  const bool isOurs =
    menu != nullptr && std::strcmp(menu->GetAttributeOrEmpty("category"), "Attention Atlas") == 0;
  if (!isOurs || source->getServer()->isRemote() || "vtk" + name != proxy->GetVTKClassName())
  {
    return nullptr;
  }
  return vtkAlgorithm::SafeDownCast(proxy->GetClientSideObject());
}

/// Calls function(algorithm) for all our algorithms of this class name. Returns whether there are
/// any.
template<class Function>
bool ForEach(const QString& name, const Function& function)
{
  bool found = false;
  const auto sources =
    pqApplicationCore::instance()->getServerManagerModel()->findItems<pqPipelineSource*>();
  for (pqPipelineSource* source : sources)
  {
    if (vtkAlgorithm* algorithm = OurAlgorithm(source, name))
    {
      found = true;
      function(algorithm);
    }
  }
  return found;
}

bool IsInput(QEvent::Type type)
{
  switch (type)
  {
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonRelease:
    case QEvent::MouseButtonDblClick:
    case QEvent::KeyPress:
    case QEvent::KeyRelease:
    case QEvent::Wheel:
    case QEvent::Shortcut:
    case QEvent::ShortcutOverride:
    case QEvent::ContextMenu:
    case QEvent::Close:
    case QEvent::Drop:
    case QEvent::TouchBegin:
    case QEvent::TouchEnd:
      return true;
    default:
      return false;
  }
}

bool IsMouse(QEvent::Type type)
{
  return type == QEvent::MouseButtonPress || type == QEvent::MouseButtonRelease;
}

}

pqCancelBehavior::pqCancelBehavior(QObject* parent)
  : QObject(parent)
{
}

pqCancelBehavior::~pqCancelBehavior() = default;

void pqCancelBehavior::startup()
{
  pqProgressManager* progress = Progress();
  this->connect(progress, SIGNAL(progress(const QString&, int)), SLOT(hear(const QString&, int)));
  this->connect(progress, SIGNAL(abort()), SLOT(cancel()));
  this->connect(progress, SIGNAL(progressEndEvent()), SLOT(rest()));
}

void pqCancelBehavior::shutdown()
{
  Progress()->disconnect(this);
}

/// While events are processed, blocks all input except clicks on the button. A click first arrives
/// at a window, which passes it on to its widget.
bool pqCancelBehavior::eventFilter(QObject* object, QEvent* event)
{
  if (!this->Hearing || !IsInput(event->type()))
  {
    return QObject::eventFilter(object, event);
  }
  const bool isButton = object->objectName() == "AbortButton";
  const bool isWindow = !object->isWidgetType();
  return !(IsMouse(event->type()) && (isButton || isWindow));
}

void pqCancelBehavior::hear(const QString& name, int)
{
  if (this->Hearing || !ForEach(name, [](vtkAlgorithm*) {}))
  {
    return;
  }
  this->Working = name;
  this->Hearing = true;
  Progress()->setEnableAbort(true);
  const bool before = Progress()->unblockEvents(true);
  QCoreApplication::instance()->installEventFilter(this);
  QCoreApplication::processEvents(QEventLoop::X11ExcludeTimers);
  QCoreApplication::instance()->removeEventFilter(this);
  Progress()->unblockEvents(before);
  this->Hearing = false;
}

void pqCancelBehavior::cancel()
{
  ForEach(this->Working, [](vtkAlgorithm* algorithm) { algorithm->SetAbortExecute(1); });
}

void pqCancelBehavior::rest()
{
  if (!this->Working.isEmpty())
  {
    this->Working.clear();
    Progress()->setEnableAbort(false);
  }
}
