#include "vtkBindTokens.h"

#include "SpatialRecording.h"
#include "TimedSource.h"

#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

template<class Array, class Value>
vtkSmartPointer<Array> ArrayOf(
  const char* name, const std::vector<Value>& values, int components = 1)
{
  auto array = vtkSmartPointer<Array>::New();
  array->SetName(name);
  array->SetNumberOfComponents(components);
  for (const Value value : values)
  {
    array->InsertNextValue(value);
  }
  return array;
}

/// Vertices on the x axis.
vtkSmartPointer<vtkPolyData> Line(const std::vector<double>& x)
{
  return PointsAt(x, std::vector<double>(x.size(), 0));
}

class Binding : public Observed<vtkBindTokens>
{
public:
  explicit Binding(vtkDataObject* mesh)
  {
    Connect(this->Get(), 0, mesh);
    Connect(this->Get(), 1, DataSetOf(SpatialRecording()));
  }

  std::vector<double> Points(const char* name = "Bound Token")
  {
    return Values(Updated<vtkDataSet>(this->Get())->GetPointData(), name);
  }

  std::vector<double> Cells()
  {
    return Values(Updated<vtkDataSet>(this->Get())->GetCellData(), "Bound Token");
  }

  std::string Field(const char* name)
  {
    return Texts(Updated<vtkDataObject>(this->Get())->GetFieldData(), name)[0];
  }

  std::string Error()
  {
    this->Get()->Update();
    EXPECT_EQ(OutputOf<vtkDataSet>(this->Get())->GetNumberOfPoints(), 0);
    return this->TakeError();
  }
};

TEST(BindTokens, ByAnArray)
{
  const auto mesh = Line({ 0, 1, 2 });
  mesh->GetPointData()->AddArray(ArrayOf<vtkDoubleArray, double>("token", { 2, -1, 0 }));
  Binding binding(mesh);
  binding->SetTokenArray("token");
  EXPECT_THAT(binding.Points(), ElementsAre(2, -1, 0));
  binding->SetFirstToken(1);
  EXPECT_THAT(binding.Points(), ElementsAre(3, -1, 1));
  EXPECT_EQ(binding.Field("Token Binding"), "tokens");
  EXPECT_EQ(binding.Field("Token Association"), "point");
  EXPECT_EQ(binding.Field("Token Array"), "Bound Token");
}

TEST(BindTokens, LeavesGeometryUntouched)
{
  const auto mesh = Line({ 0, 1, 2 });
  mesh->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("token", { 2, 1, 0 }));
  Binding binding(mesh);
  binding->SetTokenArray("token");
  auto* output = Updated<vtkPolyData>(binding.Get());
  EXPECT_EQ(output->GetPoints(), mesh->GetPoints());
  EXPECT_EQ(output->GetVerts(), mesh->GetVerts());
  EXPECT_EQ(output->GetPointData()->GetArray("token"), mesh->GetPointData()->GetArray("token"));
  EXPECT_EQ(mesh->GetPointData()->GetArray("Bound Token"), nullptr);
}

TEST(BindTokens, ToTheNearest)
{
  Binding binding(Line({ 0.4, 1.6, 3.1, -7, 2.6 }));
  binding->SetMethod(vtkBindTokens::NEAREST);
  EXPECT_THAT(
    binding.Error(), HasSubstr("TokenPositions: expected the positions of 1 to 4 tokens"));
  Connect(binding.Get(), 2, Line({ 3, 0, 2 }));
  EXPECT_THAT(binding.Points(), ElementsAre(1, 2, 0, 1, 0));
  binding->SetFirstToken(1);
  EXPECT_THAT(binding.Points(), ElementsAre(2, 3, 1, 2, 1));
  binding->SetFirstToken(2);
  EXPECT_THAT(binding.Error(), HasSubstr("1 to 2 tokens for the nearest ones, found 3"));
  binding->SetFirstToken(0);
  Connect(binding.Get(), 2, Line({ 3, NotANumber }));
  EXPECT_THAT(
    binding.Error(), HasSubstr("TokenPositions: expected finite positions, found nan at place 1"));
  const auto several = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  several->SetBlock(0, Line({ 1 }));
  several->SetBlock(1, vtkSmartPointer<vtkPolyData>::New());
  Connect(binding.Get(), 2, several);
  EXPECT_THAT(binding.Points(), ElementsAre(0, 0, 0, 0, 0));
  several->SetBlock(2, Line({ 2 }));
  EXPECT_THAT(binding.Error(), HasSubstr("TokenPositions: expected one mesh"));
}

