#pragma once

#include <QHash>
#include <QObject>
#include <QPointer>

class pqDataRepresentation;
class pqPipelineSource;
class pqView;

/// Gives each new source or filter of this plugin that is shown in a chart or a diagram a view of
/// its own, in the place of one in which there is nothing, or else beside the others. What is shown
/// in a render view is shown in the active one, in one of the same layout, or in a new one. Views
/// are made with the source, since Apply shows each output in the active view, or in one more. A
/// view goes when its source goes, unless other data are shown in it.
///
/// Resets the camera of a render view once more when such a source is the only one in it: ParaView
/// does so before all outputs are shown, and then centers flat data, which takes the room of color
/// bars and axes.
///
/// Names a model in the pipeline browser by its folder, not config.json.
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
  Q_SLOT void rename(pqPipelineSource* source, const QStringList& files);
  Q_SLOT void frame(pqPipelineSource* source, pqDataRepresentation* shown);
  Q_SLOT void forget(pqPipelineSource* source);

  QHash<pqPipelineSource*, QPointer<pqView>> Own; ///< views made for sources
};
