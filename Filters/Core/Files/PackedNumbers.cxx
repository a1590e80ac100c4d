#include "PackedNumbers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

// The loops below are plain. They are compiled for each instruction set; the numbers are the same
// with all of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Files/PackedNumbers.cxx"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Read once, whatever the number of targets.
#ifndef ATLAS_PACKED_ROW
#define ATLAS_PACKED_ROW

namespace atlas
{

/// What makes numbers of the codes of a part of a row.
struct PackedRow
{
  const float* values; ///< of each code, or nullptr: code + base
  float base;
  const float* scales; ///< of each block of the part
  const float* zeros;
  const float* biases;
  std::int64_t columns;      ///< of a block
  std::int64_t first;        ///< columns of the first block before the part
  const std::int32_t* group; ///< the block of each column, or nullptr: they follow each other
};

}

#endif

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

/// Codes of 4 bits of `count` bytes, the lower half of each first or, with `high`, the upper one.
void SplitBytes(const std::uint8_t* bytes, std::int64_t count, bool high, std::uint8_t* codes)
{
  const unsigned first = high ? 4 : 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    codes[2 * i] = static_cast<std::uint8_t>(bytes[i] >> first & 15U);
    codes[2 * i + 1] = static_cast<std::uint8_t>(bytes[i] >> (4U - first) & 15U);
  }
}

/// Eight codes of 4 bits of each of `count` words that are `step` words apart, the lowest first.
void SplitWords(
  const std::uint8_t* words, std::int64_t step, std::int64_t count, std::uint8_t* codes)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    std::uint32_t word = 0;
    std::memcpy(&word, words + i * step * 4, sizeof(word));
    for (unsigned j = 0; j < 8; ++j)
    {
      codes[8 * i + j] = static_cast<std::uint8_t>(word >> (4 * j) & 15U);
    }
  }
}

/// Codes of 4 bits of eight rows from a word of each of `count` columns, which are `step` words
/// apart. Those of a row, which begin at these bits, go to `codes`, a row `stride` behind the
/// other.
void SplitColumns(const std::uint8_t* words, std::int64_t step, std::int64_t count,
  const unsigned* bits, std::int64_t stride, std::uint8_t* codes)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    std::uint32_t word = 0;
    std::memcpy(&word, words + i * step * 4, sizeof(word));
    for (std::int64_t r = 0; r < 8; ++r)
    {
      codes[r * stride + i] = static_cast<std::uint8_t>(word >> bits[r] & 15U);
    }
  }
}

