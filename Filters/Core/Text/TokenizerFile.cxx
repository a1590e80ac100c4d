#include "TokenizerFile.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/MappedFile.h"
#include "Files/TorchFile.h"
#include "Internal/ByteLevelSplits.h"
#include "Internal/FolderSettings.h"
#include "Internal/MarianTokenizer.h"
#include "Internal/TableParts.h"
#include "Internal/TiktokenFile.h"
#include "Internal/TokenizerJson.h"
#include "Internal/TokenizerText.h"
#include "SentencePieceFile.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* LanguagesFile = "sentencepiece.bpe.model"; ///< also of XLM-R
constexpr std::array<const char*, 5> SentencePieceFiles = { "tokenizer.model", "spiece.model",
  LanguagesFile, "spm.model", "sentencepiece.model" };

/// Adds the special tokens of a list that are in the vocabulary.
void AddKnownTokens(TokenizerParts& parts, const std::vector<std::string>& tokens)
{
  for (const std::string& token : tokens)
  {
    if (const std::optional<std::int64_t> id = parts.IdOf(token))
    {
      parts.Add({ token, *id });
    }
  }
}

std::int64_t RequireToken(const TokenizerParts& parts, const std::string& token)
{
  const std::optional<std::int64_t> id = parts.IdOf(token);
  if (!id)
  {
    throw FormatError(parts.source, ": the vocabulary has no token '", token.substr(0, 80),
      "', which the model adds to texts.");
  }
  return *id;
}

/// The lines of merges.txt.
std::vector<Merge> ParseMergeLines(std::string_view text, const std::string& source)
{
  RequireUtf8(text, source);
  std::vector<Merge> merges;
  std::size_t number = 0;
  for (const std::string& line : SplitLines(text))
  {
    ++number;
    const bool isVersion = number == 1 && BeginsWith(line, "#version");
    if (!isVersion && !line.empty())
    {
      merges.push_back(ParseMerge(line, source + ": line " + std::to_string(number)));
    }
  }
  return merges;
}

/// Byte-level BPE of a vocabulary and its merges, with a named split of words.
std::shared_ptr<TokenizerParts> ParseByteLevelParts(std::string_view vocabulary,
  const std::string& vocabularySource, std::string_view merges, const std::string& mergesSource,
  const std::string& split, bool addPrefixSpace)
{
  const json value = ParseJson(vocabulary, vocabularySource);
  const auto tokens = ParseVocabulary(JsonNode(value, "the vocabulary", vocabularySource));
  ByteLevelSplit words = MakeByteLevelSplit(split, vocabularySource);
  words.addPrefixSpace = addPrefixSpace;
  const auto parts =
    MakeByteLevelParts(tokens, ParseMergeLines(merges, mergesSource), words, mergesSource);
  parts->source = vocabularySource;
  return parts;
}

Tokenizer ReadBytePairTokenizer(const std::filesystem::path& directory)
{
  const std::filesystem::path vocabularyPath = directory / "vocab.json";
  const std::filesystem::path mergesPath = directory / "merges.txt";
  ThrowIf<FileError>(!FileExists(mergesPath), vocabularyPath.string(),
    ": a vocabulary for byte pair encoding needs merges.txt beside it, found none.");
  static const std::map<std::string, const char*> splits = { { "", "gpt-2" }, { "GPT2", "gpt-2" },
    { "CodeGen", "gpt-2" }, { "Roberta", "gpt-2" }, { "Bart", "gpt-2" }, { "Deberta", "gpt-2" },
    { "Qwen2", "qwen2" }, { "CLIP", "clip" } };
  const FolderSettings settings(directory);
  const std::string kind = settings.Kind();
  const auto split = splits.find(kind);
  if (split == splits.end())
  {
    settings.FailKind("GPT2Tokenizer, CodeGenTokenizer, RobertaTokenizer, BartTokenizer, "
                      "DebertaTokenizer, Qwen2Tokenizer or CLIPTokenizer");
  }
  const auto parts =
    ParseByteLevelParts(ReadFile(vocabularyPath), vocabularyPath.string(), ReadFile(mergesPath),
      mergesPath.string(), split->second, settings.At("add_prefix_space").Bool(false));
  AddKnownTokens(*parts, { "<|endoftext|>" });
  if (kind == "Roberta" || kind == "Bart")
  {
    AddKnownTokens(*parts, { "<s>", "<pad>", "</s>", "<unk>" });
    if (const std::optional<std::int64_t> mask = parts->IdOf("<mask>"))
    {
      parts->Add({ "<mask>", *mask, false, true });
    }
    parts->Frame(RequireToken(*parts, "<s>"), RequireToken(*parts, "</s>"), false);
  }
  else if (kind == "Deberta")
  {
    AddKnownTokens(*parts, { "[CLS]", "[PAD]", "[SEP]", "[UNK]" });
    if (const std::optional<std::int64_t> mask = parts->IdOf("[MASK]"))
    {
      parts->Add({ "[MASK]", *mask, false, true });
    }
    parts->Frame(RequireToken(*parts, "[CLS]"), RequireToken(*parts, "[SEP]"), true);
  }
  else if (kind == "CLIP")
  {
    AddKnownTokens(*parts, { "<|startoftext|>" });
    parts->Enclose(
      { RequireToken(*parts, "<|startoftext|>") }, { RequireToken(*parts, "<|endoftext|>") });
  }
  AddTokens(*parts, settings);
  if (settings.At("add_bos_token").Bool(false)) // OPT
  {
    const std::string begin = settings.Special("bos_token", "<|endoftext|>");
    AddKnownTokens(*parts, { begin });
    parts->Enclose({ RequireToken(*parts, begin) }, {});
  }
  return Tokenizer(parts);
}

