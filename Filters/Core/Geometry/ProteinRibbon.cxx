#include "ProteinRibbon.h"

#include "Base/Pi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace atlas
{
namespace
{

using Vector = std::array<double, 3>;
using Kind = BackboneKind;

/// Sides of the surface, and rings from a residue to the next.
constexpr int Sides = 12;
constexpr int Rings = 8;
/// Neighbors are 3.8 Angstrom apart, rarely 2.9.
constexpr double Farthest = 5;
constexpr double Reach = 3.8;
/// Half of the width and thickness of coils, and of ribbons; that of an arrow where it begins.
constexpr double TubeRadius = 0.3;
constexpr double RibbonWidth = 1.2;
constexpr double RibbonThickness = 0.22;
constexpr double ArrowWidth = 1.9;
/// Dashes: their radius, and the length from one to the next, of which half is empty.
constexpr double DashRadius = 0.15;
constexpr double DashLength = 1.6;

Vector Sum(const Vector& a, const Vector& b, double factor = 1)
{
  return { a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2] };
}

double Dot(const Vector& a, const Vector& b)
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

double Distance(const Vector& a, const Vector& b)
{
  const Vector between = Sum(a, b, -1);
  return std::sqrt(Dot(between, between));
}

Vector Cross(const Vector& a, const Vector& b)
{
  return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

/// A vector of length 1 in this direction; that of `other` without one.
Vector Unit(const Vector& a, const Vector& other)
{
  const double length = std::sqrt(Dot(a, a));
  return length > 1e-6 ? Vector{ a[0] / length, a[1] / length, a[2] / length } : other;
}

/// A vector of length 1 at a right angle to another one of length 1, near `wanted`.
Vector Across(const Vector& along, const Vector& wanted)
{
  const Vector axis = std::abs(along[0]) < 0.8 ? Vector{ 1, 0, 0 } : Vector{ 0, 1, 0 };
  const Vector any = Unit(Sum(axis, along, -Dot(axis, along)), axis);
  return Unit(Sum(wanted, along, -Dot(wanted, along)), any);
}

/// Whether five places have the distances of a kind.
bool HasDistances(const Vector* middle, const std::array<double, 3>& expected, double tolerance)
{
  for (const auto& [from, to] : { std::pair(-2, 2), std::pair(-2, 1), std::pair(-1, 2),
         std::pair(-2, 0), std::pair(-1, 1), std::pair(0, 2) })
  {
    const double distance = Distance(middle[from], middle[to]);
    if (!(std::abs(distance - expected.at(4 - (to - from))) < tolerance))
    {
      return false;
    }
  }
  return true;
}

/// Turns runs of a kind that are shorter than this into coils.
void DropShort(std::vector<Kind>& kinds, Kind kind, std::ptrdiff_t shortest)
{
  for (auto begin = kinds.begin(); begin != kinds.end();)
  {
    const auto end =
      std::find_if(begin, kinds.end(), [begin](Kind other) { return other != *begin; });
    if (*begin == kind && end - begin < shortest)
    {
      std::fill(begin, end, Kind::Coil);
    }
    begin = end;
  }
}

/// A residue of a strand: its piece, its place there, and where it is.
struct StrandResidue
{
  std::size_t piece;
  std::size_t place;
  Vector position;
};

/// Finds residues of strands in boxes of space.
class StrandPartners
{
public:
  void Add(const StrandResidue& residue)
  {
    this->Boxes[BoxOf(residue.position, { 0, 0, 0 })].push_back(residue);
  }

  /// Whether another strand, or another part of this one, is beside a residue.
  bool Has(const StrandResidue& residue) const
  {
    for (int box = 0; box < 27; ++box)
    {
      const auto found =
        this->Boxes.find(BoxOf(residue.position, { box % 3 - 1, box / 3 % 3 - 1, box / 9 - 1 }));
      if (found != this->Boxes.end() &&
          std::any_of(found->second.begin(), found->second.end(),
            [&](const StrandResidue& other) { return AreBeside(residue, other); }))
      {
        return true;
      }
    }
    return false;
  }

private:
  static constexpr double Near = 5.2;
  using Box = std::array<double, 3>;
  std::map<Box, std::vector<StrandResidue>> Boxes;

  static Box BoxOf(const Vector& position, const std::array<int, 3>& step)
  {
    Box box;
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      box.at(axis) = std::floor(position.at(axis) / Near) + step.at(axis);
    }
    return box;
  }

  static bool AreBeside(const StrandResidue& a, const StrandResidue& b)
  {
    const std::size_t apart = a.place < b.place ? b.place - a.place : a.place - b.place;
    return (a.piece != b.piece || apart > 2) && Distance(a.position, b.position) < Near;
  }
};

/// Leaves strands only beside others.
void RequirePartners(
  const std::vector<std::vector<Vector>>& pieces, std::vector<std::vector<Kind>>& kinds)
{
  StrandPartners partners;
  const auto visit = [&](const auto& function)
  {
    for (std::size_t p = 0; p < pieces.size(); ++p)
    {
      for (std::size_t i = 0; i < pieces[p].size(); ++i)
      {
        if (kinds[p][i] == Kind::Strand)
        {
          function(StrandResidue{ p, i, pieces[p][i] });
        }
      }
    }
  };
  visit([&](const StrandResidue& residue) { partners.Add(residue); });
  std::vector<std::vector<Kind>> kept;
  kept.reserve(kinds.size());
  for (const std::vector<Kind>& piece : kinds)
  {
    kept.emplace_back(piece.size(), Kind::Coil);
  }
  visit(
    [&](const StrandResidue& residue)
    {
      if (partners.Has(residue))
      {
        const std::size_t last = std::min(residue.place + 1, pieces[residue.piece].size() - 1);
        for (std::size_t i = residue.place - std::min<std::size_t>(residue.place, 1); i <= last;
          ++i)
        {
          kept[residue.piece][i] = kinds[residue.piece][i];
        }
      }
    });
  for (std::size_t p = 0; p < pieces.size(); ++p)
  {
    for (std::size_t i = 0; i < pieces[p].size(); ++i)
    {
      kinds[p][i] = kinds[p][i] == Kind::Strand ? kept[p][i] : kinds[p][i];
    }
  }
}

/// A cross section of the surface.
struct Section
{
  Vector center;
  Vector along; ///< of length 1, as the next one
  Vector wide;
  double width = 0;
  double thickness = 0;
  std::int64_t atom = -1;
  Kind kind = Kind::Coil;
};

/// A residue: where its ribbon goes through, in which direction that is wide, and how wide.
struct Node
{
  Vector center;
  Vector wide;
  double width = TubeRadius;
  double thickness = TubeRadius;
};

class RibbonMaker
{
public:
  ProteinRibbon Made;

  void AddAtom(std::int64_t atom, const Vector& position, Kind kind)
  {
    this->AddPoint(position, { 0, 0, 0 }, atom, kind);
  }

  /// Adds an unbroken stretch of a chain. `atoms`: the numbers of its residues' atoms.
  void AddPiece(
    std::vector<Vector> places, std::vector<std::int64_t> atoms, std::vector<Kind> kinds)
  {
    if (places.size() == 1) // seen as a short tube
    {
      places.push_back(Sum(places[0], { TubeRadius, 0, 0 }));
      places[0] = Sum(places[0], { -TubeRadius, 0, 0 });
      atoms.push_back(atoms[0]);
      kinds.push_back(kinds[0]);
    }
    const std::vector<Node> nodes = NodesOf(places, kinds);
    std::vector<Section> sections;
    const auto last = nodes.size() - 1;
    for (std::size_t i = 0; i < last; ++i)
    {
      const bool isArrow = kinds[i] == Kind::Strand && kinds[i + 1] == Kind::Strand &&
                           (i + 1 == last || kinds[i + 2] != Kind::Strand);
      const Vector& before = nodes[i == 0 ? 0 : i - 1].center;
      const Vector& after = nodes[std::min(i + 2, last)].center;
      for (int ring = 0; ring < Rings + (i + 1 == last ? 1 : 0); ++ring)
      {
        const double u = static_cast<double>(ring) / Rings;
        const std::size_t owner = u < 0.5 ? i : i + 1;
        Section section = SectionAt(before, nodes[i], nodes[i + 1], after, u);
        section.atom = atoms[owner];
        section.kind = kinds[owner];
        if (isArrow)
        {
          if (ring == 0)
          {
            sections.push_back(section); // the flat end of the strand
          }
          section.width = ArrowWidth + (TubeRadius - ArrowWidth) * u;
        }
        sections.push_back(section);
      }
    }
    this->AddTube(sections);
  }

  /// Adds dashes from one place to another.
  void AddDashes(const Vector& from, const Vector& to)
  {
    const Vector along = Unit(Sum(to, from, -1), { 1, 0, 0 });
    const int count = std::max(1, static_cast<int>(std::lround(Distance(from, to) / DashLength)));
    for (int dash = 0; dash < count; ++dash)
    {
      std::vector<Section> sections;
      for (const double end : { 0.25, 0.75 })
      {
        Section section;
        section.center = Sum(from, Sum(to, from, -1), (dash + end) / count);
        section.along = along;
        section.wide = Across(along, { 0, 0, 1 });
        section.width = section.thickness = DashRadius;
        sections.push_back(section);
      }
      this->AddTube(sections);
    }
  }

private:
  void AddPoint(const Vector& position, const Vector& normal, std::int64_t atom, Kind kind)
  {
    this->Made.points.push_back(position);
    this->Made.normals.push_back({ static_cast<float>(normal[0]), static_cast<float>(normal[1]),
      static_cast<float>(normal[2]) });
    this->Made.atoms.push_back(atom);
    this->Made.kinds.push_back(kind);
  }

  static std::vector<Node> NodesOf(
    const std::vector<Vector>& places, const std::vector<Kind>& kinds)
  {
    const std::size_t n = places.size();
    std::vector<Node> nodes(n);
    for (std::size_t i = 0; i < n; ++i)
    {
      Node& node = nodes[i];
      node.center = places[i];
      const std::size_t middle = n < 3 ? i : std::clamp<std::size_t>(i, 1, n - 2);
      const Vector& before = places[middle == 0 ? 0 : middle - 1];
      const Vector& after = places[std::min(middle + 1, n - 1)];
      const Vector along = Unit(Sum(after, before, -1), { 1, 0, 0 });
      // Toward the axis of a helix, and up and down in a sheet.
      const Vector bent = Sum(Sum(before, after), places[middle], -2);
      node.wide = Across(along, Cross(along, bent));
      if (i > 0 && Dot(node.wide, nodes[i - 1].wide) < 0)
      {
        node.wide = { -node.wide[0], -node.wide[1], -node.wide[2] };
      }
      const bool isLastOfStrand =
        kinds[i] == Kind::Strand && (i + 1 == n || kinds[i + 1] != Kind::Strand);
      if (kinds[i] != Kind::Coil && !isLastOfStrand)
      {
        node.width = RibbonWidth;
        node.thickness = RibbonThickness;
      }
    }
    const std::vector<Node> rough = nodes;
    for (std::size_t i = 1; i + 1 < n; ++i) // strands are pleated, their ribbons are not
    {
      if (kinds[i - 1] == Kind::Strand && kinds[i] == Kind::Strand && kinds[i + 1] == Kind::Strand)
      {
        const auto mean = [](const Vector& before, const Vector& own, const Vector& after)
        { return Sum(Sum({ 0, 0, 0 }, Sum(before, after), 0.25), own, 0.5); };
        nodes[i].center = mean(rough[i - 1].center, rough[i].center, rough[i + 1].center);
        nodes[i].wide =
          Unit(mean(rough[i - 1].wide, rough[i].wide, rough[i + 1].wide), rough[i].wide);
      }
    }
    return nodes;
  }

  /// The cross section at u, from 0 to 1, from a node to the next, on a curve of Catmull and Rom.
  static Section SectionAt(
    const Vector& before, const Node& from, const Node& to, const Vector& after, double u)
  {
    Section section;
    Vector slope;
    Vector wide;
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      const double p0 = before.at(axis);
      const double p1 = from.center.at(axis);
      const double p2 = to.center.at(axis);
      const double p3 = after.at(axis);
      const double a = -p0 + 3 * p1 - 3 * p2 + p3;
      const double b = 2 * p0 - 5 * p1 + 4 * p2 - p3;
      const double c = p2 - p0;
      section.center.at(axis) = p1 + 0.5 * u * (c + u * (b + u * a));
      slope.at(axis) = c + u * (2 * b + u * 3 * a);
      wide.at(axis) = (1 - u) * from.wide.at(axis) + u * to.wide.at(axis);
    }
    section.along = Unit(slope, Unit(Sum(to.center, from.center, -1), { 1, 0, 0 }));
    section.wide = Across(section.along, wide);
    const double share = u * u * (3 - 2 * u);
    section.width = (1 - share) * from.width + share * to.width;
    section.thickness = (1 - share) * from.thickness + share * to.thickness;
    return section;
  }

  /// Adds the points of a cross section; `end`: -1 or 1 for a flat one at the begin or end, else 0.
  std::int64_t AddRing(const Section& section, int end)
  {
    const auto first = static_cast<std::int64_t>(this->Made.points.size());
    const Vector thick = Cross(section.along, section.wide);
    for (int side = 0; side < Sides; ++side)
    {
      const double angle = 2 * Pi * side / Sides;
      const double x = std::cos(angle);
      const double y = std::sin(angle);
      const Vector point =
        Sum(Sum(section.center, section.wide, x * section.width), thick, y * section.thickness);
      const Vector outward =
        Sum(Sum({ 0, 0, 0 }, section.wide, x / section.width), thick, y / section.thickness);
      const Vector normal =
        end == 0 ? Unit(outward, section.wide) : Sum({ 0, 0, 0 }, section.along, end);
      this->AddPoint(point, normal, section.atom, section.kind);
    }
    return first;
  }

  void AddTube(const std::vector<Section>& sections)
  {
    std::vector<std::array<std::int64_t, 3>>& triangles = this->Made.triangles;
    for (const int end : { -1, 1 })
    {
      const std::int64_t first = this->AddRing(end < 0 ? sections.front() : sections.back(), end);
      for (std::int64_t side = 1; side + 1 < Sides; ++side)
      {
        const std::int64_t a = first + side + (end < 0 ? 1 : 0);
        triangles.push_back({ first, a, 2 * first + 2 * side + 1 - a });
      }
    }
    std::int64_t before = -1;
    for (const Section& section : sections)
    {
      const std::int64_t ring = this->AddRing(section, 0);
      for (int side = 0; before >= 0 && side < Sides; ++side)
      {
        const int next = (side + 1) % Sides;
        triangles.push_back({ before + side, before + next, ring + side });
        triangles.push_back({ before + next, ring + next, ring + side });
      }
      before = ring;
    }
  }
};

