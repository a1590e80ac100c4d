#pragma once

#include "Files/FileStamp.h"
#include "Preprocessing/SoundProcessor.h"
#include "Preprocessing/VisionProcessor.h"
#include "Text/TokenFinder.h"
#include "Text/TokenizerFile.h"
#include "Weights/ImageProcessor.h"
#include "Weights/Transformer.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace atlas
{

/// A model without a folder, with what its folder would hold.
struct ModelInMemory
{
  TransformerConfig config;
  std::shared_ptr<const Tensors> weights;
  std::shared_ptr<const std::map<std::string, std::string>>
    files;                              ///< texts by name, such as tokenizer.json
  std::shared_ptr<const Tensors> state; ///< TransformerTrainer::State, with which its training can
                                        ///< be continued; null: none
};

/// Whether a path is that of a model in memory, which begins with "training:".
bool IsInMemory(const std::filesystem::path& path);

/// What of a model's files is not used, a sentence for each kind: an encoder of pictures that is
/// not there, settings that are not known, and tensors of no part. `path`: named in it.
std::vector<std::string> UnusedWarnings(
  const std::filesystem::path& path, const Transformer& model);

/// A transformer with mapped weights, its tokenizer and its image processor. The latter two are
/// read when they are first requested; a folder checkpoint-N that lacks them has those of the
/// folder above, and an adapter those of its base. All functions are thread-safe.
class OpenTransformer
{
public:
  /// Returns the model with this path and architecture, which are as for Transformer::Read.
  /// `processes`: its weights are processed as TransformerLens does (ProcessedWeights.h), which
  /// takes memory for all of them. `products`: the precision of products with weights.
  /// As long as someone holds the model, every call returns the same object and opens no files. If
  /// one of its files was changed, added or removed, the model is read again; earlier holders keep
  /// the old one. While a model is read, others can be opened. Throws as Transformer::Read and
  /// ProcessedTensors do, and std::runtime_error if there is not enough memory. Throws ModelError
  /// for a model in memory that nobody holds any more.
  static std::shared_ptr<const OpenTransformer> Open(const std::filesystem::path& path,
    const std::string& architecture, bool processes = false,
    ProductPrecision products = ProductPrecision::Single);

  /// Holds a model in memory, and returns it. As long as someone holds it, Open finds it by `path`,
  /// which must be IsInMemory and differ between models, in this session and in any other. Later it
  /// finds the first that has a state, if any has. Throws ModelError as Transformer does.
  static std::shared_ptr<const OpenTransformer> Keep(
    const std::filesystem::path& path, const ModelInMemory& model);

  /// What the model is made of, if it is in memory; otherwise null.
  const ModelInMemory* GetMemory() const { return this->Memory ? &*this->Memory : nullptr; }

  const Transformer& GetModel() const { return this->Processed ? *this->Processed : this->Model; }

  /// Throws as ReadTokenizer does. After an error the next call reads again.
  const Tokenizer& GetTokenizer() const;

  /// The tokenizer of the decoder's text. Only Marian has one that differs from the encoder's.
  /// Throws as GetTokenizer.
  const Tokenizer& GetTargetTokenizer() const;

  /// Finds tokens by text or id; by id alone if the tokenizer is missing or invalid. Made when it
  /// is first requested.
  const TokenFinder& GetTokenFinder() const;

  /// Throws as ReadImageProcessor does. After an error the next call reads again.
  const ImageProcessor& GetImageProcessor() const;

  /// The same for the pictures of a model of pictures among words. Throws as ReadVisionProcessor.
  const VisionProcessor& GetVisionProcessor() const;

  /// The same for the frames of videos. Throws as ReadVideoProcessor.
  const VisionProcessor& GetVideoProcessor() const;

  /// How the encoder's sound becomes features. Throws as ReadSoundProcessor.
  SoundProcessor GetSoundProcessor() const;

  /// What the files of the tokenizer and of the processors say that is not used, or that releases
  /// of the original use differently, for the user: sentences that begin with the file. What is
  /// wrong with them is said where they are used.
  std::vector<std::string> FileWarnings() const;

private:
  OpenTransformer(const std::filesystem::path& path, const std::string& architecture);
  OpenTransformer(const std::filesystem::path& path, const ModelInMemory& model);

  std::optional<ModelInMemory> Memory; ///< what the model is made of, unless it is in files
  std::filesystem::path Folder;        ///< or the path in memory
  std::filesystem::path Base;          ///< of the model that an adapter changes; else the same
  std::filesystem::path Gguf;          ///< the file that holds all of the model, if it is one
  std::vector<FileStamp> Stamps; ///< of all files except the weights; taken before they are read
  Transformer Model;
  Tensors ProcessedWeights;             ///< empty unless they are
  std::optional<Transformer> Processed; ///< reads them
  mutable std::mutex Mutex;             ///< guards the members below until they are set
  mutable std::optional<Tokenizer> Texts;
  mutable std::optional<Tokenizer> Targets;  ///< if they are of files
  mutable std::optional<TokenFinder> Finder; ///< uses the tokenizer
  mutable std::optional<ImageProcessor> Processor;
  mutable std::optional<VisionProcessor> PicturesAmongWords;
  mutable std::optional<VisionProcessor> VideosAmongWords;

  void Process(const std::filesystem::path& path);
  void SetProducts(ProductPrecision products);
  template<class Names>
  std::filesystem::path FolderOf(
    const Names& names, const std::filesystem::path& weights = {}) const;
  std::filesystem::path TokenizerFolder() const;
  template<class Value, class Make>
  const Value& Once(std::optional<Value>& known, const Make& make) const;
  Tokenizer MakeTokenizer() const;
  ImageProcessor MakeImageProcessor() const;
  bool IsCurrent() const;
};

}
