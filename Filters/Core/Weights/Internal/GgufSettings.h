#pragma once

// Internal to Core: the settings of a model in a GGUF file.

#include "ArchitectureRows.h"
#include "Base/Error.h"
#include "Files/GgufFile.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas
{

/// Reads the settings of a model, whose keys begin with its architecture.
class GgufSettings
{
public:
  explicit GgufSettings(const GgufFile& file);

  const RowGguf& GetFamily() const { return *this->Family; }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw ModelError(this->Data.GetSource(), ": ", message...);
  }

  template<class... Parts>
  void FailIf(bool condition, const Parts&... message) const
  {
    if (condition)
    {
      this->Fail(message...);
    }
  }
  bool Has(const char* key) const { return this->Data.Has(this->Key(key)); }
  bool HasTensor(const std::string& name) const { return this->Find(name) != nullptr; }

  /// A tensor of the file, or nullptr.
  const TensorView* Find(const std::string& name) const
  {
    const auto found = this->File.GetTensors().find(name);
    return found == this->File.GetTensors().end() ? nullptr : &found->second;
  }
  const GgufMetadata& GetMetadata() const { return this->Data; }
  bool HasLatent() const { return this->GetFamily().name == "deepseek2"; }
  bool HasExperts() const { return this->Integer("expert_count", 0) != 0; }

  /// What Hugging Face calls the architecture. llama.cpp calls Mistral and Mixtral llama.
  const std::string& HuggingFaceName() const { return this->GetFamily().row; }

  /// Whether a metadata is there and other than 0.
  bool IsOn(const std::string& key) const
  {
    return this->Has(key.c_str()) && this->Number(key.c_str()) != 0;
  }

  /// A metadata as a setting of config.json. Null if it is not there.
  nlohmann::json Value(const char* key) const;

  std::int64_t Size(const char* key) const
  {
    const std::int64_t size = this->Data.Integer(this->Key(key));
    this->FailIf(size <= 0, "the metadata '", this->Key(key), "': expected a positive size, found ",
      size, ".");
    return size;
  }

  /// Sizes that layers may have each: a list, or the one of all.
  std::vector<std::int64_t> Sizes(const char* key) const;

  bool IsList(const char* key) const
  {
    const auto found = this->Data.GetValues().find(this->Key(key));
    return found != this->Data.GetValues().end() && found->second.isArray;
  }

  std::int64_t Size(const char* key, std::int64_t otherwise) const
  {
    return this->Has(key) ? this->Size(key) : otherwise;
  }

  std::int64_t Integer(const char* key, std::int64_t otherwise) const
  {
    return this->Data.Integer(this->Key(key), otherwise);
  }
  double Number(const char* key) const { return this->Data.Number(this->Key(key)); }

  double Number(const char* key, double otherwise) const
  {
    return this->Has(key) ? this->Number(key) : otherwise;
  }

  bool Flag(const char* key, bool otherwise) const
  {
    return this->Data.Flag(this->Key(key), otherwise);
  }

  std::string Text(const char* key, const std::string& otherwise) const
  {
    return this->Data.Text(this->Key(key), otherwise);
  }

  /// Counts settings as read that llama.cpp does not use.
  void Ignore(std::initializer_list<const char*> keys) const
  {
    for (const char* key : keys)
    {
      this->Key(key);
    }
  }

  /// The settings of the architecture that were not read, and those of the tokenizer that are not
  /// known; an array is described.
  nlohmann::json FindUnread() const;

  /// The dimension of a head: as it is stated, or what the model's dimension leaves. With latent
  /// attention, the rotated part of it.
  std::int64_t HeadDimension() const;

private:
  const GgufFile& File;
  const GgufMetadata& Data;
  std::string Architecture;
  const RowGguf* Family = nullptr;
  mutable std::set<std::string, std::less<>> Read; ///< keys
  std::string Key(const char* key) const
  {
    return *this->Read.insert(this->Architecture + "." + key).first;
  }
  nlohmann::json ToJson(const std::string& key, const GgufValue& value) const;
};

}
