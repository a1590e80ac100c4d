#include "SentencePieceFile.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/NumberText.h"
#include "Files/FileContent.h"

#include <cstring>

namespace atlas
{
namespace
{

/// A field of a message in the wire format of protocol buffers.
struct Field
{
  std::uint64_t number = 0;
  std::uint64_t type = 0;  ///< 0: varint, 1: 64 bits, 2: bytes, 5: 32 bits
  std::uint64_t value = 0; ///< of a varint or of 32 bits
  std::string_view bytes;
};

constexpr std::uint64_t VarintType = 0;
constexpr std::uint64_t LongType = 1;
constexpr std::uint64_t BytesType = 2;
constexpr std::uint64_t FixedType = 5;

/// Reads the fields of a message one after the other.
class MessageReader : public FailsIf<MessageReader>
{
public:
  MessageReader(std::string_view bytes, std::string name)
    : Bytes(bytes)
    , Name(std::move(name))
  {
  }

  /// Reads the next field. Returns false at the end of the message.
  bool Read(Field& field)
  {
    if (this->Position == this->Bytes.size())
    {
      return false;
    }
    const std::uint64_t key = this->Varint();
    field = {};
    field.number = key >> 3U;
    field.type = key & 7U;
    switch (field.type)
    {
      case VarintType:
        field.value = this->Varint();
        break;
      case LongType:
        this->Take(8);
        break;
      case BytesType:
        field.bytes = this->Take(this->Varint());
        break;
      case FixedType:
        field.value = LittleEndian(this->Take(4));
        break;
      default:
        this->Fail("a field of type 0, 1, 2 or 5, found type ", field.type);
    }
    this->FailIf(field.number == 0, "a field from number 1 on, found 0");
    return true;
  }

  /// Throws unless the field has a type.
  void Require(const Field& field, std::uint64_t type) const
  {
    this->FailIf(
      field.type != type, "field ", field.number, " of type ", type, ", found type ", field.type);
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... expected) const
  {
    throw FormatError(this->Name, ": byte ", this->Position, ": expected ", expected..., ".");
  }

private:
  std::string_view Bytes;
  std::string Name;
  std::size_t Position = 0;

  std::string_view Take(std::uint64_t count)
  {
    this->FailIf(count > this->Bytes.size() - this->Position, count, " more bytes, found ",
      this->Bytes.size() - this->Position);
    const std::string_view taken = this->Bytes.substr(this->Position, count);
    this->Position += taken.size();
    return taken;
  }

  std::uint64_t Varint()
  {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7)
    {
      const auto byte = static_cast<unsigned char>(this->Take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80)
      {
        return value;
      }
    }
    this->Fail("a number of at most 10 bytes, found more");
  }
};

void ReadPiece(std::string_view bytes, const std::string& source, SentencePieceTable& table)
{
  MessageReader reader(bytes, source + ": piece " + std::to_string(table.tokens.size()));
  std::string text;
  float score = 0;
  auto type = static_cast<std::int32_t>(TokenType::Normal);
  for (Field field; reader.Read(field);)
  {
    if (field.number == 1)
    {
      reader.Require(field, BytesType);
      text = field.bytes;
    }
    else if (field.number == 2)
    {
      reader.Require(field, FixedType);
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&score, &bits, sizeof(score));
    }
    else if (field.number == 3)
    {
      reader.Require(field, VarintType);
      type = field.value > 6 ? -1 : static_cast<std::int32_t>(field.value);
    }
  }
  table.tokens.push_back(std::move(text));
  table.scores.push_back(score);
  table.types.push_back(type);
}

void ReadTrainer(std::string_view bytes, const std::string& source, SentencePieceTable& table)
{
  constexpr std::uint64_t kind = 3;
  constexpr std::uint64_t spacesBehindWords = 24;
  MessageReader reader(bytes, source + ": the trainer's settings");
  for (Field field; reader.Read(field);)
  {
    if (field.number == kind)
    {
      reader.Require(field, VarintType);
      reader.FailIf(field.value != 1 && field.value != 2,
        "a model of kind 1 (Unigram) or 2 (byte pairs), found ", field.value,
        field.value == 3   ? " (words)"
        : field.value == 4 ? " (characters)"
                           : "");
      table.kind = field.value == 1 ? SentencePieceKind::Unigram : SentencePieceKind::BytePairs;
    }
    else if (field.number == spacesBehindWords)
    {
      reader.Require(field, VarintType);
      reader.FailIf(
        field.value != 0, "spaces before words, found a model with spaces behind words");
    }
  }
}

void ReadNormalizer(std::string_view bytes, const std::string& source, SentencePieceTable& table)
{
  MessageReader reader(bytes, source + ": the normalizer's settings");
  for (Field field; reader.Read(field);)
  {
    if (field.number == 2)
    {
      reader.Require(field, BytesType);
      table.characterMap = field.bytes;
    }
    else if (field.number >= 3 && field.number <= 5)
    {
      reader.Require(field, VarintType);
      bool& option = field.number == 3   ? table.addPrefixSpace
                     : field.number == 4 ? table.removeExtraSpaces
                                         : table.escapeSpaces;
      option = field.value != 0;
    }
  }
}

}

SentencePieceTable ParseSentencePieceModel(std::string_view bytes, const std::string& source)
{
  constexpr std::uint64_t pieces = 1;
  constexpr std::uint64_t trainer = 2;
  constexpr std::uint64_t normalizer = 3;
  const std::string content = DescribeContent(bytes);
  ThrowIf<FormatError>(!content.empty() && content != "a text" && content != "JSON", source,
    ": expected a SentencePiece model, found ", content, ".");
  SentencePieceTable table;
  table.kind = SentencePieceKind::Unigram; // where the file does not tell
  MessageReader reader(bytes, source);
  for (Field field; reader.Read(field);)
  {
    if (field.number < pieces || field.number > normalizer)
    {
      continue;
    }
    reader.Require(field, BytesType);
    if (field.number == pieces)
    {
      ReadPiece(field.bytes, source, table);
    }
    else if (field.number == trainer)
    {
      ReadTrainer(field.bytes, source, table);
    }
    else
    {
      ReadNormalizer(field.bytes, source, table);
    }
  }
  ThrowIf<FormatError>(
    table.tokens.empty(), source, ": expected a SentencePiece model, found no pieces.");
  return table;
}

}