/// The tokens 0 and 1 move apart, while the dataset stays.
TEST(BindTokens, ToTokensThatMove)
{
  vtkNew<TimedSource> moving;
  moving->Set({ 0, 1, 3 },
    [](double time, vtkMultiBlockDataSet* output) { output->SetBlock(0, Line({ -time, time })); });
  Binding binding(Line({ -2.5, -0.25, 0.25, 2.5 }));
  binding->SetMethod(vtkBindTokens::NEAREST);
  binding->SetInputConnection(2, moving->GetOutputPort());
  EXPECT_THAT(TimesOf(binding.Get()), ElementsAre(0, 1, 3));
  const auto at = [&](double time)
  {
    binding->UpdateTimeStep(time);
    return Values(OutputOf<vtkDataSet>(binding.Get())->GetPointData(), "Bound Token");
  };
  EXPECT_THAT(at(0), ElementsAre(0, 0, 0, 0)); // of two at one place the first
  EXPECT_THAT(at(1), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(at(3), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(at(0), ElementsAre(0, 0, 0, 0));
}

/// Cells of a volume of 4 x 2 x 1 cells, of which two by two are a patch.
TEST(BindTokens, ToAGrid)
{
  vtkNew<vtkImageData> volume;
  volume->SetDimensions(5, 3, 2);
  Binding binding(volume);
  binding->SetMethod(vtkBindTokens::GRID);
  binding->SetPlaces(vtkBindTokens::CELLS);
  binding->SetPatchSize(2, 1, 1);
  binding->SetPatchCounts(2, 2, 1);
  EXPECT_THAT(binding.Cells(), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  binding->SetGridOrigin(2, 0, 0);
  EXPECT_THAT(binding.Cells(), ElementsAre(-1, -1, 0, 0, -1, -1, 2, 2));
  binding->SetPatchCounts(5, 1, 1);
  EXPECT_THAT(binding.Error(), HasSubstr("PatchCounts: expected at most 4 patches"));
}

TEST(BindTokens, RefusesPositionsThatAreNotNumbers)
{
  Binding binding(Line({ 0, NotANumber }));
  binding->SetMethod(vtkBindTokens::GRID);
  EXPECT_THAT(binding.Error(), HasSubstr("Input: expected finite positions, found nan at place 1"));
}

TEST(BindTokens, ByWeights)
{
  const auto mesh = Line({ 0, 1 });
  const auto weights = ArrayOf<vtkFloatArray, float>("slices", { 1, 0, 0, 0.25F, 0.5F, 0.25F }, 3);
  mesh->GetPointData()->AddArray(weights);
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("slices");
  EXPECT_THAT(binding.Points("slices"), ElementsAre(1, 0, 0, 0.25, 0.5, 0.25));
  auto* points = OutputOf<vtkPolyData>(binding.Get())->GetPointData();
  EXPECT_EQ(points->GetArray("slices"), weights); // not a copy
  EXPECT_EQ(points->GetArray("Bound Token"), nullptr);
  EXPECT_EQ(binding.Field("Token Binding"), "slices");
  EXPECT_EQ(binding.Field("Weight Array"), "slices");
  binding->SetFirstToken(2);
  EXPECT_THAT(binding.Error(), HasSubstr("expected weights of at most 2 slices, one per token from "
                                         "2 on, found 3"));
}

TEST(BindTokens, CopiesWeightsOfOtherTypes)
{
  const auto mesh = Line({ 0, 1 });
  mesh->GetPointData()->AddArray(
    ArrayOf<vtkDoubleArray, double>("slices", { 1, 0, 0.25, 0.75 }, 2));
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("slices");
  EXPECT_THAT(binding.Points("Token Weights"), ElementsAre(1, 0, 0.25, 0.75));
  EXPECT_EQ(binding.Field("Weight Array"), "Token Weights");
}

TEST(BindTokens, BySparseWeights)
{
  const auto mesh = Line({ 0, 1 });
  mesh->GetPointData()->AddArray(ArrayOf<vtkFloatArray, float>("w", { 0.75F, 0.25F, 1, 0 }, 2));
  mesh->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("s", { 3, 0, 1, -1 }, 2));
  mesh->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("one", { 3, 0 }));
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("w");
  binding->SetSliceArray("s");
  EXPECT_THAT(binding.Points(), ElementsAre(3, 0, 1, -1));
  EXPECT_EQ(binding.Field("Token Binding"), "some slices");
  binding->SetSliceArray("one");
  EXPECT_THAT(binding.Error(), HasSubstr("expected 2 tokens per place, one per weight, found 1"));
}

/// As vtkPDBReader names the arrays.
TEST(BindTokens, ByResidues)
{
  const auto atoms = Line({ 0, 1, 2, 3, 4, 5 });
  atoms->GetPointData()->AddArray(
    ArrayOf<vtkIdTypeArray, vtkIdType>("residue", { 5, 5, 8, -1, 2, 2 }));
  atoms->GetPointData()->AddArray(
    ArrayOf<vtkUnsignedCharArray, unsigned char>("chain", { 'A', 'A', 'A', 'A', 'B', 'B' }));
  atoms->GetPointData()->AddArray(
    ArrayOf<vtkUnsignedCharArray, unsigned char>("ishetatm", { 0, 0, 0, 0, 0, 1 }));
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Points(), ElementsAre(1, 1, 2, 0, 3, -1));
  binding->HeteroAtomsOn();
  EXPECT_THAT(binding.Points(), ElementsAre(1, 1, 2, 0, 3, 3));
  binding->SetChainArray("");
  EXPECT_THAT(binding.Points(), ElementsAre(2, 2, 3, 0, 1, 1));
  binding->SetResidueArray("other");
  EXPECT_THAT(binding.Error(), HasSubstr("expected a point array 'other', which ResidueArray"));
}

