#include "vtkQueryKeyContrast.h"

#include "QueryKeyContrast.h"
#include "Recordings.h"
#include "Tables.h"

#include <vtkDoubleArray.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using testing::SizeIs;

namespace
{

class Contrast : public Observed<vtkQueryKeyContrast>
{
public:
  explicit Contrast(vtkDataObject* recording) { Connect(this->Get(), 0, recording); }
  explicit Contrast(const Recording& recording)
    : Contrast(DataSetOf(recording))
  {
  }

  vtkPolyData* Points() { return Updated<vtkPolyData>(this->Get()); }
  std::vector<double> OfPoints(const char* name)
  {
    return Values(this->Points()->GetPointData(), name);
  }
  double Field(const char* name)
  {
    return this->Points()->GetFieldData()->GetArray(name)->GetComponent(0, 0);
  }
  std::string Error()
  {
    this->Get()->Update();
    const std::vector<std::string> errors = this->TakeErrors();
    EXPECT_THAT(errors, SizeIs(1));
    EXPECT_EQ(OutputOf<vtkPolyData>(this->Get())->GetNumberOfPoints(), 0);
    return errors.empty() ? std::string() : errors[0];
  }
};

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
  Contrast contrast(recording);
  const QueryKeyContrast expected = Expected(recording, recording.tokens.id);
  EXPECT_EQ(contrast.Field("Pairs"), 6);
  EXPECT_EQ(contrast.Field("Other Pairs"), 60);
  vtkTable* table = TableOf(contrast.Get(), 1);
  ASSERT_EQ(table->GetNumberOfRows(), 6 * 5);
  for (std::size_t row = 0; row < 30; ++row)
  {
    const HeadContrast& head = expected.heads[row / 5];
    EXPECT_EQ(Column(table, "Layer")[row], head.place.layer);
    EXPECT_EQ(Column(table, "Head")[row], head.place.head);
    EXPECT_EQ(Column(table, "Index")[row], static_cast<double>(row % 5));
    EXPECT_EQ(Column(table, "Singular Value")[row], head.singularValues[row % 5]);
    EXPECT_EQ(Column(table, "Score Difference")[row], head.scoreDifference);
  }
  double sum = 0;
  for (std::size_t row = 0; row < 5; ++row)
  {
    sum += Column(table, "Share")[row];
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(QueryKeyContrastFilter, HasAPointPerQueryAndKey)
{
  const Recording recording = RepeatedRecording();
  Contrast contrast(recording);
  const QueryKeyContrast expected = Expected(recording, recording.tokens.id);
  vtkPolyData* points = contrast.Points();
  ASSERT_EQ(points->GetNumberOfPoints(), 6 * 24);
  EXPECT_EQ(points->GetNumberOfVerts(), 6 * 24);
  const std::vector<double> kind = contrast.OfPoints("Kind");
  const std::vector<double> token = contrast.OfPoints("Token Index");
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
  vtkSmartPointer<vtkMultiBlockDataSet> data = DataSetOf(recording);
  Contrast contrast(data);
  contrast->SetBy(vtkQueryKeyContrast::PREVIOUS_TOKEN);
  EXPECT_EQ(contrast.Field("Pairs"), 11);
  contrast->SetDistance(2);
  EXPECT_EQ(contrast.Field("Pairs"), 10);
  EXPECT_EQ(Column(TableOf(contrast.Get(), 1), "Singular Value")[0],
    Expected(recording, {}, 2).heads[0].singularValues[0]);
  contrast->SetBy(vtkQueryKeyContrast::COLUMN);
  contrast->SetColumn("Position"); // all different
  EXPECT_THAT(contrast.Error(), HasSubstr("in the set"));
  contrast->SetIncludeSelf(true);
  EXPECT_EQ(contrast.Field("Pairs"), 12);
  contrast->SetIncludeSelf(false);
  contrast->SetColumn("TokenId");
  EXPECT_EQ(contrast.Field("Pairs"), 6);
  contrast->SetColumn("Word");
  EXPECT_THAT(contrast.Error(),
    HasSubstr("Column: expected a column of the recording's tokens (Sequence, Position, TokenId"));
}

TEST(QueryKeyContrastFilter, OfOneHead)
{
  Contrast contrast(RepeatedRecording());
  contrast->SetLayer(2);
  contrast->SetHead(1);
  EXPECT_THAT(contrast.OfPoints("Layer"), Each(Eq(2)));
  EXPECT_THAT(contrast.OfPoints("Head"), Each(Eq(1)));
  EXPECT_EQ(contrast.Points()->GetNumberOfPoints(), 24);
  contrast->SetHead(2);
  EXPECT_THAT(contrast.Error(), HasSubstr("2"));
  contrast->SetHead(0);
  contrast->SetLayer(0);
  EXPECT_THAT(contrast.Error(), HasSubstr("layer 0 is not in the recording"));
  contrast->SetLayer(1);
  contrast->SetSequence(1);
  EXPECT_THAT(contrast.Error(), HasSubstr("Sequence: expected a number from 0 to 0"));
}

TEST(QueryKeyContrastFilter, NeedsTokensOrAColumn)
{
  Contrast contrast(LongRecording(4));
  EXPECT_THAT(contrast.Error(), HasSubstr("expected token ids or texts"));
}

}
