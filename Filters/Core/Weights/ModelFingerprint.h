#pragma once

#include "Base/Progress.h"
#include "Transformer.h"

#include <string>

namespace atlas
{

/// What a model computes with, as hashes (HashValues) in hexadecimal. Equal ones mean the same
/// model, whatever its path. Files that hold the same numbers in other types or under other names
/// differ. The precision of products (Transformer::GetProducts) is not among them.
struct ModelFingerprint
{
  std::string configuration; ///< all settings that are not as by default
  std::string weights;       ///< names, types, shapes and bytes of all tensors that are used

  bool operator==(const ModelFingerprint& other) const
  {
    return this->configuration == other.configuration && this->weights == other.weights;
  }
};

/// Reads all weights once, in parallel, as fast as memory or, the first time, the disk gives them:
/// several gigabytes a second. Throws FileError if a file was truncated or changed since it was
/// opened.
ModelFingerprint FingerprintOf(
  const Transformer& model, int threads = 0, const Progress& progress = {});

std::string FingerprintOf(const TransformerConfig& config);

}
