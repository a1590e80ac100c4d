#include "TensorFile.h"

#include "Base/TextEnds.h"
#include "Files/Safetensors.h"
#include "Files/TorchFile.h"
#include "Weights/GgufModel.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::array<std::string_view, 4> TorchExtensions = { ".bin", ".pt", ".pth", ".ckpt" };

/// The entries of a checkpoint that hold the weights.
constexpr std::array<std::string_view, 4> Wrappers = { "state_dict", "model_state_dict", "model",
  "module" };

/// Whether an entry of this name beside tensors may be a part of the model.
bool CanBeModule(std::string_view wrapper)
{
  return wrapper == "model" || wrapper == "module";
}

constexpr std::array<std::string_view, 3> Prefixes = { "module.", "_orig_mod.", "model." };

/// Names of Hugging Face's models that begin with one of Prefixes, which is then part of them.
constexpr std::array<std::string_view, 5> OwnPrefixes = { "model.layers.", "model.embed_tokens.",
  "model.norm.", "model.decoder.", "model.encoder." };

using WeightNames = std::vector<std::pair<std::string, std::string>>; ///< without and with wrappers

bool IsDigit(char c)
{
  return c >= '0' && c <= '9';
}

/// Whether a tensor is named like a module's, or a matrix. Steps, losses and the state of random
/// numbers are not; an optimizer's state is numbered.
bool IsWeight(const std::string& name, const ArrayEntry& tensor)
{
  const std::size_t begin = tensor.holder.empty() ? 0 : tensor.holder.size() + 1;
  const bool isNumbered = !tensor.holder.empty() && IsDigit(tensor.holder.back());
  return !isNumbered && (name.find('.', begin) != std::string::npos || tensor.shape.size() >= 2);
}

/// The prefix, with its dot, of the tensors in the entry with the weights of the dictionary that
/// has this prefix; empty if it holds tensors itself, or there is none.
std::string WrapperIn(const ArrayEntries& tensors, const std::string& prefix)
{
  const auto isIn = [](std::string_view holder, std::string_view dictionary)
  { return BeginsWith(std::string(holder) + ".", dictionary); };
  std::set<std::string> holders; // of weights, in this dictionary
  for (const auto& [name, tensor] : tensors)
  {
    if (IsWeight(name, tensor) && isIn(tensor.holder, prefix))
    {
      holders.insert(tensor.holder.substr(std::min(prefix.size(), tensor.holder.size())));
    }
  }
  const bool hasWeights = holders.erase("") != 0;
  for (const std::string_view wrapper : Wrappers)
  {
    const std::string inner = prefix + std::string(wrapper) + ".";
    if (!(hasWeights && CanBeModule(wrapper)) &&
        std::any_of(tensors.begin(), tensors.end(),
          [&](const auto& entry) { return isIn(entry.second.holder, inner); }))
    {
      return inner;
    }
  }
  return hasWeights || holders.size() != 1 ? std::string() : prefix + *holders.begin() + ".";
}

bool DropPrefix(WeightNames& names)
{
  const auto begins = [](std::string_view prefix)
  { return [prefix](const auto& name) { return BeginsWith(name.first, prefix); }; };
  const bool isOwn = std::any_of(OwnPrefixes.begin(), OwnPrefixes.end(),
    [&](std::string_view own) { return std::any_of(names.begin(), names.end(), begins(own)); });
  const auto* prefix = std::find_if(Prefixes.begin(), Prefixes.end(),
    [&](std::string_view one) { return std::all_of(names.begin(), names.end(), begins(one)); });
  if (isOwn || prefix == Prefixes.end() || names.empty())
  {
    return false;
  }
  for (auto& [name, whole] : names)
  {
    name.erase(0, prefix->size());
  }
  return true;
}

/// The names of the weights among those of a PyTorch file, and what they are called there.
WeightNames FindWeightNames(const ArrayEntries& tensors)
{
  std::string prefix;
  for (std::string wrapper = WrapperIn(tensors, ""); !wrapper.empty();
    wrapper = WrapperIn(tensors, prefix))
  {
    prefix = wrapper;
  }
  WeightNames names;
  for (const auto& [name, tensor] : tensors)
  {
    if (BeginsWith(name, prefix))
    {
      names.emplace_back(name.substr(prefix.size()), name);
    }
  }
  while (DropPrefix(names))
  {
  }
  return names;
}

TensorFile ReadTorch(const std::filesystem::path& path, bool isShard)
{
  const TorchFile file(path);
  TensorFile read = { { file.GetFile() }, {}, {}, {} };
  WeightNames names;
  if (isShard)
  {
    for (const auto& [name, tensor] : file.GetTensors())
    {
      names.emplace_back(name, name);
    }
  }
  else
  {
    names = FindWeightNames(file.GetTensors());
  }
  for (const auto& [name, whole] : names)
  {
    LoadedArray array = file.GetTensors().find(whole)->second.load();
    read.tensors.emplace(name, std::move(array.view));
    read.owners.push_back(std::move(array.owner));
  }
  return read;
}

/// The tensors of a file under all of their names.
TensorViews WithAliases(const SafetensorsFile& file)
{
  TensorViews tensors = file.GetTensors();
  for (const auto& [alias, name] : file.GetMetadata())
  {
    const auto found = file.GetTensors().find(name);
    if (found != file.GetTensors().end())
    {
      tensors.emplace(alias, found->second);
    }
  }
  return tensors;
}

}

bool HasTorchExtension(const std::filesystem::path& path)
{
  return std::find(TorchExtensions.begin(), TorchExtensions.end(), path.extension().string()) !=
         TorchExtensions.end();
}

TensorFile ReadTensorFile(const std::filesystem::path& path, bool isShard)
{
  const MappedFile first(path);
  const bool isSafetensors = LooksLikeSafetensors(first.Data(), first.Size());
  if (!isSafetensors && (HasTorchExtension(path) || LooksLikeTorch(first.Data(), first.Size())))
  {
    return ReadTorch(path, isShard);
  }
  if (!isSafetensors && IsGgufName(path))
  {
    const GgufFile file(path);
    return { file.GetFiles(), GgufTensors(file), {}, file.GetOrigins() };
  }
  const SafetensorsFile file(path);
  return { { file.GetFile() }, WithAliases(file), {}, {} };
}

}
