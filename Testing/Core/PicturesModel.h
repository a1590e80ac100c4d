#pragma once

#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "WordLevelText.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas::test
{

/// The tokens around pictures of the models of pictures among words in Testing/Oracle, by id. All
/// others are words: w0, w1, ...
inline std::map<std::int64_t, std::string> PictureTokens(const std::string& architecture)
{
  if (architecture == "llava" || architecture == "llava-siglip")
  {
    return { { 60, "<image>" } };
  }
  if (architecture == "internvl")
  {
    return { { 60, "<IMG_CONTEXT>" }, { 61, "<img>" }, { 62, "</img>" } };
  }
  if (architecture == "smolvlm")
  {
    std::map<std::int64_t, std::string> tokens = { { 39, "\n" }, { 60, "<image>" },
      { 61, "<fake_token_around_image>" }, { 62, "<global-img>" } };
    for (std::int64_t i = 0; i < 8; ++i)
    {
      tokens[40 + i] =
        "<row_" + std::to_string(i / 4 + 1) + "_col_" + std::to_string(i % 4 + 1) + ">";
    }
    return tokens;
  }
  return { { 59, "<|video_pad|>" }, { 60, "<|image_pad|>" }, { 61, "<|vision_start|>" },
    { 62, "<|vision_end|>" } };
}

/// A model of Testing/Oracle with a tokenizer of words.
class PicturesModel
{
public:
  explicit PicturesModel(const std::string& architecture)
    : Tokens(PictureTokens(architecture))
    , Source(ModelsOracle("transformers/" + architecture))
  {
    for (const char* name : { "config.json", "preprocessor_config.json", "model.safetensors" })
    {
      std::filesystem::copy(this->Source / name, this->Folder / name);
    }
    this->WriteTokenizer();
  }

  std::string Path() const { return this->Folder.Path(); }
  const std::filesystem::path& Oracle() const { return this->Source; }

  std::string PictureFile(int number) const
  {
    return this->Source / ("picture-" + std::to_string(number) + ".png");
  }

  /// Writes the tokenizer without a token.
  void WriteTokenizer(const std::string& without = {}) const
  {
    std::vector<std::string> words;
    nlohmann::json added = nlohmann::json::array();
    for (std::int64_t id = 0; id < 64; ++id)
    {
      words.push_back("w" + std::to_string(id));
      const auto token = this->Tokens.find(id);
      if (token != this->Tokens.end() && token->second != without)
      {
        added.push_back({ { "id", id }, { "content", token->second }, { "special", true },
          { "single_word", false }, { "lstrip", false }, { "rstrip", false },
          { "normalized", false } });
      }
    }
    auto json = nlohmann::json::parse(WordLevelText(words));
    for (const auto& token : added)
    {
      json["model"]["vocab"].erase("w" + std::to_string(token["id"].get<std::int64_t>()));
      json["model"]["vocab"][token["content"].get<std::string>()] = token["id"];
    }
    json["added_tokens"] = added;
    WriteBytes(this->Folder / "tokenizer.json", json.dump());
  }

private:
  std::map<std::int64_t, std::string> Tokens;
  std::filesystem::path Source;
  TemporaryDirectory Folder;
};

}
