#include "TorchFile.h"

#include "Error.h"
#include "JsonText.h"
#include "PickleReader.h"
#include "ZipDirectory.h"

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

bool BeginsWith(std::string_view text, std::string_view begin)
{
  return text.substr(0, begin.size()) == begin;
}

/// The part of a name behind its top folder.
std::string_view BelowTop(std::string_view name)
{
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
}

/// A tensor in the bytes of its storage.
struct PlacedTensor
{
  DType dtype = DType::F32;
  Shape shape;
  Shape stride;
  const std::byte* data = nullptr; ///< of its first element
  bool isPacked = false;           ///< one element lies behind the other
};

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

/// Copies `count` elements that are `step` bytes apart.
template<std::size_t Bytes>
void CopyStrided(const std::byte* from, std::uint64_t step, std::uint64_t count, std::byte* to)
{
  for (std::uint64_t i = 0; i < count; ++i)
  {
    std::memcpy(to + i * Bytes, from + i * step, Bytes);
  }
}

void CopyRow(
  std::size_t bytes, const std::byte* from, std::uint64_t step, std::uint64_t count, std::byte* to)
{
  switch (bytes)
  {
    case 1:
      return CopyStrided<1>(from, step, count, to);
    case 2:
      return CopyStrided<2>(from, step, count, to);
    case 4:
      return CopyStrided<4>(from, step, count, to);
    default:
      return CopyStrided<8>(from, step, count, to);
  }
}

/// An axis of a tensor, or several that are one step apart throughout.
struct MergedAxis
{
  std::uint64_t count = 0;
  std::uint64_t step = 0; ///< in bytes
  std::uint64_t index = 0;
};

/// The axes of more than one element, as few as possible.
std::vector<MergedAxis> MergeAxes(const PlacedTensor& tensor)
{
  std::vector<MergedAxis> axes;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
  {
    const auto count = static_cast<std::uint64_t>(tensor.shape[axis]);
    const std::uint64_t step =
      static_cast<std::uint64_t>(tensor.stride[axis]) * ByteSize(tensor.dtype);
    if (count == 1)
    {
      continue; // its stride may be any
    }
    if (!axes.empty() && axes.back().step == step * count)
    {
      axes.back() = { axes.back().count * count, step };
    }
    else
    {
      axes.push_back({ count, step });
    }
  }
  return axes;
}

/// The elements of a tensor in row-major order. It is not packed, so one axis at least has more
/// than one element.
std::vector<std::byte> PackedCopy(const PlacedTensor& tensor, std::uint64_t count)
{
  const std::size_t bytes = ByteSize(tensor.dtype);
  std::vector<std::byte> copy(count * bytes);
  std::vector<MergedAxis> outer = MergeAxes(tensor);
  const MergedAxis columns = outer.back();
  outer.pop_back();
  const std::byte* row = tensor.data;
  for (std::uint64_t done = 0; done < count; done += columns.count)
  {
    CopyRow(bytes, row, columns.step, columns.count, copy.data() + done * bytes);
    for (auto axis = outer.rbegin(); axis != outer.rend(); ++axis)
    {
      row += axis->step;
      if (++axis->index < axis->count)
      {
        break;
      }
      row -= axis->step * axis->count;
      axis->index = 0;
    }
  }
  return copy;
}

