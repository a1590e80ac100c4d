#include "CorpusText.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/JsonText.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace atlas
{
namespace
{

std::string KindOf(const std::string& name)
{
  return std::filesystem::path(name).extension().string();
}

std::string_view TextOf(const MappedFile& file)
{
  return { reinterpret_cast<const char*>(file.Data()), file.Size() };
}

/// A line without its end, which may be \r\n.
std::string_view LineAt(std::string_view text, std::size_t begin)
{
  std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  if (!line.empty() && line.back() == '\r')
  {
    line.remove_suffix(1);
  }
  return line;
}

bool IsBlank(std::string_view line)
{
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::size_t AfterLine(std::string_view text, std::size_t begin)
{
  const std::size_t end = text.find('\n', begin);
  return end == std::string_view::npos ? text.size() : end + 1;
}

/// Where the document that begins at `begin`, which is not blank, ends.
std::size_t EndOfDocument(std::string_view text, std::size_t begin, DocumentSplit split)
{
  std::size_t end = AfterLine(text, begin);
  switch (split)
  {
    case DocumentSplit::Lines:
      return end;
    case DocumentSplit::Paragraphs:
      while (end < text.size() && !IsBlank(LineAt(text, end)))
      {
        end = AfterLine(text, end);
      }
      return end;
    case DocumentSplit::Files:
      break;
  }
  return text.size();
}

}

std::size_t EndOfPart(std::string_view text, std::size_t begin, std::size_t end, std::size_t most)
{
  if (end - begin <= most)
  {
    return end;
  }
  const std::string_view part = text.substr(begin, most);
  if (const std::size_t line = part.rfind('\n'); line != std::string_view::npos)
  {
    return begin + line + 1;
  }
  if (const std::size_t space = part.rfind(' '); space != std::string_view::npos && space > 0)
  {
    return begin + space; // which belongs to the word behind it
  }
  const auto isInCharacter = [&](std::size_t i)
  { return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U; };
  std::size_t last = begin + most;
  for (int i = 0; i < 3 && isInCharacter(last); ++i)
  {
    --last;
  }
  return last;
}

std::int64_t WindowOf(const CorpusTextOptions& options, const TransformerConfig& config)
{
  ThrowIf<OptionError>(config.input != InputKind::Tokens,
    "the model: expected one that reads text, found one of ",
    config.input == InputKind::Images ? "images." : "sound.");
  ThrowIf<OptionError>(config.encoder != nullptr,
    "the model: expected one that reads text alone, found one of architecture ",
    config.architecture, ", whose decoder needs what its encoder reads.");
  ThrowIf<OptionError>(config.vision != nullptr,
    "the model: expected one that reads text alone, found one of architecture ",
    config.architecture, "; choose the architecture of its text.");
  const std::int64_t most =
    config.positions > 0 ? config.positions : std::numeric_limits<std::int32_t>::max();
  const std::int64_t window = options.window == 0 ? std::min(DefaultWindow, most) : options.window;
  ThrowIf<OptionError>(window < 2 || window > most, "Window: expected 2 to ", most,
    " tokens, the positions of the model, found ", window, ".");
  return window;
}

CorpusText::CorpusText(const OpenTransformer& model, const std::vector<std::string>& files,
  const CorpusTextOptions& options, const CorpusPosition& position)
  : Model(model)
  , Names(files)
  , Options(options)
  , Place(position)
{
  this->Options.window = WindowOf(options, model.GetModel().GetConfig());
  ThrowIf<OptionError>(files.empty(), "Files: expected at least one file of text, found none.");
  for (const std::string& name : files)
  {
    std::error_code error;
    this->Sizes.push_back(std::filesystem::file_size(name, error));
    if (error)
    {
      throw FileError(name, ": ", error.message(), ".");
    }
  }
  this->FindSpecialTokens();
  const std::int64_t special = this->SpecialTokens();
  ThrowIf<OptionError>(
    options.overlap < 0 || options.overlap > (this->Options.window - special - 1) / 2,
    "Overlap: expected 0 to ", std::max<std::int64_t>(this->Options.window - special - 1, 0) / 2,
    " tokens, less than half of the window, found ", options.overlap, ".");
  ThrowIf<OptionError>(!position.IsPossible(options.overlap),
    "the text: expected to go on where a window ended, found token ", position.token,
    " of document ", position.document, " with an overlap of ", options.overlap, ".");
}

/// Finds what the tokenizer adds to a text.
void CorpusText::FindSpecialTokens()
{
  const bool hasText = std::any_of(this->Names.begin(), this->Names.end(),
    [](const std::string& name) { return KindOf(name) != ".npy"; });
  if (this->Options.addSpecialTokens && hasText)
  {
    this->Frame = this->Model.GetTokenizer().FrameOfTexts();
  }
}

double CorpusText::Done() const
{
  double all = 0;
  double read = 0;
  for (std::size_t i = 0; i < this->Sizes.size(); ++i)
  {
    const auto size = static_cast<double>(this->Sizes[i]);
    all += size;
    if (i < ToIndex(this->Place.file))
    {
      read += size;
    }
    else if (i == ToIndex(this->Place.file) && KindOf(this->Names[i]) != ".npy")
    {
      read += std::min(static_cast<double>(this->Place.offset), size);
    }
  }
  return all > 0 ? read / all : 1;
}

std::optional<CorpusWindow> CorpusText::Next()
{
  if (!this->FindDocument())
  {
    return std::nullopt;
  }
  const std::int64_t most = std::max<std::int64_t>(this->Options.window - this->SpecialTokens(), 1);
  const std::int64_t length = this->Document.size();
  CorpusWindow window;
  const bool isFirst = this->Place.token == 0;
  const std::int64_t repeated = isFirst ? 0 : this->Options.overlap;
  window.begin = this->Place.token - repeated;
  window.special = this->Frame.before.size();
  window.document = this->Place.document;
  window.firstQuery = repeated > 0 ? window.special + repeated : 0;
  const std::int64_t end = std::min(window.begin + most, length);
  window.count = end - window.begin;
  window.tokens = this->Frame.before;
  window.tokens.insert(
    window.tokens.end(), this->Document.begin() + window.begin, this->Document.begin() + end);
  window.tokens.insert(window.tokens.end(), this->Frame.after.begin(), this->Frame.after.end());
  this->Place.token = end;
  this->Place.queries += static_cast<std::int64_t>(window.tokens.size()) - window.firstQuery;
  if (end == length)
  {
    this->HasDocument = false;
    this->Place.offset = this->End;
    ++this->Place.document;
    this->Place.token = 0;
  }
  return window;
}

/// Makes the document at the place the current one, or the next one that has tokens.
bool CorpusText::FindDocument()
{
  while (!this->HasDocument && ToIndex(this->Place.file) < this->Names.size())
  {
    if (this->Opened != this->Place.file)
    {
      const std::string& name = this->Names[this->Place.file];
      this->File = std::make_unique<MappedFile>(name);
      this->Rows = KindOf(name) == ".npy"
                     ? ParseNumpy(this->File->Data(), this->File->Size(), nullptr, name)
                     : LoadedArray();
      this->Opened = this->Place.file;
    }
    if (!this->ReadDocument())
    {
      this->File->RequireIntact();
      ++this->Place.file;
      this->Place.offset = 0;
    }
    else if (this->Place.token >= static_cast<std::int64_t>(this->Document.size()))
    {
      this->Place.offset = this->End; // no tokens
      this->Place.token = 0;
    }
    else
    {
      this->HasDocument = true;
    }
  }
  return this->HasDocument;
}

/// Reads the document at the place in the open file; false at its end.
bool CorpusText::ReadDocument()
{
  const std::string kind = KindOf(this->Names[this->Place.file]);
  return kind == ".npy" ? this->ReadRow() : this->ReadText(kind == ".jsonl");
}

bool CorpusText::ReadText(bool isJson)
{
  const std::string& name = this->Names[this->Place.file];
  const std::string_view text = TextOf(*this->File);
  std::size_t begin = this->Place.offset;
  while (begin < text.size() && IsBlank(LineAt(text, begin)))
  {
    begin = AfterLine(text, begin);
  }
  if (begin >= text.size())
  {
    this->Place.offset = text.size();
    return false;
  }
  const DocumentSplit split = isJson ? DocumentSplit::Lines : this->Options.split;
  const std::size_t whole = EndOfDocument(text, begin, split);
  const std::size_t end =
    isJson ? whole : EndOfPart(text, begin, whole, Tokenizer::MaximumTextBytes);
  const std::string_view document = split == DocumentSplit::Lines
                                      ? LineAt(text.substr(0, end), begin)
                                      : text.substr(begin, end - begin);
  const auto where = [&]
  {
    return name + ", line " +
           std::to_string(
             1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
  };
  try
  {
    this->Document =
      isJson ? this->ParseObject(document, name) : this->ParseDocument(document, name);
  }
  catch (const Error& e)
  {
    const std::string message = e.what();
    throw FormatError(where(),
      message.compare(0, name.size(), name) == 0 ? message.substr(name.size()) : ": " + message);
  }
  this->End = end;
  return true;
}

std::vector<std::int64_t> CorpusText::ParseDocument(
  std::string_view text, const std::string& what) const
{
  ThrowIf<FormatError>(
    text.find('\0') != std::string_view::npos, what, ": expected UTF-8 text, found a zero byte.");
  std::vector<std::int64_t> ids;
  for (std::size_t begin = 0; begin < text.size();)
  {
    const std::size_t end = EndOfPart(text, begin, text.size(), Tokenizer::MaximumTextBytes);
    const std::vector<std::int64_t> part =
      this->Model.GetTokenizer().EncodeIds(text.substr(begin, end - begin));
    ids.insert(ids.end(), part.begin(), part.end());
    begin = end;
  }
  this->CheckIds(ids, what);
  return ids;
}

std::vector<std::int64_t> CorpusText::ParseObject(
  std::string_view line, const std::string& what) const
{
  const nlohmann::json object = ParseJson(line, what, "the line");
  if (!object.is_object())
  {
    throw FormatError(what, ": expected a JSON object, found ", Describe(object), ".");
  }
  const auto text = object.find("text");
  if (text != object.end() && text->is_string())
  {
    return this->ParseDocument(text->get_ref<const std::string&>(), what);
  }
  for (const char* name : { "tokens", "input_ids" })
  {
    const auto found = object.find(name);
    if (found != object.end() && found->is_array() &&
        std::all_of(found->begin(), found->end(),
          [](const nlohmann::json& id) { return id.is_number_integer(); }))
    {
      auto ids = found->get<std::vector<std::int64_t>>();
      this->CheckIds(ids, what);
      return ids;
    }
  }
  throw FormatError(what,
    ": expected a text as \"text\", or integers as \"tokens\" or \"input_ids\", found neither.");
}

void CorpusText::CheckIds(const std::vector<std::int64_t>& ids, const std::string& what) const
{
  const std::int64_t vocabulary = this->Model.GetModel().GetConfig().vocabulary;
  for (const std::int64_t id : ids)
  {
    ThrowIf<FormatError>(id < 0 || id >= vocabulary, what, ": expected token ids from 0 to ",
      vocabulary - 1, ", found ", id, ".");
  }
}

/// Reads a row of an array of ids.
bool CorpusText::ReadRow()
{
  const std::string& name = this->Names[this->Place.file];
  const TensorView& array = this->Rows.view;
  const Shape& shape = array.shape;
  if (shape.empty() || shape.size() > 2 || IsFloating(array.dtype))
  {
    throw FormatError(name, ": expected integers [documents, tokens] or [tokens], found ",
      atlas::Name(array.dtype), " ", ToString(shape), ".");
  }
  const std::int64_t rows = shape.size() == 2 ? shape[0] : 1;
  if (this->Place.offset >= rows)
  {
    return false;
  }
  const std::int64_t columns = shape.back();
  this->Document.clear();
  for (std::int64_t i = 0; i < columns; ++i)
  {
    this->Document.push_back(
      static_cast<std::int64_t>(array.At(ToIndex(this->Place.offset * columns + i))));
  }
  this->CheckIds(this->Document, name + ", row " + std::to_string(this->Place.offset));
  this->End = this->Place.offset + 1;
  return true;
}

}
