#pragma once

#include "DataFields.h"

#include <array>
#include <cstdio>
#include <string>

/// What a picture explains in words.
namespace AttentionAtlas
{

/// The field array of data that opens in a diagram: what sizes, widths and places in it mean, which
/// the diagram says below its title.
inline constexpr const char* SignsField = "Signs";

inline void AddSigns(vtkFieldData* fields, const std::string& signs)
{
  AddField(fields, SignsField, signs);
}

/// A number in such words, with three digits.
inline std::string ShortNumber(double number)
{
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.3g", number);
  return text.data();
}

}
