#include "TokenValues.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "PointArrays.h"

#include <vtkDataArray.h>
#include <vtkDataArrayRange.h>
#include <vtkDataSetAttributes.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace AttentionAtlas
{
namespace
{

/// How often each item occurs in the list.
template<class Item>
std::vector<double> Occurrences(const std::vector<Item>& list)
{
  std::map<Item, double> counts;
  for (const Item& item : list)
  {
    ++counts[item];
  }
  std::vector<double> ofEach;
  ofEach.reserve(list.size());
  for (const Item& item : list)
  {
    ofEach.push_back(counts[item]);
  }
  return ofEach;
}

}

TokenValues::TokenValues(
  vtkDataSetAttributes* arrays, vtkIdType count, const atlas::Recording* recording)
  : Arrays(arrays)
  , Count(count)
  , Source(recording)
{
  if (vtkDataArray* kind = arrays->GetArray(ArrayNames::Kind))
  {
    this->Kind = Integers(kind);
  }
  if (recording == nullptr)
  {
    return;
  }
  this->Token = Integers(RequireNumbers(arrays, ArrayNames::TokenIndex,
    "it names the tokens of the recording, as in the output of a Head Embedding."));
  for (const std::int64_t token : this->Token)
  {
    atlas::ThrowIf<atlas::OptionError>(token < 0 || token >= recording->tokens.Count(),
      "input: array 'Token Index': expected rows of the recording's ", recording->tokens.Count(),
      " tokens, found ", token, ".");
  }
}

std::optional<std::vector<double>> TokenValues::FromArray(const char* name) const
{
  vtkDataArray* array = this->Arrays->GetArray(name);
  if (array == nullptr || array->GetNumberOfComponents() != 1)
  {
    return std::nullopt;
  }
  std::vector<double> values;
  values.reserve(this->Count);
  for (const double value : vtk::DataArrayValueRange<1>(array))
  {
    values.push_back(value);
  }
  return values;
}

/// value(row) of the recording's tokens, for each.
template<class Value>
std::vector<double> TokenValues::FromRecording(const char* name, const Value& value) const
{
  if (this->Source == nullptr)
  {
    throw atlas::OptionError(
      "By: expected an array '", name, "', found none; connect the recording of the tokens.");
  }
  std::vector<double> values;
  values.reserve(this->Count);
  for (const std::int64_t token : this->Token)
  {
    values.push_back(static_cast<double>(value(token)));
  }
  return values;
}

std::vector<double> TokenValues::Numbers(TokenQuantity quantity) const
{
  const atlas::RecordedTokens none;
  const atlas::RecordedTokens& tokens = this->Source != nullptr ? this->Source->tokens : none;
  const auto get = [this](const char* name, const auto& list)
  {
    if (auto values = this->FromArray(name))
    {
      return *values;
    }
    if (this->Source != nullptr && list.empty())
    {
      throw atlas::OptionError(
        "By: expected tokens with a ", name, ", found none in the input and in the recording.");
    }
    return this->FromRecording(name, [&list](std::size_t row) { return list[row]; });
  };
  switch (quantity)
  {
    case TokenQuantity::Norm:
      return get(ArrayNames::Norm, std::vector<double>());
    case TokenQuantity::Row:
      return get(ArrayNames::Row, tokens.row);
    case TokenQuantity::Column:
      return get(ArrayNames::Column, tokens.column);
    case TokenQuantity::Segment:
      return get(ArrayNames::Segment, tokens.segment);
    case TokenQuantity::TokenCount:
      return this->Counts();
    case TokenQuantity::SentenceLength:
      return this->Lengths();
    case TokenQuantity::RelativePosition:
      if (auto values = this->FromArray(ArrayNames::RelativePosition))
      {
        return *values;
      }
      break;
    default:
      return get(ArrayNames::Position, tokens.position);
  }
  std::vector<double> values = get(ArrayNames::Position, tokens.position);
  const std::vector<double> lengths = this->Lengths();
  std::transform(values.begin(), values.end(), lengths.begin(), values.begin(),
    [](double position, double length) { return length > 1 ? position / (length - 1) : 0; });
  return values;
}

std::vector<double> TokenValues::Counts() const
{
  if (auto values = this->FromArray(ArrayNames::TokenCount))
  {
    return *values;
  }
  std::vector<double> counts;
  if (this->Source != nullptr)
  {
    const atlas::RecordedTokens& tokens = this->Source->tokens;
    counts = tokens.id.empty() ? Occurrences(tokens.text) : Occurrences(tokens.id);
    atlas::ThrowIf<atlas::OptionError>(
      counts.empty(), "By: expected a recording with token ids, found none.");
  }
  return this->FromRecording(
    ArrayNames::TokenCount, [&counts](std::size_t row) { return counts[row]; });
}

std::vector<double> TokenValues::Lengths() const
{
  if (this->Source == nullptr)
  {
    return this->LengthsFromPositions();
  }
  return this->FromRecording(ArrayNames::Sequence, [this](std::size_t row)
    { return this->Source->SequenceLength(this->Source->tokens.sequence[row]); });
}

/// Lengths of sequences of which not all tokens may be there: a token at relative position r > 0
/// and position p is one of p / r + 1. Without relative positions, the last that is there counts.
std::vector<double> TokenValues::LengthsFromPositions() const
{
  const auto sequence = this->FromArray(ArrayNames::Sequence);
  const auto position = this->FromArray(ArrayNames::Position);
  const auto relative = this->FromArray(ArrayNames::RelativePosition);
  if (!sequence || !position)
  {
    throw atlas::OptionError("By: expected arrays 'Sequence' and 'Position', found none; connect "
                             "the recording of the tokens.");
  }
  std::map<double, double> lengths;
  for (std::size_t i = 0; i < this->Count; ++i)
  {
    const double share = relative ? (*relative)[i] : 1;
    const double last = share > 0 ? std::round((*position)[i] / share) : 0;
    double& length = lengths[(*sequence)[i]];
    length = std::max(length, last + 1);
  }
  std::vector<double> values;
  values.reserve(this->Count);
  for (const double number : *sequence)
  {
    values.push_back(lengths[number]);
  }
  return values;
}

std::vector<std::array<double, 3>> TokenValues::PatchColors() const
{
  std::vector<std::array<double, 3>> colors(
    this->Count, { UnknownValue, UnknownValue, UnknownValue });
  vtkDataArray* array = this->Arrays->GetArray(ArrayNames::PatchColor);
  const bool hasArray = array != nullptr && array->GetNumberOfComponents() == 3;
  if (!hasArray && (this->Source == nullptr || !this->Source->tokens.color.IsRecorded()))
  {
    throw atlas::OptionError(
      "By: expected a recording of images with the mean colors of their patches, found none; ",
      std::string(this->Source == nullptr ? "connect the recording of the tokens."
                                          : "record the images again."));
  }
  for (std::size_t i = 0; i < this->Count; ++i)
  {
    std::array<double, 3> color = {};
    if (hasArray)
    {
      array->GetTuple(static_cast<vtkIdType>(i), color.data());
    }
    else
    {
      const float* row = this->Source->tokens.color.Row(this->Token[i]);
      std::copy(row, row + 3, color.begin());
    }
    colors[i] = color[0] >= 0 ? color : colors[i];
  }
  return colors;
}

}
