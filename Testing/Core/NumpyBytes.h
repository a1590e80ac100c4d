#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// `value` as `bytes` little-endian bytes.
inline std::string LittleEndian(std::uint64_t value, unsigned bytes)
{
  std::string text;
  for (unsigned i = 0; i < bytes; ++i)
  {
    text += static_cast<char>(static_cast<unsigned char>(value >> (8U * i) & 0xFFU));
  }
  return text;
}

/// The bytes of floats, little-endian.
inline std::string FloatBytes(const std::vector<float>& values)
{
  std::string bytes;
  for (const float value : values)
  {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes += LittleEndian(bits, 4);
  }
  return bytes;
}

/// A .npy file by the description of its format: version 1.0, header padded to 64 bytes.
inline std::string NpyFile(std::string header, const std::string& data)
{
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01", 7) + '\0' + LittleEndian(header.size(), 2) + header + data;
}

/// `shape` as "(2, 3)" or "(2,)".
inline std::string NpyHeader(
  const std::string& type, const std::string& shape, const char* fortran = "False")
{
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

/// The checksum of zip archives, by its definition.
inline std::uint32_t Crc32(const std::string& bytes)
{
  std::uint32_t crc = ~0U;
  for (const char c : bytes)
  {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
    {
      crc = crc >> 1U ^ (0xEDB88320U & (0U - (crc & 1U)));
    }
  }
  return ~crc;
}

/// A zip archive by the description of its format, each entry stored or, if `deflate`, as one
/// uncompressed block of deflate. `lie` is added to the sizes that the archive gives. Without
/// `checksums` they are 0.
inline std::string ZipFile(const std::vector<std::pair<std::string, std::string>>& entries,
  bool deflate = false, std::uint64_t lie = 0, bool checksums = true)
{
  std::string files;
  std::string directory;
  for (const auto& [name, content] : entries)
  {
    std::string data = content;
    if (deflate)
    {
      data = '\x01' + LittleEndian(content.size(), 2) + LittleEndian(~content.size(), 2) + content;
    }
    const std::string common =
      LittleEndian(20, 2) + LittleEndian(0, 2) + LittleEndian(deflate ? 8 : 0, 2) +
      LittleEndian(0, 4) + LittleEndian(checksums ? Crc32(content) : 0, 4) +
      LittleEndian(data.size(), 4) + LittleEndian(content.size() + lie, 4) +
      LittleEndian(name.size(), 2) + LittleEndian(0, 2);
    directory += "PK\x01\x02" + LittleEndian(20, 2) + common + std::string(10, '\0') +
                 LittleEndian(files.size(), 4) + name;
    files += "PK\x03\x04" + common + name + data;
  }
  return files + directory + "PK\x05\x06" + std::string(4, '\0') + LittleEndian(entries.size(), 2) +
         LittleEndian(entries.size(), 2) + LittleEndian(directory.size(), 4) +
         LittleEndian(files.size(), 4) + std::string(2, '\0');
}

}
