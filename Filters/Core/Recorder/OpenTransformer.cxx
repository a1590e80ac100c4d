#include "OpenTransformer.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/SystemLimits.h"
#include "EncodedPrompt.h"
#include "Text/GgufTokenizer.h"
#include "Weights/Adapter.h"
#include "Weights/CheckpointConfig.h"
#include "Weights/GgufModel.h"
#include "Weights/ProcessedWeights.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <tuple>

namespace atlas
{
namespace
{

/// The folder with the files of the model whose path is given: that of the base of an adapter.
std::filesystem::path BaseFolder(const std::filesystem::path& path)
{
  const std::optional<AdapterPlace> adapter = FindAdapter(path);
  return adapter ? adapter->base : ModelFolder(path);
}

/// The stamps of the files of a model that are read, or would be read if they existed.
std::vector<FileStamp> StampsOf(const std::filesystem::path& path,
  const std::filesystem::path& folder, const std::filesystem::path& base)
{
  std::vector<const char*> names = { ConfigFile, GenerationConfigFile, MetaConfigFile, WeightsFile,
    ShardIndexFile, TorchWeightsFile, TorchShardIndexFile, ImageProcessorFile, ProcessorFile,
    VideoProcessorFile, AdapterConfigFile };
  names.insert(names.end(), AdapterWeightsFiles.begin(), AdapterWeightsFiles.end());
  names.insert(names.end(), TokenizerFiles.begin(), TokenizerFiles.end());
  std::vector<FileStamp> stamps;
  if (path != folder)
  {
    stamps.emplace_back(path);
  }
  for (const char* name : names)
  {
    stamps.emplace_back(folder / name);
    if (CheckpointStep(folder))
    {
      stamps.emplace_back(folder.parent_path() / name);
    }
    if (base != folder)
    {
      stamps.emplace_back(base / name);
    }
  }
  return stamps;
}

template<class Names>
bool HasAny(const std::filesystem::path& folder, const Names& names)
{
  std::error_code ignored;
  return std::any_of(names.begin(), names.end(),
    [&](const char* name) { return std::filesystem::exists(folder / name, ignored); });
}

bool AreCurrent(const std::vector<FileStamp>& stamps)
{
  return std::all_of(
    stamps.begin(), stamps.end(), [](const FileStamp& stamp) { return stamp.IsCurrent(); });
}

constexpr std::string_view MemoryPrefix = "training:";

/// The models that are open, shared by all filters of the process, by path, architecture, whether
/// they are processed, and the precision of their products.
class OpenModels
{
public:
  using Key = std::tuple<std::filesystem::path, std::string, bool, ProductPrecision>;

  /// A model that is open, was, or is being opened by the thread that has the lock.
  struct Entry
  {
    std::mutex mutex;
    std::weak_ptr<const OpenTransformer> model;

    std::shared_ptr<const OpenTransformer> Find()
    {
      const std::lock_guard<std::mutex> lock(this->mutex);
      return this->model.lock();
    }
  };

  static OpenModels& Get()
  {
    static OpenModels models;
    return models;
  }

  std::shared_ptr<Entry> At(const Key& key)
  {
    const std::lock_guard<std::mutex> lock(this->Mutex);
    this->ForgetClosed();
    std::shared_ptr<Entry>& entry = this->All[key];
    if (entry == nullptr)
    {
      entry = std::make_shared<Entry>();
    }
    return entry;
  }

private:
  std::mutex Mutex;
  std::map<Key, std::shared_ptr<Entry>> All;

