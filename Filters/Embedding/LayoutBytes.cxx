#include "LayoutBytes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace AttentionAtlas
{
namespace
{

constexpr std::array<double atlas::HeadLayout::*, 9> Numbers = { &atlas::HeadLayout::scale,
  &atlas::HeadLayout::correlation, &atlas::HeadLayout::correlationBefore,
  &atlas::HeadLayout::rankCorrelation, &atlas::HeadLayout::queryNorm, &atlas::HeadLayout::keyNorm,
  &atlas::HeadLayout::neighborsKept, &atlas::HeadLayout::varianceExplained,
  &atlas::HeadLayout::divergence };

template<class Value>
void Write(const Value* values, std::size_t count, std::vector<char>& bytes)
{
  const auto* begin = reinterpret_cast<const char*>(values);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(Value));
}

template<class List>
void WriteList(const List& list, std::vector<char>& bytes)
{
  const std::uint64_t count = list.size();
  Write(&count, 1, bytes);
  Write(list.data(), list.size(), bytes);
}

template<class Value>
const char* Read(const char* next, Value* values, std::size_t count)
{
  std::memcpy(values, next, count * sizeof(Value));
  return next + count * sizeof(Value);
}

template<class List>
const char* ReadList(const char* next, List& list)
{
  std::uint64_t count = 0;
  next = Read(next, &count, 1);
  list.resize(count);
  return Read(next, list.data(), list.size());
}

}

std::vector<char> ToBytes(const std::vector<atlas::HeadLayout>& layouts)
{
  std::vector<char> bytes;
  for (const atlas::HeadLayout& layout : layouts)
  {
    Write(&layout.place, 1, bytes);
    for (const auto number : Numbers)
    {
      Write(&(layout.*number), 1, bytes);
    }
    Write(&layout.iterations, 1, bytes);
    Write(&layout.stopped, 1, bytes);
    WriteList(layout.points, bytes);
    WriteList(layout.frames, bytes);
    WriteList(layout.norms, bytes);
    WriteList(layout.error, bytes);
  }
  return bytes;
}

void FromBytes(const std::vector<char>& bytes, std::vector<atlas::HeadLayout>& layouts)
{
  const char* next = bytes.data();
  while (next != bytes.data() + bytes.size())
  {
    atlas::HeadLayout layout;
    next = Read(next, &layout.place, 1);
    for (const auto number : Numbers)
    {
      next = Read(next, &(layout.*number), 1);
    }
    next = Read(next, &layout.iterations, 1);
    next = Read(next, &layout.stopped, 1);
    next = ReadList(next, layout.points);
    next = ReadList(next, layout.frames);
    next = ReadList(next, layout.norms);
    next = ReadList(next, layout.error);
    layouts.push_back(std::move(layout));
  }
}

}