TEST(BindTokens, ByChainsWithNames)
{
  const auto atoms = Line({ 0, 1, 2 });
  atoms->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("residue", { 1, 1, 1 }));
  vtkNew<vtkStringArray> chains;
  chains->SetName("chain");
  for (const char* chain : { "B", "AA", "A" })
  {
    chains->InsertNextValue(chain);
  }
  atoms->GetPointData()->AddArray(chains);
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Points(), ElementsAre(2, 1, 0));
}

TEST(BindTokens, ChainsWithLongNamesAreRefused)
{
  const auto atoms = Line({ 0 });
  atoms->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("residue", { 1 }));
  vtkNew<vtkStringArray> chains;
  chains->SetName("chain");
  chains->InsertNextValue("ABCDEFGHI");
  atoms->GetPointData()->AddArray(chains);
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Error(), HasSubstr("at most 8 bytes, found 'ABCDEFGHI'"));
}

/// The recording has four tokens.
TEST(BindTokens, CountsResiduesByChain)
{
  const auto atoms = Line({ 0, 1, 2, 3, 4 });
  atoms->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("residue", { 1, 2, 3, 1, 2 }));
  atoms->GetPointData()->AddArray(
    ArrayOf<vtkUnsignedCharArray, unsigned char>("chain", { 'A', 'A', 'A', 'B', 'B' }));
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Error(),
    HasSubstr("Input: expected at most 4 residues, one per token from 0 on, found 5: chain A 3, "
              "chain B 2."));
}

