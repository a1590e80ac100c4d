#include "TokenizerFile.h"

#include "Error.h"
#include "JsonText.h"
#include "MappedFile.h"
#include "TokenizerParts.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The deepest nesting of Sequence components; files have two levels.
constexpr int MaximumDepth = 16;

/// A JSON value and its place in the file, for messages.
class Node
{
public:
  Node(const json& value, std::string name, const std::string& source)
    : Value(&value)
    , Name(std::move(name))
    , Source(&source)
  {
  }

  const json& Get() const { return *this->Value; }
  const std::string& GetSource() const { return *this->Source; }
  bool IsNull() const { return this->Value->is_null(); }

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(*this->Source + ": " + this->Name + ": " + message);
  }
  [[noreturn]] void FailExpected(const std::string& expected) const
  {
    this->Fail("expected " + expected + ", found " + Describe(*this->Value) + ".");
  }

  /// A member of an object; null if it is missing.
  Node At(const std::string& key) const
  {
    static const json null;
    if (!this->Value->is_object())
    {
      this->FailExpected("an object");
    }
    const auto found = this->Value->find(key);
    return { found == this->Value->end() ? null : *found,
      this->Name.empty() ? key : this->Name + "." + key, *this->Source };
  }

  std::vector<Node> Items() const
  {
    if (!this->Value->is_array())
    {
      this->FailExpected("an array");
    }
    std::vector<Node> items;
    items.reserve(this->Value->size());
    for (const json& item : *this->Value)
    {
      items.emplace_back(
        item, this->Name + "[" + std::to_string(items.size()) + "]", *this->Source);
    }
    return items;
  }

  std::string String() const
  {
    if (!this->Value->is_string())
    {
      this->FailExpected("a string");
    }
    return this->Value->get<std::string>();
  }

  bool Bool(bool otherwise) const
  {
    if (this->IsNull())
    {
      return otherwise;
    }
    if (!this->Value->is_boolean())
    {
      this->FailExpected("true or false");
    }
    return this->Value->get<bool>();
  }

  std::int64_t Integer() const
  {
    const bool fits = this->Value->is_number_integer() &&
                      (!this->Value->is_number_unsigned() ||
                        this->Value->get<std::uint64_t>() <=
                          std::uint64_t{ std::numeric_limits<std::int64_t>::max() });
    if (!fits)
    {
      this->FailExpected("an integer");
    }
    return this->Value->get<std::int64_t>();
  }

private:
  const json* Value;
  std::string Name;
  const std::string* Source;
};

std::shared_ptr<Vocabulary> ParseVocabulary(const Node& node)
{
  auto vocabulary = std::make_shared<Vocabulary>();
  if (!node.Get().is_object())
  {
    node.FailExpected("an object of tokens and their ids");
  }
  for (const auto& [token, id] : node.Get().items())
  {
    vocabulary->Add(token,
      Node(id, "the id of token '" + token.substr(0, 80) + "'", node.GetSource()).Integer(),
      node.GetSource());
  }
  return vocabulary;
}

/// "left right", with one space.
BytePairModel::Merge ParseMerge(std::string_view line, const std::string& place)
{
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos)
  {
    throw FormatError(place + ": expected a merge of two tokens separated by a space, found '" +
                      std::string(line.substr(0, 80)) + "'.");
  }
  return { std::string(line.substr(0, space)), std::string(line.substr(space + 1)) };
}

std::vector<BytePairModel::Merge> ParseMerges(const Node& node)
{
  if (node.IsNull())
  {
    node.Fail("a vocabulary for byte pair encoding needs its merges, found none.");
  }
  std::vector<BytePairModel::Merge> merges;
  for (const Node& merge : node.Items())
  {
    if (merge.Get().is_string())
    {
      merges.push_back(
        ParseMerge(merge.String(), node.GetSource() + ": merge " + std::to_string(merges.size())));
      continue;
    }
    const std::vector<Node> both = merge.Items();
    if (both.size() != 2)
    {
      merge.FailExpected("a merge of two tokens");
    }
    std::string left = both[0].String();
    merges.emplace_back(std::move(left), both[1].String());
  }
  return merges;
}

