#include "Core/HandModel.h"
#include "Core/Oracle.h"
#include "Torus.h"
#include "vtkHarmonicHead.h"
#include "vtkScoreHarmonics.h"

#include <vtkInformation.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <functional>
#include <map>
#include <numeric>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class HarmonicTable : public Observed<vtkScoreHarmonics>
{
public:
  explicit HarmonicTable(const AttentionOnlyModel& model)
  {
    Connect(this->Get(), 0, DataSetOf(model));
  }

  vtkTable* Update() { return Updated<vtkTable>(this->Get()); }
  vtkTable* GetOutput() { return vtkTable::SafeDownCast(this->Get()->GetOutputDataObject(0)); }
};

class Source : public Observed<vtkHarmonicHead>
{
public:
  void SetCoefficients(const std::vector<double>& coefficients)
  {
    for (int i = 0; i < 11; ++i)
    {
      this->Get()->SetCoefficient(i, coefficients[i]);
    }
  }

  vtkImageData* Update() { return Updated<vtkImageData>(this->Get()); }
  vtkImageData* UpdateAt(double time)
  {
    this->Get()->UpdateTimeStep(time);
    return this->GetOutput();
  }
  vtkImageData* GetOutput() { return OutputOf<vtkImageData>(this->Get()); }
};

/// score(t1, t2) at all points of a chart, row by row.
template<class Function>
std::vector<double> OverGrid(int columns, int rows, const Function& score)
{
  const Angles grid = Grid(columns, rows);
  std::vector<double> values;
  for (std::size_t i = 0; i < grid.Count(); ++i)
  {
    values.push_back(score(grid.theta1[i], grid.theta2[i]));
  }
  return values;
}

std::vector<double> Sigmoid(std::vector<double> scores)
{
  for (double& score : scores)
  {
    score = 1 / (1 + std::exp(-score));
  }
  return scores;
}

std::vector<double> Terms(double t1, double t2)
{
  return { 1, std::cos(t1), std::sin(t1), std::cos(t2), std::sin(t2), std::cos(2 * t2),
    std::sin(2 * t2), std::cos(t1 + t2), std::sin(t1 + t2), std::cos(t1 - t2), std::sin(t1 - t2) };
}

using HarmonicsOfOracle = OracleTest;
INSTANTIATE_TEST_SUITE_P(, HarmonicsOfOracle, OracleTest::Models(), OracleTest::Name);

TEST_P(HarmonicsOfOracle, AreInTheTable)
{
  const Oracle& oracle = GetOracle();
  HarmonicTable table(oracle.GetModel());
  vtkTable* output = table.Update();
  ASSERT_EQ(output->GetNumberOfRows(), 11);
  ASSERT_EQ(output->GetNumberOfColumns(), 1 + 3 * static_cast<int>(oracle.HeadCount()));
  const std::vector<double> expected = oracle.Values("harmonics");
  for (std::size_t h = 0; h < oracle.HeadCount(); ++h)
  {
    const std::string head = std::to_string(h);
    const std::vector<double> found = Values(output->GetRowData(), "Head " + head);
    const std::vector<double> amplitude = Values(output->GetRowData(), "Amplitude " + head);
    const std::vector<double> phase = Values(output->GetRowData(), "Phase " + head);
    EXPECT_EQ(amplitude[0], 0);
    EXPECT_EQ(phase[0], 0);
    for (std::size_t i = 0; i < 11; ++i)
    {
      EXPECT_NEAR(found[i], expected[11 * h + i], 1e-9);
    }
    for (std::size_t i = 1; i < 11; i += 2)
    {
      EXPECT_NEAR(amplitude[i] * std::cos(phase[i]), expected[11 * h + i], 1e-9);
      EXPECT_NEAR(amplitude[i] * std::sin(phase[i]), expected[11 * h + i + 1], 1e-9);
      EXPECT_EQ(amplitude[i], amplitude[i + 1]);
      EXPECT_EQ(phase[i], phase[i + 1]);
    }
    EXPECT_EQ(found[5], -found[7]);
    EXPECT_EQ(found[6], -found[8]);
  }
  const Eigen::Index dimension = oracle.GetModel().HeadDimension();
  EXPECT_THAT(Values(output->GetFieldData(), "FreeParameters"),
    ElementsAre(dimension == 1 ? 5 : (dimension == 2 ? 8 : 9)));
}