/// A stretch of a chain.
struct Piece
{
  std::vector<Vector> places;
  std::vector<std::int64_t> atoms;
  std::int64_t missing = -1; ///< residues between the piece before and this one; -1: none before
};

/// The stretches of all chains, in the order of their first atoms.
std::vector<Piece> PiecesOf(const Structure& structure)
{
  const std::vector<StructureAtom>& atoms = structure.atoms;
  const auto isOne = [](const StructureAtom& atom)
  { return atom.sequence > 0 && atom.name == "CA"; };
  std::int32_t model = std::numeric_limits<std::int32_t>::max();
  for (const StructureAtom& atom : atoms)
  {
    model = isOne(atom) ? std::min(model, atom.model) : model;
  }
  std::map<std::string, std::size_t> numbers; // of chains
  std::map<std::pair<std::size_t, std::int32_t>, std::int64_t> residues;
  for (std::size_t i = 0; i < atoms.size(); ++i)
  {
    if (isOne(atoms[i]) && atoms[i].model == model)
    {
      const std::size_t chain = numbers.try_emplace(atoms[i].chain, numbers.size()).first->second;
      residues.try_emplace({ chain, atoms[i].sequence }, static_cast<std::int64_t>(i));
    }
  }
  std::vector<Piece> pieces;
  const StructureAtom* last = nullptr;
  for (const auto& residue : residues)
  {
    const StructureAtom& atom = atoms[residue.second];
    const bool isSameChain = last != nullptr && last->chain == atom.chain;
    if (!isSameChain || last->sequence + 1 != atom.sequence ||
        Distance(last->position, atom.position) > Farthest)
    {
      pieces.emplace_back();
      pieces.back().missing = isSameChain ? atom.sequence - last->sequence - 1 : -1;
    }
    pieces.back().places.push_back(atom.position);
    pieces.back().atoms.push_back(residue.second);
    last = &atom;
  }
  return pieces;
}

}

