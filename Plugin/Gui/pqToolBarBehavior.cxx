#include "pqToolBarBehavior.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqSettings.h>

#include <QAction>
#include <QMainWindow>
#include <QMenu>
#include <QTimer>
#include <QToolBar>

namespace
{

const QString ShownSetting = "AttentionAtlas.ToolBarShown";
const QStringList Filters = { "TransformerRecorder", "AttentionMatrix", "AttentionMap",
  "AttentionSentence", "HeadEmbedding", "AttentionTorus" };

}

void pqToolBarBehavior::startup()
{
  this->build();
  if (this->ToolBar == nullptr) // a plugin of the command line, which is loaded before the window
  {
    this->connect(pqApplicationCore::instance(), SIGNAL(clientEnvironmentDone()), SLOT(build()));
  }
}

void pqToolBarBehavior::build()
{
  auto* window = qobject_cast<QMainWindow*>(pqCoreUtilities::mainWidget());
  auto* menu = window != nullptr ? window->findChild<QMenu*>("menuFilters") : nullptr;
  if (menu == nullptr || this->ToolBar != nullptr)
  {
    return;
  }
  this->ToolBar = window->addToolBar(tr("Attention Atlas"));
  this->ToolBar->setObjectName("AttentionAtlas");
  pqSettings* settings = pqApplicationCore::instance()->settings();
  this->ToolBar->setVisible(settings->value(ShownSetting, false).toBool());
  QObject::connect(this->ToolBar->toggleViewAction(), &QAction::triggered, settings,
    [settings](bool shown) { settings->setValue(ShownSetting, shown); });
  for (QObject* child : menu->findChildren<QObject*>())
  {
    if (child->inherits("pqProxyGroupMenuManager"))
    {
      this->connect(child, SIGNAL(menuPopulated()), SLOT(fill()));
    }
    if (child->inherits("pqFiltersMenuReaction"))
    {
      this->Reaction = child;
    }
  }
  // After the timer of 10 ms with which the menu learns of the same.
  QTimer* timer = this->Timer = new QTimer(this->ToolBar);
  timer->setSingleShot(true);
  timer->setInterval(20);
  this->connect(timer, SIGNAL(timeout()), SLOT(enable()));
  pqActiveObjects* active = &pqActiveObjects::instance();
  QObject::connect(active, SIGNAL(selectionChanged(pqProxySelection)), timer, SLOT(start()));
  QObject::connect(active, SIGNAL(dataUpdated()), timer, SLOT(start()));
  QObject::connect(active, SIGNAL(serverChanged(pqServer*)), timer, SLOT(start()));
  QObject::connect(this->ToolBar, SIGNAL(visibilityChanged(bool)), timer, SLOT(start()));
  this->fill();
}

void pqToolBarBehavior::fill()
{
  if (this->ToolBar == nullptr) // the window has gone
  {
    return;
  }
  auto* menu = this->ToolBar->parent()->findChild<QMenu*>("menuFilters");
  this->ToolBar->clear();
  for (const QString& name : Filters)
  {
    if (auto* action = menu->findChild<QAction*>(name))
    {
      this->ToolBar->addAction(action);
    }
  }
  this->Timer->start();
}

void pqToolBarBehavior::enable()
{
  if (this->ToolBar != nullptr && this->ToolBar->isVisible() && this->Reaction != nullptr)
  {
    QMetaObject::invokeMethod(this->Reaction, "updateEnableState", Q_ARG(bool, false));
  }
}
