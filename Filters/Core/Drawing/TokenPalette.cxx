#include "TokenPalette.h"

#include "SummableColors.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

constexpr int Unknown = -1;
constexpr double LeastIntensity = 0.25;

}

Rgb KindColor(TokenKind kind)
{
  return ClassColor(static_cast<int>(kind));
}

Rgb ShadedColor(TokenKind kind, double share)
{
  if (std::isnan(share))
  {
    return ClassColor(Unknown);
  }
  const double intensity = LeastIntensity + (1 - LeastIntensity) * std::clamp(share, 0., 1.);
  return Fade(KindColor(kind), static_cast<float>(intensity));
}

Rgb PeriodicColor(TokenKind kind, std::int64_t position, int periods)
{
  if (position < 0)
  {
    return ClassColor(Unknown);
  }
  const auto phase = static_cast<int>(position % periods);
  // The second use of the base colors is lighter.
  return ClassColor(kind == TokenKind::Query ? phase : phase + BaseColorCount);
}

Hsv ToHsv(const std::array<double, 3>& rgb)
{
  const auto [red, green, blue] = rgb;
  const double largest = std::max({ red, green, blue });
  const double range = largest - std::min({ red, green, blue });
  if (!(range > 0))
  {
    return { 0, 0, largest };
  }
  const double sextant = largest == red     ? (green - blue) / range
                         : largest == green ? 2 + (blue - red) / range
                                            : 4 + (red - green) / range;
  return { (sextant < 0 ? sextant + 6 : sextant) / 6, range / largest, largest };
}

Rgb HueColor(double hue)
{
  const auto channel = [hue](double offset)
  {
    const double place = std::fmod(hue * 6 + offset, 6.);
    return std::clamp(std::min(place, 4 - place), 0., 1.);
  };
  return ToBytes({ 1 - channel(5), 1 - channel(3), 1 - channel(1) });
}

Rgb ToBytes(const std::array<double, 3>& rgb)
{
  return ColorScale().Color(rgb.data());
}

}
