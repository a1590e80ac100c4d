#include "ByteLevelSplits.h"

#include "Error.h"

#include <map>

namespace atlas
{
namespace
{

using Expressions = std::vector<const char*>;

constexpr const char* EachDigit = R"(\p{N})";

constexpr const char* Llama3 =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
  R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* Qwen2 =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
  R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* Gpt4o =
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
  R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* Tekken =
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
  R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* Clip =
  R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+)";

struct Family
{
  Expressions expressions;
  bool wholeWordsFirst = false;
  bool composes = false; ///< NFC
};

const std::map<std::string, Family, std::less<>>& Families()
{
  static const Family gpt2 = { { ByteLevelExpression } };
  static const Family digits = { { EachDigit, ByteLevelExpression } };
  static const Family llama3 = { { Llama3 }, true };
  static const Family qwen2 = { { Qwen2 }, false, true };
  static const std::map<std::string, Family, std::less<>> families = {
    { "codeshell", digits },
    { "command-r", digits },
    { "dbrx", { { Llama3 } } },
    { "deepseek-r1-qwen", qwen2 },
    { "falcon3", llama3 },
    { "gpt-2", gpt2 },
    { "gpt-4o", { { Gpt4o } } },
    { "jais", gpt2 },
    { "llama-bpe", llama3 },
    { "llama-v3", llama3 },
    { "llama3", llama3 },
    { "mpt", gpt2 },
    { "olmo", gpt2 },
    { "phi-2", gpt2 },
    { "qwen2", qwen2 },
    { "refact", digits },
    { "roberta-bpe", gpt2 },
    { "smaug-bpe", { { Llama3 } } },
    { "smollm", digits },
    { "stablelm2", { { Qwen2 } } },
    { "starcoder", digits },
    { "tekken", { { Tekken }, true } },
  };
  return families;
}

/// CLIP's words (Radford et al. 2021): lower case, without the spaces between them.
ByteLevelSplit ClipSplit(const std::string& source)
{
  ByteLevelSplit split;
  split.normalizations = { NormalizationForm::NFC,
    ReplaceText{ RegularExpression(R"(\s+)", source), "", " " }, LowerCase{} };
  split.splits = { { RegularExpression(Clip, source), SplitBehavior::Removed, true } };
  split.wordEnd = "</w>";
  return split;
}

[[noreturn]] void FailName(const std::string& name, const std::string& source)
{
  std::string names;
  for (const std::string& known : ByteLevelSplitNames())
  {
    names += (names.empty() ? "" : ", ") + known;
  }
  throw FormatError(source + ": unknown split of words '" + name.substr(0, 80) +
                    "', expected one of " + names + "; token ids can be given instead of text.");
}

}

ByteLevelSplit MakeByteLevelSplit(const std::string& name, const std::string& source)
{
  if (name == "clip")
  {
    return ClipSplit(source);
  }
  const auto found = Families().find(name);
  if (found == Families().end())
  {
    FailName(name, source);
  }
  ByteLevelSplit split;
  for (const char* expression : found->second.expressions)
  {
    split.splits.push_back({ RegularExpression(expression, source) });
  }
  split.wholeWordsFirst = found->second.wholeWordsFirst;
  if (found->second.composes)
  {
    split.normalizations.emplace_back(NormalizationForm::NFC);
  }
  return split;
}

std::vector<std::string> ByteLevelSplitNames()
{
  std::vector<std::string> names = { "clip" };
  for (const auto& family : Families())
  {
    names.push_back(family.first);
  }
  return names;
}

std::shared_ptr<TokenizerParts> MakeByteLevelParts(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Merge>& merges, const ByteLevelSplit& split, const std::string& source)
{
  auto parts = std::make_shared<TokenizerParts>(source);
  parts->model = std::make_shared<BytePairModel>(
    std::move(vocabulary), merges, split.wholeWordsFirst, source, split.wordEnd);
  parts->normalizations = split.normalizations;
  if (split.addPrefixSpace)
  {
    parts->preTokenizations.emplace_back(PrefixSpace{});
  }
  for (const SplitByExpression& words : split.splits)
  {
    parts->preTokenizations.emplace_back(words);
  }
  return parts;
}

}
