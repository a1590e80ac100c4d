#pragma once

#include <QObject>

class pqPipelineSource;

/// Activates a render view for each new source or filter of this plugin that is shown in one: Apply
/// shows data in the active view, and nowhere if that is a chart, which a training leaves active.
/// One in the same layout is taken, or a new one opened.
class pqViewBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqViewBehavior(QObject* parent = nullptr);
  ~pqViewBehavior() override;

  /// Called as the plugin is loaded and as ParaView ends.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqViewBehavior)

  Q_SLOT void meet(pqPipelineSource* source);
};
