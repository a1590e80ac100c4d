#include "PictureFile.h"

#include "Error.h"
#include "MappedFile.h"

#include <vtkCommand.h>
#include <vtkDataArray.h>
#include <vtkExecutive.h>
#include <vtkImageData.h>
#include <vtkJPEGReader.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include <png.h>

namespace AttentionAtlas
{
namespace
{

constexpr std::string_view PngMagic = "\x89PNG\r\n\x1a\n";
constexpr std::string_view JpegMagic = "\xff\xd8\xff";

bool BeginsWith(const atlas::MappedFile& file, std::string_view magic)
{
  return file.Size() >= magic.size() && std::memcmp(file.Data(), magic.data(), magic.size()) == 0;
}

void RequireSize(const std::string& path, std::int64_t width, std::int64_t height)
{
  if (height > atlas::MaximumPixels / width)
  {
    throw atlas::FormatError(path + ": expected a picture of at most " +
                             std::to_string(atlas::MaximumPixels) + " pixels, found " +
                             std::to_string(width) + " x " + std::to_string(height) + ".");
  }
}

/// Decodes a PNG in memory. VTK's reader is not used: where libpng fails, it jumps to a function
/// that has returned, and crashes.
class PngDecoder
{
public:
  PngDecoder(const atlas::MappedFile& file, const std::string& path)
    : Path(path)
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
    png_set_read_fn(this->Png, this, &PngDecoder::Read);
    png_read_info(this->Png, this->Info);
    const png_uint_32 width = png_get_image_width(this->Png, this->Info);
    const png_uint_32 height = png_get_image_height(this->Png, this->Info);
    RequireSize(this->Path, width, height);
    const bool isDeep = png_get_bit_depth(this->Png, this->Info) == 16;
    PictureFile result;
    result.hasTransparency =
      (png_get_color_type(this->Png, this->Info) & PNG_COLOR_MASK_ALPHA) != 0 ||
      png_get_valid(this->Png, this->Info, PNG_INFO_tRNS) != 0;
    png_set_expand(this->Png);
    png_set_gray_to_rgb(this->Png);
    png_set_strip_alpha(this->Png);
    png_set_interlace_handling(this->Png);
    png_read_update_info(this->Png, this->Info);

    const std::size_t size = png_get_rowbytes(this->Png, this->Info);
    std::vector<png_byte> bytes(size * height);
    std::vector<png_bytep> rows(height);
    for (std::size_t row = 0; row < rows.size(); ++row)
    {
      rows[row] = bytes.data() + size * row;
    }
    png_read_image(this->Png, rows.data());
    png_read_end(this->Png, nullptr);

    atlas::Picture& picture = result.picture;
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
  const std::string& Path;
  const png_byte* Next;
  std::size_t Left;
  png_structp Png;
  png_infop Info;

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
    const auto* self = static_cast<const PngDecoder*>(png_get_error_ptr(png));
    throw atlas::FormatError(self->Path + ": cannot be read as PNG: " + message + ".");
  }
  static void Ignore(png_structp, png_const_charp) {}
};

/// Reads a JPEG file. Errors and warnings of VTK are heard instead of printed: each means that the
/// file is damaged.
class JpegDecoder
{
public:
  explicit JpegDecoder(const std::string& path)
    : Path(path)
  {
    this->Listen(this->Reader);
    this->Listen(this->Reader->GetExecutive()); // it says that the reader has failed
    this->Reader->SetFileName(path.c_str());
  }

  PictureFile Decode()
  {
    this->Reader->UpdateInformation();
    this->RequireSuccess();
    const int* extent = this->Reader->GetDataExtent();
    const std::int64_t width = extent[1] - extent[0] + std::int64_t{ 1 };
    const std::int64_t height = extent[3] - extent[2] + std::int64_t{ 1 };
    RequireSize(this->Path, width, height);
    this->Reader->Update();
    this->RequireSuccess();
    auto* values =
      vtkUnsignedCharArray::SafeDownCast(this->Reader->GetOutput()->GetPointData()->GetScalars());
    const int components = values != nullptr ? values->GetNumberOfComponents() : 0;
    if (components != 1 && components != 3)
    {
      throw atlas::FormatError(
        this->Path + ": expected a JPEG in gray or in red, green and blue, found one of " +
        std::to_string(components) + " components.");
    }
    PictureFile result;
    atlas::Picture& picture = result.picture;
    picture.height = height;
    picture.width = width;
    picture.pixels.reserve(static_cast<std::size_t>(3 * width * height));
    for (std::int64_t row = height; row-- > 0;) // VTK has the lowest row first
    {
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i)
      {
        for (int channel = 0; channel < 3; ++channel)
        {
          picture.pixels.push_back(values->GetTypedComponent(i, components == 1 ? 0 : channel));
        }
      }
    }
    return result;
  }

private:
  const std::string& Path;
  vtkNew<vtkJPEGReader> Reader;
  bool HasFailed = false;

  void Listen(vtkObject* object)
  {
    object->AddObserver(vtkCommand::ErrorEvent, this, &JpegDecoder::Hear);
    object->AddObserver(vtkCommand::WarningEvent, this, &JpegDecoder::Hear);
  }
  void Hear(vtkObject*, unsigned long, void*) { this->HasFailed = true; }

  void RequireSuccess()
  {
    // Where VTK's messages are switched off, only the code tells.
    if (this->HasFailed || this->Reader->GetErrorCode() != 0)
    {
      throw atlas::FormatError(
        this->Path + ": cannot be read as JPEG: it is damaged or ends early.");
    }
  }
};

}

bool IsPicture(const std::string& path)
{
  const atlas::MappedFile file(path);
  return BeginsWith(file, PngMagic) || BeginsWith(file, JpegMagic);
}

PictureFile ReadPicture(const std::string& path)
{
  const atlas::MappedFile file(path);
  if (BeginsWith(file, PngMagic))
  {
    return PngDecoder(file, path).Decode();
  }
  if (BeginsWith(file, JpegMagic))
  {
    return JpegDecoder(path).Decode();
  }
  throw atlas::FormatError(path + ": expected a picture in PNG or JPEG, found neither.");
}

}
