#include "TorchFile.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/NumberText.h"
#include "Base/TextEnds.h"
#include "Internal/PickleReader.h"
#include "Internal/StridedCopy.h"
#include "Internal/ZipDirectory.h"
#include "JsonText.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

constexpr std::string_view PickleRecord = "data.pkl";
constexpr std::size_t MaximumDepth = 100;
/// Names take at most so many bytes, and so many more for each byte of the pickle.
constexpr std::uint64_t MaximumNames = 100'000;
constexpr std::uint64_t MaximumNameShare = 16;
constexpr std::uint64_t MaximumCopies = std::uint64_t{ 1 } << 26;
constexpr std::uint64_t MaximumCopiesShare = 4;

// The first pickles of a legacy file: 0x1950a86a20f9469cfc6c, 1001.
constexpr std::string_view LegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t LegacyVersion = 1001;

/// The bytes of storages, whose checksums are compared when they are first needed.
struct StoredBytes
{
  ZipRecord record; ///< its name is that of the storage
  std::once_flag isCompared;
};

/// What the tensors of a file share.
struct SharedFile
{
  std::shared_ptr<const void> owner;
  std::shared_ptr<const MappedFile> file; ///< nullptr if bytes were given
  std::string source;
  std::vector<std::unique_ptr<StoredBytes>> storages; ///< by name
};

/// The part of a name behind its top folder.
std::string_view BelowTop(std::string_view name)
{
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
}

/// Whether one element lies behind the other.
bool IsPacked(const PickleTensor& tensor)
{
  std::int64_t packed = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;)
  {
    if (tensor.shape[axis] != 1 && tensor.stride[axis] != packed)
    {
      return false;
    }
    packed *= tensor.shape[axis];
  }
  return true;
}

/// The plain data among the objects of a pickle.
class PlainData
{
public:
  explicit PlainData(const PickleObjects& objects)
    : Objects(objects)
  {
  }

  std::string Text()
  {
    const nlohmann::json data = this->ToJson(this->Objects.Root(), 0);
    return this->Values > MaximumValues
             ? "null"
             : data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

private:
  static constexpr std::size_t MaximumValues = 100'000;
  static constexpr int MaximumDataDepth = 4;

  const PickleObjects& Objects;
  std::size_t Values = 0;

  nlohmann::json ToJson(const PickleValue& value, int depth)
  {
    if (++this->Values > MaximumValues || depth > MaximumDataDepth)
    {
      return {};
    }
    switch (value.kind)
    {
      case PickleKind::Boolean:
        return value.number != 0;
      case PickleKind::Integer:
        return value.number;
      case PickleKind::Real:
      {
        const std::uint64_t bits = BigEndian(value.text);
        double number = 0;
        std::memcpy(&number, &bits, sizeof(number));
        return number;
      }
      case PickleKind::Text:
        return std::string(value.text);
      case PickleKind::Tuple:
      case PickleKind::List:
        return this->ListOf(value, depth);
      case PickleKind::Dictionary:
        return this->ObjectOf(value, depth);
      default:
        return {};
    }
  }

  nlohmann::json ListOf(const PickleValue& value, int depth)
  {
    auto list = nlohmann::json::array();
    for (const PickleObjects::Index item : this->Objects.ItemsOf(value))
    {
      list.push_back(this->ToJson(this->Objects.values[item], depth + 1));
      if (this->Values > MaximumValues)
      {
        break;
      }
    }
    return list;
  }

  nlohmann::json ObjectOf(const PickleValue& value, int depth)
  {
    auto object = nlohmann::json::object();
    const auto& items = this->Objects.ItemsOf(value);
    for (std::size_t i = 0; i + 1 < items.size() && this->Values <= MaximumValues; i += 2)
    {
      const PickleValue& key = this->Objects.values[items[i]];
      const PickleValue& item = this->Objects.values[items[i + 1]];
      const bool isNamed = key.kind == PickleKind::Text || key.kind == PickleKind::Integer;
      if (isNamed && item.kind != PickleKind::Tensor)
      {
        object[key.kind == PickleKind::Text ? std::string(key.text) : std::to_string(key.number)] =
          this->ToJson(item, depth + 1);
      }
    }
    return object;
  }
};

/// Reads the objects of a file and finds the bytes of their storages.
class Reader : public FailsIf<Reader>
{
public:
  Reader(const std::byte* data, std::size_t size, std::shared_ptr<SharedFile> shared)
    : Data(data)
    , Size(size)
    , Shared(std::move(shared))
    , Source(this->Shared->source)
  {
  }

