#pragma once

#include "TestName.h"
#include "TransformerOracle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, and what an independent program computed of its circuits
/// (Testing/Oracle/analysis/README.md): a file of MODEL.PURPOSE.
class CircuitOracle
{
public:
  explicit CircuitOracle(const std::string& name, const std::string& purpose = "spectra")
    : Model(Transformer::Read(TransformerOracle::Folder(name)))
    , Expected(std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" /
               (name + "." + purpose + ".safetensors"))
  {
  }

  const Transformer& GetModel() const { return this->Model; }
  bool Has(const std::string& quantity) const
  {
    return this->Expected.GetTensors().count(quantity) != 0;
  }
  std::vector<double> Values(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity).ToDouble();
  }
  std::vector<std::int64_t> Integers(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity).ToInteger();
  }

private:
  Transformer Model;
  SafetensorsFile Expected;
};

/// Runs on every model of the circuit oracle.
class OfCircuits : public testing::TestWithParam<std::string>
{
public:
  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }
  static auto Models()
  {
    return testing::Values("gpt2", "bloom", "llama", "attn-only", "attn-only-shortformer");
  }

protected:
  CircuitOracle Oracle{ GetParam() };
};

}
