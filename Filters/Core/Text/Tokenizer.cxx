#include "Tokenizer.h"

#include "Base/Error.h"
#include "Internal/TokenizerParts.h"

namespace atlas
{
namespace
{

void CheckText(std::string_view text)
{
  ThrowIf<FormatError>(text.size() > Tokenizer::MaximumTextBytes, "the text: expected at most ",
    Tokenizer::MaximumTextBytes, " bytes, found ", text.size(), ".");
  RequireUtf8(text, "the text");
}

/// What SentencePiece decodes the unknown token to.
constexpr const char* UnknownText = " \xE2\x81\x87 ";

/// The token of an id, which must be in the vocabulary.
const std::string& TokenOf(const TokenizerParts& parts, std::int64_t id)
{
  const std::string* token = parts.TokenOf(id);
  if (token == nullptr)
  {
    throw OptionError("token id ", id, ": expected an id of the vocabulary ", parts.source,
      ", from 0 to ", parts.Size() - 1, ".");
  }
  return *token;
}

}

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerParts> parts)
  : Parts(std::move(parts))
{
}

void Tokenizer::Append(Encoding& encoding, std::int64_t id, std::int32_t type) const
{
  encoding.ids.push_back(id);
  encoding.tokens.push_back(this->Label(id));
  encoding.types.push_back(type);
}

void Tokenizer::Append(Encoding& encoding, std::string_view text, std::int32_t type) const
{
  std::vector<std::int64_t> ids;
  this->Parts->Encode(text, ids);
  for (const std::int64_t id : ids)
  {
    this->Append(encoding, id, type);
  }
}

Encoding Tokenizer::Assemble(
  const std::vector<std::string_view>& texts, bool addSpecialTokens) const
{
  for (const std::string_view text : texts)
  {
    CheckText(text);
  }
  Encoding encoding;
  for (const TemplatePart& part : texts.size() == 1 ? this->Parts->single : this->Parts->pair)
  {
    if (part.sequence >= 0)
    {
      this->Append(encoding, texts.at(part.sequence), part.type);
      continue;
    }
    for (const std::int64_t id : part.ids)
    {
      if (addSpecialTokens)
      {
        this->Append(encoding, id, part.type);
      }
    }
  }
  return encoding;
}

Encoding Tokenizer::Encode(std::string_view text, bool addSpecialTokens) const
{
  return this->Assemble({ text }, addSpecialTokens);
}

std::vector<std::int64_t> Tokenizer::EncodeIds(std::string_view text) const
{
  CheckText(text);
  std::vector<std::int64_t> ids;
  this->Parts->Encode(text, ids);
  return ids;
}

TextFrame Tokenizer::FrameOfTexts() const
{
  TextFrame frame;
  auto* side = &frame.before;
  for (const TemplatePart& part : this->Parts->single)
  {
    side = part.sequence >= 0 ? &frame.after : side;
    side->insert(side->end(), part.ids.begin(), part.ids.end());
  }
  return frame;
}

Encoding Tokenizer::EncodePair(
  std::string_view first, std::string_view second, bool addSpecialTokens) const
{
  return this->Assemble({ first, second }, addSpecialTokens);
}

Encoding Tokenizer::EncodePrompt(std::string_view line, bool addSpecialTokens) const
{
  const std::size_t tab = this->HasSegments() ? line.find('\t') : std::string_view::npos;
  if (tab == std::string_view::npos)
  {
    return this->Encode(line, addSpecialTokens);
  }
  ThrowIf<FormatError>(line.find('\t', tab + 1) != std::string_view::npos,
    "the text: expected one or two segments, separated by a tab, found more.");
  return this->EncodePair(line.substr(0, tab), line.substr(tab + 1), addSpecialTokens);
}

std::string Tokenizer::Decode(const std::vector<std::int64_t>& ids) const
{
  std::string text;
  for (const std::int64_t id : ids)
  {
    const std::string& token = TokenOf(*this->Parts, id);
    if (id == this->Parts->unknown)
    {
      text += UnknownText;
    }
    else if (!this->HasSegments() && this->Parts->addedTexts.count(id) > 0)
    {
      text += token;
    }
    else
    {
      this->Parts->model->Decode(token, text);
    }
  }
  const bool dropSpace = this->Parts->hasPrefixSpace && !text.empty() && text.front() == ' ';
  return ReplaceInvalidUtf8(dropSpace ? std::string_view(text).substr(1) : text);
}

std::string Tokenizer::Label(std::int64_t id) const
{
  const std::string& token = TokenOf(*this->Parts, id);
  return this->Parts->addedTexts.count(id) > 0 ? token : this->Parts->model->Label(token);
}

std::optional<std::int64_t> Tokenizer::IdOf(std::string_view token) const
{
  return this->Parts->IdOf(token);
}

std::int64_t Tokenizer::VocabularySize() const
{
  return this->Parts->Size();
}

bool Tokenizer::HasSegments() const
{
  return this->Parts->hasSegments;
}

std::string_view Tokenizer::Kind() const
{
  return this->Parts->model->Kind();
}

}
