#include "TokenizerJson.h"

#include "CharacterPairModel.h"
#include "Error.h"
#include "PieceText.h"
#include "UnigramModel.h"

#include <limits>
#include <map>
#include <set>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The characters that Punctuation and BertPreTokenizer split off.
constexpr const char* PunctuationExpression = R"([\p{P}$+<=>^`|~])";

/// The words of Whitespace: word characters, which the original takes from Unicode's UTS 18, or
/// other characters that are no white space.
constexpr const char* WordsExpression = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|)"
                                        R"([^\s\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)";

/// The deepest nesting of Sequence components; files have two levels.
constexpr int MaximumDepth = 16;

std::vector<Merge> ParseMerges(const JsonNode& node)
{
  if (node.IsNull())
  {
    node.Fail("a vocabulary for byte pair encoding needs its merges, found none.");
  }
  std::vector<Merge> merges;
  for (const JsonNode& merge : node.Items())
  {
    if (merge.Get().is_string())
    {
      merges.push_back(
        ParseMerge(merge.String(), node.GetSource() + ": merge " + std::to_string(merges.size())));
      continue;
    }
    const std::vector<JsonNode> both = merge.Items();
    if (both.size() != 2)
    {
      merge.FailExpected("a merge of two tokens");
    }
    std::string left = both[0].String();
    merges.emplace_back(std::move(left), both[1].String());
  }
  return merges;
}

/// What a component of each type may say, beside its type. Others are refused, since they would
/// change ids in a way that is not known.
void RequireKnownSettings(const JsonNode& component, const std::string& type)
{
  static const std::map<std::string_view, std::set<std::string_view>> known = {
    // models
    { "BPE", { "vocab", "merges", "dropout", "unk_token", "continuing_subword_prefix",
               "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges" } },
    { "Unigram", { "vocab", "unk_id", "byte_fallback" } },
    { "WordPiece",
      { "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word" } },
    { "WordLevel", { "vocab", "unk_token" } },
    // normalizers
    { "BertNormalizer", { "clean_text", "handle_chinese_chars", "strip_accents", "lowercase" } },
    { "Prepend", { "prepend" } },
    { "Replace", { "pattern", "content" } },
    { "Strip", { "strip_left", "strip_right" } },
    { "Precompiled", { "precompiled_charsmap" } },
    // pre-tokenizers
    { "Metaspace", { "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep" } },
    { "Split", { "pattern", "behavior", "invert" } },
    { "Punctuation", { "behavior" } },
    { "CharDelimiterSplit", { "delimiter" } },
    { "Digits", { "individual_digits" } },
    { "FixedLength", { "length" } },
    // post-processors; what changes offsets changes no ids
    { "TemplateProcessing", { "single", "pair", "special_tokens" } },
    { "BertProcessing", { "cls", "sep" } },
    { "RobertaProcessing", { "cls", "sep", "trim_offsets", "add_prefix_space" } },
    // several of these
    { "ByteLevel", { "add_prefix_space", "use_regex", "trim_offsets" } },
    { "Sequence", { "normalizers", "pretokenizers", "processors" } },
  };
  const auto found = known.find(type);
  for (const auto& item : component.Get().items())
  {
    const bool says = !item.value().is_null() && item.value() != false;
    if (says && item.key() != "type" &&
        (found == known.end() || found->second.count(item.key()) == 0))
    {
      component.Fail("unknown setting '" + item.key().substr(0, 80) + "' of " + type.substr(0, 80) +
                     ", expected none that is not known.");
    }
  }
}

/// Reads the parts of tokenizer.json.
class TokenizerParser
{
public:
  TokenizerParser(const json& value, const std::string& source)
    : Root(value, "", source)
    , Parts(std::make_shared<TokenizerParts>(source))
  {
  }

