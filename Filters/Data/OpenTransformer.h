#pragma once

#include "AttentionAtlasDataModule.h"
#include "FileStamp.h"
#include "ImageProcessor.h"
#include "TokenFinder.h"
#include "TokenizerFile.h"
#include "Transformer.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// A model without a folder, with what its folder would hold.
struct ModelInMemory
{
  atlas::TransformerConfig config;
  std::shared_ptr<const atlas::Tensors> weights;
  std::shared_ptr<const std::map<std::string, std::string>>
    files; ///< texts by name, such as tokenizer.json
};

/// Whether a path is that of a model in memory, which begins with "training:".
ATTENTIONATLASDATA_EXPORT bool IsInMemory(const std::filesystem::path& path);

/// A transformer with mapped weights, its tokenizer and its image processor. The latter two are
/// read when they are first requested; a folder checkpoint-N that lacks them has those of the
/// folder above. All functions are thread-safe.
class ATTENTIONATLASDATA_EXPORT OpenTransformer
{
public:
  /// Returns the model with this path and architecture, which are as for atlas::Transformer::Read.
  /// `processes`: its weights are processed as TransformerLens does (ProcessedWeights.h), which
  /// takes memory for all of them.
  /// As long as someone holds the model, every call returns the same object and opens no files. If
  /// one of its files was changed, added or removed, the model is read again; earlier holders keep
  /// the old one. Throws as atlas::Transformer::Read and atlas::ProcessedTensors do, and
  /// std::runtime_error if there is not enough memory. Throws atlas::ModelError for a model in
  /// memory that nobody holds any more.
  static std::shared_ptr<const OpenTransformer> Open(
    const std::filesystem::path& path, const std::string& architecture, bool processes = false);

  /// Holds a model in memory, and returns it. As long as someone holds it, Open finds it by `path`,
  /// which must be IsInMemory and differ between models, in this session and in any other. Throws
  /// ModelError as atlas::Transformer does.
  static std::shared_ptr<const OpenTransformer> Keep(
    const std::filesystem::path& path, const ModelInMemory& model);

  const atlas::Transformer& GetModel() const
  {
    return this->Processed ? *this->Processed : this->Model;
  }

  /// Throws as atlas::ReadTokenizer does. After an error the next call reads again.
  const atlas::Tokenizer& GetTokenizer() const;

  /// Finds tokens by text or id; by id alone if the tokenizer is missing or invalid. Made when it
  /// is first requested.
  const atlas::TokenFinder& GetTokenFinder() const;

  /// Throws as atlas::ReadImageProcessor does. After an error the next call reads again.
  const atlas::ImageProcessor& GetImageProcessor() const;

private:
  OpenTransformer(
    const std::filesystem::path& path, const std::string& architecture, bool processes);
  OpenTransformer(const std::filesystem::path& path, const ModelInMemory& model, bool processes);

  std::optional<ModelInMemory> Memory; ///< what the model is made of, unless it is in files
  std::filesystem::path Folder;        ///< or the path in memory
  std::filesystem::path Gguf;          ///< the file that holds all of the model, if it is one
  std::vector<atlas::FileStamp>
    Stamps; ///< of all files except the weights; taken before they are read
  atlas::Transformer Model;
  atlas::Tensors ProcessedWeights;             ///< empty unless they are
  std::optional<atlas::Transformer> Processed; ///< reads them
  mutable std::mutex Mutex;                    ///< guards the members below until they are set
  mutable std::optional<atlas::Tokenizer> Tokenizer;
  mutable std::optional<atlas::TokenFinder> Finder; ///< uses the tokenizer
  mutable std::optional<atlas::ImageProcessor> Processor;

  void Process(const std::filesystem::path& path);
  atlas::Tokenizer ReadTokenizer() const;
  atlas::ImageProcessor ReadImageProcessor() const;
  bool IsCurrent() const;
};

}
