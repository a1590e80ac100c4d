#include "vtkBindTokens.h"

#include "Matchers.h"
#include "SpatialRecording.h"
#include "TimedSource.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Vertices on the x axis.
vtkSmartPointer<vtkPolyData> Line(const std::vector<double>& x)
{
  return PointsAt(x, std::vector<double>(x.size(), 0));
}

class Binding : public On<vtkBindTokens>
{
public:
  explicit Binding(vtkDataObject* mesh)
    : On(mesh)
  {
    Connect(this->Get(), 1, DataSetOf(SpatialRecording()));
  }
};

TEST(BindTokens, ByAnArray)
{
  const auto mesh = Line({ 0, 1, 2 });
  AddArray<vtkDoubleArray, double>(mesh->GetPointData(), "token", { 2, -1, 0 });
  Binding binding(mesh);
  binding->SetTokenArray("token");
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(2, -1, 0));
  binding->SetFirstToken(1);
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(3, -1, 1));
  EXPECT_THAT(binding.FieldTexts("Token Binding"), ElementsAre("tokens"));
  EXPECT_THAT(binding.FieldTexts("Token Association"), ElementsAre("point"));
  EXPECT_THAT(binding.FieldTexts("Token Array"), ElementsAre("Bound Token"));
}

TEST(BindTokens, LeavesGeometryUntouched)
{
  const auto mesh = Line({ 0, 1, 2 });
  AddArray<vtkIntArray, int>(mesh->GetPointData(), "token", { 2, 1, 0 });
  Binding binding(mesh);
  binding->SetTokenArray("token");
  auto* output = binding.Geometry();
  EXPECT_EQ(output->GetPoints(), mesh->GetPoints());
  EXPECT_EQ(output->GetVerts(), mesh->GetVerts());
  EXPECT_EQ(output->GetPointData()->GetArray("token"), mesh->GetPointData()->GetArray("token"));
  EXPECT_EQ(mesh->GetPointData()->GetArray("Bound Token"), nullptr);
}

TEST(BindTokens, ToTheNearest)
{
  Binding binding(Line({ 0.4, 1.6, 3.1, -7, 2.6 }));
  binding->SetMethod(vtkBindTokens::NEAREST);
  Connect(binding.Get(), 2, Line({ 3, 0, 2 }));
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(1, 2, 0, 1, 0));
  binding->SetFirstToken(1);
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(2, 3, 1, 2, 1));
  binding->SetFirstToken(0);
  const auto several = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  several->SetBlock(0, Line({ 1 }));
  several->SetBlock(1, vtkSmartPointer<vtkPolyData>::New());
  Connect(binding.Get(), 2, several);
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(0, 0, 0, 0, 0));
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
  EXPECT_THAT(binding.Cells("Bound Token"), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  binding->SetGridOrigin(2, 0, 0);
  EXPECT_THAT(binding.Cells("Bound Token"), ElementsAre(-1, -1, 0, 0, -1, -1, 2, 2));
}

TEST(BindTokens, ByWeights)
{
  const auto mesh = Line({ 0, 1 });
  AddArray<vtkFloatArray, float>(
    mesh->GetPointData(), "slices", { 1, 0, 0, 0.25F, 0.5F, 0.25F }, 3);
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("slices");
  EXPECT_THAT(binding.Points("slices"), ElementsAre(1, 0, 0, 0.25, 0.5, 0.25));
  auto* points = OutputOf<vtkPolyData>(binding.Get())->GetPointData();
  EXPECT_EQ(points->GetArray("slices"), mesh->GetPointData()->GetArray("slices")); // no copy
  EXPECT_EQ(points->GetArray("Bound Token"), nullptr);
  EXPECT_THAT(binding.FieldTexts("Token Binding"), ElementsAre("slices"));
  EXPECT_THAT(binding.FieldTexts("Weight Array"), ElementsAre("slices"));
}

TEST(BindTokens, CopiesWeightsOfOtherTypes)
{
  const auto mesh = Line({ 0, 1 });
  AddArray<vtkDoubleArray, double>(mesh->GetPointData(), "slices", { 1, 0, 0.25, 0.75 }, 2);
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("slices");
  EXPECT_THAT(binding.Points("Token Weights"), ElementsAre(1, 0, 0.25, 0.75));
  EXPECT_THAT(binding.FieldTexts("Weight Array"), ElementsAre("Token Weights"));
}

