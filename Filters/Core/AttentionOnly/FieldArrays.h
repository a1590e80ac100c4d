#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// Where the quantities of many points go, in single precision. Each pointer is the start of an
/// array over all points, with the given number of components per point; nullptr, or an empty list,
/// means that the quantity is not wanted and is not computed for its own sake.
struct FieldArrays
{
  std::int32_t* predicted = nullptr;  ///< 1: argmax of the logits, the lowest index on a tie
  float* probability = nullptr;       ///< 1: softmax(logits) of the predicted class
  std::uint8_t* classColor = nullptr; ///< 3: its colour, faded to white at chance (ClassPalette.h)
  float* logits = nullptr;            ///< N
  float* output = nullptr;            ///< 3: r
  std::vector<float*> score;          ///< 1, per head
  std::vector<float*> attention;      ///< 1, per head
  std::vector<float*> wordMix;        ///< 3, per head
  std::vector<float*> positionMix;    ///< 3, per head
  std::vector<float*> mix;            ///< 3, per head
  std::vector<float*> headOutput;     ///< 3, per head
};

}