TEST(BindTokens, OfBlocks)
{
  const auto blocks = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  blocks->SetBlock(0, Line({ 0, 1 }));
  blocks->SetBlock(2, Line({ 2 }));
  for (const unsigned int block : { 0U, 2U })
  {
    vtkDataSet::SafeDownCast(blocks->GetBlock(block))
      ->GetPointData()
      ->AddArray(ArrayOf<vtkIntArray, int>(
        "token", block == 0 ? std::vector<int>{ 3, 1 } : std::vector<int>{ 2 }));
  }
  Binding binding(blocks);
  binding->SetTokenArray("token");
  auto* output = Updated<vtkMultiBlockDataSet>(binding.Get());
  ASSERT_EQ(output->GetNumberOfBlocks(), 3U);
  const auto tokens = [&](unsigned int block)
  {
    return Values(vtkDataSet::SafeDownCast(output->GetBlock(block))->GetPointData(), "Bound Token");
  };
  EXPECT_THAT(tokens(0), ElementsAre(3, 1));
  EXPECT_EQ(output->GetBlock(1), nullptr);
  EXPECT_THAT(tokens(2), ElementsAre(2));
  vtkDataSet::SafeDownCast(blocks->GetBlock(2))->GetPointData()->RemoveArray("token");
  blocks->Modified();
  Connect(binding.Get(), 0, blocks);
  binding->Update();
  EXPECT_THAT(binding.TakeError(), HasSubstr("Input, block 3: expected a point array 'token'"));
}

TEST(BindTokens, NamesWhatIsWrong)
{
  const auto mesh = Line({ 0, 1, 2 });
  mesh->GetPointData()->AddArray(ArrayOf<vtkDoubleArray, double>("half", { 0.5, 0, 0 }));
  mesh->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("far", { 0, 4, 0 }));
  mesh->GetPointData()->AddArray(ArrayOf<vtkIntArray, int>("two", { 0, 1, 2, 3, 0, 0 }, 2));
  Binding binding(mesh);
  binding->SetTokenArray("");
  EXPECT_THAT(binding.Error(), HasSubstr("TokenArray: expected an array of tokens from 0 to 3"));
  binding->SetTokenArray("none");
  EXPECT_THAT(binding.Error(),
    HasSubstr("Input: expected a point array 'none', which TokenArray names, found none."));
  binding->SetTokenArray("half");
  EXPECT_THAT(binding.Error(),
    HasSubstr("Input: expected tokens from 0 to 3, or -1 for none, found 0.5 at place 0; the array "
              "'half' has values from 0 to 0.5."));
  binding->SetTokenArray("far");
  EXPECT_THAT(binding.Error(),
    HasSubstr("Input: expected tokens from 0 to 3, or -1 for none, found 4 at place 1; the array "
              "'far' has values from 0 to 4."));
  binding->SetTokenArray("two");
  EXPECT_THAT(binding.Error(), HasSubstr("expected one token per place, found 2"));
  binding->SetFirstToken(4);
  EXPECT_THAT(binding.Error(), HasSubstr("FirstToken: expected less than 4 tokens in front"));
  binding->SetFirstToken(-1);
  EXPECT_THAT(binding.Error(), HasSubstr("FirstToken: expected a number of at least 0, found -1"));
}

TEST(BindTokens, OfNothingIsEmpty)
{
  Binding binding(vtkSmartPointer<vtkPolyData>::New());
  binding->SetTokenArray("token");
  EXPECT_EQ(Updated<vtkPolyData>(binding.Get())->GetNumberOfPoints(), 0);
  Connect(binding.Get(), 1, vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(Updated<vtkPolyData>(binding.Get())->GetNumberOfPoints(), 0);
}

}