/// Makes parts with the name of their source, which messages give.
std::shared_ptr<TokenizerParts> MakeParts(const std::string& source)
{
  auto parts = std::make_shared<TokenizerParts>();
  parts->source = source;
  return parts;
}

/// Adds special tokens around texts: begin text end. For pairs: begin first end second end, where
/// the second has its own type (BERT), or begin first end end second end (RoBERTa).
void Frame(TokenizerParts& parts, std::int64_t begin, std::int64_t end, bool hasTypes)
{
  parts.single = { { -1, { begin }, 0 }, { 0, {}, 0 }, { -1, { end }, 0 } };
  parts.pair = parts.single;
  if (hasTypes)
  {
    parts.pair.insert(parts.pair.end(), { { 1, {}, 1 }, { -1, { end }, 1 } });
  }
  else
  {
    parts.pair.insert(parts.pair.end(), { { -1, { end }, 0 }, { 1, {}, 0 }, { -1, { end }, 0 } });
  }
}

/// Reads the parts of tokenizer.json.
class TokenizerParser
{
public:
  TokenizerParser(const json& value, const std::string& source)
    : Root(value, "", source)
    , Parts(MakeParts(source))
  {
  }

  Tokenizer Parse()
  {
    if (!this->Root.Get().is_object())
    {
      throw FormatError(this->Parts->source + ": expected the file to hold a JSON object, found " +
                        Describe(this->Root.Get()) + ".");
    }
    this->ParsePreTokenizer(this->Root.At("pre_tokenizer"), 0);
    this->ParseModel(this->Root.At("model"));
    this->ParseNormalizer(this->Root.At("normalizer"), 0);
    this->ParseAddedTokens(this->Root.At("added_tokens"));
    this->ParsePostProcessor(this->Root.At("post_processor"), 0);
    return Tokenizer(this->Parts);
  }

private:
  Node Root;
  std::shared_ptr<TokenizerParts> Parts;
  bool ByteLevel = false;

  [[noreturn]] static void FailKind(const Node& node, const std::string& found)
  {
    node.Fail("expected a tokenizer of byte-level BPE, WordPiece or WordLevel, found " + found +
              ", which is not supported; token ids can be given instead of text.");
  }

  static std::string TypeOf(const Node& node, int depth)
  {
    if (depth > MaximumDepth)
    {
      node.Fail(
        "expected sequences of at most " + std::to_string(MaximumDepth) + " levels, found more.");
    }
    return node.At("type").String();
  }

  static std::string KindOfModel(const Node& model)
  {
    const Node type = model.At("type");
    if (!type.IsNull())
    {
      return type.String();
    }
    // Old files do not state the kind.
    if (!model.At("merges").IsNull())
    {
      return "BPE";
    }
    return model.At("max_input_chars_per_word").IsNull() ? "no kind of model" : "WordPiece";
  }

  void ParseModel(const Node& model)
  {
    if (model.IsNull())
    {
      model.Fail("expected the tokenizer's model, found none.");
    }
    const std::string kind = KindOfModel(model);
    if (kind == "BPE")
    {
      this->ParseBytePairs(model);
    }
    else if (kind == "WordPiece")
    {
      this->ParseWordPiece(model);
    }
    else if (kind == "WordLevel")
    {
      this->ParseWordLevel(model);
    }
    else
    {
      FailKind(model, kind);
    }
  }

