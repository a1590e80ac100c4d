#include "vtkHeadCircuit.h"

#include "Core/TablesOracle.h"
#include "Matchers.h"
#include "WordModel.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Expects the rows of an image, from the top, to be one head of an array [L, H, n, n].
void ExpectImage(
  vtkImageData* image, const std::string& array, const std::vector<double>& all, std::size_t head)
{
  const std::vector<double> found = Values(image->GetPointData(), array);
  const std::size_t size = image->GetDimensions()[0];
  ASSERT_EQ(found.size(), size * size);
  for (std::size_t row = 0; row < size; ++row)
  {
    for (std::size_t column = 0; column < size; ++column)
    {
      EXPECT_NEAR(
        found[(size - 1 - row) * size + column], all[(head * size + row) * size + column], 1e-4);
    }
  }
}

TEST(HeadCircuit, ShowsQueriesAndKeys)
{
  const TablesOracle oracle("gpt2");
  OnModel<vtkHeadCircuit> circuit("gpt2");
  circuit->SetLayer(1);
  circuit->SetHead(2);
  vtkImageData* image = circuit.Image(1);
  EXPECT_EQ(circuit->GetLayerRange()[1], 1);
  EXPECT_EQ(circuit->GetHeadRange()[1], 3);
  ExpectImage(image, "QK", oracle.Values("qk.rows"), 6);
  EXPECT_EQ(image->GetOrigin()[1], -7);
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Destination"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Title"), ElementsAre("Source"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), SizeIs(8));
  EXPECT_THAT(Texts(image->GetFieldData(), "Left Out"), Contains("position embedding"));
  vtkTable* table = TableOf(circuit.Get());
  ASSERT_EQ(table->GetNumberOfRows(), 8 * 2 * 10);
  EXPECT_THAT(ColumnNames(table), ElementsAre("Layer", "Head", "Token", "TokenId", "Direction",
                                    "Rank", "Other Token", "Other TokenId", "Value"));
  const std::vector<double> values = Column(table, "Value");
  for (std::size_t row = 0; row < values.size(); ++row)
  {
    const bool isSource = row / 10 % 2 == 0;
    const std::vector<double> expected =
      oracle.Values(isSource ? "qk.top_sources.values" : "qk.top_destinations.values");
    EXPECT_NEAR(values[row], expected[(6 * 8 + row / 20) * 10 + row % 10], 1e-4);
    EXPECT_EQ(table->GetValueByName(static_cast<vtkIdType>(row), "Direction").ToString(),
      isSource ? "Source" : "Destination");
  }
}

TEST(HeadCircuit, ShowsOutputsOfTokensByText)
{
  WordModel model;
  On<vtkHeadCircuit> circuit;
  circuit->SetInputConnection(model.Port());
  circuit->SetCircuit(vtkHeadCircuit::OUTPUT_VALUE);
  circuit->AddToken(" w5");
  circuit->AddToken("w7");
  circuit->SetTop(3);
  vtkTable* table = TableOf(circuit.Get());
  EXPECT_THAT(Column(table, "TokenId"), ElementsAre(5, 5, 5, 7, 7, 7));
  vtkImageData* image = circuit.Image(1);
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("\u00B7w5", "\u00B7w7"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Source"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Title"), ElementsAre("Output"));
  EXPECT_STREQ(image->GetPointData()->GetArray(0)->GetName(), "OV");
}

TEST(HeadCircuit, ShowsPositions)
{
  OnModel<vtkHeadCircuit> circuit("gpt2");
  circuit->SetCircuit(vtkHeadCircuit::POSITION_QUERY_KEY);
  vtkImageData* image = circuit.Image(1);
  EXPECT_EQ(image->GetDimensions()[0], 64);
  vtkTable* table = TableOf(circuit.Get());
  EXPECT_EQ(table->GetNumberOfRows(), 64 * 2 * 10);
  EXPECT_THAT(ColumnNames(table),
    ElementsAre("Layer", "Head", "Position", "Direction", "Rank", "Other Position", "Value"));
}

}
