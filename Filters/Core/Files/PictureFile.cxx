#include "PictureFile.h"

#include "Base/Error.h"
#include "Base/NumberText.h"
#include "Base/TextEnds.h"
#include "MappedFile.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio> // before jpeglib.h, which needs it
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace atlas
{
namespace
{

constexpr std::string_view PngMagic = "\x89PNG\r\n\x1a\n";
constexpr std::string_view JpegMagic = "\xff\xd8\xff";

void RequireSize(const std::string& path, std::int64_t width, std::int64_t height)
{
  ThrowIf<FormatError>(height > MaximumPixels / width, path, ": expected an image of at most ",
    MaximumPixels, " pixels, found ", width, " x ", height, ".");
}

/// The four letters of a chunk's type, with ? for any other byte.
std::string PngChunkType(std::string_view bytes)
{
  std::string type(bytes);
  const auto isLetter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  std::replace_if(type.begin(), type.end(), std::not_fn(isLetter), '?');
  return type;
}

/// The bytes of a chunk beside its data: length, type and checksum, of 4 bytes each.
constexpr std::size_t PngChunkFrame = 12;

/// The length of the chunk that begins at this byte. Throws FormatError if it is not within the
/// file.
std::size_t PngChunkLength(const MappedFile& file, const std::string& path, std::size_t begin)
{
  const std::size_t left = file.Size() - begin;
  ThrowIf<FormatError>(left < PngChunkFrame, path,
    ": cannot be read as PNG: expected a chunk at byte ", begin, ", found ", left,
    " bytes to the end of the file.");
  const std::string_view chunk = file.Text().substr(begin);
  const std::size_t length = BigEndian(chunk.substr(0, 4));
  ThrowIf<FormatError>(length > left - PngChunkFrame, path, ": cannot be read as PNG: expected ",
    length, " bytes in the chunk '", PngChunkType(chunk.substr(4, 4)), "' at byte ", begin,
    ", found ", left - PngChunkFrame, " at most.");
  return length;
}

/// Throws FormatError unless all chunks of a PNG up to its end chunk are within the file. libpng
/// allocates and clears as many bytes as the length of a chunk says, up to 2 GB, before it finds
/// that the file is too short; its limit for chunks (png_set_chunk_malloc_max) only makes it warn.
void RequireWholeChunks(const MappedFile& file, const std::string& path)
{
  std::size_t begin = PngMagic.size();
  for (bool isLast = false; !isLast;)
  {
    const std::size_t length = PngChunkLength(file, path, begin);
    isLast = file.Text().substr(begin + 4, 4) == "IEND";
    begin += PngChunkFrame + length;
  }
}

/// What went wrong in a library; large enough for libjpeg, whose messages are the longer ones.
using ErrorText = std::array<char, JMSG_LENGTH_MAX>;

/// Decodes a PNG in memory. VTK's reader is not used because it crashes on libpng errors: it jumps
/// to a function that has already returned.
class PngDecoder
{
public:
  PngDecoder(const MappedFile& file, const std::string& path)
    : File(file)
    , Path(path)
    , Next(reinterpret_cast<const png_byte*>(file.Data()))
    , Left(file.Size())
    , Png(
        png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngDecoder::Fail, &PngDecoder::Ignore))
    , Info(png_create_info_struct(this->Png))
  {
  }
  ~PngDecoder() { png_destroy_read_struct(&this->Png, &this->Info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  PictureFile Decode()
  {
    if (this->Info == nullptr)
    {
      throw std::bad_alloc();
    }
    RequireWholeChunks(this->File, this->Path);
    this->Guard(
      [&]
      {
        png_set_read_fn(this->Png, this, &PngDecoder::Read);
        // Texts, profiles and the like have no part in the pixels, and libpng would unpack and keep
        // up to a thousand of 8 MB each. Only the critical chunks and tRNS are read.
        png_set_keep_unknown_chunks(this->Png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        png_read_info(this->Png, this->Info);
      });
    const png_uint_32 width = png_get_image_width(this->Png, this->Info);
    const png_uint_32 height = png_get_image_height(this->Png, this->Info);
    RequireSize(this->Path, width, height);
    const bool isDeep = png_get_bit_depth(this->Png, this->Info) == 16;
    PictureFile result;
    result.hasTransparency =
      (png_get_color_type(this->Png, this->Info) & PNG_COLOR_MASK_ALPHA) != 0 ||
      png_get_valid(this->Png, this->Info, PNG_INFO_tRNS) != 0;
    this->Guard(
      [&]
      {
        png_set_expand(this->Png);
        png_set_gray_to_rgb(this->Png);
        png_set_strip_alpha(this->Png);
        png_set_interlace_handling(this->Png);
        png_read_update_info(this->Png, this->Info);
      });

    const std::size_t size = png_get_rowbytes(this->Png, this->Info);
    std::vector<png_byte> bytes(size * height);
    std::vector<png_bytep> rows(height);
    for (std::size_t row = 0; row < rows.size(); ++row)
    {
      rows[row] = bytes.data() + size * row;
    }
    this->Guard(
      [&]
      {
        png_read_image(this->Png, rows.data());
        png_read_end(this->Png, nullptr);
      });

    Picture& picture = result.picture;
    picture.height = height;
    picture.width = width;
    picture.pixels.resize(bytes.size() / (isDeep ? 2 : 1));
    if (!isDeep)
    {
      std::copy(bytes.begin(), bytes.end(), picture.pixels.begin());
      return result;
    }
    picture.maximum = 65535;
    for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    {
      picture.pixels[i] = static_cast<std::uint16_t>(256 * bytes[2 * i] + bytes[2 * i + 1]);
    }
    return result;
  }

private:
  const MappedFile& File;
  const std::string& Path;
  const png_byte* Next;
  std::size_t Left;
  png_structp Png;
  png_infop Info;
  ErrorText Error = {};

  /// Calls functions of libpng. Its errors jump back to here, as exceptions must not pass C code:
  /// `call` has no objects with destructors.
  template<class Call>
  void Guard(const Call& call)
  {
    if (setjmp(png_jmpbuf(this->Png)) != 0) // NOLINT(cert-err52-cpp)
    {
      throw FormatError(this->Path, ": cannot be read as PNG: ", this->Error.data(), ".");
    }
    call();
  }

  static void Read(png_structp png, png_bytep to, std::size_t size)
  {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->Left)
    {
      png_error(png, "the file ends early");
    }
    std::copy_n(self->Next, size, to);
    self->Next += size;
    self->Left -= size;
  }
  [[noreturn]] static void Fail(png_structp png, png_const_charp message)
  {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self->Error.data(), self->Error.size(), "%s", message);
    png_longjmp(png, 1);
  }
  static void Ignore(png_structp, png_const_charp) {}
};

/// Decodes a JPEG in memory. VTK's reader is not used because it leaks memory on libjpeg errors: it
/// jumps past the destructors of its objects.
class JpegDecoder
{
public:
  JpegDecoder(const MappedFile& file, const std::string& path)
    : File(file)
    , Path(path)
  {
    this->Jpeg.err = jpeg_std_error(&this->Errors);
    this->Jpeg.client_data = this;
    this->Errors.error_exit = &JpegDecoder::Fail;
    this->Errors.emit_message = &JpegDecoder::Hear;
    this->Progress.progress_monitor = &JpegDecoder::LimitScans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&this->Jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  PictureFile Decode()
  {
    this->Guard(
      [&]
      {
        jpeg_create_decompress(&this->Jpeg);
        this->Jpeg.progress = &this->Progress;
        jpeg_mem_src(&this->Jpeg, reinterpret_cast<const unsigned char*>(this->File.Data()),
          this->File.Size());
        jpeg_read_header(&this->Jpeg, TRUE);
      });
    RequireSize(this->Path, this->Jpeg.image_width, this->Jpeg.image_height);
    ThrowIf<FormatError>(this->Jpeg.num_components != 1 && this->Jpeg.num_components != 3,
      this->Path, ": expected a gray or RGB JPEG, found one with ", this->Jpeg.num_components,
      " components.");
    this->Jpeg.out_color_space = JCS_RGB;
    this->Guard([&] { jpeg_start_decompress(&this->Jpeg); });
    PictureFile result;
    Picture& picture = result.picture;
    picture.height = this->Jpeg.output_height;
    picture.width = this->Jpeg.output_width;
    std::vector<JSAMPLE> row(3 * std::size_t{ this->Jpeg.output_width });
    picture.pixels.reserve(row.size() * this->Jpeg.output_height);
    while (this->Jpeg.output_scanline < this->Jpeg.output_height)
    {
      JSAMPROW rows = row.data();
      this->Guard([&] { jpeg_read_scanlines(&this->Jpeg, &rows, 1); });
      picture.pixels.insert(picture.pixels.end(), row.begin(), row.end());
    }
    this->Guard([&] { jpeg_finish_decompress(&this->Jpeg); });
    return result;
  }

private:
  const MappedFile& File;
  const std::string& Path;
  jpeg_decompress_struct Jpeg = {};
  jpeg_error_mgr Errors = {};
  jpeg_progress_mgr Progress = {};
  ErrorText Error = {};
  std::jmp_buf Place = {};

  /// Calls functions of libjpeg, as PngDecoder::Guard.
  template<class Call>
  void Guard(const Call& call)
  {
    if (setjmp(this->Place) != 0) // NOLINT(cert-err52-cpp)
    {
      throw FormatError(this->Path, ": cannot be read as JPEG: ", this->Error.data(), ".");
    }
    call();
  }

  [[noreturn]] static void Fail(j_common_ptr jpeg)
  {
    auto* self = static_cast<JpegDecoder*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self->Error.data());
    std::longjmp(self->Place, 1); // NOLINT(cert-err52-cpp)
  }
  /// Rejects corrupt data, where libjpeg would fill in gray and continue.
  static void Hear(j_common_ptr jpeg, int level)
  {
    const int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                       code == JWRN_JPEG_EOF || code == JWRN_MUST_RESYNC))
    {
      Fail(jpeg);
    }
  }
  /// Limits the number of scans. A small file with many scans would take hours; ordinary files have
  /// about ten.
  static void LimitScans(j_common_ptr jpeg)
  {
    constexpr int most = 200;
    if (jpeg->is_decompressor != 0 &&
        reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > most)
    {
      auto* self = static_cast<JpegDecoder*>(jpeg->client_data);
      std::snprintf(self->Error.data(), self->Error.size(), "it has more than %d scans", most);
      std::longjmp(self->Place, 1); // NOLINT(cert-err52-cpp)
    }
  }
};

}

bool IsPicture(const std::string& path)
{
  const MappedFile file(path);
  return BeginsWith(file.Text(), PngMagic) || BeginsWith(file.Text(), JpegMagic);
}

PictureFile ReadPicture(const std::string& path)
{
  const MappedFile file(path);
  if (BeginsWith(file.Text(), PngMagic))
  {
    return PngDecoder(file, path).Decode();
  }
  if (BeginsWith(file.Text(), JpegMagic))
  {
    return JpegDecoder(file, path).Decode();
  }
  throw FormatError(path, ": expected a PNG or JPEG image, found neither.");
}

}