  void ParseBytePairs(const Node& model) const
  {
    if (model.At("byte_fallback").Bool(false) || !this->ByteLevel)
    {
      FailKind(model, "BPE on characters, as converted from SentencePiece");
    }
    for (const char* key : { "continuing_subword_prefix", "end_of_word_suffix" })
    {
      const Node affix = model.At(key);
      if (!affix.IsNull() && !affix.String().empty())
      {
        affix.FailExpected("none in byte-level BPE");
      }
    }
    const Node dropout = model.At("dropout");
    if (!dropout.IsNull() && dropout.Get() != 0)
    {
      dropout.FailExpected("null: the same text must give the same tokens");
    }
    this->Parts->model = std::make_shared<BytePairModel>(ParseVocabulary(model.At("vocab")),
      ParseMerges(model.At("merges")), model.At("ignore_merges").Bool(false), model.GetSource());
  }

  void ParseWordPiece(const Node& model) const
  {
    if (this->ByteLevel)
    {
      FailKind(model, "WordPiece on bytes");
    }
    WordPieceModel::Options options;
    const Node unknown = model.At("unk_token");
    options.unknown = unknown.IsNull() ? options.unknown : unknown.String();
    const Node continuation = model.At("continuing_subword_prefix");
    options.continuation = continuation.IsNull() ? options.continuation : continuation.String();
    const Node maximum = model.At("max_input_chars_per_word");
    if (!maximum.IsNull())
    {
      if (maximum.Integer() < 0)
      {
        maximum.FailExpected("an integer from 0 on");
      }
      options.maximumCharacters = static_cast<std::size_t>(maximum.Integer());
    }
    this->Parts->hasSegments = true;
    this->Parts->model = std::make_shared<WordPieceModel>(
      ParseVocabulary(model.At("vocab")), options, model.GetSource());
  }

  void ParseWordLevel(const Node& model) const
  {
    if (this->ByteLevel)
    {
      FailKind(model, "WordLevel on bytes");
    }
    const Node unknown = model.At("unk_token");
    this->Parts->model = std::make_shared<WordLevelModel>(ParseVocabulary(model.At("vocab")),
      unknown.IsNull() ? std::string() : unknown.String(), model.GetSource());
  }

  void ParseNormalizer(const Node& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    static const std::map<std::string, TextNormalization> simple = {
      { "NFC", NormalizationForm::NFC },
      { "NFD", NormalizationForm::NFD },
      { "NFKC", NormalizationForm::NFKC },
      { "NFKD", NormalizationForm::NFKD },
      { "Lowercase", LowerCase{} },
      { "StripAccents", RemoveMarks{} },
    };
    const std::string type = TypeOf(node, depth);
    const auto found = simple.find(type);
    if (found != simple.end())
    {
      this->Parts->normalizations.push_back(found->second);
    }
    else if (type == "Sequence")
    {
      for (const Node& item : node.At("normalizers").Items())
      {
        this->ParseNormalizer(item, depth + 1);
      }
    }
    else if (type == "BertNormalizer")
    {
      BertNormalization bert;
      bert.cleanText = node.At("clean_text").Bool(true);
      bert.separateChinese = node.At("handle_chinese_chars").Bool(true);
      bert.lowerCase = node.At("lowercase").Bool(true);
      bert.stripAccents = node.At("strip_accents").Bool(bert.lowerCase);
      this->Parts->normalizations.emplace_back(bert);
    }
    else
    {
      node.Fail("unknown normalizer '" + type +
                "', expected one of BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, "
                "StripAccents, Sequence.");
    }
  }

  void AddSplit(const std::string& expression, bool keepMatches, bool keepGaps)
  {
    this->Parts->preTokenizations.emplace_back(SplitByExpression{
      RegularExpression(expression, this->Parts->source), keepMatches, keepGaps });
  }