  ArrayEntries Read()
  {
    const std::string_view text(reinterpret_cast<const char*>(this->Data), this->Size);
    const bool isZip = BeginsWith(text, ZipMagic);
    this->FailIf(!isZip && !LooksLikePickle(this->Data, this->Size),
      "expected a PyTorch file, which is a zip archive or begins with the pickle of a number, "
      "found ",
      this->Size, " other bytes.");
    isZip ? this->ReadZip() : this->ReadLegacy();
    this->SortStorages();
    const PickleValue& root = this->Objects.Root();
    root.kind == PickleKind::Tensor ? this->AddTensor("array", {}, root)
                                    : this->NameTensors(root, {}, 1);
    return std::move(this->Tensors);
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": ", message...);
  }

  std::string Settings() const { return PlainData(this->Objects).Text(); }

private:
  const std::byte* Data;
  std::size_t Size;
  std::shared_ptr<SharedFile> Shared;
  const std::string& Source;
  PickleObjects Objects;
  ArrayEntries Tensors;
  std::uint64_t Copies = 0;    ///< bytes of the tensors that are not packed
  std::uint64_t NameBytes = 0; ///< of all tensors
  std::size_t Visits = 0;      ///< of items of dictionaries, lists and tuples

  // Zip archives

  void ReadZip()
  {
    const std::vector<ZipRecord> records = ReadZipDirectory(this->Data, this->Size, this->Source);
    const ZipRecord* pickle = this->FindPickle(records);
    this->RequireLittleEndian(Find(records, "byteorder"));
    RequireChecksum(*pickle, this->Source);
    this->Objects = ReadPickle(pickle->data, pickle->size, this->Source);
    this->FailIf(this->Objects.bytes != pickle->size, "expected nothing behind the pickle in ",
      pickle->name, ".");
    for (const ZipRecord& record : records)
    {
      constexpr std::string_view folder = "data/";
      const std::string_view name = BelowTop(record.name);
      if (BeginsWith(name, folder))
      {
        this->AddStorage(record, name.substr(folder.size()));
      }
    }
  }

  /// All records are in one folder.
  const ZipRecord* FindPickle(const std::vector<ZipRecord>& records) const
  {
    for (const ZipRecord& record : records)
    {
      const std::size_t top = record.name.find('/');
      const std::string_view first = records.front().name;
      this->FailIf(
        top == std::string_view::npos || first.substr(0, top + 1) != record.name.substr(0, top + 1),
        "expected a PyTorch file, whose records are all in one folder, found '", first, "' and '",
        record.name, "'.");
    }
    this->FailIf(Find(records, "constants.pkl") != nullptr,
      "expected tensors, found a TorchScript program; save its state_dict() instead.");
    for (const ZipRecord& record : records)
    {
      this->FailIf(!record.isStored, "record '", record.name,
        "' is compressed or encrypted; expected it to be stored, as PyTorch does.");
    }
    const ZipRecord* pickle = Find(records, PickleRecord);
    this->FailIf(pickle == nullptr, "expected a PyTorch file, which has a record ", PickleRecord,
      ", found none.");
    return pickle;
  }

  static const ZipRecord* Find(const std::vector<ZipRecord>& records, std::string_view name)
  {
    const auto found = std::find_if(records.begin(), records.end(),
      [name](const ZipRecord& record) { return BelowTop(record.name) == name; });
    return found == records.end() ? nullptr : &*found;
  }

  void RequireLittleEndian(const ZipRecord* order) const
  {
    this->FailIf(order != nullptr && std::string_view(reinterpret_cast<const char*>(order->data),
                                       order->size) != "little",
      "expected numbers in little-endian order, found a record byteorder that says "
      "otherwise.");
  }

