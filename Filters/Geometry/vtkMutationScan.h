#pragma once

#include "AttentionAtlasGeometryModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>
#include <string>

class vtkMultiBlockDataSet;

/// What every substitution of a residue does to a protein, as a masked language model of proteins
/// sees it: masked marginals (Meier et al. 2021). Input port 0: a transformer that predicts masked
/// residues, such as ESM-2. Input port 1 (optional): the protein's structure, from vtkBindTokens,
/// bound to a recording of the same sequence; at least 90 % of its residues must be the same.
///
/// Each place is masked in a run of its own. The effect of a substitution is the logarithm of the
/// probability of the mutant there less that of the wild type: below 0 the model prefers the wild
/// type. The mean effect of a place is that over the amino acids other than its own. Core:
/// MaskedMarginals.h.
///
/// Output port 0: a vtkTable with a row per place and amino acid: Position (int, in the tokens of
/// the sequence, as of a recording), Token (string, the wild type), Amino Acid (string), Mutation
/// Effect and Log Probability (double). Output port 1: a vtkImageData with the same arrays, but a
/// Mutation Effect of NaN at the wild type, x = place, y = -amino acid in the order
/// ACDEFGHIKLMNPQRSTVWY, and for its labels the field arrays Key Token, Query Token, Key Title,
/// Query Title and Signs (string). Output port 2: a vtkTable with a row
/// per place: Position, Token, Mean Effect and Log Probability (double, of the wild type). Output
/// port 3: the structure with the point array Mean Effect (float; NaN at atoms without a residue).
///
/// On several ranks the runs are shared among them; the first one has the tables, each its part of
/// the image and its own structure. Results are equal to the byte on any number of ranks and
/// threads. Canceling leaves all empty.
class ATTENTIONATLASGEOMETRY_EXPORT vtkMutationScan : public vtkTaskAlgorithm
{
public:
  static vtkMutationScan* New();
  vtkTypeMacro(vtkMutationScan, vtkTaskAlgorithm);

  /// Connects the structure.
  void SetStructureConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  /// The protein: the letters of its residues, or a FASTA record of one. Null or empty: none, and
  /// the outputs are empty. Default: none.
  vtkSetStdStringFromCharMacro(Protein);
  vtkGetCharFromStdStringMacro(Protein);

protected:
  vtkMutationScan();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Scan;
  struct Memory;

  bool IsAsked(vtkMultiBlockDataSet* model) const;
  int CountResidues(vtkMultiBlockDataSet* model) const;
  Scan MakeScan(vtkMultiBlockDataSet* model, const AttentionAtlas::Task& task) const;

  std::string Protein;
  std::shared_ptr<Memory> Kept;
};
