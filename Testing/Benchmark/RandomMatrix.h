#pragma once

#include "Recording/Recording.h"

#include <cstddef>
#include <cstdint>
#include <random>

/// Queries, keys or values: normal numbers, the next of a generator.
inline atlas::SharedMatrix RandomMatrix(
  std::int64_t rows, std::int64_t columns, std::mt19937& generator)
{
  std::normal_distribution<float> normal;
  atlas::SharedMatrix matrix = atlas::SharedMatrix::Zero(rows, columns);
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    matrix.values.get()[i] = normal(generator);
  }
  return matrix;
}
