#pragma once

#include "Learning/LearningRun.h"
#include "Weights/TransformerConfig.h"

#include <vector>

namespace AttentionAtlas
{

/// A result of a training as bytes, for other ranks.
std::vector<char> Packed(const atlas::LearningResult& result);

/// The result in the bytes. Its models have this configuration.
atlas::LearningResult Unpacked(
  const std::vector<char>& bytes, const atlas::TransformerConfig& config);

}
