#pragma once

#include "NumpyBytes.h"

#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// Parts of pickles (protocol 2), by the description of the format in Python's pickletools.py. Each
/// leaves one object on the stack.
inline std::string PickledText(const std::string& text)
{
  return "X" + LittleEndian(text.size(), 4) + text;
}

inline std::string PickledNumber(std::int64_t number)
{
  return "\x8a\x08" + LittleEndian(static_cast<std::uint64_t>(number), 8);
}

inline std::string PickledGlobal(const std::string& module, const std::string& name)
{
  return "c" + module + "\n" + name + "\n";
}

inline std::string PickledTuple(const std::vector<std::string>& items)
{
  std::string pickle = "(";
  for (const std::string& item : items)
  {
    pickle += item;
  }
  return pickle + "t";
}

inline std::string PickledTuple(const std::vector<std::int64_t>& numbers)
{
  std::vector<std::string> items;
  for (const std::int64_t number : numbers)
  {
    items.push_back(PickledNumber(number));
  }
  return PickledTuple(items);
}

inline std::string PickledList(const std::vector<std::string>& items)
{
  std::string pickle = "](";
  for (const std::string& item : items)
  {
    pickle += item;
  }
  return pickle + "e";
}

inline std::string PickledDictionary(const std::vector<std::pair<std::string, std::string>>& items)
{
  std::string pickle = "}(";
  for (const auto& [key, value] : items)
  {
    pickle += PickledText(key) + value;
  }
  return pickle + "u";
}

inline std::string PickledOrderedDictionary()
{
  return PickledGlobal("collections", "OrderedDict") + ")R";
}

/// The numbers of tensors, in the file below `key`.
struct PickledStorage
{
  std::string key;
  std::int64_t count = 0;
  std::string type = "FloatStorage";
  bool legacy = false;

  std::string Pickle() const
  {
    std::vector<std::string> id = { PickledText("storage"), PickledGlobal("torch", this->type),
      PickledText(this->key), PickledText("cpu"), PickledNumber(this->count) };
    if (this->legacy)
    {
      id.emplace_back("N");
    }
    return PickledTuple(id) + "Q";
  }
};

inline std::string PickledTensor(const PickledStorage& storage, std::int64_t offset,
  const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride)
{
  return PickledGlobal("torch._utils", "_rebuild_tensor_v2") +
         PickledTuple({ storage.Pickle(), PickledNumber(offset), PickledTuple(shape),
           PickledTuple(stride), "\x89", PickledOrderedDictionary() }) +
         "R";
}

/// Numbers from 0 as a tensor [count] in storage `key`.
inline std::string PickledVector(const std::string& key, std::int64_t count, bool legacy = false)
{
  return PickledTensor({ key, count, "FloatStorage", legacy }, 0, { count }, { 1 });
}

inline std::string Pickle(const std::string& object)
{
  return "\x80\x02" + object + ".";
}

/// A file of PyTorch, as a zip archive: an object and the bytes of its storages.
inline std::string TorchZip(const std::string& object,
  const std::vector<std::pair<std::string, std::string>>& storages, bool checksums = true)
{
  std::vector<std::pair<std::string, std::string>> records = { { "archive/data.pkl",
    Pickle(object) } };
  for (const auto& [key, bytes] : storages)
  {
    records.emplace_back("archive/data/" + key, bytes);
  }
  records.emplace_back("archive/version", "3\n");
  return ZipFile(records, false, 0, checksums);
}

/// Same, as PyTorch wrote it before version 1.6; storages of floats.
inline std::string TorchLegacy(
  const std::string& object, const std::vector<std::pair<std::string, std::string>>& storages)
{
  std::vector<std::string> keys;
  std::string data;
  for (const auto& [key, bytes] : storages)
  {
    keys.push_back(PickledText(key));
    data += LittleEndian(bytes.size() / 4, 8) + bytes;
  }
  return Pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + Pickle(PickledNumber(1001)) +
         Pickle(PickledDictionary({ { "little_endian", "\x88" } })) + Pickle(object) +
         Pickle(PickledList(keys)) + data;
}

}
