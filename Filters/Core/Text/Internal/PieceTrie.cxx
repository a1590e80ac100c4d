#include "PieceTrie.h"

#include <algorithm>

namespace atlas
{

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts)
{
  std::sort(texts.begin(), texts.end());
  struct Range // the texts that share the bytes up to a node
  {
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };
  std::vector<Range> ranges = { { 0, texts.size(), 0 } };
  this->Nodes.emplace_back();
  this->Labels.push_back('\0');
  // Level by level; the children of a node are added together.
  for (std::size_t node = 0; node < this->Nodes.size(); ++node)
  {
    const auto [begin, end, depth] = ranges[node];
    std::size_t next = begin;
    if (next < end && texts[next].first.size() == depth)
    {
      this->Nodes[node].number = texts[next].second;
      ++next;
    }
    this->Nodes[node].first = static_cast<std::uint32_t>(this->Nodes.size());
    while (next < end)
    {
      const char label = texts[next].first[depth];
      const std::size_t child = next;
      while (next < end && texts[next].first[depth] == label)
      {
        ++next;
      }
      ranges.push_back({ child, next, depth + 1 });
      this->Nodes.emplace_back();
      this->Labels.push_back(label);
      ++this->Nodes[node].count;
    }
  }
}

PieceTrie::Match PieceTrie::Longest(std::string_view text) const
{
  Match longest;
  std::uint32_t node = Root;
  for (std::size_t i = 0; i < text.size(); ++i)
  {
    node = this->Step(node, text[i]);
    if (node == Root)
    {
      break;
    }
    if (this->NumberAt(node) >= 0)
    {
      longest = { i + 1, this->NumberAt(node) };
    }
  }
  return longest;
}

}
