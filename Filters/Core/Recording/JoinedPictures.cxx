#include "JoinedPictures.h"

#include "Base/Index.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace atlas
{
namespace
{

/// The picture of a token; -1 for a word.
std::int32_t PictureOf(const Recording& recording, std::int64_t row)
{
  const std::vector<std::int32_t>& pictures = recording.tokens.picture;
  return pictures.empty() ? -1 : pictures[row];
}

/// How a word is named that begins at row `begin` and has `count` tokens.
std::string NameOf(const Recording& recording, std::int64_t begin, std::int64_t count)
{
  const RecordedTokens& tokens = recording.tokens;
  const std::int32_t picture = PictureOf(recording, begin);
  if (picture >= 0)
  {
    return "picture " + std::to_string(picture) + " (" + std::to_string(count) +
           (count == 1 ? " token)" : " tokens)");
  }
  const std::size_t i = begin;
  return i < tokens.text.size()
           ? tokens.text[i]
           : std::to_string(i < tokens.id.size() ? tokens.id[i] : tokens.position[i]);
}

}

JoinedWords JoinPictures(const Recording& recording, std::int64_t sequence)
{
  RequireOneSequence(recording, sequence);
  const std::int64_t begin = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  JoinedWords words;
  for (std::int64_t i = 0; i < length; ++i)
  {
    const std::int32_t picture = PictureOf(recording, begin + i);
    if (i == 0 || picture < 0 || picture != PictureOf(recording, begin + i - 1))
    {
      words.first.push_back(i);
    }
  }
  words.first.push_back(length);
  return words;
}

Recording JoinAttention(const Recording& recording, AttentionRows rows, const JoinedWords& words,
  int threads, const Progress& progress)
{
  rows.begin = rows.end = 0;
  EvaluateAttentionRows(recording, rows, nullptr, threads); // checks the place
  Recording joined;
  joined.architecture = recording.architecture;
  joined.mask = recording.mask;
  joined.layerCount = recording.layerCount;
  joined.layersWithoutHeads = recording.layersWithoutHeads;
  const std::int64_t begin = recording.sequenceOffsets[rows.sequence];
  for (std::int64_t w = 0; w < words.Count(); ++w)
  {
    joined.tokens.sequence.push_back(0);
    joined.tokens.position.push_back(static_cast<std::int32_t>(w));
    joined.tokens.text.push_back(
      NameOf(recording, begin + words.first[w], words.first[w + 1] - words.first[w]));
  }
  joined.sequenceOffsets = { 0, words.Count() };
  RecordedLayer& layer = joined.layers.emplace_back();
  layer.index = static_cast<std::int32_t>(rows.layer);
  if (HasSinks(recording, rows.layer, rows.quantity))
  {
    layer.sinks = { 0 };
  }
  const std::int64_t length = words.first.back();
  const std::int64_t count = words.Count();
  const SharedMatrix weights = SharedMatrix::Zero(count, count);
  const std::int64_t step = QueriesAtOnce(length);
  std::vector<float> values(ToIndex(std::min(step, length)) * ToIndex(length));
  std::vector<double> sums(ToIndex(count), 0);
  std::int64_t word = 0;
  for (; rows.end < length; rows.begin = rows.end)
  {
    rows.end = std::min(rows.begin + step, length);
    EvaluateAttentionRows(
      recording, rows, values.data(), threads, progress.Part(rows.begin, rows.end, length));
    for (std::int64_t query = rows.begin; query < rows.end; ++query)
    {
      const float* row = values.data() + (query - rows.begin) * length;
      for (std::int64_t key = 0; key < count; ++key)
      {
        for (std::int64_t j = words.first[key]; j < words.first[key + 1]; ++j)
        {
          sums[key] += static_cast<double>(row[j]);
        }
      }
      if (query + 1 == words.first[word + 1])
      {
        const auto tokens = static_cast<double>(query + 1 - words.first[word]);
        std::transform(sums.begin(), sums.end(), weights.Row(word++),
          [tokens](double sum) { return static_cast<float>(sum / tokens); });
        std::fill(sums.begin(), sums.end(), 0);
      }
    }
  }
  layer.heads.emplace_back().weights.push_back(weights);
  return joined;
}

}
