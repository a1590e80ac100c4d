#pragma once

#include "Transformer.h"

#include <optional>
#include <vector>

namespace atlas
{

/// A logistic regression that predicts contacts of residues from attention (Rao et al. 2021): the
/// probability of i and j is sigmoid(bias + sum over heads of weight times CorrectAttention of the
/// head at i and j, see Geometry/ResidueContacts.h).
struct ContactHead
{
  std::vector<double> weights; ///< of the heads of layer 0, of layer 1 and so on
  double bias = 0;
};

/// The contact head of ESM-2, if the files of the model have it. Throws ModelError unless it has a
/// finite weight for each head and one finite bias.
std::optional<ContactHead> ReadContactHead(const Transformer& model);

}
