#include "vtkSummableColors.h"

#include "Matchers.h"
#include "Torus.h"

using namespace atlas::test;

namespace
{

class Colors : public On<vtkSummableColors>
{
public:
  Colors(vtkDataSet* input, std::initializer_list<const char*> vectors)
    : On(input)
  {
    for (const char* name : vectors)
    {
      this->Get()->AddVectors(name);
    }
  }
};

vtkSmartPointer<vtkPolyData> TwoPoints()
{
  auto data = PointsAt({ 0, 1 }, { 0, 0 });
  AddArray<vtkFloatArray, float>(data->GetPointData(), "A", { 1, 0, -1, 2, 0, 0 }, 3);
  AddArray<vtkFloatArray, float>(data->GetPointData(), "B", { 0.5, 4, 0, 0, 0, 0 }, 3);
  return data;
}

TEST(SummableColorsFilter, HasOneScaleForAllArrays)
{
  Colors colors(TwoPoints(), { "A", "B" });
  vtkDataSet* output = colors.Output();
  EXPECT_THAT(Values(output->GetPointData(), "A Color"), ElementsAre(64, 0, 0, 128, 0, 0));
  EXPECT_THAT(Values(output->GetPointData(), "B Color"), ElementsAre(32, 255, 0, 0, 0, 0));
  EXPECT_THAT(Values(output->GetFieldData(), "Color Gain"), ElementsAre(0.25));
  EXPECT_THAT(Values(output->GetFieldData(), "Color Offset"), ElementsAre(0));
  EXPECT_EQ(output->GetPointData()->GetArray("A Color")->GetDataType(), VTK_UNSIGNED_CHAR);
  EXPECT_THAT(Values(output->GetPointData(), "A"), ElementsAre(1, 0, -1, 2, 0, 0));
  EXPECT_THAT(Texts(output->GetFieldData(), "A Color Legend"),
    ElementsAre("A: a channel per component\n255 255 255 all 4\n255 0 0 first 4\n"
                "0 255 0 second 4\n0 0 255 third 4\n0 0 0 all 0 or less"));

  colors->SetScale(vtkSummableColors::SHARED_RANGE); // -1 to 4
  output = colors.Output();
  EXPECT_THAT(Values(output->GetPointData(), "A Color"), ElementsAre(102, 51, 0, 153, 51, 51));
  EXPECT_THAT(Texts(output->GetFieldData(), "B Color Legend"),
    ElementsAre("B: a channel per component\n255 255 255 all 4\n255 0 0 first 4\n"
                "0 255 0 second 4\n0 0 255 third 4\n51 51 51 all 0\n0 0 0 all -1"));
}

TEST(SummableColorsFilter, TakesAllVectorsWhereNoneAreNamed)
{
  Colors colors(TwoPoints(), {});
  EXPECT_THAT(Names(colors.Output()->GetPointData()), ElementsAre("A", "A Color", "B", "B Color"));
}

TEST(SummableColorsFilter, TakesAGain)
{
  Colors colors(TwoPoints(), { "A" });
  colors->SetGain(0.1);
  EXPECT_THAT(colors.Points("A Color"), ElementsAre(26, 0, 0, 51, 0, 0));
  EXPECT_THAT(colors.Field("Color Gain"), ElementsAre(0.1));
}

TEST(SummableColorsFilter, PartsOfAMixAddUp)
{
  Torus torus(TrainedModel());
  torus->SetResolution(64, 64);
  torus.Choose({ "Word Mix 0", "Position Mix 0", "Mix 0" });
  Colors colors(torus.Update(), { "Word Mix 0", "Position Mix 0", "Mix 0" });
  vtkPointData* data = colors.Output()->GetPointData();
  const std::vector<double> words = Values(data, "Word Mix 0");
  const std::vector<double> positions = Values(data, "Position Mix 0");
  const std::vector<double> wordColors = Values(data, "Word Mix 0 Color");
  const std::vector<double> positionColors = Values(data, "Position Mix 0 Color");
  const std::vector<double> mixColors = Values(data, "Mix 0 Color");
  int unclipped = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
  {
    if (words[i] >= 0 && positions[i] >= 0)
    {
      ++unclipped;
      EXPECT_LE(std::abs(wordColors[i] + positionColors[i] - mixColors[i]), 1);
    }
  }
  EXPECT_GT(unclipped, 1000);
}

TEST(SummableColorsFilter, PassesColorsOver)
{
  Torus torus(HandModel{});
  torus->SetResolution(4, 4);
  torus.Choose({ "ClassColor", "Output" });
  Colors colors(torus.Update(), { "ClassColor", "Output", "Output" });
  EXPECT_THAT(
    Names(colors.Output()->GetPointData()), ElementsAre("ClassColor", "Output", "Output Color"));
}

TEST(SummableColorsFilter, CanBeCancelled)
{
  Colors colors(TwoPoints(), { "A", "B" });
  colors->SetAbortExecute(1);
  EXPECT_EQ(colors.Output()->GetNumberOfPoints(), 0);
  EXPECT_EQ(colors.Output()->GetNumberOfPoints(), 2);
}

/// TestHostileInput.py has what else may be wrong.
TEST(SummableColorsFilter, TakesAFiniteGainAlone)
{
  for (const double gain : { -1., std::nan(""), std::numeric_limits<double>::infinity() })
  {
    Colors colors(TwoPoints(), { "A" });
    colors->SetGain(gain);
    EXPECT_THAT(colors.Error(), HasSubstr("Gain: expected a positive number"));
  }
}

}
