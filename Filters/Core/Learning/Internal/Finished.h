#pragma once

// Internal to Core.

#include <optional>
#include <utility>

namespace atlas
{

/// The result of a computation without `progress`, which nothing stops.
template<class Result>
Result Finished(std::optional<Result> result)
{
  if (!result)
  {
    throw std::bad_optional_access();
  }
  return std::move(*result);
}

}
