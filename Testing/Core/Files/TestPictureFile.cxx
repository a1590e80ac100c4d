#include "Files/PictureFile.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "PictureBytes.h"
#include "TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <zlib.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using namespace std::string_literals;

namespace
{

atlas::PictureFile Read(const std::string& bytes)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "picture", bytes);
  EXPECT_TRUE(IsPicture(folder / "picture"));
  return ReadPicture(folder / "picture");
}

std::string Refusal(const std::string& bytes)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "picture", bytes);
  const std::string path = folder / "picture";
  const std::string message = MessageOf<FormatError>([&] { ReadPicture(path); });
  EXPECT_THAT(message, StartsWith(path + ": "));
  return message.substr(path.size() + 2);
}

TEST(PictureFile, PngInColor)
{
  const auto file = Read(PngFile(2, 2, 8, PngColor::Rgb, "\0\1\2\3\4\5\6\0\xFF\xFE\xFD\0\0\0"s));
  EXPECT_EQ(file.picture.width, 2);
  EXPECT_EQ(file.picture.height, 2);
  EXPECT_EQ(file.picture.maximum, 255);
  EXPECT_THAT(file.picture.pixels, ElementsAre(1, 2, 3, 4, 5, 6, 255, 254, 253, 0, 0, 0));
  EXPECT_FALSE(file.hasTransparency);
}

TEST(PictureFile, PngRowsMayBeFiltered)
{
  // Sub: to the pixel on the left; Up: to the pixel above.
  const auto file = Read(PngFile(2, 2, 8, PngColor::Gray, "\1\x0A\x05\2\1\1"s));
  EXPECT_THAT(file.picture.pixels, ElementsAre(10, 10, 10, 15, 15, 15, 11, 11, 11, 16, 16, 16));
}

TEST(PictureFile, PngInGrayHasEqualChannels)
{
  EXPECT_THAT(Read(PngFile(2, 1, 8, PngColor::Gray, "\0\7\xC8"s)).picture.pixels,
    ElementsAre(7, 7, 7, 200, 200, 200));
  // Bits 1 0 1: black and white.
  EXPECT_THAT(Read(PngFile(3, 1, 1, PngColor::Gray, "\0\xA0"s)).picture.pixels,
    ElementsAre(255, 255, 255, 0, 0, 0, 255, 255, 255));
}

TEST(PictureFile, PngOf16Bits)
{
  const auto file = Read(PngFile(1, 1, 16, PngColor::Rgb, "\0\x12\x34\xFF\xFF\0\1"s));
  EXPECT_EQ(file.picture.maximum, 65535);
  EXPECT_THAT(file.picture.pixels, ElementsAre(0x1234, 0xFFFF, 1));
}

