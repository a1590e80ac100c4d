#include "TokenText.h"

#include "ArrayNames.h"
#include "Base/Index.h"
#include "DataFields.h"
#include "Recording/RecordedAttention.h"
#include "Text/UnicodeText.h"

#include <algorithm>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// The largest number of characters of the beginning of a text.
constexpr std::int64_t BeginningLength = 40;

bool BeginsCharacter(char c)
{
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

}

std::string TokenText(const atlas::Recording& recording, std::int64_t row)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  const std::size_t i = row;
  if (i < tokens.text.size())
  {
    return tokens.text[i];
  }
  const bool isAmongWords = i < tokens.picture.size();
  if (i < tokens.row.size() && (!isAmongWords || tokens.picture[i] >= 0))
  {
    const std::string place =
      std::to_string(tokens.row[i]) + ", " + std::to_string(tokens.column[i]);
    return isAmongWords        ? std::to_string(tokens.picture[i]) + ": " + place
           : tokens.row[i] < 0 ? "class token"
                               : place;
  }
  return std::to_string(i < tokens.id.size() ? tokens.id[i] : tokens.position[i]);
}

std::string SequenceText(const atlas::Recording& recording, std::int64_t sequence)
{
  const std::vector<std::string>& texts = recording.tokens.text;
  if (sequence < 0 || texts.empty())
  {
    return {};
  }
  const atlas::KeyRange range = atlas::QueryPositions(recording, sequence);
  const auto begin = texts.begin() + recording.sequenceOffsets[sequence] + range.begin;
  const auto end = begin + (range.end - range.begin);
  // Tokens of words without their spaces are separated by these.
  const bool hasSpaces = std::any_of(
    begin, end, [](const std::string& text) { return !text.empty() && text[0] == ' '; });
  std::string all;
  std::int64_t characters = 0;
  for (auto token = begin; token != end; ++token)
  {
    const std::string space = hasSpaces || token == begin ? "" : " ";
    for (const char c : space + atlas::ReplaceInvalidUtf8(*token))
    {
      characters += BeginsCharacter(c) ? 1 : 0;
      if (characters > BeginningLength)
      {
        return all + "\u2026";
      }
      all += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return all;
}

void AddSequence(int sequence, const std::string& text, vtkFieldData* fields)
{
  AddField(fields, ArrayNames::Sequence, sequence);
  if (!text.empty())
  {
    AddField(fields, ArrayNames::SequenceText, text);
  }
}

void AddAllSequences(const atlas::Recording& recording, vtkFieldData* fields)
{
  const std::int64_t count = recording.SequenceCount();
  if (count == 1)
  {
    AddSequence(0, SequenceText(recording, 0), fields);
  }
  else
  {
    AddField(fields, "Listed", std::to_string(count) + " sequences");
  }
}

}
