#include "vtkBindTokens.h"

#include "ArrayNames.h"
#include "DataFormat.h"
#include "Error.h"
#include "NearestPoints.h"
#include "PlaceBinding.h"
#include "PointArrays.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenMeshes.h"

#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDataArrayRange.h>
#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkStringArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;
using AttentionAtlas::TokenMesh;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr const char* HeteroArray = "ishetatm"; // of vtkPDBReader

/// Places between two reports of progress.
constexpr vtkIdType PlacesPerStep = vtkIdType{ 1 } << 18;

/// How much of the work is done when places are bound, and must be checked.
constexpr double BoundAt = 0.8;

/// The tokens of the longest sequence of all parts of a recording; 0 if there are none.
std::int64_t CountTokens(vtkMultiBlockDataSet* recording)
{
  std::int64_t tokens = 0;
  for (const auto kind :
    { atlas::AttentionKind::Decoder, atlas::AttentionKind::Encoder, atlas::AttentionKind::Cross })
  {
    vtkMultiBlockDataSet* part = nullptr;
    try
    {
      part = AttentionAtlas::FindPart(recording, kind);
    }
    catch (const atlas::OptionError&)
    {
      continue; // it has one kind of attention
    }
    if (AttentionAtlas::RecordingRanges(part).tokens > 0)
    {
      tokens = std::max<std::int64_t>(tokens, AttentionAtlas::SequenceTokensNow(part, -1));
    }
  }
  return tokens;
}

vtkSmartPointer<vtkIntArray> NewTokens(std::int64_t places, int components = 1)
{
  auto tokens = vtkSmartPointer<vtkIntArray>::New();
  tokens->SetName(Names::BoundToken);
  tokens->SetNumberOfComponents(components);
  tokens->SetNumberOfTuples(places);
  return tokens;
}

/// An array of a mesh with numbers. Throws if there is none.
vtkDataArray* RequireArray(
  const TokenMesh& mesh, int association, const std::string& name, const char* property)
{
  vtkDataArray* array =
    AttentionAtlas::AttributesOf(mesh.input, association)->GetArray(name.c_str());
  if (array == nullptr)
  {
    throw atlas::OptionError(mesh.name + ": expected a " + AttentionAtlas::PlaceName(association) +
                             " array '" + name + "', which " + property + " names, found none.");
  }
  return array;
}

/// The whole numbers of an array as tokens, `first` added; -1 stays as it is.
vtkSmartPointer<vtkIntArray> TokensOf(
  const TokenMesh& mesh, vtkDataArray* array, std::int64_t first)
{
  const int components = array->GetNumberOfComponents();
  const auto tokens = NewTokens(array->GetNumberOfTuples(), components);
  int* token = tokens->GetPointer(0);
  constexpr double largest = std::numeric_limits<int>::max() / 2.0;
  for (const double number : vtk::DataArrayValueRange(array))
  {
    if (!(number >= -1 && number <= largest) || number != std::floor(number))
    {
      throw atlas::OptionError(mesh.name + ": array '" + std::string(array->GetName()) +
                               "': expected tokens from 0 on, or -1 for none, found " +
                               std::to_string(number) + " at place " +
                               std::to_string((token - tokens->GetPointer(0)) / components) + ".");
    }
    *token++ = number == -1 ? atlas::NoToken : static_cast<int>(number) + static_cast<int>(first);
  }
  return tokens;
}

/// The positions of the points of the only mesh of an input, three numbers each.
std::vector<double> PointsOf(vtkDataObject* input)
{
  std::vector<vtkDataSet*> meshes;
  if (auto* composite = vtkCompositeDataSet::SafeDownCast(input))
  {
    const auto blocks = vtkSmartPointer<vtkCompositeDataIterator>::Take(composite->NewIterator());
    for (blocks->InitTraversal(); !blocks->IsDoneWithTraversal(); blocks->GoToNextItem())
    {
      meshes.push_back(vtkDataSet::SafeDownCast(blocks->GetCurrentDataObject()));
    }
  }
  else
  {
    meshes.push_back(vtkDataSet::SafeDownCast(input));
  }
  meshes.erase(std::remove_if(meshes.begin(), meshes.end(), [](vtkDataSet* mesh)
                 { return mesh == nullptr || mesh->GetNumberOfPoints() == 0; }),
    meshes.end());
  if (meshes.size() > 1)
  {
    throw atlas::OptionError("TokenPositions: expected one mesh, whose points are the tokens in "
                             "their order, found " +
                             std::to_string(meshes.size()) + ".");
  }
  std::vector<double> positions;
  for (vtkIdType i = 0; !meshes.empty() && i < meshes[0]->GetNumberOfPoints(); ++i)
  {
    std::array<double, 3> point;
    meshes[0]->GetPoint(i, point.data());
    positions.insert(positions.end(), point.begin(), point.end());
  }
  return positions;
}

