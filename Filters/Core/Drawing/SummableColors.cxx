#include "SummableColors.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

constexpr Rgb NotFinite = { 128, 128, 128 };

}

Rgb ColorScale::Color(const double* vector) const
{
  Rgb color;
  for (std::size_t c = 0; c < 3; ++c)
  {
    const double value = 255 * (this->gain * vector[c] + this->offset);
    if (!std::isfinite(value))
    {
      return NotFinite;
    }
    color[c] = static_cast<std::uint8_t>(std::lround(std::clamp(value, 0., 255.)));
  }
  return color;
}

void ComponentRange::Add(double component)
{
  if (std::isfinite(component))
  {
    this->Minimum = std::min(this->Minimum, component);
    this->Maximum = std::max(this->Maximum, component);
  }
}

void ComponentRange::Add(const ComponentRange& other)
{
  this->Minimum = std::min(this->Minimum, other.Minimum);
  this->Maximum = std::max(this->Maximum, other.Maximum);
}

ColorScale AdditiveScale(const ComponentRange& range)
{
  const bool positive = !range.IsEmpty() && range.GetMaximum() > 0;
  return { positive ? 1 / range.GetMaximum() : 1, 0 };
}

ColorScale SharedRangeScale(const ComponentRange& range)
{
  const double extent = range.IsEmpty() ? 0 : range.GetMaximum() - range.GetMinimum();
  if (!(extent > 0))
  {
    return { 0, 0.5 };
  }
  return { 1 / extent, -range.GetMinimum() / extent };
}

}
