#pragma once

#include <QObject>

/// Registers the pages of this plugin with a Help window that exists already. One that is opened
/// later finds them among ParaView's resources, with one exception: 5.12 and 5.13 with Qt 6 can
/// register no pages at all, neither ParaView's nor ours, since they open their collection of pages
/// read-only. There all pages are registered when the plugin is loaded.
class pqHelpBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqHelpBehavior(QObject* parent = nullptr);
  ~pqHelpBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqHelpBehavior)
};
