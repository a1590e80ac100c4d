#pragma once

#include "ResidualComponents.h"
#include "TestName.h"
#include "Transformer.h"
#include "TransformerOracle.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, its recording with everything, and what an independent program computed of
/// its logits (Testing/Oracle/analysis/README.md).
class LogitsOracle
{
public:
  explicit LogitsOracle(const std::string& name)
    : Model(Transformer::Read(TransformerOracle::Folder(name)))
    , Expected(
        std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" / (name + ".logits.safetensors"))
    , Record(Run(this->Model, name))
  {
  }

  static Recording Run(const Transformer& model, const std::string& name)
  {
    RecordOptions options;
    options.headOutputs = true;
    options.residual = true;
    options.logits = model.HasLogits();
    return RecordTransformer(model, TransformerOracle(name).Input(), options);
  }

  const Transformer& GetModel() const { return this->Model; }
  const Recording& GetRecording() const { return this->Record; }
  const Metadata& GetMetadata() const { return this->Expected.GetMetadata(); }
  std::vector<std::size_t> ShapeOf(const std::string& name) const
  {
    const Shape& shape = this->Expected.GetTensors().at(name).shape;
    return { shape.begin(), shape.end() };
  }
  std::vector<double> Values(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name).ToDouble();
  }
  std::vector<std::int64_t> Integers(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name).ToInteger();
  }

private:
  Transformer Model;
  SafetensorsFile Expected;
  Recording Record;
};

/// Runs on every model of the oracle.
class OfLogits : public testing::TestWithParam<std::string>
{
protected:
  LogitsOracle Oracle{ GetParam() };
  ProcessedWeights Processed{ this->Oracle.GetModel(), WeightSteps::TransformerLens };
  ProcessedWeights Stored{ this->Oracle.GetModel(), WeightSteps::Stored };

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

/// Tolerance of the oracle for float32 programs, of the largest magnitude of an array.
inline constexpr double LogitsTolerance = 1e-5;

}
