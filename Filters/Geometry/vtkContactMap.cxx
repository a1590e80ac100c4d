#include "vtkContactMap.h"

#include "Analysis/RecordedModel.h"
#include "Base/Error.h"
#include "ContactOutput.h"
#include "ImageRequest.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkDataSet.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

using namespace AttentionAtlas;

namespace
{

/// The number of residues of a sequence or, where its tokens are not known yet, of its tokens.
int CountResidues(vtkMultiBlockDataSet* recording, int sequence)
{
  try
  {
    return static_cast<int>(atlas::FindResidues(ToRecording(recording), sequence).size());
  }
  catch (const std::exception&) // is told by Execute
  {
    return SequenceTokens(recording, sequence);
  }
}

}

vtkStandardNewMacro(vtkContactMap);

struct vtkContactMap::Found : ContactResult
{
};

struct vtkContactMap::Memory
{
  LastResult<Found> found;
};

vtkContactMap::vtkContactMap()
  : vtkRecordingAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?", "vtkDataSet?" },
      { "vtkImageData", "vtkTable", "vtkTable", "vtkTable", "vtkPolyData", "vtkImageData" },
      TOGETHER | WHOLE_INPUT)
  , Last(std::make_unique<Memory>())
{
}

int vtkContactMap::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->OutlineOfPart();
  const RecordingRanges ranges(recording);
  const bool isEmpty = IsEmpty(recording);
  this->LayerRange[0] = this->HeadRange[0] = isEmpty ? 0 : -1;
  this->LayerRange[1] = ranges.layer[1];
  this->HeadRange[1] = ranges.head[1];
  this->SequenceRange[1] = ranges.sequence[1];
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  const int residues = std::max(isEmpty ? 1 : CountResidues(recording, this->Sequence), 1);
  AnnounceImage(residues, residues, outputVector->GetInformationObject(0));
  AnnounceImage(isEmpty ? 1 : ranges.head[1] + 1,
    isEmpty ? 1 : std::max(static_cast<int>(RecordedLayers(recording).size()), 1),
    outputVector->GetInformationObject(5), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkContactMap::CheckOptions() const
{
  using atlas::OptionError;
  using atlas::ThrowIf;
  for (const auto& [name, number] :
    { std::pair("Layer", this->Layer), std::pair("Head", this->Head) })
  {
    ThrowIf<OptionError>(
      number < -1, name, ": expected a number from 0, or -1 for all, found ", number, ".");
  }
  ThrowIf<OptionError>(!(this->ContactDistance > 0),
    "ContactDistance: expected a distance above 0, found ", this->ContactDistance, ".");
  ThrowIf<OptionError>(this->MinimumSeparation < 1,
    "MinimumSeparation: expected a number of at least 1, found ", this->MinimumSeparation, ".");
  ThrowIf<OptionError>(this->PairCount < 0, "PairCount: expected a number of at least 0, found ",
    this->PairCount, ".");
  ThrowIf<OptionError>(!(this->Bend >= 0 && this->Bend <= 1),
    "Bend: expected a number from 0 to 1, found ", this->Bend, ".");
  for (const auto& [name, share] : { std::pair("Threshold", this->Threshold),
         std::pair("MinimumIdentity", this->MinimumIdentity) })
  {
    ThrowIf<OptionError>(
      !(share >= 0 && share <= 1), name, ": expected a number from 0 to 1, found ", share, ".");
  }
}

/// Places the structure of all ranks on the sequence.
void vtkContactMap::PlaceStructure(Found& found, const Task& task)
{
  auto* structure = task.Input<vtkDataSet>(2);
  std::vector<atlas::ResidueAtom> atoms =
    task.Ranks().Gather(ResidueAtomsOf(structure, this->SiteArray));
  if (std::all_of(
        atoms.begin(), atoms.end(), [](const atlas::ResidueAtom& atom) { return atom.isOther; }))
  {
    atlas::ThrowIf<atlas::OptionError>(
      task.Ranks().Any(structure != nullptr && structure->GetNumberOfPoints() > 0),
      "Structure: expected a protein with atoms CA or CB in a sequence, found none.");
    atlas::ThrowIf<atlas::OptionError>(!this->SiteArray.empty(),
      "SiteArray: expected a structure with this array, found no structure.");
    return;
  }
  const bool isTrace = std::none_of(
    atoms.begin(), atoms.end(), [](const atlas::ResidueAtom& atom) { return atom.isBeta; });
  atlas::ThrowIf<atlas::OptionError>(this->ContactAtom == C_BETA && isTrace,
    "Structure: expected residues with the atom CB, found a trace of CA alone; choose CAlpha as "
    "Contact Atom.");
  std::string letters;
  for (const std::string& text : found.texts)
  {
    letters += atlas::ResidueLetterOfToken(text);
  }
  const bool isBound = std::any_of(
    atoms.begin(), atoms.end(), [](const atlas::ResidueAtom& atom) { return atom.token >= 0; });
  const auto atom = static_cast<atlas::ContactAtom>(this->ContactAtom);
  found.placed = isBound ? atlas::PlaceByTokens(atoms, found.residues, letters, atom)
                         : atlas::PlaceByAlignment(atoms, this->Chain, letters, atom);
  const atlas::PlacedResidues& placed = *found.placed;
  atlas::RequireSameProtein(
    placed, this->MinimumIdentity, "Choose another structure or Chain, or lower Minimum Identity.");
  atlas::ThrowIf<atlas::OptionError>(placed.resolved == 0,
    "Structure: expected residues with the atom ", this->ContactAtom == C_BETA ? "CB" : "CA",
    ", found none.");
  if (placed.identical < placed.compared)
  {
    found.warning = "Structure: expected the residues of the recording, found others: only " +
                    atlas::ShareText(placed.identical, placed.compared) +
                    " are the same. Contacts are those of the structure.";
  }
  if (!this->SiteArray.empty())
  {
    found.sites.resize(placed.sites.size(), false);
    std::transform(placed.sites.begin(), placed.sites.end(), found.sites.begin(),
      found.sites.begin(), std::logical_or<>());
  }
  found.contacts.emplace(
    placed.places, atlas::ContactRule{ this->ContactDistance, this->MinimumSeparation });
}

vtkContactMap::Found vtkContactMap::Find(const Task& task)
{
  const atlas::Recording recording = ToRecording(this->RequirePart(task));
  Found found;
  found.residues = atlas::FindResidues(recording, this->Sequence);
  found.text = SequenceText(recording, this->Sequence);
  for (const std::int64_t residue : found.residues)
  {
    found.texts.push_back(
      TokenText(recording, recording.sequenceOffsets[this->Sequence] + residue));
  }
  const auto n = static_cast<double>(found.residues.size());
  atlas::ThrowIf<atlas::OptionError>(
    found.residues.empty(), "Input: expected a sequence with residues, found none.");
  constexpr double mapsAtOnce = 24; // of heads and their pairs, of sums and the image
  RequireMemory(mapsAtOnce * n * n * sizeof(double),
    "a map of " + std::to_string(found.residues.size()) + " residues", "record a part of it.");
  auto* model = task.Input<vtkMultiBlockDataSet>(1);
  if (!task.Ranks().Any(IsEmpty(model)))
  {
    const auto transformer = ToTransformer(model);
    found.predictor = atlas::ReadContactHead(transformer->GetModel());
    if (found.predictor)
    {
      atlas::RequireSamePart(recording, transformer->GetModel(),
        static_cast<atlas::AttentionKind>(this->AttentionKind), "the contact head");
    }
  }
  found.sites =
    atlas::ReadSites(this->Sites, static_cast<std::int64_t>(found.residues.size()), "Sites");
  this->PlaceStructure(found, task);
  atlas::ContactOptions options;
  options.sequence = this->Sequence;
  options.layer = this->Layer;
  options.head = this->Head;
  options.predictor = found.predictor ? &*found.predictor : nullptr;
  options.contacts = found.contacts ? &*found.contacts : nullptr;
  options.sites = found.sites;
  options.threshold = this->Threshold;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  found.evidence = atlas::FindContacts(recording, found.residues, options);
  return found;
}

void vtkContactMap::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  this->CheckOptions();
  const Found& found = this->Last->found.Get(task,
    MakeKey(TimeOf(input), TimeOf(task.Input<vtkDataObject>(1)),
      TimeOf(task.Input<vtkDataObject>(2)), this->AttentionKind, this->Sequence, this->Layer,
      this->Head, std::hash<std::string>()(this->Chain), std::hash<std::string>()(this->Sites),
      std::hash<std::string>()(this->SiteArray), this->ContactAtom, this->ContactDistance,
      this->MinimumSeparation, this->Threshold, this->MinimumIdentity),
    [&] { return this->Find(task); });
  found.MakeImage(this->Sequence, task.OutputInformation());
  this->AddKind(task.Output<vtkImageData>());
  found.MakeHeadMap(task.OutputInformation(5));
  if (!task.IsFirst())
  {
    return;
  }
  if (!found.warning.empty())
  {
    vtkWarningMacro(<< found.warning);
  }
  const auto pairs = found.Strongest(this->MinimumSeparation, this->PairCount);
  found.MakePairs(pairs, task.Output<vtkTable>(1));
  found.MakeHeads(task.Output<vtkTable>(2));
  found.MakePrecision(task.Output<vtkTable>(3));
  found.MakeLines(pairs, this->Bend, task.Output<vtkPolyData>(4));
}
