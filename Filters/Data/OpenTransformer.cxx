#include "OpenTransformer.h"

#include "Error.h"
#include "Execution.h"
#include "ProcessedWeights.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace AttentionAtlas
{
namespace
{

/// The stamps of the files of a model that are read, or would be read if they existed.
std::vector<atlas::FileStamp> StampsOf(
  const std::filesystem::path& path, const std::filesystem::path& folder)
{
  std::vector<const char*> names = { atlas::ConfigFile, atlas::WeightsFile, atlas::ShardIndexFile,
    atlas::ImageProcessorFile };
  names.insert(names.end(), atlas::TokenizerFiles.begin(), atlas::TokenizerFiles.end());
  std::vector<atlas::FileStamp> stamps;
  if (path != folder)
  {
    stamps.emplace_back(path);
  }
  for (const char* name : names)
  {
    stamps.emplace_back(folder / name);
  }
  return stamps;
}

bool AreCurrent(const std::vector<atlas::FileStamp>& stamps)
{
  return std::all_of(
    stamps.begin(), stamps.end(), [](const atlas::FileStamp& stamp) { return stamp.IsCurrent(); });
}

}

OpenTransformer::OpenTransformer(
  const std::filesystem::path& path, const std::string& architecture, bool processes)
  : Folder(atlas::ModelFolder(path))
  , Stamps(StampsOf(path, this->Folder))
  , Model(atlas::Transformer::Read(path, architecture))
{
  if (!processes)
  {
    return;
  }
  double bytes = 0;
  for (const auto& [name, view] : this->Model.GetFiles().GetTensors())
  {
    bytes += static_cast<double>(view.Count()) * sizeof(float);
  }
  // The unembedding is processed in double precision.
  RequireMemory(5 * bytes, "the processed weights of " + path.string(), "set Processing to None.");
  this->ProcessedWeights = atlas::ProcessedTensors(this->Model);
  atlas::TensorViews views;
  for (const auto& [name, tensor] : this->ProcessedWeights)
  {
    views.emplace(name, tensor.View());
  }
  this->Processed.emplace(
    this->Model.GetConfig(), atlas::WeightFiles(views, path.string() + ", processed"));
}

std::shared_ptr<const OpenTransformer> OpenTransformer::Open(
  const std::filesystem::path& path, const std::string& architecture, bool processes)
{
  // Shared by all filters of the process. Models are opened one at a time.
  static std::mutex mutex;
  static std::map<std::tuple<std::filesystem::path, std::string, bool>,
    std::weak_ptr<const OpenTransformer>>
    all;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto known = all.begin(); known != all.end();)
  {
    known = known->second.expired() ? all.erase(known) : std::next(known);
  }
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  std::weak_ptr<const OpenTransformer>& place = all[{ absolute, architecture, processes }];
  std::shared_ptr<const OpenTransformer> open = place.lock();
  if (open == nullptr || !open->IsCurrent())
  {
    open.reset(new OpenTransformer(absolute, architecture, processes));
    place = open;
  }
  return open;
}

const atlas::Tokenizer& OpenTransformer::GetTokenizer() const
{
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (!this->Tokenizer)
  {
    this->Tokenizer = atlas::ReadTokenizer(this->Folder);
  }
  return *this->Tokenizer;
}

const atlas::TokenFinder& OpenTransformer::GetTokenFinder() const
{
  const atlas::Tokenizer* tokenizer = nullptr;
  try
  {
    tokenizer = &this->GetTokenizer();
  }
  catch (const atlas::Error&)
  {
    tokenizer = nullptr; // tokens are then known by their ids
  }
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (!this->Finder)
  {
    this->Finder.emplace(tokenizer, this->Model.GetConfig().vocabulary);
  }
  return *this->Finder;
}

const atlas::ImageProcessor& OpenTransformer::GetImageProcessor() const
{
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (!this->Processor)
  {
    this->Processor = atlas::ReadImageProcessor(this->Folder, this->Model.GetConfig());
  }
  return *this->Processor;
}

bool OpenTransformer::IsCurrent() const
{
  return AreCurrent(this->Stamps) && AreCurrent(this->Model.GetFiles().Stamps());
}

}
