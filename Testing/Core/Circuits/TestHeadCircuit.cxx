#include "Circuits/HeadCircuit.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "ErrorMessage.h"
#include "TablesOracle.h"

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

class OfHeadCircuits : public OfTables
{
protected:
  std::vector<std::int32_t> Tokens = this->Oracle.Ids("table.tokens");

  /// Entries, and the largest ones by the order of HeadCircuitTables::largest, of all heads.
  struct Found
  {
    std::vector<double> entries;
    std::vector<std::vector<TokenLogit>> largest;
  };

  Found Evaluate(CircuitKind circuit, bool processes) const
  {
    const Transformer& model = this->Oracle.GetModel();
    HeadCircuitOptions options;
    options.circuit = circuit;
    options.processes = processes;
    options.tokens = this->Tokens;
    Found found;
    for (options.layer = 0; options.layer < model.GetConfig().layers; ++options.layer)
    {
      for (options.head = 0; options.head < model.GetConfig().heads; ++options.head)
      {
        const auto tables = EvaluateHeadCircuit(model, options);
        const DoubleMatrix& entries = tables.entries;
        EXPECT_EQ(entries.rows(), CircuitSize(model, options));
        const Eigen::Index shown = std::min<Eigen::Index>(entries.rows(), 16);
        const DoubleMatrix part = entries.topLeftCorner(shown, shown);
        found.entries.insert(found.entries.end(), part.data(), part.data() + part.size());
        found.largest.resize(tables.largest.size());
        for (std::size_t i = 0; i < found.largest.size(); ++i)
        {
          const std::vector<TokenLogit>& list = tables.largest[i].entries;
          found.largest[i].insert(found.largest[i].end(), list.begin(), list.end());
        }
      }
    }
    return found;
  }

  void ExpectEntries(const std::string& name, const Found& found) const
  {
    ExpectClose(name, found.entries, this->Oracle.Values(name), TablesTolerance);
  }

  void ExpectTop(const std::string& name, const std::vector<TokenLogit>& found) const
  {
    ExpectLargest(
      name, found, 10, this->Oracle.Ids(name + ".ids"), this->Oracle.Values(name + ".values"));
  }
};

INSTANTIATE_TEST_SUITE_P(Models, OfHeadCircuits, OfCircuits::Models(), OfCircuits::Name);

TEST_P(OfHeadCircuits, QueryKeyIsExpected)
{
  const Found found = this->Evaluate(CircuitKind::QueryKey, true);
  this->ExpectEntries("qk.rows", found);
  this->ExpectTop("qk.top_sources", found.largest[0]);
  this->ExpectTop("qk.top_destinations", found.largest[1]);
  this->ExpectEntries("raw.qk.rows", this->Evaluate(CircuitKind::QueryKey, false));
}

TEST_P(OfHeadCircuits, OutputValueIsExpected)
{
  const Found found = this->Evaluate(CircuitKind::OutputValue, true);
  this->ExpectEntries("ov.rows", found);
  this->ExpectTop("ov.top", found.largest[0]);
  this->ExpectEntries("raw.ov.rows", this->Evaluate(CircuitKind::OutputValue, false));
}

TEST_P(OfHeadCircuits, PositionsAreExpected)
{
  if (this->Oracle.Has("qk.position"))
  {
    this->ExpectEntries("qk.position", this->Evaluate(CircuitKind::PositionQueryKey, true));
    return;
  }
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Evaluate(CircuitKind::PositionQueryKey, true); }),
    testing::StartsWith("Circuit PositionQK: expected a model with a position embedding, found "));
}

/// The largest of a row are those of the whole row.
TEST(HeadCircuit, LargestOfPositionsAreThoseOfRowsAndColumns)
{
  const TablesOracle oracle("gpt2");
  HeadCircuitOptions options;
  options.circuit = CircuitKind::PositionQueryKey;
  options.largest.top = 2;
  const auto tables = EvaluateHeadCircuit(oracle.GetModel(), options);
  ASSERT_EQ(tables.largest.size(), 2U);
  EXPECT_EQ(tables.largest[0].direction, "Source");
  EXPECT_EQ(tables.largest[1].direction, "Destination");
  for (Eigen::Index i = 0; i < tables.entries.rows(); ++i)
  {
    Eigen::Index source = 0;
    Eigen::Index destination = 0;
    tables.entries.row(i).maxCoeff(&source);
    tables.entries.col(i).maxCoeff(&destination);
    EXPECT_EQ(tables.largest[0].entries[2 * i].id, source);
    EXPECT_EQ(tables.largest[1].entries[2 * i].id, destination);
  }
}

TEST(HeadCircuit, RefusesOptionsThatDoNotFit)
{
  const TablesOracle oracle("gpt2");
  HeadCircuitOptions options;
  options.tokens = { 1 };
  options.layer = 2;
  EXPECT_THROW(EvaluateHeadCircuit(oracle.GetModel(), options), OptionError);
  options.layer = 0;
  options.largest.top = 0;
  EXPECT_THAT(MessageOf<OptionError>([&] { CircuitSize(oracle.GetModel(), options); }),
    testing::HasSubstr("Top: expected at least 1, found 0"));
}

}
