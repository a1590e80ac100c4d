#pragma once

#include "Recording/Recording.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// The pixels of a token of these pictures, and of a patch, on a side.
inline constexpr std::int32_t TokenPixels = 4;
inline constexpr std::int32_t PatchPixels = 2;

/// The key to which a query gives all its weight in a head.
inline std::int64_t KeyOf(std::int64_t layer, std::int64_t head, std::int64_t query)
{
  return query * (layer + 1) / (head + 2);
}

/// A byte of the pixels of a picture, by its place there.
inline std::uint8_t ByteOf(std::int64_t picture, std::int64_t y, std::int64_t x, int channel)
{
  return static_cast<std::uint8_t>(40 * picture + 7 * y + 3 * x + channel);
}

/// A recording of `images` of patches, by their rows and columns, in one layer of one head, in
/// which each patch gives all its weight to the first of its window of 2 x 2.
inline Recording WindowedImages(const std::vector<std::pair<std::int32_t, std::int32_t>>& images)
{
  Recording recording;
  recording.architecture = "images";
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0 };
  RecordedHead head;
  for (const auto& [rows, columns] : images)
  {
    const std::int64_t patches = rows * columns;
    SharedMatrix weights = SharedMatrix::Zero(patches, patches);
    for (std::int32_t i = 0; i < patches; ++i)
    {
      const std::int32_t row = i / columns;
      const std::int32_t column = i % columns;
      recording.tokens.sequence.push_back(
        static_cast<std::int32_t>(recording.sequenceOffsets.size()) - 1);
      recording.tokens.position.push_back(i);
      recording.tokens.row.push_back(row);
      recording.tokens.column.push_back(column);
      weights.Row(i)[row / 2 * 2 * columns + column / 2 * 2] = 1;
    }
    head.weights.push_back(weights);
    recording.sequenceOffsets.push_back(recording.sequenceOffsets.back() + patches);
  }
  recording.layers.push_back({ 0, 1, { head } });
  recording.layers[0].patchWindow = 2;
  return recording;
}

/// One such image, with queries and keys of three components in place of weights. Scores are half
/// of their products.
inline Recording WindowedQueriesAndKeys(std::int64_t rows, std::int64_t columns)
{
  Recording recording =
    WindowedImages({ { static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns) } });
  recording.layers[0].scoreScale = 0.5;
  RecordedHead& head = recording.layers[0].heads[0];
  const std::int64_t patches = rows * columns;
  head.weights.clear();
  head.query = SharedMatrix::Zero(patches, 3);
  head.key = SharedMatrix::Zero(patches, 3);
  for (std::int64_t i = 0; i < patches * 3; ++i)
  {
    head.query.values.get()[i] = static_cast<float>((i * 7) % 11) - 5;
    head.key.values.get()[i] = static_cast<float>((i * 5 + 2) % 13) - 6;
  }
  return recording;
}

/// A recording of pictures among words, of two layers of two heads, in which each query gives all
/// its weight to one key. The texts, with the pictures as rows x columns of tokens:
///
///     <s> [0: 2 x 3] dog [1: 2 x 1] cat
///     a [2: 1 x 2] [3: 1 x 2] b, where 2 and 3 are frames of a video
inline Recording PicturedRecording()
{
  Recording recording;
  recording.architecture = "words and pictures";
  recording.layerCount = 2;
  RecordedTokens& tokens = recording.tokens;
  recording.sequenceOffsets = { 0 };
  const auto add =
    [&](std::int32_t picture, std::int32_t row, std::int32_t column, const std::string& text)
  {
    tokens.sequence.push_back(static_cast<std::int32_t>(recording.sequenceOffsets.size()) - 1);
    tokens.position.push_back(static_cast<std::int32_t>(tokens.text.size()) -
                              static_cast<std::int32_t>(recording.sequenceOffsets.back()));
    tokens.id.push_back(picture < 0 ? static_cast<std::int64_t>(tokens.text.size()) : 99);
    tokens.text.push_back(text);
    tokens.picture.push_back(picture);
    tokens.row.push_back(row);
    tokens.column.push_back(column);
  };
  RecordedPictures& pictures = recording.pictures;
  const auto show = [&](std::int32_t picture, std::int32_t frame, std::int32_t frames,
                      std::int32_t rows, std::int32_t columns)
  {
    const auto entry = static_cast<std::int32_t>(pictures.contents.size());
    pictures.contents.push_back(
      { picture, frame, frames, false, rows * TokenPixels, columns * TokenPixels });
    for (std::int32_t i = 0; i < rows * columns; ++i)
    {
      add(entry, i / columns, i % columns,
        std::to_string(entry) + ": " + std::to_string(i / columns) + ", " +
          std::to_string(i % columns));
    }
  };
  const auto end = [&]
  { recording.sequenceOffsets.push_back(static_cast<std::int64_t>(tokens.text.size())); };
  add(-1, -1, -1, "<s>");
  show(0, 0, 1, 2, 3);
  add(-1, -1, -1, "dog");
  show(1, 0, 1, 2, 1);
  add(-1, -1, -1, "cat");
  end();
  add(-1, -1, -1, "a");
  show(2, 0, 2, 1, 2);
  show(2, 2, 2, 1, 2);
  add(-1, -1, -1, "b");
  end();
  pictures.count = static_cast<std::int64_t>(pictures.contents.size());
  const std::shared_ptr<std::uint8_t[]> bytes(new std::uint8_t[pictures.FirstByte(pictures.count)]);
  pictures.pixels = { bytes, bytes.get() };
  std::uint8_t* byte = bytes.get();
  for (std::int64_t picture = 0; picture < pictures.count; ++picture)
  {
    for (std::int64_t y = 0; y < pictures.HeightOf(picture); ++y)
    {
      for (std::int64_t x = 0; x < pictures.WidthOf(picture); ++x)
      {
        for (int channel = 0; channel < 3; ++channel)
        {
          *byte++ = ByteOf(picture, y, x, channel);
        }
      }
    }
  }
  for (std::int32_t l = 0; l < 2; ++l)
  {
    RecordedLayer layer;
    layer.index = l;
    for (std::int64_t h = 0; h < 2; ++h)
    {
      RecordedHead& head = layer.heads.emplace_back();
      for (std::int64_t s = 0; s < 2; ++s)
      {
        const std::int64_t length = recording.SequenceLength(s);
        SharedMatrix weights = SharedMatrix::Zero(length, length);
        for (std::int64_t query = 0; query < length; ++query)
        {
          weights.Row(query)[KeyOf(l, h, query)] = 1;
        }
        head.weights.push_back(weights);
      }
    }
    recording.layers.push_back(layer);
  }
  recording.encoder =
    std::make_shared<const Recording>(WindowedImages({ { 4, 6 }, { 4, 2 }, { 2, 4 }, { 2, 4 } }));
  return recording;
}

}
