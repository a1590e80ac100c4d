#include "vtkBindTokens.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "Geometry/PlaceBinding.h"
#include "ListArrays.h"
#include "Numerics/NearestPoints.h"
#include "PointArrays.h"
#include "Recording/SpecialTokens.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "StructureArrays.h"
#include "Task.h"
#include "TokenMeshes.h"

#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDataArrayRange.h>
#include <vtkDataSetAttributes.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// Places between two reports of progress.
constexpr vtkIdType PlacesPerStep = vtkIdType{ 1 } << 18;

/// How much of the work is done when places are bound, and must be checked.
constexpr double BoundAt = 0.8;

/// The part of a recording with the longest sequence, and the tokens of this sequence; 0 if there
/// are none.
std::pair<vtkMultiBlockDataSet*, std::int64_t> FindLongest(vtkMultiBlockDataSet* recording)
{
  std::pair<vtkMultiBlockDataSet*, std::int64_t> longest = { nullptr, 0 };
  for (const auto kind :
    { atlas::AttentionKind::Decoder, atlas::AttentionKind::Encoder, atlas::AttentionKind::Cross })
  {
    vtkMultiBlockDataSet* part = nullptr;
    try
    {
      part = FindPart(recording, kind);
    }
    catch (const atlas::OptionError&)
    {
      continue; // it has one kind of attention
    }
    const std::int64_t tokens = RecordingRanges(part).tokens > 0 ? SequenceTokensNow(part, -1) : 0;
    if (tokens > longest.second)
    {
      longest = { part, tokens };
    }
  }
  return longest;
}

/// The special tokens at the end of the longest sequence, such as one that ends it.
std::int64_t CountSpecialTokensAtEnd(vtkMultiBlockDataSet* recording)
{
  const auto [part, tokens] = FindLongest(recording);
  const atlas::Recording longest = ToRecording(part);
  const std::vector<std::int64_t>& offsets = longest.sequenceOffsets;
  std::int64_t count = 0;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
  {
    if (offsets[i + 1] - offsets[i] == tokens)
    {
      const auto rows = static_cast<std::int64_t>(longest.tokens.text.size());
      while (count < tokens && offsets[i + 1] <= rows &&
             atlas::IsSpecialToken(longest.tokens.text[offsets[i + 1] - 1 - count]))
      {
        ++count;
      }
      break;
    }
  }
  return count;
}

/// A number with up to six digits.
std::string ShortText(double number)
{
  std::ostringstream text;
  text << number;
  return text.str();
}

vtkSmartPointer<vtkIntArray> NewTokens(std::int64_t places, int components = 1)
{
  return NewTuples<vtkIntArray>(Names::BoundToken, components, places);
}

/// An array of a mesh with numbers. Throws if there is none.
vtkDataArray* RequireArray(
  const TokenMesh& mesh, int association, const std::string& name, const char* property)
{
  vtkDataArray* array = AttributesOf(mesh.input, association)->GetArray(name.c_str());
  if (array == nullptr)
  {
    throw atlas::OptionError(mesh.name, ": expected a ", PlaceName(association), " array '", name,
      "', which ", property, " names, found none.");
  }
  return array;
}

