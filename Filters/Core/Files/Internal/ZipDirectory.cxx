#include "ZipDirectory.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/NumberText.h"
#include "Base/Parallel.h"
#include "Base/Utf8Text.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include <zlib.h>

namespace atlas
{
namespace
{

constexpr std::uint32_t LocalMagic = 0x04034b50;
constexpr std::uint32_t EntryMagic = 0x02014b50;
constexpr std::uint32_t EndMagic = 0x06054b50;
constexpr std::uint32_t Zip64EndMagic = 0x06064b50;
constexpr std::uint32_t Zip64LocatorMagic = 0x07064b50;
constexpr std::uint64_t LocalBytes = 30;
constexpr std::uint64_t EntryBytes = 46;
constexpr std::uint64_t EndBytes = 22;
constexpr std::uint64_t Zip64EndBytes = 56;
constexpr std::uint64_t Zip64LocatorBytes = 20;
constexpr std::uint64_t MaximumComment = 65535;
constexpr std::uint64_t In64Bits = 0xffffffff; ///< a number that the zip64 fields give instead
constexpr std::uint64_t CountIn64Bits = 0xffff;
constexpr std::uint64_t Zip64Field = 1; ///< its kind among the extra fields
constexpr std::uint64_t Encrypted = 1;  ///< flag of an entry
constexpr std::uint64_t Deflated = 8;   ///< method of an entry

/// The number of bytes whose checksum one thread computes at a time.
constexpr std::uint64_t ChecksumStep = std::uint64_t{ 1 } << 24;

void Require(bool isWhole, const std::string& source)
{
  ThrowIf<FormatError>(
    !isWhole, source, ": cannot read it from the zip archive: it is cut off or damaged.");
}

/// Reads an archive; offsets are from its beginning.
class Archive : public FailsIf<Archive>
{
public:
  Archive(const std::byte* data, std::size_t size, const std::string& source)
    : Data(data)
    , Size(size)
    , Source(source)
  {
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": cannot read the zip archive: ", message..., ".");
  }

  std::vector<ZipRecord> Read()
  {
    const Directory directory = this->FindDirectory();
    std::uint64_t at = directory.begin;
    // Entries are counted by their bytes; the stated number may be wrong.
    while (at < directory.begin + directory.size)
    {
      at = this->ReadEntry(at, directory.begin + directory.size);
    }
    this->FailIf(this->Records.size() != directory.count, "its directory states ", directory.count,
      " records and has ", this->Records.size());
    std::sort(this->Spans.begin(), this->Spans.end());
    for (std::size_t i = 1; i < this->Spans.size(); ++i)
    {
      this->FailIf(this->Spans[i].first < this->Spans[i - 1].second, "two records overlap");
    }
    std::set<std::string_view> names;
    for (const ZipRecord& record : this->Records)
    {
      this->FailIf(!names.insert(record.name).second, "record '", record.name, "' is there twice");
    }
    return std::move(this->Records);
  }

private:
  struct Directory
  {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t count = 0;
  };

  const std::byte* Data;
  std::uint64_t Size;
  const std::string& Source;
  std::vector<ZipRecord> Records;
  /// Where the records begin and end with their local headers.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Spans;

  void Require(bool isWhole) const { this->FailIf(!isWhole, "it is cut off or damaged"); }

  bool Has(std::uint64_t begin, std::uint64_t count) const
  {
    return begin <= this->Size && count <= this->Size - begin;
  }

  std::uint64_t Number(std::uint64_t at, unsigned bytes) const
  {
    this->Require(this->Has(at, bytes));
    return LittleEndian({ reinterpret_cast<const char*>(this->Data + at), bytes });
  }

  void RequireMagic(std::uint64_t at, std::uint32_t magic) const
  {
    this->Require(this->Number(at, 4) == magic);
  }

  /// The end record is the last thing in the file, but for its comment.
  std::uint64_t FindEnd() const
  {
    for (std::uint64_t comment = 0; comment <= MaximumComment; ++comment)
    {
      this->Require(this->Size >= EndBytes + comment);
      const std::uint64_t at = this->Size - EndBytes - comment;
      if (this->Number(at, 4) == EndMagic && this->Number(at + 20, 2) == comment)
      {
        return at;
      }
    }
    this->Fail("it is cut off or damaged");
  }

  Directory FindDirectory() const
  {
    const std::uint64_t end = this->FindEnd();
    Directory directory = { this->Number(end + 16, 4), this->Number(end + 12, 4),
      this->Number(end + 10, 2) };
    std::uint64_t limit = end;
    if (end >= Zip64LocatorBytes && this->Number(end - Zip64LocatorBytes, 4) == Zip64LocatorMagic)
    {
      const std::uint64_t end64 = this->Number(end - Zip64LocatorBytes + 8, 8);
      this->Require(this->Has(end64, Zip64EndBytes) && end64 <= end);
      this->RequireMagic(end64, Zip64EndMagic);
      const Directory wide = { this->Number(end64 + 48, 8), this->Number(end64 + 40, 8),
        this->Number(end64 + 32, 8) };
      const auto agree = [](std::uint64_t number, std::uint64_t other, std::uint64_t in64Bits)
      { return number == other || number == in64Bits; };
      this->Require(agree(directory.begin, wide.begin, In64Bits) &&
                    agree(directory.size, wide.size, In64Bits) &&
                    agree(directory.count, wide.count, CountIn64Bits));
      directory = wide;
      limit = end64;
    }
    this->Require(directory.begin <= limit && directory.size <= limit - directory.begin);
    return directory;
  }

