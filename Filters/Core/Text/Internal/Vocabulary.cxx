#include "Vocabulary.h"

#include "Base/Error.h"

#include <algorithm>

namespace atlas
{

void RequireFreeId(const std::string& name, std::string_view token, std::int64_t id,
  const std::optional<std::int64_t>& known, const std::string* other)
{
  ThrowIf<FormatError>(id < 0 || id > Vocabulary::MaximumId, name, "expected an id from 0 to ",
    Vocabulary::MaximumId, ", found ", id, ".");
  ThrowIf<FormatError>(known.value_or(id) != id, name, "expected one id, found ",
    known.value_or(id), " and ", id, ".");
  if (other != nullptr && *other != token)
  {
    throw FormatError(
      name, "the id ", id, " belongs to token '", other->substr(0, 80), "' already.");
  }
}

void Vocabulary::Add(std::string_view token, std::int64_t id, const std::string& source)
{
  const std::optional<std::int64_t> known = this->IdOf(token);
  RequireFreeId(
    Concat(source, ": token '", token.substr(0, 80), "': "), token, id, known, this->TokenOf(id));
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