/// The number whose eight bytes these are, the highest first.
double RealOf(std::string_view bytes)
{
  std::uint64_t bits = 0;
  for (const char byte : bytes)
  {
    bits = bits << 8U | static_cast<unsigned char>(byte);
  }
  double number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
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
        return RealOf(value.text);
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
class Reader
{
public:
  Reader(const std::byte* data, std::size_t size, std::shared_ptr<SharedFile> shared)
    : Data(data)
    , Size(size)
    , Shared(std::move(shared))
    , Source(this->Shared->source)
  {
  }

  TorchFile::Entries Read()
  {
    const std::string_view text(reinterpret_cast<const char*>(this->Data), this->Size);
    if (BeginsWith(text, ZipMagic))
    {
      this->ReadZip();
    }
    else if (LooksLikePickle(this->Data, this->Size))
    {
      this->ReadLegacy();
    }
    else
    {
      this->Fail("expected a PyTorch file, which is a zip archive or begins with the pickle of a "
                 "number, found " +
                 std::to_string(this->Size) + " other bytes.");
    }
    this->NameTensors();
    return std::move(this->Tensors);
  }

  std::string Settings() const { return PlainData(this->Objects).Text(); }

private:
  /// A dictionary, list or tuple whose items are being named.
  struct Holder
  {
    const PickleValue* value;
    std::size_t next; ///< item
    std::string name;
  };

  const std::byte* Data;
  std::size_t Size;
  std::shared_ptr<SharedFile> Shared;
  const std::string& Source;
  PickleObjects Objects;
  TorchFile::Entries Tensors;
  std::uint64_t Copies = 0;    ///< bytes of the tensors that are not packed
  std::uint64_t NameBytes = 0; ///< of all tensors

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(this->Source + ": " + message);
  }

  // Zip archives

  void ReadZip()
  {
    const std::vector<ZipRecord> records = ReadZipDirectory(this->Data, this->Size, this->Source);
    const ZipRecord* pickle = this->FindPickle(records);
    this->RequireLittleEndian(Find(records, "byteorder"));
    RequireChecksum(*pickle, this->Source);
    this->Objects = ReadPickle(pickle->data, pickle->size, this->Source);
    if (this->Objects.bytes != pickle->size)
    {
      this->Fail("expected nothing behind the pickle in " + std::string(pickle->name) + ".");
    }
    for (const ZipRecord& record : records)
    {
      constexpr std::string_view folder = "data/";
      const std::string_view name = BelowTop(record.name);
      if (BeginsWith(name, folder))
      {
        this->AddStorage(record, name.substr(folder.size()));
      }
    }
    this->SortStorages();
  }

  /// All records are in one folder.
  const ZipRecord* FindPickle(const std::vector<ZipRecord>& records) const
  {
    for (const ZipRecord& record : records)
    {
      const std::size_t top = record.name.find('/');
      const std::string_view first = records.front().name;
      if (top == std::string_view::npos ||
          first.substr(0, top + 1) != record.name.substr(0, top + 1))
      {
        this->Fail("expected a PyTorch file, whose records are all in one folder, found '" +
                   std::string(first) + "' and '" + std::string(record.name) + "'.");
      }
    }
    if (Find(records, "constants.pkl") != nullptr)
    {
      this->Fail("expected tensors, found a TorchScript program; save its state_dict() instead.");
    }
    for (const ZipRecord& record : records)
    {
      if (!record.isStored)
      {
        this->Fail("record '" + std::string(record.name) +
                   "' is compressed or encrypted; expected it to be stored, as PyTorch does.");
      }
    }
    const ZipRecord* pickle = Find(records, PickleRecord);
    if (pickle == nullptr)
    {
      this->Fail("expected a PyTorch file, which has a record " + std::string(PickleRecord) +
                 ", found none.");
    }
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
    if (order != nullptr &&
        std::string_view(reinterpret_cast<const char*>(order->data), order->size) != "little")
    {
      this->Fail("expected numbers in little-endian order, found a record byteorder that says "
                 "otherwise.");
    }
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
    if (magic.Root().kind != PickleKind::LongInteger || magic.Root().text != LegacyMagic)
    {
      this->Fail("expected a PyTorch file, found a pickle of something else.");
    }
    const PickleObjects version = read();
    if (version.Root().kind != PickleKind::Integer || version.Root().number != LegacyVersion)
    {
      this->Fail("expected version " + std::to_string(LegacyVersion) + " of PyTorch's files.");
    }
    this->RequireLittleEndian(read());
    this->Objects = read();
    const PickleObjects keys = read();
    if (keys.Root().kind != PickleKind::List)
    {
      this->Fail("expected a list of the keys of its storages.");
    }
    const std::map<std::string_view, DType> types = this->StorageTypes();
    for (const PickleObjects::Index item : keys.ItemsOf(keys.Root()))
    {
      at = this->ReadLegacyStorage(keys.values[item].text, types, at);
    }
    if (at != this->Size)
    {
      this->Fail(
        "no storage holds the last " + std::to_string(this->Size - at) + " bytes of the file.");
    }
    this->SortStorages();
  }

  void RequireLittleEndian(const PickleObjects& system) const
  {
    if (system.Root().kind != PickleKind::Dictionary)
    {
      this->Fail("expected a dictionary about the system that wrote it.");
    }
    const auto& items = system.ItemsOf(system.Root());
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    {
      const PickleValue& value = system.values[items[i + 1]];
      if (system.values[items[i]].text == "little_endian" &&
          (value.kind != PickleKind::Boolean || value.number == 0))
      {
        this->Fail("expected numbers in little-endian order, found little_endian False.");
      }
    }
  }

  /// The types of the storages, whose lengths in bytes follow from them.
  std::map<std::string_view, DType> StorageTypes() const
  {
    std::map<std::string_view, DType> types;
    for (const PickleStorage& storage : this->Objects.storages)
    {
      const auto [known, isNew] = types.emplace(storage.key, storage.dtype);
      if (known->second != storage.dtype)
      {
        this->Fail("storage '" + std::string(storage.key) + "' is of two types, " +
                   std::string(Name(known->second)) + " and " + std::string(Name(storage.dtype)) +
                   ".");
      }
    }
    return types;
  }

  /// The number of elements, then the elements. Returns where they end.
  std::size_t ReadLegacyStorage(
    std::string_view key, const std::map<std::string_view, DType>& types, std::size_t at)
  {
    constexpr std::size_t countBytes = 8;
    const auto type = types.find(key);
    if (type == types.end())
    {
      this->Fail("no tensor uses storage '" + std::string(key) + "'.");
    }
    const std::size_t left = this->Size - at;
    std::uint64_t count = 0;
    for (std::size_t i = std::min(countBytes, left); i-- > 0;)
    {
      count = count << 8U | std::to_integer<std::uint64_t>(this->Data[at + i]);
    }
    const std::size_t bytes = ByteSize(type->second);
    if (left < countBytes || count > (left - countBytes) / bytes)
    {
      this->Fail("storage '" + std::string(key) + "': expected " + std::to_string(count) +
                 " elements of " + std::string(Name(type->second)) + ", but only " +
                 std::to_string(left) + " bytes are left in the file.");
    }
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
    const auto twice = std::adjacent_find(storages.begin(), storages.end(),
      [](const auto& a, const auto& b) { return a->record.name == b->record.name; });
    if (twice != storages.end())
    {
      this->Fail("storage '" + std::string((*twice)->record.name) + "' is there twice.");
    }
  }

  /// The bytes of a storage, which must be as many as the pickle says.
  std::size_t FindStorage(const PickleStorage& storage) const
  {
    const auto& storages = this->Shared->storages;
    const auto found = std::lower_bound(storages.begin(), storages.end(), storage.key,
      [](const auto& bytes, std::string_view key) { return bytes->record.name < key; });
    const std::string name = "storage '" + std::string(storage.key) + "'";
    if (found == storages.end() || (*found)->record.name != storage.key)
    {
      this->Fail(name + " is missing.");
    }
    const std::uint64_t count = (*found)->record.size / ByteSize(storage.dtype);
    if (count != storage.count)
    {
      this->Fail(name + ": expected " + std::to_string(storage.count) + " elements of " +
                 std::string(Name(storage.dtype)) + ", found " + std::to_string(count) + ".");
    }
    return found - storages.begin();
  }

  // Tensors

  /// Walks through dictionaries, lists and tuples, which may contain each other in circles or many
  /// times over.
  void NameTensors()
  {
    if (this->Objects.Root().kind == PickleKind::Tensor)
    {
      this->AddTensor("array", {}, this->Objects.Root());
      return;
    }
    std::vector<Holder> open = { { &this->Objects.Root(), 0, {} } };
    std::size_t visits = 0;
    while (!open.empty())
    {
      Holder& holder = open.back();
      const PickleValue* item = this->NextItem(holder);
      if (item == nullptr)
      {
        open.pop_back();
        continue;
      }
      if (open.size() > MaximumDepth || ++visits > this->Objects.bytes)
      {
        this->Fail("expected dictionaries and lists that are at most " +
                   std::to_string(MaximumDepth) +
                   " deep and do not contain each other in circles or many times over.");
      }
      if (item->kind == PickleKind::Tensor)
      {
        this->AddTensor(this->NameOfItem(holder), holder.name, *item);
      }
      else if (IsHolder(*item))
      {
        std::string name = this->NameOfItem(holder);
        open.push_back({ item, 0, std::move(name) });
      }
    }
  }

  static bool IsHolder(const PickleValue& value)
  {
    return value.kind == PickleKind::Dictionary || value.kind == PickleKind::List ||
           value.kind == PickleKind::Tuple;
  }

  /// The next item of a holder, whose key is before it in a dictionary; nullptr at its end.
  const PickleValue* NextItem(Holder& holder) const
  {
    if (!IsHolder(*holder.value))
    {
      return nullptr;
    }
    const auto& items = this->Objects.ItemsOf(*holder.value);
    holder.next += holder.value->kind == PickleKind::Dictionary ? 2 : 1;
    return holder.next > items.size() ? nullptr : &this->Objects.values[items[holder.next - 1]];
  }

  /// The name of the item that NextItem returned.
  std::string NameOfItem(const Holder& holder)
  {
    std::string_view text;
    std::string number;
    if (holder.value->kind == PickleKind::Dictionary)
    {
      const auto& items = this->Objects.ItemsOf(*holder.value);
      const PickleValue& key = this->Objects.values[items[holder.next - 2]];
      text = key.kind == PickleKind::Text ? key.text : std::string_view("?");
      number = key.kind == PickleKind::Integer ? std::to_string(key.number) : "";
    }
    else
    {
      number = std::to_string(holder.next - 1);
    }
    const std::string_view part = number.empty() ? text : number;
    this->NameBytes += holder.name.size() + 1 + part.size();
    if (this->NameBytes > MaximumNames + MaximumNameShare * this->Objects.bytes)
    {
      this->Fail("the names of its tensors are longer than those of any model.");
    }
    std::string name = holder.name;
    name += holder.name.empty() ? "" : ".";
    name += part;
    return name;
  }

  void AddTensor(const std::string& name, const std::string& holder, const PickleValue& value)
  {
    const PickleTensor& tensor = this->Objects.tensors[value.number];
    const PickleStorage& storage = this->Objects.storages[tensor.storage];
    const std::size_t bytes = this->FindStorage(storage);
    const std::uint64_t count = this->RequireInside(name, tensor, storage.count);
    PlacedTensor placed = { storage.dtype, tensor.shape, tensor.stride,
      this->Shared->storages[bytes]->record.data + tensor.offset * ByteSize(storage.dtype),
      count == 0 || IsPacked(tensor) };
    if (!placed.isPacked)
    {
      this->AddCopy(name, tensor, count * ByteSize(storage.dtype));
    }
    TorchTensor entry = { storage.dtype, tensor.shape, holder, {} };
    entry.load = [shared = std::shared_ptr<const SharedFile>(this->Shared), bytes, placed, count]
    { return Load(*shared, *shared->storages[bytes], placed, count, shared); };
    if (!this->Tensors.emplace(name, std::move(entry)).second)
    {
      this->Fail("tensor '" + name + "' is there twice.");
    }
  }

  /// The number of elements of a tensor, all of which must be in the storage of `stored` elements.
  std::uint64_t RequireInside(
    const std::string& name, const PickleTensor& tensor, std::uint64_t stored) const
  {
    const auto fail = [&](const std::string& message)
    {
      this->Fail("tensor '" + name + "' of shape " + ToString(tensor.shape) + ", strides " +
                 ToString(tensor.stride) + " and offset " + std::to_string(tensor.offset) + " " +
                 message);
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
      fail("is not inside its storage of " + std::to_string(stored) + " elements.");
    }
    return count;
  }

  void AddCopy(const std::string& name, const PickleTensor& tensor, std::uint64_t bytes)
  {
    const std::uint64_t most = MaximumCopies + MaximumCopiesShare * this->Size;
    if (bytes > most || this->Copies > most - bytes)
    {
      this->Fail("tensor '" + name + "' of shape " + ToString(tensor.shape) +
                 " is not stored as it is: with others like it, it would take more than " +
                 std::to_string(most) + " bytes of memory.");
    }
    this->Copies += bytes;
  }

  static LoadedArray Load(const SharedFile& shared, StoredBytes& bytes, const PlacedTensor& tensor,
    std::uint64_t count, const std::shared_ptr<const void>& owner)
  {
    const auto load = [&]() -> LoadedArray
    {
      std::call_once(bytes.isCompared, [&] { RequireChecksum(bytes.record, shared.source); });
      if (tensor.isPacked)
      {
        return { { tensor.dtype, tensor.shape, tensor.data }, owner };
      }
      auto copy = std::make_shared<const std::vector<std::byte>>(PackedCopy(tensor, count));
      return { { tensor.dtype, tensor.shape, copy->data() }, copy };
    };
    return shared.file == nullptr ? load() : ReadIntact(*shared.file, load);
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
