#pragma once

#include <QObject>

class pqDataRepresentation;
class pqPipelineSource;

/// Activates a render view for each new source or filter of this plugin that is shown in one. Apply
/// shows data in the active view, and not at all if that is a chart, which a training leaves
/// active. A view in the same layout is used, or a new one is opened.
///
/// Resets the camera once more when such a source is the only one in a view: ParaView does so
/// before all outputs are shown, and then centers flat data, which takes the room of color bars and
/// axes.
class pqViewBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqViewBehavior(QObject* parent = nullptr);
  ~pqViewBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqViewBehavior)

  Q_SLOT void meet(pqPipelineSource* source);
  Q_SLOT void frame(pqPipelineSource* source, pqDataRepresentation* shown);
};
