#include "RecordingPrefix.h"

#include "Base/Error.h"
#include "RecordingQuantities.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace atlas
{
namespace
{

/// A part of each sequence.
class Section
{
public:
  /// `begins`: the first row of each part.
  Section(const Recording& recording, std::vector<std::int64_t> begins,
    const std::vector<std::int64_t>& lengths)
    : All(recording)
    , Begins(std::move(begins))
    , Lengths(lengths)
  {
    this->Offsets.push_back(0);
    for (const std::int64_t length : lengths)
    {
      this->Offsets.push_back(this->Offsets.back() + length);
    }
  }

  Recording Make()
  {
    Recording part = this->All;
    part.sequenceOffsets = this->Offsets;
    this->Shorten(part.tokens);
    ForEachTokenMatrix(part, [this](SharedMatrix& matrix) { this->Shorten(matrix); });
    for (RecordedLayer& layer : part.layers)
    {
      for (RecordedHead& head : layer.heads)
      {
        for (const StoredQuantity& quantity : StoredQuantities)
        {
          this->Crop(head.*quantity.matrices);
        }
      }
    }
    return part;
  }

private:
  const Recording& All;
  std::vector<std::int64_t> Begins;
  const std::vector<std::int64_t>& Lengths;
  std::vector<std::int64_t> Offsets;
  std::map<const float*, SharedMatrix> Copies; ///< of matrices that heads may share

  template<class Value>
  void Shorten(std::vector<Value>& list) const
  {
    if (list.empty())
    {
      return;
    }
    std::vector<Value> kept;
    for (std::size_t s = 0; s < this->Lengths.size(); ++s)
    {
      const auto begin = list.begin() + this->Begins[s];
      kept.insert(kept.end(), begin, begin + this->Lengths[s]);
    }
    list = std::move(kept);
  }

  void Shorten(RecordedTokens& tokens)
  {
    this->Shorten(tokens.sequence);
    for (const TokenQuantity& quantity : TokenQuantities)
    {
      std::visit([&](auto list) { this->Shorten(tokens.*list); }, quantity.list);
    }
    this->Shorten(tokens.color);
  }

  /// Rows of tokens.
  void Shorten(SharedMatrix& matrix)
  {
    if (!matrix.IsRecorded())
    {
      return;
    }
    if (this->Lengths.size() == 1)
    {
      matrix.values = { matrix.values, matrix.Row(this->Begins.front()) };
      matrix.rows = this->Lengths.front();
      return;
    }
    SharedMatrix& copy = this->Copies[matrix.values.get()];
    if (!copy.IsRecorded())
    {
      copy = SharedMatrix::Zero(this->Offsets.back(), matrix.columns);
      for (std::size_t s = 0; s < this->Lengths.size(); ++s)
      {
        std::copy_n(matrix.Row(this->Begins[s]), this->Lengths[s] * matrix.columns,
          copy.Row(this->Offsets[s]));
      }
    }
    matrix = copy;
  }

  /// Stored attention: these rows and columns of each sequence's matrix.
  void Crop(std::vector<SharedMatrix>& matrices) const
  {
    for (std::size_t s = 0; s < matrices.size(); ++s)
    {
      const std::int64_t length = this->Lengths[s];
      const std::int64_t first = this->Begins[s] - this->All.sequenceOffsets[s];
      const SharedMatrix all = matrices[s];
      matrices[s] = SharedMatrix::Zero(length, length);
      for (std::int64_t row = 0; row < length; ++row)
      {
        std::copy_n(all.Row(first + row) + first, length, matrices[s].Row(row));
      }
    }
  }
};

}

Recording FirstTokens(const Recording& recording, const std::vector<std::int64_t>& lengths)
{
  CheckRecording(recording, "the recording");
  ThrowIf<OptionError>(static_cast<std::int64_t>(lengths.size()) != recording.SequenceCount(),
    "expected a length for each of ", recording.SequenceCount(), " sequences, found ",
    lengths.size(), ".");
  for (std::size_t s = 0; s < lengths.size(); ++s)
  {
    const std::int64_t length = recording.SequenceLength(static_cast<std::int64_t>(s));
    ThrowIf<OptionError>(lengths[s] < 0 || lengths[s] > length, "sequence ", s, " has ", length,
      " tokens, expected its first ", lengths[s], ".");
    const bool isWhole = lengths[s] == length;
    const bool keepsSource =
      recording.mask == AttentionMask::Cross && lengths[s] >= recording.sourceLengths[s];
    const std::vector<std::int32_t>& ends = recording.tokens.keyEnd;
    const std::int64_t last = recording.sequenceOffsets[s] + lengths[s] - 1;
    const bool isCausal = recording.mask == AttentionMask::Causal &&
                          (ends.empty() || lengths[s] == 0 || ends[last] <= lengths[s]);
    ThrowIf<OptionError>(!isWhole && !keepsSource && !isCausal,
      "expected a causal mask, with which the first tokens do not depend on the later ones.");
  }
  const std::vector<std::int64_t> begins(
    recording.sequenceOffsets.begin(), recording.sequenceOffsets.end() - 1);
  Recording first = Section(recording, begins, lengths).Make();
  if (recording.cross != nullptr)
  {
    std::vector<std::int64_t> both = lengths;
    std::transform(both.begin(), both.end(), recording.cross->sourceLengths.begin(), both.begin(),
      std::plus<std::int64_t>());
    first.cross = std::make_shared<const Recording>(FirstTokens(*recording.cross, both));
  }
  return first;
}

Recording RowsOfSequences(const Recording& recording, const std::vector<RowRange>& ranges)
{
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> lengths;
  for (const RowRange& range : ranges)
  {
    begins.push_back(range.first);
    lengths.push_back(range.end - range.first);
  }
  return Section(recording, std::move(begins), lengths).Make();
}

}
