#pragma once

#include "AttentionAtlasGeometryModule.h"

#include <vtkTaskAlgorithm.h>

#include <cstdint>
#include <string>

class vtkMultiBlockDataSet;

namespace AttentionAtlas
{
struct Binding;
struct TokenMesh;
}

/// States which tokens of a recording the points or cells of a dataset are. Input port 0: any
/// dataset, or a composite of datasets. Input port 1: a recording (vtkMultiBlockDataSet). Input
/// port 2 (optional, for NEAREST): points where the tokens are, in their order, of one mesh; on
/// several ranks those of rank 0 first, but the same points on all ranks count once.
///
/// Output 0 is the input, geometry and arrays untouched, with one of these arrays of points or
/// cells:
/// - Bound Token (int): the position of the place's token in its sequence, -1 for none. By ARRAY it
///   is the number in the array TokenArray; by NEAREST that of the nearest token; by GRID that of
///   the patch of a grid, in the order of x, then y, then z, with none outside; by RESIDUES the
///   number of the residue among all, by chain, then number, from 0; ligands and water, if they
///   have tokens, come after all residues. Of structures of vtkMmcifReader, residues count by their
///   place in the sequence, so that those without atoms have tokens, too.
/// - by WEIGHTS (soft slices, as in Transolver, Wu et al. 2024) the array WeightArray (float
///   [slices]), where slice s is token s; a copy named Token Weights (float) of one of another
///   type. With SliceArray, whose components are the tokens of the weights, rows are sparse, and
///   Bound Token has as many components.
///
/// By RESIDUES, the number of residues is compared with that of the tokens from FirstToken on, less
/// special tokens at the end: more residues are an error, fewer ones a warning, which counts them
/// by chain.
///
/// The position of a cell is the mean of its points. FirstToken and, where steps of time are
/// tokens, TokensPerStep times the number of the time step are added to all tokens.
///
/// Field data of each mesh: Token Binding (string: tokens, slices, some slices), Token Association
/// (point, cell), Token Array and Weight Array (string), First Token (that of slice 0), Tokens Per
/// Step and Time Step (int). vtkSpatialAttention reads them.
///
/// Time steps are those of the dataset and of the positions of tokens. On several ranks each has
/// its part of the dataset. Canceling leaves the output empty.
class ATTENTIONATLASGEOMETRY_EXPORT vtkBindTokens : public vtkTaskAlgorithm
{
public:
  static vtkBindTokens* New();
  vtkTypeMacro(vtkBindTokens, vtkTaskAlgorithm);

  enum MethodType
  {
    ARRAY = 0,
    NEAREST = 1,
    GRID = 2,
    WEIGHTS = 3,
    RESIDUES = 4
  };

  enum PlacesType
  {
    POINTS = 0,
    CELLS = 1
  };

  /// Connects the recording, and the points where its tokens are.
  void SetRecordingConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }
  void SetTokenPositionsConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(2, data); }

  /// How places get their tokens. Default: ARRAY.
  vtkSetClampMacro(Method, int, ARRAY, RESIDUES);
  vtkGetMacro(Method, int);

  /// Whether points or cells are bound. Default: POINTS.
  vtkSetClampMacro(Places, int, POINTS, CELLS);
  vtkGetMacro(Places, int);

  /// For ARRAY: the name of the array of tokens. Default: empty.
  vtkSetStdStringFromCharMacro(TokenArray);
  vtkGetCharFromStdStringMacro(TokenArray);

  /// For WEIGHTS: the name of the array of weights. Default: empty.
  vtkSetStdStringFromCharMacro(WeightArray);
  vtkGetCharFromStdStringMacro(WeightArray);

  /// For WEIGHTS: the name of the array of the tokens of sparse rows, as many as weights. Empty:
  /// all slices have weights. Default: empty.
  vtkSetStdStringFromCharMacro(SliceArray);
  vtkGetCharFromStdStringMacro(SliceArray);

  /// For GRID: the lowest corner of the first patch, the size of each, and their numbers along the
  /// axes. Default: 0, 0, 0; 1, 1, 1; 1, 1, 1.
  vtkSetVector3Macro(GridOrigin, double);
  vtkGetVector3Macro(GridOrigin, double);
  vtkSetVector3Macro(PatchSize, double);
  vtkGetVector3Macro(PatchSize, double);
  vtkSetVector3Macro(PatchCounts, int);
  vtkGetVector3Macro(PatchCounts, int);

  /// For RESIDUES: the names of the arrays of chains (numbers or texts; without it there is one
  /// chain) and of residue numbers, as readers of .pdb files name them. With residue, structures of
  /// vtkMmcifReader count by their array sequence. Default: chain, residue.
  vtkSetStdStringFromCharMacro(ChainArray);
  vtkGetCharFromStdStringMacro(ChainArray);
  vtkSetStdStringFromCharMacro(ResidueArray);
  vtkGetCharFromStdStringMacro(ResidueArray);

  /// For RESIDUES: whether atoms of ligands and water have tokens, behind those of residues: those
  /// without a place in a sequence or, without the array sequence, those that ishetatm marks.
  /// Default: off.
  vtkSetMacro(HeteroAtoms, bool);
  vtkGetMacro(HeteroAtoms, bool);
  vtkBooleanMacro(HeteroAtoms, bool);

  /// What is added to all tokens: the number of tokens before those of places, such as class
  /// tokens. Default: 0.
  vtkSetMacro(FirstToken, int);
  vtkGetMacro(FirstToken, int);

  /// For a sequence whose tokens are those of one time step after another: the tokens of each step.
  /// 0: all time steps have the same tokens. Default: 0.
  vtkSetMacro(TokensPerStep, int);
  vtkGetMacro(TokensPerStep, int);

protected:
  vtkBindTokens();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  using Meshes = std::vector<AttentionAtlas::TokenMesh>;

  std::int64_t StepOf(const AttentionAtlas::Task& task) const;
  void BindByArray(const Meshes& meshes, std::int64_t first, std::int64_t tokens) const;
  template<class TokenAt>
  void BindByPosition(
    const Meshes& meshes, const AttentionAtlas::Task& task, const TokenAt& tokenAt) const;
  void BindToNearest(const Meshes& meshes, std::int64_t first, std::int64_t tokens,
    const AttentionAtlas::Task& task) const;
  void BindToGrid(const Meshes& meshes, std::int64_t first, std::int64_t tokens,
    const AttentionAtlas::Task& task) const;
  void CompareWithTokens(const std::string& found, std::int64_t residues, std::int64_t first,
    vtkMultiBlockDataSet* recording) const;
  void BindResidues(const Meshes& meshes, std::int64_t first, vtkMultiBlockDataSet* recording,
    const AttentionAtlas::Task& task) const;
  void BindWeights(const Meshes& meshes, std::int64_t first, std::int64_t tokens,
    AttentionAtlas::Binding& binding) const;

  int Method = ARRAY;
  int Places = POINTS;
  std::string TokenArray;
  std::string WeightArray;
  std::string SliceArray;
  double GridOrigin[3] = { 0, 0, 0 };
  double PatchSize[3] = { 1, 1, 1 };
  int PatchCounts[3] = { 1, 1, 1 };
  std::string ChainArray = "chain";
  std::string ResidueArray = "residue";
  bool HeteroAtoms = false;
  int FirstToken = 0;
  int TokensPerStep = 0;
};
