#include "ClassPalette.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

// The first five are from the palette of Okabe and Ito (2008). The others were found by a search
// that maximizes the smallest distance between colors over the four kinds of vision.
constexpr std::array<Rgb, BaseColorCount> BaseColors = { {
  { 0, 114, 178 },
  { 213, 94, 0 },
  { 0, 158, 115 },
  { 204, 121, 167 },
  { 230, 159, 0 },
  { 86, 40, 140 },
  { 0, 216, 248 },
  { 176, 32, 0 },
  { 160, 216, 136 },
  { 168, 144, 80 },
  { 168, 0, 248 },
  { 0, 72, 64 },
  { 248, 184, 184 },
  { 0, 32, 176 },
  { 168, 0, 120 },
  { 0, 144, 248 },
  { 144, 88, 72 },
  { 192, 208, 96 },
  { 248, 48, 248 },
  { 64, 16, 16 },
  { 240, 0, 200 },
  { 8, 32, 64 },
  { 104, 24, 0 },
  { 48, 0, 96 },
} };

constexpr Rgb UnknownColor = { 128, 128, 128 };

/// Lightness of the first, second, ... use of the base colors: toward white if positive, toward
/// black if negative.
constexpr std::array<float, 5> Lightness = { 0.F, 0.45F, -0.4F, 0.7F, -0.65F };

/// Rounds to nearest. Optimized for speed, since charts fade every point.
std::uint8_t MixChannel(std::uint8_t from, float target, float amount)
{
  const float value = static_cast<float>(from) + amount * (target - static_cast<float>(from));
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): 0 <= value <= 255
  return static_cast<std::uint8_t>(value + 0.5F);
}

Rgb Mix(const Rgb& color, float target, float amount)
{
  return { MixChannel(color[0], target, amount), MixChannel(color[1], target, amount),
    MixChannel(color[2], target, amount) };
}

}

Rgb ClassColor(int predicted)
{
  if (predicted < 0)
  {
    return UnknownColor;
  }
  const std::size_t index = predicted;
  const float lightness = Lightness[index / BaseColors.size() % Lightness.size()];
  return Mix(
    BaseColors[index % BaseColors.size()], lightness > 0 ? 255.F : 0.F, std::abs(lightness));
}

float ColorIntensity(float p, int classes)
{
  if (classes < 2)
  {
    return 1;
  }
  const float chance = 1.F / static_cast<float>(classes);
  return std::clamp((p - chance) / (1 - chance), 0.F, 1.F);
}

Rgb Fade(const Rgb& color, float intensity)
{
  return Mix(color, 255.F, 1 - intensity);
}

}
