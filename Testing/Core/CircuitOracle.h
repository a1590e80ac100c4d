#pragma once

#include "OracleFile.h"
#include "TransformerOracle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas::test
{

/// A small transformer, and what an independent program computed of its circuits
/// (Testing/Oracle/analysis/README.md): a file of MODEL.PURPOSE.
class CircuitOracle : public OracleFile
{
public:
  explicit CircuitOracle(const std::string& name, const std::string& purpose = "spectra")
    : OracleFile("analysis/" + name + "." + purpose + ".safetensors")
    , Model(Transformer::Read(TransformerOracle::Folder(name)))
  {
  }

  const Transformer& GetModel() const { return this->Model; }

private:
  Transformer Model;
};

/// Runs on every model of the circuit oracle.
class OfCircuits : public OfAnalysis
{
protected:
  CircuitOracle Oracle{ GetParam() };
};

}
