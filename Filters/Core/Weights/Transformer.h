#pragma once

#include "TransformerConfig.h"
#include "TransformerWeights.h"

#include <filesystem>
#include <string>

namespace atlas
{

/// The files of a model's folder that Transformer::Read looks for; shards are beside them.
inline constexpr const char* ConfigFile = "config.json";
inline constexpr const char* WeightsFile = "model.safetensors";
inline constexpr const char* ShardIndexFile = "model.safetensors.index.json";

/// The folder of a model that is given as to Transformer::Read. Its tokenizer is there too.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

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
