#include "vtkPointedText.h"

#include "DataFields.h"
#include "Pipeline.h"

using namespace atlas::test;
using AttentionAtlas::MakeArray;

namespace
{

using PointedWords = std::vector<std::string>;
using PointedNumbers = std::vector<double>;

/// What is said of a place; empty if nothing is.
std::string Said(vtkSmartPointer<vtkDataObject> data, double x, double y, const char* quantities,
  vtkSmartPointer<vtkDataObject> words = nullptr)
{
  On<vtkPointedText> text(data);
  if (words != nullptr)
  {
    Connect(text.Get(), 1, words);
  }
  text->SetPlace(x, y);
  text->SetQuantities(quantities);
  text->Update();
  auto* said = vtkStringArray::SafeDownCast(
    OutputOf<vtkTable>(text.Get())->GetFieldData()->GetAbstractArray("Text"));
  return said != nullptr ? said->GetValue(0) : "";
}

/// Two rows of three squares, of values 0, 0.1, ... from the lower left.
vtkSmartPointer<vtkImageData> MapOf(double cell)
{
  auto image = vtkSmartPointer<vtkImageData>::New();
  image->SetDimensions(3, 2, 1);
  image->SetSpacing(cell, cell, 1);
  image->SetOrigin((cell - 1) / 2, -cell - (cell - 1) / 2, 0);
  image->GetPointData()->AddArray(
    MakeArray<vtkDoubleArray>("Weights", PointedNumbers{ 0, 0.1, 0.2, 0.3, 0.4, 0.5 }));
  image->GetFieldData()->AddArray(
    MakeArray<vtkStringArray>("Key Token", PointedWords{ "The", " cat", "\n" }));
  image->GetFieldData()->AddArray(
    MakeArray<vtkStringArray>("Query Token", PointedWords{ "a", "b" }));
  return image;
}

}

TEST(PointedText, NamesTheTokensAndTheNumberOfASquare)
{
  EXPECT_EQ(
    Said(MapOf(1), 1.3, -0.8, "Weights\nUnknown"), "Query 1: \"b\"\nKey 1: \" cat\"\nWeights: 0.1");
  EXPECT_EQ(Said(MapOf(1), 2, 0, "Weights"), "Query 0: \"a\"\nKey 2: \"\\n\"\nWeights: 0.5");
}

TEST(PointedText, NamesTheRowOrColumnOfALabel)
{
  EXPECT_EQ(Said(MapOf(1), -3, 0.2, "Weights"), "Query 0: \"a\"");
  EXPECT_EQ(Said(MapOf(1), 0.2, -4, "Weights"), "Key 0: \"The\"");
  EXPECT_EQ(Said(MapOf(1), 2.6, 0, "Weights"), ""); // to the right
  EXPECT_EQ(Said(MapOf(1), 1, 0.6, "Weights"), ""); // above
  EXPECT_EQ(Said(MapOf(1), -3, -4, "Weights"), ""); // in the corner
}

TEST(PointedText, NamesTheRangeOfAPooledCell)
{
  EXPECT_EQ(Said(MapOf(4), 5, -5, "Weights"),
    "Queries 4 to 7, from \"b\"\nKeys 4 to 7, from \" cat\"\nWeights: 0.1");
}

TEST(PointedText, CallsRowsAndColumnsByTheirTitles)
{
  const auto image = MapOf(1);
  AttentionAtlas::AddField(image->GetFieldData(), "Query Title", "Layer");
  AttentionAtlas::AddField(image->GetFieldData(), "Layer", 3);
  AttentionAtlas::AddField(image->GetFieldData(), "Head", 11);
  EXPECT_EQ(
    Said(image, 0, 0, "Weights"), "Layer 3, head 11\nLayer: a\nKey 0: \"The\"\nWeights: 0.3");
  image->GetPointData()->AddArray(
    MakeArray<vtkIntArray>("Query", std::vector<int>{ 8, 8, 8, 7, 7, 7 }));
  EXPECT_EQ(
    Said(image, 0, 0, "Weights"), "Layer 3, head 11\nLayer 7: a\nKey 0: \"The\"\nWeights: 0.3");
}

TEST(PointedText, KnowsThePanelsOfHeads)
{
  const auto image = MapOf(1);
  vtkPointData* points = image->GetPointData();
  points->AddArray(MakeArray<vtkIntArray>("Layer", std::vector<int>{ 2, -1, 2, 2, -1, 2 }));
  points->AddArray(MakeArray<vtkIntArray>("Head", std::vector<int>{ 0, -1, 1, 0, -1, 1 }));
  points->AddArray(MakeArray<vtkIntArray>("Query", std::vector<int>{ 8, -1, 8, 7, -1, 7 }));
  points->AddArray(MakeArray<vtkIntArray>("Key", std::vector<int>{ 5, -1, 5, 5, -1, 5 }));
  EXPECT_EQ(
    Said(image, 2, -1, "Weights"), "Layer 2, head 1\nQuery 8: \"b\"\nKey 5: \"\\n\"\nWeights: 0.2");
  EXPECT_EQ(Said(image, 1, 0, "Weights"), "");              // between them
  EXPECT_EQ(Said(image, 2, -5, "Weights"), "Key: \"\\n\""); // a column has several positions
}

TEST(PointedText, FindsTheWordsOfLinesAndBars)
{
  vtkNew<vtkPolyData> words;
  words->GetPointData()->AddArray(
    MakeArray<vtkIntArray>("Token Index", std::vector<int>{ 20, 21, 22 }));
  words->GetPointData()->AddArray(MakeArray<vtkIntArray>("Position", std::vector<int>{ 0, 1, 2 }));
  words->GetPointData()->AddArray(
    MakeArray<vtkStringArray>("Token", PointedWords{ "The", " cat", "." }));
  vtkNew<vtkPolyData> line;
  vtkNew<vtkPoints> points;
  points->InsertNextPoint(0, 0, 0);
  points->InsertNextPoint(1, 0, 0);
  line->SetPoints(points);
  vtkNew<vtkCellArray> cells;
  cells->InsertNextCell({ 0, 1 });
  line->SetLines(cells);
  vtkCellData* data = line->GetCellData();
  data->AddArray(MakeArray<vtkIntArray>("Query", std::vector<int>{ 22 }));
  data->AddArray(MakeArray<vtkIntArray>("Key", std::vector<int>{ 21 }));
  data->AddArray(MakeArray<vtkDoubleArray>("Weight", PointedNumbers{ 0.123456 }));
  EXPECT_EQ(
    Said(line.Get(), 0, 0, "", words.Get()), "Query 2: \".\"\nKey 1: \" cat\"\nWeight: 0.1235");
  EXPECT_EQ(Said(line.Get(), 0, 0, "Other"), "Query 22\nKey 21");
  vtkNew<vtkPolyData> bar;
  bar->CopyStructure(line);
  bar->GetCellData()->AddArray(MakeArray<vtkIntArray>("Token Index", std::vector<int>{ 21 }));
  EXPECT_EQ(Said(bar.Get(), 0, 0, "", words.Get()), "Token 1: \" cat\"");
  EXPECT_EQ(Said(vtkSmartPointer<vtkPolyData>::New(), 0, 0, ""), "");
}