  std::shared_ptr<TokenizerParts> Parse()
  {
    if (!this->Root.Get().is_object())
    {
      throw FormatError(this->Parts->source + ": expected the file to hold a JSON object, found " +
                        Describe(this->Root.Get()) + ".");
    }
    this->ParseNormalizer(this->Root.At("normalizer"), 0);
    this->ParsePreTokenizer(this->Root.At("pre_tokenizer"), 0);
    this->EndByteLevel();
    this->ParseModel(this->Root.At("model"));
    this->ParseAddedTokens(this->Root.At("added_tokens"));
    this->ParseDecoder(this->Root.At("decoder"), 0);
    this->ParsePostProcessor(this->Root.At("post_processor"), 0);
    return this->Parts;
  }

private:
  JsonNode Root;
  std::shared_ptr<TokenizerParts> Parts;
  bool ByteLevel = false; ///< tokens are of bytes

  [[noreturn]] static void FailKind(const JsonNode& node, const std::string& found)
  {
    node.Fail("expected a tokenizer of byte pairs (BPE), Unigram, WordPiece or WordLevel, found " +
              found + ", which is not supported; token ids can be given instead of text.");
  }

  static std::string TypeOf(const JsonNode& node, int depth)
  {
    if (depth > MaximumDepth)
    {
      node.Fail(
        "expected sequences of at most " + std::to_string(MaximumDepth) + " levels, found more.");
    }
    return node.At("type").String();
  }

  static std::string KindOfModel(const JsonNode& model)
  {
    const JsonNode type = model.At("type");
    if (!type.IsNull())
    {
      return type.String();
    }
    // Old files do not state the kind.
    return !model.At("merges").IsNull()                     ? "BPE"
           : !model.At("max_input_chars_per_word").IsNull() ? "WordPiece"
           : model.At("vocab").Get().is_array()             ? "Unigram"
           : !model.At("unk_token").IsNull()                ? "WordLevel"
                                                            : "no kind of model";
  }

