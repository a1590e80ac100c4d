#include "pqCancelBehavior.h"

#include "Execution.h"
#include "OurProxies.h"

#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqPipelineSource.h>
#include <pqProgressManager.h>
#include <pqServer.h>
#include <pqServerManagerModel.h>

#include <QAbstractButton>
#include <QCoreApplication>
#include <QEvent>
#include <QEventLoop>
#include <QWidget>
#include <QWindow>

#include <vtkAlgorithm.h>
#include <vtkCommand.h>
#include <vtkDemandDrivenPipeline.h>
#include <vtkSMProxy.h>

#include <algorithm>
#include <array>

namespace
{

constexpr const char* ButtonName = "AbortButton";
/// Between two times at which events are processed.
constexpr std::chrono::milliseconds Pause(50);

pqProgressManager* Progress()
{
  return pqApplicationCore::instance()->getProgressManager();
}

/// The VTK object of a source or filter of this plugin in this process; null for others.
vtkAlgorithm* OurAlgorithm(pqPipelineSource* source)
{
  vtkSMProxy* proxy = source->getProxy();
  return IsOurs(proxy) && !source->getServer()->isRemote()
           ? vtkAlgorithm::SafeDownCast(proxy->GetClientSideObject())
           : nullptr;
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

/// The second of two clicks that follow each other soon is a double click, also if each of them is
/// meant for a work of its own.
bool IsClick(QEvent::Type type)
{
  return type == QEvent::MouseButtonPress || type == QEvent::MouseButtonRelease ||
         type == QEvent::MouseButtonDblClick;
}

bool IsInput(QEvent::Type type)
{
  constexpr std::array Others = { QEvent::KeyPress, QEvent::KeyRelease, QEvent::Wheel,
    QEvent::Shortcut, QEvent::ShortcutOverride, QEvent::ContextMenu, QEvent::Close, QEvent::Drop,
    QEvent::TouchBegin, QEvent::TouchEnd };
  return IsClick(type) || std::find(Others.begin(), Others.end(), type) != Others.end();
}

/// Whether to block input while events are processed: all except clicks on the button. A click
/// first arrives at a window, which passes it on to its widget.
bool BlockInput(QObject* object, QEvent* event)
{
  const bool isButton = object->objectName() == ButtonName;
  const bool isWindow = !object->isWidgetType();
  return !(IsClick(event->type()) && (isButton || isWindow));
}

}

void pqCancelBehavior::startup()
{
  auto* model = pqApplicationCore::instance()->getServerManagerModel();
  this->connect(model, SIGNAL(sourceAdded(pqPipelineSource*)), SLOT(meet(pqPipelineSource*)));
  for (pqPipelineSource* source : model->findItems<pqPipelineSource*>())
  {
    this->meet(source);
  }
  this->connect(Progress(), SIGNAL(progressEndEvent()), SLOT(rest()));
}

void pqCancelBehavior::shutdown()
{
  this->Connector->Disconnect();
  pqApplicationCore::instance()->getServerManagerModel()->disconnect(this);
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

void pqCancelBehavior::meet(pqPipelineSource* source)
{
  if (vtkAlgorithm* algorithm = OurAlgorithm(source))
  {
    this->Connector->Connect(algorithm, vtkCommand::ProgressEvent, this, SLOT(hear(vtkObject*)));
  }
}

/// The progress that ParaView passes on is named by a text, which some algorithms set to what they
/// are at, and is left out while the percentage is the same. So each algorithm is heard itself.
void pqCancelBehavior::hear(vtkObject* algorithm)
{
  const auto now = std::chrono::steady_clock::now();
  const bool isSame = this->Working == algorithm;
  if (this->Hearing || (isSame && now - this->Heard < Pause) || !this->findButton())
  {
    return;
  }
  this->Working = vtkAlgorithm::SafeDownCast(algorithm);
  this->Hearing = true;
  UnblockWindow();
  this->cancelAgain();
  this->Button->setEnabled(true);
  const bool before = Progress()->unblockEvents(true);
  QCoreApplication::instance()->installEventFilter(this);
  QCoreApplication::processEvents(QEventLoop::X11ExcludeTimers);
  Progress()->unblockEvents(before);
  this->Hearing = false;
  this->Heard = std::chrono::steady_clock::now();
  this->remember();
  if (this->Canceled.empty())
  {
    QCoreApplication::instance()->removeEventFilter(this);
  }
}

/// Finds the button, which ParaView makes after it has loaded plugins. Returns whether it is there.
bool pqCancelBehavior::findButton()
{
  QWidget* window = pqCoreUtilities::mainWidget();
  if (this->Button == nullptr && window != nullptr)
  {
    this->Button = window->findChild<QAbstractButton*>(ButtonName);
    if (this->Button != nullptr)
    {
      this->connect(this->Button, SIGNAL(pressed()), SLOT(cancel()));
    }
  }
  return this->Button != nullptr;
}

void pqCancelBehavior::cancel()
{
  this->Stopping = true;
  if (this->Working != nullptr)
  {
    // Other than SetAbortExecute, it does not count as a change.
    this->Working->SetAbortExecuteAndUpdateTime();
  }
}

void pqCancelBehavior::cancelAgain()
{
  const auto found = this->Canceled.find(this->Working);
  const bool wasCanceled =
    found != this->Canceled.end() && found->second == PipelineTime(this->Working);
  if (this->Stopping || wasCanceled)
  {
    this->cancel();
  }
}

void pqCancelBehavior::remember()
{
  if (this->Working != nullptr && this->Working->GetAbortExecute() != 0)
  {
    this->Canceled[this->Working] = PipelineTime(this->Working);
  }
}

void pqCancelBehavior::rest()
{
  this->Stopping = false;
  if (this->Working != nullptr)
  {
    AttentionAtlas::WithdrawCancel(this->Working); // of what was canceled as it ended
    this->Working = nullptr;
    this->Button->setEnabled(false);
  }
}
