#pragma once

#include "AttentionAtlasDataModule.h"
#include "FileStamp.h"
#include "ImageProcessor.h"
#include "TokenFinder.h"
#include "TokenizerFile.h"
#include "Transformer.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// A transformer with mapped weights, its tokenizer and its image processor. The latter two are
/// read when they are first requested. All functions are thread-safe.
class ATTENTIONATLASDATA_EXPORT OpenTransformer
{
public:
  /// Returns the model with this path and architecture, which are as for atlas::Transformer::Read.
  /// `processes`: its weights are processed as TransformerLens does (ProcessedWeights.h), which
  /// takes memory for all of them.
  /// As long as someone holds the model, every call returns the same object and opens no files. If
  /// one of its files was changed, added or removed, the model is read again; earlier holders keep
  /// the old one. Throws as atlas::Transformer::Read and atlas::ProcessedTensors do, and
  /// std::runtime_error if there is not enough memory.
  static std::shared_ptr<const OpenTransformer> Open(
    const std::filesystem::path& path, const std::string& architecture, bool processes = false);

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

  std::filesystem::path Folder;
  std::vector<atlas::FileStamp>
    Stamps; ///< of all files except the weights; taken before they are read
  atlas::Transformer Model;
  atlas::Tensors ProcessedWeights;             ///< empty unless they are
  std::optional<atlas::Transformer> Processed; ///< reads them
  mutable std::mutex Mutex;                    ///< guards the members below until they are set
  mutable std::optional<atlas::Tokenizer> Tokenizer;
  mutable std::optional<atlas::TokenFinder> Finder; ///< uses the tokenizer
  mutable std::optional<atlas::ImageProcessor> Processor;

  bool IsCurrent() const;
};

}
