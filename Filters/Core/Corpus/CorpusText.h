#pragma once

#include "Base/NamedValues.h"
#include "Files/MappedFile.h"
#include "Files/NumpyArray.h"
#include "Recorder/OpenTransformer.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// What a document of a text file is.
enum class DocumentSplit
{
  Lines,      ///< each line that is not empty
  Paragraphs, ///< lines between empty ones
  Files       ///< the whole file
};
inline constexpr std::array<Named<DocumentSplit>, 3> DocumentSplits = { {
  { "Lines", DocumentSplit::Lines },
  { "Paragraphs", DocumentSplit::Paragraphs },
  { "Files", DocumentSplit::Files },
} };

inline constexpr std::int64_t DefaultWindow = 256;

/// How documents become sequences that a model runs.
struct CorpusTextOptions
{
  DocumentSplit split = DocumentSplit::Lines;
  bool addSpecialTokens = true; ///< those that the model was trained with, around each window
  std::int64_t window = 0;  ///< tokens of a sequence, with special tokens: 2 to the positions of
                            ///< the model; 0: DefaultWindow, or all positions if these are fewer
  std::int64_t overlap = 0; ///< tokens that a window repeats of the one before, in the same
                            ///< document, as context; less than half the window
};

/// Where a text goes on.
struct CorpusPosition
{
  std::int64_t file = 0;     ///< index of the file
  std::int64_t offset = 0;   ///< of the document in it: bytes, or rows of an array
  std::int64_t document = 0; ///< its number among all, from 0
  std::int64_t token = 0;    ///< of its tokens, where the next window begins
  std::int64_t queries = 0;  ///< tokens that count as queries before it

  bool operator==(const CorpusPosition& other) const
  {
    return this->file == other.file && this->offset == other.offset &&
           this->document == other.document && this->token == other.token &&
           this->queries == other.queries;
  }

  /// Whether a run can stop here, of windows that repeat `overlap` tokens of the one before.
  bool IsPossible(std::int64_t overlap) const
  {
    return this->file >= 0 && this->offset >= 0 && this->document >= 0 && this->queries >= 0 &&
           (this->token == 0 || this->token > overlap);
  }
};

/// Where what is encoded at a time of a text begin <= i < end ends: there, if it has at most `most`
/// bytes; else behind its last line of those, or if there is none before its last space, or behind
/// its last character. `most` is at least 4.
std::size_t EndOfPart(std::string_view text, std::size_t begin, std::size_t end, std::size_t most);

/// A sequence of a document.
struct CorpusWindow
{
  std::vector<std::int64_t> tokens; ///< with special tokens
  std::int64_t document = 0;        ///< number of the document, from 0
  std::int64_t begin = 0;      ///< which token of the document the first one is, special ones aside
  std::int64_t special = 0;    ///< special tokens before it
  std::int64_t count = 0;      ///< tokens of the document
  std::int64_t firstQuery = 0; ///< position of the first token that was in no window before
};

/// The window that is meant for a model. Throws OptionError for one out of range, and for a model
/// of images.
std::int64_t WindowOf(const CorpusTextOptions& options, const TransformerConfig& config);

/// Reads documents from files one after another, as windows of tokens. A file is read as its name
/// ends: .jsonl: a JSON object a line with "text", or with token ids as "tokens" or "input_ids";
/// .npy: token ids, a document a row, or [tokens] of one document; anything else: UTF-8 text. Files
/// are mapped, and one document at a time is encoded: a longer one than
/// Tokenizer::MaximumTextBytes as several documents, each up to EndOfPart. A text of JSON is
/// encoded in such parts, too, but remains one document.
class CorpusText
{
public:
  /// Throws OptionError for options or a position out of range, for a model of images and if there
  /// are no files, and FileError or FormatError for those that cannot be read. `model` must outlive
  /// this object.
  CorpusText(const OpenTransformer& model, const std::vector<std::string>& files,
    const CorpusTextOptions& options, const CorpusPosition& position = {});

  /// The next window, or std::nullopt at the end. Throws FormatError, with file and line, for what
  /// is no text or has tokens that the model does not have.
  std::optional<CorpusWindow> Next();

  /// Where the window after the last one begins.
  const CorpusPosition& Position() const { return this->Place; }

  /// The sizes of the files in bytes.
  const std::vector<std::uint64_t>& GetSizes() const { return this->Sizes; }

  /// How much was read, 0 to 1 of the bytes.
  double Done() const;

private:
  const OpenTransformer& Model;
  std::vector<std::string> Names;
  CorpusTextOptions Options;
  CorpusPosition Place;
  TextFrame Frame;                    ///< special tokens around each window
  std::vector<std::uint64_t> Sizes;   ///< of the files in bytes
  std::unique_ptr<MappedFile> File;   ///< the open one
  std::int64_t Opened = -1;           ///< its index
  LoadedArray Rows;                   ///< if it is an array
  std::vector<std::int64_t> Document; ///< the tokens of the current one
  bool HasDocument = false;
  std::int64_t End = 0; ///< offset behind the document

  std::int64_t SpecialTokens() const
  {
    return static_cast<std::int64_t>(this->Frame.before.size() + this->Frame.after.size());
  }
  void FindSpecialTokens();
  bool FindDocument();
  bool ReadDocument();
  std::vector<std::int64_t> ParseDocument(std::string_view text, const std::string& what) const;
  std::vector<std::int64_t> ParseObject(std::string_view line, const std::string& what) const;
  void CheckIds(const std::vector<std::int64_t>& ids, const std::string& what) const;
  bool ReadRow();
  bool ReadText(bool isJson);
};

}
