#pragma once

// Internal to Core.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// How a zip archive with records begins.
inline constexpr std::string_view ZipMagic = "PK\x03\x04";

/// A file in a zip archive. The views point into the archive.
struct ZipRecord
{
  std::string_view name;
  const std::byte* data = nullptr;
  std::uint64_t size = 0;     ///< in the archive, in bytes
  std::uint64_t fullSize = 0; ///< decompressed, in bytes, as the archive states it
  std::uint32_t crc = 0;      ///< CRC-32 of the decompressed data; 0 if it was not computed
  bool isStored = true;       ///< neither compressed nor encrypted
  bool isDeflated = false;    ///< deflated and not encrypted
};

/// The records of a zip archive in memory, in the order of its central directory, which alone has
/// their sizes: local headers are only skipped. Reads zip64 too. Throws FormatError if the archive
/// is cut off or damaged, or if two records overlap or have the same name. The message starts with
/// `source`.
///
/// Format: PKWARE's APPNOTE.TXT 6.3, sections 4.3.7 and 4.3.12 to 4.3.16.
std::vector<ZipRecord> ReadZipDirectory(
  const std::byte* data, std::size_t size, const std::string& source);

/// The first `count` bytes of a stored or deflated record, decompressed; fewer if it has fewer.
/// Throws FormatError if it is damaged.
std::vector<std::byte> ReadZipBeginning(
  const ZipRecord& record, std::size_t count, const std::string& source);

/// A stored or deflated record, decompressed. Throws FormatError if it is damaged: its size or its
/// CRC-32 differs from the one that the archive states.
std::vector<std::byte> ReadZipRecord(const ZipRecord& record, const std::string& source);

/// Throws FormatError unless the data of a stored record have the CRC-32 that the archive states.
void RequireChecksum(const ZipRecord& record, const std::string& source);

}
