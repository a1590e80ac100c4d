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

}
