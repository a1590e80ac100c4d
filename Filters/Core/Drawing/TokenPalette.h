#pragma once

#include "ClassPalette.h"

#include <array>
#include <cstdint>

namespace atlas
{

/// What a point of a joint embedding is: the values are those of the array Kind.
enum class TokenKind
{
  Query = 0,
  Key = 1
};

/// The color of queries, blue, and of keys, vermilion: classes 0 and 1 of the palette, which differ
/// for every kind of color vision.
Rgb KindColor(TokenKind kind);

/// The color of a kind with a value as its lightness: KindColor faded to the intensity
/// 0.25 + 0.75 `share`, where `share` from 0 to 1 is the place of the value in its range (Yeh et
/// al. 2023). Shares outside are clipped; NaN means unknown and is gray.
Rgb ShadedColor(TokenKind kind, double share);

/// One of `periods` hues, 1 to BaseColorCount, that repeat with the position: the class colors
/// 0 ... periods - 1 for queries, and the same hues, lighter, for keys.
Rgb PeriodicColor(TokenKind kind, std::int64_t position, int periods);

/// A color as hue, saturation and value, each 0 to 1 (Smith 1978). The hue 0 is red, 1/3 green and
/// 2/3 blue; it is 0 for grays.
struct Hsv
{
  double hue = 0;
  double saturation = 0;
  double value = 0;
};

/// Converts red, green and blue from 0 to 1.
Hsv ToHsv(const std::array<double, 3>& rgb);

/// The pure color of a hue, at saturation and value 1.
Rgb HueColor(double hue);

/// Red, green and blue from 0 to 1, rounded to bytes. Values outside are clipped; NaN gives gray.
Rgb ToBytes(const std::array<double, 3>& rgb);

}
