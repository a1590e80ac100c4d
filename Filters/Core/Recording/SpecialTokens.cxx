#include "SpecialTokens.h"

#include "Base/Error.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace atlas
{
namespace
{

constexpr std::array<std::string_view, 15> Names = { "[CLS]", "[SEP]", "[PAD]", "[BOS]", "[EOS]",
  "<s>", "</s>", "<pad>", "<cls>", "<sep>", "<bos>", "<eos>", "<eod>", "<start_of_turn>",
  "<end_of_turn>" };

}

bool IsSpecialToken(std::string_view text)
{
  constexpr std::string_view begin = "<|";
  constexpr std::string_view end = "|>";
  if (text.size() > begin.size() + end.size() && text.substr(0, begin.size()) == begin &&
      text.substr(text.size() - end.size()) == end)
  {
    return true;
  }
  return std::find(Names.begin(), Names.end(), text) != Names.end();
}

std::vector<bool> FindSpecialTokens(const Recording& recording, std::int64_t sequence)
{
  const RecordedTokens& tokens = recording.tokens;
  ThrowIf<OptionError>(tokens.text.empty() && tokens.row.empty(),
    "HideSpecial: expected a recording with the texts of its tokens, found one without; name the "
    "tokens to hide in HiddenTokens.");
  ThrowIf<OptionError>(sequence == AllSequences,
    "HideSpecial: expected one sequence, found the mean over all, whose "
    "positions have no tokens of their own.");
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<bool> special(length);
  for (std::int64_t i = 0; i < length; ++i)
  {
    const std::size_t row = first + i;
    special[i] = (tokens.picture.empty() && row < tokens.row.size() && tokens.row[row] < 0) ||
                 (row < tokens.text.size() && IsSpecialToken(tokens.text[row]));
  }
  return special;
}

}