std::vector<std::vector<BackboneKind>> FindBackboneKinds(
  const std::vector<std::vector<std::array<double, 3>>>& pieces)
{
  // Of residues that are 4, 3 and 2 apart.
  constexpr Vector ofHelix = { 6.37, 5.18, 5.45 };
  constexpr Vector ofStrand = { 13, 10.4, 6.1 };
  std::vector<std::vector<Kind>> kinds;
  for (const std::vector<Vector>& piece : pieces)
  {
    std::vector<Kind>& found = kinds.emplace_back(piece.size(), Kind::Coil);
    for (const bool isHelix : { false, true }) // helices count where both are possible
    {
      for (std::size_t i = 2; i + 2 < piece.size(); ++i)
      {
        if (HasDistances(&piece[i], isHelix ? ofHelix : ofStrand, isHelix ? 1.3 : 1.42))
        {
          std::fill_n(&found[i - 1], 3, isHelix ? Kind::Helix : Kind::Strand);
        }
      }
    }
  }
  RequirePartners(pieces, kinds);
  for (std::vector<Kind>& piece : kinds)
  {
    DropShort(piece, Kind::Helix, 5);
    DropShort(piece, Kind::Strand, 3);
  }
  return kinds;
}

ProteinRibbon MakeRibbon(const Structure& structure)
{
  const std::vector<Piece> pieces = PiecesOf(structure);
  std::vector<std::vector<Vector>> places;
  places.reserve(pieces.size());
  for (const Piece& piece : pieces)
  {
    places.push_back(piece.places);
  }
  const std::vector<std::vector<Kind>> kinds = FindBackboneKinds(places);
  RibbonMaker maker;
  for (std::size_t p = 0; p < pieces.size(); ++p)
  {
    for (std::size_t i = 0; i < places[p].size(); ++i)
    {
      maker.AddAtom(pieces[p].atoms[i], places[p][i], kinds[p][i]);
    }
  }
  for (std::size_t p = 0; p < pieces.size(); ++p)
  {
    if (pieces[p].missing > 0 && Distance(places[p - 1].back(), places[p].front()) <=
                                   Reach * static_cast<double>(pieces[p].missing + 1))
    {
      maker.AddDashes(places[p - 1].back(), places[p].front());
    }
    maker.AddPiece(places[p], pieces[p].atoms, kinds[p]);
  }
  return maker.Made;
}

}