/// The whole numbers of an array as tokens, `first` added; -1 stays as it is. `left`: the tokens
/// from the first one on.
vtkSmartPointer<vtkIntArray> TokensOf(
  const TokenMesh& mesh, vtkDataArray* array, std::int64_t first, std::int64_t left)
{
  const int components = array->GetNumberOfComponents();
  const auto tokens = NewTokens(array->GetNumberOfTuples(), components);
  int* token = tokens->GetPointer(0);
  const auto largest = static_cast<double>(left - 1);
  for (const double number : vtk::DataArrayValueRange(array))
  {
    if (!(number >= -1 && number <= largest) || number != std::floor(number))
    {
      std::array<double, 2> range;
      array->GetRange(range.data(), -1);
      throw atlas::OptionError(mesh.name, ": expected tokens from 0 to ", ShortText(largest),
        ", or -1 for none, found ", ShortText(number), " at place ",
        (token - tokens->GetPointer(0)) / components, "; the array '",
        std::string(array->GetName()), "' has values from ", ShortText(range[0]), " to ",
        ShortText(range[1]), ".");
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
  atlas::ThrowIf<atlas::OptionError>(meshes.size() > 1,
    "TokenPositions: expected one mesh, whose points are the tokens in their order, found ",
    meshes.size(), ".");
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
std::vector<double> SharePositions(const std::vector<double>& mine, const RankGroup& ranks)
{
  std::vector<double> all = ranks.Gather(mine);
  const bool isSame = all.size() == mine.size() * static_cast<std::size_t>(ranks.Count()) &&
                      std::equal(mine.begin(), mine.end(), all.begin());
  return ranks.Any(!isSame) ? all : mine;
}

/// The name of a chain as a number: its bytes, the first one highest.
std::int64_t ChainNumber(const std::string& name, const std::string& source)
{
  atlas::ThrowIf<atlas::OptionError>(name.size() > sizeof(std::int64_t), source,
    ": expected names of chains of at most ", sizeof(std::int64_t), " bytes, found '", name, "'.");
  std::uint64_t number = 0;
  for (std::size_t c = 0; c < sizeof(std::int64_t); ++c)
  {
    const unsigned char byte = c < name.size() ? static_cast<unsigned char>(name[c]) : 0;
    number = (number << 8U) | byte;
  }
  return static_cast<std::int64_t>(number);
}

/// The same back, and a number of vtkPDBReader, which is that of a letter.
std::string ChainName(std::int64_t chain)
{
  constexpr std::int64_t firstLetter = 32;
  if (chain >= 0 && chain < firstLetter)
  {
    return std::to_string(chain);
  }
  const auto number = static_cast<std::uint64_t>(chain);
  std::string name;
  for (int shift = 56; shift >= 0; shift -= 8)
  {
    const auto byte = static_cast<char>(number >> static_cast<unsigned int>(shift));
    name += byte == '\0' ? "" : std::string(1, byte);
  }
  return name;
}

/// The chain of each place: a number, or a name as one.
std::vector<std::int64_t> ChainsOf(
  const TokenMesh& mesh, int association, const std::string& name, std::int64_t places)
{
  std::vector<std::int64_t> chains(places, 0);
  vtkAbstractArray* array = AttributesOf(mesh.input, association)->GetAbstractArray(name.c_str());
  for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i)
  {
    if (auto* texts = vtkStringArray::SafeDownCast(array))
    {
      chains[i] = ChainNumber(texts->GetValue(i), mesh.name);
    }
    else if (auto* numbers = vtkDataArray::SafeDownCast(array))
    {
      chains[i] = static_cast<std::int64_t>(numbers->GetComponent(i, 0));
    }
  }
  return chains;
}

/// The residue of each place of a mesh, and whether it is one of a polymer.
struct PlaceResidues
{
  std::vector<atlas::Residue> residues;
  std::vector<bool> areOfPolymer;
  bool isBySequence = false; ///< by the places in sequences that vtkMmcifReader gives
};

PlaceResidues ResiduesOf(const TokenMesh& mesh, int association, const std::string& chainArray,
  const std::string& residueArray)
{
  namespace Arrays = StructureArrays;
  const std::int64_t places = CountPlaces(mesh.input, association);
  PlaceResidues found;
  if (places == 0)
  {
    return found;
  }
  auto* attributes = AttributesOf(mesh.input, association);
  const std::vector<std::int64_t> numbers =
    Integers(RequireArray(mesh, association, residueArray, "ResidueArray"));
  const std::vector<std::int64_t> chains = ChainsOf(mesh, association, chainArray, places);
  auto* insertions = vtkStringArray::SafeDownCast(attributes->GetAbstractArray(Arrays::Insertion));
  vtkDataArray* sequence = attributes->GetArray(Arrays::Sequence);
  vtkDataArray* hetero = attributes->GetArray(Arrays::Hetero);
  found.isBySequence = sequence != nullptr && insertions != nullptr &&
                       (residueArray == Arrays::Residue || residueArray == Arrays::Sequence);
  for (vtkIdType i = 0; i < static_cast<vtkIdType>(places); ++i)
  {
    const bool isOfPolymer = found.isBySequence
                               ? sequence->GetComponent(i, 0) > 0
                               : hetero == nullptr || hetero->GetComponent(i, 0) == 0;
    const std::string insertion = insertions == nullptr ? "" : insertions->GetValue(i);
    const std::int64_t code = insertion.empty() ? 0 : static_cast<unsigned char>(insertion[0]);
    const std::int64_t number = found.isBySequence && isOfPolymer
                                  ? static_cast<std::int64_t>(sequence->GetComponent(i, 0))
                                  : numbers[i] * 256 + code;
    found.residues.push_back({ chains[i], number });
    found.areOfPolymer.push_back(isOfPolymer);
  }
  return found;
}

/// Adds all residues of the sequences of a mesh, with those that have no atoms, of chains that have
/// some.
void AddSequences(const TokenMesh& mesh, std::vector<atlas::Residue>& residues)
{
  namespace Arrays = StructureArrays;
  vtkFieldData* fields = mesh.input->GetFieldData();
  auto* names = vtkStringArray::SafeDownCast(fields->GetAbstractArray(Arrays::Chain));
  vtkDataArray* lengths = fields->GetArray(Arrays::Length);
  if (names == nullptr || lengths == nullptr)
  {
    return;
  }
  std::set<std::int64_t> known;
  for (const atlas::Residue& residue : residues)
  {
    known.insert(residue.chain);
  }
  const vtkIdType count = std::min(names->GetNumberOfValues(), lengths->GetNumberOfTuples());
  for (vtkIdType i = 0; i < count; ++i)
  {
    const std::int64_t chain = ChainNumber(names->GetValue(i), mesh.name);
    const auto length = static_cast<std::int64_t>(lengths->GetComponent(i, 0));
    for (std::int64_t n = 1; known.count(chain) > 0 && n <= length; ++n)
    {
      residues.push_back({ chain, n });
    }
  }
}

/// "chain A 20, chain B 14" of a list by chain.
std::string CountsOfChains(const std::vector<atlas::Residue>& residues)
{
  std::string counts;
  for (auto begin = residues.begin(); begin != residues.end();)
  {
    const auto end = std::find_if(begin, residues.end(),
      [begin](const atlas::Residue& residue) { return residue.chain != begin->chain; });
    counts += (counts.empty() ? "chain " : ", chain ") + ChainName(begin->chain) + " " +
              std::to_string(end - begin);
    begin = end;
  }
  return counts;
}

bool Contains(const std::vector<atlas::Residue>& distinct, const atlas::Residue& residue)
{
  return std::binary_search(distinct.begin(), distinct.end(), residue);
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
  AddTimes(inputVector, 2, outputVector);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

int vtkBindTokens::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
  KeepRequest(inputVector[1]->GetInformationObject(0));
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

void vtkBindTokens::BindByArray(const Meshes& meshes, std::int64_t first, std::int64_t tokens) const
{
  for (const TokenMesh& mesh : meshes)
  {
    if (CountPlaces(mesh.input, this->Places) == 0)
    {
      continue;
    }
    atlas::ThrowIf<atlas::OptionError>(this->TokenArray.empty(),
      "TokenArray: expected an array of tokens from 0 to ", tokens - 1,
      ", found no name; choose one, or another Method.");
    vtkDataArray* array = RequireArray(mesh, this->Places, this->TokenArray, "TokenArray");
    atlas::ThrowIf<atlas::OptionError>(array->GetNumberOfComponents() != 1, mesh.name, ": array '",
      this->TokenArray, "': expected one token per place, found ", array->GetNumberOfComponents(),
      ".");
    AttributesOf(mesh.output, this->Places)->AddArray(TokensOf(mesh, array, first, tokens - first));
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
    const std::int64_t all = CountPlaces(mesh.input, this->Places);
    const atlas::PositionOf positionOf = PositionsOf(mesh.input, this->Places, ofMesh.Part(0, 0.2));
    atlas::RequireFinite(all, positionOf, mesh.name, ThreadLimit(), ofMesh.Part(0.2, 0.3));
    const auto bound = NewTokens(all);
    ParallelSteps(all, PlacesPerStep, ofMesh.Part(0.3, 1),
      [&](vtkIdType begin, vtkIdType end)
      {
        std::array<double, 3> position;
        for (vtkIdType place = begin; place < end; ++place)
        {
          positionOf(place, position.data());
          bound->SetValue(place, tokenAt(position.data()));
        }
      });
    AttributesOf(mesh.output, this->Places)->AddArray(bound);
  }
}

void vtkBindTokens::BindToNearest(
  const Meshes& meshes, std::int64_t first, std::int64_t tokens, const Task& task) const
{
  const std::vector<double> positions =
    SharePositions(PointsOf(task.Input<vtkDataObject>(2)), task.Ranks());
  const auto count = static_cast<std::int64_t>(positions.size() / 3);
  atlas::ThrowIf<atlas::OptionError>(count == 0 || first + count > tokens,
    "TokenPositions: expected the positions of 1 to ", std::max<std::int64_t>(tokens - first, 0),
    " tokens for the nearest ones, found ", (count == 0 ? "none" : std::to_string(count)), ".");
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

/// Compares the number of residues with that of the tokens from the first one on.
void vtkBindTokens::CompareWithTokens(const std::string& found, std::int64_t residues,
  std::int64_t first, vtkMultiBlockDataSet* recording) const
{
  const std::int64_t left = FindLongest(recording).second - first;
  atlas::ThrowIf<atlas::OptionError>(residues > left, "Input: expected at most ", left,
    " residues, one per token from ", first, " on, found ", found,
    ". Choose the chains that were recorded, such as by Threshold.");
  const std::int64_t expected = this->TokensPerStep > 0
                                  ? std::min<std::int64_t>(left, this->TokensPerStep)
                                  : left - CountSpecialTokensAtEnd(recording);
  if (residues < expected)
  {
    vtkWarningMacro(<< "Input: expected " << expected << " residues, one per token from " << first
                    << " on, found " << found
                    << ". Tokens are those of other residues if the recording has other chains, "
                       "First Token is not the number of tokens in front of them, or the dataset "
                       "lacks residues that were not resolved: Mmcif Reader counts those, too.");
  }
}

void vtkBindTokens::BindResidues(
  const Meshes& meshes, std::int64_t first, vtkMultiBlockDataSet* recording, const Task& task) const
{
  std::vector<PlaceResidues> ofMeshes;
  std::vector<atlas::Residue> own;
  for (const TokenMesh& mesh : meshes)
  {
    ofMeshes.push_back(ResiduesOf(mesh, this->Places, this->ChainArray, this->ResidueArray));
    const PlaceResidues& places = ofMeshes.back();
    std::vector<atlas::Residue> ofPolymer;
    for (std::size_t i = 0; i < places.residues.size(); ++i)
    {
      if (places.areOfPolymer[i])
      {
        ofPolymer.push_back(places.residues[i]);
      }
    }
    if (places.isBySequence)
    {
      AddSequences(mesh, ofPolymer);
    }
    own.insert(own.end(), ofPolymer.begin(), ofPolymer.end());
  }
  const auto gather = [&task](std::vector<atlas::Residue>& mine)
  { return atlas::DistinctResidues(task.Ranks().Gather(atlas::DistinctResidues(mine))); };
  const std::vector<atlas::Residue> residues = gather(own);
  own.clear();
  for (PlaceResidues& places : ofMeshes)
  {
    for (std::size_t i = 0; i < places.residues.size(); ++i)
    {
      if (places.areOfPolymer[i] || !this->HeteroAtoms)
      {
        continue;
      }
      places.areOfPolymer[i] = !places.isBySequence && Contains(residues, places.residues[i]);
      if (!places.areOfPolymer[i])
      {
        own.push_back(places.residues[i]);
      }
    }
  }
  const std::vector<atlas::Residue> others = gather(own); // ligands and water
  const auto count = static_cast<std::int64_t>(residues.size());
  const auto all = count + static_cast<std::int64_t>(others.size());
  if (task.IsFirst() && all > 0)
  {
    this->CompareWithTokens(
      std::to_string(all) + ": " + CountsOfChains(residues) +
        (others.empty() ? ""
                        : (residues.empty() ? "" : ", ") + std::string("ligands and water ") +
                            std::to_string(others.size())),
      all, first, recording);
  }
  for (std::size_t m = 0; m < meshes.size(); ++m)
  {
    const PlaceResidues& places = ofMeshes[m];
    const auto bound = NewTokens(static_cast<std::int64_t>(places.residues.size()));
    for (std::size_t i = 0; i < places.residues.size(); ++i)
    {
      const atlas::Residue& residue = places.residues[i];
      const std::int64_t token = places.areOfPolymer[i]
                                   ? first + atlas::NumberOf(residues, residue)
                                   : first + count + atlas::NumberOf(others, residue);
      const bool isBound = places.areOfPolymer[i] || this->HeteroAtoms;
      bound->SetValue(
        static_cast<vtkIdType>(i), isBound ? static_cast<int>(token) : atlas::NoToken);
    }
    AttributesOf(meshes[m].output, this->Places)->AddArray(bound);
  }
}

void vtkBindTokens::BindWeights(
  const Meshes& meshes, std::int64_t first, std::int64_t tokens, Binding& binding) const
{
  const bool isSparse = !this->SliceArray.empty();
  binding.tokens = isSparse ? Names::BoundToken : "";
  binding.weights = this->WeightArray;
  int width = 0;
  bool isFloat = true; // on all meshes
  for (const TokenMesh& mesh : meshes)
  {
    if (CountPlaces(mesh.input, this->Places) == 0)
    {
      continue;
    }
    vtkDataArray* weights = RequireArray(mesh, this->Places, this->WeightArray, "WeightArray");
    isFloat = isFloat && vtkFloatArray::FastDownCast(weights) != nullptr;
    const int components = weights->GetNumberOfComponents();
    atlas::ThrowIf<atlas::OptionError>(width != 0 && components != width, mesh.name, ": array '",
      this->WeightArray, "': expected ", width, " weights per place, as before, found ", components,
      ".");
    width = components;
    if (isSparse)
    {
      vtkDataArray* slices = RequireArray(mesh, this->Places, this->SliceArray, "SliceArray");
      atlas::ThrowIf<atlas::OptionError>(slices->GetNumberOfComponents() != components, mesh.name,
        ": array '", this->SliceArray, "': expected ", components,
        " tokens per place, one per weight, found ", slices->GetNumberOfComponents(), ".");
      AttributesOf(mesh.output, this->Places)
        ->AddArray(TokensOf(mesh, slices, first, tokens - first));
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
      AttributesOf(mesh.input, this->Places)->GetArray(this->WeightArray.c_str());
    if (weights != nullptr)
    {
      vtkNew<vtkFloatArray> copy;
      copy->DeepCopy(weights);
      copy->SetName(Names::TokenWeights);
      AttributesOf(mesh.output, this->Places)->AddArray(copy);
    }
  }
}

void vtkBindTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  auto* recording = task.Input<vtkMultiBlockDataSet>(1);
  if (IsEmpty(recording))
  {
    return;
  }
  RequireFormat(recording, Formats::Recording, "Recording",
    "give the output of a Transformer Recorder or a Recording Reader.");
  const std::int64_t tokens = FindLongest(recording).second;
  atlas::ThrowIf<atlas::OptionError>(tokens == 0, "Recording: expected tokens, found none.");
  for (const auto& [name, number] :
    { std::pair("FirstToken", this->FirstToken), std::pair("TokensPerStep", this->TokensPerStep) })
  {
    atlas::ThrowIf<atlas::OptionError>(
      number < 0, name, ": expected a number of at least 0, found ", number, ".");
  }
  const Meshes meshes = CopyMeshes(input, task.Output<vtkDataObject>());
  Binding binding;
  binding.association = this->Places;
  binding.tokens = Names::BoundToken;
  binding.tokensPerStep = this->TokensPerStep;
  binding.step = this->StepOf(task);
  const std::int64_t first = this->FirstToken + binding.step * binding.tokensPerStep;
  binding.firstToken = first;
  atlas::ThrowIf<atlas::OptionError>(first >= tokens, "FirstToken: expected less than ", tokens,
    " tokens in front of those of places, found ", first, " with those of earlier time steps.");
  switch (this->Method)
  {
    case NEAREST:
      this->BindToNearest(meshes, first, tokens, task);
      break;
    case GRID:
      this->BindToGrid(meshes, first, tokens, task);
      break;
    case WEIGHTS:
      this->BindWeights(meshes, first, tokens, binding);
      break;
    case RESIDUES:
      this->BindResidues(meshes, first, recording, task);
      break;
    default:
      this->BindByArray(meshes, first, tokens);
  }
  const atlas::Progress checks = task.Progress().Part(BoundAt, 1);
  for (std::size_t i = 0; i < meshes.size(); ++i)
  {
    const TokenMesh bound = { meshes[i].output, meshes[i].output, meshes[i].name };
    const auto anywhere = [](std::int64_t, double* position) { std::fill_n(position, 3, 0.0); };
    atlas::CheckPlaces(PlacesOf(bound, binding), anywhere, tokens, bound.name, ThreadLimit(),
      checks.Part(i, i + 1, meshes.size()));
    WriteBinding(binding, bound.output->GetFieldData());
    checks(i + 1, meshes.size());
  }
}
