#pragma once

#include "TransformerConfig.h"
#include "TransformerWeights.h"

#include <filesystem>
#include <string>

namespace atlas
{

/// A transformer whose weights lie where they were: in mapped files or in memory of others.
class Transformer
{
public:
  /// Throws ModelError as BindTransformerWeights does.
  Transformer(TransformerConfig config, WeightFiles files);

  /// Reads a model of Hugging Face or TransformerLens from its folder, its config.json, or its
  /// weights file with a config.json beside it. Given a folder or config.json, the weights are
  /// model.safetensors, or the shards of model.safetensors.index.json. Throws FileError,
  /// FormatError or ModelError. `architecture` as ParseTransformerConfig has it.
  static Transformer Read(const std::filesystem::path& path, const std::string& architecture = {});

  const TransformerConfig& GetConfig() const { return this->Config; }
  const WeightFiles& GetFiles() const { return this->Files; }
  const TransformerWeights& GetWeights() const { return this->Weights; }

  /// Whether there is an unembedding.
  bool HasLogits() const { return this->Weights.unembedding.Exists(); }

private:
  TransformerConfig Config;
  WeightFiles Files;
  TransformerWeights Weights;
};

}
