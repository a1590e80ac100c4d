#include "Matchers.h"
#include "Torus.h"
#include "vtkHarmonicHead.h"
#include "vtkScoreHarmonics.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using HarmonicTable = On<vtkScoreHarmonics>;

class Source : public On<vtkHarmonicHead>
{
public:
  void SetCoefficients(const std::vector<double>& coefficients)
  {
    for (int i = 0; i < 11; ++i)
    {
      this->Get()->SetCoefficient(i, coefficients[i]);
    }
  }

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
  HarmonicTable table(DataSetOf(oracle.GetModel()));
  vtkTable* output = table.Table();
  ASSERT_EQ(output->GetNumberOfRows(), 11);
  ASSERT_EQ(output->GetNumberOfColumns(), 1 + 3 * static_cast<int>(oracle.HeadCount()));
  const std::vector<double> expected = oracle.Values("harmonics");
  for (std::size_t h = 0; h < oracle.HeadCount(); ++h)
  {
    const std::string head = std::to_string(h);
    const std::vector<double> found = table.Column(("Head " + head).c_str());
    const std::vector<double> amplitude = table.Column(("Amplitude " + head).c_str());
    const std::vector<double> phase = table.Column(("Phase " + head).c_str());
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
  HarmonicTable table(DataSetOf(oracle.GetModel()));
  Torus torus(oracle.GetModel());
  torus->SetResolution(70, 90);
  torus.Choose({ "Score", "Attention" });
  Source source;
  source->SetResolution(70, 90);
  for (std::size_t h = 0; h < oracle.HeadCount(); ++h)
  {
    const std::string head = " " + std::to_string(h);
    source.SetCoefficients(table.Column(("Head" + head).c_str()));
    vtkDataSet* expected = torus.Update();
    vtkImageData* found = source.Image();
    EXPECT_THAT(BoundsOf(found), ElementsAreArray(expected->GetBounds(), 6));
    for (const std::string name : { "Score", "Attention" })
    {
      ExpectClose(name + head, Values(found->GetPointData(), name),
        Values(expected->GetPointData(), name + head), 2e-5);
    }
  }
}

TEST(ScoreHarmonics, HaveTheNamesOfTheDesign)
{
  HarmonicTable table(DataSetOf(HandModel{}));
  const std::vector<std::string> expected = { "1", "cos t1", "sin t1", "cos t2", "sin t2",
    "cos 2t2", "sin 2t2", "cos(t1+t2)", "sin(t1+t2)", "cos(t1-t2)", "sin(t1-t2)" };
  EXPECT_EQ(Texts(table.Table()->GetRowData(), "Harmonic"), expected);
  EXPECT_THAT(table.Field("VocabularySize"), ElementsAre(2));
}

TEST(ScoreHarmonics, OfWeightsBeyondDoubleAreAnError)
{
  HandModel model;
  model.heads[1].query *= 1e200;
  model.heads[1].key *= 1e200;
  HarmonicTable table(DataSetOf(model));
  EXPECT_THAT(table.Error(), HasSubstr("the scores of head 1 are too large"));
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
  vtkPointData* data = source.Image()->GetPointData();
  ExpectClose("Score", Values(data, "Score"), expected, 1e-6);
  ExpectClose("Attention", Values(data, "Attention"), Sigmoid(expected), 1e-6);
  EXPECT_THAT(TypesOf(data), ElementsAre("Attention float", "Score float"));
  EXPECT_EQ(source.Field("Coefficients"), coefficients);
}

TEST(HarmonicHead, IgnoresTiedCoefficients)
{
  Source source;
  source->SetResolution(9, 9);
  const std::vector<double> before = source.Points("Score");
  source->SetCoefficient(5, 7);
  source->SetCoefficient(6, -7);
  EXPECT_EQ(source.Points("Score"), before);
  const std::vector<double> used = source.Field("Coefficients");
  EXPECT_EQ(used[5], -used[7]);
  EXPECT_EQ(used[6], -used[8]);
  source->TiesOff();
  EXPECT_NE(source.Points("Score"), before);
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
  ExpectClose("Score", source.Points("Score"), expected, 1e-6);
}

TEST(HarmonicHead, OfTheHardmaxIsOneWhereTheScoreIsPositive)
{
  Source source;
  source->SetResolution(20, 20);
  source->SetPattern(1);
  vtkPointData* data = source.Image()->GetPointData();
  const std::vector<double> score = Values(data, "Score");
  const std::vector<double> attention = Values(data, "Attention");
  for (std::size_t i = 0; i < score.size(); ++i)
  {
    EXPECT_EQ(attention[i], score[i] > 0 ? 1 : 0);
  }
  EXPECT_THAT(attention, Contains(0));
  EXPECT_THAT(attention, Contains(1));
}

TEST(HarmonicHead, HasTheSameBytesInAPart)
{
  Source whole;
  whole->SetResolution(131, 97);
  Source part;
  part->SetResolution(131, 97);
  ExpectIsPartOf(part.Part(40, 107, 13, 60), whole.Image());
}

TEST(HarmonicHead, HasNoTimeUnlessSwept)
{
  Source source;
  EXPECT_THAT(TimesOf(source.Get()), IsEmpty());
  source->SetSweptParameter(1);
  source->SetSweepSteps(5);
  EXPECT_THAT(TimesOf(source.Get()), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  source->SetSweptParameter(0);
  EXPECT_THAT(TimesOf(source.Get()), IsEmpty());
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
    if (swept < 12)
    {
      still->SetCoefficient(swept - 1, -0.5);
    }
    else
    {
      using Filter = vtkHarmonicHead;
      const std::array<void (Filter::*)(double), 6> setters = { &Filter::SetA, &Filter::SetAlpha,
        &Filter::SetB, &Filter::SetC, &Filter::SetGamma, &Filter::SetD };
      (still.Get()->*setters[swept - 12])(-0.5);
    }
    EXPECT_EQ(found, still.Points("Score")) << swept;
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
  EXPECT_EQ(source.Image()->GetPointData()->GetNumberOfArrays(), 0);
  EXPECT_EQ(source.Image()->GetPointData()->GetNumberOfArrays(), 2);
}

}
