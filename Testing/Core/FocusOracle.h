#pragma once

#include "TestName.h"
#include "Transformer.h"
#include "TransformerOracle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, its recording, and what an independent program computed of where its heads
/// look and what they write (Testing/Oracle/analysis/README.md, D).
class FocusOracle
{
public:
  explicit FocusOracle(const std::string& name)
    : Model(Transformer::Read(TransformerOracle::Folder(name)))
    , Expected(std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" / (name + ".focus.safetensors"))
  {
    RecordOptions options;
    options.headOutputs = true;
    options.residual = true;
    this->Record = RecordTransformer(this->Model, TransformerOracle(name).Input(), options);
  }

  const Transformer& GetModel() const { return this->Model; }
  const Recording& GetRecording() const { return this->Record; }

  const TensorViews& Tensors() const { return this->Expected.GetTensors(); }
  const Shape& ShapeOf(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity).shape;
  }
  std::vector<double> Values(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity).ToDouble();
  }
  std::vector<std::int64_t> Integers(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity).ToInteger();
  }

  /// Calls visit(layer, sequence, head) in the order of the first axes of quantities [L, B, H,
  /// ...].
  template<class Visit>
  void ForHeads(const Visit& visit) const
  {
    for (const RecordedLayer& layer : this->Record.layers)
    {
      for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
      {
        for (std::size_t h = 0; h < layer.heads.size(); ++h)
        {
          visit(layer.index, s, static_cast<std::int64_t>(h));
        }
      }
    }
  }

private:
  Transformer Model;
  SafetensorsFile Expected;
  Recording Record;
};

/// Runs on every model of the focus oracle.
class OfFocus : public testing::TestWithParam<std::string>
{
protected:
  FocusOracle Oracle{ GetParam() };

public:
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }
  static auto Models()
  {
    return testing::Values("gpt2", "bloom", "llama", "attn-only", "attn-only-shortformer");
  }
};

/// Tolerance of the oracle for float32 programs, of the largest magnitude.
inline constexpr double FocusTolerance = 1e-5;

}
