#pragma once

#include <QObject>
#include <QPointer>

class QTimer;
class QToolBar;

/// A toolbar of the filters that are used most, which View > Toolbars shows. Its buttons are the
/// entries of the menu Filters, so they are enabled where these are. It is off until a user shows
/// it, and stays as the user left it.
class pqToolBarBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown() {}

private:
  Q_SLOT void build();

  /// ParaView makes the entries of its menus anew whenever a plugin adds some.
  Q_SLOT void fill();

  /// ParaView enables entries of the menu when it opens; here whenever the toolbar is shown.
  Q_SLOT void enable();

  QPointer<QToolBar> ToolBar; ///< it and the others belong to the window
  QPointer<QTimer> Timer;
  QPointer<QObject> Reaction; ///< of the menu Filters
};
