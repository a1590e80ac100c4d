#include "Files/PictureFile.h"
#include "FuzzFolder.h"
#include "FuzzTarget.h"

#include "NumpyBytes.h"

#include <algorithm>

using namespace atlas;

namespace
{

/// A number of `count` bytes, the highest first; 0 beyond the end.
std::uint64_t BigEndianAt(std::string_view bytes, std::size_t place, std::size_t count)
{
  std::uint64_t number = 0;
  for (std::size_t i = place; i < place + count; ++i)
  {
    number = number << 8U | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
  }
  return number;
}

/// Puts the right checksum behind each chunk of a PNG, or no mutation would come further.
void MendChecksums(std::string& bytes)
{
  constexpr std::size_t magic = 8;
  for (std::size_t begin = magic; begin + 12 <= bytes.size();)
  {
    const std::uint64_t size = BigEndianAt(bytes, begin, 4);
    if (size > bytes.size() - begin - 12)
    {
      return;
    }
    const std::size_t end = begin + 8 + static_cast<std::size_t>(size);
    std::string crc = test::LittleEndian(test::Crc32(bytes.substr(begin + 4, end - begin - 4)), 4);
    std::reverse(crc.begin(), crc.end());
    bytes.replace(end, 4, crc);
    begin = end + 4;
  }
}

/// Whether the picture may be a large one, which takes its time and memory as it should.
bool IsLarge(std::string_view bytes)
{
  constexpr std::uint64_t largest = 1U << 14U;
  if (BigEndianAt(bytes, 16, 4) * BigEndianAt(bytes, 20, 4) > largest && bytes[0] == '\x89')
  {
    return true;
  }
  for (std::size_t i = 0; i + 1 < bytes.size() && bytes[0] != '\x89'; ++i)
  {
    // Height and width in the header of a JPEG's frame, which is any of SOF0 to SOF15.
    if (bytes[i] == '\xFF' && (bytes[i + 1] & '\xF0') == '\xC0' &&
        BigEndianAt(bytes, i + 5, 2) * BigEndianAt(bytes, i + 7, 2) > largest)
    {
      return true;
    }
  }
  return false;
}

}

/// The reader of PNG and JPEG files.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  static const fuzz::Folder folder;
  std::string bytes(fuzz::Text(data, size));
  if (bytes.empty())
  {
    return -1;
  }
  MendChecksums(bytes);
  if (IsLarge(bytes))
  {
    return 0;
  }
  fuzz::Folder::Write(fuzz::Source, bytes);
  PictureFile file;
  if (!fuzz::Read([&] { file = ReadPicture(fuzz::Source); }))
  {
    return 0;
  }
  const Picture& picture = file.picture;
  fuzz::Require(IsPicture(fuzz::Source), "a picture");
  fuzz::Require(picture.height > 0 && picture.width > 0, "pixels");
  fuzz::Require(picture.maximum == 255 || picture.maximum == 65535, "8 or 16 bits");
  fuzz::Require(
    picture.pixels.size() == static_cast<std::size_t>(3 * picture.height * picture.width),
    "as many pixels as the size says");
  fuzz::Require(std::all_of(picture.pixels.begin(), picture.pixels.end(),
                  [&](std::uint16_t value) { return value <= picture.maximum; }),
    "values up to the maximum");
  return 0;
}
