#pragma once

#include <array>
#include <cstdint>

namespace atlas
{

using Rgb = std::array<std::uint8_t, 3>;

/// Number of base colours of the class palette. Classes beyond reuse them, lighter or darker.
inline constexpr int BaseColorCount = 24;

/// The colour of a class, the same in every view. The base colours differ by at least 15 units of
/// CIE Lab (pairwise, CIE76) for normal vision and for protanopia, deuteranopia and tritanopia (as
/// simulated by Machado, Oliveira and Fernandes 2009). Later classes repeat their hues at four
/// other lightnesses; from class 120 on all repeat. A negative class, which means unknown, is grey.
Rgb ClassColor(int predicted);

/// How strongly a class shows where it is predicted with probability `p` among `classes` classes:
/// 0 at chance (p = 1/N), 1 at certainty, linear between.
float ColorIntensity(float p, int classes);

/// `color` at `intensity`: white at 0, itself at 1, linear between.
Rgb Fade(const Rgb& color, float intensity);

}
