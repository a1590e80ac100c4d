#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// The output arrays of an evaluation at many points, in single precision. Each pointer is the
/// start of an array over all points with the number of components given below. A quantity whose
/// pointer is nullptr, or whose list is empty, is not written, and is computed only if another one
/// needs it.
struct FieldArrays
{
  std::int32_t* predicted = nullptr;  ///< 1: argmax of the logits, the lowest index on a tie
  float* probability = nullptr;       ///< 1: softmax(logits) of the predicted class
  std::uint8_t* classColor = nullptr; ///< 3: its color, fading to white at chance level
                                      ///< (ClassPalette.h)
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
