#include "pqToolBarBehavior.h"

#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqSettings.h>

#include <QAction>
#include <QMainWindow>
#include <QMenu>
#include <QToolBar>

namespace
{

const QString ShownSetting = "AttentionAtlas.ToolBarShown";
const QStringList Filters = { "TransformerRecorder", "AttentionMatrix", "AttentionMap",
  "AttentionSentence", "HeadEmbedding", "AttentionTorus" };

}

pqToolBarBehavior::pqToolBarBehavior(QObject* parent)
  : QObject(parent)
{
}

pqToolBarBehavior::~pqToolBarBehavior() = default;

void pqToolBarBehavior::startup()
{
  auto* window = qobject_cast<QMainWindow*>(pqCoreUtilities::mainWidget());
  auto* menu = window != nullptr ? window->findChild<QMenu*>("menuFilters") : nullptr;
  if (menu == nullptr)
  {
    return;
  }
  this->ToolBar = window->addToolBar(tr("Attention Atlas"));
  this->ToolBar->setObjectName("AttentionAtlas");
  pqSettings* settings = pqApplicationCore::instance()->settings();
  this->ToolBar->setVisible(settings->value(ShownSetting, false).toBool());
  QObject::connect(this->ToolBar->toggleViewAction(), &QAction::triggered, settings,
    [settings](bool shown) { settings->setValue(ShownSetting, shown); });
  for (QObject* child : menu->children())
  {
    if (child->inherits("pqProxyGroupMenuManager"))
    {
      this->connect(child, SIGNAL(menuPopulated()), SLOT(fill()));
    }
  }
  this->fill();
}

void pqToolBarBehavior::shutdown() {}

void pqToolBarBehavior::fill()
{
  auto* menu = this->ToolBar->parent()->findChild<QMenu*>("menuFilters");
  this->ToolBar->clear();
  for (const QString& name : Filters)
  {
    if (auto* action = menu->findChild<QAction*>(name))
    {
      this->ToolBar->addAction(action);
    }
  }
}
