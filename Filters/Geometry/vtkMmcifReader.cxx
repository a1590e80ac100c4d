#include "vtkMmcifReader.h"

#include "DataFields.h"
#include "Error.h"
#include "StructureArrays.h"
#include "StructureFile.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <string>
#include <type_traits>
#include <vector>

vtkStandardNewMacro(vtkMmcifReader);

vtkMmcifReader::vtkMmcifReader()
  : vtkTaskAlgorithm({}, { "vtkPolyData" })
{
}

vtkMmcifReader::~vtkMmcifReader()
{
  this->SetFileName(nullptr);
}

void vtkMmcifReader::Execute(AttentionAtlas::Task& task)
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
  namespace Names = AttentionAtlas::StructureArrays;
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
  const auto add = [&](auto* type, const char* name, const auto& value)
  {
    using Array = std::remove_pointer_t<decltype(type)>;
    output->GetPointData()->AddArray(AttentionAtlas::MakeArray<Array>(
      name, structure.atoms, [&](const StructureAtom& atom) { return atom.*value; }));
  };
  vtkStringArray* const text = nullptr;
  vtkIntArray* const number = nullptr;
  vtkUnsignedCharArray* const flag = nullptr;
  add(text, Names::Atom, &StructureAtom::name);
  add(text, Names::Element, &StructureAtom::element);
  add(text, Names::ResidueName, &StructureAtom::residueName);
  add(text, Names::Chain, &StructureAtom::chain);
  add(number, Names::Residue, &StructureAtom::residue);
  add(text, Names::Insertion, &StructureAtom::insertion);
  add(number, Names::Sequence, &StructureAtom::sequence);
  add(flag, Names::Hetero, &StructureAtom::isHetero);
  add(number, Names::Model, &StructureAtom::model);
  using atlas::StructureChain;
  output->GetFieldData()->AddArray(AttentionAtlas::MakeArray<vtkStringArray>(
    Names::Chain, structure.chains, [](const StructureChain& chain) { return chain.name; }));
  output->GetFieldData()->AddArray(AttentionAtlas::MakeArray<vtkIntArray>(
    Names::Length, structure.chains, [](const StructureChain& chain) { return chain.length; }));
}
