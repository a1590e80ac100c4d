#pragma once

#include "AttentionAtlasGeometryModule.h"

#include <vtkTaskAlgorithm.h>

/// Reads the atoms of a file of the Protein Data Bank (mmCIF or PDB). VTK's reader of .pdb files
/// knows neither the sequences of chains nor insertion codes. The arrays have the names that it
/// gives them, so that vtkBindTokens takes both. See Core's StructureFile.h for what residues are.
///
/// Output port 0: a vtkPolyData with a vertex per atom. Point arrays: atom_types (string, such as
/// CA), element, residue_name, chain (string), residue (int, its number by the authors, as in .pdb
/// files), insertion (string, the code behind that number), sequence (int, the place of the residue
/// in the sequence of its chain, from 1, counting residues without atoms; 0 for ligands and water),
/// ishetatm (unsigned char, 1 for atoms of ligands, water and modified residues) and model (int).
/// Field data: chain (string, the chains that have a sequence) and sequence_length (int, the
/// residues of each).
///
/// Output port 1: a vtkPolyData of triangles, the backbones of proteins as ribbons along helices,
/// arrows along strands and tubes elsewhere, with dashes across residues that were not resolved
/// (Core's ProteinRibbon.h). Its points have the arrays and values of the C-alpha of their residue,
/// so that what is bound to residues is drawn on them, and backbone (int: 0 coil, 1 helix, 2
/// strand); those of dashes have no names and the place 0. The first points are these atoms, which
/// no triangle has. Field data as in port 0.
///
/// Both are in the first piece, and empty in the others.
class ATTENTIONATLASGEOMETRY_EXPORT vtkMmcifReader : public vtkTaskAlgorithm
{
public:
  static vtkMmcifReader* New();
  vtkTypeMacro(vtkMmcifReader, vtkTaskAlgorithm);

  /// The file to read. Default: none.
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);

protected:
  vtkMmcifReader();
  ~vtkMmcifReader() override;

  void Execute(AttentionAtlas::Task& task) override;

private:
  char* FileName = nullptr;
};
