#include "vtkMmcifReader.h"

#include "Base/Error.h"
#include "Files/StructureFile.h"
#include "Geometry/ProteinRibbon.h"
#include "ListArrays.h"
#include "StructureArrays.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkFloatArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <vector>

using namespace AttentionAtlas;

namespace
{

/// Adds what is known of these atoms.
void AddAtoms(const std::vector<atlas::StructureAtom>& atoms, vtkPointData* data)
{
  using atlas::StructureAtom;
  namespace Names = StructureArrays;
  ListArrays(atoms, data)
    .Text(Names::Atom, &StructureAtom::name)
    .Text(Names::Element, &StructureAtom::element)
    .Text(Names::ResidueName, &StructureAtom::residueName)
    .Text(Names::Chain, &StructureAtom::chain)
    .Int(Names::Residue, &StructureAtom::residue)
    .Text(Names::Insertion, &StructureAtom::insertion)
    .Int(Names::Sequence, &StructureAtom::sequence)
    .Byte(Names::Hetero, &StructureAtom::isHetero)
    .Int(Names::Model, &StructureAtom::model);
}

void AddChains(const atlas::Structure& structure, vtkFieldData* data)
{
  using atlas::StructureChain;
  ListArrays(structure.chains, data)
    .Text(StructureArrays::Chain, &StructureChain::name)
    .Int(StructureArrays::Length, &StructureChain::length);
}

void MakeRibbon(const atlas::Structure& structure, vtkPolyData* output)
{
  const atlas::ProteinRibbon ribbon = atlas::MakeRibbon(structure);
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  std::vector<atlas::StructureAtom> atoms;
  atoms.reserve(ribbon.points.size());
  for (std::size_t i = 0; i < ribbon.points.size(); ++i)
  {
    points->InsertNextPoint(ribbon.points[i].data());
    atoms.push_back(
      ribbon.atoms[i] < 0 ? atlas::StructureAtom() : structure.atoms[ribbon.atoms[i]]);
  }
  vtkNew<vtkCellArray> triangles;
  for (const std::array<std::int64_t, 3>& triangle : ribbon.triangles)
  {
    triangles->InsertNextCell({ triangle[0], triangle[1], triangle[2] });
  }
  output->SetPoints(points);
  output->SetPolys(triangles);
  vtkPointData* data = output->GetPointData();
  AddAtoms(atoms, data);
  ListArrays(ribbon.kinds, data).Int(StructureArrays::Backbone);
  const auto normals =
    NewTuples<vtkFloatArray>("Normals", 3, static_cast<vtkIdType>(ribbon.normals.size()));
  for (std::size_t i = 0; i < ribbon.normals.size(); ++i)
  {
    normals->SetTypedTuple(static_cast<vtkIdType>(i), ribbon.normals[i].data());
  }
  data->SetNormals(normals);
  AddChains(structure, output->GetFieldData());
}

}

vtkStandardNewMacro(vtkMmcifReader);

vtkMmcifReader::vtkMmcifReader()
  : vtkTaskAlgorithm({}, { "vtkPolyData", "vtkPolyData" })
{
}

vtkMmcifReader::~vtkMmcifReader()
{
  this->SetFileName(nullptr);
}

void vtkMmcifReader::Execute(Task& task)
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    throw atlas::OptionError("FileName: expected a .cif or .pdb file, found none.");
  }
  if (!task.IsFirst())
  {
    return;
  }
  task.Reads(this->FileName);
  const atlas::Structure structure = atlas::ReadStructure(this->FileName);
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> vertices;
  for (const atlas::StructureAtom& atom : structure.atoms)
  {
    vertices->InsertNextCell({ points->InsertNextPoint(atom.position.data()) });
  }
  auto* output = task.Output<vtkPolyData>();
  output->SetPoints(points);
  output->SetVerts(vertices);
  AddAtoms(structure.atoms, output->GetPointData());
  AddChains(structure, output->GetFieldData());
  MakeRibbon(structure, task.Output<vtkPolyData>(1));
}