/// The positions of all ranks, one after another; those that all ranks have, once.
std::vector<double> SharePositions(
  const std::vector<double>& mine, const AttentionAtlas::RankGroup& ranks)
{
  std::vector<double> all = ranks.Gather(mine);
  const bool isSame = all.size() == mine.size() * static_cast<std::size_t>(ranks.Count()) &&
                      std::equal(mine.begin(), mine.end(), all.begin());
  return ranks.Any(!isSame) ? all : mine;
}

/// The chain of each place: a number, or a text of up to eight bytes as one.
std::vector<std::int64_t> ChainsOf(
  const TokenMesh& mesh, int association, const std::string& name, std::int64_t places)
{
  std::vector<std::int64_t> chains(places, 0);
  vtkAbstractArray* array =
    AttentionAtlas::AttributesOf(mesh.input, association)->GetAbstractArray(name.c_str());
  if (auto* texts = vtkStringArray::SafeDownCast(array))
  {
    for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i)
    {
      const std::string text = texts->GetValue(i);
      for (std::size_t c = 0; c < sizeof(std::int64_t); ++c)
      {
        const unsigned char byte = c < text.size() ? static_cast<unsigned char>(text[c]) : 0;
        chains[i] = static_cast<std::int64_t>((static_cast<std::uint64_t>(chains[i]) << 8U) | byte);
      }
    }
  }
  else if (auto* numbers = vtkDataArray::SafeDownCast(array))
  {
    for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i)
    {
      chains[i] = static_cast<std::int64_t>(numbers->GetComponent(i, 0));
    }
  }
  return chains;
}

}

vtkStandardNewMacro(vtkBindTokens);

vtkBindTokens::vtkBindTokens()
  : vtkTaskAlgorithm({ "vtkDataSet|vtkCompositeDataSet", "vtkMultiBlockDataSet",
                       "vtkDataSet|vtkCompositeDataSet?" },
      { "=vtkDataObject" }, TOGETHER)
{
}

/// Tokens may move in time.
int vtkBindTokens::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  AttentionAtlas::AddTimes(inputVector, 2, outputVector);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

int vtkBindTokens::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
  AttentionAtlas::KeepRequest(inputVector[1]->GetInformationObject(0));
  return 1;
}

/// The number of the time step of the input, from 0.
std::int64_t vtkBindTokens::StepOf(const Task& task) const
{
  vtkInformation* info = task.InputInformation();
  const int count = info->Length(SDDP::TIME_STEPS());
  if (count == 0 || this->TokensPerStep <= 0)
  {
    return 0;
  }
  const double* steps = info->Get(SDDP::TIME_STEPS());
  vtkInformation* data = task.Input<vtkDataObject>()->GetInformation();
  vtkInformation* output = task.OutputInformation();
  double time = steps[0];
  if (data->Has(vtkDataObject::DATA_TIME_STEP()))
  {
    time = data->Get(vtkDataObject::DATA_TIME_STEP());
  }
  else if (output->Has(SDDP::UPDATE_TIME_STEP()))
  {
    time = output->Get(SDDP::UPDATE_TIME_STEP());
  }
  return std::min_element(steps, steps + count,
           [time](double a, double b) { return std::abs(a - time) < std::abs(b - time); }) -
         steps;
}

void vtkBindTokens::BindByArray(const Meshes& meshes, std::int64_t first) const
{
  for (const TokenMesh& mesh : meshes)
  {
    if (AttentionAtlas::CountPlaces(mesh.input, this->Places) == 0)
    {
      continue;
    }
    vtkDataArray* array = RequireArray(mesh, this->Places, this->TokenArray, "TokenArray");
    if (array->GetNumberOfComponents() != 1)
    {
      throw atlas::OptionError(mesh.name + ": array '" + this->TokenArray +
                               "': expected one token per place, found " +
                               std::to_string(array->GetNumberOfComponents()) + ".");
    }
    AttentionAtlas::AttributesOf(mesh.output, this->Places)->AddArray(TokensOf(mesh, array, first));
  }
}

