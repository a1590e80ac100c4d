#pragma once

#include <cstddef>
#include <cstdint>

namespace atlas
{

/// Converts a number that is at least 0 to a size or index of a container.
inline std::size_t ToIndex(std::int64_t number)
{
  return static_cast<std::size_t>(number);
}

}
