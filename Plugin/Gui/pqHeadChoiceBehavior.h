#pragma once

#include <QObject>

#include <vtkNew.h>

class pqOutputPort;
class pqView;
class vtkEventQtSlotConnect;
class vtkObject;
class vtkSMSourceProxy;

/// What a selection does in views of tokens and heads, such as a Head Embedding:
///
/// - Selected points become tokens. They are then selected in every head, and in views that a
///   selection link joins.
/// - If several heads are shown and all points are of one head, the filters of the recording that
/// show one head show this one.
///   They have the hint AtlasShowsHead in their XML, and a Layer and Head of at least 0.
/// - A double click on a head chooses it. If no filter shows one head, a new one is opened in a
///   view beside it: that which the hint AtlasShowsHead of the double-clicked filter names in its
///   attribute `opens`.
class pqHeadChoiceBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqHeadChoiceBehavior(QObject* parent = nullptr);
  ~pqHeadChoiceBehavior() override;

  /// Called when the plugin is loaded and when ParaView exits.
  void startup();
  void shutdown();

private:
  Q_DISABLE_COPY(pqHeadChoiceBehavior)

  /// A head that was chosen in the output of a filter.
  struct Choice
  {
    pqOutputPort* port = nullptr; ///< null: none
    int layer = 0;
    int head = 0;
  };

  /// Replaces the selection of a port by the tokens of points.
  void selectTokens(pqOutputPort* port, vtkSMSourceProxy* points);

  Q_SLOT void hear(pqOutputPort* selected);
  Q_SLOT void meet(pqView* view);
  Q_SLOT void open(vtkObject* interactor);

  vtkNew<vtkEventQtSlotConnect> Connector;
  bool Busy = false; ///< whether a selection is being replaced
  Choice Chosen;     ///< by the last selection
};
