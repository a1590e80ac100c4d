#ifndef vtkMmcifReader_h
#define vtkMmcifReader_h

#include "AttentionAtlasGeometryModule.h"

#include <vtkTaskAlgorithm.h>

/**
 * @class vtkMmcifReader
 * @brief Reads the atoms of a .cif file of the Protein Data Bank (mmCIF).
 *
 * VTK reads .pdb files alone. The arrays have the names that vtkPDBReader gives them, so that
 * vtkBindTokens takes both.
 *
 * Output: a vtkPolyData with a vertex per atom. Point arrays: atom_types (string, such as CA),
 * element, residue_name, chain (string), residue (int, its number by the authors, as in .pdb
 * files), sequence (int, its number in the sequence, from 1, which tells insertions apart; 0 for
 * ligands and water), ishetatm (unsigned char, 1 for atoms of ligands and water) and model (int).
 * It is in the first piece, and empty in the others.
 */
class ATTENTIONATLASGEOMETRY_EXPORT vtkMmcifReader : public vtkTaskAlgorithm
{
public:
  static vtkMmcifReader* New();
  vtkTypeMacro(vtkMmcifReader, vtkTaskAlgorithm);

  ///@{
  /**
   * The file to read. Default: none.
   */
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);
  ///@}

protected:
  vtkMmcifReader();
  ~vtkMmcifReader() override;

  void Execute(AttentionAtlas::Task& task) override;

private:
  char* FileName = nullptr;
};

#endif
