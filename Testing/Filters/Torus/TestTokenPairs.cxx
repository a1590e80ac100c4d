#include "vtkTokenPairs.h"

#include "Fields.h"
#include "Matchers.h"
#include "Torus.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Pairs = On<vtkTokenPairs>;

std::vector<double> ToDouble(const std::vector<std::int64_t>& integers)
{
  return { integers.begin(), integers.end() };
}

using TokenPairsValues = OracleTest;
INSTANTIATE_TEST_SUITE_P(, TokenPairsValues, OracleTest::Models(), OracleTest::Name);

TEST_P(TokenPairsValues, AreThoseOfTheOracle)
{
  const Oracle& oracle = GetOracle();
  Pairs pairs(DataSetOf(oracle.GetModel()));
  ExpectClose("Output", pairs.Points("Output"), oracle.Values("pair.output"), 1e-6);
  for (const std::string name : { "pair.", "pair.raw_embedding." })
  {
    EXPECT_EQ(pairs.Points("Predicted"), ToDouble(oracle.Integers(name + "class")));
    ExpectClose("Accuracy", pairs.Field("Accuracy"), oracle.Values(name + "accuracy"), 1e-12);
    pairs->SetResidual(vtkTokenPairs::RAW_EMBEDDING);
  }
}

TEST_P(TokenPairsValues, LieAtTheAnglesOfTheOracle)
{
  const Oracle& oracle = GetOracle();
  const std::vector<double> angles = oracle.Values("token_angle");
  const std::size_t n = angles.size();
  Pairs pairs(DataSetOf(oracle.GetModel()));
  vtkPolyData* output = pairs.Geometry();
  ASSERT_EQ(output->GetNumberOfPoints(), static_cast<vtkIdType>(n * n));
  ASSERT_EQ(output->GetNumberOfVerts(), static_cast<vtkIdType>(n * n));
  for (std::size_t pair = 0; pair < n * n; ++pair)
  {
    double point[3];
    output->GetPoint(static_cast<vtkIdType>(pair), point);
    EXPECT_NEAR(point[0], angles[pair / n], 1e-6);
    EXPECT_NEAR(point[1], angles[pair % n], 1e-6);
    EXPECT_EQ(point[2], 0);
  }
}

TEST_P(TokenPairsValues, KnowTheTargetsOfTheModel)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  const std::int64_t n = model.VocabularySize();
  Pairs pairs(DataSetOf(model));
  vtkPointData* data = pairs.Geometry()->GetPointData();
  const std::vector<double> color = Values(data, "TargetColor");
  const std::vector<double> predicted = Values(data, "Predicted");
  for (std::int64_t pair = 0; pair < n * n; ++pair)
  {
    const std::size_t i = pair;
    const int target = static_cast<int>(model.nextToken(pair / n, pair % n));
    EXPECT_EQ(Values(data, "First")[i], pair / n);
    EXPECT_EQ(Values(data, "Second")[i], pair % n);
    EXPECT_EQ(Values(data, "Target")[i], target);
    EXPECT_EQ(Values(data, "Correct")[i], predicted[i] == target);
    EXPECT_THAT(std::vector<double>(color.begin() + 3 * pair, color.begin() + 3 * pair + 3),
      ElementsAreArray(ClassColor(target)));
  }
  EXPECT_STREQ(data->GetScalars()->GetName(), "TargetColor");
}

TEST(TokenPairs, AreGreyWithoutTargets)
{
  Pairs pairs(DataSetOf(HandModel{}));
  vtkPolyData* output = pairs.Geometry();
  vtkPointData* data = output->GetPointData();
  EXPECT_EQ(output->GetNumberOfPoints(), 4);
  EXPECT_THAT(Values(data, "Target"), Each(-1));
  EXPECT_THAT(Values(data, "Correct"), Each(-1));
  EXPECT_THAT(Values(data, "TargetColor"), Each(128));
  EXPECT_EQ(output->GetFieldData()->GetArray("Accuracy"), nullptr);
}

TEST(TokenPairs, LieWhereTheSkewedChartHasThem)
{
  const AttentionOnlyModel model = TrainedModel();
  Pairs pairs(DataSetOf(model));
  pairs->SetAngles(vtkTokenPairs::SKEWED);
  Torus torus(model);
  torus->SetAngles(vtkTokenPairs::SKEWED);
  torus.Choose({ "Output" });
  torus.SetPoints(pairs.Geometry());
  const std::vector<double> atPairs = pairs.Points("Output");
  ExpectClose("Output", Values(torus.Update()->GetPointData(), "Output"), atPairs, 2e-5);
}

TEST(TokenPairs, HaveTheirTypes)
{
  Pairs pairs(DataSetOf(HandModel{}));
  EXPECT_THAT(TypesOf(pairs.Geometry()->GetPointData()),
    ElementsAre("Correct int", "First int", "Output float 3", "Predicted int", "Probability float",
      "Second int", "Target int", "TargetColor unsigned char 3"));
}

TEST(TokenPairs, FollowTheHeadWeights)
{
  AttentionOnlyModel model = TrainedModel();
  EvaluationOptions options;
  options.headWeights = { 0.5, 0, -1 };
  const ReferenceEvaluator evaluator(model, options);
  Pairs pairs(DataSetOf(model));
  pairs.Geometry();
  for (int h = 0; h < 3; ++h)
  {
    pairs->SetHeadWeight(h, options.headWeights[h]);
  }
  const std::vector<double> output = pairs.Points("Output");
  for (Eigen::Index pair = 0; pair < 25; ++pair)
  {
    const Eigen::Vector3d expected = evaluator.AtTokens(pair / 5, pair % 5).output;
    for (Eigen::Index c = 0; c < 3; ++c)
    {
      EXPECT_NEAR(output[3 * pair + c], expected[c], 1e-4);
    }
  }
}

}