TEST(BindTokens, BySparseWeights)
{
  const auto mesh = Line({ 0, 1 });
  AddArray<vtkFloatArray, float>(mesh->GetPointData(), "w", { 0.75F, 0.25F, 1, 0 }, 2);
  AddArray<vtkIntArray, int>(mesh->GetPointData(), "s", { 3, 0, 1, -1 }, 2);
  AddArray<vtkIntArray, int>(mesh->GetPointData(), "one", { 3, 0 });
  Binding binding(mesh);
  binding->SetMethod(vtkBindTokens::WEIGHTS);
  binding->SetWeightArray("w");
  binding->SetSliceArray("s");
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(3, 0, 1, -1));
  EXPECT_THAT(binding.FieldTexts("Token Binding"), ElementsAre("some slices"));
  binding->SetSliceArray("one");
  EXPECT_THAT(binding.Error(), HasSubstr("expected 2 tokens per place, one per weight, found 1"));
}

/// As vtkPDBReader names the arrays.
TEST(BindTokens, ByResidues)
{
  const auto atoms = Line({ 0, 1, 2, 3, 4, 5 });
  AddArray<vtkIdTypeArray, vtkIdType>(atoms->GetPointData(), "residue", { 5, 5, 8, -1, 2, 2 });
  AddArray<vtkUnsignedCharArray, unsigned char>(
    atoms->GetPointData(), "chain", { 'A', 'A', 'A', 'A', 'B', 'B' });
  AddArray<vtkUnsignedCharArray, unsigned char>(
    atoms->GetPointData(), "ishetatm", { 0, 0, 0, 0, 0, 1 });
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(1, 1, 2, 0, 3, -1));
  binding->HeteroAtomsOn();
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(1, 1, 2, 0, 3, 3));
  binding->SetChainArray("");
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(2, 2, 3, 0, 1, 1));
}

TEST(BindTokens, ByChainsWithNames)
{
  const auto atoms = Line({ 0, 1, 2 });
  AddArray<vtkIntArray, int>(atoms->GetPointData(), "residue", { 1, 1, 1 });
  AddArray<vtkStringArray, std::string>(atoms->GetPointData(), "chain", { "B", "AA", "A" });
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Points("Bound Token"), ElementsAre(2, 1, 0));
}

TEST(BindTokens, ChainsWithLongNamesAreRefused)
{
  const auto atoms = Line({ 0 });
  AddArray<vtkIntArray, int>(atoms->GetPointData(), "residue", { 1 });
  AddArray<vtkStringArray, std::string>(atoms->GetPointData(), "chain", { "ABCDEFGHI" });
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Error(), HasSubstr("at most 8 bytes, found 'ABCDEFGHI'"));
}

/// The recording has four tokens.
TEST(BindTokens, CountsResiduesByChain)
{
  const auto atoms = Line({ 0, 1, 2, 3, 4 });
  AddArray<vtkIntArray, int>(atoms->GetPointData(), "residue", { 1, 2, 3, 1, 2 });
  AddArray<vtkUnsignedCharArray, unsigned char>(
    atoms->GetPointData(), "chain", { 'A', 'A', 'A', 'B', 'B' });
  Binding binding(atoms);
  binding->SetMethod(vtkBindTokens::RESIDUES);
  EXPECT_THAT(binding.Error(),
    HasSubstr("Input: expected at most 4 residues, one per token from 0 on, found 5: chain A 3, "
              "chain B 2."));
}

TEST(BindTokens, OfBlocks)
{
  const auto first = Line({ 0, 1 });
  const auto second = Line({ 2 });
  AddArray<vtkIntArray, int>(first->GetPointData(), "token", { 3, 1 });
  AddArray<vtkIntArray, int>(second->GetPointData(), "token", { 2 });
  const auto blocks = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  blocks->SetBlock(0, first);
  blocks->SetBlock(2, second);
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
  second->GetPointData()->RemoveArray("token");
  blocks->Modified();
  Connect(binding.Get(), 0, blocks);
  EXPECT_THAT(binding.Error(), HasSubstr("Input, block 3: expected a point array 'token'"));
}

/// TestHostileInput.py has what else may be wrong.
TEST(BindTokens, NamesWhatIsWrong)
{
  Binding binding(Line({ 0, 1, 2 }));
  binding->SetTokenArray("");
  EXPECT_THAT(binding.Error(), HasSubstr("TokenArray: expected an array of tokens from 0 to 3"));
  binding->SetFirstToken(4);
  EXPECT_THAT(binding.Error(), HasSubstr("FirstToken: expected less than 4 tokens in front"));
}

TEST(BindTokens, OfNothingIsEmpty)
{
  Binding binding(vtkSmartPointer<vtkPolyData>::New());
  binding->SetTokenArray("token");
  EXPECT_EQ(binding.Geometry()->GetNumberOfPoints(), 0);
  Connect(binding.Get(), 1, vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(binding.Geometry()->GetNumberOfPoints(), 0);
}

}