  void ParsePreTokenizer(const Node& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (this->ByteLevel)
    {
      node.Fail("expected ByteLevel to be the last pre-tokenizer, found " + type + " behind it.");
    }
    if (type == "Sequence")
    {
      for (const Node& item : node.At("pretokenizers").Items())
      {
        this->ParsePreTokenizer(item, depth + 1);
      }
    }
    else if (type == "ByteLevel")
    {
      this->ByteLevel = true;
      if (node.At("add_prefix_space").Bool(true))
      {
        this->Parts->preTokenizations.emplace_back(PrefixSpace{});
      }
      if (node.At("use_regex").Bool(true))
      {
        this->AddSplit(ByteLevelExpression, true, true);
      }
    }
    else if (type == "BertPreTokenizer")
    {
      this->Parts->preTokenizations.emplace_back(SplitLikeBert{});
    }
    else if (type == "WhitespaceSplit")
    {
      this->AddSplit(R"(\s+)", false, true);
    }
    else if (type == "Digits")
    {
      this->AddSplit(
        node.At("individual_digits").Bool(false) ? R"(\p{N})" : R"(\p{N}+)", true, true);
    }
    else if (type == "Split")
    {
      this->ParseSplit(node);
    }
    else
    {
      node.Fail("unknown pre-tokenizer '" + type +
                "', expected one of ByteLevel, BertPreTokenizer, WhitespaceSplit, Digits, Split, "
                "Sequence.");
    }
  }

  void ParseSplit(const Node& node)
  {
    const Node pattern = node.At("pattern");
    const Node text = pattern.At("String");
    std::string expression;
    if (text.IsNull())
    {
      expression = pattern.At("Regex").String();
    }
    else
    {
      for (const char c : text.String())
      {
        const bool isSign = static_cast<unsigned char>(c) < 128 && IsPunctuation(char32_t(c));
        expression += isSign ? std::string("\\") + c : std::string(1, c);
      }
    }
    const std::string behavior = node.At("behavior").String();
    const bool invert = node.At("invert").Bool(false);
    if (behavior != "Isolated" && behavior != "Removed")
    {
      node.Fail("unknown behavior '" + behavior + "', expected Isolated or Removed.");
    }
    const bool isolated = behavior == "Isolated";
    this->AddSplit(expression, isolated || invert, isolated || !invert);
  }

  void ParseAddedTokens(const Node& node)
  {
    if (node.IsNull())
    {
      return;
    }
    for (const Node& item : node.Items())
    {
      AddedToken token;
      token.content = item.At("content").String();
      token.id = item.At("id").Integer();
      token.singleWord = item.At("single_word").Bool(false);
      token.stripLeft = item.At("lstrip").Bool(false);
      token.stripRight = item.At("rstrip").Bool(false);
      token.normalized = item.At("normalized").Bool(!item.At("special").Bool(false));
      this->Parts->Add(token);
    }
  }

  /// The id of a special token of the template, which must be in the vocabulary.
  std::int64_t SpecialId(const Node& node, std::int64_t id) const
  {
    if (this->Parts->TokenOf(id) == nullptr)
    {
      node.Fail("the special token's id " + std::to_string(id) + " is not in the vocabulary.");
    }
    return id;
  }

  void ParsePostProcessor(const Node& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (type == "Sequence")
    {
      for (const Node& item : node.At("processors").Items())
      {
        this->ParsePostProcessor(item, depth + 1);
      }
    }
    else if (type == "TemplateProcessing")
    {
      const Node specials = node.At("special_tokens");
      this->Parts->single = this->ParseTemplate(node.At("single"), specials, 1);
      this->Parts->pair = this->ParseTemplate(node.At("pair"), specials, 2);
    }
    else if (type == "BertProcessing" || type == "RobertaProcessing")
    {
      const std::int64_t begin = this->ParseSpecial(node.At("cls"));
      const std::int64_t end = this->ParseSpecial(node.At("sep"));
      Frame(*this->Parts, begin, end, type == "BertProcessing");
    }
    else if (type != "ByteLevel") // which changes offsets but not ids
    {
      node.Fail("unknown post-processor '" + type +
                "', expected one of TemplateProcessing, BertProcessing, RobertaProcessing, "
                "ByteLevel, Sequence.");
    }
  }

  /// ["[SEP]", 102]
  std::int64_t ParseSpecial(const Node& node) const
  {
    const std::vector<Node> both = node.Items();
    if (both.size() != 2)
    {
      node.FailExpected("a token and its id");
    }
    return this->SpecialId(node, both[1].Integer());
  }