  // Legacy files

  void ReadLegacy()
  {
    std::size_t at = 0;
    const auto read = [&]
    {
      PickleObjects objects = ReadPickle(this->Data + at, this->Size - at, this->Source);
      at += objects.bytes;
      return objects;
    };
    const PickleObjects magic = read();
    this->FailIf(magic.Root().kind != PickleKind::LongInteger || magic.Root().text != LegacyMagic,
      "expected a PyTorch file, found a pickle of something else.");
    const PickleObjects version = read();
    this->FailIf(
      version.Root().kind != PickleKind::Integer || version.Root().number != LegacyVersion,
      "expected version ", LegacyVersion, " of PyTorch's files.");
    this->RequireLittleEndian(read());
    this->Objects = read();
    const PickleObjects keys = read();
    this->FailIf(
      keys.Root().kind != PickleKind::List, "expected a list of the keys of its storages.");
    const std::map<std::string_view, DType> types = this->StorageTypes();
    for (const PickleObjects::Index item : keys.ItemsOf(keys.Root()))
    {
      at = this->ReadLegacyStorage(keys.values[item].text, types, at);
    }
    this->FailIf(
      at != this->Size, "no storage holds the last ", this->Size - at, " bytes of the file.");
  }

  void RequireLittleEndian(const PickleObjects& system) const
  {
    this->FailIf(system.Root().kind != PickleKind::Dictionary,
      "expected a dictionary about the system that wrote it.");
    const auto& items = system.ItemsOf(system.Root());
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    {
      const PickleValue& value = system.values[items[i + 1]];
      this->FailIf(system.values[items[i]].text == "little_endian" &&
                     (value.kind != PickleKind::Boolean || value.number == 0),
        "expected numbers in little-endian order, found little_endian False.");
    }
  }

  /// The types of the storages, whose lengths in bytes follow from them.
  std::map<std::string_view, DType> StorageTypes() const
  {
    std::map<std::string_view, DType> types;
    for (const PickleStorage& storage : this->Objects.storages)
    {
      const DType known = types.emplace(storage.key, storage.dtype).first->second;
      this->FailIf(known != storage.dtype, "storage '", storage.key, "' is of two types, ",
        Name(known), " and ", Name(storage.dtype), ".");
    }
    return types;
  }

  /// The number of elements, then the elements. Returns where they end.
  std::size_t ReadLegacyStorage(
    std::string_view key, const std::map<std::string_view, DType>& types, std::size_t at)
  {
    constexpr std::size_t countBytes = 8;
    const auto type = types.find(key);
    this->FailIf(type == types.end(), "no tensor uses storage '", key, "'.");
    const std::size_t left = this->Size - at;
    const std::uint64_t count =
      LittleEndian({ reinterpret_cast<const char*>(this->Data + at), std::min(countBytes, left) });
    const std::size_t bytes = ByteSize(type->second);
    this->FailIf(left < countBytes || count > (left - countBytes) / bytes, "storage '", key,
      "': expected ", count, " elements of ", Name(type->second), ", but only ", left,
      " bytes are left in the file.");
    ZipRecord record;
    record.data = this->Data + at + countBytes;
    record.size = count * bytes;
    this->AddStorage(record, key);
    return at + countBytes + static_cast<std::size_t>(record.size);
  }

  // Storages

  void AddStorage(const ZipRecord& record, std::string_view key)
  {
    auto bytes = std::make_unique<StoredBytes>();
    bytes->record = record;
    bytes->record.name = key;
    this->Shared->storages.push_back(std::move(bytes));
  }

  void SortStorages()
  {
    auto& storages = this->Shared->storages;
    std::sort(storages.begin(), storages.end(),
      [](const auto& a, const auto& b) { return a->record.name < b->record.name; });
    for (std::size_t i = 1; i < storages.size(); ++i)
    {
      const std::string_view name = storages[i]->record.name;
      this->FailIf(storages[i - 1]->record.name == name, "storage '", name, "' is there twice.");
    }
  }

