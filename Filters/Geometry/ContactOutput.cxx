#include "ContactOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "Files/StructureFile.h"
#include "ImageRequest.h"
#include "ListArrays.h"
#include "MarkLegend.h"
#include "ProteinArrays.h"
#include "StructureArrays.h"
#include "TokenText.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDataSet.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace AttentionAtlas
{
namespace
{

namespace Names = ArrayNames;
namespace Protein = ProteinArrays;

/// Blue and orange, which all kinds of sight tell apart (Okabe and Ito 2008).
constexpr atlas::Rgb HitColor = { 0, 114, 178 };
constexpr atlas::Rgb MissColor = { 230, 159, 0 };

/// An array of a structure of this type. Throws if there is none.
template<class Array>
Array* StructureArray(vtkDataSet* structure, const char* name)
{
  auto* array = Array::SafeDownCast(structure->GetPointData()->GetAbstractArray(name));
  atlas::ThrowIf<atlas::OptionError>(array == nullptr, "Structure: expected the point array '",
    name, "', which Mmcif Reader makes, found none; open the .pdb or .cif file by Mmcif Reader.");
  return array;
}

}

std::vector<atlas::ResidueAtom> ResidueAtomsOf(vtkDataSet* structure)
{
  namespace Arrays = StructureArrays;
  std::vector<atlas::ResidueAtom> atoms;
  if (structure == nullptr || structure->GetNumberOfPoints() == 0)
  {
    return atoms;
  }
  auto* atomNames = StructureArray<vtkStringArray>(structure, Arrays::Atom);
  auto* residueNames = StructureArray<vtkStringArray>(structure, Arrays::ResidueName);
  auto* chains = StructureArray<vtkStringArray>(structure, Arrays::Chain);
  auto* places = StructureArray<vtkDataArray>(structure, Arrays::Sequence);
  auto* models = StructureArray<vtkDataArray>(structure, Arrays::Model);
  vtkDataArray* tokens = structure->GetPointData()->GetArray(Names::BoundToken);
  const auto numberOf = [](vtkDataArray* array, vtkIdType i)
  { return static_cast<std::int32_t>(array->GetComponent(i, 0)); };
  for (vtkIdType i = 0; i < structure->GetNumberOfPoints(); ++i)
  {
    const std::string& name = atomNames->GetValue(i);
    atlas::ResidueAtom atom;
    atom.place = numberOf(places, i);
    if (atom.place < 1 || (name != "CA" && name != "CB"))
    {
      continue;
    }
    const std::string& chain = chains->GetValue(i);
    atlas::ThrowIf<atlas::OptionError>(chain.size() > atom.chain.size(),
      "Structure: expected names of chains of at most ", atom.chain.size(), " bytes, found '",
      chain, "'.");
    std::copy(chain.begin(), chain.end(), atom.chain.begin());
    atom.model = numberOf(models, i);
    atom.token = tokens == nullptr ? -1 : numberOf(tokens, i);
    atom.letter = atlas::ResidueLetter(residueNames->GetValue(i));
    atom.isBeta = name == "CB";
    structure->GetPoint(i, atom.position.data());
    atoms.push_back(atom);
  }
  return atoms;
}

std::vector<ContactResult::Pair> ContactResult::Strongest(
  std::int64_t separation, std::int64_t count) const
{
  const auto n = static_cast<std::int64_t>(this->residues.size());
  std::vector<Pair> pairs;
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = i + separation; j < n; ++j)
    {
      pairs.emplace_back(i, j);
    }
  }
  const std::vector<float>& scores = this->Scores();
  const std::int64_t kept =
    std::min(count > 0 ? count : n, static_cast<std::int64_t>(pairs.size()));
  std::partial_sort(pairs.begin(), pairs.begin() + kept, pairs.end(),
    [&](const Pair& a, const Pair& b)
    {
      const float scoreA = scores[a.first * n + a.second]; // never NaN
      const float scoreB = scores[b.first * n + b.second];
      return scoreA != scoreB ? scoreA > scoreB : a < b;
    });
  pairs.resize(kept);
  return pairs;
}

