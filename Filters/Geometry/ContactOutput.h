#pragma once

#include "Geometry/ResidueContacts.h"
#include "Geometry/StructureResidues.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class vtkDataSet;
class vtkFieldData;
class vtkInformation;
class vtkPolyData;
class vtkTable;

/// The structure that vtkContactMap reads, and the outputs that it makes.
namespace AttentionAtlas
{

/// The atoms C-alpha and C-beta of a dataset of vtkMmcifReader, with their tokens if it is bound;
/// none of null or of a dataset without points, in the order of its points. Throws
/// atlas::OptionError for other datasets.
std::vector<atlas::ResidueAtom> ResidueAtomsOf(vtkDataSet* structure);

/// What vtkContactMap has found.
struct ContactResult
{
  std::vector<std::int64_t> residues; ///< positions in the sequence
  std::vector<std::string> texts;     ///< their tokens
  std::string text;                   ///< how the sequence begins
  atlas::ContactEvidence evidence;
  std::optional<atlas::ContactHead> predictor;
  std::optional<atlas::PlacedResidues> placed; ///< with a structure
  std::optional<atlas::TrueContacts> contacts; ///< likewise
  std::string warning;                         ///< of other residues; empty: none

  /// The evidence by which pairs are sorted.
  const std::vector<float>& Scores() const
  {
    return this->evidence.prediction.empty() ? this->evidence.attention : this->evidence.prediction;
  }

  /// Numbers of residues in this list.
  using Pair = std::pair<std::int64_t, std::int64_t>;

  /// The pairs at least this far apart with the largest scores, the largest first.
  std::vector<Pair> Strongest(std::int64_t separation, std::int64_t count) const;

  void MakeImage(int sequence, vtkInformation* info) const;
  void MakePairs(const std::vector<Pair>& pairs, vtkTable* table) const;
  void MakeHeads(vtkTable* table) const;
  void MakePrecision(vtkTable* table) const;
  void MakeLines(const std::vector<Pair>& pairs, vtkPolyData* output) const;

private:
  void AddValues(const std::vector<Pair>& pairs, vtkFieldData* data) const;
  void AddPairs(const std::vector<Pair>& pairs, vtkFieldData* data) const;
  void AddFields(vtkFieldData* fields) const;
};

}