TEST_P(HarmonicsOfOracle, DrawTheScoresOfTheModel)
{
  const Oracle& oracle = GetOracle();
  HarmonicTable table(oracle.GetModel());
  Torus torus(oracle.GetModel());
  torus->SetResolution(70, 90);
  torus.Choose({ "Score", "Attention" });
  Source source;
  source->SetResolution(70, 90);
  for (std::size_t h = 0; h < oracle.HeadCount(); ++h)
  {
    const std::string head = " " + std::to_string(h);
    source.SetCoefficients(Values(table.Update()->GetRowData(), "Head" + head));
    vtkDataSet* expected = torus.Update();
    vtkImageData* found = source.Update();
    EXPECT_THAT(std::vector<double>(found->GetBounds(), found->GetBounds() + 6),
      testing::ElementsAreArray(expected->GetBounds(), 6));
    for (const std::string name : { "Score", "Attention" })
    {
      ExpectClose(name + head, Values(found->GetPointData(), name),
        Values(expected->GetPointData(), name + head), 2e-5);
    }
  }
}

TEST(ScoreHarmonics, HaveTheNamesOfTheDesign)
{
  HarmonicTable table(HandModel{});
  const std::vector<std::string> expected = { "1", "cos t1", "sin t1", "cos t2", "sin t2",
    "cos 2t2", "sin 2t2", "cos(t1+t2)", "sin(t1+t2)", "cos(t1-t2)", "sin(t1-t2)" };
  EXPECT_EQ(Texts(table.Update()->GetRowData(), "Harmonic"), expected);
  EXPECT_THAT(Values(table.GetOutput()->GetFieldData(), "VocabularySize"), ElementsAre(2));
}

TEST(ScoreHarmonics, OfWeightsBeyondDoubleAreAnError)
{
  HandModel model;
  model.heads[1].query *= 1e200;
  model.heads[1].key *= 1e200;
  HarmonicTable table(model);
  EXPECT_EQ(table.Update()->GetNumberOfRows(), 0);
  EXPECT_EQ(table.GetOutput()->GetNumberOfColumns(), 0);
  EXPECT_THAT(table.TakeErrors(), ElementsAre(HasSubstr("the scores of head 1 are too large")));
}

TEST(HarmonicHead, IsTheSumOfItsTerms)
{
  const std::vector<double> coefficients = { 1, -2, 3, 0.5, -1.5, 2.5, 4, -3, 1.25, 0.75, -0.25 };
  Source source;
  source->SetResolution(33, 21);
  source->TiesOff();
  source.SetCoefficients(coefficients);
  const std::vector<double> expected = OverGrid(33, 21,
    [&](double t1, double t2)
    {
      const std::vector<double> terms = Terms(t1, t2);
      return std::inner_product(terms.begin(), terms.end(), coefficients.begin(), 0.);
    });
  vtkPointData* data = source.Update()->GetPointData();
  ExpectClose("Score", Values(data, "Score"), expected, 1e-6);
  ExpectClose("Attention", Values(data, "Attention"), Sigmoid(expected), 1e-6);
  EXPECT_EQ(data->GetArray("Score")->GetDataType(), VTK_FLOAT);
  EXPECT_EQ(data->GetArray("Attention")->GetDataType(), VTK_FLOAT);
  EXPECT_EQ(Values(source.GetOutput()->GetFieldData(), "Coefficients"), coefficients);
}

TEST(HarmonicHead, IgnoresTiedCoefficients)
{
  Source source;
  source->SetResolution(9, 9);
  const std::vector<double> before = Values(source.Update()->GetPointData(), "Score");
  source->SetCoefficient(5, 7);
  source->SetCoefficient(6, -7);
  EXPECT_EQ(Values(source.Update()->GetPointData(), "Score"), before);
  const std::vector<double> used = Values(source.GetOutput()->GetFieldData(), "Coefficients");
  EXPECT_EQ(used[5], -used[7]);
  EXPECT_EQ(used[6], -used[8]);
  source->TiesOff();
  EXPECT_NE(Values(source.Update()->GetPointData(), "Score"), before);
}

TEST(HarmonicHead, StartsWithCoefficientsThatAreTied)
{
  Source source;
  EXPECT_EQ(source->GetCoefficient(5), -source->GetCoefficient(7));
  EXPECT_EQ(source->GetCoefficient(6), -source->GetCoefficient(8));
}

TEST(HarmonicHead, IsTheProduct)
{
  Source source;
  source->SetResolution(33, 21);
  source->SetParametrization(vtkHarmonicHead::PRODUCT);
  source->SetA(1.5);
  source->SetAlpha(-0.7);
  source->SetB(0.3);
  source->SetC(-2);
  source->SetGamma(2.1);
  source->SetD(0.9);
  const std::vector<double> expected = OverGrid(33, 21,
    [](double t1, double t2)
    {
      return (1.5 * std::cos(t2 + 0.7) + 0.3) *
             (-2 * (std::cos(t1 - 2.1) - std::cos(t2 - 2.1)) + 0.9);
    });
  ExpectClose("Score", Values(source.Update()->GetPointData(), "Score"), expected, 1e-6);
}

