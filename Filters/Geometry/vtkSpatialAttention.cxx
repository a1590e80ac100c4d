#include "vtkSpatialAttention.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Error.h"
#include "ChosenPlaces.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Geometry/SpatialAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "SpatialOutput.h"
#include "Task.h"
#include "TitleFields.h"
#include "TokenMeshes.h"

#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// The quantities of this filter, in the order of QuantityType.
constexpr std::array<atlas::AttentionQuantity, 3> Quantities = { atlas::AttentionQuantity::Weights,
  atlas::AttentionQuantity::NormWeighted, atlas::AttentionQuantity::Rollout };

/// How much of the work is done when all places are added up.
constexpr double SummedAt = 0.8;

}

vtkStandardNewMacro(vtkSpatialAttention);

/// What does not depend on the query: kept while the dataset is the same.
struct vtkSpatialAttention::Known
{
  LastResult<BoundMeshes> bound;
  std::vector<TokenMesh> meshes;
  Binding binding;
  const BoundMeshes* all = nullptr;
};

/// The query, and where it is.
struct vtkSpatialAttention::Query
{
  atlas::TokenMix mix;
  atlas::TokenPlaces center;
};

vtkSpatialAttention::vtkSpatialAttention()
  : vtkHeadAlgorithm(WITH_MEANS,
      { "vtkDataSet|vtkCompositeDataSet", "vtkMultiBlockDataSet", "vtkSelection?" },
      { "=vtkDataObject", "vtkPolyData", "vtkPolyData", "vtkTable" }, TOGETHER)
  , Last(std::make_unique<Known>())
{
}

int vtkSpatialAttention::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  AddTimes(inputVector, 1, outputVector);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

int vtkSpatialAttention::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
  KeepRequest(inputVector[1]->GetInformationObject(0));
  return 1;
}

vtkSpatialAttention::Query vtkSpatialAttention::FindQuery(
  const Known& known, const Task& task) const
{
  auto* selection = task.Input<vtkSelection>(2);
  const bool isSelected = selection != nullptr && selection->GetNumberOfNodes() > 0;
  if (!isSelected && this->QueryBy == TOKEN)
  {
    const std::int64_t token = this->Token;
    const bool isThere = token >= 0 && token < known.all->sums.TokenCount();
    return { { { token, 1 } }, isThere ? known.all->sums.Of(token) : atlas::TokenPlaces() };
  }
  std::array<double, 3> probe;
  std::copy_n(this->Probe, 3, probe.begin());
  const atlas::PlaceSums chosen = isSelected
                                    ? SumSelected(known.meshes, known.binding, *known.all,
                                        task.Input<vtkDataObject>(), selection, task.Ranks())
                                    : SumNearest(*known.all, probe, task.Ranks());
  atlas::TokenMix mix = atlas::MixOf(chosen, !known.binding.weights.empty());
  const std::int64_t steps = this->QueryStep < 0 ? 0 : this->QueryStep - known.binding.step;
  return { atlas::Shifted(mix, steps * known.binding.tokensPerStep), chosen.OfAll() };
}

void vtkSpatialAttention::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  auto* whole = task.Input<vtkMultiBlockDataSet>(1);
  if (IsEmpty(whole))
  {
    return;
  }
  atlas::ThrowIf<atlas::OptionError>(
    !std::isfinite(this->Bend), "Bend: expected a finite number, found ", this->Bend, ".");
  RequireFormat(whole, Formats::Recording, "Recording",
    "give the output of a Transformer Recorder or a Recording Reader.");
  Known& known = *this->Last;
  known.meshes = CopyMeshes(input, task.Output<vtkDataObject>());
  const std::optional<Binding> binding = FindBinding(known.meshes, task.Ranks());
  if (!binding)
  {
    return; // there are no places
  }
  known.binding = *binding;
  atlas::SpatialOptions options;
  options.sequence = this->Sequence;
  options.layer = this->Layer;
  options.head = this->Head;
  options.quantity = Quantities.at(this->Quantity);
  options.direction = static_cast<atlas::SpatialDirection>(this->Direction);
  options.threads = ThreadLimit();
  const atlas::Recording recording =
    ToRecording(this->RequirePart(task), this->Layer, this->Head, options.quantity);
  const std::int64_t tokens = atlas::RequireTokens(recording, this->Sequence);
  double summed = 0; // of the progress
  known.all = &known.bound.Get(task, MakeKey(TimeOf(input), tokens),
    [&]
    {
      summed = SummedAt;
      return BindMeshes(
        known.meshes, known.binding, tokens, task.Ranks(), task.Progress().Part(0, SummedAt));
    });
  options.progress = task.Progress().Part(summed, 1);
  const Query query = this->FindQuery(known, task);
  options.query = query.mix;
  const std::vector<float> values = atlas::EvaluateSpatialAttention(recording, options);
  std::vector<float> shared = values;
  if (this->DivideAmongPlaces)
  {
    atlas::DivideByPlaces(known.all->sums, shared);
  }
  for (std::size_t i = 0; i < known.meshes.size(); ++i)
  {
    const atlas::BoundPlaces& places = known.all->meshes[i].places;
    const auto attention = NewArray<vtkFloatArray>(Names::Attention, places.count);
    atlas::SpreadOverPlaces(places, shared, attention->GetPointer(0), options.threads);
    RangeCollector ranges({ attention });
    ParallelFor(
      0, places.count, [&ranges](vtkIdType begin, vtkIdType end) { ranges.Add(begin, end); });
    auto* arrays = AttributesOf(known.meshes[i].output, known.binding.association);
    arrays->AddArray(attention);
    arrays->SetActiveScalars(Names::Attention);
    AddArrayTitle(known.meshes[i].output->GetFieldData(), Names::Attention, options.quantity);
    ranges.Store();
  }
  if (task.IsFirst())
  {
    const ShownQuery shown = { recording, options, known.all->sums, values, query.center,
      atlas::LargestTokens(values, this->Count) };
    MakeLines(shown, this->Bend, task.Output<vtkPolyData>(1));
    MakeMark(shown, task.Output<vtkPolyData>(2));
    ExplainMarks(task.Output<vtkPolyData>(1), task.Output<vtkPolyData>(2));
    MakeTokenTable(shown, task.Output<vtkTable>(3));
  }
}
