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
  void startup();
  void shutdown() {}

private:
  Q_SLOT void find();
  Q_SLOT void explain();

  QPointer<QMenu> Menu;
};
