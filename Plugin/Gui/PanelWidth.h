#pragma once

class QString;
class QWidget;

/// How panels fit the width that ParaView gives them, without a bar to move them sideways.

/// Lets the lists in a widget be narrower than their longest entry, which is cut off then, but not
/// than some letters.
void NarrowLists(QWidget* widget, int letters = 8);

/// Lets the widgets of a representation be as narrow as its view's: lists, and buttons without the
/// words that their tooltips have.
void NarrowDisplay(QWidget* panel);

/// Gives the slider of a pqIntRangeWidget or pqDoubleRangeWidget the width of the panel: below a
/// label and the number. Between them, it would be a few handles wide.
void PutSliderBelow(QWidget* range, const QString& label);
