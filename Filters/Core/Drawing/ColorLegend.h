#pragma once

#include "ClassPalette.h"

#include <string>

namespace atlas
{

/// What the colors of an array mean. The text is that of the field array "... Legend", from which
/// views make theirs: a title, then a line "RED GREEN BLUE MEANING" for each color, from 0 to 255.
class ColorLegend
{
public:
  explicit ColorLegend(const std::string& title)
    : Lines(title)
  {
  }

  ColorLegend& Add(const Rgb& color, const std::string& meaning)
  {
    this->Lines += "\n";
    for (const std::uint8_t channel : color)
    {
      this->Lines += std::to_string(channel) + " ";
    }
    this->Lines += meaning;
    return *this;
  }
  const std::string& Text() const { return this->Lines; }

private:
  std::string Lines;
};

}
