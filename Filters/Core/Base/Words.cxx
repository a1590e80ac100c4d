#include "Words.h"

#include <cstddef>

namespace atlas
{

bool HasWord(std::string_view words, std::string_view key)
{
  for (std::size_t at = words.find(key); at != std::string_view::npos; at = words.find(key, at + 1))
  {
    const std::size_t end = at + key.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
    {
      return !key.empty();
    }
  }
  return false;
}

}
