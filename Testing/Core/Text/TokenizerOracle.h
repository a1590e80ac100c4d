#pragma once

#include "Base/Error.h"
#include "Base/Utf8Text.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "Text/Internal/WordModel.h"
#include "Text/TokenizerFile.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

using Ids = std::vector<std::int64_t>;

/// A JSON file of Testing/Oracle/models/tokenizers.
inline nlohmann::json TokenizerOracle(const std::string& name)
{
  const std::filesystem::path path = ModelsOracle("tokenizers/" + name);
  return ParseJson(ReadFile(path), path.string());
}

/// The 60 texts of a tokenizer there, and what the original libraries made of them.
inline nlohmann::json CasesOf(const std::string& name)
{
  nlohmann::json cases = TokenizerOracle(name + "/cases.json")["cases"];
  EXPECT_EQ(cases.size(), 60U);
  return cases;
}

/// The tokens of a byte-level vocabulary, whose ids are the bytes, and then more.
inline std::vector<std::string> ByteTokens(const std::vector<std::string>& more)
{
  std::vector<std::string> tokens(256);
  for (std::size_t byte = 0; byte < tokens.size(); ++byte)
  {
    Append(tokens[byte], ByteLevelCharacters()[byte]);
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

/// A vocabulary of tokens in the order of their ids.
inline nlohmann::json VocabularyOf(const std::vector<std::string>& tokens)
{
  nlohmann::json vocabulary;
  for (const std::string& token : tokens)
  {
    vocabulary[token] = vocabulary.size();
  }
  return vocabulary;
}

/// A folder with the files of a tokenizer.
struct TokenizerFolder : TemporaryDirectory
{
  using Files = std::initializer_list<std::pair<const char*, std::string>>;

  TokenizerFolder(const Files& files = {}) { this->Write(files); }

  void Write(const Files& files) const
  {
    for (const auto& [name, bytes] : files)
    {
      WriteBytes(*this / name, bytes);
    }
  }

  Tokenizer Read() const { return ReadTokenizer(this->Path()); }

  std::string Refusal() const
  {
    return MessageOf<FormatError>([this] { this->Read(); });
  }
};

}