/// The table with ids that were fairseq's: other special tokens, then the pieces from `dropped` on.
SentencePieceTable FairseqTable(SentencePieceTable table, const std::vector<std::string>& special,
  std::size_t dropped, const std::string& source)
{
  ThrowIf<FormatError>(table.tokens.size() < dropped, source, ": expected ", dropped,
    " pieces or more, found ", table.tokens.size(), ".");
  const auto put = [dropped](auto& list, const auto& first)
  {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(dropped));
    list.insert(list.begin(), first.begin(), first.end());
  };
  std::vector<std::int32_t> types;
  types.reserve(special.size());
  for (const std::string& token : special)
  {
    types.push_back(
      static_cast<std::int32_t>(token == "<unk>" ? TokenType::Unknown : TokenType::Control));
  }
  put(table.tokens, special);
  put(table.scores, std::vector<float>(special.size(), 0));
  put(table.types, types);
  return table;
}

/// The languages of M2M-100 and of its successor for WMT 21, and those of mBART, in the order of
/// their ids.
constexpr const char* M2m100Languages =
  "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha "
  "he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my "
  "ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz "
  "vi wo xh yi yo zh zu";
constexpr const char* Wmt21Languages = "en ha is ja cs ru zh de";
constexpr const char* MBartLanguages =
  "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV "
  "my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN";

/// Adds a token for each language, and returns that of the language of texts, which `key` names.
std::string AddLanguages(SentencePieceTable& table, const FolderSettings& settings, const char* key,
  const char* otherwise, const char* languages, const std::string& mark)
{
  const JsonNode node = settings.At(key);
  const std::string chosen = node.String(otherwise);
  bool isThere = false;
  std::istringstream codes(languages);
  for (std::string code; codes >> code;)
  {
    isThere = isThere || code == chosen;
    std::string token = mark;
    token.append(code).append(mark);
    const std::size_t id = table.tokens.size() + table.addedTokens.size();
    table.addedTokens.emplace_back(std::move(token), static_cast<std::int64_t>(id));
  }
  node.FailExpectedIf(!isThere, "a language of the model, one of ", languages);
  return mark + chosen + mark;
}

/// <extra_id_0> to <extra_id_99> of T5, the last of them first.
void AddExtraIds(SentencePieceTable& table, const FolderSettings& settings)
{
  const JsonNode count = settings.At("extra_ids");
  const std::int64_t extras = count.Integer(100);
  constexpr std::int64_t most = 100'000;
  count.FailExpectedIf(extras < 0 || extras > most, "an integer from 0 to 100000");
  for (std::int64_t i = extras; i-- > 0;)
  {
    table.addedTokens.emplace_back("<extra_id_" + std::to_string(i) + ">",
      static_cast<std::int64_t>(table.tokens.size()) + extras - 1 - i);
  }
}

/// The kind of tokenizer whose files have this name, if nothing else tells.
std::string UsualKind(const std::string& fileName, const SentencePieceTable& table)
{
  const auto has = [&](const char* token)
  { return std::find(table.tokens.begin(), table.tokens.end(), token) != table.tokens.end(); };
  return fileName == LanguagesFile           ? "XLMRoberta"
         : fileName == "tokenizer.model"     ? "Llama"
         : fileName == "spm.model"           ? "DebertaV2"
         : fileName == "sentencepiece.model" ? "RemBert"
         : has("[CLS]")                      ? "Albert"
                                             : "T5";
}

