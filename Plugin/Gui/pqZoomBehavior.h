#pragma once

#include <vtkNew.h>

#include <QObject>

class pqRenderView;
class pqView;
class vtkEventQtSlotConnect;
class vtkObject;

/// Shows the visible part of a pooled Attention Map in as much detail as its resolution allows, if
/// its property FollowCamera is on: after each interaction with a view that looks straight at it,
/// its windows are set to what is visible and half as much again, so that little is missing when
/// the camera moves on. Maps of which each pair has a point are left alone.
class pqZoomBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqZoomBehavior(QObject* parent = nullptr);
  ~pqZoomBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqZoomBehavior)

  vtkNew<vtkEventQtSlotConnect> Connector;

  Q_SLOT void meet(pqView* view);
  Q_SLOT void follow(vtkObject* interactor);
};
