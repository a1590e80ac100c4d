#pragma once

#include "Recordings.h"
#include "vtkPatchAttention.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace atlas::test
{

class Patches : public Warned<vtkPatchAttention>
{
public:
  using Link = std::pair<std::int64_t, std::int64_t>;

  /// Its squares are as large as patches.
  explicit Patches(vtkDataObject* input)
    : Warned(input)
  {
    this->Get()->SetHeatSide(1);
  }

  /// Queries and keys of arrows or marks, as rows of the recording's tokens.
  std::vector<Link> Links(int port) { return PairsOf(*this, port); }
};

inline bool IsInside(const double* point, const std::array<double, 6>& bounds)
{
  return point[0] > bounds[0] && point[0] < bounds[1] && point[1] > bounds[2] &&
         point[1] < bounds[3];
}

/// A byte of a picture, from the top.
inline double Byte(vtkImageData* image, int x, int y, int channel)
{
  return image->GetScalarComponentAsDouble(x, image->GetDimensions()[1] - 1 - y, 0, channel);
}

}
