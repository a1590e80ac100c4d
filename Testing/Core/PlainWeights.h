#pragma once

#include "Safetensors.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace atlas::test
{

/// The weights of a model in double precision, by their names in its file, for models that are
/// written anew from their formulas.
class PlainWeights
{
public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  explicit PlainWeights(const std::filesystem::path& path)
    : File(path)
  {
  }

  bool Has(const std::string& name) const { return this->File.GetTensors().count(name) != 0; }

  /// A matrix [first axis, all others]; a vector as one row.
  Rows Get(const std::string& name) const
  {
    const TensorView& view = this->File.GetTensors().at(name);
    const std::vector<double> values = view.ToDouble();
    const Eigen::Index rows = view.shape.size() == 1 ? 1 : view.shape[0];
    return Eigen::Map<const Rows>(
      values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
  }

  /// x W^T + b, or x W^T without a bias in the file.
  Rows Linear(const Rows& x, const std::string& name) const
  {
    Rows y = x * this->Get(name + ".weight").transpose();
    if (this->Has(name + ".bias"))
    {
      y.rowwise() += this->Get(name + ".bias").row(0);
    }
    return y;
  }

private:
  SafetensorsFile File;
};

}
