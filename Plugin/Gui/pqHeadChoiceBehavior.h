#pragma once

#include "TokenSelection.h"

#include <QObject>

#include <vtkEventQtSlotConnect.h>
#include <vtkNew.h>
#include <vtkType.h>

#include <vector>

class pqOutputPort;
class pqPipelineSource;
class pqRenderView;
class pqView;
class vtkObject;
class vtkSMSourceProxy;

/// What a selection does in views of tokens and heads, such as a Head Embedding:
///
/// - Selected points become tokens, which are selected in all heads and views of the recording. A
///   filter with the hint AtlasShowsTokens or AtlasShowsPatch, in whose output they were selected,
///   shows the attention of these tokens or of this patch.
/// - If several heads are shown and what is selected, in a view or a spreadsheet, is of one head,
///   the filters of the same model with the hint AtlasShowsHead, and a Layer and Head of at least
///   0, show this one.
/// - A double click on a head chooses it. The filter in the attribute `opens` of the hint
///   AtlasShowsHead is opened in a view beside, on the same input, if there is none yet.
/// - A text of a corpus that is selected or double-clicked is recorded; see ContextChoice.h.
class pqHeadChoiceBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

private:
  /// A head that was chosen in the output of a filter.
  struct Choice
  {
    pqOutputPort* port = nullptr; ///< null: none
    AttentionAtlas::HeadNumber number;
  };

  /// Selects the tokens of some points, which were selected in a port, in all views of the
  /// recording.
  void selectTokens(pqOutputPort* selected, vtkSMSourceProxy* points);
  /// Selects these tokens in the outputs of a filter of the recording.
  void selectIn(pqPipelineSource* source);
  /// Clears the selections of tokens.
  void forget();

  /// Chooses the head of the panel of an image at a pixel, if there is one.
  void choosePanel(pqRenderView* view, int x, int y);

  /// Connects to the selections, once. ParaView makes their manager after it has loaded the plugins
  /// of its environment, and before there is a server.
  Q_SLOT void listen();
  Q_SLOT void hear(pqOutputPort* selected);
  Q_SLOT void meet(pqView* view);
  Q_SLOT void open(vtkObject* interactor);

  vtkNew<vtkEventQtSlotConnect> Connector;
  bool Busy = false;                     ///< whether a selection is being replaced
  Choice Chosen;                         ///< by the last selection
  std::vector<vtkIdType> Tokens;         ///< that are selected
  vtkSMSourceProxy* Recording = nullptr; ///< which has them; only compared, as it may be gone
};
