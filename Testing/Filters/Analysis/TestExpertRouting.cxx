#include "vtkExpertRouting.h"

#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

SharedMatrix Matrix(const std::vector<float>& values)
{
  SharedMatrix matrix = SharedMatrix::Zero(5, 2);
  std::copy(values.begin(), values.end(), matrix.values.get());
  return matrix;
}

/// Layer 0 chooses two of three experts for each token, layer 2 the first two of four.
Recording Routed()
{
  Recording recording = SmallRecording();
  recording.layers[0].routing = { 3, Matrix({ 2, 0, 1, 2, 2, 1, 0, 1, 2, 0 }),
    Matrix({ 0.75F, 0.25F, 0.5F, 0.5F, 1, 0, 0.625F, 0.375F, 0.75F, 0.25F }) };
  recording.layers[1].routing = { 4, Matrix({ 0, 1, 0, 1, 0, 1, 0, 1, 0, 1 }),
    Matrix({ 0.75F, 0.25F, 0.75F, 0.25F, 0.75F, 0.25F, 0.75F, 0.25F, 0.75F, 0.25F }) };
  return recording;
}

class Routing : public On<vtkExpertRouting>
{
public:
  explicit Routing(const Recording& recording)
    : On(DataSetOf(recording))
  {
  }

  /// The image, with a size that was announced.
  vtkImageData* Image(int width, int height)
  {
    vtkImageData* image = this->On::Image();
    EXPECT_THAT(SizeOf(image), ElementsAre(width, height));
    return image;
  }
};