  Template ParseTemplate(const Node& node, const Node& specials, int sequences) const
  {
    Template result;
    for (const Node& item : node.Items())
    {
      const bool isSequence = !item.At("Sequence").IsNull();
      const Node content = item.At(isSequence ? "Sequence" : "SpecialToken");
      TemplatePart part;
      const std::string id = content.At("id").String();
      const std::int64_t type = content.At("type_id").Integer();
      if (type < 0 || type > std::numeric_limits<std::int32_t>::max())
      {
        content.At("type_id").FailExpected("an integer from 0 to 2^31 - 1");
      }
      part.type = static_cast<std::int32_t>(type);
      if (isSequence)
      {
        part.sequence = id == "B" ? 1 : 0;
        if ((id != "A" && id != "B") || part.sequence >= sequences)
        {
          content.At("id").FailExpected(sequences == 1 ? "the sequence A" : "the sequence A or B");
        }
      }
      else
      {
        for (const Node& number : specials.At(id).At("ids").Items())
        {
          part.ids.push_back(this->SpecialId(number, number.Integer()));
        }
      }
      result.push_back(std::move(part));
    }
    return result;
  }
};

/// The object in a JSON file next to a vocabulary; empty if there is no such file.
json ReadSettings(const std::filesystem::path& path)
{
  if (!std::filesystem::exists(path))
  {
    return json::object();
  }
  json settings = ParseJson(ReadFile(path), path.string());
  if (!settings.is_object())
  {
    throw FormatError(
      path.string() + ": expected a JSON object, found " + Describe(settings) + ".");
  }
  return settings;
}

Tokenizer ReadBytePairTokenizer(const std::filesystem::path& directory)
{
  const std::filesystem::path vocabularyPath = directory / "vocab.json";
  const std::filesystem::path mergesPath = directory / "merges.txt";
  if (!std::filesystem::exists(mergesPath))
  {
    throw FileError(
      vocabularyPath.string() +
      ": a vocabulary for byte pair encoding needs merges.txt beside it, found none.");
  }
  const std::filesystem::path settingsPath = directory / "tokenizer_config.json";
  const std::string source = settingsPath.string();
  const json value = ReadSettings(settingsPath);
  const Node settings(value, "", source);
  const Node type = settings.At("tokenizer_class");
  if (!type.IsNull() && type.String() != "GPT2Tokenizer" && type.String() != "GPT2TokenizerFast")
  {
    type.FailExpected("GPT2Tokenizer, or a file tokenizer.json that says how this one works");
  }
  BytePairOptions options;
  options.addPrefixSpace = settings.At("add_prefix_space").Bool(false);
  const std::filesystem::path addedPath = directory / "added_tokens.json";
  const std::string addedSource = addedPath.string();
  const json added = ReadSettings(addedPath);
  for (const auto& [token, id] : added.items())
  {
    options.addedTokens.emplace_back(token, Node(id, token, addedSource).Integer());
  }
  return ParseBytePairTokenizer(ReadFile(vocabularyPath), vocabularyPath.string(),
    ReadFile(mergesPath), mergesPath.string(), options);
}

Tokenizer ReadWordPieceTokenizer(const std::filesystem::path& directory)
{
  const std::filesystem::path settingsPath = directory / "tokenizer_config.json";
  const std::string source = settingsPath.string();
  const json value = ReadSettings(settingsPath);
  const Node settings(value, "", source);
  WordPieceOptions options;
  options.lowerCase = settings.At("do_lower_case").Bool(true);
  options.stripAccents = settings.At("strip_accents").Bool(options.lowerCase);
  options.separateChinese = settings.At("tokenize_chinese_chars").Bool(true);
  const std::filesystem::path path = directory / "vocab.txt";
  return ParseWordPieceTokenizer(ReadFile(path), path.string(), options);
}

}

Tokenizer ParseTokenizer(std::string_view text, const std::string& source)
{
  const json value = ParseJson(text, source);
  return TokenizerParser(value, source).Parse();
}

