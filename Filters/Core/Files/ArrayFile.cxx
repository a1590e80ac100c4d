#include "ArrayFile.h"

#include "Error.h"
#include "MappedFile.h"
#include "Safetensors.h"
#include "TorchFile.h"
#include "ZipDirectory.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <zip.h>

namespace atlas
{
namespace
{

constexpr std::string_view EmptyZipMagic = "PK\x05\x06";

/// The largest number of bytes that one deflated byte can represent.
constexpr std::uint64_t MaximumDeflation = 1100;

bool BeginsWith(const std::byte* data, std::size_t size, std::string_view text)
{
  return size >= text.size() && std::memcmp(data, text.data(), text.size()) == 0;
}

std::string MemberName(const std::string& source, const std::string& name)
{
  return source + ": array '" + name + "'";
}

using Zip = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using ZipMember = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

/// What is wrong with bytes that begin like an archive. libzip tells the same of all that are cut
/// off until 1.10, and later tells some of them apart.
std::string OpeningFault(zip_error_t* error)
{
  const int code = zip_error_code_zip(error);
  bool isCutOff = code == ZIP_ER_NOZIP;
#ifdef ZIP_ER_TRUNCATED_ZIP
  isCutOff = isCutOff || code == ZIP_ER_TRUNCATED_ZIP;
#endif
  return isCutOff ? "it is cut off or damaged" : zip_error_strerror(error);
}

Zip OpenZip(const std::byte* data, std::size_t size, const std::string& source)
{
  zip_error_t error;
  zip_error_init(&error);
  Zip zip(nullptr, &zip_discard);
  zip_source_t* bytes = zip_source_buffer_create(data, size, 0, &error);
  if (bytes != nullptr)
  {
    zip.reset(zip_open_from_source(bytes, ZIP_RDONLY | ZIP_CHECKCONS, &error));
    if (zip == nullptr)
    {
      zip_source_free(bytes);
    }
  }
  const std::string message = zip == nullptr ? OpeningFault(&error) : "";
  zip_error_fini(&error);
  if (zip == nullptr)
  {
    throw FormatError(source + ": cannot read the zip archive: " + message + ".");
  }
  return zip;
}

ZipMember OpenMember(zip_t* zip, std::uint64_t index, const std::string& source)
{
  ZipMember member(zip_fopen_index(zip, index, 0), &zip_fclose);
  if (member == nullptr)
  {
    throw FormatError(source + ": cannot read it from the zip archive: " + zip_strerror(zip) + ".");
  }
  return member;
}

/// Reads up to `size` bytes; fewer at the end of the member.
std::size_t ReadMember(
  zip_file_t* member, std::byte* data, std::size_t size, const std::string& source)
{
  std::size_t total = 0;
  while (total < size)
  {
    const zip_int64_t count = zip_fread(member, data + total, size - total);
    if (count < 0)
    {
      throw FormatError(
        source + ": cannot read it from the zip archive: " + zip_file_strerror(member) + ".");
    }
    if (count == 0)
    {
      break;
    }
    total += static_cast<std::size_t>(count);
  }
  return total;
}

LoadedArray LoadMember(const std::byte* data, std::size_t size, std::uint64_t index,
  std::size_t memberSize, const std::string& archive, const std::string& source)
{
  const Zip zip = OpenZip(data, size, archive);
  const ZipMember member = OpenMember(zip.get(), index, source);
  auto bytes = std::make_shared<std::vector<std::byte>>(memberSize);
  std::byte beyond{};
  if (ReadMember(member.get(), bytes->data(), memberSize, source) != memberSize ||
      ReadMember(member.get(), &beyond, 1, source) != 0) // at the end the checksum is compared
  {
    throw FormatError(source + ": its size differs from the one stated in the zip archive.");
  }
  return ParseNumpy(bytes->data(), memberSize, bytes, source);
}

}

ArrayFile::ArrayFile(const std::filesystem::path& path)
{
  this->File = std::make_shared<const MappedFile>(path);
  ReadIntact(*this->File,
    [&]
    {
      this->Parse(this->File->Data(), this->File->Size(), this->File, path.string());
      return true;
    });
}

ArrayFile::ArrayFile(const std::byte* data, std::size_t size,
  const std::shared_ptr<const void>& owner, const std::string& source)
{
  this->Parse(data, size, owner, source);
}

void ArrayFile::RequireIntact() const
{
  if (this->File != nullptr)
  {
    this->File->RequireIntact();
  }
}

void ArrayFile::Parse(const std::byte* data, std::size_t size,
  const std::shared_ptr<const void>& owner, const std::string& source)
{
  const bool safetensors = LooksLikeSafetensors(data, size);
  if (!safetensors && LooksLikeTorch(data, size))
  {
    const TorchFile file(data, size, owner, source);
    for (const auto& [name, tensor] : file.GetTensors())
    {
      this->Arrays.emplace(name, Entry{ tensor.dtype, tensor.shape, tensor.load });
    }
    return;
  }
  if (!safetensors && LooksLikeNumpy(data, size))
  {
    const NumpyHeader header = ParseNumpyHeader(data, size, size, source);
    const auto load = [data, size, owner, source] { return ParseNumpy(data, size, owner, source); };
    this->Arrays.emplace("array", Entry{ header.dtype, header.shape, load });
    return;
  }
  if (safetensors || (!BeginsWith(data, size, ZipMagic) && !BeginsWith(data, size, EmptyZipMagic)))
  {
    SafetensorsContent content = ParseSafetensors(data, size, source);
    this->Texts = std::move(content.metadata);
    for (const auto& [name, view] : content.tensors)
    {
      const auto load = [array = LoadedArray{ view, owner }] { return array; };
      this->Arrays.emplace(name, Entry{ view.dtype, view.shape, load });
    }
    return;
  }
  const Zip zip = OpenZip(data, size, source);
  const zip_int64_t count = zip_get_num_entries(zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i)
  {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t status;
    zip_stat_init(&status);
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                    ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(zip.get(), index, 0, &status) != 0 || (status.valid & needed) != needed)
    {
      throw FormatError(source + ": cannot read entry " + std::to_string(i) +
                        " of the zip archive: " + zip_strerror(zip.get()) + ".");
    }
    std::string name = status.name;
    const std::string member = MemberName(source, name);
    const bool stored = status.comp_method == ZIP_CM_STORE;
    if ((!stored && status.comp_method != ZIP_CM_DEFLATE) ||
        status.encryption_method != ZIP_EM_NONE)
    {
      throw FormatError(
        member + ": expected it to be stored or deflated in the zip archive, found another way.");
    }
    if (status.size / MaximumDeflation > status.comp_size || (stored && status.size > size))
    {
      throw FormatError(member + ": the zip archive states that " +
                        std::to_string(status.comp_size) + " bytes decompress to " +
                        std::to_string(status.size) + ", which is impossible.");
    }
    std::vector<std::byte> begin(
      static_cast<std::size_t>(std::min<zip_uint64_t>(status.size, NumpyHeaderBytes)));
    const ZipMember file = OpenMember(zip.get(), index, member);
    begin.resize(ReadMember(file.get(), begin.data(), begin.size(), member));
    const NumpyHeader header = ParseNumpyHeader(begin.data(), begin.size(), status.size, member);
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
    {
      name.resize(name.size() - 4);
    }
    const auto memberSize = static_cast<std::size_t>(status.size);
    // Keeps the owner of the bytes as long as an array may be loaded from them.
    const Entry entry = { header.dtype, header.shape,
      [data, size, owner, index, memberSize, source, member]
      { return LoadMember(data, size, index, memberSize, source, member); } };
    if (!this->Arrays.emplace(name, entry).second)
    {
      throw FormatError(member + " occurs twice.");
    }
  }
}

}