/// Adds what is known of pairs of residues.
void ContactResult::AddValues(const std::vector<Pair>& pairs, vtkFieldData* data) const
{
  const auto n = static_cast<std::int64_t>(this->residues.size());
  const auto valueIn = [n](const std::vector<float>& values)
  { return [&values, n](const Pair& pair) { return values[pair.first * n + pair.second]; }; };
  const ListArrays arrays(pairs, data);
  arrays.Float(Protein::Evidence, valueIn(this->evidence.attention));
  if (!this->evidence.prediction.empty())
  {
    arrays.Float(Protein::Prediction, valueIn(this->evidence.prediction));
  }
  if (this->contacts)
  {
    const atlas::TrueContacts& known = *this->contacts;
    arrays
      .Float(Protein::Distance,
        [&](const Pair& pair) { return known.Distance(pair.first, pair.second); })
      .Int(Protein::Contact,
        [&](const Pair& pair)
        {
          return !known.IsKnown(pair.first, pair.second) ? -1
                 : known.Has(pair.first, pair.second)    ? 1
                                                         : 0;
        });
  }
  arrays.Int(Names::Query, [this](const Pair& pair) { return this->residues[pair.first]; })
    .Int(Names::Key, [this](const Pair& pair) { return this->residues[pair.second]; });
}

/// Adds that, and what pairs are called.
void ContactResult::AddPairs(const std::vector<Pair>& pairs, vtkFieldData* data) const
{
  this->AddValues(pairs, data);
  ListArrays(pairs, data)
    .Text(Names::QueryToken, [this](const Pair& pair) { return this->texts[pair.first]; })
    .Text(Names::KeyToken, [this](const Pair& pair) { return this->texts[pair.second]; })
    .Int(Protein::Separation, [](const Pair& pair) { return pair.second - pair.first; })
    .Text(Protein::Range,
      [](const Pair& pair)
      {
        const atlas::ContactRange range = atlas::RangeOf(pair.second - pair.first);
        return range == atlas::ContactRange::All
                 ? "Near"
                 : atlas::ContactRangeNames.at(static_cast<std::size_t>(range));
      });
}

void ContactResult::AddFields(vtkFieldData* fields) const
{
  if (this->placed)
  {
    AddField(fields, Protein::Residues, this->residues.size());
    AddField(fields, Protein::ResolvedResidues, this->placed->resolved);
    AddField(fields, Protein::SequenceIdentity, this->placed->Identity());
  }
}

/// Makes the part of the image that is asked for.
void ContactResult::MakeImage(int sequence, vtkInformation* info) const
{
  const auto n = static_cast<std::int64_t>(this->residues.size());
  std::vector<Pair> shown;
  for (const std::size_t point : BeginImage(info, n, n))
  {
    const auto number = static_cast<std::int64_t>(point);
    shown.emplace_back(number / n, number % n);
  }
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  this->AddValues(shown, data);
  data->SetActiveScalars(
    this->evidence.prediction.empty() ? Protein::Evidence : Protein::Prediction);
  vtkFieldData* fields = image->GetFieldData();
  AddSequence(sequence, this->text, fields);
  ListArrays(this->texts, fields).Text(Names::KeyToken).Text(Names::QueryToken);
  AddField(fields, Names::KeyTitle, "Residue");
  AddField(fields, Names::QueryTitle, "Residue");
  this->AddFields(fields);
  SetFormat(image, Protein::MapFormat);
}

void ContactResult::MakePairs(const std::vector<Pair>& pairs, vtkTable* table) const
{
  this->AddPairs(pairs, table->GetRowData());
  this->AddFields(table->GetFieldData());
  SetFormat(table, Protein::PairsFormat);
}

