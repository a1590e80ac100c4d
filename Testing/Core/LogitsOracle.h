#pragma once

#include "CircuitOracle.h"
#include "Circuits/ResidualComponents.h"
#include "TransformerOracle.h"
#include "Weights/Transformer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, its recording with everything, and what an independent program computed of
/// its logits (Testing/Oracle/analysis/README.md).
class LogitsOracle : public CircuitOracle
{
public:
  explicit LogitsOracle(const std::string& name)
    : CircuitOracle(name, "logits")
    , Record(Run(this->GetModel(), name))
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

  const Recording& GetRecording() const { return this->Record; }
  std::vector<std::size_t> ShapeOf(const std::string& name) const
  {
    const Shape& shape = OracleFile::ShapeOf(name);
    return { shape.begin(), shape.end() };
  }

private:
  Recording Record;
};

/// Runs on every model of the oracle.
class OfLogits : public OfAnalysis
{
protected:
  LogitsOracle Oracle{ GetParam() };
  ProcessedWeights Processed{ this->Oracle.GetModel(), WeightSteps::TransformerLens };
  ProcessedWeights Stored{ this->Oracle.GetModel(), WeightSteps::Stored };
};

/// Tolerance of the oracle for float32 programs, of the largest magnitude of an array.
inline constexpr double LogitsTolerance = 1e-5;

}
