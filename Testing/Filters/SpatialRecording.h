#pragma once

#include "Recordings.h"

namespace atlas::test
{

/// Attention of a head on four tokens, a row per query.
inline const std::vector<float> FirstHead = { 0.5F, 0.25F, 0.125F, 0.125F, //
  0, 1, 0, 0,                                                              //
  0.25F, 0.25F, 0.25F, 0.25F,                                              //
  0.125F, 0, 0.375F, 0.5F };

/// Attention of two heads on a sequence of four tokens and one of one token, as a file may store
/// it: that of the first head is above, and in the second each token attends to itself.
inline Recording SpatialRecording()
{
  Recording recording;
  recording.architecture = "solver";
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, 4, 5 };
  recording.tokens.sequence = { 0, 0, 0, 0, 1 };
  recording.tokens.position = { 0, 1, 2, 3, 0 };
  recording.tokens.id = { 5, 6, 7, 8, 5 };
  recording.tokens.text = { "a", "b", "c", "d", "a" };
  RecordedLayer layer;
  layer.index = 0;
  layer.scoreScale = 1;
  for (const bool isFirst : { true, false })
  {
    RecordedHead head;
    head.weights.push_back(SharedMatrix::Zero(4, 4));
    head.weights.push_back(SharedMatrix::Zero(1, 1));
    *head.weights[1].Row(0) = 1;
    if (isFirst)
    {
      std::copy(FirstHead.begin(), FirstHead.end(), head.weights[0].Row(0));
    }
    for (int i = 0; !isFirst && i < 4; ++i)
    {
      head.weights[0].Row(i)[i] = 1;
    }
    layer.heads.push_back(head);
  }
  recording.layers.push_back(layer);
  return recording;
}

}
