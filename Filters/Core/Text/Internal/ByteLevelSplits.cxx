#include "ByteLevelSplits.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Text/TokenTables.h"

#include <algorithm>

namespace atlas
{
namespace
{

using Expressions = std::vector<std::string>;

/// Parts of the expressions.
constexpr const char* Contractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr const char* Spaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* EachDigit = R"(\p{N})";
constexpr const char* ThreeDigits = R"(\p{N}{1,3})";

/// Llama 3's words: an English contraction; letters behind at most one other character; digits;
/// symbols behind at most one space, with the ends of lines behind them; white space.
std::string LettersOrDigits(const std::string& digits, const std::string& spaces = Spaces)
{
  return Contractions + (R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits) +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" + spaces;
}

/// GPT-4o's: letters of a word are upper case first, then lower case, then a contraction.
std::string CasedLetters(const std::string& digits, const std::string& contractions)
{
  constexpr const char* before = R"([^\r\n\p{L}\p{N}]?)";
  constexpr const char* upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  constexpr const char* lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::string first = std::string(before) + upper + "*" + lower + "+" + contractions;
  const std::string second = std::string(before) + upper + "+" + lower + "*" + contractions;
  return first + "|" + second + "|" + digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" + Spaces;
}

std::string GptFourO(const std::string& digits)
{
  return CasedLetters(digits, std::string(Contractions) + "?");
}

/// Qwen 3.5's: as Llama 3, but marks are letters.
constexpr const char* Qwen35 =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
  R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// DeepSeek V3's: symbols before letters begin a word.
std::string SymbolsBeforeLetters(const std::string& spaces)
{
  return R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
         R"( ?[\p{P}\p{S}]+)" +
         spaces;
}

constexpr const char* Ideographs = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";

/// The letters with two cases that DeepSeek's first models know.
constexpr const char* DeepSeekLetters =
  R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
  R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
  R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
  R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
  R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
  R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
  R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
  R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
  R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})"
  R"(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
  R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
  R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
  R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
  R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
  R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
  R"(\x{1e900}-\x{1e943}]+)";
constexpr const char* DeepSeekSymbols =
  R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
constexpr const char* DeepSeekIdeographs = R"([\x{800}-\x{9fa5}\x{ac00}-\x{d7ff}]+)";

/// BLOOM's words end before punctuation and parentheses.
constexpr const char* Bloom =
  R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";

/// Digits in threes, counted from the right.
constexpr const char* DigitsFromRight = R"(\d{1,3}(?=(?:\d{3})*(?!\d)))";
constexpr const char* NumbersFromRight = R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))";

/// Arcee's scripts without spaces between words.
constexpr const char* ScriptsWithoutSpaces =
  R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff})"
  R"(\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff})"
  R"(\x{1000}-\x{109f}\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";

/// Youtu's, by script.
constexpr const char* YoutuScripts =
  R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019})"
  R"(\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+|)"
  R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";

/// Kimi K2's: as GPT-4o, but Chinese characters are words apart from others.
constexpr const char* KimiK2 =
  R"(\p{sc:Han}+|)"
  R"([^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
  R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
  R"([^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
  R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
  R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* BailingMoe =
  R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
  R"(\s*[\r\n]|\s+(?!\S)|\s+)";

constexpr const char* SeedCoder =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)"
  R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* ExaoneMoe =
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)"
  R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";

/// Turkish words keep what follows an apostrophe.
constexpr const char* Ufakzeka =
  R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Jais 2: white space in powers of two.
constexpr const char* PowersOfSpaces =
  R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|)"
  R"(\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";

constexpr const char* Clip =
  R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+)";

/// Models that split alike.
struct Family
{
  std::vector<const char*> names;
  Expressions expressions;
  bool wholeWordsFirst = false;
  bool composes = false; ///< NFC
};

