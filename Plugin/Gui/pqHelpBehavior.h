#pragma once

#include <QObject>

/// Registers the pages of this plugin with a Help window that exists already; a later one finds
/// them among ParaView's resources. ParaView 5.12 and 5.13 with Qt 6 can register no pages at all,
/// since they open their collection read-only: there this registers ParaView's pages, too.
class pqHelpBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown() {}
};
