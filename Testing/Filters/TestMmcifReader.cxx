#include "vtkBindTokens.h"
#include "vtkMmcifReader.h"

#include "SpatialRecording.h"
#include "TemporaryDirectory.h"

#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <fstream>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

constexpr const char* Protein = R"(data_1ABC
loop_
_atom_site.group_PDB
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.auth_seq_id
ATOM   N N   GLY B 1 1 2 3 27
ATOM   C CA  GLY B 2 4 5 6 27
ATOM   N N   ALA A 1 7 8 9 3
HETATM O O   HOH C . 9 8 7 101
)";

TEST(MmcifReader, ReadsAtomsWithTheArraysOfPdbFiles)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "protein.cif") << Protein;
  Observed<vtkMmcifReader> reader;
  reader->SetFileName((folder / "protein.cif").c_str());
  auto* atoms = Updated<vtkPolyData>(reader.Get());
  ASSERT_EQ(atoms->GetNumberOfVerts(), 4);
  EXPECT_EQ(atoms->GetPoint(2)[1], 8);
  vtkPointData* arrays = atoms->GetPointData();
  EXPECT_THAT(Texts(arrays, "atom_types"), ElementsAre("N", "CA", "N", "O"));
  EXPECT_THAT(Texts(arrays, "element"), ElementsAre("N", "C", "N", "O"));
  EXPECT_THAT(Texts(arrays, "residue_name"), ElementsAre("GLY", "GLY", "ALA", "HOH"));
  EXPECT_THAT(Texts(arrays, "chain"), ElementsAre("B", "B", "A", "C"));
  EXPECT_THAT(Values(arrays, "residue"), ElementsAre(27, 27, 3, 101));
  EXPECT_THAT(Values(arrays, "sequence"), ElementsAre(1, 2, 1, 0));
  EXPECT_THAT(Values(arrays, "ishetatm"), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Values(arrays, "model"), ElementsAre(1, 1, 1, 1));

  Observed<vtkBindTokens> binding;
  binding->SetInputConnection(0, reader->GetOutputPort());
  Connect(binding.Get(), 1, DataSetOf(SpatialRecording()));
  binding->SetMethod(vtkBindTokens::RESIDUES);
  const auto tokens = [&]
  { return Values(Updated<vtkPolyData>(binding.Get())->GetPointData(), "Bound Token"); };
  EXPECT_THAT(tokens(), ElementsAre(1, 1, 0, -1));
  binding->SetResidueArray("sequence"); // which tells insertions apart
  EXPECT_THAT(tokens(), ElementsAre(1, 2, 0, -1));
}

TEST(MmcifReader, NamesWhatIsWrong)
{
  const TemporaryDirectory folder;
  Observed<vtkMmcifReader> reader;
  EXPECT_EQ(Updated<vtkPolyData>(reader.Get())->GetNumberOfPoints(), 0);
  EXPECT_THAT(reader.TakeError(), HasSubstr("FileName: expected a .cif file, found none."));
  reader->SetFileName((folder / "wrong.cif").c_str());
  reader->Update();
  EXPECT_THAT(reader.TakeError(), HasSubstr("wrong.cif"));
  std::ofstream(folder / "wrong.cif") << "HEADER";
  reader->Modified();
  reader->Update();
  EXPECT_THAT(reader.TakeError(), HasSubstr("expected an mmCIF file"));
}

}