TEST(ExpertRouting, ShowsTheExpertOfEachTokenAndLayer)
{
  Routing routing(Routed());
  vtkImageData* image = routing.Image(3, 2);
  vtkPointData* data = image->GetPointData(); // from the bottom: layer 0
  EXPECT_THAT(Values(data, "Layer"), ElementsAre(0, 0, 0, 2, 2, 2));
  EXPECT_THAT(Values(data, "Position"), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Values(data, "Expert"), ElementsAre(2, 1, 2, 0, 0, 0));
  EXPECT_THAT(Values(data, "Expert Weight"), ElementsAre(0.75, 0.5, 1, 0.75, 0.75, 0.75));
  EXPECT_STREQ(data->GetScalars()->GetName(), "Expert Weight");
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("2", "0"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("a", " b", " c"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Layer"));

  vtkPolyData* labels = routing.Geometry(3);
  EXPECT_THAT(Texts(labels->GetPointData(), "Token"),
    ElementsAre("0", "0", "0", "2", "1", "2")); // from the top
  for (vtkIdType i = 0; i < labels->GetNumberOfPoints(); ++i)
  {
    double at[3];
    labels->GetPoint(i, at);
    at[0] += 0.4;
    at[2] = 0;
    const vtkIdType point = image->FindPoint(at);
    EXPECT_EQ(Texts(labels->GetPointData(), "Token")[i],
      std::to_string(static_cast<int>(Values(data, "Expert")[point])));
  }

  routing->SetSequence(1);
  image = routing.Image(2, 2);
  EXPECT_THAT(Values(image->GetPointData(), "Expert"), ElementsAre(0, 2, 0, 0));
  EXPECT_THAT(Values(image->GetPointData(), "Token Index"), ElementsAre(3, 4, 3, 4));
}

TEST(ExpertRouting, ShowsTheWeightsOfTheExpertsOfALayer)
{
  Routing routing(Routed());
  routing->SetShow(vtkExpertRouting::EXPERTS);
  vtkImageData* image = routing.Image(3, 3);
  // From the bottom: expert 2.
  EXPECT_THAT(Values(image->GetPointData(), "Expert"), ElementsAre(2, 2, 2, 1, 1, 1, 0, 0, 0));
  EXPECT_THAT(Values(image->GetPointData(), "Expert Weight"),
    ElementsAre(0.75, 0.5, 1, 0, 0.5, 0, 0.25, 0, 0));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("0", "1", "2"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Expert"));
  EXPECT_EQ(routing.Geometry(3)->GetNumberOfPoints(), 0);
  routing->SetLayer(2);
  image = routing.Image(3, 4);
  EXPECT_THAT(Values(image->GetPointData(), "Layer"), Each(2));
}

TEST(ExpertRouting, ShowsTheLoadOfAllExperts)
{
  Routing routing(Routed());
  routing->SetShow(vtkExpertRouting::LOAD);
  vtkImageData* image = routing.Image(4, 2);
  vtkPointData* data = image->GetPointData();
  EXPECT_THAT(Values(data, "Expert"), ElementsAre(0, 1, 2, -1, 0, 1, 2, 3));
  EXPECT_THAT(Values(data, "Count"), ElementsAre(3, 3, 4, 0, 5, 5, 0, 0));
  EXPECT_THAT(Values(data, "Mean Weight"),
    ElementsAre(0.375, static_cast<double>(0.875F / 3), 0.75, 0, 0.75, 0.25, 0, 0));
  EXPECT_STREQ(data->GetScalars()->GetName(), "Share");
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Title"), ElementsAre("Expert"));

  vtkTable* table = routing.Table(1);
  EXPECT_THAT(ColumnNames(table), ElementsAre("Layer", "Expert", "Count", "Share", "Mean Weight"));
  EXPECT_THAT(routing.Column("Layer", 1), ElementsAre(0, 0, 0, 2, 2, 2, 2));
  EXPECT_THAT(routing.Column("Share", 1), ElementsAre(0.6, 0.6, 0.8, 1, 1, 0, 0));
}

/// Of a router with a bias, apart from the score.
TEST(ExpertRouting, ShowsTheScoreAndTheBias)
{
  Recording recording = Routed();
  RecordedRouting& first = recording.layers[0].routing;
  first.scores = Matrix({ 0.75F, 0.5F, 0.5F, 0.25F, 1, 0, 0.5F, 0.25F, 0.25F, 0.125F });
  first.bias = SharedMatrix::Zero(1, 3);
  first.bias.Row(0)[2] = 0.5F;
  Routing routing(recording);
  vtkPointData* data = routing.Image(3, 2)->GetPointData();
  EXPECT_THAT(Values(data, "Expert Score"), ElementsAre(0.75, 0.5, 1, 0, 0, 0));
  EXPECT_THAT(Values(data, "Expert Bias"), ElementsAre(0.5, 0, 0.5, 0, 0, 0));
  EXPECT_THAT(ColumnNames(routing.Table(1)),
    ElementsAre("Layer", "Expert", "Count", "Share", "Mean Weight", "Mean Score", "Expert Bias"));
  EXPECT_THAT(routing.Column("Expert Bias", 1), ElementsAre(0, 0, 0.5, 0, 0, 0, 0));
  EXPECT_THAT(routing.Column("Mean Score", 1)[0], (0.5 + 0.5 + 0.125) / 3);
  EXPECT_THAT(ColumnNames(routing.Table(2)),
    ElementsAre("Layer", "Expert", "Rank", "Token", "Count", "Share", "Mean Weight", "Mean Score"));
  routing->SetShow(vtkExpertRouting::EXPERTS);
  data = routing.Image(3, 3)->GetPointData(); // from the bottom: expert 2
  EXPECT_THAT(Values(data, "Expert Score"), ElementsAre(0.75, 0.25, 1, 0, 0.5, 0, 0.5, 0, 0));
  EXPECT_THAT(Values(data, "Expert Bias"), ElementsAre(0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0));
  routing->SetShow(vtkExpertRouting::LOAD);
  data = routing.Image(4, 2)->GetPointData();
  EXPECT_THAT(Values(data, "Expert Bias"), ElementsAre(0, 0, 0.5, 0, 0, 0, 0, 0));
}

TEST(ExpertRouting, ListsTheTokensOfExperts)
{
  Routing routing(Routed());
  routing->SetTop(1);
  vtkTable* table = routing.Table(2);
  EXPECT_THAT(ColumnNames(table),
    ElementsAre("Layer", "Expert", "Rank", "Token", "Count", "Share", "Mean Weight"));
  // All tokens differ, so the largest weight counts: those of layer 2 are equal.
  EXPECT_THAT(Texts(table->GetRowData(), "Token"), ElementsAre("d", " b", " c", "a", "a"));
  EXPECT_THAT(routing.Column("Expert", 2), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(routing.Column("Mean Weight", 2), ElementsAre(0.625, 0.5, 1, 0.75, 0.25));
  EXPECT_THAT(routing.Column("Share", 2), Each(1));
  routing->SetTop(10);
  EXPECT_EQ(routing.Table(2)->GetNumberOfRows(), 20);
}

}
