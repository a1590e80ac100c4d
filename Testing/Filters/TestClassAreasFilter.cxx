#include "vtkClassAreas.h"

#include "Pipeline.h"
#include "vtkTokenPairs.h"

#include <vtkDataSet.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkTable.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

AttentionOnlyModel Trained()
{
  return ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
}

class Areas : public Observed<vtkClassAreas>
{
public:
  explicit Areas(const AttentionOnlyModel& model)
  {
    Connect(this->Get(), 0, DataSetOf(model));
    this->Get()->SetResolution(200, 150);
  }

  std::vector<double> Column(const char* name)
  {
    this->Get()->Update();
    return Values(vtkTable::SafeDownCast(this->Get()->GetOutputDataObject(0))->GetRowData(), name);
  }
};

double Sum(const std::vector<double>& values)
{
  return std::accumulate(values.begin(), values.end(), 0.);
}

TEST(ClassAreasFilter, CountsPointsAndPairs)
{
  Areas areas(Trained());
  EXPECT_THAT(areas.Column("Class"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NEAR(Sum(areas.Column("Area")), 1, 1e-12);
  vtkNew<vtkTokenPairs> pairs;
  Connect(pairs, 0, DataSetOf(Trained()));
  pairs->Update();
  auto* points = vtkDataSet::SafeDownCast(pairs->GetOutputDataObject(0))->GetPointData();
  const std::vector<double> predicted = Values(points, "Predicted");
  const std::vector<double> targets = Values(points, "Target");
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
  EXPECT_EQ(Values(areas->GetOutputDataObject(0)->GetFieldData(), "Accuracy"),
    Values(pairs->GetOutputDataObject(0)->GetFieldData(), "Accuracy"));
}

TEST(ClassAreasFilter, FollowsTheOptions)
{
  Areas areas(Trained());
  const std::vector<double> before = areas.Column("Area");
  areas->SetResidual(vtkTorusAlgorithm::NONE);
  EXPECT_NE(areas.Column("Area"), before);
}

TEST(ClassAreasFilter, LeavesOutWhatTheModelDoesNotTell)
{
  AttentionOnlyModel model = Trained();
  model.nextToken.resize(0, 0);
  Areas areas(model);
  auto* table = Updated<vtkTable>(areas.Get());
  EXPECT_EQ(table->GetNumberOfColumns(), 4);
  EXPECT_EQ(table->GetFieldData()->GetArray("Accuracy"), nullptr);
}

}
