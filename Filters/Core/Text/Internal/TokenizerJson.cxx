#include "TokenizerJson.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "CharacterPairModel.h"
#include "PieceText.h"
#include "UnigramModel.h"

#include <functional>
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
  node.FailIf(node.IsNull(), "a vocabulary for byte pair encoding needs its merges, found none.");
  std::vector<Merge> merges;
  for (const JsonNode& merge : node.Items())
  {
    if (merge.Get().is_string())
    {
      merges.push_back(
        ParseMerge(merge.String(), node.GetSource() + ": merge " + std::to_string(merges.size())));
      continue;
    }
    const std::vector<JsonNode> both = merge.Pair("a merge of two tokens");
    std::string left = both[0].String();
    merges.emplace_back(std::move(left), both[1].String());
  }
  return merges;
}

/// The settings that a component may have, beside its type.
using KnownSettings = std::set<std::string_view>;

/// Others are refused, since they would change ids in a way that is not known.
void RequireKnownSettings(
  const JsonNode& component, const std::string& type, const KnownSettings& known)
{
  for (const auto& item : component.Get().items())
  {
    const bool says = !item.value().is_null() && item.value() != false;
    component.FailIf(says && item.key() != "type" && known.count(item.key()) == 0,
      "unknown setting '", item.key().substr(0, 80), "' of ", type.substr(0, 80),
      ", expected none that is not known.");
  }
}

template<class Value>
using ByName = std::map<std::string, Value, std::less<>>;

/// The value of a name, which must be there.
template<class Value>
const Value& Choose(const JsonNode& node, const ByName<Value>& values, const char* expected)
{
  const auto found = values.find(node.String());
  node.FailExpectedIf(found == values.end(), expected);
  return found->second;
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
      throw FormatError(this->Parts->source, ": expected the file to hold a JSON object, found ",
        Describe(this->Root.Get()), ".");
    }
    this->ParseComponent(Normalizers, this->Root.At("normalizer"));
    this->ParseComponent(PreTokenizers, this->Root.At("pre_tokenizer"));
    this->EndByteLevel();
    this->ParseModel(this->Root.At("model"));
    this->ParseAddedTokens(this->Root.At("added_tokens"));
    this->ParseDecoder(this->Root.At("decoder"), 0);
    this->ParseComponent(PostProcessors, this->Root.At("post_processor"));
    return this->Parts;
  }

