#include "pqCancelBehavior.h"

#include "Execution.h"
#include "OurProxies.h"

#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqPipelineSource.h>
#include <pqProgressManager.h>
#include <pqServer.h>
#include <pqServerManagerModel.h>

#include <QCoreApplication>
#include <QEvent>
#include <QEventLoop>
#include <QMetaObject>
#include <QWidget>
#include <QWindow>

#include <vtkAlgorithm.h>
#include <vtkDemandDrivenPipeline.h>
#include <vtkSMProxy.h>

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
  if (!IsOurs(proxy) || source->getServer()->isRemote() || "vtk" + name != proxy->GetVTKClassName())
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

/// When an algorithm or what it depends on was last changed, as of its last update.
vtkMTimeType PipelineTime(vtkAlgorithm* algorithm)
{
  auto* pipeline = vtkDemandDrivenPipeline::SafeDownCast(algorithm->GetExecutive());
  return pipeline != nullptr ? pipeline->GetPipelineMTime() : 0;
}

/// Lets ParaView 6.1 hear a single click on its button. It blocks a click on a window before the
/// window can pass it on to the button.
void UnblockWindow()
{
  QWindow* window = pqCoreUtilities::mainWidget()->windowHandle();
  if (!Progress()->nonBlockableObjects().contains(window))
  {
    Progress()->addNonBlockableObject(window);
  }
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

/// Whether to block input while events are processed: all except clicks on the button. A click
/// first arrives at a window, which passes it on to its widget.
bool BlockInput(QObject* object, QEvent* event)
{
  const bool isButton = object->objectName() == "AbortButton";
  const bool isWindow = !object->isWidgetType();
  return !(IsMouse(event->type()) && (isButton || isWindow));
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
  if (progress->metaObject()->indexOfSignal("abort()") >= 0) // since 6.1, ParaView itself cancels
  {
    this->connect(progress, SIGNAL(abort()), SLOT(cancel()));
  }
  this->connect(progress, SIGNAL(progressEndEvent()), SLOT(rest()));
}

void pqCancelBehavior::shutdown()
{
  Progress()->disconnect(this);
}

bool pqCancelBehavior::eventFilter(QObject* object, QEvent* event)
{
  const QEvent::Type type = event->type();
  if (this->Hearing)
  {
    return IsInput(type) && BlockInput(object, event);
  }
  if (type == QEvent::MouseButtonPress || type == QEvent::KeyPress)
  {
    this->Canceled.clear();
    QCoreApplication::instance()->removeEventFilter(this);
  }
  return false;
}

void pqCancelBehavior::hear(const QString& name, int)
{
  if (this->Hearing || !ForEach(name, [](vtkAlgorithm*) {}))
  {
    return;
  }
  this->Working = name;
  this->Hearing = true;
  UnblockWindow();
  this->cancelAgain();
  Progress()->setEnableAbort(true);
  const bool before = Progress()->unblockEvents(true);
  QCoreApplication::instance()->installEventFilter(this);
  QCoreApplication::processEvents(QEventLoop::X11ExcludeTimers);
  Progress()->unblockEvents(before);
  this->Hearing = false;
  this->remember();
  if (this->Canceled.empty())
  {
    QCoreApplication::instance()->removeEventFilter(this);
  }
}

void pqCancelBehavior::cancel()
{
  // Other than SetAbortExecute, it does not count as a change.
  ForEach(
    this->Working, [](vtkAlgorithm* algorithm) { algorithm->SetAbortExecuteAndUpdateTime(); });
}

void pqCancelBehavior::cancelAgain()
{
  ForEach(this->Working,
    [this](vtkAlgorithm* algorithm)
    {
      const auto found = this->Canceled.find(algorithm);
      if (found != this->Canceled.end() && found->second == PipelineTime(algorithm))
      {
        algorithm->SetAbortExecuteAndUpdateTime();
      }
    });
}

void pqCancelBehavior::remember()
{
  ForEach(this->Working,
    [this](vtkAlgorithm* algorithm)
    {
      if (algorithm->GetAbortExecute() != 0)
      {
        this->Canceled[algorithm] = PipelineTime(algorithm);
      }
    });
}

void pqCancelBehavior::rest()
{
  if (!this->Working.isEmpty())
  {
    // Others of the same class were not running.
    ForEach(this->Working, AttentionAtlas::WithdrawCancel);
    this->Working.clear();
    Progress()->setEnableAbort(false);
  }
}
