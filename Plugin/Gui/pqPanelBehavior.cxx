#include "pqPanelBehavior.h"

#include "OurProxies.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqPipelineSource.h>
#include <pqSettings.h>

#include <QDockWidget>
#include <QMainWindow>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>

#include <algorithm>

namespace
{

const QString WidenedSetting = "AttentionAtlas.PanelWidened";
/// Pixels more than needed, for the frames of the layout.
constexpr int Spare = 10;
/// The widest panel, as a share of the window.
constexpr double LargestShare = 0.4;

}

pqPanelBehavior::pqPanelBehavior(QObject* parent)
  : QObject(parent)
{
}

pqPanelBehavior::~pqPanelBehavior() = default;

void pqPanelBehavior::startup()
{
  const auto look = [this] { QTimer::singleShot(0, this, SLOT(widen())); };
  pqActiveObjects* active = &pqActiveObjects::instance();
  QObject::connect(active, &pqActiveObjects::sourceChanged, this, look);
  using Changed = void (pqActiveObjects::*)(pqDataRepresentation*); // Display, after Apply
  QObject::connect(
    active, static_cast<Changed>(&pqActiveObjects::representationChanged), this, look);
}

void pqPanelBehavior::shutdown()
{
  pqActiveObjects::instance().disconnect(this);
}

void pqPanelBehavior::widen()
{
  auto* window = qobject_cast<QMainWindow*>(pqCoreUtilities::mainWidget());
  auto* dock = window != nullptr ? window->findChild<QDockWidget*>("propertiesDock") : nullptr;
  auto* area = dock != nullptr ? dock->findChild<QScrollArea*>("scrollArea") : nullptr;
  pqPipelineSource* source = pqActiveObjects::instance().activeSource();
  pqSettings* settings = pqApplicationCore::instance()->settings();
  if (area == nullptr || area->widget() == nullptr || !dock->isVisible() || dock->isFloating() ||
      source == nullptr || !IsOurs(source->getProxy()) ||
      settings->value(WidenedSetting, false).toBool())
  {
    return;
  }
  const int missing = area->horizontalScrollBar()->maximum();
  const int widest = static_cast<int>(LargestShare * window->width());
  const int width = std::min(dock->width() + missing + Spare, widest);
  if (missing > 0 && width > dock->width())
  {
    window->resizeDocks({ dock }, { width }, Qt::Horizontal);
    settings->setValue(WidenedSetting, true);
  }
}
