#pragma once

namespace AttentionAtlas
{

/// The gray, black (0) or white (1), that is legible on a background in RGB, by its luminance
/// (ITU-R BT.601).
inline double InkOn(const double* back)
{
  return 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2] > 0.5 ? 0 : 1;
}

}
