#pragma once

#include <cstddef>
#include <cstdint>

namespace atlas
{

/// A size or index of a container from a number that is at least 0.
inline std::size_t ToIndex(std::int64_t number)
{
  return static_cast<std::size_t>(number);
}

}
