#include "BatchAxes.h"

#include "Base/Error.h"

#include <algorithm>
#include <limits>

namespace atlas
{

BatchAxes::BatchAxes(RecordingArrays& arrays, const ForeignNames& names)
{
  if (!this->FindAxes(arrays, names))
  {
    std::string found;
    for (const auto& [name, entry] : arrays.GetEntries())
    {
      found = "'" + name + "' " + ToString(entry.shape);
      if (ForeignNames::IsStackedName(name))
      {
        break;
      }
    }
    throw ModelError(arrays.GetSource(),
      ": expected arrays of a recording, such as blocks.0.attn.hook_q and hook_k [B,T,H,d], or "
      "attention [L,H,T,T], found ",
      found.empty() ? "no array" : "only " + found, ".");
  }
  this->LeaveOutPadding(arrays);
}

/// Takes the axes from an array, which has `axes` axes without a batch; the token axis is `behind`
/// axes before the last one. Returns false if the array is missing or has other axes.
bool BatchAxes::TakeAxes(
  const RecordingArrays& arrays, const std::string& name, std::size_t axes, std::size_t behind)
{
  const ArrayFile::Entry* entry = arrays.Find(name);
  if (entry == nullptr || (entry->shape.size() != axes && entry->shape.size() != axes + 1))
  {
    return false;
  }
  arrays.FailIf(ElementCount(entry->shape).value_or(0) == 0, name, "expected tokens, found shape ",
    ToString(entry->shape), ".");
  this->HasBatch = entry->shape.size() == axes + 1;
  this->Batch = this->HasBatch ? entry->shape[ForeignNames::IsStackedName(name) ? 1 : 0] : 1;
  this->Tokens = entry->shape[entry->shape.size() - 1 - behind];
  return true;
}

bool BatchAxes::FindAxes(const RecordingArrays& arrays, const ForeignNames& names)
{
  for (const std::string& name : { names.stackedWeights, names.stackedScores })
  {
    if (!name.empty())
    {
      return this->TakeAxes(arrays, name, 4, 0);
    }
  }
  const auto takeFromLayers =
    [&](std::initializer_list<ForeignQuantity> quantities, std::size_t axes, std::size_t behind)
  {
    for (const auto& [index, layer] : names.layers)
    {
      for (const ForeignQuantity quantity : quantities)
      {
        const ForeignArray* found = layer.Find(quantity);
        if (found != nullptr && this->TakeAxes(arrays, found->name, axes, behind))
        {
          return true;
        }
      }
    }
    return false;
  };
  const auto takeFromAny = [&](const auto& candidates, std::size_t axes, std::size_t behind)
  {
    return std::any_of(candidates.begin(), candidates.end(),
      [&](const char* name) { return this->TakeAxes(arrays, name, axes, behind); });
  };
  return takeFromLayers({ ForeignQuantity::Weights, ForeignQuantity::Scores }, 3, 0) ||
         takeFromAny(ForeignNames::TokenIds, 1, 0) ||
         takeFromLayers(
           { ForeignQuantity::ResidualBefore, ForeignQuantity::ResidualAfter }, 2, 1) ||
         takeFromAny(ForeignNames::Logits, 2, 1) || this->TakeAxesOfHeads(arrays, names);
}

/// Takes the axes from arrays of vectors per head. Those with old names are never flat; those with
/// new names are flat if they have three axes.
bool BatchAxes::TakeAxesOfHeads(const RecordingArrays& arrays, const ForeignNames& names)
{
  for (const auto& [index, layer] : names.layers)
  {
    for (const ForeignQuantity quantity :
      { ForeignQuantity::RotatedQuery, ForeignQuantity::Query, ForeignQuantity::Key,
        ForeignQuantity::Value, ForeignQuantity::Mixed, ForeignQuantity::Output })
    {
      const ForeignArray* found = layer.Find(quantity);
      if (found == nullptr)
      {
        continue;
      }
      const std::size_t axes = arrays.Find(found->name)->shape.size();
      const bool flat = found->layout == ArrayLayout::PerhapsFlat && (axes == 2 || axes == 3);
      const std::size_t behind = found->layout == ArrayLayout::HeadFirst || flat ? 1 : 2;
      if (this->TakeAxes(arrays, found->name, flat ? 2 : 3, behind))
      {
        return true;
      }
    }
  }
  return false;
}

void BatchAxes::LeaveOutPadding(RecordingArrays& arrays)
{
  const std::int64_t rows = this->Batch * this->Tokens;
  ThrowIf<ModelError>(rows > std::numeric_limits<std::int32_t>::max(), arrays.GetSource(),
    ": expected fewer than 2^31 tokens, found ", rows, ".");
  std::vector<std::int64_t> offsets;
  for (std::int64_t sequence = 0; sequence <= this->Batch; ++sequence)
  {
    offsets.push_back(sequence * this->Tokens);
  }
  this->Kept = ReadPadding(arrays, offsets);
  this->FirstRows = { 0 };
  for (const RowRange& range : this->Kept)
  {
    for (std::int64_t row = range.first; row < range.end; ++row)
    {
      this->Rows.push_back(row);
    }
    this->FirstRows.push_back(this->Rows.size());
  }
}

Shape BatchAxes::With(std::initializer_list<std::int64_t> sizes) const
{
  Shape shape;
  if (this->HasBatch)
  {
    shape.push_back(this->Batch);
  }
  shape.insert(shape.end(), sizes);
  return shape;
}

std::vector<std::int64_t> BatchAxes::ReadIntegers(
  RecordingArrays& arrays, const std::string& name) const
{
  return WithoutPadding(arrays.LoadIntegers(name, this->With({ this->Tokens })), this->Kept);
}

SharedMatrix BatchAxes::ReadVectors(RecordingArrays& arrays, const std::string& name) const
{
  const LoadedArray array = arrays.LoadFloating(name, this->With({ this->Tokens, -1 }));
  const std::int64_t width = array.view.shape.back();
  return arrays.Gather(
    name, array, this->Rows.size(), width, [&](std::int64_t i) { return this->Rows[i] * width; });
}

std::vector<SharedMatrix> BatchAxes::ReadHeads(
  RecordingArrays& arrays, const ForeignArray& from, std::int64_t flatWidth) const
{
  const std::size_t axes = arrays.Find(from.name)->shape.size();
  const bool flat = from.layout == ArrayLayout::PerhapsFlat && axes == (this->HasBatch ? 3U : 2U);
  const bool headFirst = from.layout == ArrayLayout::HeadFirst;
  Shape shape = this->With({ this->Tokens, -1, -1 });
  if (headFirst)
  {
    shape = this->With({ -1, this->Tokens, -1 });
  }
  else if (flat)
  {
    shape = this->With({ this->Tokens, -1 });
  }
  const LoadedArray array = arrays.LoadFloating(from.name, shape);
  const Shape& is = array.view.shape;
  std::int64_t heads = is[is.size() - (headFirst ? 3 : 2)];
  std::int64_t width = is.back();
  if (flat)
  {
    arrays.FailIf(flatWidth < 1 || width % flatWidth != 0, from.name,
      "expected the vectors of heads side by side, the number of which must be known and divide ",
      width, "; give it as n_heads.");
    heads = width / flatWidth;
    width = flatWidth;
  }
  arrays.FailIf(heads < 1 || width < 1 || heads > MaximumHeads, from.name,
    "expected heads and dimensions, found shape ", ToString(is), ".");
  std::vector<SharedMatrix> matrices;
  for (std::int64_t h = 0; h < heads; ++h)
  {
    const auto offset = [&](std::int64_t i)
    {
      const std::int64_t row = this->Rows[i];
      const std::int64_t vector =
        headFirst ? (row / this->Tokens * heads + h) * this->Tokens + row % this->Tokens
                  : row * heads + h;
      return vector * width;
    };
    matrices.push_back(arrays.Gather(from.name, array, this->Rows.size(), width, offset));
  }
  return matrices;
}

SharedMatrix BatchAxes::ReadSquare(const RecordingArrays& arrays, const std::string& name,
  const LoadedArray& array, std::int64_t before, std::int64_t sequence, bool isScores) const
{
  const RowRange& range = this->Kept[sequence];
  const std::int64_t length = range.end - range.first;
  const std::int64_t first = range.first - sequence * this->Tokens;
  return arrays.Gather(
    name, array, length, length, [&](std::int64_t i)
    { return (before * this->Tokens + first + i) * this->Tokens + first; }, isScores);
}

}
