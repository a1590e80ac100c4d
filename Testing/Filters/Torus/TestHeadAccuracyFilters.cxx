#include "AttentionOnly/HeadAccuracy.h"
#include "Matchers.h"
#include "Torus.h"
#include "vtkHeadAccuracy.h"
#include "vtkHeadAccuracySimplex.h"
#include "vtkTokenPairs.h"

// TestHeadAccuracy of Core has the values; this is about the data sets.
using namespace atlas;
using namespace atlas::test;

namespace
{

class Simplex : public On<vtkHeadAccuracySimplex>
{
public:
  explicit Simplex(const AttentionOnlyModel& model)
    : On(DataSetOf(model))
  {
    this->Get()->SetResolution(6);
  }
};

using Accuracies = On<vtkHeadAccuracy>;

/// Corner 0 at the lower right, 1 at the top, 2 at the lower left.
const double Corners[3][2] = { { 1, 0 }, { 0.5, std::sqrt(0.75) }, { 0, 0 } };

TEST(HeadAccuracyTable, HasTheCountsOfCore)
{
  const AttentionOnlyModel model = TrainedModel();
  Accuracies table(DataSetOf(model));
  for (const bool raw : { false, true })
  {
    if (raw) // else as by default
    {
      table->SetResidual(vtkTorusAlgorithm::RAW_EMBEDDING);
    }
    const HeadAccuracies counts =
      CountCorrect(model, raw ? Residual::RawEmbedding : Residual::EmbeddingPosition);
    std::vector<double> correct(counts.alone.begin(), counts.alone.end());
    correct.push_back(static_cast<double>(counts.all));
    correct.push_back(static_cast<double>(counts.any));
    vtkDataSetAttributes* rows = table.Table()->GetRowData();
    EXPECT_THAT(
      Texts(rows, "Name"), ElementsAre("Head 0", "Head 1", "Head 2", "All Heads", "Union"));
    EXPECT_EQ(Values(rows, "Correct"), correct);
    EXPECT_THAT(Values(rows, "Pairs"), Each(25));
    for (double& value : correct)
    {
      value /= 25;
    }
    ExpectClose("Accuracy", Values(rows, "Accuracy"), correct, 1e-15);
  }
}

TEST(HeadAccuracyTable, HasItsTypes)
{
  Accuracies table(DataSetOf(TrainedModel()));
  vtkTable* output = table.Table();
  EXPECT_THAT(TypesOf(output->GetRowData()),
    ElementsAre("Accuracy double", "Correct int", "Name string", "Pairs int"));
  EXPECT_EQ(Values(output->GetFieldData(), "Heads"), std::vector<double>{ 3 });
}

TEST(HeadAccuracySimplex, IsAnEquilateralTriangle)
{
  Simplex simplex(TrainedModel());
  vtkPolyData* output = simplex.Geometry();
  ASSERT_EQ(output->GetNumberOfPoints(), 28);
  ASSERT_EQ(output->GetNumberOfPolys(), 36);
  EXPECT_EQ(output->GetNumberOfCells(), 36);
  const std::vector<double> weights = Values(output->GetPointData(), "Barycentric");
  for (vtkIdType i = 0; i < 28; ++i)
  {
    for (int axis = 0; axis < 2; ++axis)
    {
      double expected = 0;
      for (int c = 0; c < 3; ++c)
      {
        expected += weights[3 * i + c] * Corners[c][axis];
      }
      EXPECT_NEAR(output->GetPoint(i)[axis], expected, 1e-6);
    }
    EXPECT_EQ(output->GetPoint(i)[2], 0);
  }
  double normalSum = 0;
  for (vtkIdType i = 0; i < 36; ++i)
  {
    vtkIdType count = 0;
    const vtkIdType* ids = nullptr;
    output->GetPolys()->GetCellAtId(i, count, ids);
    ASSERT_EQ(count, 3);
    double p[3][3];
    for (int c = 0; c < 3; ++c)
    {
      output->GetPoint(ids[c], p[c]);
    }
    normalSum +=
      ((p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[2][0] - p[0][0]) * (p[1][1] - p[0][1])) / 2;
  }
  EXPECT_NEAR(normalSum, std::sqrt(3.0) / 4, 1e-6);
}

TEST(HeadAccuracySimplex, NamesTheHeadsAtItsCorners)
{
  Simplex simplex(TrainedModel());
  simplex->SetHeadIndices(2, 0, 1);
  vtkPolyData* corners = simplex.Geometry(vtkHeadAccuracySimplex::CORNERS);
  ASSERT_EQ(corners->GetNumberOfVerts(), 3);
  vtkPointData* data = corners->GetPointData();
  EXPECT_THAT(Texts(data, "Token"), ElementsAre("Head 2", "Head 0", "Head 1"));
  EXPECT_THAT(Values(data, "Head"), ElementsAre(2, 0, 1));
  for (vtkIdType i = 0; i < 3; ++i)
  {
    EXPECT_NEAR(corners->GetPoint(i)[0], Corners[i][0], 1e-6);
    EXPECT_NEAR(corners->GetPoint(i)[1], Corners[i][1], 1e-6);
  }
  EXPECT_THAT(Values(data, "Side"), ElementsAre(4, 5, 4)) << "labels are outside of the triangle";
}

TEST(HeadAccuracySimplex, HasTheAccuracyOfHeadsAtItsCornersAndOfTheModelAtItsCentre)
{
  const AttentionOnlyModel model = TrainedModel();
  Accuracies table(DataSetOf(model));
  const std::vector<double> expected = table.Column("Accuracy");
  Simplex simplex(model);
  const auto accuracyAt = [&](double first, double second, double third)
  {
    const std::vector<double> weights = simplex.Points("Barycentric");
    for (std::size_t i = 0; i < weights.size() / 3; ++i)
    {
      if (std::abs(weights[3 * i] - first) + std::abs(weights[3 * i + 1] - second) +
            std::abs(weights[3 * i + 2] - third) <
          1e-6)
      {
        return simplex.Points("Accuracy")[i];
      }
    }
    return -1.;
  };
  EXPECT_NEAR(accuracyAt(1, 0, 0), expected[0], 1e-6);
  EXPECT_NEAR(accuracyAt(0, 1, 0), expected[1], 1e-6);
  EXPECT_NEAR(accuracyAt(0, 0, 1), expected[2], 1e-6);
  simplex->SetHeadIndices(2, 0, 1);
  EXPECT_NEAR(accuracyAt(1, 0, 0), expected[2], 1e-6);
  simplex->SetResidual(vtkTorusAlgorithm::EMBEDDING_POSITION);
  EXPECT_NEAR(accuracyAt(1. / 3, 1. / 3, 1. / 3), expected[3], 1e-6);
}

TEST(HeadAccuracySimplex, HasItsTypesAndOnlyTargetsThatOccur)
{
  AttentionOnlyModel model = TrainedModel();
  model.nextToken.setConstant(3);
  Simplex simplex(model);
  vtkPolyData* output = simplex.Geometry();
  vtkPointData* data = output->GetPointData();
  EXPECT_THAT(
    TypesOf(data), ElementsAre("Accuracy Target 3 float", "Accuracy float", "Barycentric float 3"));
  EXPECT_STREQ(data->GetScalars()->GetName(), "Accuracy");
  EXPECT_EQ(Values(data, "Accuracy"), Values(data, "Accuracy Target 3"));
  EXPECT_EQ(Values(output->GetFieldData(), "VocabularySize"), std::vector<double>{ 5 });
}

TEST(HeadAccuracySimplex, ShowsAPairThatIsTheTokenPairInItsCentre)
{
  const AttentionOnlyModel model = TrainedModel();
  On<vtkTokenPairs> pairs(DataSetOf(model));
  const std::vector<double> predicted = pairs.Points("Predicted");
  Simplex simplex(model);
  simplex->SetResolution(3); // point 5 of 10 is the center
  simplex->SetResidual(vtkTorusAlgorithm::EMBEDDING_POSITION);
  for (int pair = 0; pair < 25; ++pair)
  {
    simplex->SetPair(pair / 5, pair % 5);
    vtkPointData* data = simplex.Geometry()->GetPointData();
    const std::vector<double> found = Values(data, "Predicted");
    const std::vector<double> correct = Values(data, "Correct Pair");
    EXPECT_EQ(found[5], predicted[pair]);
    const auto target = static_cast<double>(model.nextToken(pair / 5, pair % 5));
    for (std::size_t i = 0; i < 10; ++i)
    {
      EXPECT_EQ(correct[i], found[i] == target ? 1 : 0);
    }
  }
}

}