/// What a class of transformers adds to the pieces of a model.
struct PieceKind
{
  SentencePieceTable table;
  std::vector<std::string> begin; ///< tokens that are added before texts
  std::vector<std::string> end;
  bool hasTypes = false;   ///< the second of a pair: begin first end second end, with its own type
  bool doublesEnd = false; ///< of a pair: begin first end end second end
  bool joinsPairs = false; ///< of a pair: begin first second end
  std::vector<std::string> spelled; ///< special tokens that are matched where a text spells them;
                                    ///< those that are no pieces are added
};

/// The languages of a translation: before or behind texts, between the pieces and <mask>.
void AddTranslation(PieceKind& added, const std::string& kind, const FolderSettings& settings,
  const std::filesystem::path& directory, bool isTarget)
{
  const char* key = isTarget ? "tgt_lang" : "src_lang";
  added.spelled = { "<s>", "<pad>", "</s>", "<unk>" };
  added.joinsPairs = true;
  if (kind == "M2M100")
  {
    added.table = WithIdsOf(directory / MarianVocabularyFile, added.table);
    const JsonNode codes = settings.At("language_codes");
    const bool isNews = codes.String("m2m100") == "wmt21";
    codes.FailExpectedIf(!isNews && codes.String("m2m100") != "m2m100", "m2m100 or wmt21");
    added.begin = { AddLanguages(
      added.table, settings, key, "en", isNews ? Wmt21Languages : M2m100Languages, "__") };
    added.end = { "</s>" };
    return;
  }
  added.end = { "</s>", AddLanguages(added.table, settings, key, "en_XX", MBartLanguages, "") };
  added.spelled.emplace_back("<mask>");
}

/// What the class of a tokenizer adds. Its name is without "Tokenizer"; the file's name tells it
/// where nothing else does.
PieceKind ReadPieceKind(const FolderSettings& settings, const std::filesystem::path& directory,
  const std::string& fileName, bool isTarget)
{
  const std::string source = (directory / fileName).string();
  PieceKind added;
  SentencePieceTable& table = added.table;
  table = ParseSentencePieceModel(ReadFile(source), source);
  std::string kind = settings.Kind();
  kind = kind.empty() ? UsualKind(fileName, table) : kind;
  if (kind == "Llama" || kind == "CodeLlama" || kind == "Gemma")
  {
    if (settings.At("add_bos_token").Bool(true))
    {
      added.begin = { settings.Special("bos_token", kind == "Gemma" ? "<bos>" : "<s>") };
    }
    if (settings.At("add_eos_token").Bool(false))
    {
      added.end = { settings.Special("eos_token", kind == "Gemma" ? "<eos>" : "</s>") };
    }
  }
  else if (kind == "T5")
  {
    added.end = { "</s>" };
    AddExtraIds(table, settings);
  }
  else if (kind == "Albert" || kind == "DebertaV2" || kind == "RemBert")
  {
    added.begin = { settings.Special("cls_token", "[CLS]") };
    added.end = { settings.Special("sep_token", "[SEP]") };
    added.hasTypes = true;
    const bool isAlbert = kind == "Albert";
    added.spelled = { added.begin[0], added.end[0],
      settings.Special("unk_token", isAlbert ? "<unk>" : "[UNK]"),
      settings.Special("pad_token", isAlbert ? "<pad>" : "[PAD]"),
      settings.Special("mask_token", "[MASK]") };
    table.plainQuotes = isAlbert;
    table.stripAccents = isAlbert && !settings.At("keep_accents").Bool(false);
    table.lowerCase = kind != "RemBert" && settings.At("do_lower_case").Bool(isAlbert);
    const JsonNode splits = settings.At("split_by_punct");
    splits.FailExpectedIf(kind == "DebertaV2" && splits.Bool(false),
      "false, or a file tokenizer.json that says how words are split");
  }
  else if (kind == "XLMRoberta" || kind == "Camembert")
  {
    added.begin = { "<s>" };
    added.end = { "</s>" };
    added.doublesEnd = true;
    table = kind == "XLMRoberta"
              ? FairseqTable(std::move(table), { "<s>", "<pad>", "</s>", "<unk>" }, 3, source)
              : FairseqTable(std::move(table),
                  { "<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED" }, 1, source);
    if (kind == "Camembert")
    {
      added.spelled = { "<s>", "</s>", "<pad>", "<unk>" };
    }
    table.addedTokens.emplace_back("<mask>", table.tokens.size());
  }
  else if (kind == "MBart" || kind == "M2M100")
  {
    if (kind == "MBart")
    {
      table = FairseqTable(std::move(table), { "<s>", "<pad>", "</s>", "<unk>" }, 3, source);
    }
    AddTranslation(added, kind, settings, directory, isTarget);
  }
  else
  {
    settings.FailKind("LlamaTokenizer, GemmaTokenizer, T5Tokenizer, AlbertTokenizer, "
                      "DebertaV2Tokenizer, RemBertTokenizer, XLMRobertaTokenizer, "
                      "CamembertTokenizer, MBartTokenizer or M2M100Tokenizer");
  }
  return added;
}

