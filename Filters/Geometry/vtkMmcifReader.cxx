#include "vtkMmcifReader.h"

#include "DataFields.h"
#include "Error.h"
#include "MmcifFile.h"
#include "Task.h"

#include <vtkCellArray.h>
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
    throw atlas::OptionError("FileName: expected a .cif file, found none.");
  }
  if (!task.IsFirst())
  {
    return;
  }
  using atlas::CifAtom;
  task.Reads(this->FileName);
  const std::vector<CifAtom> atoms = atlas::ReadMmcif(this->FileName);
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> vertices;
  for (const CifAtom& atom : atoms)
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
      name, atoms, [&](const CifAtom& atom) { return atom.*value; }));
  };
  vtkStringArray* const text = nullptr;
  vtkIntArray* const number = nullptr;
  vtkUnsignedCharArray* const flag = nullptr;
  add(text, "atom_types", &CifAtom::name);
  add(text, "element", &CifAtom::element);
  add(text, "residue_name", &CifAtom::residueName);
  add(text, "chain", &CifAtom::chain);
  add(number, "residue", &CifAtom::residue);
  add(number, "sequence", &CifAtom::sequence);
  add(flag, "ishetatm", &CifAtom::isHetero);
  add(number, "model", &CifAtom::model);
}
