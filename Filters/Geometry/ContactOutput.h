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
/// none of null or of a dataset without points, in the order of its points; with `sites`, a point
/// array that is not 0 at atoms of sites, also these. Throws atlas::OptionError for other datasets
/// and arrays.
std::vector<atlas::ResidueAtom> ResidueAtomsOf(vtkDataSet* structure, const std::string& sites);

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
  std::vector<bool> sites;                     ///< of each residue whether it is one; or none
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
  void MakeHeadMap(vtkInformation* info) const;
  void MakePrecision(vtkTable* table) const;
  /// `bend`: how far the middle of a line is from the straight one, as a part of its length.
  void MakeLines(const std::vector<Pair>& pairs, double bend, vtkPolyData* output) const;

private:
  /// A column of the table of heads, and of their map.
  struct HeadColumn
  {
    std::string name;
    std::vector<double> values;
    bool isCount = false;
  };
  std::vector<HeadColumn> HeadColumns() const;

  void AddValues(const std::vector<Pair>& pairs, vtkFieldData* data) const;
  void AddPairs(const std::vector<Pair>& pairs, vtkFieldData* data) const;
  void AddFields(vtkFieldData* fields) const;
};

}
