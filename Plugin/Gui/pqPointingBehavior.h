#pragma once

#include <QObject>

class pqView;

/// Says in a tooltip what the pointer rests on in an Attention Diagram: head, tokens and number of
/// a square, a line or a point, or the token of a row or column where its label is or would be.
/// What to say is found on the server (vtkPointedText).
class pqPointingBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

protected:
  bool eventFilter(QObject* widget, QEvent* event) override;

private:
  Q_SLOT void meet(pqView* view);
};