  /// The bytes of a storage, which must be as many as the pickle says.
  std::size_t FindStorage(const PickleStorage& storage) const
  {
    const auto& storages = this->Shared->storages;
    const auto found = std::lower_bound(storages.begin(), storages.end(), storage.key,
      [](const auto& bytes, std::string_view key) { return bytes->record.name < key; });
    const std::string name = "storage '" + std::string(storage.key) + "'";
    this->FailIf(
      found == storages.end() || (*found)->record.name != storage.key, name, " is missing.");
    const std::uint64_t count = (*found)->record.size / ByteSize(storage.dtype);
    this->FailIf(count != storage.count, name, ": expected ", storage.count, " elements of ",
      Name(storage.dtype), ", found ", count, ".");
    return found - storages.begin();
  }

  // Tensors

  static bool IsHolder(const PickleValue& value)
  {
    return value.kind == PickleKind::Dictionary || value.kind == PickleKind::List ||
           value.kind == PickleKind::Tuple;
  }

  /// Walks through dictionaries, lists and tuples, which may contain each other in circles or many
  /// times over.
  void NameTensors(const PickleValue& holder, const std::string& name, std::size_t depth)
  {
    static const std::vector<PickleObjects::Index> none;
    const auto& items = IsHolder(holder) ? this->Objects.ItemsOf(holder) : none;
    const bool hasKeys = holder.kind == PickleKind::Dictionary;
    const std::size_t step = hasKeys ? 2 : 1;
    for (std::size_t i = 0; i + step <= items.size(); i += step)
    {
      const PickleValue& item = this->Objects.values[items[i + step - 1]];
      this->FailIf(depth > MaximumDepth || ++this->Visits > this->Objects.bytes,
        "expected dictionaries and lists that are at most ", MaximumDepth,
        " deep and do not contain each other in circles or many times over.");
      if (item.kind == PickleKind::Tensor)
      {
        this->AddTensor(this->NameOf(name, hasKeys, items[i], i), name, item);
      }
      else if (IsHolder(item))
      {
        this->NameTensors(item, this->NameOf(name, hasKeys, items[i], i), depth + 1);
      }
    }
  }

  /// The name of an item by its key, or else by its place.
  std::string NameOf(
    const std::string& holder, bool hasKeys, PickleObjects::Index first, std::size_t place)
  {
    const PickleValue& key = this->Objects.values[first];
    const std::string part = !hasKeys                          ? std::to_string(place)
                             : key.kind == PickleKind::Text    ? std::string(key.text)
                             : key.kind == PickleKind::Integer ? std::to_string(key.number)
                                                               : "?";
    this->NameBytes += holder.size() + 1 + part.size();
    this->FailIf(this->NameBytes > MaximumNames + MaximumNameShare * this->Objects.bytes,
      "the names of its tensors are longer than those of any model.");
    return holder.empty() ? part : holder + "." + part;
  }

  void AddTensor(const std::string& name, const std::string& holder, const PickleValue& value)
  {
    const PickleTensor& tensor = this->Objects.tensors[value.number];
    const PickleStorage& storage = this->Objects.storages[tensor.storage];
    const std::size_t bytes = this->FindStorage(storage);
    const std::uint64_t count = this->RequireInside(name, tensor, storage.count);
    const std::size_t size = ByteSize(storage.dtype);
    const TensorView view = { storage.dtype, tensor.shape,
      this->Shared->storages[bytes]->record.data + tensor.offset * size };
    const bool isPacked = count == 0 || IsPacked(tensor);
    if (!isPacked)
    {
      this->AddCopy(name, tensor, count * size);
    }
    const auto load = [shared = std::shared_ptr<const SharedFile>(this->Shared), bytes, view,
                        stride = isPacked ? Shape() : tensor.stride, isPacked]() -> LoadedArray
    {
      StoredBytes& stored = *shared->storages[bytes];
      std::call_once(stored.isCompared, [&] { RequireChecksum(stored.record, shared->source); });
      if (isPacked)
      {
        return { view, shared };
      }
      const auto copy = std::make_shared<const std::vector<std::byte>>(
        PackedCopy(view.data, view.shape, stride, ByteSize(view.dtype)));
      return { { view.dtype, view.shape, copy->data() }, copy };
    };
    ArrayEntry entry = { storage.dtype, tensor.shape, load, holder };
    if (this->Shared->file != nullptr)
    {
      entry.load = [file = this->Shared->file, load] { return ReadIntact(*file, load); };
    }
    this->FailIf(
      !this->Tensors.emplace(name, std::move(entry)).second, "tensor '", name, "' is there twice.");
  }

