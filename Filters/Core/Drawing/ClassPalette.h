#pragma once

#include <array>
#include <cstdint>

namespace atlas
{

using Rgb = std::array<std::uint8_t, 3>;

/// The number of base colors of the class palette. Further classes use lighter or darker versions.
inline constexpr int BaseColorCount = 24;

/// The color of a class, the same in every view. Any two base colors differ by at least 15 units of
/// CIE Lab (CIE76) for normal vision and for protanopia, deuteranopia and tritanopia (as simulated
/// by Machado, Oliveira and Fernandes 2009). Later classes repeat their hues at four other
/// lightness levels; from class 120 on, colors repeat. A negative class means unknown and is gray.
Rgb ClassColor(int predicted);

/// The color intensity for a class that is predicted with probability `p`, out of N = `classes`: 0
/// at chance level (p = 1/N), 1 at p = 1, linear in between.
float ColorIntensity(float p, int classes);

/// Returns `color` at `intensity`: white at 0, the color itself at 1, linear in between.
Rgb Fade(const Rgb& color, float intensity);

}
