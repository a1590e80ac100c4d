#pragma once

#include <vtkEventQtSlotConnect.h>
#include <vtkNew.h>

#include <QObject>

class pqRenderView;
class pqView;
class vtkObject;

/// Shows the visible part of a pooled Attention Map in as much detail as its resolution allows, if
/// its property FollowCamera is on: after each interaction with a view that looks straight at it,
/// its windows are set to what is visible and half as much again.
class pqZoomBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

private:
  vtkNew<vtkEventQtSlotConnect> Connector;

  Q_SLOT void meet(pqView* view);
  Q_SLOT void follow(vtkObject* interactor);
};
