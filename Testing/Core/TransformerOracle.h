#pragma once

#include "Oracle.h"
#include "RecordTransformer.h"

#include <cmath>
#include <string>
#include <vector>

namespace atlas::test
{

/// Tensors of a file as tensors of their own, to change and to write again.
inline Tensors CopyTensors(const TensorViews& views)
{
  Tensors tensors;
  for (const auto& [name, view] : views)
  {
    const std::uint64_t size = view.Bytes();
    tensors[name] = { view.dtype, view.shape, { view.data, view.data + size } };
  }
  return tensors;
}

/// A small transformer and what the original code computed with it
/// (Testing/Oracle/transformers/README.md).
class TransformerOracle
{
public:
  static std::filesystem::path Folder(const std::string& name)
  {
    return std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / name;
  }

  explicit TransformerOracle(const std::string& name)
    : Folder_(Folder(name))
    , Expected(this->Folder_ / "expected.safetensors")
  {
  }

  /// The model's folder.
  const std::filesystem::path& Path() const { return this->Folder_; }

  const TensorView& Get(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity);
  }
  bool Has(const std::string& quantity) const
  {
    return this->Expected.GetTensors().count(quantity) != 0;
  }

  /// Row `row` of the first axis of a quantity.
  std::vector<double> Values(const std::string& quantity, std::int64_t row) const
  {
    const TensorView& view = this->Get(quantity);
    const std::vector<double> all = view.ToDouble();
    const auto size = static_cast<std::int64_t>(all.size()) / view.shape[0];
    return { all.begin() + row * size, all.begin() + (row + 1) * size };
  }

  /// The sequences, without their padding.
  TransformerInput Input() const
  {
    TransformerInput input;
    if (this->Has("pixel_values"))
    {
      const TensorView& pixels = this->Get("pixel_values");
      input.images = pixels.shape[0];
      for (std::uint64_t i = 0; i < pixels.Count(); ++i)
      {
        input.pixels.push_back(static_cast<float>(pixels.At(i)));
      }
      return input;
    }
    input.tokens = this->Sequences("input_ids");
    if (this->Has("token_type_ids"))
    {
      input.segments = this->Sequences("token_type_ids");
    }
    return input;
  }

private:
  std::filesystem::path Folder_;
  SafetensorsFile Expected;

  std::vector<std::vector<std::int64_t>> Sequences(const std::string& quantity) const
  {
    const TensorView& view = this->Get(quantity);
    const std::vector<std::int64_t> ids = view.ToInteger();
    const std::vector<std::int64_t> mask = this->Has("attention_mask")
                                             ? this->Get("attention_mask").ToInteger()
                                             : std::vector<std::int64_t>(ids.size(), 1);
    const std::size_t length = view.shape[1];
    std::vector<std::vector<std::int64_t>> sequences(ids.size() / length);
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      if (mask[i] != 0)
      {
        sequences[i / length].push_back(ids[i]);
      }
    }
    return sequences;
  }
};

/// Rows of a matrix as one list.
inline std::vector<float> Rows(const SharedMatrix& matrix, std::int64_t first, std::int64_t count)
{
  return { matrix.Row(first), matrix.Row(first + count) };
}

/// Expects a recorded matrix to be the expected one, in which head `head` of each sequence begins
/// after `head` matrices [T, columns], and rows beyond a sequence are padding.
inline void ExpectRows(const TransformerOracle& oracle, const Recording& recording,
  const std::string& quantity, std::int64_t head, const SharedMatrix& matrix, double tolerance)
{
  const Shape& shape = oracle.Get(quantity).shape;
  const std::int64_t padded = shape[shape.size() - 2];
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    const std::int64_t length = recording.SequenceLength(s);
    const std::vector<double> values = oracle.Values(quantity, s);
    const auto begin = values.begin() + head * padded * matrix.columns;
    ExpectClose(quantity, Rows(matrix, recording.sequenceOffsets[s], length),
      std::vector<double>(begin, begin + length * matrix.columns), tolerance);
  }
}

}
