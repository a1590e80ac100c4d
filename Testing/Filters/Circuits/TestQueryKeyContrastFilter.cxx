#include "vtkQueryKeyContrast.h"

#include "Circuits/QueryKeyContrast.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Contrast = On<vtkQueryKeyContrast>;

/// Layers 1, 2 and 3 with two heads of 5 dimensions, on a block of 6 tokens, twice.
Recording RepeatedRecording()
{
  Recording recording = LongRecording(12);
  for (std::int64_t i = 0; i < 12; ++i)
  {
    recording.tokens.id.push_back(100 + i % 6);
  }
  return recording;
}

QueryKeyContrast Expected(
  const Recording& recording, const std::vector<std::int64_t>& group, std::int64_t distance = 1)
{
  QueryKeyContrastOptions options;
  options.group = group;
  options.distance = distance;
  return FindQueryKeyContrast(recording, options); // tested by brute force
}

/// 6 pairs of a token and the same one before, of 66.
TEST(QueryKeyContrastFilter, ContrastsEqualTokens)
{
  const Recording recording = RepeatedRecording();
  Contrast contrast(DataSetOf(recording));
  const QueryKeyContrast expected = Expected(recording, recording.tokens.id);
  EXPECT_EQ(contrast.Field("Pairs")[0], 6);
  EXPECT_EQ(contrast.Field("Other Pairs")[0], 60);
  ASSERT_EQ(contrast.Table(1)->GetNumberOfRows(), 6 * 5);
  for (std::size_t row = 0; row < 30; ++row)
  {
    const HeadContrast& head = expected.heads[row / 5];
    EXPECT_EQ(contrast.Column("Layer", 1)[row], head.place.layer);
    EXPECT_EQ(contrast.Column("Head", 1)[row], head.place.head);
    EXPECT_EQ(contrast.Column("Index", 1)[row], static_cast<double>(row % 5));
    EXPECT_EQ(contrast.Column("Singular Value", 1)[row], head.singularValues[row % 5]);
    EXPECT_EQ(contrast.Column("Score Difference", 1)[row], head.scoreDifference);
  }
  double sum = 0;
  for (std::size_t row = 0; row < 5; ++row)
  {
    sum += contrast.Column("Share", 1)[row];
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(QueryKeyContrastFilter, HasAPointPerQueryAndKey)
{
  const Recording recording = RepeatedRecording();
  Contrast contrast(DataSetOf(recording));
  const QueryKeyContrast expected = Expected(recording, recording.tokens.id);
  vtkPolyData* points = contrast.Geometry();
  ASSERT_EQ(points->GetNumberOfPoints(), 6 * 24);
  EXPECT_EQ(points->GetNumberOfVerts(), 6 * 24);
  const std::vector<double> kind = contrast.Points("Kind");
  const std::vector<double> token = contrast.Points("Token Index");
  vtkDataArray* projection = points->GetPointData()->GetArray("Projection");
  for (vtkIdType i = 0; i < points->GetNumberOfPoints(); ++i)
  {
    const HeadContrast& head = expected.heads[i / 24];
    const bool isKey = i % 24 >= 12;
    EXPECT_EQ(kind[i], isKey ? 1 : 0);
    EXPECT_EQ(token[i], i % 12);
    const RecordedHead& recorded = FindHead(recording, head.place.layer, head.place.head);
    const float* vector = (isKey ? recorded.key : recorded.query).Row(i % 12);
    for (int r = 0; r < 3; ++r)
    {
      double value = 0;
      for (int m = 0; m < 5; ++m)
      {
        value += vector[m] * (isKey ? head.keyDirections : head.queryDirections)(m, r);
      }
      EXPECT_NEAR(projection->GetComponent(i, r), value, 1e-6);
    }
  }
  // Products of coordinates are those of projections but for the scale of the head, and 0 is in the
  // center of its cube. Layer 2 is the second row.
  const double scale = (points->GetPoint(0)[0] - 0.5) * (points->GetPoint(12)[0] - 0.5) /
                       (projection->GetComponent(0, 0) * projection->GetComponent(12, 0));
  const double expectedProduct =
    scale * projection->GetComponent(3, 1) * projection->GetComponent(15, 1);
  const double row = points->GetPoint(3)[1];
  EXPECT_NEAR((row + 1.2 - 0.5) * (points->GetPoint(15)[1] + 1.2 - 0.5), expectedProduct, 1e-5);
}

TEST(QueryKeyContrastFilter, ContrastsDistancesAndColumns)
{
  const Recording recording = RepeatedRecording();
  Contrast contrast(DataSetOf(recording));
  contrast->SetBy(vtkQueryKeyContrast::PREVIOUS_TOKEN);
  EXPECT_EQ(contrast.Field("Pairs")[0], 11);
  contrast->SetDistance(2);
  EXPECT_EQ(contrast.Field("Pairs")[0], 10);
  EXPECT_EQ(
    contrast.Column("Singular Value", 1)[0], Expected(recording, {}, 2).heads[0].singularValues[0]);
  contrast->SetBy(vtkQueryKeyContrast::COLUMN);
  contrast->SetColumn("Position"); // all different
  EXPECT_THAT(contrast.Error(), HasSubstr("in the set"));
  contrast->SetIncludeSelf(true);
  EXPECT_EQ(contrast.Field("Pairs")[0], 12);
  contrast->SetIncludeSelf(false);
  contrast->SetColumn("TokenId");
  EXPECT_EQ(contrast.Field("Pairs")[0], 6);
  contrast->SetColumn("Word");
  EXPECT_THAT(contrast.Error(),
    HasSubstr("Column: expected a column of the recording's tokens (Sequence, Position, TokenId"));
}

TEST(QueryKeyContrastFilter, OfOneHead)
{
  Contrast contrast(DataSetOf(RepeatedRecording()));
  contrast->SetLayer(2);
  contrast->SetHead(1);
  EXPECT_THAT(contrast.Points("Layer"), Each(Eq(2)));
  EXPECT_THAT(contrast.Points("Head"), Each(Eq(1)));
  EXPECT_EQ(contrast.Geometry()->GetNumberOfPoints(), 24);
}

TEST(QueryKeyContrastFilter, NeedsTokensOrAColumn)
{
  Contrast contrast(DataSetOf(LongRecording(4)));
  EXPECT_THAT(contrast.Error(), HasSubstr("expected token ids or texts"));
}

}