void ContactResult::MakeHeads(vtkTable* table) const
{
  using atlas::HeadContacts;
  const std::vector<HeadContacts>& heads = this->evidence.heads;
  const ListArrays arrays(heads, table->GetRowData());
  arrays.Int(Names::Layer, [](const HeadContacts& head) { return head.place.layer; })
    .Int(Names::Head, [](const HeadContacts& head) { return head.place.head; });
  if (this->predictor)
  {
    AddColumn<vtkDoubleArray>(table, Protein::ContactWeight, this->predictor->weights);
  }
  if (this->contacts)
  {
    arrays.Int(Protein::AttendedPairs, &HeadContacts::attended)
      .Double(Protein::ContactShare, &HeadContacts::ContactShare)
      .Double(Protein::AttentionShare, &HeadContacts::AttentionShare);
    for (std::size_t d = 0; d < atlas::PrecisionDivisors.size(); ++d)
    {
      arrays.Double(std::string(Protein::Precision) + " " + atlas::PrecisionNames.at(d),
        [d](const HeadContacts& head) { return head.precision.at(d).Share(); });
    }
  }
  this->AddFields(table->GetFieldData());
  SetFormat(table, Protein::HeadsFormat);
}

void ContactResult::MakePrecision(vtkTable* table) const
{
  if (!this->contacts)
  {
    return;
  }
  struct Row
  {
    const char* source;
    std::size_t range;
    std::size_t top;
    atlas::ContactPrecision precision;
  };
  std::vector<Row> rows;
  for (const auto& [source, scores] : { std::pair(Protein::Evidence, &this->evidence.attention),
         std::pair(Protein::Prediction, &this->evidence.prediction) })
  {
    for (std::size_t r = 0; !scores->empty() && r < atlas::ContactRangeNames.size(); ++r)
    {
      const auto precision =
        atlas::MeasurePrecision(*scores, *this->contacts, static_cast<atlas::ContactRange>(r));
      for (std::size_t d = 0; d < precision.size(); ++d)
      {
        rows.push_back({ source, r, d, precision.at(d) });
      }
    }
  }
  ListArrays(rows, table->GetRowData())
    .Text(Names::Source, &Row::source)
    .Text(Protein::Range, [](const Row& row) { return atlas::ContactRangeNames.at(row.range); })
    .Text(Protein::Top, [](const Row& row) { return atlas::PrecisionNames.at(row.top); })
    .Int(Names::Pairs, [](const Row& row) { return row.precision.pairs; })
    .Int(Protein::Contacts, [](const Row& row) { return row.precision.contacts; })
    .Double(Protein::Precision, [](const Row& row) { return row.precision.Share(); });
  this->AddFields(table->GetFieldData());
  SetFormat(table, Protein::PrecisionFormat);
}

void ContactResult::MakeLines(const std::vector<Pair>& pairs, vtkPolyData* output) const
{
  if (!this->contacts || !this->placed)
  {
    return;
  }
  const atlas::TrueContacts& known = *this->contacts;
  const std::vector<std::array<double, 3>>& places = this->placed->places;
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> lines;
  std::vector<Pair> drawn;
  for (const Pair& pair : pairs)
  {
    if (known.IsKnown(pair.first, pair.second))
    {
      const vtkIdType from = points->InsertNextPoint(places[pair.first].data());
      const vtkIdType to = points->InsertNextPoint(places[pair.second].data());
      lines->InsertNextCell({ from, to });
      drawn.push_back(pair);
    }
  }
  output->SetPoints(points);
  output->SetLines(lines);
  this->AddPairs(drawn, output->GetCellData());
  ListArrays(drawn, output->GetCellData())
    .Tuples(Names::MarkColor, [&known](const Pair& pair)
      { return known.Has(pair.first, pair.second) ? HitColor : MissColor; });
  CacheRanges(output->GetCellData());
  AddMarkLegend(
    "Strongest pairs", { { HitColor, "in contact" }, { MissColor, "not in contact" } }, { output });
  this->AddFields(output->GetFieldData());
  SetFormat(output, Protein::LinesFormat);
}

}
