#pragma once

#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "Text/WordLevelText.h"

#include <algorithm>
#include <cstddef>
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

  /// Makes the words w10, w11, ... these.
  void NameWords(const std::vector<std::string>& words)
  {
    constexpr std::int64_t first = 10;
    for (const std::string& word : words)
    {
      this->Words.emplace(first + static_cast<std::int64_t>(this->Words.size()), word);
    }
    this->WriteTokenizer();
  }

  /// The ids of a text.
  std::vector<std::int64_t> IdsOf(const std::string& text) const
  {
    std::vector<std::int64_t> ids;
    std::size_t begin = 0;
    while ((begin = text.find_first_not_of(' ', begin)) != std::string::npos)
    {
      const auto token = std::find_if(this->Tokens.begin(), this->Tokens.end(),
        [&](const auto& one) { return text.compare(begin, one.second.size(), one.second) == 0; });
      if (token != this->Tokens.end())
      {
        ids.push_back(token->first);
        begin += token->second.size();
        continue;
      }
      if (text[begin] == '\n')
      {
        ++begin;
        continue;
      }
      const std::size_t end = std::min(text.find_first_of(" \n<", begin + 1), text.size());
      const std::string word = text.substr(begin, end - begin);
      const auto known = std::find_if(this->Words.begin(), this->Words.end(),
        [&](const auto& one) { return one.second == word; });
      if (known != this->Words.end())
      {
        ids.push_back(known->first);
      }
      else if (word.front() == 'w')
      {
        ids.push_back(std::stoll(word.substr(1)));
      }
      begin = end;
    }
    return ids;
  }

  /// Writes the tokenizer without a token.
  void WriteTokenizer(const std::string& without = {}) const
  {
    std::vector<std::string> words;
    nlohmann::json added = nlohmann::json::array();
    for (std::int64_t id = 0; id < 64; ++id)
    {
      const auto word = this->Words.find(id);
      words.push_back(word != this->Words.end() ? word->second : "w" + std::to_string(id));
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
  std::map<std::int64_t, std::string> Words;
  std::filesystem::path Source;
  TemporaryDirectory Folder;
};

}
