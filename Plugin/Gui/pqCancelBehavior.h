#pragma once

#include <QObject>
#include <QPointer>

#include <vtkEventQtSlotConnect.h>
#include <vtkNew.h>
#include <vtkType.h>
#include <vtkWeakPointer.h>

#include <chrono>
#include <map>

class QAbstractButton;
class pqPipelineSource;
class vtkAlgorithm;
class vtkObject;

/// Makes the button next to ParaView's progress bar cancel a running source or filter of this
/// plugin. ParaView before 6.1 never enables that button and processes no clicks until the work is
/// done; 6.1 takes only double clicks, none before the first percent, none while the percentage
/// stays the same, and none in tests. Whenever one of our algorithms reports progress, events are
/// processed, at most every 50 ms: of the user's only clicks on the button, and no timers, as these
/// could update the running pipeline. A remote server cannot be interrupted in this way.
///
/// A click stops whatever of ours runs until the update ends. The rest of an Apply, which shows the
/// outputs, would start what was canceled again, several times. It is canceled again, unless it or
/// its input has changed, until the user's next click or key.
class pqCancelBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

  bool eventFilter(QObject* object, QEvent* event) override;

private:
  Q_SLOT void meet(pqPipelineSource* source);
  Q_SLOT void hear(vtkObject* algorithm);
  Q_SLOT void cancel();
  Q_SLOT void rest();

  bool findButton();
  void cancelAgain();
  void remember();

  vtkNew<vtkEventQtSlotConnect> Connector;
  QPointer<QAbstractButton> Button;
  vtkWeakPointer<vtkAlgorithm> Working; ///< the algorithm that runs
  std::chrono::steady_clock::time_point Heard;
  bool Hearing = false;
  bool Stopping = false;                          ///< until the update ends
  std::map<vtkAlgorithm*, vtkMTimeType> Canceled; ///< with the times of their pipelines
};