/// Binds each place to the token that `tokenAt` finds at its position.
template<class TokenAt>
void vtkBindTokens::BindByPosition(
  const Meshes& meshes, const Task& task, const TokenAt& tokenAt) const
{
  const atlas::Progress binding = task.Progress().Part(0, BoundAt);
  for (std::size_t i = 0; i < meshes.size(); ++i)
  {
    const TokenMesh& mesh = meshes[i];
    const atlas::Progress ofMesh = binding.Part(i, i + 1, meshes.size());
    const std::int64_t all = AttentionAtlas::CountPlaces(mesh.input, this->Places);
    const atlas::PositionOf positionOf =
      AttentionAtlas::PositionsOf(mesh.input, this->Places, ofMesh.Part(0, 0.2));
    atlas::RequireFinite(
      all, positionOf, mesh.name, AttentionAtlas::ThreadLimit(), ofMesh.Part(0.2, 0.3));
    const auto bound = NewTokens(all);
    AttentionAtlas::ParallelSteps(all, PlacesPerStep, ofMesh.Part(0.3, 1),
      [&](vtkIdType begin, vtkIdType end)
      {
        std::array<double, 3> position;
        for (vtkIdType place = begin; place < end; ++place)
        {
          positionOf(place, position.data());
          bound->SetValue(place, tokenAt(position.data()));
        }
      });
    AttentionAtlas::AttributesOf(mesh.output, this->Places)->AddArray(bound);
  }
}

void vtkBindTokens::BindToNearest(
  const Meshes& meshes, std::int64_t first, std::int64_t tokens, const Task& task) const
{
  const std::vector<double> positions =
    SharePositions(PointsOf(task.Input<vtkDataObject>(2)), task.Ranks());
  const auto count = static_cast<std::int64_t>(positions.size() / 3);
  if (count == 0 || first + count > tokens)
  {
    throw atlas::OptionError("TokenPositions: expected the positions of 1 to " +
                             std::to_string(std::max<std::int64_t>(tokens - first, 0)) +
                             " tokens for the nearest ones, found " +
                             (count == 0 ? "none" : std::to_string(count)) + ".");
  }
  const auto at = [&positions](std::int64_t token, double* position)
  { std::copy_n(positions.begin() + 3 * token, 3, position); };
  atlas::RequireFinite(count, at, "TokenPositions", 1);
  const atlas::NearestPoints nearest(positions);
  this->BindByPosition(meshes, task,
    [&](const double* position) { return static_cast<int>(first + nearest.Find(position)); });
}

void vtkBindTokens::BindToGrid(
  const Meshes& meshes, std::int64_t first, std::int64_t tokens, const Task& task) const
{
  atlas::PatchLattice lattice;
  std::copy_n(this->GridOrigin, 3, lattice.origin.begin());
  std::copy_n(this->PatchSize, 3, lattice.size.begin());
  std::copy_n(this->PatchCounts, 3, lattice.counts.begin());
  atlas::CheckLattice(lattice, std::max<std::int64_t>(tokens - first, 0));
  this->BindByPosition(meshes, task,
    [&](const double* position)
    {
      const std::int64_t patch = lattice.PatchAt(position);
      return patch == atlas::NoToken ? atlas::NoToken : static_cast<int>(first + patch);
    });
}

void vtkBindTokens::BindResidues(const Meshes& meshes, std::int64_t first, const Task& task) const
{
  std::vector<atlas::Residue> mine; // of all places
  std::vector<bool> isBound;
  for (const TokenMesh& mesh : meshes)
  {
    const std::int64_t places = AttentionAtlas::CountPlaces(mesh.input, this->Places);
    if (places == 0)
    {
      continue;
    }
    vtkDataArray* numbers = RequireArray(mesh, this->Places, this->ResidueArray, "ResidueArray");
    vtkDataArray* hetero =
      this->HeteroAtoms
        ? nullptr
        : AttentionAtlas::AttributesOf(mesh.input, this->Places)->GetArray(HeteroArray);
    const std::vector<std::int64_t> chains = ChainsOf(mesh, this->Places, this->ChainArray, places);
    const std::vector<std::int64_t> residues = AttentionAtlas::Integers(numbers);
    for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i)
    {
      mine.push_back({ chains[i], residues[i] });
      isBound.push_back(hetero == nullptr || hetero->GetComponent(i, 0) == 0);
    }
  }
  std::vector<atlas::Residue> own;
  for (std::size_t i = 0; i < mine.size(); ++i)
  {
    if (isBound[i])
    {
      own.push_back(mine[i]);
    }
  }
  const std::vector<atlas::Residue> distinct =
    atlas::DistinctResidues(task.Ranks().Gather(atlas::DistinctResidues(std::move(own))));
  std::size_t place = 0;
  for (const TokenMesh& mesh : meshes)
  {
    const std::int64_t places = AttentionAtlas::CountPlaces(mesh.input, this->Places);
    const auto bound = NewTokens(places);
    for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i, ++place)
    {
      bound->SetValue(i, isBound[place]
                           ? static_cast<int>(first + atlas::NumberOf(distinct, mine[place]))
                           : atlas::NoToken);
    }
    AttentionAtlas::AttributesOf(mesh.output, this->Places)->AddArray(bound);
  }
}

