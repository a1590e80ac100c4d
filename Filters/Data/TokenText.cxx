#include "TokenText.h"

#include "Index.h"

namespace AttentionAtlas
{

std::string TokenText(const atlas::Recording& recording, std::int64_t row)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  const std::size_t i = row;
  if (i < tokens.text.size())
  {
    return tokens.text[i];
  }
  if (i < tokens.row.size())
  {
    return tokens.row[i] < 0
             ? "class token"
             : std::to_string(tokens.row[i]) + ", " + std::to_string(tokens.column[i]);
  }
  return std::to_string(i < tokens.id.size() ? tokens.id[i] : tokens.position[i]);
}

}