  /// The number of elements of a tensor, all of which must be in the storage of `stored` elements.
  std::uint64_t RequireInside(
    const std::string& name, const PickleTensor& tensor, std::uint64_t stored) const
  {
    const auto fail = [&](const auto&... message)
    {
      this->Fail("tensor '", name, "' of shape ", ToString(tensor.shape), ", strides ",
        ToString(tensor.stride), " and offset ", tensor.offset, " ", message...);
    };
    constexpr std::uint64_t most = std::uint64_t{ std::numeric_limits<std::int64_t>::max() } / 8;
    const std::uint64_t count = ElementCount(tensor.shape).value_or(most + 1);
    if (count > most)
    {
      fail("has too many elements.");
    }
    bool isInside = tensor.offset <= stored;
    std::uint64_t left = isInside ? stored - tensor.offset : 0; // beyond the first
    isInside = isInside && (left > 0 || count == 0);
    left -= left > 0 ? 1 : 0;
    for (std::size_t axis = 0; isInside && count > 0 && axis < tensor.shape.size(); ++axis)
    {
      const auto steps = static_cast<std::uint64_t>(tensor.shape[axis]) - 1;
      const auto stride = static_cast<std::uint64_t>(tensor.stride[axis]);
      isInside = steps == 0 || stride <= left / steps;
      left -= isInside ? steps * stride : 0;
    }
    if (!isInside)
    {
      fail("is not inside its storage of ", stored, " elements.");
    }
    return count;
  }

  void AddCopy(const std::string& name, const PickleTensor& tensor, std::uint64_t bytes)
  {
    const std::uint64_t most = MaximumCopies + MaximumCopiesShare * this->Size;
    this->FailIf(bytes > most || this->Copies > most - bytes, "tensor '", name, "' of shape ",
      ToString(tensor.shape),
      " is not stored as it is: with others like it, it would take more than ", most,
      " bytes of memory.");
    this->Copies += bytes;
  }
};

}

void TorchFile::Parse(const std::byte* data, std::size_t size,
  const std::shared_ptr<const void>& owner, const std::string& source)
{
  auto shared = std::make_shared<SharedFile>();
  shared->owner = owner;
  shared->file = this->File;
  shared->source = source;
  Reader reader(data, size, std::move(shared));
  this->Tensors = reader.Read();
  this->Settings = reader.Settings();
}

TorchFile::TorchFile(const std::filesystem::path& path)
  : File(std::make_shared<const MappedFile>(path))
{
  ReadIntact(*this->File,
    [&]
    {
      this->Parse(this->File->Data(), this->File->Size(), this->File, path.string());
      return true;
    });
}

TorchFile::TorchFile(const std::byte* data, std::size_t size,
  const std::shared_ptr<const void>& owner, const std::string& source)
{
  this->Parse(data, size, owner, source);
}

std::string ReadPickledData(const std::filesystem::path& path)
{
  const std::string bytes = ReadFile(path);
  const PickleObjects objects =
    ReadPickle(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), path.string());
  return PlainData(objects).Text();
}

bool LooksLikeTorch(const std::byte* data, std::size_t size)
{
  if (LooksLikePickle(data, size))
  {
    return true;
  }
  if (!BeginsWith({ reinterpret_cast<const char*>(data), size }, ZipMagic))
  {
    return false;
  }
  try
  {
    const std::vector<ZipRecord> records = ReadZipDirectory(data, size, {});
    return std::any_of(records.begin(), records.end(),
      [](const ZipRecord& record) { return BelowTop(record.name) == PickleRecord; });
  }
  catch (const FormatError&)
  {
    return false; // perhaps an archive of another kind, with compressed records
  }
}

}