Tokenizer ReadSentencePieceTokenizer(
  const std::filesystem::path& directory, const std::string& fileName, bool isTarget = false)
{
  const FolderSettings settings(directory);
  const PieceKind added = ReadPieceKind(settings, directory, fileName, isTarget);
  const auto parts = MakeSentencePieceParts(added.table, (directory / fileName).string());
  for (AddedToken token : settings.AddedTokens(false))
  {
    // Pieces themselves are not matched in texts, as in SentencePiece.
    const bool isNew = !parts->IdOf(token.content) && parts->TokenOf(token.id) == nullptr;
    if (isNew && !token.content.empty())
    {
      token.id = token.id < 0 ? parts->Size() : token.id;
      parts->Add(token);
    }
  }
  for (const std::string& token : added.spelled)
  {
    parts->Add({ token, parts->IdOf(token).value_or(parts->Size()) });
  }
  const auto idsOf = [&](const std::vector<std::string>& tokens)
  {
    std::vector<std::int64_t> ids;
    ids.reserve(tokens.size());
    for (const std::string& token : tokens)
    {
      ids.push_back(RequireToken(*parts, token));
    }
    return ids;
  };
  const std::vector<std::int64_t> begin = idsOf(added.begin);
  const std::vector<std::int64_t> end = idsOf(added.end);
  parts->Enclose(begin, end);
  if (added.hasTypes || added.doublesEnd)
  {
    parts->Frame(begin[0], end[0], added.hasTypes);
  }
  if (added.joinsPairs)
  {
    parts->pair = { { -1, begin, 0 }, { 0, {}, 0 }, { 1, {}, 0 }, { -1, end, 0 } };
  }
  return Tokenizer(parts);
}

/// `settings`: may name other special tokens than BERT's; null: does not. `isMpnet`: has those of
/// RoBERTa.
std::shared_ptr<TokenizerParts> ParseWordPieceText(std::string_view vocabulary,
  const std::string& source, const WordPieceOptions& options, const FolderSettings* settings,
  bool isMpnet = false)
{
  const auto name = [&](const char* key, const char* ofBert, const char* ofMpnet)
  {
    const char* otherwise = isMpnet ? ofMpnet : ofBert;
    return settings == nullptr ? std::string(otherwise) : settings->Special(key, otherwise);
  };
  RequireUtf8(vocabulary, source);
  const std::vector<std::string> lines = SplitLines(vocabulary);
  auto tokens = std::make_shared<Vocabulary>();
  for (std::size_t i = lines.size(); i-- > 0;)
  {
    if (!tokens->IdOf(lines[i]))
    {
      tokens->Add(lines[i], static_cast<std::int64_t>(i), source);
    }
  }
  const std::string unknown = name("unk_token", "[UNK]", "[UNK]");
  ThrowIf<FormatError>(
    !tokens->IdOf(unknown), source, ": the vocabulary has no unknown token '", unknown, "'.");
  const std::shared_ptr<TokenizerParts> parts = MakeWordPieceParts(tokens,
    { true, options.separateChinese, options.stripAccents.value_or(options.lowerCase),
      options.lowerCase },
    unknown, source);
  const std::string first = name("cls_token", "[CLS]", "<s>");
  const std::string last = name("sep_token", "[SEP]", "</s>");
  AddKnownTokens(*parts, { name("pad_token", "[PAD]", "<pad>"), unknown, first, last,
                           name("mask_token", "[MASK]", "<mask>") });
  const std::int64_t begin = RequireToken(*parts, first);
  parts->Frame(begin, RequireToken(*parts, last), !isMpnet);
  return parts;
}