  /// Reads the entry of the directory at `at` and returns where the next one begins.
  std::uint64_t ReadEntry(std::uint64_t at, std::uint64_t end)
  {
    this->Require(end - at >= EntryBytes);
    this->RequireMagic(at, EntryMagic);
    const std::uint64_t nameBytes = this->Number(at + 28, 2);
    const std::uint64_t extraBytes = this->Number(at + 30, 2);
    const std::uint64_t next = at + EntryBytes + nameBytes + extraBytes + this->Number(at + 32, 2);
    this->Require(next <= end);
    ZipRecord record;
    record.name = { reinterpret_cast<const char*>(this->Data + at + EntryBytes), nameBytes };
    RequireUtf8(record.name, this->Source + ": the name of a record");
    record.crc = static_cast<std::uint32_t>(this->Number(at + 16, 4));
    record.size = this->Number(at + 20, 4);
    std::uint64_t whole = this->Number(at + 24, 4);
    std::uint64_t local = this->Number(at + 42, 4);
    this->Widen({ &whole, &record.size, &local }, at + EntryBytes + nameBytes, extraBytes);
    record.fullSize = whole;
    const std::uint64_t method = this->Number(at + 10, 2);
    const bool isPlain = (this->Number(at + 8, 2) & Encrypted) == 0;
    record.isStored = isPlain && method == 0 && whole == record.size;
    record.isDeflated = isPlain && method == Deflated;
    this->Place(record, local);
    return next;
  }

  /// Replaces the numbers that did not fit 32 bits by those of the zip64 field, which has them in
  /// this order.
  void Widen(const std::vector<std::uint64_t*>& numbers, std::uint64_t at, std::uint64_t size) const
  {
    const std::uint64_t end = at + size;
    while (end - at >= 4)
    {
      const std::uint64_t fieldEnd = at + 4 + this->Number(at + 2, 2);
      this->Require(fieldEnd <= end);
      if (this->Number(at, 2) == Zip64Field)
      {
        at += 4;
        for (std::uint64_t* number : numbers)
        {
          if (*number == In64Bits)
          {
            this->Require(fieldEnd - at >= 8);
            *number = this->Number(at, 8);
            at += 8;
          }
        }
        return;
      }
      at = fieldEnd;
    }
  }

  void Place(ZipRecord record, std::uint64_t local)
  {
    this->Require(this->Has(local, LocalBytes));
    this->RequireMagic(local, LocalMagic);
    const std::uint64_t begin =
      local + LocalBytes + this->Number(local + 26, 2) + this->Number(local + 28, 2);
    this->Require(this->Has(begin, record.size));
    record.data = this->Data + begin;
    this->Spans.emplace_back(local, begin + record.size);
    this->Records.push_back(record);
  }
};

}

std::vector<std::byte> ReadZipBeginning(
  const ZipRecord& record, std::size_t count, const std::string& source)
{
  if (record.isStored)
  {
    return { record.data, record.data + std::min<std::uint64_t>(count, record.size) };
  }
  std::vector<std::byte> bytes(count);
  z_stream stream = {};
  constexpr int withoutHeader = -MAX_WBITS;
  ThrowIf<FormatError>(
    inflateInit2(&stream, withoutHeader) != Z_OK, source, ": cannot decompress: out of memory.");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  int status = Z_OK;
  while (status == Z_OK && written < count)
  {
    constexpr std::uint64_t most = std::numeric_limits<uInt>::max();
    const auto input = static_cast<uInt>(std::min(most, record.size - read));
    const auto output = static_cast<uInt>(std::min(most, count - written));
    stream.next_in = // which zlib does not change
      reinterpret_cast<Bytef*>(const_cast<std::byte*>(record.data + read));
    stream.avail_in = input;
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + written);
    stream.avail_out = output;
    status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    written += output - stream.avail_out;
  }
  Require(status == Z_OK || status == Z_STREAM_END, source);
  bytes.resize(written);
  return bytes;
}

std::vector<std::byte> ReadZipRecord(const ZipRecord& record, const std::string& source)
{
  // One more byte than stated, which must not be there.
  std::vector<std::byte> bytes = ReadZipBeginning(record, record.fullSize + 1, source);
  Require(bytes.size() == record.fullSize, source);
  RequireChecksum({ record.name, bytes.data(), bytes.size(), bytes.size(), record.crc }, source);
  return bytes;
}

std::vector<ZipRecord> ReadZipDirectory(
  const std::byte* data, std::size_t size, const std::string& source)
{
  return Archive(data, size, source).Read();
}

void RequireChecksum(const ZipRecord& record, const std::string& source)
{
  if (record.crc == 0 || record.size == 0)
  {
    return;
  }
  const auto steps = static_cast<std::int64_t>((record.size - 1) / ChecksumStep + 1);
  std::vector<unsigned long> parts(steps);
  const auto sizeOf = [&](std::size_t step)
  { return std::min(ChecksumStep, record.size - step * ChecksumStep); };
  ParallelFor(steps, 0,
    [&](std::int64_t i)
    {
      const std::size_t step = i;
      const auto* bytes = reinterpret_cast<const Bytef*>(record.data + step * ChecksumStep);
      parts[step] = crc32(0, bytes, static_cast<uInt>(sizeOf(step)));
    });
  unsigned long crc = parts.front();
  for (std::size_t step = 1; step < parts.size(); ++step)
  {
    crc = crc32_combine(crc, parts[step], static_cast<z_off_t>(sizeOf(step)));
  }
  ThrowIf<FormatError>(crc != record.crc, source, ": record '", record.name,
    "' is damaged: its checksum differs from the one that the zip archive "
    "states.");
}

}
