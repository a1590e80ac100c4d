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
#include <vtkMath.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

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

std::vector<atlas::ResidueAtom> ResidueAtomsOf(vtkDataSet* structure, const std::string& sites)
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
  vtkDataArray* marks =
    sites.empty() ? nullptr : structure->GetPointData()->GetArray(sites.c_str());
  atlas::ThrowIf<atlas::OptionError>(!sites.empty() && marks == nullptr,
    "SiteArray: expected a point array of numbers of the structure, found '", sites, "'.");
  const auto numberOf = [](vtkDataArray* array, vtkIdType i)
  { return static_cast<std::int32_t>(array->GetComponent(i, 0)); };
  for (vtkIdType i = 0; i < structure->GetNumberOfPoints(); ++i)
  {
    const std::string& name = atomNames->GetValue(i);
    atlas::ResidueAtom atom;
    atom.place = numberOf(places, i);
    atom.isSite = marks != nullptr && std::abs(marks->GetComponent(i, 0)) > 0;
    atom.isOther = name != "CA" && name != "CB";
    if (atom.place < 1 || (atom.isOther && !atom.isSite))
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
  if (this->placed || !this->sites.empty())
  {
    AddField(fields, Protein::Residues, this->residues.size());
  }
  if (this->placed)
  {
    AddField(fields, Protein::ResolvedResidues, this->placed->resolved);
    AddField(fields, Protein::SequenceIdentity, this->placed->Identity());
  }
  if (!this->sites.empty())
  {
    AddField(
      fields, Protein::SiteResidues, std::count(this->sites.begin(), this->sites.end(), true));
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

/// What is known of the recorded heads.
std::vector<ContactResult::HeadColumn> ContactResult::HeadColumns() const
{
  using atlas::HeadContacts;
  std::vector<HeadColumn> columns;
  const auto add = [&](const std::string& name, const auto& valueOf)
  {
    columns.push_back({ name, {} });
    std::transform(this->evidence.heads.begin(), this->evidence.heads.end(),
      std::back_inserter(columns.back().values), valueOf);
  };
  if (this->predictor)
  {
    columns.push_back({ Protein::ContactWeight, this->predictor->weights });
  }
  if (this->contacts)
  {
    add(Protein::AttendedPairs,
      [](const HeadContacts& head) { return static_cast<double>(head.contacts.attended); });
    columns.back().isCount = true;
    add(Protein::ContactShare, [](const HeadContacts& head) { return head.contacts.OfPairs(); });
    add(Protein::AttentionShare,
      [](const HeadContacts& head) { return head.contacts.OfAttention(); });
    for (std::size_t d = 0; d < atlas::PrecisionDivisors.size(); ++d)
    {
      add(std::string(Protein::Precision) + " " + atlas::PrecisionNames.at(d),
        [d](const HeadContacts& head) { return head.precision.at(d).Share(); });
    }
  }
  if (!this->sites.empty())
  {
    add(Protein::SiteShare, [](const HeadContacts& head) { return head.sites.OfPairs(); });
    add(Protein::SiteAttentionShare,
      [](const HeadContacts& head) { return head.sites.OfAttention(); });
  }
  return columns;
}

void ContactResult::MakeHeads(vtkTable* table) const
{
  using atlas::HeadContacts;
  ListArrays(this->evidence.heads, table->GetRowData())
    .Int(Names::Layer, [](const HeadContacts& head) { return head.place.layer; })
    .Int(Names::Head, [](const HeadContacts& head) { return head.place.head; });
  for (const HeadColumn& column : this->HeadColumns())
  {
    if (column.isCount)
    {
      ListArrays(column.values, table->GetRowData())
        .Int(column.name, [](double count) { return static_cast<int>(count); });
    }
    else
    {
      AddColumn<vtkDoubleArray>(table, column.name, column.values);
    }
  }
  this->AddFields(table->GetFieldData());
  SetFormat(table, Protein::HeadsFormat);
}

/// Makes the part of the map of layers by heads that is asked for.
void ContactResult::MakeHeadMap(vtkInformation* info) const
{
  std::map<std::int32_t, std::int64_t> rows; // of layers
  std::int64_t columns = 0;
  for (const atlas::HeadContacts& head : this->evidence.heads)
  {
    rows.emplace(head.place.layer, 0);
    columns = std::max<std::int64_t>(columns, head.place.head + 1);
  }
  std::vector<std::int32_t> layers;
  for (auto& [layer, row] : rows)
  {
    row = static_cast<std::int64_t>(layers.size());
    layers.push_back(layer);
  }
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> heads(layers.size() * columns, none);
  for (std::size_t h = 0; h < this->evidence.heads.size(); ++h)
  {
    const atlas::HeadPlace& place = this->evidence.heads[h].place;
    heads[rows[place.layer] * columns + place.head] = h;
  }
  const std::vector<std::size_t> shown =
    BeginImage(info, columns, static_cast<std::int64_t>(layers.size()));
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  ListArrays(shown, data)
    .Int(Names::Layer, [&](std::size_t point) { return layers[point / columns]; })
    .Int(Names::Head, [&](std::size_t point) { return point % columns; });
  for (const HeadColumn& column : this->HeadColumns())
  {
    data->AddArray(MakeArray<vtkDoubleArray>(column.name, shown,
      [&](std::size_t point)
      {
        return heads[point] == none ? std::numeric_limits<double>::quiet_NaN()
                                    : column.values[heads[point]];
      }));
  }
  for (const char* name :
    { Names::Layer, Protein::ContactWeight, Protein::SiteAttentionShare, Protein::AttentionShare })
  {
    if (data->HasArray(name) != 0) // the last counts
    {
      data->SetActiveScalars(name);
    }
  }
  vtkFieldData* fields = image->GetFieldData();
  std::vector<std::int64_t> numbers(columns);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto nameOf = [](std::int64_t number) { return std::to_string(number); };
  ListArrays(numbers, fields).Text(Names::KeyToken, nameOf);
  ListArrays(layers, fields).Text(Names::QueryToken, nameOf);
  AddField(fields, Names::QueryTitle, Names::Layer);
  AddField(fields, Names::KeyTitle, Names::Head);
  this->AddFields(fields);
  SetFormat(image, Protein::HeadMapFormat);
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

namespace
{

using Place = std::array<double, 3>;

/// The points of a line between two atoms whose middle is moved away from the center of the
/// structure, by this part of its length: a parabola, or two points.
std::vector<Place> BentLine(const Place& from, const Place& to, const Place& center, double bend)
{
  if (!(bend > 0))
  {
    return { from, to };
  }
  Place along;
  Place outward;
  for (int axis = 0; axis < 3; ++axis)
  {
    along[axis] = to[axis] - from[axis];
    outward[axis] = (from[axis] + to[axis]) / 2 - center[axis];
  }
  const double length = vtkMath::Norm(along.data());
  if (!(length > 0))
  {
    return { from, to };
  }
  const double part = vtkMath::Dot(outward.data(), along.data()) / length / length;
  for (int axis = 0; axis < 3; ++axis)
  {
    outward[axis] -= part * along[axis];
  }
  if (vtkMath::Normalize(outward.data()) <= 1e-6 * length) // through the center: any side
  {
    Place other;
    vtkMath::Perpendiculars(along.data(), outward.data(), other.data(), 0);
  }
  constexpr int segments = 16;
  std::vector<Place> points(segments + 1);
  for (int i = 0; i <= segments; ++i)
  {
    const double t = static_cast<double>(i) / segments;
    for (int axis = 0; axis < 3; ++axis)
    {
      points[i][axis] =
        from[axis] + t * along[axis] + 4 * t * (1 - t) * bend * length * outward[axis];
    }
  }
  return points;
}

/// The mean of the places that are known.
Place CenterOf(const std::vector<Place>& places)
{
  Place center = { 0, 0, 0 };
  double count = 0;
  for (const Place& place : places)
  {
    if (!std::isnan(place[0]))
    {
      ++count;
      vtkMath::Add(center.data(), place.data(), center.data());
    }
  }
  vtkMath::MultiplyScalar(center.data(), 1 / std::max(count, 1.0));
  return center;
}

}

void ContactResult::MakeLines(
  const std::vector<Pair>& pairs, double bend, vtkPolyData* output) const
{
  if (!this->contacts || !this->placed)
  {
    return;
  }
  const atlas::TrueContacts& known = *this->contacts;
  const std::vector<Place>& places = this->placed->places;
  const Place center = CenterOf(places);
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> lines;
  std::vector<Pair> drawn;
  for (const Pair& pair : pairs)
  {
    if (known.IsKnown(pair.first, pair.second))
    {
      lines->InsertNextCell(0);
      int count = 0;
      for (const Place& place : BentLine(places[pair.first], places[pair.second], center, bend))
      {
        lines->InsertCellPoint(points->InsertNextPoint(place.data()));
        lines->UpdateCellCount(++count);
      }
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
  vtkFieldData* fields = output->GetFieldData();
  this->AddFields(fields);
  AddField(fields, StructureArrays::Chain, this->placed->chain);
  ListArrays(this->placed->numbers, fields).Int(StructureArrays::Sequence);
  ListArrays(this->residues, fields).Int(Names::Position);
  if (!this->sites.empty())
  {
    ListArrays(this->sites, fields).Int(Protein::Site);
  }
  SetFormat(output, Protein::LinesFormat);
}

}
