#pragma once

#include "TransformerConfig.h"
#include "TransformerWeights.h"

#include <filesystem>
#include <string>

namespace atlas
{

/// The files in a model's folder that Transformer::Read looks for; shards are next to them. A
/// folder without a config.json may hold a single GGUF file instead, which contains all of a model.
inline constexpr const char* ConfigFile = "config.json";
inline constexpr const char* WeightsFile = "model.safetensors";
inline constexpr const char* ShardIndexFile = "model.safetensors.index.json";
inline constexpr const char* TorchWeightsFile = "pytorch_model.bin";
inline constexpr const char* TorchShardIndexFile = "pytorch_model.bin.index.json";

/// The file with the weights of the model in a folder: the first that is there of
/// model.safetensors, its index of shards, pytorch_model.bin, its index of shards; otherwise the
/// only file ending in .pt, .pth or .ckpt. Throws FileError if there is none, or more than one of
/// the latter.
std::filesystem::path FindWeights(const std::filesystem::path& folder);

/// The folder of a model whose path is given as for Transformer::Read. It also contains the
/// tokenizer.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

/// The file that stands for the model in a folder: its config.json, or the adapter_config.json of
/// an adapter whose base is elsewhere; the folder itself if it has neither.
std::filesystem::path ModelFile(const std::filesystem::path& folder);

/// What a transformer is called whose folder this is, or a file in it: the folder, with the one
/// above of a checkpoint-N; of a snapshot of Hugging Face's cache its repository without the owner;
/// a GGUF file without the ending.
std::string ModelName(const std::filesystem::path& path);

/// A transformer whose weights stay in place: in mapped files or in memory that is owned elsewhere.
class Transformer
{
public:
  /// `adapter`: the folder of that which was applied to the weights. Throws ModelError as
  /// BindTransformerWeights does.
  Transformer(TransformerConfig config, WeightFiles files, std::filesystem::path adapter = {});

  /// Reads a Hugging Face or TransformerLens model from its folder, its config.json, or its weights
  /// file next to a config.json. For a folder or config.json, the weights are those of FindWeights.
  /// Without a config.json, that of a params.json or of a checkpoint itself is used
  /// (ReadCheckpointConfig). A GGUF file (FindGguf) contains its own configuration. An adapter in
  /// the folder is applied (FindAdapter), unless the path is the weights file of its base. Throws
  /// FileError, FormatError or ModelError. For `architecture` see ParseTransformerConfig.
  static Transformer Read(const std::filesystem::path& path, const std::string& architecture = {});

  /// What recordings of it call it, see ModelName; by default empty, unknown.
  void SetName(const std::string& name) { this->Name = name; }
  const std::string& GetName() const { return this->Name; }

  const TransformerConfig& GetConfig() const { return this->Config; }
  const WeightFiles& GetFiles() const { return this->Files; }
  const TransformerWeights& GetWeights() const { return this->Weights; }

  /// The folder of the adapter that was applied to the weights; empty if none was.
  const std::filesystem::path& GetAdapter() const { return this->Adapter; }

  /// Sets the precision of products with weights; by default it is Single. Results are then those
  /// of a model whose weights and activations are rounded where they are multiplied; attention,
  /// norms and what is added to the residual stream are in single precision. BF16 is faster on
  /// processors with AVX512-BF16 alone (HasBfloat16Products); on others, results are the same but
  /// for the rounding of sums.
  void SetProducts(ProductPrecision products);
  ProductPrecision GetProducts() const { return this->Products; }

  /// Whether the model has an unembedding.
  bool HasLogits() const { return this->Weights.unembedding.Exists(); }

private:
  std::string Name;
  TransformerConfig Config;
  WeightFiles Files;
  TransformerWeights Weights;
  std::filesystem::path Adapter;
  ProductPrecision Products = ProductPrecision::Single;
};

}
