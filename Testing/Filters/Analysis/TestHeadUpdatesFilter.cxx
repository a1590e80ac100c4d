#include "vtkHeadUpdates.h"

#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Updates = On<vtkHeadUpdates>;

using UpdatesFilterOfModel = OfFocus;

TEST_P(UpdatesFilterOfModel, CountsAndAveragesAsTheOracle)
{
  Updates updates(DataSetOf(this->Oracle.GetRecording()));
  vtkTable* bins = updates.Table(1);
  for (const std::string name : { "Magnitude", "Orientation" })
  {
    const std::string quantity =
      "histogram." + std::string(name == "Magnitude" ? "magnitude" : "orientation");
    const std::vector<std::int64_t> counts = this->Oracle.Integers(quantity);
    EXPECT_EQ(Column(bins, name + " Count"), std::vector<double>(counts.begin(), counts.end()))
      << quantity;
    const std::vector<double> edges = this->Oracle.Values(quantity + ".edges");
    const std::vector<double> low = Column(bins, name + " Low");
    const std::vector<double> high = Column(bins, name + " High");
    for (std::size_t i = 0; i < low.size(); ++i) // [L, H, 50]; edges [L, 51] or [51]
    {
      const std::size_t edge = i % 50 + (name == "Magnitude" ? 51 * (i / 200) : 0);
      EXPECT_NEAR(low[i], edges[edge], FocusTolerance * edges.back());
      EXPECT_NEAR(high[i], edges[edge + 1], FocusTolerance * edges.back());
    }
  }
  ExpectClose("figure10.mean", updates.Column("Magnitude", 2), this->Oracle.Values("figure10.mean"),
    FocusTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, UpdatesFilterOfModel, OfFocus::Models(), OfFocus::Name);

TEST(HeadUpdates, HasARowPerHeadAndToken)
{
  const FocusOracle oracle("gpt2");
  Updates updates(DataSetOf(oracle.GetRecording()));
  vtkTable* table = updates.Table();
  EXPECT_THAT(
    ColumnNames(table), ElementsAre("Layer", "Head", "Sequence", "Position", "Token Index", "Token",
                          "Magnitude", "Orientation", "Context Magnitude"));
  ASSERT_EQ(table->GetNumberOfRows(), 2 * 4 * 34);
  const std::vector<double> found = Column(table, "Magnitude");
  const std::vector<double> expected = oracle.Values("update.magnitude"); // [2, 2, 4, 17]
  EXPECT_NEAR(found[(4 + 3) * 34 + 17 + 5], expected[((2 + 1) * 4 + 3) * 17 + 5], 1e-5);
  EXPECT_EQ(updates.Table(3)->GetNumberOfRows(), 0);
}

TEST(HeadUpdates, OfWholeLayersNeedTheModel)
{
  const FocusOracle oracle("bloom");
  Recording processed = FocusOracle("gpt2").GetRecording();
  processed.processing = WeightProcessing::Processed; // with other biases than those of the model
  Updates others(DataSetOf(processed));
  OracleModel stored("gpt2");
  others->SetModelConnection(stored.Port());
  EXPECT_THAT(others.Error(), HasSubstr("expected processed ones, found unprocessed ones"));
  Updates updates(DataSetOf(oracle.GetRecording()));
  OracleModel model("bloom");
  updates->SetModelConnection(model.Port());
  vtkTable* layers = updates.Table(3);
  ExpectClose("magnitude", Column(layers, "Magnitude"), oracle.Values("update.total_magnitude"),
    FocusTolerance);
  ExpectClose("orientation", Column(layers, "Orientation"),
    oracle.Values("update.total_orientation"), FocusTolerance);
  EXPECT_THAT(Column(layers, "Head"), Each(-1));
}

TEST(HeadUpdates, OfASingleToken)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  TransformerInput input;
  input.tokens = { { 5 } };
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  Updates updates(DataSetOf(RecordTransformer(model, input, options)));
  EXPECT_EQ(updates.Table()->GetNumberOfRows(), 8);
  EXPECT_THAT(updates.Column("Tokens", 2), Each(4)); // heads
}

TEST(HeadUpdates, HasNoContextWithoutValues)
{
  Recording recording = FocusOracle("gpt2").GetRecording();
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.value = {};
    }
  }
  Updates updates(DataSetOf(recording));
  EXPECT_THAT(ColumnNames(updates.Table()), Not(Contains("Context Magnitude")));
}

}
