#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace atlas
{

/// Throws FormatError unless a token may have an id: that is in range, neither is the token `known`
/// by another, nor has another token this one. The message starts with `name`.
void RequireFreeId(const std::string& name, std::string_view token, std::int64_t id,
  const std::optional<std::int64_t>& known, const std::string* other);

/// The tokens of a language model and their ids.
class Vocabulary
{
public:
  /// The largest id allowed.
  static constexpr std::int64_t MaximumId = 2'147'483'647;

  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete; // the maps point into Tokens
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Adds a token. Throws FormatError if the id is out of range or belongs to another token, or if
  /// the token has another id; the message starts with `source`.
  void Add(std::string_view token, std::int64_t id, const std::string& source);

  /// The id of a token, or std::nullopt if it is not in the vocabulary.
  std::optional<std::int64_t> IdOf(std::string_view token) const
  {
    const auto found = this->Ids.find(token);
    return found == this->Ids.end() ? std::nullopt : std::optional(found->second);
  }

  /// The token of an id, or nullptr if it is not in the vocabulary.
  const std::string* TokenOf(std::int64_t id) const
  {
    const auto found = this->Texts.find(id);
    return found == this->Texts.end() ? nullptr : found->second;
  }

  /// Calls `visit(token, id)` for all tokens, in the order in which they were added.
  template<class Visit>
  void ForEach(const Visit& visit) const
  {
    for (const std::string& token : this->Tokens)
    {
      visit(std::string_view(token), this->Ids.at(token));
    }
  }

  /// One more than the largest id.
  std::int64_t Size() const { return this->End; }

  /// Length of the longest token, in bytes.
  std::size_t LongestToken() const { return this->Longest; }

private:
  std::deque<std::string> Tokens;
  std::unordered_map<std::string_view, std::int64_t> Ids;
  std::unordered_map<std::int64_t, const std::string*> Texts;
  std::int64_t End = 0;
  std::size_t Longest = 0;
};

}
