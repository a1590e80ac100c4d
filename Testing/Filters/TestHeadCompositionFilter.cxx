#include "vtkHeadComposition.h"

#include "Core/OracleFile.h"
#include "Tables.h"

#include <vtkCellData.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::SizeIs;

namespace
{

constexpr double Tolerance = 1e-5;

class Composition : public Observed<vtkHeadComposition>
{
public:
  explicit Composition(const std::string& model)
    : Model(model)
  {
    this->Get()->SetInputConnection(this->Model.Port());
  }

  vtkPolyData* Output(int port = 0) { return Updated<vtkPolyData>(this->Get(), port); }
  std::vector<double> OfLines(const char* name)
  {
    return Values(this->Output()->GetCellData(), name);
  }

private:
  OracleModel Model;
};

/// composition.KIND between the heads of the two layers, [4, 4].
std::vector<double> Expected(const std::string& kind)
{
  const OracleFile file("analysis/gpt2.spectra.safetensors");
  const std::vector<double> all = file.Values("composition." + kind);
  std::vector<double> between;
  for (std::size_t head = 0; head < 4; ++head)
  {
    const auto row = all.begin() + static_cast<long>(8 * head + 4);
    between.insert(between.end(), row, row + 4);
  }
  return between;
}

TEST(HeadCompositionFilter, HasARowPerPair)
{
  Composition composition("gpt2");
  const double baseline = 1 / std::sqrt(32.);
  for (const auto& [kind, name] : { std::pair(vtkHeadComposition::Q, "q"),
         { vtkHeadComposition::K, "k" }, { vtkHeadComposition::V, "v" } })
  {
    composition->SetKind(kind);
    vtkTable* table = TableOf(composition.Get(), 1);
    EXPECT_THAT(ColumnNames(table),
      ElementsAre("From Layer", "From Head", "To Layer", "To Head", "Score", "Corrected"));
    EXPECT_THAT(Column(table, "From Layer"), Each(Eq(0)));
    EXPECT_THAT(Column(table, "To Layer"), Each(Eq(1)));
    std::vector<double> score = Column(table, "Score");
    ExpectClose(name, score, Expected(name), Tolerance);
    std::for_each(score.begin(), score.end(), [=](double& value) { value -= baseline; });
    ExpectClose("Corrected", Column(table, "Corrected"), score, 1e-12);
  }
}

TEST(HeadCompositionFilter, IsAGraphOfHeads)
{
  Composition composition("gpt2");
  composition->SetThreshold(-1);
  composition->SetTop(5);
  vtkPolyData* graph = composition.Output();
  ASSERT_EQ(graph->GetNumberOfPoints(), 8);
  ASSERT_EQ(graph->GetNumberOfLines(), 5);
  EXPECT_EQ(graph->GetNumberOfCells(), 5);
  EXPECT_EQ(graph->GetPoint(6)[0], 2); // head 2 of layer 1
  EXPECT_EQ(graph->GetPoint(6)[1], 1);
  EXPECT_THAT(Values(graph->GetPointData(), "Layer"), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  std::vector<double> scores = Expected("k");
  std::sort(scores.begin(), scores.end());
  ExpectClose("Score", composition.OfLines("Score"), { scores.end() - 5, scores.end() }, Tolerance);
  EXPECT_EQ(composition.OfLines("Layer"), composition.OfLines("To Layer"));
  EXPECT_EQ(composition.OfLines("Head"), composition.OfLines("To Head"));
  EXPECT_FLOAT_EQ(static_cast<float>(composition.OfLines("Opacity").front()), 0.15F);
  EXPECT_EQ(composition.OfLines("Opacity").back(), 1);
  vtkNew<vtkIdList> ends;
  graph->GetLines()->GetCellAtId(4, ends);
  EXPECT_EQ(ends->GetId(0), composition.OfLines("From Head").back());
  EXPECT_EQ(ends->GetId(1), 4 + composition.OfLines("To Head").back());
  EXPECT_EQ(graph->GetFieldData()->GetArray("Lines Left Out")->GetComponent(0, 0), 11);
  vtkPolyData* heads = composition.Output(2);
  EXPECT_EQ(heads->GetNumberOfVerts(), 8);
  EXPECT_EQ(Texts(heads->GetPointData(), "Token").at(6), "1.2");
  // Labels are below layer 0 and above the last layer.
  EXPECT_THAT(Values(heads->GetPointData(), "Side"), ElementsAre(4, 4, 4, 4, 5, 5, 5, 5));
}

TEST(HeadCompositionFilter, HasALegendOfTheWidestAndTheThinnestLine)
{
  Composition composition("gpt2");
  composition->SetTop(5);
  vtkPolyData* graph = composition.Output();
  const std::vector<double> corrected = composition.OfLines("Corrected");
  const auto line = [&](const std::string& color, const std::string& width, vtkIdType cell)
  {
    const auto number = [&](const char* name)
    {
      return std::to_string(
        static_cast<int>(graph->GetCellData()->GetArray(name)->GetComponent(cell, 0)));
    };
    std::array<char, 32> score = {};
    std::snprintf(score.data(), score.size(), "%.3f", corrected[static_cast<std::size_t>(cell)]);
    return color + " " + width + ": " + score.data() + " (" + number("From Layer") + "." +
           number("From Head") + " to " + number("To Layer") + "." + number("To Head") + ")";
  };
  // The second color of classes, and that of an opacity of 0.15 on white: 255 - 0.15 (255 - c).
  EXPECT_THAT(Texts(graph->GetFieldData(), "CompositionColor Legend"),
    ElementsAre("K-composition above chance\n" + line("213 94 0", "wide", 4) + "\n" +
                line("249 231 217", "thin", 0)));
}

TEST(HeadCompositionFilter, ShowsLinesFromAThresholdOn)
{
  Composition composition("gpt2");
  composition->SetTop(0);
  composition->SetThreshold(0);
  for (const double score : composition.OfLines("Corrected"))
  {
    EXPECT_GE(score, 0);
  }
  composition->SetCorrected(false);
  EXPECT_THAT(composition.OfLines("Score"), SizeIs(16));
  composition->SetThreshold(std::nan(""));
  composition->Update();
  EXPECT_THAT(composition.TakeErrors(), ElementsAre(HasSubstr("Threshold: expected a number")));
  composition->SetThreshold(1);
  EXPECT_EQ(composition.Output()->GetNumberOfLines(), 0);
  EXPECT_EQ(composition.Output()->GetNumberOfPoints(), 8);
}

}
