#pragma once

#include "ClassPalette.h"

#include <limits>

namespace atlas
{

/// Maps a vector of three components to a color: channel c is 255 (gain v_c + offset), rounded and
/// clipped to 0 ... 255. A vector that is not finite becomes gray.
struct ColorScale
{
  double gain = 1;
  double offset = 0;

  Rgb Color(const double* vector) const;
};

/// The range of all components of a set of vectors; NaN and infinities are ignored.
class ComponentRange
{
public:
  void Add(double component);
  void Add(const ComponentRange& other);

  bool IsEmpty() const { return this->Minimum > this->Maximum; }
  double GetMinimum() const { return this->Minimum; }
  double GetMaximum() const { return this->Maximum; }

private:
  double Minimum = std::numeric_limits<double>::infinity();
  double Maximum = -std::numeric_limits<double>::infinity();
};

/// The scale under which colors add up: color(a) + color(b) = color(a + b) up to rounding, unless a
/// channel is clipped. The offset is 0, and the gain maps the largest component to full intensity;
/// it is 1 if no component is positive. Negative components are clipped to 0.
ColorScale AdditiveScale(const ComponentRange& range);

/// The scale of the source post, which also shows negative components: the smallest component maps
/// to 0 and the largest to full intensity. If all are equal, they map to half intensity.
ColorScale SharedRangeScale(const ComponentRange& range);

}
