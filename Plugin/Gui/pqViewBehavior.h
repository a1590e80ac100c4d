#pragma once

#include <QHash>
#include <QObject>
#include <QPointer>

class pqDataRepresentation;
class pqPipelineSource;
class pqView;

/// Gives each new source or filter of this plugin that is shown in a chart or a diagram a view of
/// its own, in the place of an empty one or beside the others; a render view is the active one, one
/// of the same layout, or a new one. Views are made with the source, since Apply shows each output
/// in the active view, or in one more. They go with their source, unless they show other data.
///
/// Resets the camera of a render view again when such a source is the only one in it: ParaView does
/// so before all outputs are shown, and centers flat data, without room for color bars and axes.
///
/// Names a model in the pipeline browser by its folder, not config.json.
class pqViewBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

private:
  Q_SLOT void meet(pqPipelineSource* source);
  Q_SLOT void rename(pqPipelineSource* source, const QStringList& files);
  Q_SLOT void frame(pqPipelineSource* source, pqDataRepresentation* shown);
  Q_SLOT void forget(pqPipelineSource* source);

  QHash<pqPipelineSource*, QPointer<pqView>> Own; ///< views made for sources
};
