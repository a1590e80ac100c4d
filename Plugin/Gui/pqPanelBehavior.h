#pragma once

#include <QObject>

/// Widens the panel Properties when it first shows one of our sources or filters, if its contents
/// have no room. A width that the user chooses then stays, also in later sessions.
class pqPanelBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqPanelBehavior(QObject* parent = nullptr);
  ~pqPanelBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqPanelBehavior)

  Q_SLOT void widen();
};