TEST(PictureFile, PngWithAPalette)
{
  const std::string palette = PngChunk("PLTE", "\1\2\3\4\5\6");
  const std::string rows = "\0\1\0\1"s;
  EXPECT_THAT(Read(PngFile(3, 1, 8, PngColor::Palette, rows, palette)).picture.pixels,
    ElementsAre(4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(Read(PngFile(3, 1, 8, PngColor::Palette, rows, palette + PngChunk("tRNS", "\0"s)))
      .hasTransparency);
}

TEST(PictureFile, TransparencyIsLeftOut)
{
  const auto colored = Read(PngFile(1, 1, 8, PngColor::Rgba, "\0\1\2\3\x80"s));
  EXPECT_TRUE(colored.hasTransparency);
  EXPECT_THAT(colored.picture.pixels, ElementsAre(1, 2, 3));
  const auto gray = Read(PngFile(1, 1, 8, PngColor::GrayAlpha, "\0\7\0"s));
  EXPECT_TRUE(gray.hasTransparency);
  EXPECT_THAT(gray.picture.pixels, Each(7));
}

TEST(PictureFile, JpegIsDecoded)
{
  const auto file = Read(JpegFile());
  EXPECT_EQ(file.picture.width, 8);
  EXPECT_EQ(file.picture.height, 8);
  EXPECT_EQ(file.picture.maximum, 255);
  EXPECT_EQ(file.picture.pixels.size(), 192U);
  EXPECT_THAT(file.picture.pixels, Each(178));
}

TEST(PictureFile, JpegInColor)
{
  // Y = Cb = Cr = 178, by JFIF: R = Y + 1.402 (Cr - 128), G = Y - 0.344136 (Cb - 128) - 0.714136
  // (Cr - 128), B = Y + 1.772 (Cb - 128).
  const std::string file = JpegFile(3);
  const std::string jfif = JpegSegment('\xE0', "JFIF\0\1\1\0\0\1\0\1\0\0"s);
  const auto pixels = Read(file.substr(0, 2) + jfif + file.substr(2)).picture.pixels;
  ASSERT_EQ(pixels.size(), 192U);
  for (std::size_t i = 0; i < pixels.size(); i += 3)
  {
    EXPECT_NEAR(pixels[i], 178 + 1.402 * 50, 1);
    EXPECT_NEAR(pixels[i + 1], 178 - (0.344136 + 0.714136) * 50, 1);
    EXPECT_EQ(pixels[i + 2], 255) << "266.6, clipped";
  }
}

TEST(PictureFile, OtherJpegsAreRefused)
{
  EXPECT_THAT(
    Refusal(JpegFile(4)), HasSubstr("expected a gray or RGB JPEG, found one with 4 components"));
}

TEST(PictureFile, OtherFilesAreNoPictures)
{
  const TemporaryDirectory folder;
  for (const std::string& bytes : { ""s, "GIF89a"s, "\x89PNG"s, "\xFF\xD8"s, "\x93NUMPY"s })
  {
    WriteBytes(folder / "file", bytes);
    EXPECT_FALSE(IsPicture(folder / "file"));
    EXPECT_THROW(ReadPicture(folder / "file"), FormatError);
  }
  EXPECT_THROW(IsPicture(folder / "missing"), FileError);
  EXPECT_THROW(ReadPicture(folder / "missing"), FileError);
}

TEST(PictureFile, NoPrefixOfAPictureIsRead)
{
  for (const std::string& whole : { PngFile(2, 2, 8, PngColor::Gray, "\0\1\2\0\3\4"s), JpegFile() })
  {
    for (std::size_t length = 0; length + 12 < whole.size(); ++length)
    {
      EXPECT_NE(Refusal(whole.substr(0, length)), "") << length;
    }
  }
}

TEST(PictureFile, DamageIsFound)
{
  std::string png = PngFile(2, 2, 8, PngColor::Gray, "\0\1\2\0\3\4"s);
  png[png.size() - 20] = static_cast<char>(png[png.size() - 20] ^ 1); // in the data
  EXPECT_THAT(Refusal(png), HasSubstr("cannot be read as PNG: "));
  EXPECT_THAT(Refusal(PngFile(2, 2, 8, PngColor::Gray, "\0\1\2"s)), HasSubstr("PNG"))
    << "a row is missing";
  EXPECT_THAT(Refusal(PngFile(0, 2, 8, PngColor::Gray, "")), HasSubstr("PNG"));
}

TEST(PictureFile, PngChunksMustFitInTheFile)
{
  // libpng would allocate what these announce before it finds that the file is too short.
  for (const char* type : { "tEXt", "zTXt", "iTXt", "iCCP", "IDAT", "aBcd" })
  {
    const std::string chunk = BigEndian(2000000000, 4) + type + "Title";
    const std::string png = PngFile(1, 1, 8, PngColor::Gray, "\0\7"s, chunk);
    EXPECT_EQ(Refusal(png), "cannot be read as PNG: expected 2000000000 bytes in the chunk '"s +
                              type + "' at byte 33, found " + std::to_string(png.size() - 33 - 12) +
                              " at most.");
  }
  EXPECT_THAT(Refusal(PngFile(1, 1, 8, PngColor::Gray, "\0\7"s, "\xFF\xFF\xFF\xFF\n\0\xFF."s)),
    HasSubstr("expected 4294967295 bytes in the chunk '?\?\?\?' at byte 33, found "));
  const std::string whole = PngFile(1, 1, 8, PngColor::Gray, "\0\7"s);
  EXPECT_THAT(Refusal(whole.substr(0, whole.size() - 13)), HasSubstr("in the chunk 'IDAT'"))
    << "the last byte of its checksum is missing";
  EXPECT_EQ(Refusal(whole.substr(0, whole.size() - 5)),
    "cannot be read as PNG: expected a chunk at byte 58, found 7 bytes to the end of the file.");
}

TEST(PictureFile, WhatFollowsTheEndOfAPngDoesNotMatter)
{
  const std::string png = PngFile(1, 1, 8, PngColor::Gray, "\0\7"s);
  EXPECT_THAT(Read(png + "\x7F\xFF\xFF\xFFtEXt").picture.pixels, Each(7));
}

/// The most memory that this process has had, in bytes.
std::int64_t PeakMemory()
{
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{ 1024 } * usage.ru_maxrss;
}

TEST(PictureFile, TextsAndProfilesAreNotUnpacked)
{
  const std::string text(7000000, 'a');
  std::string packed(100000, '\0');
  auto size = static_cast<uLongf>(packed.size());
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
              reinterpret_cast<const Bytef*>(text.data()), text.size()),
    Z_OK);
  packed.resize(size);
  std::string chunks = PngChunk("iCCP", "Profile\0\0"s + packed);
  for (int i = 0; i < 40; ++i)
  {
    chunks += PngChunk("zTXt", "Title\0\0"s + packed);
    chunks += PngChunk("iTXt", "Title\0\1\0\0\0"s + packed);
  }
  const std::int64_t before = PeakMemory();
  EXPECT_THAT(Read(PngFile(1, 1, 8, PngColor::Gray, "\0\7"s, chunks)).picture.pixels, Each(7));
  EXPECT_LT(PeakMemory() - before, 100000000) << "560 MB if all are unpacked";
}

TEST(PictureFile, HugePicturesAreRefused)
{
  EXPECT_EQ(Refusal(PngFile(65536, 65536, 8, PngColor::Gray, "")),
    "expected an image of at most 134217728 pixels, found 65536 x 65536.");
  std::string jpeg = JpegFile();
  const std::size_t frame = jpeg.find("\xFF\xC0");
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  EXPECT_EQ(Refusal(jpeg), "expected an image of at most 134217728 pixels, found 65500 x 65500.");
}

}
