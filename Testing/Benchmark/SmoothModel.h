#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"

#include <cmath>
#include <cstddef>

/// A model of that many heads and classes with smooth, deterministic weights.
inline atlas::AttentionOnlyModel SmoothModel(int heads, int classes)
{
  double phase = 0;
  const auto fill = [&](auto& matrix, Eigen::Index rows, Eigen::Index columns)
  {
    matrix.resize(rows, columns);
    for (Eigen::Index i = 0; i < matrix.size(); ++i)
    {
      matrix.data()[i] = std::sin(phase += 1.7);
    }
  };
  atlas::AttentionOnlyModel model;
  fill(model.wordEmbedding, classes, 3);
  fill(model.positionEmbedding, 2, 3);
  fill(model.unembedding, classes, 3);
  model.heads.resize(heads);
  for (atlas::AttentionHead& head : model.heads)
  {
    fill(head.query, 3, 3);
    fill(head.key, 3, 3);
    fill(head.value, 3, 3);
    fill(head.output, 3, 3);
  }
  return model;
}
