#pragma once

#include "Drawing/TokenPalette.h"
#include "Recording/Recording.h"

#include <vtkType.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// What tokens can be colored by. The values are those of the property By.
enum class TokenQuantity
{
  Kind = 0,
  Position,
  RelativePosition,
  PositionMod5,
  Norm,
  TokenCount,
  Row,
  Column,
  Hue,
  Brightness,
  Segment,
  SentenceLength,
  PatchColor
};

/// What stands for a quantity that a token does not have.
inline constexpr double UnknownValue = std::numeric_limits<double>::quiet_NaN();

/// The tokens of points or rows. A quantity is taken from their array of that name or, if there is
/// none, from the recording that the array Token Index refers to. Every function throws
/// atlas::OptionError if its quantity is in neither.
class TokenValues
{
public:
  /// `recording` may be nullptr. Both are used as long as this object exists.
  TokenValues(vtkDataSetAttributes* arrays, vtkIdType count, const atlas::Recording* recording);

  /// Whether each is a query or a key; empty if there is no array Kind.
  const std::vector<std::int64_t>& Kinds() const { return this->Kind; }

  /// One number for each, of a quantity other than Kind, Hue, Brightness and PatchColor. A row or
  /// column of -1 means a token without a patch.
  std::vector<double> Numbers(TokenQuantity quantity) const;

  /// The mean color of each patch, red, green and blue from 0 to 1; NaN for tokens without a patch.
  std::vector<std::array<double, 3>> PatchColors() const;

private:
  vtkDataSetAttributes* Arrays;
  std::size_t Count;
  const atlas::Recording* Source;
  std::vector<std::int64_t> Kind;
  std::vector<std::int64_t> Token; ///< rows of the recording's tokens; empty without a recording

  std::optional<std::vector<double>> FromArray(const char* name) const;
  template<class Value>
  std::vector<double> FromRecording(const char* name, const Value& value) const;
  std::vector<double> Lengths() const;
  std::vector<double> LengthsFromPositions() const;
  std::vector<double> Counts() const;
};

}
