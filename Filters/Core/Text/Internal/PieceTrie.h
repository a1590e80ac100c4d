#pragma once

// Internal to Core: finds the tokens that a text begins with. Tokenizer.h is the interface.

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// A trie of texts and their numbers.
class PieceTrie
{
public:
  /// The texts, which differ and are not empty, with numbers from 0 on. Their bytes are copied.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts);

  static constexpr std::uint32_t Root = 0; ///< also: no node, since no step leads to the root

  /// The node one byte further, or Root if no text continues so.
  std::uint32_t Step(std::uint32_t node, char byte) const
  {
    const Node& from = this->Nodes[node];
    if (from.count == 0)
    {
      return Root;
    }
    const char* labels = this->Labels.data() + from.first;
    const void* found = std::memchr(labels, static_cast<unsigned char>(byte), from.count);
    return found == nullptr
             ? Root
             : from.first + static_cast<std::uint32_t>(static_cast<const char*>(found) - labels);
  }

  /// The number of the text that ends at a node, or -1.
  std::int32_t NumberAt(std::uint32_t node) const { return this->Nodes[node].number; }

  struct Match
  {
    std::size_t length = 0; ///< 0: none
    std::int32_t number = -1;
  };

  /// The longest of the texts that `text` begins with.
  Match Longest(std::string_view text) const;

private:
  struct Node
  {
    std::uint32_t first = 0; ///< its children follow one another
    std::uint32_t count = 0;
    std::int32_t number = -1;
  };
  std::vector<Node> Nodes;
  std::vector<char> Labels; ///< the byte that leads to each node
};

}
