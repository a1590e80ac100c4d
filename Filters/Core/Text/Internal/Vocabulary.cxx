#include "Vocabulary.h"

#include "Error.h"

#include <algorithm>

namespace atlas
{

void Vocabulary::Add(std::string_view token, std::int64_t id, const std::string& source)
{
  const auto fail = [&](const std::string& message)
  { throw FormatError(source + ": token '" + std::string(token.substr(0, 80)) + "': " + message); };
  if (id < 0 || id > MaximumId)
  {
    fail("expected an id from 0 to " + std::to_string(MaximumId) + ", found " + std::to_string(id) +
         ".");
  }
  const std::optional<std::int64_t> known = this->IdOf(token);
  if (known && *known != id)
  {
    fail("expected one id, found " + std::to_string(*known) + " and " + std::to_string(id) + ".");
  }
  const std::string* other = this->TokenOf(id);
  if (!known && other != nullptr)
  {
    fail(
      "the id " + std::to_string(id) + " belongs to token '" + other->substr(0, 80) + "' already.");
  }
  if (known)
  {
    return;
  }
  const std::string& stored = this->Tokens.emplace_back(token);
  this->Ids.emplace(stored, id);
  this->Texts.emplace(id, &stored);
  this->End = std::max(this->End, id + 1);
  this->Longest = std::max(this->Longest, stored.size());
}

}
