#pragma once

#include "ModelOracle.h"
#include "Oracle.h"
#include "Run/RecordTransformer.h"

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
class TransformerOracle : public ModelOracle
{
public:
  static std::filesystem::path Folder(const std::string& name)
  {
    return std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / name;
  }

  explicit TransformerOracle(const std::string& name)
    : ModelOracle(Folder(name) / "expected.safetensors")
    , Folder_(Folder(name))
  {
  }

  /// The model's folder.
  const std::filesystem::path& Path() const { return this->Folder_; }

  /// Row `row` of the first axis of a quantity.
  using ModelOracle::Values;
  std::vector<double> Values(const std::string& quantity, std::int64_t row) const
  {
    const std::vector<double> all = this->Values(quantity);
    const auto size = static_cast<std::int64_t>(all.size()) / this->ShapeOf(quantity)[0];
    return { all.begin() + row * size, all.begin() + (row + 1) * size };
  }

private:
  std::filesystem::path Folder_;
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
