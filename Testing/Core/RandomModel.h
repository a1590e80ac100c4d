#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"

#include <cstddef>
#include <random>

#include <Eigen/Core>

namespace atlas::test
{

template<class Matrix>
void FillWithRandom(
  Matrix& matrix, Eigen::Index rows, Eigen::Index columns, std::mt19937& generator)
{
  matrix = Matrix::NullaryExpr(
    rows, columns, [&] { return static_cast<double>(generator()) / 2147483648. - 1; });
}

/// A model with weights between -1 and 1, the same everywhere, without targets.
inline AttentionOnlyModel RandomModel(
  Eigen::Index classes, std::size_t heads, unsigned seed = 20240607, Eigen::Index headDimension = 2)
{
  std::mt19937 generator(seed);
  AttentionOnlyModel model;
  FillWithRandom(model.wordEmbedding, classes, 3, generator);
  FillWithRandom(model.positionEmbedding, 2, 3, generator);
  FillWithRandom(model.unembedding, classes, 3, generator);
  model.heads.resize(heads);
  for (AttentionHead& head : model.heads)
  {
    FillWithRandom(head.query, headDimension, 3, generator);
    FillWithRandom(head.key, headDimension, 3, generator);
    FillWithRandom(head.value, headDimension, 3, generator);
    FillWithRandom(head.output, 3, headDimension, generator);
  }
  return model;
}

}