/// The tokenizer of ESM-2, whose tokens are residues of proteins: each is matched wherever a text
/// spells it, and what is between them and white space is unknown.
Tokenizer ReadResidueTokenizer(
  const FolderSettings& settings, const std::string& text, const std::string& source)
{
  RequireUtf8(text, source);
  auto tokens = std::make_shared<Vocabulary>();
  std::int64_t id = 0;
  for (const std::string& line : SplitLines(text))
  {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string::npos)
    {
      tokens->Add(line.substr(begin, line.find_last_not_of(" \t") + 1 - begin), id, source);
    }
    ++id;
  }
  const std::string unknown = settings.Special("unk_token", "<unk>");
  ThrowIf<FormatError>(!tokens->IdOf(unknown), source, ": expected the unknown token '", unknown,
    "' in the vocabulary, found none.");
  const auto parts = std::make_shared<TokenizerParts>(source);
  parts->model = std::make_shared<WordLevelModel>(tokens, unknown, "", source);
  parts->preTokenizations.emplace_back(
    SplitByExpression{ RegularExpression(R"(\s+)", source), SplitBehavior::Removed, false });
  for (std::int64_t i = 0; i < id; ++i)
  {
    if (const std::string* token = tokens->TokenOf(i))
    {
      parts->Add({ *token, i });
    }
  }
  const std::int64_t end = RequireToken(*parts, settings.Special("eos_token", "<eos>"));
  parts->Frame(RequireToken(*parts, settings.Special("cls_token", "<cls>")), end, true);
  AddTokens(*parts, settings);
  return Tokenizer(parts);
}

Tokenizer ReadWordPieceTokenizer(const std::filesystem::path& directory)
{
  const FolderSettings settings(directory);
  const std::string kind = settings.Kind();
  const std::filesystem::path path = directory / "vocab.txt";
  const std::string text = ReadFile(path);
  const std::vector<std::string> first = SplitLines(text.substr(0, text.find('\n')));
  if (kind == "Esm" || (kind.empty() && !first.empty() && first.front() == "<cls>"))
  {
    return ReadResidueTokenizer(settings, text, path.string());
  }
  if (!kind.empty() && kind != "ConvBert" && !IsBert(kind))
  {
    settings.FailKind("BertTokenizer, DistilBertTokenizer, ElectraTokenizer, MPNetTokenizer, "
                      "EsmTokenizer or one alike");
  }
  WordPieceOptions options;
  options.lowerCase = settings.At("do_lower_case").Bool(true);
  options.stripAccents = settings.At("strip_accents").Bool(options.lowerCase);
  options.separateChinese = settings.At("tokenize_chinese_chars").Bool(true);
  const auto parts = ParseWordPieceText(text, path.string(), options, &settings, kind == "MPNet");
  AddTokens(*parts, settings);
  return Tokenizer(parts);
}

Tokenizer ReadTokenizerJson(const std::filesystem::path& path)
{
  const std::string source = path.string();
  json value = ParseJson(ReadFile(path), source);
  const FolderSettings settings(path.parent_path());
  settings.Override(value);
  const auto parts = ParseTokenizerJson(value, source);
  AddTokens(*parts, settings, true);
  return Tokenizer(parts);
}

}

Tokenizer ParseTokenizer(std::string_view text, const std::string& source)
{
  return Tokenizer(ParseTokenizerJson(ParseJson(text, source), source));
}

Tokenizer ParseBytePairTokenizer(std::string_view vocabulary, const std::string& vocabularySource,
  std::string_view merges, const std::string& mergesSource, bool addPrefixSpace)
{
  const auto parts = ParseByteLevelParts(
    vocabulary, vocabularySource, merges, mergesSource, "gpt-2", addPrefixSpace);
  AddKnownTokens(*parts, { "<|endoftext|>" });
  return Tokenizer(parts);
}

Tokenizer ParseWordPieceTokenizer(
  std::string_view vocabulary, const std::string& source, const WordPieceOptions& options)
{
  return Tokenizer(ParseWordPieceText(vocabulary, source, options, nullptr));
}

