#pragma once

#include <cstdint>

namespace atlas
{

/// The dot product of two vectors, added up in double precision from the first value to the last.
template<class Number>
double DotProduct(const Number* a, const Number* b, std::int64_t count)
{
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

}