  void ParseModel(const JsonNode& model)
  {
    if (model.IsNull())
    {
      model.Fail("expected the tokenizer's model, found none.");
    }
    const std::string kind = KindOfModel(model);
    if (kind == "BPE")
    {
      this->ByteLevel ? this->ParseBytePairs(model) : this->ParseCharacterPairs(model);
    }
    else if (kind == "Unigram")
    {
      this->ParseUnigram(model);
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
    RequireKnownSettings(model, kind);
  }

  static void RequireNoDropout(const JsonNode& model)
  {
    const JsonNode dropout = model.At("dropout");
    if (!dropout.IsNull() && dropout.Get() != 0)
    {
      dropout.FailExpected("null: the same text must give the same tokens");
    }
  }

  /// A text that is added to tokens at one end of a word, or none.
  static std::string ParseAffix(const JsonNode& affix)
  {
    return affix.IsNull() ? std::string() : affix.String();
  }

  static void RequireNoAffix(const JsonNode& affix)
  {
    if (!ParseAffix(affix).empty())
    {
      affix.FailExpected("none in BPE on bytes");
    }
  }

  /// The unknown token of byte pairs; none if it is not in the vocabulary.
  static std::optional<std::int64_t> ParseUnknown(
    const JsonNode& model, const Vocabulary& vocabulary)
  {
    const JsonNode unknown = model.At("unk_token");
    return unknown.IsNull() ? std::nullopt : vocabulary.IdOf(unknown.String());
  }

  void ParseBytePairs(const JsonNode& model) const
  {
    RequireNoAffix(model.At("continuing_subword_prefix"));
    RequireNoDropout(model);
    const std::shared_ptr<Vocabulary> vocabulary = ParseVocabulary(model.At("vocab"));
    const UnknownParts unknown = { ParseUnknown(model, *vocabulary),
      model.At("fuse_unk").Bool(false) };
    this->Parts->model = std::make_shared<BytePairModel>(vocabulary,
      ParseMerges(model.At("merges")), model.At("ignore_merges").Bool(false), model.GetSource(),
      ParseAffix(model.At("end_of_word_suffix")), unknown);
  }

  void ParseCharacterPairs(const JsonNode& model) const
  {
    RequireNoDropout(model);
    const std::shared_ptr<Vocabulary> vocabulary = ParseVocabulary(model.At("vocab"));
    CharacterPairModel::Options options;
    options.continuation = ParseAffix(model.At("continuing_subword_prefix"));
    options.wordEnd = ParseAffix(model.At("end_of_word_suffix"));
    options.unknown = ParseUnknown(model, *vocabulary);
    options.fuseUnknown = model.At("fuse_unk").Bool(false);
    options.byteFallback = model.At("byte_fallback").Bool(false);
    options.wholeWordsFirst = model.At("ignore_merges").Bool(false);
    const auto pairs = std::make_shared<CharacterPairModel>(
      vocabulary, ParseMerges(model.At("merges")), options, model.GetSource());
    if (pairs->WordsAreSeparate())
    {
      this->Parts->preTokenizations.emplace_back(SplitWords{});
    }
    this->Parts->unknown = options.unknown;
    this->Parts->model = pairs;
  }

  /// [["<unk>", 0.0], ["the", -3.5], ...]
  void ParseUnigram(const JsonNode& model) const
  {
    if (this->ByteLevel)
    {
      FailKind(model, "Unigram on bytes");
    }
    const auto vocabulary = std::make_shared<Vocabulary>();
    std::vector<UnigramModel::Piece> pieces;
    for (const JsonNode& item : model.At("vocab").Items())
    {
      const std::vector<JsonNode> both = item.Items();
      if (both.size() != 2)
      {
        item.FailExpected("a token and its score");
      }
      const auto id = static_cast<std::int32_t>(pieces.size());
      const std::string token = both[0].String();
      RequirePiece(token, vocabulary->IdOf(token), model.GetSource());
      vocabulary->Add(token, id, model.GetSource());
      pieces.push_back({ *vocabulary->TokenOf(id), id, both[1].Number(), false });
    }
    UnigramModel::Options options;
    const JsonNode unknown = model.At("unk_id");
    if (!unknown.IsNull())
    {
      options.unknown = unknown.Integer();
      if (vocabulary->TokenOf(*options.unknown) == nullptr)
      {
        unknown.FailExpected("an id of the vocabulary");
      }
    }
    options.byteFallback = model.At("byte_fallback").Bool(false);
    this->Parts->unknown = options.unknown;
    this->Parts->model =
      std::make_shared<UnigramModel>(vocabulary, pieces, options, model.GetSource());
  }

  void ParseWordPiece(const JsonNode& model) const
  {
    if (this->ByteLevel)
    {
      FailKind(model, "WordPiece on bytes");
    }
    WordPieceModel::Options options;
    const JsonNode unknown = model.At("unk_token");
    options.unknown = unknown.IsNull() ? options.unknown : unknown.String();
    const JsonNode continuation = model.At("continuing_subword_prefix");
    options.continuation = continuation.IsNull() ? options.continuation : continuation.String();
    const JsonNode maximum = model.At("max_input_chars_per_word");
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

  void ParseWordLevel(const JsonNode& model) const
  {
    if (this->ByteLevel)
    {
      FailKind(model, "WordLevel on bytes");
    }
    const JsonNode unknown = model.At("unk_token");
    const JsonNode decoder = this->Root.At("decoder");
    const bool isFused = !decoder.IsNull() && TypeOf(decoder, 0) == "Fuse";
    this->Parts->model = std::make_shared<WordLevelModel>(ParseVocabulary(model.At("vocab")),
      unknown.IsNull() ? std::string() : unknown.String(), isFused ? "" : " ", model.GetSource());
  }

  void ParseNormalizer(const JsonNode& node, int depth)
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
      { "Nmt", CleanControls{} },
      { "StripAccents", RemoveMarks{} },
      { "ByteLevel", ByteLevelText{} },
    };
    const std::string type = TypeOf(node, depth);
    this->ByteLevel = this->ByteLevel || type == "ByteLevel";
    const auto found = simple.find(type);
    if (found != simple.end())
    {
      this->Parts->normalizations.push_back(found->second);
    }
    else if (type == "Sequence")
    {
      for (const JsonNode& item : node.At("normalizers").Items())
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
    else if (type == "Prepend")
    {
      this->Parts->normalizations.emplace_back(PrependText{ node.At("prepend").String() });
    }
    else if (type == "Replace")
    {
      this->ParseReplace(node);
    }
    else if (type == "Strip")
    {
      this->Parts->normalizations.emplace_back(
        StripSpaces{ node.At("strip_left").Bool(true), node.At("strip_right").Bool(true) });
    }
    else if (type == "Precompiled")
    {
      this->ParsePrecompiled(node);
    }
    else
    {
      node.Fail("unknown normalizer '" + type +
                "', expected one of BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, "
                "StripAccents, Strip, Nmt, Prepend, Replace, Precompiled, ByteLevel, Sequence.");
    }
    RequireKnownSettings(node, type);
  }

  void ParseReplace(const JsonNode& node)
  {
    ReplaceText replace;
    replace.replacement = node.At("content").String();
    const JsonNode text = node.At("pattern").At("String");
    if (text.IsNull())
    {
      replace.expression =
        RegularExpression(node.At("pattern").At("Regex").String(), this->Parts->source);
    }
    else
    {
      replace.text = text.String();
      if (replace.text.empty())
      {
        text.FailExpected("a text that is not empty");
      }
    }
    this->Parts->normalizations.emplace_back(std::move(replace));
  }

  void ParsePrecompiled(const JsonNode& node)
  {
    const JsonNode text = node.At("precompiled_charsmap");
    if (text.IsNull() || text.Get() == "")
    {
      return;
    }
    const std::optional<std::string> bytes = DecodeBase64(text.String());
    if (!bytes)
    {
      text.Fail("expected text in Base64, found other characters.");
    }
    SentencePieceNormalization normalization;
    normalization.characters = std::make_shared<CharacterMap>(*bytes, this->Parts->source);
    this->Parts->normalizations.emplace_back(std::move(normalization));
  }

  void AddSplit(const std::string& expression, SplitBehavior behavior = SplitBehavior::Isolated,
    bool invert = false)
  {
    this->Parts->preTokenizations.emplace_back(
      SplitByExpression{ RegularExpression(expression, this->Parts->source), behavior, invert });
  }

  void ParsePreTokenizer(const JsonNode& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (type == "Sequence")
    {
      for (const JsonNode& item : node.At("pretokenizers").Items())
      {
        this->ParsePreTokenizer(item, depth + 1);
      }
    }
    else if (type == "ByteLevel")
    {
      this->ParseByteLevel(node);
    }
    else if (type == "BertPreTokenizer")
    {
      this->Parts->preTokenizations.emplace_back(SplitLikeBert{});
    }
    else if (type == "Metaspace")
    {
      this->ParseMetaspace(node);
    }
    else if (type == "Split")
    {
      this->AddSplit(ParsePattern(node.At("pattern")), ParseBehavior(node.At("behavior")),
        node.At("invert").Bool(false));
    }
    else if (type == "Punctuation")
    {
      this->AddSplit(PunctuationExpression, ParseBehavior(node.At("behavior")));
    }
    else if (!this->ParseFixedSplit(type, node))
    {
      node.Fail("unknown pre-tokenizer '" + type +
                "', expected one of ByteLevel, BertPreTokenizer, Whitespace, WhitespaceSplit, "
                "Digits, Punctuation, CharDelimiterSplit, FixedLength, Split, Metaspace, "
                "Sequence.");
    }
    RequireKnownSettings(node, type);
  }

  /// The pre-tokenizers that have one expression each. Returns false for any other.
  bool ParseFixedSplit(const std::string& type, const JsonNode& node)
  {
    if (type == "Whitespace")
    {
      this->AddSplit(WordsExpression, SplitBehavior::Removed, true);
    }
    else if (type == "WhitespaceSplit")
    {
      this->AddSplit(R"(\s+)", SplitBehavior::Removed);
    }
    else if (type == "CharDelimiterSplit")
    {
      this->AddSplit(LiteralExpression(node.At("delimiter").String()), SplitBehavior::Removed);
    }
    else if (type == "Digits")
    {
      this->AddSplit(node.At("individual_digits").Bool(false) ? R"(\p{N})" : R"(\p{N}+)");
    }
    else if (type == "FixedLength")
    {
      this->AddSplit("(?s:.{1," + std::to_string(ParseLength(node.At("length"))) + "})");
    }
    else
    {
      return false;
    }
    return true;
  }

  static std::int64_t ParseLength(const JsonNode& node)
  {
    constexpr std::int64_t most = 65535; // PCRE2 counts no further
    const std::int64_t length = node.IsNull() ? 5 : node.Integer();
    if (length < 1 || length > most)
    {
      node.FailExpected("an integer from 1 to " + std::to_string(most));
    }
    return length;
  }

  void ParseByteLevel(const JsonNode& node)
  {
    this->ByteLevel = true;
    if (node.At("add_prefix_space").Bool(true))
    {
      this->Parts->preTokenizations.emplace_back(PrefixSpace{});
    }
    if (node.At("use_regex").Bool(true))
    {
      this->AddSplit(ByteLevelExpression);
    }
    this->Parts->preTokenizations.emplace_back(ByteLevelText{});
  }

  /// The model writes bytes as characters itself, so that it takes them where nothing follows.
  void EndByteLevel()
  {
    std::vector<PreTokenization>& steps = this->Parts->preTokenizations;
    if (!steps.empty() && std::holds_alternative<ByteLevelText>(steps.back()))
    {
      steps.pop_back();
    }
    else if (this->ByteLevel)
    {
      steps.emplace_back(ByteLevelText{ true });
    }
  }

  /// {"String": "a"} or {"Regex": "a+"}
  static std::string ParsePattern(const JsonNode& pattern)
  {
    const JsonNode text = pattern.At("String");
    return text.IsNull() ? pattern.At("Regex").String() : LiteralExpression(text.String());
  }

  /// An expression that matches a text.
  static std::string LiteralExpression(const std::string& text)
  {
    std::string expression;
    for (const char c : text)
    {
      const bool isSign = static_cast<unsigned char>(c) < 128 && IsPunctuation(char32_t(c));
      expression += isSign ? std::string("\\") + c : std::string(1, c);
    }
    return expression;
  }

  static SplitBehavior ParseBehavior(const JsonNode& node)
  {
    static const std::map<std::string, SplitBehavior> behaviors = {
      { "Isolated", SplitBehavior::Isolated },
      { "Removed", SplitBehavior::Removed },
      { "MergedWithPrevious", SplitBehavior::MergedWithPrevious },
      { "MergedWithNext", SplitBehavior::MergedWithNext },
      { "Contiguous", SplitBehavior::Contiguous },
    };
    const auto found = node.IsNull() ? behaviors.begin() : behaviors.find(node.String());
    if (found == behaviors.end())
    {
      node.FailExpected("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
    }
    return node.IsNull() ? SplitBehavior::Isolated : found->second;
  }

  /// Where Metaspace, a pre-tokenizer or a decoder, adds its mark.
  static PrefixMark ParsePrefix(const JsonNode& node)
  {
    const JsonNode replacement = node.At("replacement");
    if (!replacement.IsNull() && replacement.String() != SpaceMark)
    {
      replacement.FailExpected("U+2581");
    }
    const JsonNode scheme = node.At("prepend_scheme");
    if (scheme.IsNull()) // old files
    {
      return node.At("add_prefix_space").Bool(true) ? PrefixMark::Always : PrefixMark::Never;
    }
    const std::string name = scheme.String();
    if (name != "always" && name != "first" && name != "never")
    {
      scheme.FailExpected("always, first or never");
    }
    return name == "always"  ? PrefixMark::Always
           : name == "first" ? PrefixMark::First
                             : PrefixMark::Never;
  }

  void ParseMetaspace(const JsonNode& node)
  {
    this->Parts->preTokenizations.emplace_back(
      Metaspace{ ParsePrefix(node), node.At("split").Bool(true) });
  }

  /// Of decoders only the space matters that encoding adds before texts.
  void ParseDecoder(const JsonNode& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (type == "Sequence")
    {
      for (const JsonNode& item : node.At("decoders").Items())
      {
        this->ParseDecoder(item, depth + 1);
      }
    }
    else if (type == "Strip")
    {
      this->Parts->hasPrefixSpace =
        node.At("content").String() == " " && node.At("start").Integer() > 0;
    }
    else if (type == "Metaspace")
    {
      this->Parts->hasPrefixSpace = ParsePrefix(node) != PrefixMark::Never;
    }
  }

  void ParseAddedTokens(const JsonNode& node)
  {
    if (node.IsNull())
    {
      return;
    }
    for (const JsonNode& item : node.Items())
    {
      this->Parts->Add(ParseAddedToken(item, item.At("id").Integer()));
    }
  }

  /// The id of a special token of the template, which must be in the vocabulary.
  std::int64_t SpecialId(const JsonNode& node, std::int64_t id) const
  {
    if (this->Parts->TokenOf(id) == nullptr)
    {
      node.Fail("the special token's id " + std::to_string(id) + " is not in the vocabulary.");
    }
    return id;
  }

  void ParsePostProcessor(const JsonNode& node, int depth)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (type == "Sequence")
    {
      for (const JsonNode& item : node.At("processors").Items())
      {
        this->ParsePostProcessor(item, depth + 1);
      }
    }
    else if (type == "TemplateProcessing")
    {
      const JsonNode specials = node.At("special_tokens");
      this->Parts->single = this->ParseTemplate(node.At("single"), specials, 1);
      this->Parts->pair = this->ParseTemplate(node.At("pair"), specials, 2);
    }
    else if (type == "BertProcessing" || type == "RobertaProcessing")
    {
      const std::int64_t begin = this->ParseSpecial(node.At("cls"));
      const std::int64_t end = this->ParseSpecial(node.At("sep"));
      this->Parts->Frame(begin, end, type == "BertProcessing");
    }
    else if (type != "ByteLevel") // which changes offsets but not ids
    {
      node.Fail("unknown post-processor '" + type +
                "', expected one of TemplateProcessing, BertProcessing, RobertaProcessing, "
                "ByteLevel, Sequence.");
    }
    RequireKnownSettings(node, type);
  }

  /// ["[SEP]", 102]
  std::int64_t ParseSpecial(const JsonNode& node) const
  {
    const std::vector<JsonNode> both = node.Items();
    if (both.size() != 2)
    {
      node.FailExpected("a token and its id");
    }
    return this->SpecialId(node, both[1].Integer());
  }

  Template ParseTemplate(const JsonNode& node, const JsonNode& specials, int sequences) const
  {
    Template result;
    for (const JsonNode& item : node.Items())
    {
      const bool isSequence = !item.At("Sequence").IsNull();
      const JsonNode content = item.At(isSequence ? "Sequence" : "SpecialToken");
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
        for (const JsonNode& number : specials.At(id).At("ids").Items())
        {
          part.ids.push_back(this->SpecialId(number, number.Integer()));
        }
      }
      result.push_back(std::move(part));
    }
    return result;
  }
};

}

std::shared_ptr<Vocabulary> ParseVocabulary(const JsonNode& node)
{
  auto vocabulary = std::make_shared<Vocabulary>();
  if (!node.Get().is_object())
  {
    node.FailExpected("an object of tokens and their ids");
  }
  for (const auto& [token, id] : node.Get().items())
  {
    vocabulary->Add(token,
      JsonNode(id, "the id of token '" + token.substr(0, 80) + "'", node.GetSource()).Integer(),
      node.GetSource());
  }
  return vocabulary;
}

AddedToken ParseAddedToken(const JsonNode& node, std::int64_t id)
{
  AddedToken token;
  token.content = node.At("content").String();
  token.id = id;
  token.singleWord = node.At("single_word").Bool(false);
  token.stripLeft = node.At("lstrip").Bool(false);
  token.stripRight = node.At("rstrip").Bool(false);
  token.normalized = node.At("normalized").Bool(!node.At("special").Bool(false));
  return token;
}

std::shared_ptr<TokenizerParts> ParseTokenizerJson(const json& value, const std::string& source)
{
  return TokenizerParser(value, source).Parse();
}

}
