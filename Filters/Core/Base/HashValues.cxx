#include "HashValues.h"

#include <algorithm>
#include <cstring>

namespace atlas
{

std::uint64_t HashValues(const void* values, std::size_t bytes, std::uint64_t seed)
{
  // Four independent multiplicative chains of 8 bytes, mixed at the end (as MurmurHash3 does).
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15U;
  constexpr std::size_t word = sizeof(std::uint64_t);
  constexpr std::size_t lanes = 4;
  const auto* data = static_cast<const unsigned char*>(values);
  std::uint64_t state[lanes] = { seed, seed + factor, seed ^ factor, ~seed };
  for (std::size_t i = 0; i < bytes; i += word * lanes)
  {
    std::uint64_t words[lanes] = {};
    std::memcpy(words, data + i, std::min(word * lanes, bytes - i));
    for (std::size_t lane = 0; lane < lanes; ++lane)
    {
      state[lane] = (state[lane] ^ words[lane]) * factor;
      state[lane] ^= state[lane] >> 29U;
    }
  }
  std::uint64_t hash = bytes;
  for (const std::uint64_t lane : state)
  {
    hash = (hash ^ lane) * factor;
    hash ^= hash >> 32U;
  }
  return hash;
}

std::string HashText(std::uint64_t hash)
{
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, hash >>= 4U)
  {
    *digit = "0123456789abcdef"[hash & 0xFU];
  }
  return text;
}

}
