#pragma once

#include "RandomMatrix.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>

namespace atlas::benchmarks
{

/// Heads of dimension 64 in one layer, on causal sequences of `length` tokens each.
inline Recording MakeRecording(std::int64_t tokens, int heads, std::int64_t length)
{
  std::mt19937 generator(1);
  Recording recording;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0 };
  for (std::int64_t t = 0; t < tokens; ++t)
  {
    recording.tokens.sequence.push_back(static_cast<std::int32_t>(t / length));
    recording.tokens.position.push_back(static_cast<std::int32_t>(t % length));
    recording.tokens.id.push_back(t);
    recording.tokens.text.push_back("token " + std::to_string(t));
    if ((t + 1) % length == 0 || t + 1 == tokens)
    {
      recording.sequenceOffsets.push_back(t + 1);
    }
  }
  RecordedLayer layer;
  layer.scoreScale = 0.125;
  for (int h = 0; h < heads; ++h)
  {
    RecordedHead head;
    head.query = RandomMatrix(tokens, 64, generator);
    head.key = RandomMatrix(tokens, 64, generator);
    layer.heads.push_back(head);
  }
  recording.layers.push_back(layer);
  return recording;
}

/// Three pictures of a third of the tokens each, in rows of 16 tokens of 28 x 28 pixels, then
/// words.
inline Recording WithPictures(Recording recording)
{
  constexpr std::int32_t columns = 16;
  constexpr std::int32_t side = 28;
  RecordedTokens& tokens = recording.tokens;
  const auto count = static_cast<std::int32_t>(tokens.Count());
  const std::int32_t rows = (count - 4) / 3 / columns;
  for (std::int32_t i = 0; i < count; ++i)
  {
    const std::int32_t picture = i / (rows * columns);
    const std::int32_t square = i % (rows * columns);
    tokens.picture.push_back(picture < 3 ? picture : -1);
    tokens.row.push_back(picture < 3 ? square / columns : -1);
    tokens.column.push_back(picture < 3 ? square % columns : -1);
  }
  RecordedPictures& pictures = recording.pictures;
  for (std::int32_t picture = 0; picture < 3; ++picture)
  {
    pictures.contents.push_back({ picture, 0, 1, false, rows * side, columns * side });
  }
  pictures.count = 3;
  const std::shared_ptr<std::uint8_t[]> pixels(new std::uint8_t[pictures.FirstByte(3)]());
  pictures.pixels = { pixels, pixels.get() };
  return recording;
}

}
