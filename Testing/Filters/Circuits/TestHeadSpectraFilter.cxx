#include "vtkHeadSpectra.h"

#include "Core/OracleFile.h"
#include "DataFields.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Of the oracle's arrays, relative to their largest magnitude.
constexpr double SpectrumTolerance = 2e-5;

class Spectra : public OnModel<vtkHeadSpectra>
{
public:
  using OnModel::OnModel;

  /// The columns `name` 0, 1, ..., head by head.
  std::vector<double> Columns(const std::string& name)
  {
    vtkTable* table = TableOf(this->Get());
    std::vector<double> values;
    for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
    {
      for (int k = 0; k < 8; ++k)
      {
        auto* column = vtkDataArray::SafeDownCast(
          table->GetColumnByName((name + " " + std::to_string(k)).c_str()));
        for (int c = 0; column != nullptr && c < column->GetNumberOfComponents(); ++c)
        {
          values.push_back(column->GetComponent(row, c));
        }
      }
    }
    return values;
  }
};

std::vector<double> ExpectedSpectrum(const std::string& name)
{
  return OracleFile("analysis/gpt2.spectra.safetensors").Values(name);
}

TEST(HeadSpectraFilter, HasARowPerHead)
{
  Spectra spectra("gpt2");
  vtkTable* table = TableOf(spectra.Get());
  EXPECT_EQ(ColumnNames(table).size(), 3 + 16);
  EXPECT_THAT(Column(table, "Layer"), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(Column(table, "Head"), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  ExpectClose(
    "Copying", Column(table, "Copying"), ExpectedSpectrum("ov.copying"), SpectrumTolerance);
  ExpectClose("Eigenvalue", spectra.Columns("Eigenvalue"), ExpectedSpectrum("ov.eigenvalues"),
    SpectrumTolerance);
  ExpectClose("Singular Value", spectra.Columns("Singular Value"), ExpectedSpectrum("ov.singular"),
    SpectrumTolerance);
  EXPECT_EQ(AttentionAtlas::FieldText(table->GetFieldData(), "Processing"), "TransformerLens");
  EXPECT_EQ(AttentionAtlas::FieldText(table->GetFieldData(), "Left Out"), "biases");
  spectra->SetFull(true);
  ExpectClose("Copying", Column(TableOf(spectra.Get()), "Copying"),
    ExpectedSpectrum("ov.full.copying"), SpectrumTolerance);
  ExpectClose("Eigenvalue", spectra.Columns("Eigenvalue"), ExpectedSpectrum("ov.full.eigenvalues"),
    SpectrumTolerance);
  spectra->SetFull(false);
  spectra->SetCircuit(vtkHeadSpectra::QK);
  ExpectClose("Singular Value", spectra.Columns("Singular Value"), ExpectedSpectrum("qk.singular"),
    SpectrumTolerance);
}

TEST(HeadSpectraFilter, HasASquarePerHeadWithItsEigenvalues)
{
  Spectra spectra("gpt2");
  vtkPolyData* squares = spectra.Geometry(1);
  ASSERT_EQ(squares->GetNumberOfPolys(), 8);
  ExpectClose("Copying Score", Values(squares->GetCellData(), "Copying Score"),
    ExpectedSpectrum("ov.copying"), SpectrumTolerance);
  vtkPolyData* points = spectra.Geometry(2);
  ASSERT_EQ(points->GetNumberOfVerts(), 64);
  const std::vector<double> real = Values(points->GetPointData(), "Real");
  const std::vector<double> imaginary = Values(points->GetPointData(), "Imaginary");
  const std::vector<double> modulus = Values(points->GetPointData(), "Modulus");
  for (std::size_t i = 0; i < real.size(); ++i)
  {
    EXPECT_NEAR(modulus[i], std::hypot(real[i], imaginary[i]), 1e-12);
    std::array<double, 3> place;
    points->GetPoint(static_cast<vtkIdType>(i), place.data());
    const double scale = 0.44 / modulus[i / 8 * 8]; // the largest is the first of its head
    EXPECT_NEAR(place[0], static_cast<double>(i / 8 % 4) + scale * real[i], 1e-6);
    EXPECT_NEAR(place[1], -static_cast<double>(i / 32) + scale * imaginary[i], 1e-6);
  }
  EXPECT_EQ(spectra.Geometry(3)->GetNumberOfPoints(), 2 + 4);
}

TEST(HeadSpectraFilter, OfOneHead)
{
  Spectra spectra("llama");
  spectra->SetLayer(1);
  spectra->SetHead(2);
  vtkTable* table = TableOf(spectra.Get());
  EXPECT_THAT(Column(table, "Layer"), ElementsAre(1));
  EXPECT_THAT(Column(table, "Head"), ElementsAre(2));
  EXPECT_THAT(spectra->GetLayerRange()[1], 1);
  EXPECT_THAT(spectra->GetHeadRange()[1], 3);
  spectra->SetCircuit(vtkHeadSpectra::QK);
  EXPECT_EQ(
    TableOf(spectra.Get())->GetFieldData()->GetAbstractArray("Left Out")->GetNumberOfValues(), 4);
}

}
