#include "PanelWidth.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QString>

namespace
{

/// The width of a number, in letters.
constexpr int NumberLetters = 10;

}

void NarrowLists(QWidget* widget, int letters)
{
  for (QComboBox* box : widget->findChildren<QComboBox*>())
  {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(letters);
    box->setMinimumWidth(0);
  }
  for (QAbstractItemView* list : widget->findChildren<QAbstractItemView*>())
  {
    list->setMinimumWidth(letters * list->fontMetrics().averageCharWidth());
  }
}

void NarrowDisplay(QWidget* panel)
{
  NarrowLists(panel, 3); // ParaView has two lists side by side for colors
  for (QPushButton* button : panel->findChildren<QPushButton*>())
  {
    if (!button->icon().isNull() && !button->toolTip().isEmpty())
    {
      button->setText({});
    }
  }
}

void PutSliderBelow(QWidget* range, const QString& label)
{
  auto* number = range->findChild<QLineEdit*>();
  auto* slider = range->findChild<QSlider*>();
  if (number == nullptr || slider == nullptr)
  {
    return;
  }
  delete range->layout(); // in which they are side by side
  auto* grid = new QGridLayout(range);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(0);
  auto* text = new QLabel(label, range);
  text->setWordWrap(true);
  grid->addWidget(text, 0, 0);
  grid->addWidget(number, 0, 1);
  grid->addWidget(slider, 1, 0, 1, 2);
  grid->setColumnStretch(0, 1);
  number->setMaximumWidth(NumberLetters * number->fontMetrics().averageCharWidth());
}