/// The expressions of a model's own tokenizer, where llama.cpp quotes them, else those of
/// llama.cpp.
std::vector<Family> MakeFamilies()
{
  const std::string llama3 = LettersOrDigits(ThreeDigits);
  const std::string qwen2 = LettersOrDigits(EachDigit);
  const std::string deepSeek3 = SymbolsBeforeLetters(std::string(R"([\r\n]*)") + Spaces);
  return {
    { { "a.x-4.0", "exaone4", "gigachat", "gpt-2", "granite-docling", "jais", "jina-de", "jina-es",
        "jina-v1-en", "jina-v2-code", "jina-v2-de", "jina-v2-es", "mellum", "modern-bert", "mpt",
        "olmo", "phi-2", "roberta-bpe", "trillion" },
      { ByteLevelExpression } },
    { { "codeshell", "command-r", "exaone", "mellum2", "minerva-7b", "refact", "smollm",
        "starcoder" },
      { EachDigit, ByteLevelExpression } },
    { { "falcon-h1", "falcon3", "jina-v5-nano", "lfm2", "llama-bpe", "llama-v3", "llama3",
        "midm-2.0", "pixtral" },
      { llama3 }, true },
    { { "chatglm-bpe", "dbrx", "glm4", "smaug-bpe" }, { llama3 } },
    { { "jais-2" }, { LettersOrDigits(ThreeDigits, PowersOfSpaces) } },
    { { "minicpm5" }, { ThreeDigits, LettersOrDigits(R"(\p{N}+)") }, true },
    { { "deepseek-r1-qwen", "f2llmv2", "qwen2" }, { qwen2 }, false, true },
    { { "grok-2", "hunyuan", "kormo", "megrez", "solar-open", "stablelm2" }, { qwen2 } },
    { { "laguna" }, { R"([^\n]+|\n+)", qwen2 } },
    { { "qwen35" }, { Qwen35 }, false, true },
    { { "ufakzeka" }, { Ufakzeka } },
    { { "seed-coder" }, { SeedCoder } },
    { { "bailingmoe", "bailingmoe2", "llada-moe" }, { BailingMoe } },
    { { "exaone-moe" }, { ExaoneMoe } },
    { { "gpt-4o", "kanana2", "llama4", "minimax-m2", "talkie" }, { GptFourO(ThreeDigits) } },
    { { "granite-embed-multi-97m" }, { GptFourO(ThreeDigits) }, true },
    { { "cohere2moe", "tiny_aya" }, { R"(\d{1,3}(?=(?:\d{3})*\b))", GptFourO(ThreeDigits) } },
    { { "youtu" }, { YoutuScripts, GptFourO(EachDigit) }, true },
    { { "tekken" }, { CasedLetters(EachDigit, "") }, true },
    { { "kimi-k2" }, { KimiK2 } },
    { { "deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm" },
      { ThreeDigits, Ideographs, deepSeek3 } },
    { { "spark2_5" },
      { ThreeDigits, Ideographs, SymbolsBeforeLetters(R"(|[\r\n]|\s+(?!\S)|\s+)"), EachDigit } },
    { { "afmoe" }, { NumbersFromRight, ScriptsWithoutSpaces, deepSeek3 } },
    { { "deepseek-llm" }, { R"([\r\n])", DeepSeekLetters, DeepSeekSymbols, R"(\s+$)",
                            DeepSeekIdeographs, R"(\p{N}+)" } },
    { { "deepseek-coder" },
      { R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", DeepSeekIdeographs, EachDigit } },
    { { "falcon" }, { R"([\p{P}$+<=>^~|`]+)", ByteLevelExpression, "[0-9][0-9][0-9]" } },
    { { "default" },
      { R"([\p{P}$+<=>^~|]+)", ByteLevelExpression, R"(\p{N}+)", "[0-9][0-9][0-9]" } },
    { { "bloom", "gpt3-finnish", "poro-chat" }, { Bloom } },
    { { "viking" }, { Bloom, EachDigit } },
    { { "superbpe" }, { R"(\p{N}+)", DigitsFromRight } },
    { { "chameleon" }, { "<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", EachDigit,
                         R"([\p{P}!-/:-@\[-`{-~])", ByteLevelExpression } },
  };
}

const Family* FindFamily(const std::string& name)
{
  static const std::vector<Family> families = MakeFamilies();
  const auto found = std::find_if(families.begin(), families.end(), [&](const Family& family)
    { return std::find(family.names.begin(), family.names.end(), name) != family.names.end(); });
  return found == families.end() ? nullptr : &*found;
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

}

ByteLevelSplit MakeByteLevelSplit(const std::string& name, const std::string& source)
{
  if (name == "clip")
  {
    return ClipSplit(source);
  }
  const Family* family = FindFamily(name);
  if (family == nullptr)
  {
    throw FormatError(source, ": unknown split of words '", name.substr(0, 80),
      "', expected one of ",
      Joined(BytePairSplits(), [](const std::string& known) { return known; }),
      "; token ids can be given instead of text.");
  }
  ByteLevelSplit split;
  for (const std::string& expression : family->expressions)
  {
    split.splits.push_back({ RegularExpression(expression, source) });
  }
  split.wholeWordsFirst = family->wholeWordsFirst;
  if (family->composes)
  {
    split.normalizations.emplace_back(NormalizationForm::NFC);
  }
  return split;
}

std::vector<std::string> BytePairSplits()
{
  std::vector<std::string> names = { "clip" };
  for (const Family& family : MakeFamilies())
  {
    names.insert(names.end(), family.names.begin(), family.names.end());
  }
  std::sort(names.begin(), names.end());
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
