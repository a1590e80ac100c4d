#pragma once

// Internal to Core: the numbers of statistics in the tensors of a file, written and read alike.

#include "Base/Error.h"
#include "Corpus/ExactSum.h"
#include "Files/Safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace atlas
{

inline std::int64_t CountOf(std::size_t size)
{
  return static_cast<std::int64_t>(size);
}

/// Numbers that are written to where a tensor is.
class CorpusNumbersOut
{
public:
  explicit CorpusNumbersOut(std::byte* to)
    : To(to)
  {
  }

  void Integer(std::int64_t value) { this->Put(value); }
  void Count(std::int64_t value) { this->Put(value); }
  void Flag(bool value) { this->Put<std::int64_t>(value ? 1 : 0); }
  void Sum(const ExactSum& sum)
  {
    this->Put(sum.High());
    this->Put(sum.Low());
  }
  template<int Bits>
  void Sum(const FixedSum<Bits>& sum)
  {
    this->Put(sum.Stored());
  }
  void Double(double value) { this->Put(value); }
  void Float(float value) { this->Put(value); }
  void WideFloat(float value) { this->Put(static_cast<double>(value)); }

private:
  std::byte* To;

  template<class Value>
  void Put(Value value)
  {
    std::memcpy(this->To, &value, sizeof(value));
    this->To += sizeof(value);
  }
};

/// Numbers that are read from a tensor. What could not have been written throws ModelError.
class CorpusNumbersIn
{
public:
  CorpusNumbersIn(const TensorView& view, std::string what)
    : From(view.data)
    , What(std::move(what))
  {
  }

  void Integer(std::int64_t& value) { value = this->Get<std::int64_t>(); }
  void Integer(std::int32_t& value)
  {
    value = static_cast<std::int32_t>(this->Between(
      std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
  }
  void Integer(std::uint64_t& value)
  {
    value = static_cast<std::uint64_t>(this->Get<std::int64_t>());
  }
  void Integer(char& letter)
  {
    letter = static_cast<char>(this->Between(
      std::numeric_limits<signed char>::min(), std::numeric_limits<unsigned char>::max()));
  }
  /// Not negative, and so small that all counts of a file can be added up.
  void Count(std::int64_t& value) { value = this->Between(0, std::int64_t{ 1 } << 48); }
  void Flag(bool& value) { value = this->Get<std::int64_t>() != 0; }
  void Sum(ExactSum& sum)
  {
    const std::int64_t high = this->Between(-Half, Half);
    sum = ExactSum::FromBits(high, this->Get<std::int64_t>());
  }
  template<int Bits>
  void Sum(FixedSum<Bits>& sum)
  {
    sum = FixedSum<Bits>::FromStored(this->Between(-Half, Half));
  }
  void Double(double& value) { value = this->Finite(this->Get<double>()); }
  void Float(float& value) { value = this->Finite(this->Get<float>()); }
  void WideFloat(float& value)
  {
    const auto wide = this->Get<double>();
    ThrowIf<ModelError>(!(std::abs(wide) <= static_cast<double>(std::numeric_limits<float>::max())),
      this->What, ": expected finite numbers in single precision, found ", wide, ".");
    value = static_cast<float>(wide);
  }

private:
  static constexpr std::int64_t Half = std::int64_t{ 1 } << 62; ///< so that a sum can grow
  const std::byte* From;
  std::string What;

  template<class Value>
  Value Get()
  {
    const auto value = LoadElement<Value>(this->From, 0);
    this->From += sizeof(value);
    return value;
  }
  std::int64_t Between(std::int64_t least, std::int64_t most)
  {
    const auto value = this->Get<std::int64_t>();
    ThrowIf<ModelError>(value < least || value > most, this->What, ": expected numbers from ",
      least, " to ", most, ", found ", value, ".");
    return value;
  }
  template<class Value>
  Value Finite(Value value) const
  {
    ThrowIf<ModelError>(
      !std::isfinite(value), this->What, ": expected finite numbers, found ", value, ".");
    return value;
  }
};

template<class Numbers, class List>
void PassSums(Numbers& numbers, List& sums)
{
  for (auto& sum : sums)
  {
    numbers.Sum(sum);
  }
}

template<class Numbers, class List>
void PassCounts(Numbers& numbers, List& counts)
{
  for (auto& count : counts)
  {
    numbers.Count(count);
  }
}

template<class Numbers, class List>
void PassIntegers(Numbers& numbers, List& integers)
{
  for (auto& integer : integers)
  {
    numbers.Integer(integer);
  }
}

/// The tensors of a file that is made: first their shapes, then, once it is known where each is,
/// their numbers.
class CorpusArchiveWriter
{
public:
  static constexpr bool Reads = false;

  template<class Use>
  void Tensor(const std::string& name, const Shape& shape, DType dtype, const Use& use)
  {
    if (this->Data == nullptr)
    {
      this->Views.insert_or_assign(name, TensorView{ dtype, shape, nullptr });
      return;
    }
    CorpusNumbersOut numbers(this->Data + this->Layout.offsets.at(name));
    use(numbers);
  }

  /// What a list has that is written.
  std::int64_t RowsOf(const std::string& /*name*/, const Shape& /*columns*/, std::size_t rows) const
  {
    return CountOf(rows);
  }
  template<class List>
  static void Resize(const List& /*list*/, std::int64_t /*size*/)
  {
  }

  /// Returns the number of bytes of the file.
  std::size_t LayOut(const Metadata& metadata)
  {
    this->Layout = LayOutSafetensors(this->Views, metadata);
    return this->Layout.dataEnd;
  }
  void WriteTo(char* bytes)
  {
    std::copy(this->Layout.header.begin(), this->Layout.header.end(), bytes);
    this->Data = reinterpret_cast<std::byte*>(bytes);
  }

private:
  TensorViews Views;
  SafetensorsLayout Layout;
  std::byte* Data = nullptr;
};

/// The tensors of a file that is read. Lists are resized for those alone whose shape was found.
class CorpusArchiveReader
{
public:
  static constexpr bool Reads = true;

  CorpusArchiveReader(const TensorViews& tensors, std::string source)
    : Tensors(tensors)
    , Source(std::move(source))
  {
  }

  template<class Use>
  void Tensor(const std::string& name, const Shape& shape, DType dtype, const Use& use) const
  {
    const TensorView& view = this->Find(name);
    this->FailIf(view.shape != shape || view.dtype != dtype, "expected ", name, " as ", Name(dtype),
      " ", ToString(shape), ", found ", Describe(view), ".");
    CorpusNumbersIn numbers(view, this->Source + ": " + name);
    use(numbers);
  }

  /// The rows of a tensor of integers with these columns.
  std::int64_t RowsOf(const std::string& name, const Shape& columns, std::size_t /*rows*/) const
  {
    const TensorView& view = this->Find(name);
    if (view.dtype != DType::I64 || view.shape.empty() ||
        Shape(view.shape.begin() + 1, view.shape.end()) != columns)
    {
      Shape shape = columns;
      shape.insert(shape.begin(), view.shape.empty() ? 0 : view.shape.front());
      this->Fail("expected ", name, " as I64 ", ToString(shape), ", found ", Describe(view), ".");
    }
    return view.shape.front();
  }
  template<class List>
  static void Resize(List& list, std::int64_t size)
  {
    list.resize(size);
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const
  {
    throw ModelError(this->Source, ": ", parts...);
  }

  template<class... Parts>
  void FailIf(bool isWrong, const Parts&... parts) const
  {
    ThrowIf<ModelError>(isWrong, this->Source, ": ", parts...);
  }
  void Require(bool holds, const char* message) const { this->FailIf(!holds, message); }

private:
  const TensorViews& Tensors;
  std::string Source;

  static std::string Describe(const TensorView& view)
  {
    return std::string(Name(view.dtype)) + " " + ToString(view.shape);
  }
  const TensorView& Find(const std::string& name) const
  {
    const auto found = this->Tensors.find(name);
    this->FailIf(found == this->Tensors.end(), "expected the tensor ", name, ", found none.");
    return found->second;
  }
};

/// A tensor with the rows of a list of this size, whose numbers `pass` takes.
template<class Archive, class List, class PassItem>
void PassList(Archive& archive, const std::string& name, List& list, std::int64_t size,
  Shape columns, DType dtype, const PassItem& pass)
{
  columns.insert(columns.begin(), size);
  archive.Tensor(name, columns, dtype,
    [&](auto& numbers)
    {
      Archive::Resize(list, size);
      for (auto& item : list)
      {
        pass(numbers, item);
      }
    });
}

}
