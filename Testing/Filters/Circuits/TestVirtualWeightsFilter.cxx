#include "vtkVirtualWeights.h"

#include "Core/OracleFile.h"
#include "DataFields.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double Tolerance = 1e-5;

class Virtual : public OnModel<vtkVirtualWeights>
{
public:
  explicit Virtual(const std::string& model)
    : OnModel(model)
  {
    this->Get()->SetFromHead(1); // the pair of the oracle
    this->Get()->SetToHead(2);
  }

  /// The matrix, row by row, from the image whose first points are of the last row.
  std::vector<double> Matrix()
  {
    vtkImageData* image = this->Image();
    const std::vector<double> values = Values(image->GetPointData(), "Virtual Weights");
    const std::vector<double> rows = Values(image->GetPointData(), "Row");
    const std::vector<double> columns = Values(image->GetPointData(), "Column");
    std::vector<double> matrix(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      const double* place = image->GetPoint(static_cast<vtkIdType>(i));
      EXPECT_EQ(place[0], columns[i]);
      EXPECT_EQ(place[1], -rows[i]);
      matrix[static_cast<std::size_t>(rows[i] * image->GetDimensions()[0] + columns[i])] =
        values[i];
    }
    return matrix;
  }
};

/// TestVirtualWeights of Core has other models.
TEST(VirtualWeightsFilter, IsTheProductOfTwoHeads)
{
  const OracleFile oracle("analysis/gpt2.spectra.safetensors");
  Virtual weights("gpt2");
  const auto expect = [&](const std::string& name)
  { ExpectClose(name, weights.Matrix(), oracle.Values("virtual." + name), Tolerance); };
  expect("k");
  weights->SetKind(vtkVirtualWeights::V);
  expect("v");
  weights->SetKind(vtkVirtualWeights::Q);
  expect("q");
  weights->SetSpace(vtkVirtualWeights::HEAD_TO_STREAM);
  expect("o_qk");
  weights->SetSpace(vtkVirtualWeights::STREAMS);
  expect("ov_qk");
}

/// The representation Squares writes them beside the image.
TEST(VirtualWeightsFilter, NumbersRowsAndColumns)
{
  Virtual weights("gpt2");
  vtkImageData* image = weights.Image();
  const std::vector<std::string> numbers = Texts(image->GetFieldData(), "Key Token");
  ASSERT_EQ(static_cast<int>(numbers.size()), image->GetDimensions()[0]);
  EXPECT_EQ(numbers.front(), "0");
  EXPECT_EQ(numbers.back(), std::to_string(numbers.size() - 1));
  EXPECT_EQ(Texts(image->GetFieldData(), "Query Token"), numbers);
  EXPECT_EQ(Texts(image->GetFieldData(), "Query Title")[0], "values of 0.1");
  EXPECT_EQ(Texts(image->GetFieldData(), "Key Title")[0], "keys of 1.2");
}

TEST(VirtualWeightsFilter, HasSingularValuesWithTheirShare)
{
  Virtual weights("gpt2");
  vtkTable* table = TableOf(weights.Get(), 1);
  EXPECT_THAT(Column(table, "Index"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  const std::vector<double> values = Column(table, "Singular Value");
  const std::vector<double> shares = Column(table, "Share");
  double squares = 0;
  for (const double weight : weights.Matrix())
  {
    squares += weight * weight;
  }
  double sum = 0;
  for (std::size_t k = 0; k < values.size(); ++k)
  {
    EXPECT_NEAR(shares[k], values[k] * values[k] / squares, 1e-12);
    sum += shares[k];
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(AttentionAtlas::FieldText(table->GetFieldData(), "Head Name"), "0.1 to 1.2");
  EXPECT_EQ(weights->GetToLayerRange()[1], 1);
}

}
