#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"

#include <cmath>

namespace atlas::test
{

/// A model small enough to be worked out on paper. With s = 1/sqrt(2), x = (x.0, x.1, x.2):
///
///     p_1 = s (2, 4, 6),   p_2 = s (4, 2, 2)
///     score_0 = x_2.0 (x_1.2 - x_2.2),    out_0 = mix_0.1 (1, 2, 3)
///     score_1 = -score_0,                 out_1 = mix_1.2 (1, 0, -1)
///
/// The angles below give embeddings that are simple too:
///
///     e(pi/6) = s (1, 1, -2),   e(pi/2) = s (-1, 2, -1)
struct HandModel : AttentionOnlyModel
{
  static inline const double S = std::sqrt(0.5);
  static inline const double Pi = std::acos(-1.0);
  static inline const double Theta1 = Pi / 6;
  static inline const double Theta2 = Pi / 2;

  HandModel()
  {
    this->wordEmbedding.resize(2, 3);
    this->wordEmbedding << 1, 1, -2, -10, 20, -10; // e(pi/6) and e(pi/2) before normalization
    this->positionEmbedding.resize(2, 3);
    this->positionEmbedding << 2, 4, 6, 4, 2, 2;
    this->positionEmbedding *= S;
    this->unembedding.resize(2, 3);
    this->unembedding << 1, 0, 0, 0, 1, 0;
    this->heads.resize(2);
    for (AttentionHead& head : this->heads)
    {
      head.query = Eigen::RowVector3d(1, 0, 0);
      head.key = Eigen::RowVector3d(0, 0, 1);
      head.value = Eigen::RowVector3d(0, 1, 0);
      head.output = Eigen::Vector3d(1, 2, 3);
    }
    this->heads[1].key *= -1;
    this->heads[1].value = Eigen::RowVector3d(0, 0, 1);
    this->heads[1].output = Eigen::Vector3d(1, 0, -1);
    this->precision = DType::F64;
  }
};

}
