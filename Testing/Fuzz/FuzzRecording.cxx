#include "FuzzTarget.h"
#include "Recording/RecordedAttention.h"
#include "Recording/RecordingFile.h"

#include <algorithm>
#include <sstream>
#include <vector>

using namespace atlas;

namespace
{

/// Every quantity of every head, as far as the recording has it.
void Evaluate(const Recording& recording)
{
  constexpr std::int64_t most = 4; // heads and sequences, to be quick
  for (std::int64_t s = 0; s < std::min(recording.SequenceCount(), most); ++s)
  {
    const std::int64_t length = recording.SequenceLength(s);
    const std::int64_t queries = std::min(length, most);
    std::vector<float> values(queries * length);
    for (const RecordedLayer& layer : recording.layers)
    {
      const auto heads = std::min(static_cast<std::int64_t>(layer.heads.size()), most);
      for (std::int64_t h = 0; h < heads; ++h)
      {
        for (const AttentionQuantity quantity : { AttentionQuantity::Weights,
               AttentionQuantity::Scores, AttentionQuantity::Content, AttentionQuantity::Bias })
        {
          fuzz::Use(
            [&, s, h, &layer = layer]
            {
              EvaluateAttention(recording, s, layer.index, h, quantity, 0, queries, values.data());
            });
        }
      }
    }
  }
}

std::string Written(const Recording& recording)
{
  std::ostringstream stream;
  WriteRecording(stream, recording);
  return stream.str();
}

RecordingContent Parse(const std::byte* data, std::size_t size, const RecordingReadOptions& options)
{
  return MakeRecording(ArrayFile(data, size, nullptr, fuzz::Source), options, fuzz::Source);
}

}

/// The reader of recordings in their own and in other names, what is computed from them, and that a
/// recording is read as it was written.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  RecordingReadOptions options;
  if (size % 4 == 0)
  {
    options.headCount = 2;
    options.mask = AttentionMask::Bidirectional;
    options.scoreScale = 0.5;
  }
  RecordingContent content;
  if (!fuzz::Read([&] { content = Parse(fuzz::Bytes(data), size, options); }))
  {
    return 0;
  }
  for (const Recording* part : WithParts(content.recording))
  {
    Evaluate(*part);
  }
  const std::string written = Written(content.recording);
  const RecordingContent again =
    Parse(reinterpret_cast<const std::byte*>(written.data()), written.size(), {});
  fuzz::Require(Written(again.recording) == written, "the same recording");
  return 0;
}
