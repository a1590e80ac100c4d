#include "vtkClassAreas.h"

#include "Matchers.h"
#include "Pipeline.h"
#include "vtkTokenPairs.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

class Areas : public On<vtkClassAreas>
{
public:
  explicit Areas(const AttentionOnlyModel& model)
    : On(DataSetOf(model))
  {
    this->Get()->SetResolution(200, 150);
  }
};

double Sum(const std::vector<double>& values)
{
  return std::accumulate(values.begin(), values.end(), 0.);
}

TEST(ClassAreasFilter, CountsPointsAndPairs)
{
  Areas areas(TrainedModel());
  EXPECT_THAT(areas.Column("Class"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NEAR(Sum(areas.Column("Area")), 1, 1e-12);
  On<vtkTokenPairs> pairs(DataSetOf(TrainedModel()));
  const std::vector<double> predicted = pairs.Points("Predicted");
  const std::vector<double> targets = pairs.Points("Target");
  for (int k = 0; k < 5; ++k)
  {
    const std::size_t index = k;
    int both = 0;
    for (std::size_t pair = 0; pair < 25; ++pair)
    {
      both += predicted[pair] == k && targets[pair] == k ? 1 : 0;
    }
    EXPECT_EQ(
      areas.Column("Predicted Pairs")[index], std::count(predicted.begin(), predicted.end(), k));
    EXPECT_EQ(areas.Column("Target Pairs")[index], std::count(targets.begin(), targets.end(), k));
    EXPECT_EQ(areas.Column("Correct Pairs")[index], both);
  }
  EXPECT_EQ(areas.Field("Accuracy"), pairs.Field("Accuracy"));
}

TEST(ClassAreasFilter, FollowsTheOptions)
{
  Areas areas(TrainedModel());
  const std::vector<double> before = areas.Column("Area");
  areas->SetResidual(vtkTorusAlgorithm::NONE);
  EXPECT_NE(areas.Column("Area"), before);
}

TEST(ClassAreasFilter, LeavesOutWhatTheModelDoesNotTell)
{
  AttentionOnlyModel model = TrainedModel();
  model.nextToken.resize(0, 0);
  Areas areas(model);
  vtkTable* table = areas.Table();
  EXPECT_EQ(table->GetNumberOfColumns(), 4);
  EXPECT_EQ(table->GetFieldData()->GetArray("Accuracy"), nullptr);
}

}
