#include "vtkHeadComposition.h"

#include "Core/OracleFile.h"
#include "Matchers.h"
#include "Tables.h"

#include <cstdio>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double Tolerance = 1e-5;

using Composition = OnModel<vtkHeadComposition>;

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
  vtkPolyData* graph = composition.Geometry();
  ASSERT_EQ(graph->GetNumberOfPoints(), 8);
  ASSERT_EQ(graph->GetNumberOfLines(), 5);
  EXPECT_EQ(graph->GetNumberOfCells(), 5);
  EXPECT_EQ(graph->GetPoint(6)[0], 2); // head 2 of layer 1
  EXPECT_EQ(graph->GetPoint(6)[1], 1);
  EXPECT_THAT(Values(graph->GetPointData(), "Layer"), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  std::vector<double> scores = Expected("k");
  std::sort(scores.begin(), scores.end());
  ExpectClose("Score", composition.Cells("Score"), { scores.end() - 5, scores.end() }, Tolerance);
  EXPECT_EQ(composition.Cells("Layer"), composition.Cells("To Layer"));
  EXPECT_EQ(composition.Cells("Head"), composition.Cells("To Head"));
  EXPECT_FLOAT_EQ(static_cast<float>(composition.Cells("Opacity").front()), 0.15F);
  EXPECT_EQ(composition.Cells("Opacity").back(), 1);
  vtkNew<vtkIdList> ends;
  graph->GetLines()->GetCellAtId(4, ends);
  EXPECT_EQ(ends->GetId(0), composition.Cells("From Head").back());
  EXPECT_EQ(ends->GetId(1), 4 + composition.Cells("To Head").back());
  EXPECT_EQ(graph->GetFieldData()->GetArray("Lines Left Out")->GetComponent(0, 0), 11);
  vtkPolyData* heads = composition.Geometry(2);
  EXPECT_EQ(heads->GetNumberOfVerts(), 8);
  EXPECT_EQ(Texts(heads->GetPointData(), "Token").at(6), "1.2");
  // Labels are below layer 0 and above the last layer.
  EXPECT_THAT(Values(heads->GetPointData(), "Side"), ElementsAre(4, 4, 4, 4, 5, 5, 5, 5));
}

TEST(HeadCompositionFilter, HasALegendOfTheWidestAndTheThinnestLine)
{
  Composition composition("gpt2");
  composition->SetTop(5);
  vtkPolyData* graph = composition.Geometry();
  const std::vector<double> corrected = composition.Cells("Corrected");
  const auto line = [&](const std::string& color, const std::string& width, vtkIdType cell)
  {
    const auto number = [&](const char* name)
    {
      return std::to_string(
        static_cast<int>(graph->GetCellData()->GetArray(name)->GetComponent(cell, 0)));
    };
    std::array<char, 32> score = {};
    std::snprintf(score.data(), score.size(), "%.3f", corrected[static_cast<std::size_t>(cell)]);
    return color + " " + width + ": " + score.data() + ", head " + number("From Layer") + "." +
           number("From Head") + " to head " + number("To Layer") + "." + number("To Head");
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
  for (const double score : composition.Cells("Corrected"))
  {
    EXPECT_GE(score, 0);
  }
  composition->SetCorrected(false);
  EXPECT_THAT(composition.Cells("Score"), SizeIs(16));
  composition->SetThreshold(1);
  EXPECT_EQ(composition.Geometry()->GetNumberOfLines(), 0);
  EXPECT_EQ(composition.Geometry()->GetNumberOfPoints(), 8);
}

}
