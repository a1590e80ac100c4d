#pragma once

#include <QObject>
#include <QPointer>

class QMenu;

/// Says in the status bar why an entry of this plugin in the menu Filters is disabled: what the
/// input must be that it lacks, in the words of its documentation. ParaView knows the reasons of
/// its own domains only.
class pqFilterReasonBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqFilterReasonBehavior(QObject* parent = nullptr);
  ~pqFilterReasonBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqFilterReasonBehavior)

  Q_SLOT void find();
  Q_SLOT void explain();

  QPointer<QMenu> Menu;
};
