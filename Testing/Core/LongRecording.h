#pragma once

#include "Recording.h"

#include <cstdint>
#include <numeric>
#include <random>

namespace atlas::test
{

/// Numbers from -1 to 1.
inline SharedMatrix RandomRows(std::int64_t rows, std::int64_t columns, std::mt19937& generator)
{
  SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    matrix.values.get()[i] = static_cast<float>(generator() % 2001) / 1000 - 1;
  }
  return matrix;
}

/// One sequence of `length` tokens: layers 1, 2 and 3 of 4 with two heads of 5 dimensions.
inline Recording LongRecording(std::int64_t length)
{
  std::mt19937 generator(5);
  Recording recording;
  recording.layerCount = 4;
  recording.sequenceOffsets = { 0, length };
  recording.tokens.sequence.assign(length, 0);
  recording.tokens.position.resize(length);
  std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
  for (const std::int32_t index : { 1, 2, 3 })
  {
    recording.layers.push_back({ index, 2, std::vector<RecordedHead>(2) });
    for (RecordedHead& head : recording.layers.back().heads)
    {
      head.query = RandomRows(length, 5, generator);
      head.key = RandomRows(length, 5, generator);
    }
  }
  return recording;
}

}
