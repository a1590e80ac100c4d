#pragma once

#include <QObject>

class QToolBar;

/// A toolbar of the filters that are used most, which View > Toolbars shows. Its buttons are the
/// entries of the menu Filters, so they are enabled where these are. It is off until a user shows
/// it, and stays as the user left it.
class pqToolBarBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqToolBarBehavior(QObject* parent = nullptr);
  ~pqToolBarBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqToolBarBehavior)

  /// ParaView makes the entries of its menus anew whenever a plugin adds some.
  Q_SLOT void fill();

  QToolBar* ToolBar = nullptr;
};