  void ForgetClosed()
  {
    for (auto known = this->All.begin(); known != this->All.end();)
    {
      const bool isUsed = known->second.use_count() > 1;
      known =
        !isUsed && known->second->Find() == nullptr ? this->All.erase(known) : std::next(known);
    }
  }
};

/// The key of a model that Keep holds.
OpenModels::Key MemoryKey(const std::filesystem::path& path)
{
  return { path, "", false, ProductPrecision::Single };
}

}

bool IsInMemory(const std::filesystem::path& path)
{
  return path.native().compare(0, MemoryPrefix.size(), MemoryPrefix) == 0;
}

OpenTransformer::OpenTransformer(const std::filesystem::path& path, const std::string& architecture)
  : Folder(ModelFolder(path))
  , Base(BaseFolder(path))
  , Gguf(FindGguf(path))
  , Stamps(StampsOf(path, this->Folder, this->Base))
  , Model(Transformer::Read(path, architecture))
{
  this->Model.SetName(ModelName(path));
  const std::filesystem::path data = FindTrainingData(this->Model.GetFiles().FileOf(""));
  for (const char* name : TokenizerFiles)
  {
    if (!data.empty())
    {
      this->Stamps.emplace_back(data / name);
    }
  }
}

OpenTransformer::OpenTransformer(const std::filesystem::path& path, const ModelInMemory& model)
  : Memory(model)
  , Folder(path)
  , Base(path)
  , Model(model.config, WeightFiles(ViewsOf(*model.weights), path.string()))
{
}

/// Sets the precision of the model that is given.
void OpenTransformer::SetProducts(ProductPrecision products)
{
  (this->Processed ? *this->Processed : this->Model).SetProducts(products);
}

/// Makes the processed weights.
void OpenTransformer::Process(const std::filesystem::path& path)
{
  double bytes = 0;
  for (const auto& [name, view] : this->Model.GetFiles().GetTensors())
  {
    bytes += static_cast<double>(view.Count()) * sizeof(float);
  }
  // The unembedding is processed in double precision.
  RequireMemory(5 * bytes, "the processed weights of " + path.string(), "set Processing to None.");
  this->ProcessedWeights = ProcessedTensors(this->Model);
  this->Processed.emplace(this->Model.GetConfig(),
    WeightFiles(ViewsOf(this->ProcessedWeights), path.string() + ", processed"),
    this->Model.GetAdapter());
  this->Processed->SetName(this->Model.GetName());
}

std::shared_ptr<const OpenTransformer> OpenTransformer::Open(const std::filesystem::path& path,
  const std::string& architecture, bool processes, ProductPrecision products)
{
  OpenModels& models = OpenModels::Get();
  const bool isInMemory = IsInMemory(path);
  const std::filesystem::path place = isInMemory ? path : std::filesystem::absolute(path);
  const std::shared_ptr<const OpenTransformer> kept =
    isInMemory ? models.At(MemoryKey(place))->Find() : nullptr;
  const auto entry = models.At({ place, isInMemory ? "" : architecture, processes, products });
  const std::lock_guard<std::mutex> lock(entry->mutex);
  std::shared_ptr<const OpenTransformer> known = entry->model.lock();
  if (known != nullptr && known->IsCurrent())
  {
    return known;
  }
  std::shared_ptr<OpenTransformer> open;
  if (!isInMemory)
  {
    open.reset(new OpenTransformer(place, architecture));
  }
  else
  {
    const std::optional<ModelInMemory> model = kept != nullptr ? kept->Memory : std::nullopt;
    if (!model)
    {
      throw ModelError(path.string(),
        ": expected a model that was trained in this session, found none; its training is gone or "
        "was done with other settings.");
    }
    open.reset(new OpenTransformer(place, *model));
  }
  if (processes)
  {
    open->Process(place);
  }
  open->SetProducts(products);
  entry->model = open;
  return open;
}

std::shared_ptr<const OpenTransformer> OpenTransformer::Keep(
  const std::filesystem::path& path, const ModelInMemory& model)
{
  const auto entry = OpenModels::Get().At(MemoryKey(path));
  const std::lock_guard<std::mutex> lock(entry->mutex);
  std::shared_ptr<const OpenTransformer> kept = entry->model.lock();
  // A model that was known without its state of training is opened again with it.
  const ModelInMemory* memory = kept != nullptr ? kept->GetMemory() : nullptr;
  if (memory == nullptr || (model.state != nullptr && memory->state == nullptr))
  {
    kept.reset(new OpenTransformer(path, model));
    entry->model = kept;
  }
  return kept;
}

/// The folder of the first of the files that is there: a checkpoint of a training may leave to the
/// folder above it what all checkpoints share, and an adapter to its base what it does not change.
template<class Names>
std::filesystem::path OpenTransformer::FolderOf(
  const Names& names, const std::filesystem::path& weights) const
{
  if (HasAny(this->Folder, names))
  {
    return this->Folder;
  }
  std::filesystem::path above = this->Folder.parent_path();
  if (CheckpointStep(this->Folder) && HasAny(above, names))
  {
    return above;
  }
  const std::filesystem::path data = weights.empty() ? "" : FindTrainingData(weights);
  return data.empty() ? this->Base : data;
}

std::filesystem::path OpenTransformer::TokenizerFolder() const
{
  return this->FolderOf(TokenizerFiles, this->Model.GetFiles().FileOf(""));
}

/// Parses tokenizer.json, of the folder or in memory, or the tokenizer in a GGUF file.
Tokenizer OpenTransformer::MakeTokenizer() const
{
  if (!this->Gguf.empty())
  {
    return ReadGgufTokenizer(this->Gguf);
  }
  if (!this->Memory)
  {
    return ReadTokenizer(this->TokenizerFolder());
  }
  const char* name = TokenizerFiles.front();
  const auto found = this->Memory->files->find(name);
  ThrowIf<FileError>(found == this->Memory->files->end(), this->Folder.string(),
    ": expected a model with a tokenizer, found one without; token ids can be given instead of "
    "text.");
  return ParseTokenizer(found->second, this->Folder.string() + ", " + name);
}

/// Parses preprocessor_config.json, of the folder or in memory.
ImageProcessor OpenTransformer::MakeImageProcessor() const
{
  const TransformerConfig& config = this->Model.GetConfig();
  if (!this->Memory)
  {
    constexpr std::array<const char*, 1> names = { ImageProcessorFile };
    return ReadImageProcessor(this->FolderOf(names), config);
  }
  const char* name = ImageProcessorFile;
  const auto found = this->Memory->files->find(name);
  return found == this->Memory->files->end()
           ? DefaultImageProcessor(config)
           : ParseImageProcessor(found->second, this->Folder.string() + ", " + name, config);
}

/// What `make` returned at the first call.
template<class Value, class Make>
const Value& OpenTransformer::Once(std::optional<Value>& known, const Make& make) const
{
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (!known)
  {
    known = make();
  }
  return *known;
}

const Tokenizer& OpenTransformer::GetTokenizer() const
{
  return this->Once(this->Texts, [this] { return this->MakeTokenizer(); });
}

const Tokenizer& OpenTransformer::GetTargetTokenizer() const
{
  if (this->Memory || !this->Gguf.empty() || this->Model.GetConfig().encoder == nullptr ||
      !HasTargetTokenizer(this->TokenizerFolder()))
  {
    return this->GetTokenizer();
  }
  return this->Once(this->Targets, [this] { return ReadTargetTokenizer(this->TokenizerFolder()); });
}

const TokenFinder& OpenTransformer::GetTokenFinder() const
{
  const Tokenizer* tokenizer = FindTokenizer(*this); // without one tokens are known by their ids
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (!this->Finder)
  {
    this->Finder.emplace(tokenizer, this->Model.GetConfig().vocabulary);
  }
  return *this->Finder;
}

const ImageProcessor& OpenTransformer::GetImageProcessor() const
{
  return this->Once(this->Processor, [this] { return this->MakeImageProcessor(); });
}

const VisionProcessor& OpenTransformer::GetVisionProcessor() const
{
  constexpr std::array<const char*, 2> names = { ImageProcessorFile, ProcessorFile };
  return this->Once(this->PicturesAmongWords,
    [&] { return ReadVisionProcessor(this->FolderOf(names), this->Model.GetConfig()); });
}

const VisionProcessor& OpenTransformer::GetVideoProcessor() const
{
  constexpr std::array<const char*, 3> names = { VideoProcessorFile, ImageProcessorFile,
    ProcessorFile };
  return this->Once(this->VideosAmongWords,
    [&] { return ReadVideoProcessor(this->FolderOf(names), this->Model.GetConfig()); });
}

SoundProcessor OpenTransformer::GetSoundProcessor() const
{
  const TransformerConfig& config = this->Model.GetConfig();
  constexpr std::array<const char*, 2> names = { ImageProcessorFile, ProcessorFile };
  return ReadSoundProcessor(this->FolderOf(names), config.encoder ? *config.encoder : config);
}

std::vector<std::string> OpenTransformer::FileWarnings() const
{
  std::vector<std::string> warnings;
  if (this->Memory || !this->Gguf.empty())
  {
    return warnings;
  }
  const auto find = [](const auto& read)
  {
    try
    {
      read();
    }
    catch (const Error&) // NOLINT(bugprone-empty-catch): said where the file is used
    {
    }
  };
  const auto add = [&](const std::vector<std::string>& unknown)
  {
    const std::string names =
      Joined(unknown, [](const std::string& name) { return "'" + name + "'"; });
    if (!names.empty())
    {
      warnings.push_back(this->Folder.string() + ": these settings of " + ImageProcessorFile +
                         " are not known, and are not used: " + names + ".");
    }
  };
  const TransformerConfig& config = this->Model.GetConfig();
  const TransformerConfig& encoder = config.encoder ? *config.encoder : config;
  find([&] { warnings = TokenizerWarnings(this->TokenizerFolder()); });
  if (config.vision != nullptr)
  {
    find([&] { add(this->GetVisionProcessor().image.unknownSettings); });
  }
  else if (config.input == InputKind::Images)
  {
    find([&] { add(this->GetImageProcessor().unknownSettings); });
  }
  else if (encoder.input == InputKind::Sound)
  {
    find([&] { add(this->GetSoundProcessor().unknownSettings); });
  }
  return warnings;
}

bool OpenTransformer::IsCurrent() const
{
  return AreCurrent(this->Stamps) && AreCurrent(this->Model.GetFiles().Stamps());
}

std::vector<std::string> UnusedWarnings(const std::filesystem::path& path, const Transformer& model)
{
  const auto quoted = [](const std::string& name) { return "'" + name + "'"; };
  std::vector<std::string> settings = model.GetConfig().unknownSettings;
  const auto encoder = std::find(settings.begin(), settings.end(), "vision_config");
  constexpr std::size_t most = 20; // further layers with experts have hundreds
  std::vector<std::string> names = model.GetWeights().unused;
  const std::size_t more = names.size() - std::min(names.size(), most);
  names.resize(names.size() - more);
  std::string unused = Joined(names, quoted);
  if (more > 0)
  {
    unused += " and " + std::to_string(more) + " more";
  }
  std::vector<std::string> warnings;
  if (encoder != settings.end())
  {
    warnings.push_back(path.string() + ": is run as a model of texts, without the encoder of " +
                       "pictures that '" + *encoder + "' describes.");
    settings.erase(encoder);
  }
  const auto code = std::find(settings.begin(), settings.end(), "auto_map");
  if (code != settings.end())
  {
    warnings.push_back(path.string() + ": its own code, which '" + *code +
                       "' names, is not run: it is run as the " + model.GetConfig().architecture +
                       " of transformers.");
    settings.erase(code);
  }
  const std::string unknown = Joined(settings, quoted);
  if (!unknown.empty())
  {
    warnings.push_back(
      path.string() + ": these settings are not known, and are not used: " + unknown + ".");
  }
  if (!unused.empty())
  {
    warnings.push_back(path.string() + ": no part of " + model.GetConfig().architecture +
                       " has the names of these tensors, which are not used: " + unused + ".");
  }
  return warnings;
}

}