private:
  JsonNode Root;
  std::shared_ptr<TokenizerParts> Parts;
  bool ByteLevel = false; ///< tokens are of bytes
  bool Framed = false;    ///< a post-processor adds tokens

  /// A type of component: what it may say, and how it is read.
  struct Component
  {
    KnownSettings settings;
    std::function<void(TokenizerParser& parser, const JsonNode& node)> parse;
  };
  /// Components of which a Sequence in the list `items` may be made.
  struct Components
  {
    const char* kind;
    const char* items;
    ByName<Component> types;
  };

  /// A normalizer without settings.
  static Component Simple(const TextNormalization& normalization)
  {
    return { {}, [normalization](TokenizerParser& parser, const JsonNode& /*node*/)
      { parser.Parts->normalizations.push_back(normalization); } };
  }

  static const Components Normalizers;
  static const Components PreTokenizers;
  static const Components PostProcessors;
  static const ByName<Component> Models;

  void ParseComponent(const Components& known, const JsonNode& node, int depth = 0)
  {
    if (node.IsNull())
    {
      return;
    }
    const std::string type = TypeOf(node, depth);
    if (type == "Sequence")
    {
      for (const JsonNode& item : node.At(known.items).Items())
      {
        this->ParseComponent(known, item, depth + 1);
      }
      RequireKnownSettings(node, type, { known.items });
      return;
    }
    const auto found = known.types.find(type);
    node.FailIf(found == known.types.end(), "unknown ", known.kind, " '", type,
      "', expected one of ", Joined(known.types, [](const auto& item) { return item.first; }),
      ", Sequence.");
    found->second.parse(*this, node);
    RequireKnownSettings(node, type, found->second.settings);
  }

  static std::string TypeOf(const JsonNode& node, int depth)
  {
    node.FailIf(
      depth > MaximumDepth, "expected sequences of at most ", MaximumDepth, " levels, found more.");
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
    model.FailIf(model.IsNull(), "expected the tokenizer's model, found none.");
    const std::string kind = KindOfModel(model);
    const auto found = Models.find(kind);
    const bool isKnown = found != Models.end();
    const bool isOnBytes = this->ByteLevel && kind != "BPE";
    model.FailIf(!isKnown || isOnBytes,
      "expected a tokenizer of byte pairs (BPE), Unigram, WordPiece or WordLevel, found ", kind,
      isKnown ? " on bytes" : "",
      ", which is not supported; token ids can be given instead of text.");
    found->second.parse(*this, model);
    RequireKnownSettings(model, kind, found->second.settings);
  }

  void ParseBpe(const JsonNode& model)
  {
    const JsonNode dropout = model.At("dropout");
    dropout.FailExpectedIf(
      !dropout.IsNull() && dropout.Get() != 0, "null: the same text must give the same tokens");
    this->ByteLevel ? this->ParseBytePairs(model) : this->ParseCharacterPairs(model);
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
    const JsonNode prefix = model.At("continuing_subword_prefix");
    prefix.FailExpectedIf(!prefix.String("").empty(), "none in BPE on bytes");
    const std::shared_ptr<Vocabulary> vocabulary = ParseVocabulary(model.At("vocab"));
    const UnknownParts unknown = { ParseUnknown(model, *vocabulary),
      model.At("fuse_unk").Bool(false) };
    this->Parts->model = std::make_shared<BytePairModel>(vocabulary,
      ParseMerges(model.At("merges")), model.At("ignore_merges").Bool(false), model.GetSource(),
      model.At("end_of_word_suffix").String(""), unknown);
  }

  void ParseCharacterPairs(const JsonNode& model) const
  {
    const std::shared_ptr<Vocabulary> vocabulary = ParseVocabulary(model.At("vocab"));
    CharacterPairModel::Options options;
    options.continuation = model.At("continuing_subword_prefix").String("");
    options.wordEnd = model.At("end_of_word_suffix").String("");
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
  void ParseUnigram(const JsonNode& model)
  {
    const auto vocabulary = std::make_shared<Vocabulary>();
    std::vector<UnigramModel::Piece> pieces;
    for (const JsonNode& item : model.At("vocab").Items())
    {
      const std::vector<JsonNode> both = item.Pair("a token and its score");
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
      unknown.FailExpectedIf(
        vocabulary->TokenOf(*options.unknown) == nullptr, "an id of the vocabulary");
    }
    options.byteFallback = model.At("byte_fallback").Bool(false);
    this->Parts->unknown = options.unknown;
    this->Parts->model =
      std::make_shared<UnigramModel>(vocabulary, pieces, options, model.GetSource());
  }

  void ParseWordPiece(const JsonNode& model)
  {
    WordPieceModel::Options options;
    options.unknown = model.At("unk_token").String(options.unknown);
    options.continuation = model.At("continuing_subword_prefix").String(options.continuation);
    const JsonNode maximum = model.At("max_input_chars_per_word");
    if (!maximum.IsNull())
    {
      maximum.FailExpectedIf(maximum.Integer() < 0, "an integer from 0 on");
      options.maximumCharacters = static_cast<std::size_t>(maximum.Integer());
    }
    this->Parts->hasSegments = true;
    this->Parts->model = std::make_shared<WordPieceModel>(
      ParseVocabulary(model.At("vocab")), options, model.GetSource());
  }

  void ParseWordLevel(const JsonNode& model)
  {
    const JsonNode decoder = this->Root.At("decoder");
    const bool isFused = !decoder.IsNull() && TypeOf(decoder, 0) == "Fuse";
    this->Parts->model = std::make_shared<WordLevelModel>(ParseVocabulary(model.At("vocab")),
      model.At("unk_token").String(""), isFused ? "" : " ", model.GetSource());
  }

  template<class Normalization>
  void Add(Normalization normalization)
  {
    this->Parts->normalizations.emplace_back(std::move(normalization));
  }

  void ParseBertNormalizer(const JsonNode& node)
  {
    const bool lowerCase = node.At("lowercase").Bool(true);
    this->Add(BertNormalization{ node.At("clean_text").Bool(true),
      node.At("handle_chinese_chars").Bool(true), node.At("strip_accents").Bool(lowerCase),
      lowerCase });
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
      text.FailExpectedIf(replace.text.empty(), "a text that is not empty");
    }
    this->Add(std::move(replace));
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
    this->Add(ReplaceClusters{ std::make_shared<CharacterMap>(*bytes, this->Parts->source) });
  }

  void AddSplit(const std::string& expression, SplitBehavior behavior = SplitBehavior::Isolated,
    bool invert = false)
  {
    this->Parts->preTokenizations.emplace_back(
      SplitByExpression{ RegularExpression(expression, this->Parts->source), behavior, invert });
  }

  void ParseFixedLength(const JsonNode& node)
  {
    constexpr std::int64_t most = 65535; // PCRE2 counts no further
    const JsonNode length = node.At("length");
    const std::int64_t characters = length.Integer(5);
    length.FailExpectedIf(characters < 1 || characters > most, "an integer from 1 to ", most);
    this->AddSplit("(?s:.{1," + std::to_string(characters) + "})");
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
    static const ByName<SplitBehavior> behaviors = {
      { "Isolated", SplitBehavior::Isolated },
      { "Removed", SplitBehavior::Removed },
      { "MergedWithPrevious", SplitBehavior::MergedWithPrevious },
      { "MergedWithNext", SplitBehavior::MergedWithNext },
      { "Contiguous", SplitBehavior::Contiguous },
    };
    return node.IsNull() ? SplitBehavior::Isolated
                         : Choose(node, behaviors,
                             "Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
  }

  /// Where Metaspace, a pre-tokenizer or a decoder, adds its mark.
  static PrefixMark ParsePrefix(const JsonNode& node)
  {
    const JsonNode replacement = node.At("replacement");
    replacement.FailExpectedIf(
      !replacement.IsNull() && replacement.String() != SpaceMark, "U+2581");
    const JsonNode scheme = node.At("prepend_scheme");
    if (scheme.IsNull()) // old files
    {
      return node.At("add_prefix_space").Bool(true) ? PrefixMark::Always : PrefixMark::Never;
    }
    static const ByName<PrefixMark> schemes = { { "always", PrefixMark::Always },
      { "first", PrefixMark::First }, { "never", PrefixMark::Never } };
    return Choose(scheme, schemes, "always, first or never");
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
    node.FailIf(this->Parts->TokenOf(id) == nullptr, "the special token's id ", id,
      " is not in the vocabulary.");
    return id;
  }

  /// The tokens of a second post-processor are not added to those of the first.
  void BeginFrame(const JsonNode& node)
  {
    node.FailIf(this->Framed,
      "expected a single post-processor that adds tokens, found a second one of the type ",
      node.At("type").String(), ".");
    this->Framed = true;
  }

  void ParseTemplates(const JsonNode& node)
  {
    this->BeginFrame(node);
    const JsonNode specials = node.At("special_tokens");
    this->Parts->single = this->ParseTemplate(node.At("single"), specials, 1);
    this->Parts->pair = this->ParseTemplate(node.At("pair"), specials, 2);
  }

  void ParseFrame(const JsonNode& node)
  {
    this->BeginFrame(node);
    const std::int64_t begin = this->ParseSpecial(node.At("cls"));
    const std::int64_t end = this->ParseSpecial(node.At("sep"));
    this->Parts->Frame(begin, end, node.At("type").String() == "BertProcessing");
  }

  /// ["[SEP]", 102]
  std::int64_t ParseSpecial(const JsonNode& node) const
  {
    const std::vector<JsonNode> both = node.Pair("a token and its id");
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
      content.At("type_id").FailExpectedIf(
        type < 0 || type > std::numeric_limits<std::int32_t>::max(),
        "an integer from 0 to 2^31 - 1");
      part.type = static_cast<std::int32_t>(type);
      if (isSequence)
      {
        part.sequence = id == "B" ? 1 : 0;
        content.At("id").FailExpectedIf((id != "A" && id != "B") || part.sequence >= sequences,
          sequences == 1 ? "the sequence A" : "the sequence A or B");
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

using Parser = TokenizerParser;

const ByName<Parser::Component> Parser::Models = {
  { "BPE", { { "vocab", "merges", "dropout", "unk_token", "continuing_subword_prefix",
               "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges" },
             &Parser::ParseBpe } },
  { "Unigram", { { "vocab", "unk_id", "byte_fallback" }, &Parser::ParseUnigram } },
  { "WordPiece",
    { { "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word" },
      &Parser::ParseWordPiece } },
  { "WordLevel", { { "vocab", "unk_token" }, &Parser::ParseWordLevel } },
};

const KnownSettings ByteLevelSettings = { "add_prefix_space", "use_regex", "trim_offsets" };

const Parser::Components Parser::Normalizers = { "normalizer", "normalizers",
  {
    { "BertNormalizer", { { "clean_text", "handle_chinese_chars", "strip_accents", "lowercase" },
                          &Parser::ParseBertNormalizer } },
    { "ByteLevel", { ByteLevelSettings,
                     [](Parser& parser, const JsonNode& /*node*/)
                     {
                       parser.ByteLevel = true;
                       parser.Add(ByteLevelText{});
                     } } },
    { "Lowercase", Simple(LowerCase{}) },
    { "NFC", Simple(NormalizationForm::NFC) },
    { "NFD", Simple(NormalizationForm::NFD) },
    { "NFKC", Simple(NormalizationForm::NFKC) },
    { "NFKD", Simple(NormalizationForm::NFKD) },
    { "Nmt", Simple(CleanControls{}) },
    { "Precompiled", { { "precompiled_charsmap" }, &Parser::ParsePrecompiled } },
    { "Prepend", { { "prepend" }, [](Parser& parser, const JsonNode& node)
                   { parser.Add(PrependText{ node.At("prepend").String() }); } } },
    { "Replace", { { "pattern", "content" }, &Parser::ParseReplace } },
    { "Strip", { { "strip_left", "strip_right" },
                 [](Parser& parser, const JsonNode& node)
                 {
                   parser.Add(StripSpaces{
                     node.At("strip_left").Bool(true), node.At("strip_right").Bool(true) });
                 } } },
    { "StripAccents", Simple(RemoveMarks{}) },
  } };

const Parser::Components Parser::PreTokenizers = { "pre-tokenizer", "pretokenizers",
  {
    { "BertPreTokenizer", { {}, [](Parser& parser, const JsonNode& /*node*/)
                            { parser.Parts->preTokenizations.emplace_back(SplitLikeBert{}); } } },
    { "ByteLevel", { ByteLevelSettings, &Parser::ParseByteLevel } },
    { "CharDelimiterSplit", { { "delimiter" },
                              [](Parser& parser, const JsonNode& node)
                              {
                                parser.AddSplit(LiteralExpression(node.At("delimiter").String()),
                                  SplitBehavior::Removed);
                              } } },
    { "Digits", { { "individual_digits" },
                  [](Parser& parser, const JsonNode& node)
                  {
                    parser.AddSplit(
                      node.At("individual_digits").Bool(false) ? R"(\p{N})" : R"(\p{N}+)");
                  } } },
    { "FixedLength", { { "length" }, &Parser::ParseFixedLength } },
    { "Metaspace", { { "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep" },
                     [](Parser& parser, const JsonNode& node)
                     {
                       parser.Parts->preTokenizations.emplace_back(
                         Metaspace{ ParsePrefix(node), node.At("split").Bool(true) });
                     } } },
    { "Punctuation",
      { { "behavior" }, [](Parser& parser, const JsonNode& node)
        { parser.AddSplit(PunctuationExpression, ParseBehavior(node.At("behavior"))); } } },
    { "Split", { { "pattern", "behavior", "invert" },
                 [](Parser& parser, const JsonNode& node)
                 {
                   parser.AddSplit(ParsePattern(node.At("pattern")),
                     ParseBehavior(node.At("behavior")), node.At("invert").Bool(false));
                 } } },
    { "Whitespace", { {}, [](Parser& parser, const JsonNode& /*node*/)
                      { parser.AddSplit(WordsExpression, SplitBehavior::Removed, true); } } },
    { "WhitespaceSplit", { {}, [](Parser& parser, const JsonNode& /*node*/)
                           { parser.AddSplit(R"(\s+)", SplitBehavior::Removed); } } },
  } };

const Parser::Components Parser::PostProcessors = { "post-processor", "processors",
  {
    { "BertProcessing", { { "cls", "sep" }, &Parser::ParseFrame } },
    { "ByteLevel", // changes offsets but not ids
      { ByteLevelSettings, [](Parser& /*parser*/, const JsonNode& /*node*/) {} } },
    { "RobertaProcessing",
      { { "cls", "sep", "trim_offsets", "add_prefix_space" }, &Parser::ParseFrame } },
    { "TemplateProcessing", { { "single", "pair", "special_tokens" }, &Parser::ParseTemplates } },
  } };

}

std::shared_ptr<Vocabulary> ParseVocabulary(const JsonNode& node)
{
  auto vocabulary = std::make_shared<Vocabulary>();
  node.FailExpectedIf(!node.Get().is_object(), "an object of tokens and their ids");
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
