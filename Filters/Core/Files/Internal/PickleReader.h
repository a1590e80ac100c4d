#pragma once

// Internal to Core: the objects of a pickle, read without running any of it.

#include "Files/Tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

enum class PickleKind
{
  None,
  Boolean,
  Integer,     ///< of up to 64 bits
  LongInteger, ///< of more; PickleValue::text are its bytes, the lowest first
  Real,        ///< PickleValue::text are its bytes, the highest first
  Text,
  Bytes,
  Tuple,
  List,
  Dictionary, ///< its items are keys and values in turn
  Set,        ///< its items are not kept
  Function,   ///< OrderedDict, a function that rebuilds a tensor; see PickleReader.cxx
  StorageType,
  Other, ///< a type of elements, a device
  Storage,
  Tensor
};

/// An object. Texts point into the pickle.
struct PickleValue
{
  PickleKind kind = PickleKind::None;
  bool ordered = false;    ///< a dictionary that is an OrderedDict
  std::int64_t number = 0; ///< a value, or an index into the tables of PickleObjects
  std::string_view text;
};

/// The numbers of one or more tensors, which are in the file but not in the pickle.
struct PickleStorage
{
  std::string_view key;
  DType dtype = DType::F32;
  std::uint64_t count = 0; ///< of elements
};

/// A part of a storage. Element (i, j, ...) is number offset + i * stride[0] + j * stride[1] + ...
struct PickleTensor
{
  std::size_t storage = 0; ///< index into PickleObjects::storages
  std::uint64_t offset = 0;
  Shape shape;  ///< not negative, and as many as strides
  Shape stride; ///< not negative
};

/// The objects of a pickle. Values refer to each other by index, perhaps in circles.
struct PickleObjects
{
  using Index = std::uint32_t;

  std::vector<PickleValue> values;
  std::vector<std::vector<Index>> items; ///< of tuples, lists and dictionaries
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  Index root = 0;
  std::size_t bytes = 0; ///< length of the pickle

  const PickleValue& Root() const { return this->values[this->root]; }

  /// The items of a tuple, list or dictionary.
  const std::vector<Index>& ItemsOf(const PickleValue& value) const
  {
    return this->items[value.number];
  }
};

/// Reads a pickle (protocol 2 to 5) as torch.save writes it: dictionaries, lists, numbers, texts
/// and tensors. Nothing is executed: a pickle is a program for a machine with a stack, and this
/// machine has only the instructions that build such data; the only functions are those that make
/// OrderedDicts and dense tensors. Anything else throws FormatError, which names the instruction,
/// class or function, as do indices that are out of range and pickles of more than 4 million
/// values. Work and memory are in proportion to the length of the pickle. Bytes behind it are not
/// read. The message starts with `source`.
///
/// Format: Python's pickletools.py; PyTorch's torch/serialization.py and torch/_utils.py.
PickleObjects ReadPickle(const std::byte* data, std::size_t size, const std::string& source);

}
