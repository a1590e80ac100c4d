#include "vtkMmcifReader.h"

#include "Base/Error.h"
#include "Files/StructureFile.h"
#include "ListArrays.h"
#include "StructureArrays.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkMmcifReader);

vtkMmcifReader::vtkMmcifReader()
  : vtkTaskAlgorithm({}, { "vtkPolyData" })
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
  using atlas::StructureAtom;
  namespace Names = StructureArrays;
  task.Reads(this->FileName);
  const atlas::Structure structure = atlas::ReadStructure(this->FileName);
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> vertices;
  for (const StructureAtom& atom : structure.atoms)
  {
    vertices->InsertNextCell({ points->InsertNextPoint(atom.position.data()) });
  }
  auto* output = task.Output<vtkPolyData>();
  output->SetPoints(points);
  output->SetVerts(vertices);
  ListArrays(structure.atoms, output->GetPointData())
    .Text(Names::Atom, &StructureAtom::name)
    .Text(Names::Element, &StructureAtom::element)
    .Text(Names::ResidueName, &StructureAtom::residueName)
    .Text(Names::Chain, &StructureAtom::chain)
    .Int(Names::Residue, &StructureAtom::residue)
    .Text(Names::Insertion, &StructureAtom::insertion)
    .Int(Names::Sequence, &StructureAtom::sequence)
    .Byte(Names::Hetero, &StructureAtom::isHetero)
    .Int(Names::Model, &StructureAtom::model);
  using atlas::StructureChain;
  ListArrays(structure.chains, output->GetFieldData())
    .Text(Names::Chain, &StructureChain::name)
    .Int(Names::Length, &StructureChain::length);
}