TEST(HarmonicHead, OfTheHardmaxIsOneWhereTheScoreIsPositive)
{
  Source source;
  source->SetResolution(20, 20);
  source->SetPattern(1);
  vtkPointData* data = source.Update()->GetPointData();
  const std::vector<double> score = Values(data, "Score");
  const std::vector<double> attention = Values(data, "Attention");
  for (std::size_t i = 0; i < score.size(); ++i)
  {
    EXPECT_EQ(attention[i], score[i] > 0 ? 1 : 0);
  }
  EXPECT_THAT(attention, testing::Contains(0));
  EXPECT_THAT(attention, testing::Contains(1));
}

TEST(HarmonicHead, HasTheSameBytesInAPart)
{
  Source whole;
  whole->SetResolution(131, 97);
  Source part;
  part->SetResolution(131, 97);
  const int extent[6] = { 40, 107, 13, 60, 0, 0 };
  part->UpdateExtent(extent);
  vtkImageData* image = whole.Update();
  for (int y = extent[2]; y <= extent[3]; ++y)
  {
    for (int x = extent[0]; x <= extent[1]; ++x)
    {
      for (const char* name : { "Score", "Attention" })
      {
        int point[3] = { x, y, 0 };
        ASSERT_EQ(part.GetOutput()->GetPointData()->GetArray(name)->GetTuple1(
                    part.GetOutput()->ComputePointId(point)),
          image->GetPointData()->GetArray(name)->GetTuple1(image->ComputePointId(point)));
      }
    }
  }
}

TEST(HarmonicHead, HasNoTimeUnlessSwept)
{
  Source source;
  EXPECT_THAT(TimesOf(source.Get()), testing::IsEmpty());
  source->SetSweptParameter(1);
  source->SetSweepSteps(5);
  EXPECT_THAT(TimesOf(source.Get()), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  source->SetSweptParameter(0);
  EXPECT_THAT(TimesOf(source.Get()), testing::IsEmpty());
}

TEST(HarmonicHead, SweepsEachParameter)
{
  for (int swept = 1; swept <= 17; ++swept)
  {
    Source moving;
    Source still;
    for (Source* source : { &moving, &still })
    {
      (*source)->SetResolution(9, 7);
      (*source)->TiesOff();
      (*source)->SetParametrization(swept < 12 ? 0 : 1);
    }
    moving->SetSweptParameter(swept);
    moving->SetSweepRange(4, -2);
    const std::vector<double> start = Values(moving.UpdateAt(0)->GetPointData(), "Score");
    const std::vector<double> found = Values(moving.UpdateAt(0.75)->GetPointData(), "Score");
    EXPECT_EQ(
      Values(moving.GetOutput()->GetFieldData(), "Swept Value"), std::vector<double>{ -0.5 });
    EXPECT_EQ(moving.GetOutput()->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 0.75);
    // The same value, set by hand.
    const double value = -0.5;
    if (swept < 12)
    {
      still->SetCoefficient(swept - 1, value);
    }
    vtkHarmonicHead* product = still.Get();
    const std::map<int, std::function<void()>> setters = {
      { 12, [&] { product->SetA(value); } },
      { 13, [&] { product->SetAlpha(value); } },
      { 14, [&] { product->SetB(value); } },
      { 15, [&] { product->SetC(value); } },
      { 16, [&] { product->SetGamma(value); } },
      { 17, [&] { product->SetD(value); } },
    };
    if (swept >= 12)
    {
      setters.at(swept)();
    }
    EXPECT_EQ(found, Values(still.Update()->GetPointData(), "Score")) << swept;
    EXPECT_NE(found, start) << swept;
  }
}

TEST(HarmonicHead, StaysAtTheEndsOfASweep)
{
  Source source;
  source->SetResolution(5, 5);
  source->SetSweptParameter(2);
  source->SetSweepRange(1, 3);
  EXPECT_THAT(Values(source.UpdateAt(7)->GetFieldData(), "Swept Value"), ElementsAre(3));
  EXPECT_THAT(Values(source.UpdateAt(-7)->GetFieldData(), "Swept Value"), ElementsAre(1));
}

TEST(HarmonicHead, CanBeCancelled)
{
  Source source;
  source->SetResolution(50, 50);
  source->SetAbortExecute(1);
  EXPECT_EQ(source.Update()->GetPointData()->GetNumberOfArrays(), 0);
  EXPECT_EQ(source.Update()->GetPointData()->GetNumberOfArrays(), 2);
}

}
