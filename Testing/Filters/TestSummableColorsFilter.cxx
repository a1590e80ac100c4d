#include "vtkSummableColors.h"

#include "Core/HandModel.h"
#include "Torus.h"

#include <vtkFloatArray.h>
#include <vtkNew.h>

#include <array>
#include <cstdlib>
#include <limits>

#include <gmock/gmock.h>

using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class Colors : public Observed<vtkSummableColors>
{
public:
  Colors(vtkDataSet* input, std::initializer_list<const char*> vectors)
  {
    Connect(this->Get(), 0, input);
    for (const char* name : vectors)
    {
      this->Get()->AddVectors(name);
    }
  }

  vtkDataSet* Update() { return Updated<vtkDataSet>(this->Get()); }
};

void AddVectors(
  vtkDataSet* data, const char* name, std::initializer_list<std::array<double, 3>> vectors)
{
  vtkNew<vtkFloatArray> array;
  array->SetName(name);
  array->SetNumberOfComponents(3);
  for (const auto& vector : vectors)
  {
    array->InsertNextTuple(vector.data());
  }
  data->GetPointData()->AddArray(array);
}

vtkSmartPointer<vtkPolyData> TwoPoints()
{
  auto data = PointsAt({ 0, 1 }, { 0, 0 });
  AddVectors(data, "A", { { 1, 0, -1 }, { 2, 0, 0 } });
  AddVectors(data, "B", { { 0.5, 4, 0 }, { 0, 0, 0 } });
  return data;
}

TEST(SummableColorsFilter, HasOneScaleForAllArrays)
{
  Colors colors(TwoPoints(), { "A", "B" });
  vtkDataSet* output = colors.Update();
  EXPECT_THAT(Values(output->GetPointData(), "A Color"), ElementsAre(64, 0, 0, 128, 0, 0));
  EXPECT_THAT(Values(output->GetPointData(), "B Color"), ElementsAre(32, 255, 0, 0, 0, 0));
  EXPECT_THAT(Values(output->GetFieldData(), "Color Gain"), ElementsAre(0.25));
  EXPECT_THAT(Values(output->GetFieldData(), "Color Offset"), ElementsAre(0));
  EXPECT_EQ(output->GetPointData()->GetArray("A Color")->GetDataType(), VTK_UNSIGNED_CHAR);
  EXPECT_THAT(Values(output->GetPointData(), "A"), ElementsAre(1, 0, -1, 2, 0, 0));

  colors->SetScale(vtkSummableColors::SHARED_RANGE); // -1 to 4
  output = colors.Update();
  EXPECT_THAT(Values(output->GetPointData(), "A Color"), ElementsAre(102, 51, 0, 153, 51, 51));
}

TEST(SummableColorsFilter, TakesAllVectorsWhereNoneAreNamed)
{
  Colors colors(TwoPoints(), {});
  EXPECT_THAT(Names(colors.Update()->GetPointData()), ElementsAre("A", "A Color", "B", "B Color"));
}

TEST(SummableColorsFilter, TakesAGain)
{
  Colors colors(TwoPoints(), { "A" });
  colors->SetGain(0.1);
  EXPECT_THAT(Values(colors.Update()->GetPointData(), "A Color"), ElementsAre(26, 0, 0, 51, 0, 0));
  EXPECT_THAT(Values(colors.Update()->GetFieldData(), "Color Gain"), ElementsAre(0.1));
}

TEST(SummableColorsFilter, PartsOfAMixAddUp)
{
  Torus torus(atlas::ReadAttentionOnlyModel(ShippedModel()));
  torus->SetResolution(64, 64);
  torus.Choose({ "Word Mix 0", "Position Mix 0", "Mix 0" });
  Colors colors(torus.Update(), { "Word Mix 0", "Position Mix 0", "Mix 0" });
  vtkPointData* data = colors.Update()->GetPointData();
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
    Names(colors.Update()->GetPointData()), ElementsAre("ClassColor", "Output", "Output Color"));
}

TEST(SummableColorsFilter, CanBeCancelled)
{
  Colors colors(TwoPoints(), { "A", "B" });
  colors->SetAbortExecute(1);
  EXPECT_EQ(colors.Update()->GetNumberOfPoints(), 0);
  EXPECT_EQ(colors.Update()->GetNumberOfPoints(), 2);
}

TEST(SummableColorsFilter, SaysWhatIsWrong)
{
  Colors absent(TwoPoints(), { "A", "C" });
  EXPECT_EQ(absent.Update()->GetNumberOfPoints(), 0);
  EXPECT_THAT(absent.TakeErrors(), ElementsAre(HasSubstr("found none named 'C'")));

  Torus torus(HandModel{});
  torus->SetResolution(4, 4);
  Colors scalars(torus.Update(), { "Class" });
  scalars.Update();
  EXPECT_THAT(
    scalars.TakeErrors(), ElementsAre(HasSubstr("expected 3 components, found 1 in 'Class'")));

  for (const double gain : { -1., std::nan(""), std::numeric_limits<double>::infinity() })
  {
    Colors colors(TwoPoints(), { "A" });
    colors->SetGain(gain);
    colors.Update();
    EXPECT_THAT(colors.TakeErrors(), ElementsAre(HasSubstr("Gain: expected a positive number")));
  }
}

}