void vtkBindTokens::BindWeights(
  const Meshes& meshes, std::int64_t first, AttentionAtlas::Binding& binding) const
{
  const bool isSparse = !this->SliceArray.empty();
  binding.tokens = isSparse ? Names::BoundToken : "";
  binding.weights = this->WeightArray;
  int width = 0;
  bool isFloat = true; // on all meshes
  for (const TokenMesh& mesh : meshes)
  {
    if (AttentionAtlas::CountPlaces(mesh.input, this->Places) == 0)
    {
      continue;
    }
    vtkDataArray* weights = RequireArray(mesh, this->Places, this->WeightArray, "WeightArray");
    isFloat = isFloat && vtkFloatArray::FastDownCast(weights) != nullptr;
    const int components = weights->GetNumberOfComponents();
    if (width != 0 && components != width)
    {
      throw atlas::OptionError(mesh.name + ": array '" + this->WeightArray + "': expected " +
                               std::to_string(width) + " weights per place, as before, found " +
                               std::to_string(components) + ".");
    }
    width = components;
    if (isSparse)
    {
      vtkDataArray* slices = RequireArray(mesh, this->Places, this->SliceArray, "SliceArray");
      if (slices->GetNumberOfComponents() != components)
      {
        throw atlas::OptionError(mesh.name + ": array '" + this->SliceArray + "': expected " +
                                 std::to_string(components) +
                                 " tokens per place, one per weight, found " +
                                 std::to_string(slices->GetNumberOfComponents()) + ".");
      }
      AttentionAtlas::AttributesOf(mesh.output, this->Places)
        ->AddArray(TokensOf(mesh, slices, first));
    }
  }
  if (isFloat)
  {
    return;
  }
  binding.weights = Names::TokenWeights;
  for (const TokenMesh& mesh : meshes)
  {
    vtkDataArray* weights =
      AttentionAtlas::AttributesOf(mesh.input, this->Places)->GetArray(this->WeightArray.c_str());
    if (weights != nullptr)
    {
      vtkNew<vtkFloatArray> copy;
      copy->DeepCopy(weights);
      copy->SetName(Names::TokenWeights);
      AttentionAtlas::AttributesOf(mesh.output, this->Places)->AddArray(copy);
    }
  }
}

void vtkBindTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  auto* recording = task.Input<vtkMultiBlockDataSet>(1);
  if (AttentionAtlas::IsEmpty(recording))
  {
    return;
  }
  AttentionAtlas::RequireFormat(recording, AttentionAtlas::Formats::Recording, "Recording",
    "give the output of a Transformer Recorder or a Recording Reader.");
  const std::int64_t tokens = CountTokens(recording);
  if (tokens == 0)
  {
    throw atlas::OptionError("Recording: expected tokens, found none.");
  }
  for (const auto& [name, number] :
    { std::pair("FirstToken", this->FirstToken), std::pair("TokensPerStep", this->TokensPerStep) })
  {
    if (number < 0)
    {
      throw atlas::OptionError(std::string(name) + ": expected a number of at least 0, found " +
                               std::to_string(number) + ".");
    }
  }
  const Meshes meshes = AttentionAtlas::CopyMeshes(input, task.Output<vtkDataObject>());
  AttentionAtlas::Binding binding;
  binding.association = this->Places;
  binding.tokens = Names::BoundToken;
  binding.tokensPerStep = this->TokensPerStep;
  binding.step = this->StepOf(task);
  const std::int64_t first = this->FirstToken + binding.step * binding.tokensPerStep;
  binding.firstToken = first;
  if (first >= tokens)
  {
    throw atlas::OptionError("FirstToken: expected less than " + std::to_string(tokens) +
                             " tokens in front of those of places, found " + std::to_string(first) +
                             " with those of earlier time steps.");
  }
  switch (this->Method)
  {
    case NEAREST:
      this->BindToNearest(meshes, first, tokens, task);
      break;
    case GRID:
      this->BindToGrid(meshes, first, tokens, task);
      break;
    case WEIGHTS:
      this->BindWeights(meshes, first, binding);
      break;
    case RESIDUES:
      this->BindResidues(meshes, first, task);
      break;
    default:
      this->BindByArray(meshes, first);
  }
  const atlas::Progress checks = task.Progress().Part(BoundAt, 1);
  for (std::size_t i = 0; i < meshes.size(); ++i)
  {
    const TokenMesh bound = { meshes[i].output, meshes[i].output, meshes[i].name };
    const auto anywhere = [](std::int64_t, double* position) { std::fill_n(position, 3, 0.0); };
    atlas::CheckPlaces(AttentionAtlas::PlacesOf(bound, binding), anywhere, tokens, bound.name,
      AttentionAtlas::ThreadLimit(), checks.Part(i, i + 1, meshes.size()));
    AttentionAtlas::WriteBinding(binding, bound.output->GetFieldData());
    checks(i + 1, meshes.size());
  }
}