void WidenCodes(const PackedRow& row, const std::uint8_t* codes, std::int64_t count, float* numbers)
{
  const float* values = row.values;
  if (row.group != nullptr)
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      const std::int32_t g = row.group[i];
      const float value =
        values != nullptr ? values[codes[i]] : static_cast<float>(codes[i]) + row.base;
      numbers[i] = row.scales[g] * (value - row.zeros[g]) + row.biases[g];
    }
    return;
  }
  std::int64_t i = 0;
  for (std::int64_t g = 0; i < count; ++g)
  {
    const std::int64_t blockEnd = (g + 1) * row.columns - row.first;
    const std::int64_t end = blockEnd < count ? blockEnd : count;
    const float scale = row.scales[g];
    const float zero = row.zeros[g];
    const float bias = row.biases[g];
    if (values != nullptr)
    {
      for (; i < end; ++i)
      {
        numbers[i] = scale * (values[codes[i]] - zero) + bias;
      }
      continue;
    }
    for (; i < end; ++i)
    {
      numbers[i] = scale * (static_cast<float>(codes[i]) + row.base - zero) + bias;
    }
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(SplitBytes);
HWY_EXPORT(SplitColumns);
HWY_EXPORT(SplitWords);
HWY_EXPORT(WidenCodes);

namespace
{

/// Rows that are widened at once: those that share a word along the columns.
constexpr std::int64_t TileRows = 8;

/// Columns that are widened at once.
constexpr std::int64_t TileColumns = 1024;

/// Where the bits of eight integers of 4 bits in a word begin.
constexpr std::array<unsigned, 8> PlainBits = { 0, 4, 8, 12, 16, 20, 24, 28 };
constexpr std::array<unsigned, 8> AwqBits = { 0, 16, 4, 20, 8, 24, 12, 28 };

using TileCodes = std::array<std::uint8_t, TileRows * TileColumns>;

std::uint32_t WordAt(const PackedCodes& codes, std::int64_t word)
{
  if (codes.wordBytes == 1)
  {
    return static_cast<std::uint32_t>(codes.data[word]);
  }
  std::uint32_t value = 0;
  std::memcpy(&value, codes.data + word * 4, sizeof(value));
  return value;
}

/// Codes begin <= column < end of a row.
void UnpackRow(const PackedCodes& codes, std::int64_t row, std::int64_t begin, std::int64_t end,
  std::uint8_t* to)
{
  const std::int64_t wordCodes = 8 * codes.wordBytes / codes.bits;
  const bool isHalf = codes.alongRows && codes.bits == 4 &&
                      codes.order != PackedCodes::Order::Awq &&
                      (codes.step == 1 || codes.wordBytes == 4);
  std::int64_t column = begin;
  const auto unpackTo = [&](std::int64_t last)
  {
    for (; column < last; ++column)
    {
      *to++ = codes.alongRows ? codes.At(column, row) : codes.At(row, column);
    }
  };
  if (codes.alongRows && codes.bits == 8 && codes.step == 1)
  {
    std::memcpy(to, codes.data + row * codes.stride * codes.wordBytes + begin,
      static_cast<std::size_t>(end - begin));
    return;
  }
  if (isHalf)
  {
    const std::int64_t unit = codes.step == 1 ? 2 : wordCodes; // codes of a byte, or of a word
    unpackTo(std::min(end, (begin + unit - 1) / unit * unit));
    const std::int64_t count = (end - column) / unit;
    const auto* data = reinterpret_cast<const std::uint8_t*>(codes.data);
    if (codes.step == 1)
    {
      HWY_DYNAMIC_DISPATCH(SplitBytes)
      (data + row * codes.stride * codes.wordBytes + column / 2, count,
        codes.order == PackedCodes::Order::HighFirst, to);
    }
    else
    {
      HWY_DYNAMIC_DISPATCH(SplitWords)
      (data + (column / unit * codes.step + row * codes.stride) * 4, codes.step, count, to);
    }
    to += count * unit;
    column += count * unit;
  }
  unpackTo(end);
}

/// Codes of so many rows, at distances of TileColumns.
void Unpack(const PackedCodes& codes, std::int64_t row, std::int64_t rows, std::int64_t begin,
  std::int64_t end, TileCodes& to)
{
  const bool sharesWords =
    !codes.alongRows && codes.bits == 4 && codes.wordBytes == 4 && rows == TileRows;
  if (sharesWords)
  {
    const bool isAwq = codes.order == PackedCodes::Order::Awq;
    HWY_DYNAMIC_DISPATCH(SplitColumns)
    (reinterpret_cast<const std::uint8_t*>(codes.data) +
        (row / TileRows * codes.step + begin * codes.stride) * 4,
      codes.stride, end - begin, isAwq ? AwqBits.data() : PlainBits.data(), TileColumns, to.data());
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
  {
    UnpackRow(codes, row + r, begin, end, to.data() + r * TileColumns);
  }
}

/// Factors of blocks begin <= b < end of so many rows.
class Factors
{
public:
  Factors(std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end)
    : Row(row)
    , Rows(rows)
    , Begin(begin)
    , Count(end - begin)
  {
  }

  /// Of a tensor [rows / blockRows, blocks].
  std::vector<float> ByRow(
    const TensorView& view, std::int64_t blockRows, std::int64_t blocks, float otherwise) const
  {
    std::vector<float> all(static_cast<std::size_t>(this->Rows * this->Count), otherwise);
    if (view.data != nullptr && blockRows == 1)
    {
      LinesToFloat(view, static_cast<std::uint64_t>(this->Row * blocks + this->Begin),
        static_cast<std::uint64_t>(blocks), static_cast<std::uint64_t>(this->Rows),
        static_cast<std::uint64_t>(this->Count), all.data());
      return all;
    }
    for (std::int64_t r = 0; view.data != nullptr && r < this->Rows; ++r)
    {
      const auto first =
        static_cast<std::uint64_t>((this->Row + r) / blockRows * blocks + this->Begin);
      view.ToFloat(
        first, first + static_cast<std::uint64_t>(this->Count), all.data() + r * this->Count);
    }
    return all;
  }

  /// Of a tensor [blocks, rows of the matrix].
  std::vector<float> ByColumn(const TensorView& view, std::int64_t matrixRows) const
  {
    std::vector<float> all(static_cast<std::size_t>(this->Rows * this->Count));
    std::array<float, TileRows> block{};
    for (std::int64_t b = 0; b < this->Count; ++b)
    {
      const auto first = static_cast<std::uint64_t>((this->Begin + b) * matrixRows + this->Row);
      view.ToFloat(first, first + static_cast<std::uint64_t>(this->Rows), block.data());
      for (std::int64_t r = 0; r < this->Rows; ++r)
      {
        all[static_cast<std::size_t>(r * this->Count + b)] = block.at(static_cast<std::size_t>(r));
      }
    }
    return all;
  }

private:
  std::int64_t Row;
  std::int64_t Rows;
  std::int64_t Begin;
  std::int64_t Count;
};

/// A part of up to TileRows rows, to `values`, which has no columns but those of the part.
void WidenTile(const PackedNumbers& all, std::int64_t row, std::int64_t rows, std::int64_t begin,
  std::int64_t end, float* values)
{
  TileCodes codes; // each of which is set before it is read
  for (std::int64_t first = begin; first < end; first += TileColumns)
  {
    const std::int64_t last = std::min(first + TileColumns, end);
    Unpack(all.codes, row, rows, first, last, codes);
    const bool isGrouped = !all.group.empty();
    const std::int64_t beginBlock = isGrouped ? 0 : first / all.blockColumns;
    const std::int64_t endBlock = isGrouped ? all.blocks : (last - 1) / all.blockColumns + 1;
    const std::int64_t count = endBlock - beginBlock;
    const Factors factors(row, rows, beginBlock, endBlock);
    std::vector<float> scales = all.scalesAreByColumn
                                  ? factors.ByColumn(all.scales, all.rows)
                                  : factors.ByRow(all.scales, all.blockRows, all.blocks, 1);
    if (all.divisor != 1)
    {
      std::transform(scales.begin(), scales.end(), scales.begin(),
        [&all](float scale) { return scale / all.divisor; });
    }
    const std::int64_t zeroRows = all.zeros.Count() == 1 ? all.rows : 1; // that share one
    const std::vector<float> zeros = factors.ByRow(all.zeros, zeroRows, all.blocks, 0);
    const std::vector<float> biases = factors.ByRow(all.biases, 1, all.blocks, all.bias);
    for (std::int64_t r = 0; r < rows; ++r)
    {
      const PackedRow part = { all.values.empty() ? nullptr : all.values.data(), all.base,
        scales.data() + r * count, zeros.data() + r * count, biases.data() + r * count,
        all.blockColumns, first - beginBlock * all.blockColumns,
        isGrouped ? all.group.data() + first : nullptr };
      HWY_DYNAMIC_DISPATCH(WidenCodes)
      (part, codes.data() + r * TileColumns, last - first,
        values + r * (end - begin) + first - begin);
    }
  }
}

}

std::uint8_t PackedCodes::At(std::int64_t along, std::int64_t across) const
{
  const std::int64_t wordBits = 8 * this->wordBytes;
  const std::int64_t bit = along * this->bits;
  const std::int64_t word = bit / wordBits * this->step + across * this->stride;
  std::int64_t shift = bit % wordBits;
  if (this->order == Order::HighFirst)
  {
    shift = wordBits - this->bits - shift;
  }
  else if (this->order == Order::Awq)
  {
    shift = AwqBits.at(static_cast<std::size_t>(along % 8));
  }
  std::uint32_t code = WordAt(*this, word) >> shift;
  if (shift + this->bits > wordBits)
  {
    code |= WordAt(*this, word + this->step) << (wordBits - shift);
  }
  return static_cast<std::uint8_t>(code & ((1U << this->bits) - 1U));
}

void PackedNumbers::ToFloat(std::uint64_t begin, std::uint64_t end, float* numbers) const
{
  const auto all = static_cast<std::uint64_t>(this->columns);
  while (begin < end)
  {
    const std::uint64_t width = std::min(end - begin, all - begin % all);
    const std::uint64_t lines = width == all ? (end - begin) / all : 1;
    this->LinesToFloat(begin, lines, width, numbers);
    begin += lines * width;
    numbers += lines * width;
  }
}

void PackedNumbers::LinesToFloat(
  std::uint64_t begin, std::uint64_t lines, std::uint64_t width, float* numbers) const
{
  const auto first = static_cast<std::int64_t>(begin) % this->columns;
  const auto count = static_cast<std::int64_t>(width);
  std::int64_t row = static_cast<std::int64_t>(begin) / this->columns;
  const std::int64_t end = row + static_cast<std::int64_t>(lines);
  while (row < end)
  {
    const std::int64_t taken = std::min(end - row, TileRows - row % TileRows);
    WidenTile(*this, row, taken, first, first + count, numbers);
    row += taken;
    numbers += taken * count;
  }
}

TensorView ViewOf(PackedNumbers numbers, Shape shape)
{
  TensorView view = { DType::Packed, std::move(shape), numbers.codes.data };
  view.packed = std::make_shared<const PackedNumbers>(std::move(numbers));
  return view;
}

TensorView PartOf(const TensorView& packed, std::uint64_t first, Shape shape)
{
  TensorView part = packed;
  part.firstPacked += first;
  part.data += packed.packed->BytesOf(first); // another place for each part
  part.shape = std::move(shape);
  return part;
}

void LinesToFloat(const TensorView& view, std::uint64_t begin, std::uint64_t stride,
  std::uint64_t lines, std::uint64_t width, float* values)
{
  if (stride == width)
  {
    view.ToFloat(begin, begin + lines * width, values);
    return;
  }
  const bool areRows = view.packed != nullptr && view.interleavedRows == 0 &&
                       stride == static_cast<std::uint64_t>(view.packed->columns);
  if (areRows)
  {
    view.packed->LinesToFloat(view.firstPacked + begin, lines, width, values);
    return;
  }
  for (std::uint64_t line = 0; line < lines; ++line)
  {
    view.ToFloat(begin + line * stride, begin + line * stride + width, values + line * width);
  }
}

std::string TypeOf(const TensorView& view)
{
  return view.packed != nullptr ? view.packed->name : std::string(Name(view.dtype));
}

void VisitStored(const TensorView& view, const std::function<void(const TensorView&)>& visit)
{
  visit(view);
  if (view.packed != nullptr)
  {
    for (const TensorView* factors :
      { &view.packed->scales, &view.packed->zeros, &view.packed->biases })
    {
      if (factors->data != nullptr)
      {
        VisitStored(*factors, visit);
      }
    }
  }
}

}

#endif
