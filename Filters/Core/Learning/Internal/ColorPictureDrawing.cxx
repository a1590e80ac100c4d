#include "ColorPictureDrawing.h"

#include "Base/Index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

constexpr auto Side = static_cast<double>(ColorPictureSide);
constexpr double Noise = 10; ///< of 255

using Color = std::array<double, 3>; ///< red, green, blue, 0 to 1

/// A color by hue, saturation and value, each 0 to 1; the hue may be any number.
Color FromHue(double hue, double saturation, double value)
{
  Color color;
  for (std::size_t channel = 0; channel < 3; ++channel)
  {
    const double turn = hue - std::floor(hue);
    const double place = std::fmod(5 - 2 * static_cast<double>(channel) + 6 * turn, 6);
    color[channel] = value * (1 - saturation * std::clamp(std::min(place, 4 - place), 0., 1.));
  }
  return color;
}

/// Two random colors that are clearly different.
std::array<Color, 2> DrawColors(LearningRandom& random)
{
  std::array<Color, 2> colors;
  double distance = 0;
  while (distance < 0.5)
  {
    distance = 0;
    for (std::size_t channel = 0; channel < 3; ++channel)
    {
      colors[0][channel] = random.Uniform();
      colors[1][channel] = random.Uniform();
      distance = std::hypot(distance, colors[0][channel] - colors[1][channel]);
    }
  }
  return colors;
}

/// A picture whose pixels are color(x, y) of their centers, with noise.
template<class Function>
Picture Paint(LearningRandom& random, const Function& color)
{
  Picture picture{ ColorPictureSide, ColorPictureSide, 255, {} };
  picture.pixels.reserve(3 * ToIndex(ColorPictureSide * ColorPictureSide));
  for (std::int64_t row = 0; row < ColorPictureSide; ++row)
  {
    for (std::int64_t column = 0; column < ColorPictureSide; ++column)
    {
      std::uint64_t bits = random.Bits(); // 21 of them for each channel
      for (const double channel :
        color(static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5))
      {
        const double noise = std::ldexp(static_cast<double>(bits & 0x1fffffU), -20) - 1;
        bits >>= 21U;
        const double value = std::clamp(255 * channel + Noise * noise, 0., 255.);
        picture.pixels.push_back(static_cast<std::uint16_t>(std::lround(value)));
      }
    }
  }
  return picture;
}

/// Colors along one side of the picture, from color(0) to color(1).
template<class Function>
Picture PaintGradient(LearningRandom& random, bool isVertical, const Function& color)
{
  std::array<Color, ColorPictureSide> colors;
  for (std::size_t i = 0; i < colors.size(); ++i)
  {
    colors[i] = color((static_cast<double>(i) + 0.5) / Side);
  }
  return Paint(random,
    [&](double x, double y) { return colors[static_cast<std::size_t>(isVertical ? y : x)]; });
}

Picture DrawHues(LearningRandom& random, bool isVertical)
{
  const double first = random.Uniform();
  const double span = random.Uniform(1. / 3, 2. / 3) * (random.Integer(2) == 0 ? 1 : -1);
  const double saturation = random.Uniform(0.6, 1);
  const double value = random.Uniform(0.6, 1);
  return PaintGradient(random, isVertical,
    [&](double place) { return FromHue(first + span * place, saturation, value); });
}

Picture DrawBrightness(LearningRandom& random, bool isVertical)
{
  const double hue = random.Uniform();
  const double saturation = random.Uniform();
  double from = random.Uniform(0, 0.3);
  double to = random.Uniform(0.7, 1);
  if (random.Integer(2) == 0)
  {
    std::swap(from, to);
  }
  return PaintGradient(random, isVertical,
    [&](double place) { return FromHue(hue, saturation, from + (to - from) * place); });
}

/// Stripes across a direction.
Picture DrawStripes(LearningRandom& random, double directionX, double directionY)
{
  const std::array<Color, 2> colors = DrawColors(random);
  const double period = random.Uniform(5, 10);
  const double phase = random.Uniform();
  return Paint(random,
    [&](double x, double y)
    {
      const double place = (directionX * x + directionY * y) / period + phase;
      return colors[place - std::floor(place) < 0.5 ? 0 : 1];
    });
}

Picture DrawDiagonalStripes(LearningRandom& random)
{
  const double half = std::sqrt(0.5);
  return DrawStripes(random, half, random.Integer(2) == 0 ? half : -half);
}

/// A shape of random size and place: contains(x, y) tells whether it contains a point, relative to
/// its center and in units of half its width; it is as high as wide.
template<class Function>
Picture DrawShape(LearningRandom& random, const Function& contains)
{
  const std::array<Color, 2> colors = DrawColors(random);
  const double half = random.Uniform(5, 10);
  const double centerX = random.Uniform(half, Side - half);
  const double centerY = random.Uniform(half, Side - half);
  return Paint(random, [&](double x, double y)
    { return colors[contains((x - centerX) / half, (y - centerY) / half) ? 0 : 1]; });
}

Picture DrawKind(LearningRandom& random, std::int64_t label)
{
  switch (label)
  {
    case 0:
    case 1:
      return DrawHues(random, label == 1);
    case 2:
    case 3:
      return DrawBrightness(random, label == 3);
    case 4: // lie horizontally, so they follow each other downward
      return DrawStripes(random, 0, 1);
    case 5:
      return DrawStripes(random, 1, 0);
    case 6:
      return DrawDiagonalStripes(random);
    case 7:
      return DrawShape(random, [](double x, double y) { return x * x + y * y < 1; });
    case 8:
      return DrawShape(
        random, [](double x, double y) { return std::max(std::abs(x), std::abs(y)) < 1; });
    default:
      return DrawShape(
        random, [](double x, double y) { return y < 1 && std::abs(x) < (y + 1) / 2; });
  }
}

}

const std::vector<std::string>& ColorPictureNames()
{
  static const std::vector<std::string> names = { "hue, horizontal", "hue, vertical",
    "brightness, horizontal", "brightness, vertical", "stripes, horizontal", "stripes, vertical",
    "stripes, diagonal", "disc", "square", "triangle" };
  return names;
}

ColorPicture DrawColorPicture(LearningRandom& random, std::int64_t index)
{
  const std::int64_t label = index % static_cast<std::int64_t>(ColorPictureNames().size());
  return { DrawKind(random, label), label };
}

}
