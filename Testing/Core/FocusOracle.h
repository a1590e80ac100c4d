#pragma once

#include "CircuitOracle.h"
#include "Run/RecordTransformer.h"
#include "TransformerOracle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, its recording, and what an independent program computed of where its heads
/// look and what they write (Testing/Oracle/analysis/README.md, D).
class FocusOracle : public CircuitOracle
{
public:
  explicit FocusOracle(const std::string& name)
    : CircuitOracle(name, "focus")
  {
    RecordOptions options;
    options.headOutputs = true;
    options.residual = true;
    this->Record = RecordTransformer(this->GetModel(), TransformerOracle(name).Input(), options);
  }

  const Recording& GetRecording() const { return this->Record; }

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
  Recording Record;
};

/// Runs on every model of the focus oracle.
class OfFocus : public OfAnalysis
{
protected:
  FocusOracle Oracle{ GetParam() };
};

/// Tolerance of the oracle for float32 programs, of the largest magnitude.
inline constexpr double FocusTolerance = 1e-5;

}
