#pragma once

#include "LongRecording.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <random>

namespace atlas::test
{

constexpr std::size_t HandMadeHeads = 2;

/// Sequences of 3, 1 and 6 tokens; layers 1 and 4 of 5; two heads.
inline Recording HandMadeRecording()
{
  constexpr std::int64_t dimension = 5;
  std::mt19937 generator(3);
  Recording recording;
  recording.architecture = "hand-made";
  recording.layerCount = 5;
  recording.sequenceOffsets = { 0, 3, 4, 10 };
  recording.tokens.sequence = { 0, 0, 0, 1, 2, 2, 2, 2, 2, 2 };
  recording.tokens.position = { 0, 1, 2, 0, 0, 1, 2, 3, 4, 5 };
  for (const std::int32_t index : { 1, 4 })
  {
    RecordedLayer layer;
    layer.index = index;
    layer.scoreScale = 1.0 / (index + 1);
    for (std::size_t h = 0; h < HandMadeHeads; ++h)
    {
      RecordedHead head;
      head.query = RandomRows(10, dimension, generator);
      head.key = RandomRows(10, dimension, generator);
      layer.heads.push_back(head);
    }
    recording.layers.push_back(layer);
  }
  return recording;
}

}