Tokenizer ParseBytePairTokenizer(std::string_view vocabulary, const std::string& vocabularySource,
  std::string_view merges, const std::string& mergesSource, const BytePairOptions& options)
{
  const std::shared_ptr<TokenizerParts> parts = MakeParts(vocabularySource);
  const json value = ParseJson(vocabulary, vocabularySource);
  const auto tokens = ParseVocabulary(Node(value, "the vocabulary", vocabularySource));
  RequireUtf8(merges, mergesSource);
  std::vector<BytePairModel::Merge> pairs;
  std::size_t number = 0;
  for (const std::string& line : SplitLines(merges))
  {
    ++number;
    const bool isVersion = number == 1 && line.compare(0, 8, "#version") == 0;
    if (!isVersion && !line.empty())
    {
      pairs.push_back(ParseMerge(line, mergesSource + ": line " + std::to_string(number)));
    }
  }
  parts->model = std::make_shared<BytePairModel>(tokens, pairs, false, mergesSource);
  if (options.addPrefixSpace)
  {
    parts->preTokenizations.emplace_back(PrefixSpace{});
  }
  parts->preTokenizations.emplace_back(
    SplitByExpression{ RegularExpression(ByteLevelExpression, vocabularySource) });
  constexpr const char* endOfText = "<|endoftext|>";
  if (const std::optional<std::int64_t> id = tokens->IdOf(endOfText))
  {
    parts->Add({ endOfText, *id });
  }
  for (const auto& [token, id] : options.addedTokens)
  {
    if (token != endOfText || !tokens->IdOf(token))
    {
      parts->Add({ token, id });
    }
  }
  return Tokenizer(parts);
}

Tokenizer ParseWordPieceTokenizer(
  std::string_view vocabulary, const std::string& source, const WordPieceOptions& options)
{
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
  const std::shared_ptr<TokenizerParts> parts = MakeParts(source);
  parts->hasSegments = true;
  parts->model = std::make_shared<WordPieceModel>(tokens, WordPieceModel::Options{}, source);
  parts->normalizations.emplace_back(BertNormalization{ true, options.separateChinese,
    options.stripAccents.value_or(options.lowerCase), options.lowerCase });
  parts->preTokenizations.emplace_back(SplitLikeBert{});
  for (const char* token : { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" })
  {
    if (const std::optional<std::int64_t> id = tokens->IdOf(token))
    {
      parts->Add({ token, *id });
    }
  }
  const auto special = [&](const char* token)
  {
    const std::optional<std::int64_t> id = tokens->IdOf(token);
    if (!id)
    {
      throw FormatError(
        source + ": the vocabulary has no token '" + token + "', which BERT adds to texts.");
    }
    return *id;
  };
  const std::int64_t begin = special("[CLS]");
  const std::int64_t end = special("[SEP]");
  Frame(*parts, begin, end, true);
  return Tokenizer(parts);
}

Tokenizer ReadTokenizer(const std::filesystem::path& directory)
{
  const std::filesystem::path path = directory / "tokenizer.json";
  if (std::filesystem::exists(path))
  {
    return ParseTokenizer(ReadFile(path), path.string());
  }
  if (std::filesystem::exists(directory / "vocab.json"))
  {
    return ReadBytePairTokenizer(directory);
  }
  if (std::filesystem::exists(directory / "vocab.txt"))
  {
    return ReadWordPieceTokenizer(directory);
  }
  std::string found = "none of them";
  for (const char* name : { "tokenizer.model", "spiece.model", "sentencepiece.bpe.model" })
  {
    if (std::filesystem::exists(directory / name))
    {
      found = std::string(name) + ", a SentencePiece tokenizer, which is not supported";
    }
  }
  throw FileError(directory.string() +
                  ": expected the tokenizer files tokenizer.json, vocab.json and merges.txt, or "
                  "vocab.txt, found " +
                  found + "; token ids can be given instead of text.");
}

}
