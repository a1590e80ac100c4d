#include "vtkTokenPairs.h"

#include "ClassPalette.h"
#include "Core/HandModel.h"
#include "Fields.h"
#include "Torus.h"

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;

namespace
{

class Pairs : public Observed<vtkTokenPairs>
{
public:
  explicit Pairs(const AttentionOnlyModel& model) { Connect(this->Get(), 0, DataSetOf(model)); }

  vtkPolyData* Update() { return Updated<vtkPolyData>(this->Get()); }
  vtkPolyData* GetOutput()
  {
    return vtkPolyData::SafeDownCast(this->Get()->GetOutputDataObject(0));
  }
};

std::vector<double> ToDouble(const std::vector<std::int64_t>& integers)
{
  return { integers.begin(), integers.end() };
}

using TokenPairsValues = OracleTest;
INSTANTIATE_TEST_SUITE_P(, TokenPairsValues, OracleTest::Models(), OracleTest::Name);

TEST_P(TokenPairsValues, AreThoseOfTheOracle)
{
  const Oracle& oracle = GetOracle();
  Pairs pairs(oracle.GetModel());
  vtkPolyData* output = pairs.Update();
  vtkPointData* data = output->GetPointData();
  EXPECT_EQ(Values(data, "Predicted"), ToDouble(oracle.Integers("pair.class")));
  ExpectClose("Output", Values(data, "Output"), oracle.Values("pair.output"), 1e-6);
  ExpectClose(
    "Accuracy", Values(output->GetFieldData(), "Accuracy"), oracle.Values("pair.accuracy"), 1e-12);
}

TEST_P(TokenPairsValues, WithTheRawEmbeddingAreThoseOfTheOracle)
{
  const Oracle& oracle = GetOracle();
  Pairs pairs(oracle.GetModel());
  pairs->SetResidual(vtkTokenPairs::RAW_EMBEDDING);
  vtkPolyData* output = pairs.Update();
  EXPECT_EQ(Values(output->GetPointData(), "Predicted"),
    ToDouble(oracle.Integers("pair.raw_embedding.class")));
  ExpectClose("Accuracy", Values(output->GetFieldData(), "Accuracy"),
    oracle.Values("pair.raw_embedding.accuracy"), 1e-12);
}

TEST_P(TokenPairsValues, LieAtTheAnglesOfTheOracle)
{
  const Oracle& oracle = GetOracle();
  const std::vector<double> angles = oracle.Values("token_angle");
  const std::size_t n = angles.size();
  Pairs pairs(oracle.GetModel());
  vtkPolyData* output = pairs.Update();
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
  Pairs pairs(model);
  vtkPointData* data = pairs.Update()->GetPointData();
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
      testing::ElementsAreArray(ClassColor(target)));
  }
  EXPECT_STREQ(data->GetScalars()->GetName(), "TargetColor");
}

TEST(TokenPairs, AreGreyWithoutTargets)
{
  Pairs pairs(HandModel{});
  vtkPolyData* output = pairs.Update();
  vtkPointData* data = output->GetPointData();
  EXPECT_EQ(output->GetNumberOfPoints(), 4);
  EXPECT_THAT(Values(data, "Target"), Each(-1));
  EXPECT_THAT(Values(data, "Correct"), Each(-1));
  EXPECT_THAT(Values(data, "TargetColor"), Each(128));
  EXPECT_EQ(output->GetFieldData()->GetArray("Accuracy"), nullptr);
}

TEST(TokenPairs, LieWhereTheSkewedChartHasThem)
{
  const AttentionOnlyModel model = ReadAttentionOnlyModel(ShippedModel());
  Pairs pairs(model);
  pairs->SetAngles(vtkTokenPairs::SKEWED);
  Torus torus(model);
  torus->SetAngles(vtkTokenPairs::SKEWED);
  torus.Choose({ "Output" });
  torus.SetPoints(pairs.Update());
  const std::vector<double> atPairs = Values(pairs.GetOutput()->GetPointData(), "Output");
  ExpectClose("Output", Values(torus.Update()->GetPointData(), "Output"), atPairs, 2e-5);
}

TEST(TokenPairs, HaveTheirTypes)
{
  Pairs pairs(HandModel{});
  vtkPointData* data = pairs.Update()->GetPointData();
  for (const char* name : { "First", "Second", "Target", "Predicted", "Correct" })
  {
    EXPECT_EQ(data->GetArray(name)->GetDataType(), VTK_INT) << name;
  }
  EXPECT_EQ(data->GetArray("Probability")->GetDataType(), VTK_FLOAT);
  EXPECT_EQ(data->GetArray("Output")->GetDataType(), VTK_FLOAT);
  EXPECT_EQ(data->GetArray("Output")->GetNumberOfComponents(), 3);
  EXPECT_EQ(data->GetArray("TargetColor")->GetDataType(), VTK_UNSIGNED_CHAR);
  EXPECT_EQ(data->GetArray("TargetColor")->GetNumberOfComponents(), 3);
  EXPECT_EQ(data->GetNumberOfArrays(), 8);
}

TEST(TokenPairs, FollowTheHeadWeights)
{
  AttentionOnlyModel model = ReadAttentionOnlyModel(ShippedModel());
  EvaluationOptions options;
  options.headWeights = { 0.5, 0, -1 };
  const ReferenceEvaluator evaluator(model, options);
  Pairs pairs(model);
  pairs.Update();
  for (int h = 0; h < 3; ++h)
  {
    pairs->SetHeadWeight(h, options.headWeights[h]);
  }
  const std::vector<double> output = Values(pairs.Update()->GetPointData(), "Output");
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
