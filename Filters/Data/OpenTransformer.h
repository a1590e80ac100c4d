#pragma once

#include "AttentionAtlasDataModule.h"
#include "FileStamp.h"
#include "ImageProcessor.h"
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

/// A transformer whose weights are mapped, with its tokenizer and its image processor, each of
/// which is read when it is first asked for. All functions may be called by several threads at a
/// time.
class ATTENTIONATLASDATA_EXPORT OpenTransformer
{
public:
  /// The model of this path and architecture, as atlas::Transformer::Read takes them. While
  /// somebody holds it, every call returns the same one and opens nothing, unless one of its files
  /// has changed, appeared or gone: then it is read anew, and earlier holders keep what they have.
  /// Throws as atlas::Transformer::Read.
  static std::shared_ptr<const OpenTransformer> Open(
    const std::filesystem::path& path, const std::string& architecture);

  const atlas::Transformer& GetModel() const { return this->Model; }

  /// Throws as atlas::ReadTokenizer, and then reads again when it is next called.
  const atlas::Tokenizer& GetTokenizer() const;

  /// Throws as atlas::ReadImageProcessor, likewise.
  const atlas::ImageProcessor& GetImageProcessor() const;

private:
  OpenTransformer(const std::filesystem::path& path, const std::string& architecture);

  std::filesystem::path Folder;
  std::vector<atlas::FileStamp>
    Stamps; ///< of all files but the weights; taken before they are read
  atlas::Transformer Model;
  mutable std::mutex Mutex; ///< guards the two below until they are there
  mutable std::optional<atlas::Tokenizer> Tokenizer;
  mutable std::optional<atlas::ImageProcessor> Processor;

  bool IsCurrent() const;
};

}
