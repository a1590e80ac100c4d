#include "ArrayFile.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Internal/ZipDirectory.h"
#include "MappedFile.h"
#include "Safetensors.h"
#include "ShardIndex.h"
#include "TorchFile.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace atlas
{
namespace
{

constexpr std::string_view EmptyZipMagic = "PK\x05\x06";

/// The largest number of bytes that one deflated byte can represent.
constexpr std::uint64_t MaximumDeflation = 1100;

std::string MemberName(const std::string& source, const std::string& name)
{
  return source + ": array '" + name + "'";
}

}

ArrayFile::ArrayFile(const std::filesystem::path& path)
{
  if (path.extension() == ".json")
  {
    this->ReadShards(path);
    return;
  }
  const auto file = std::make_shared<const MappedFile>(path);
  this->Files.push_back(file);
  ReadIntact(*file,
    [&]
    {
      this->Parse(file->Data(), file->Size(), file, path.string());
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
  for (const auto& file : this->Files)
  {
    file->RequireIntact();
  }
}

void ArrayFile::ReadShards(const std::filesystem::path& index)
{
  ShardIndex shards = ReadShardIndex(index);
  std::set<std::filesystem::path> read;
  for (const auto& [name, path] : shards.files)
  {
    if (read.insert(path).second)
    {
      ArrayFile shard(path);
      for (auto& [array, entry] : shard.Arrays)
      {
        if (!this->Arrays.emplace(array, std::move(entry)).second)
        {
          throw ModelError(
            MemberName(path.string(), array), " is in another shard too, expected it once.");
        }
      }
      this->Files.insert(this->Files.end(), shard.Files.begin(), shard.Files.end());
    }
    if (this->Arrays.find(name) == this->Arrays.end())
    {
      throw ModelError(MemberName(path.string(), name), " is missing, although ",
        index.filename().string(), " lists it.");
    }
  }
  this->Texts = std::move(shards.metadata);
}

void ArrayFile::Parse(const std::byte* data, std::size_t size,
  const std::shared_ptr<const void>& owner, const std::string& source)
{
  const bool safetensors = LooksLikeSafetensors(data, size);
  if (!safetensors && LooksLikeTorch(data, size))
  {
    this->Arrays = TorchFile(data, size, owner, source).GetTensors();
    return;
  }
  if (!safetensors && LooksLikeNumpy(data, size))
  {
    const NumpyHeader header = ParseNumpyHeader(data, size, size, source);
    const auto load = [data, size, owner, source] { return ParseNumpy(data, size, owner, source); };
    this->Arrays["array"] = { header.dtype, header.shape, load, {} };
    return;
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (safetensors || (!BeginsWith(text, ZipMagic) && !BeginsWith(text, EmptyZipMagic)))
  {
    SafetensorsContent content = ParseSafetensors(data, size, source);
    this->Texts = std::move(content.metadata);
    for (const auto& [name, view] : content.tensors)
    {
      const auto load = [array = LoadedArray{ view, owner }] { return array; };
      this->Arrays[name] = { view.dtype, view.shape, load, {} };
    }
    return;
  }
  for (const ZipRecord& record : ReadZipDirectory(data, size, source))
  {
    std::string name(record.name);
    const std::string member = MemberName(source, name);
    ThrowIf<FormatError>(!record.isStored && !record.isDeflated, member,
      ": expected it to be stored or deflated in the zip archive, found another way.");
    ThrowIf<FormatError>(record.fullSize / MaximumDeflation > record.size, member,
      ": the zip archive states that ", record.size, " bytes decompress to ", record.fullSize,
      ", which is impossible.");
    const std::vector<std::byte> begin =
      ReadZipBeginning(record, std::min<std::uint64_t>(record.fullSize, NumpyHeaderBytes), member);
    const NumpyHeader header =
      ParseNumpyHeader(begin.data(), begin.size(), record.fullSize, member);
    if (name.size() > 4 && EndsWith(name, ".npy"))
    {
      name.resize(name.size() - 4);
    }
    // Keeps the owner of the bytes as long as an array may be loaded from them.
    const Entry entry = { header.dtype, header.shape,
      [record, owner, member]
      {
        const auto bytes =
          std::make_shared<const std::vector<std::byte>>(ReadZipRecord(record, member));
        return ParseNumpy(bytes->data(), bytes->size(), bytes, member);
      },
      {} };
    ThrowIf<FormatError>(!this->Arrays.emplace(name, entry).second, member, " occurs twice.");
  }
}

}
