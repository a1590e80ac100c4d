#include "ChosenPlaces.h"

#include "Base/Error.h"
#include "Execution.h"
#include "RankGroup.h"

#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkExtractSelection.h>
#include <vtkInformation.h>
#include <vtkMultiProcessController.h>
#include <vtkNew.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>

namespace AttentionAtlas
{
namespace
{

/// Adds the sums of all ranks.
void AddRanks(atlas::PlaceSums& sums, const RankGroup& ranks)
{
  if (ranks.Count() == 1)
  {
    return;
  }
  const std::size_t count = sums.Numbers().size();
  const std::vector<std::int64_t> all = ranks.Gather(sums.Numbers());
  for (int rank = 0; rank < ranks.Count(); ++rank)
  {
    if (rank != ranks.Rank())
    {
      sums.AddNumbers(all.data() + static_cast<std::size_t>(rank) * count);
    }
  }
}

/// The part of a selection that is of this rank, of the points or cells that are bound.
vtkSmartPointer<vtkSelection> OwnSelection(vtkSelection* selection, int association)
{
  auto own = vtkSmartPointer<vtkSelection>::New();
  own->DeepCopy(selection);
  auto* controller = vtkMultiProcessController::GetGlobalController();
  const int rank = controller != nullptr ? controller->GetLocalProcessId() : 0;
  for (unsigned int i = own->GetNumberOfNodes(); i-- > 0;)
  {
    vtkSelectionNode* node = own->GetNode(i);
    vtkInformation* properties = node->GetProperties();
    if (properties->Has(vtkSelectionNode::PROCESS_ID()) &&
        properties->Get(vtkSelectionNode::PROCESS_ID()) >= 0 &&
        properties->Get(vtkSelectionNode::PROCESS_ID()) != rank)
    {
      own->RemoveNode(i);
    }
    else if (node->GetFieldType() == vtkSelectionNode::POINT && association == vtkDataObject::CELL)
    {
      properties->Set(vtkSelectionNode::CONTAINING_CELLS(), 1);
    }
  }
  return own;
}

/// The numbers of the places that were extracted of a mesh, in ascending order.
std::vector<std::int64_t> OriginalPlaces(vtkDataObject* extracted, int association)
{
  auto* part = vtkDataSet::SafeDownCast(extracted);
  vtkDataArray* ids = part != nullptr
                        ? AttributesOf(part, association)
                            ->GetArray(association == vtkDataObject::POINT ? "vtkOriginalPointIds"
                                                                           : "vtkOriginalCellIds")
                        : nullptr;
  std::vector<std::int64_t> places;
  for (vtkIdType i = 0; ids != nullptr && i < ids->GetNumberOfTuples(); ++i)
  {
    places.push_back(static_cast<std::int64_t>(ids->GetComponent(i, 0)));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

/// The extracted parts of the meshes of an input, in the order of CopyMeshes.
std::vector<vtkDataObject*> PartsOf(vtkDataObject* input, vtkDataObject* extracted)
{
  auto* composite = vtkCompositeDataSet::SafeDownCast(input);
  auto* others = vtkCompositeDataSet::SafeDownCast(extracted);
  if (composite == nullptr)
  {
    return { extracted };
  }
  std::vector<vtkDataObject*> parts;
  const auto blocks = vtkSmartPointer<vtkCompositeDataIterator>::Take(composite->NewIterator());
  for (blocks->InitTraversal(); !blocks->IsDoneWithTraversal(); blocks->GoToNextItem())
  {
    if (vtkDataSet::SafeDownCast(blocks->GetCurrentDataObject()) != nullptr)
    {
      parts.push_back(others != nullptr ? others->GetDataSet(blocks) : nullptr);
    }
  }
  return parts;
}

/// A place, by its distance from a position.
struct Candidate
{
  double distance = std::numeric_limits<double>::infinity();
  std::array<double, 3> position = { 0, 0, 0 };
  std::int64_t rank = -1; ///< none: there is no place
  std::int64_t mesh = 0;
  std::int64_t place = 0;

  bool operator<(const Candidate& other) const
  {
    const auto key = [](const Candidate& one)
    { return std::tie(one.distance, one.position, one.rank, one.mesh, one.place); };
    return this->rank >= 0 && (other.rank < 0 || key(*this) < key(other));
  }
};

Candidate NearestOf(
  const BoundMesh& mesh, const std::array<double, 3>& position, const Candidate& like)
{
  Candidate best;
  std::mutex mutex;
  ParallelFor(0, mesh.places.count,
    [&](vtkIdType begin, vtkIdType end)
    {
      Candidate mine;
      Candidate other = like;
      for (vtkIdType place = begin; place < end; ++place)
      {
        mesh.positionOf(place, other.position.data());
        const double x = other.position[0] - position[0];
        const double y = other.position[1] - position[1];
        const double z = other.position[2] - position[2];
        other.distance = x * x + y * y + z * z;
        other.place = place;
        if (other.distance <= mine.distance && !mesh.IsGhost(place) && other < mine)
        {
          mine = other;
        }
      }
      const std::lock_guard<std::mutex> lock(mutex);
      best = std::min(best, mine);
    });
  return best;
}

}

BoundMeshes BindMeshes(const std::vector<TokenMesh>& meshes, const Binding& binding,
  std::int64_t tokens, const RankGroup& ranks, const atlas::Progress& progress)
{
  const int threads = ThreadLimit();
  // As long as a mesh takes: centers of cells, checks and sums.
  constexpr double centersEnd = 0.3;
  const atlas::Progress checks = progress.Part(0, 0.5);
  const atlas::Progress additions = progress.Part(0.5, 1);
  std::vector<BoundMesh> bound;
  atlas::PlaceLimits mine;
  for (std::size_t i = 0; i < meshes.size(); ++i)
  {
    const TokenMesh& mesh = meshes[i];
    const atlas::Progress ofMesh = checks.Part(i, i + 1, meshes.size());
    bound.push_back({ PlacesOf(mesh, binding),
      PositionsOf(mesh.input, binding.association, ofMesh.Part(0, centersEnd)),
      GhostsOf(mesh.input, binding.association) });
    mine.Add(atlas::CheckPlaces(bound.back().places, bound.back().positionOf, tokens, mesh.name,
      threads, ofMesh.Part(centersEnd, 1)));
  }
  atlas::PlaceLimits limits;
  for (const atlas::PlaceLimits& other : ranks.Gather(std::vector{ mine }))
  {
    limits.Add(other);
  }
  atlas::PlaceSums sums(tokens, limits);
  for (std::size_t i = 0; i < bound.size(); ++i)
  {
    const BoundMesh& mesh = bound[i];
    sums.Add(mesh.places, mesh.positionOf, mesh.ghosts.empty() ? nullptr : mesh.ghosts.data(),
      threads, additions.Part(i, i + 1, bound.size()));
  }
  AddRanks(sums, ranks);
  return { std::move(bound), limits, std::move(sums) };
}

atlas::PlaceSums SumSelected(const std::vector<TokenMesh>& meshes, const Binding& binding,
  const BoundMeshes& bound, vtkDataObject* input, vtkSelection* selection, const RankGroup& ranks)
{
  atlas::PlaceSums sums(bound.sums.TokenCount(), bound.limits);
  const auto own = OwnSelection(selection, binding.association);
  if (!meshes.empty() && own->GetNumberOfNodes() > 0)
  {
    vtkNew<vtkExtractSelection> extract;
    extract->SetInputDataObject(0, input);
    extract->SetInputDataObject(1, own);
    extract->Update();
    const std::vector<vtkDataObject*> parts = PartsOf(input, extract->GetOutputDataObject(0));
    for (std::size_t i = 0; i < parts.size(); ++i)
    {
      const BoundMesh& mesh = bound.meshes[i];
      std::vector<std::int64_t> places = OriginalPlaces(parts[i], binding.association);
      places.erase(std::remove_if(places.begin(), places.end(),
                     [&mesh](std::int64_t place) { return mesh.IsGhost(place); }),
        places.end());
      sums.Add(mesh.places, mesh.positionOf, places);
    }
  }
  AddRanks(sums, ranks);
  return sums;
}

atlas::PlaceSums SumNearest(
  const BoundMeshes& bound, const std::array<double, 3>& position, const RankGroup& ranks)
{
  for (const double x : position)
  {
    atlas::ThrowIf<atlas::OptionError>(
      !std::isfinite(x), "Probe: expected finite numbers, found ", x, ".");
  }
  Candidate mine;
  for (std::size_t i = 0; i < bound.meshes.size(); ++i)
  {
    Candidate like;
    like.rank = ranks.Rank();
    like.mesh = static_cast<std::int64_t>(i);
    mine = std::min(mine, NearestOf(bound.meshes[i], position, like));
  }
  const std::vector<Candidate> all = ranks.Gather(std::vector{ mine });
  const Candidate best = *std::min_element(all.begin(), all.end());
  atlas::PlaceSums sums(bound.sums.TokenCount(), bound.limits);
  if (best.rank == ranks.Rank())
  {
    const BoundMesh& mesh = bound.meshes[best.mesh];
    sums.Add(mesh.places, mesh.positionOf, std::vector{ best.place });
  }
  AddRanks(sums, ranks);
  return sums;
}

}
