#pragma once

#include "Recording/Recording.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

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

/// One sequence of `length` tokens.
inline Recording LongRecording(std::int64_t length,
  const std::vector<std::int32_t>& layers = { 1, 2, 3 }, std::size_t heads = 2,
  std::int64_t dimension = 5, double scale = 2)
{
  std::mt19937 generator(5);
  Recording recording;
  recording.layerCount = layers.back() + 1;
  recording.sequenceOffsets = { 0, length };
  recording.tokens.sequence.assign(length, 0);
  recording.tokens.position.resize(length);
  std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
  for (const std::int32_t index : layers)
  {
    recording.layers.push_back({ index, scale, std::vector<RecordedHead>(heads) });
    for (RecordedHead& head : recording.layers.back().heads)
    {
      head.query = RandomRows(length, dimension, generator);
      head.key = RandomRows(length, dimension, generator);
    }
  }
  return recording;
}

}
