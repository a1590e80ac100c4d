#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

// Model files of SentencePiece for tests.

namespace atlas::test
{

/// A number as protocol buffers write it.
inline std::string Varint(std::uint64_t value)
{
  std::string bytes;
  for (; value >= 0x80; value >>= 7U)
  {
    bytes += static_cast<char>(static_cast<unsigned char>(0x80U | (value & 0x7FU)));
  }
  return bytes + static_cast<char>(static_cast<unsigned char>(value));
}

inline std::string NumberField(std::uint64_t number, std::uint64_t value)
{
  return Varint(number << 3U) + Varint(value);
}

inline std::string BytesField(std::uint64_t number, const std::string& bytes)
{
  return Varint(number << 3U | 2U) + Varint(bytes.size()) + bytes;
}

inline std::string FloatField(std::uint64_t number, float value)
{
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return Varint(number << 3U | 5U) + bytes;
}

/// One piece of a model.
struct PieceBytes
{
  std::string text;
  float score = 0;
  std::uint64_t type = 1;
};

struct ModelBytes
{
  std::uint64_t kind = 1; ///< 1: Unigram, 2: byte pairs
  std::string characterMap;
  bool addPrefixSpace = true;
  bool removeExtraSpaces = true;
};

/// A model file.
inline std::string SentencePieceFile(
  std::initializer_list<PieceBytes> pieces, const ModelBytes& model = {})
{
  std::string bytes;
  for (const PieceBytes& piece : pieces)
  {
    bytes += BytesField(
      1, BytesField(1, piece.text) + FloatField(2, piece.score) + NumberField(3, piece.type));
  }
  return bytes + BytesField(2, NumberField(3, model.kind)) +
         BytesField(3, BytesField(1, "test") + BytesField(2, model.characterMap) +
                         NumberField(3, model.addPrefixSpace ? 1 : 0) +
                         NumberField(4, model.removeExtraSpaces ? 1 : 0));
}

}
