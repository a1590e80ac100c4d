#pragma once

#include "NumpyBytes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Picture files made byte by byte, by their standards and without libpng or libjpeg.
namespace atlas::test
{

inline std::string BigEndian(std::uint64_t number, std::size_t size)
{
  std::string bytes(size, '\0');
  for (std::size_t i = size; i-- > 0; number >>= 8U)
  {
    bytes[i] = static_cast<char>(number & 0xFFU);
  }
  return bytes;
}

inline std::string PngChunk(const std::string& type, const std::string& data)
{
  return BigEndian(data.size(), 4) + type + data + BigEndian(Crc32(type + data), 4);
}

/// zlib's format with a single block that is not compressed, of less than 64 KiB.
inline std::string ZlibStored(const std::string& data)
{
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : data)
  {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  const std::string size = BigEndian(data.size(), 2);
  const std::string complement = BigEndian(~data.size() & 0xFFFFU, 2);
  return std::string("\x78\x01\x01") + size[1] + size[0] + complement[1] + complement[0] + data +
         BigEndian(b << 16U | a, 4);
}

inline constexpr std::string_view PngMagic = "\x89PNG\r\n\x1a\n";

/// Colour types of PNG.
enum class PngColor : std::uint8_t
{
  Gray = 0,
  Rgb = 2,
  Palette = 3,
  GrayAlpha = 4,
  Rgba = 6
};

/// A PNG of rows as they are stored, each behind the number of its filter; `chunks` come between
/// the header and the data.
inline std::string PngFile(std::uint32_t width, std::uint32_t height, int depth, PngColor color,
  const std::string& rows, const std::string& chunks = {})
{
  const std::string header = BigEndian(width, 4) + BigEndian(height, 4) + static_cast<char>(depth) +
                             static_cast<char>(color) + std::string(3, '\0');
  return std::string(PngMagic) + PngChunk("IHDR", header) + chunks +
         PngChunk("IDAT", ZlibStored(rows)) + PngChunk("IEND", "");
}

inline std::string JpegSegment(char marker, const std::string& data)
{
  return std::string("\xFF") + marker + BigEndian(data.size() + 2, 2) + data;
}

/// A baseline JPEG of 8 x 8 pixels in `components` components, each of the same value 178 at every
/// pixel: its quantizers are 1, and its only coefficient is 8 (178 - 128) = 400, nine bits long.
/// Each Huffman table has one code, 0: "nine bits follow" and "end of block".
inline std::string JpegFile(int components = 1)
{
  std::string frame = "\x08" + BigEndian(8, 2) + BigEndian(8, 2) + static_cast<char>(components);
  std::string scan(1, static_cast<char>(components));
  std::string bits;
  for (int c = 1; c <= components; ++c)
  {
    frame += std::string{ static_cast<char>(c), '\x11', '\0' };
    scan += std::string{ static_cast<char>(c), '\0' };
    bits += "01100100000"; // 0, the nine bits of 400, 0
  }
  bits += std::string((8 - bits.size() % 8) % 8, '1');
  std::string data;
  for (std::size_t i = 0; i < bits.size(); i += 8)
  {
    data += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
  }
  const auto table = [](char kind, char symbol)
  { return std::string(1, kind) + '\1' + std::string(15, '\0') + symbol; };
  return "\xFF\xD8" + JpegSegment('\xDB', std::string(1, '\0') + std::string(64, '\1')) +
         JpegSegment('\xC0', frame) + JpegSegment('\xC4', table('\0', '\x09')) +
         JpegSegment('\xC4', table('\x10', '\0')) +
         JpegSegment('\xDA', scan + std::string("\0\x3F\0", 3)) + data + "\xFF\xD9";
}

}