namespace
{

/// The meta.pkl of nanoGPT: {'stoi': {character: id}, ...}. Another character is an error.
Tokenizer ReadCharacterTokenizer(const std::filesystem::path& path)
{
  const std::string source = path.string();
  const json data = json::parse(ReadPickledData(path));
  const json ids = data.is_object() ? data.value("stoi", json()) : json();
  ThrowIf<FormatError>(!ids.is_object() || ids.empty(), source,
    ": expected a dictionary 'stoi' of characters and their ids.");
  TokenizerText text;
  text.preTokenizer = { { "type", "Split" }, { "pattern", { { "Regex", R"([\s\S])" } } },
    { "behavior", "Isolated" }, { "invert", false } };
  text.model = { { "type", "WordLevel" }, { "vocab", ids }, { "unk_token", "" } };
  text.decoder = { { "type", "Fuse" } };
  return ParseTokenizer(text.Text(), source);
}

/// Whether the files of M2M-100 or mBART name the language of the decoder's texts.
bool HasTargetLanguage(const std::filesystem::path& directory)
{
  if (FileExists(directory / "tokenizer.json") || !FileExists(directory / LanguagesFile))
  {
    return false;
  }
  const FolderSettings settings(directory);
  const std::string kind = settings.Kind();
  return (kind == "M2M100" || kind == "MBart") && !settings.At("tgt_lang").IsNull();
}

bool HasMarianFiles(const std::filesystem::path& directory, const char* model)
{
  return FileExists(directory / model) && FileExists(directory / MarianVocabularyFile);
}

}

Tokenizer ReadTokenizer(const std::filesystem::path& directory)
{
  const std::filesystem::path path = directory / "tokenizer.json";
  if (FileExists(path))
  {
    return ReadTokenizerJson(path);
  }
  for (const char* name : SentencePieceFiles)
  {
    if (FileExists(directory / name))
    {
      const std::string text = ReadFile(directory / name);
      if (LooksLikeTiktoken(text))
      {
        return ParseTiktokenModel(text, (directory / name).string());
      }
      return ReadSentencePieceTokenizer(directory, name);
    }
  }
  if (HasMarianFiles(directory, MarianSourceFile))
  {
    return ReadMarianTokenizer(directory, MarianSourceFile, MarianVocabularyFile);
  }
  if (FileExists(directory / "vocab.json"))
  {
    return ReadBytePairTokenizer(directory);
  }
  if (FileExists(directory / "vocab.txt"))
  {
    return ReadWordPieceTokenizer(directory);
  }
  if (FileExists(directory / "meta.pkl"))
  {
    return ReadCharacterTokenizer(directory / "meta.pkl");
  }
  throw FileError(directory.string(),
    ": expected the tokenizer files tokenizer.json, a model of SentencePiece (tokenizer.model, "
    "spiece.model, sentencepiece.bpe.model, spm.model or sentencepiece.model), source.spm and "
    "vocab.json, vocab.json and merges.txt, vocab.txt, or meta.pkl, found none of them; token ids "
    "can be given instead of text.");
}

std::vector<std::string> TokenizerWarnings(const std::filesystem::path& directory)
{
  const std::filesystem::path path = directory / "tokenizer.json";
  std::vector<std::string> warnings;
  const FolderSettings settings(directory);
  if (!FileExists(path) || !settings.HasOwnSteps())
  {
    return warnings;
  }
  // Without the vocabulary, which is most of the file.
  const auto isOfSteps = [](int /*depth*/, json::parse_event_t event, const json& key)
  {
    return event != json::parse_event_t::key ||
           (key != "added_tokens" && key != "vocab" && key != "merges");
  };
  json value = json::parse(ReadFile(path), isOfSteps, false);
  if (!value.is_object())
  {
    return warnings;
  }
  settings.Override(value);
  for (const std::string& difference : settings.Differences(value))
  {
    warnings.push_back(path.string() + ": " + difference);
  }
  return warnings;
}

Tokenizer ReadTargetTokenizer(const std::filesystem::path& directory)
{
  if (HasTargetLanguage(directory))
  {
    return ReadSentencePieceTokenizer(directory, LanguagesFile, true);
  }
  const bool hasTwo = FileExists(directory / MarianTargetVocabularyFile);
  return HasTargetTokenizer(directory)
           ? ReadMarianTokenizer(directory, MarianTargetFile,
               hasTwo ? MarianTargetVocabularyFile : MarianVocabularyFile)
           : ReadTokenizer(directory);
}

bool HasTargetTokenizer(const std::filesystem::path& directory)
{
  return HasTargetLanguage(directory) || (!FileExists(directory / "tokenizer.json") &&
                                           HasMarianFiles(directory, MarianSourceFile) &&
                                           HasMarianFiles(directory, MarianTargetFile));
}

}
