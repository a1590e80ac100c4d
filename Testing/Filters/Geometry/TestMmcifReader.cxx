#include "Matchers.h"
#include "vtkBindTokens.h"
#include "vtkMmcifReader.h"

#include "SpatialRecording.h"
#include "TemporaryDirectory.h"

#include <fstream>

using namespace atlas;
using namespace atlas::test;

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

  On<vtkBindTokens> binding;
  binding->SetInputConnection(0, reader->GetOutputPort());
  Connect(binding.Get(), 1, DataSetOf(SpatialRecording()));
  binding->SetMethod(vtkBindTokens::RESIDUES);
  const auto tokens = [&] { return binding.Points("Bound Token"); };
  EXPECT_THAT(tokens(), ElementsAre(1, 2, 0, -1)); // by the sequence, whatever authors count
  binding->SetResidueArray("sequence");
  EXPECT_THAT(tokens(), ElementsAre(1, 2, 0, -1));
  binding->HeteroAtomsOn();
  EXPECT_THAT(tokens(), ElementsAre(1, 2, 0, 3)); // behind all residues
}

/// Water first, a modified residue, a residue that was not resolved, and a chain without atoms of
/// its last residue: four tokens.
TEST(MmcifReader, TokensWithoutAtomsAreCounted)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "protein.cif") << R"(data_x
loop_
_struct_asym.id
_struct_asym.entity_id
A 1
loop_
_entity_poly_seq.entity_id
_entity_poly_seq.num
1 1
1 2
1 3
1 4
loop_
_atom_site.group_PDB
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.auth_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
HETATM W . 1 0 0 0
HETATM A 1 7 1 0 0
ATOM   A 3 9 2 0 0
)";
  Observed<vtkMmcifReader> reader;
  reader->SetFileName((folder / "protein.cif").c_str());
  vtkFieldData* fields = Updated<vtkPolyData>(reader.Get())->GetFieldData();
  EXPECT_THAT(Texts(fields, "chain"), ElementsAre("A"));
  EXPECT_THAT(Values(fields, "sequence_length"), ElementsAre(4));

  Warned<vtkBindTokens> binding;
  binding->SetInputConnection(0, reader->GetOutputPort());
  Connect(binding.Get(), 1, DataSetOf(SpatialRecording()));
  binding->SetMethod(vtkBindTokens::RESIDUES);
  const auto tokens = [&] { return binding.Points("Bound Token"); };
  EXPECT_THAT(tokens(), ElementsAre(-1, 0, 2));
  EXPECT_THAT(binding.TakeWarnings(), IsEmpty());
  std::ofstream(folder / "protein.pdb")
    << "ATOM      1  CA  GLY A   7       1.000   0.000   0.000\n"
    << "ATOM      2  CA  GLY A   9       2.000   0.000   0.000\n";
  reader->SetFileName((folder / "protein.pdb").c_str());
  EXPECT_THAT(tokens(), ElementsAre(0, 1));
  EXPECT_THAT(binding.TakeWarnings(), SizeIs(1)); // two residues for four tokens
}

/// The second of four residues was not resolved: the others are drawn and have their tokens, and
/// the dashes between them have none.
TEST(MmcifReader, TheRibbonIsThatOfItsResidues)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "protein.cif") << R"(data_x
loop_
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
CA  GLY A 1 0 0 0
CB  TRP A 3 9 9 9
CA  TRP A 3 7 0 0
CA  LEU A 4 10.8 0 0
)";
  Observed<vtkMmcifReader> reader;
  reader->SetFileName((folder / "protein.cif").c_str());
  reader->Update();
  auto* ribbon = vtkPolyData::SafeDownCast(reader->GetOutputDataObject(1));
  ASSERT_GT(ribbon->GetNumberOfPolys(), 0);
  EXPECT_EQ(ribbon->GetNumberOfVerts(), 0);
  EXPECT_EQ(ribbon->GetPoint(1)[0], 7); // first the atoms
  EXPECT_EQ(ribbon->GetPoint(2)[0], 10.8);
  vtkPointData* arrays = ribbon->GetPointData();
  ASSERT_NE(arrays->GetNormals(), nullptr);
  const std::vector<double> places = Values(arrays, "sequence");
  const std::vector<std::string> names = Texts(arrays, "residue_name");
  const std::vector<double> backbone = Values(arrays, "backbone");
  EXPECT_THAT(places, testing::Each(testing::AnyOf(0, 1, 3, 4)));
  for (std::size_t i = 0; i < places.size(); ++i)
  {
    const double x = ribbon->GetPoint(static_cast<vtkIdType>(i))[0];
    const bool isDash = places[i] == 0;
    EXPECT_EQ(names[i], isDash ? "" : x < 1 ? "GLY" : x < 8.9 ? "TRP" : "LEU");
    EXPECT_EQ(isDash, x > 0.4 && x < 6.7);
    EXPECT_EQ(backbone[i], 0);
  }
  EXPECT_THAT(places, testing::Contains(0));

  On<vtkBindTokens> binding;
  binding->SetInputConnection(0, reader->GetOutputPort(1));
  Connect(binding.Get(), 1, DataSetOf(SpatialRecording()));
  binding->SetMethod(vtkBindTokens::RESIDUES);
  const std::vector<double> tokens = binding.Points("Bound Token");
  ASSERT_EQ(tokens.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
  {
    EXPECT_EQ(tokens[i], places[i] - 1);
  }
}

TEST(MmcifReader, NamesWhatIsWrong)
{
  const TemporaryDirectory folder;
  Observed<vtkMmcifReader> reader;
  EXPECT_THAT(reader.Error(), HasSubstr("FileName: expected a .cif or .pdb file, found none."));
  reader->SetFileName((folder / "wrong.cif").c_str());
  EXPECT_THAT(reader.Error(), HasSubstr("wrong.cif"));
  std::ofstream(folder / "wrong.cif") << "HEADER";
  reader->Modified();
  EXPECT_THAT(reader.Error(), HasSubstr("expected an mmCIF file"));
}

}
