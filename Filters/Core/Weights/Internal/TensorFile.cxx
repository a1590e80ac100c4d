#include "TensorFile.h"

#include "GgufModel.h"
#include "Safetensors.h"
#include "TorchFile.h"

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

bool BeginsWith(std::string_view text, std::string_view begin)
{
  return text.substr(0, begin.size()) == begin;
}

/// The names of the weights among those of a PyTorch file, and what they are called there.
class StateDict
{
public:
  using Names = std::vector<std::pair<std::string, std::string>>; ///< without and with wrappers

  explicit StateDict(const TorchFile::Entries& tensors)
    : Tensors(tensors)
  {
  }

  Names Find()
  {
    std::string prefix;
    std::string wrapper = this->WrapperIn(prefix);
    while (!wrapper.empty())
    {
      prefix = std::move(wrapper);
      wrapper = this->WrapperIn(prefix);
    }
    Names names;
    for (const auto& [name, tensor] : this->Tensors)
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

private:
  const TorchFile::Entries& Tensors;

  /// The prefix, with its dot, of the tensors in the entry with the weights of the dictionary that
  /// has this prefix; empty if it holds tensors itself, or there is none.
  std::string WrapperIn(const std::string& prefix) const
  {
    const auto isIn = [](std::string_view holder, std::string_view dictionary)
    { return BeginsWith(std::string(holder) + ".", dictionary); };
    std::set<std::string> holders; // of weights, in this dictionary
    for (const auto& [name, tensor] : this->Tensors)
    {
      if (IsWeight(name, tensor) && isIn(tensor.holder, prefix))
      {
        holders.insert(tensor.holder.substr(std::min(prefix.size(), tensor.holder.size())));
      }
    }
    const bool hasWeights = holders.erase("") != 0;
    for (const std::string_view wrapper : Wrappers)
    {
      if (hasWeights && CanBeModule(wrapper))
      {
        continue;
      }
      const std::string inner = prefix + std::string(wrapper) + ".";
      const bool has = std::any_of(this->Tensors.begin(), this->Tensors.end(),
        [&](const auto& entry) { return isIn(entry.second.holder, inner); });
      if (has)
      {
        return inner;
      }
    }
    return hasWeights || holders.size() != 1 ? std::string() : prefix + *holders.begin() + ".";
  }

  /// Whether a tensor is named like a module's, or a matrix. Steps, losses and the state of random
  /// numbers are not; an optimizer's state is numbered.
  static bool IsWeight(const std::string& name, const TorchTensor& tensor)
  {
    const std::size_t begin = tensor.holder.empty() ? 0 : tensor.holder.size() + 1;
    const bool isNumbered = !tensor.holder.empty() && IsDigit(tensor.holder.back());
    return !isNumbered && (name.find('.', begin) != std::string::npos || tensor.shape.size() >= 2);
  }

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  static bool DropPrefix(Names& names)
  {
    for (const std::string_view prefix : Prefixes)
    {
      const bool isCommon = std::all_of(names.begin(), names.end(),
        [&](const auto& name) { return BeginsWith(name.first, prefix); });
      const bool isOwn = std::any_of(names.begin(), names.end(),
        [&](const auto& name)
        {
          return std::any_of(OwnPrefixes.begin(), OwnPrefixes.end(),
            [&](std::string_view own) { return BeginsWith(name.first, own); });
        });
      if (isCommon && !isOwn && !names.empty())
      {
        for (auto& [name, whole] : names)
        {
          name.erase(0, prefix.size());
        }
        return true;
      }
    }
    return false;
  }
};

TensorFile ReadTorch(const std::filesystem::path& path, bool isShard)
{
  const TorchFile file(path);
  TensorFile read = { { file.GetFile() }, {}, {}, {} };
  StateDict::Names names;
  if (isShard)
  {
    for (const auto& [name, tensor] : file.GetTensors())
    {
      names.emplace_back(name, name);
    }
  }
  else
  {
    names = StateDict(file.GetTensors()).Find();
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
