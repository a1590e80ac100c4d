#pragma once

#include "ClassPalette.h"

namespace atlas
{

/// How a vector of three components becomes a colour: channel c is 255 (gain v_c + offset), rounded
/// and clipped to 0 ... 255. A vector that is not finite becomes grey.
struct ColorScale
{
  double gain = 1;
  double offset = 0;

  Rgb Color(const double* vector) const;
};

/// The range of all components of some vectors; NaN and infinities do not count.
class ComponentRange
{
public:
  void Add(double component);
  void Add(const ComponentRange& other);

  bool IsEmpty() const { return this->Minimum > this->Maximum; }
  double GetMinimum() const { return this->Minimum; }
  double GetMaximum() const { return this->Maximum; }

private:
  double Minimum = 1;
  double Maximum = 0;
};

/// The scale under which colours add: color(a) + color(b) = color(a + b) wherever nothing clips, up
/// to the rounding of each. No offset, and the gain with which the largest component is at full
/// intensity; negative components clip to 0. Gain 1 if no component is positive.
ColorScale AdditiveScale(const ComponentRange& range);

/// The scale of the source document, which shows negative components too: the smallest component is
/// 0, the largest at full intensity. If all are equal they are at half intensity.
ColorScale SharedRangeScale(const ComponentRange& range);

}
