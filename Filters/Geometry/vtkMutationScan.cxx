#include "vtkMutationScan.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "ContactOutput.h"
#include "DataFormat.h"
#include "ImageRequest.h"
#include "ListArrays.h"
#include "ProteinArrays.h"
#include "Recorder/ProteinInput.h"
#include "RecordingRanges.h"
#include "Run/MaskedMarginals.h"
#include "Signs.h"
#include "StructureArrays.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
namespace Protein = AttentionAtlas::ProteinArrays;
using namespace AttentionAtlas;
using atlas::AminoAcids;

namespace
{

constexpr const char* ProteinName = "Protein"; // the property, in messages

/// The letters of a text as texts.
std::vector<std::string> LettersOf(std::string_view text)
{
  std::vector<std::string> letters;
  for (const char letter : text)
  {
    letters.emplace_back(1, letter);
  }
  return letters;
}

}

vtkStandardNewMacro(vtkMutationScan);

struct vtkMutationScan::Scan
{
  atlas::ProteinInput protein;
  std::vector<double> mutants;  ///< [places, amino acids], logarithms of probabilities
  std::vector<double> wildType; ///< [places]
  std::vector<double> mean;     ///< [places], effects

  std::size_t Places() const { return this->wildType.size(); }
  int PositionOf(std::size_t place) const
  {
    return static_cast<int>(this->protein.firstResidue + static_cast<std::int64_t>(place));
  }

  void FindMeans();
  void AddSubstitutions(const std::vector<std::size_t>& list, double own, vtkFieldData* data) const;
  void MakeTable(vtkTable* table) const;
  void MakeImage(vtkInformation* info) const;
  void MakePlaces(vtkTable* table) const;
  void RequireProtein(vtkPolyData* structure, const Task& task) const;
  void MakeStructure(vtkPolyData* input, vtkPolyData* output) const;
};

struct vtkMutationScan::Memory
{
  LastResult<Scan> scan;
};

void vtkMutationScan::Scan::FindMeans()
{
  for (std::size_t place = 0; place < this->Places(); ++place)
  {
    double sum = 0;
    int count = 0;
    for (std::size_t a = 0; a < AminoAcids.size(); ++a)
    {
      if (AminoAcids[a] != this->protein.letters[place])
      {
        sum += this->mutants[place * AminoAcids.size() + a] - this->wildType[place];
        ++count;
      }
    }
    this->mean.push_back(sum / count);
  }
}

/// Adds the arrays of substitutions, numbers place * amino acids + amino acid. `own`: the effect of
/// the amino acid that is there.
void vtkMutationScan::Scan::AddSubstitutions(
  const std::vector<std::size_t>& list, double own, vtkFieldData* data) const
{
  constexpr std::size_t width = AminoAcids.size();
  ListArrays(list, data)
    .Int(Names::Position, [this](std::size_t i) { return this->PositionOf(i / width); })
    .Text(Names::Token,
      [this](std::size_t i) { return std::string(1, this->protein.letters[i / width]); })
    .Text(Protein::AminoAcid, [](std::size_t i) { return std::string(1, AminoAcids[i % width]); })
    .Double(Protein::MutationEffect,
      [this, own](std::size_t i)
      {
        const bool isOwn = AminoAcids[i % width] == this->protein.letters[i / width];
        return isOwn ? own : this->mutants[i] - this->wildType[i / width];
      })
    .Double(Protein::LogProbability, [this](std::size_t i) { return this->mutants[i]; });
}

void vtkMutationScan::Scan::MakeTable(vtkTable* table) const
{
  std::vector<std::size_t> rows(this->mutants.size());
  std::iota(rows.begin(), rows.end(), std::size_t{ 0 });
  this->AddSubstitutions(rows, 0, table->GetRowData());
  SetFormat(table, Protein::EffectsFormat);
}

/// Makes the part of the image that is asked for.
void vtkMutationScan::Scan::MakeImage(vtkInformation* info) const
{
  std::vector<std::size_t> shown;
  for (const std::size_t cell : BeginImage(info))
  {
    shown.push_back(cell % this->Places() * AminoAcids.size() + cell / this->Places());
  }
  auto* image = vtkImageData::GetData(info);
  constexpr double none = std::numeric_limits<double>::quiet_NaN(); // else as white as no effect
  this->AddSubstitutions(shown, none, image->GetPointData());
  image->GetPointData()->SetActiveScalars(Protein::MutationEffect);
  vtkFieldData* fields = image->GetFieldData();
  ListArrays(LettersOf(this->protein.letters), fields).Text(Names::KeyToken);
  ListArrays(LettersOf(AminoAcids), fields).Text(Names::QueryToken);
  AddField(fields, Names::KeyTitle, std::string("Residue"));
  AddField(fields, Names::QueryTitle, std::string("Amino acid"));
  AddSigns(fields, "Gray: the residue's own amino acid.");
  SetFormat(image, Protein::EffectsImageFormat);
}

void vtkMutationScan::Scan::MakePlaces(vtkTable* table) const
{
  std::vector<std::size_t> places(this->Places());
  std::iota(places.begin(), places.end(), std::size_t{ 0 });
  ListArrays(places, table->GetRowData())
    .Int(Names::Position, [this](std::size_t place) { return this->PositionOf(place); })
    .Text(Names::Token,
      [this](std::size_t place) { return std::string(1, this->protein.letters[place]); })
    .Double(Protein::MeanEffect, [this](std::size_t place) { return this->mean[place]; })
    .Double(Protein::LogProbability, [this](std::size_t place) { return this->wildType[place]; });
  SetFormat(table, Protein::MutatedResiduesFormat);
}

/// Throws if the structure of all ranks, as Mmcif Reader and Bind Tokens make it, is of another
/// protein.
void vtkMutationScan::Scan::RequireProtein(vtkPolyData* structure, const Task& task) const
{
  constexpr double identity = 0.9;
  const bool hasLetters = structure != nullptr && structure->GetPointData()->GetAbstractArray(
                                                    StructureArrays::ResidueName) != nullptr;
  const std::vector<atlas::ResidueAtom> atoms =
    task.Ranks().Gather(ResidueAtomsOf(hasLetters ? structure : nullptr, ""));
  std::vector<std::int64_t> positions(this->Places());
  std::iota(positions.begin(), positions.end(), this->protein.firstResidue);
  atlas::RequireSameProtein(
    atlas::PlaceByTokens(atoms, positions, this->protein.letters, atlas::ContactAtom::CAlpha),
    identity, "Choose another structure, or bind it to a recording of the protein.");
}

void vtkMutationScan::Scan::MakeStructure(vtkPolyData* input, vtkPolyData* output) const
{
  if (input == nullptr || input->GetNumberOfPoints() == 0)
  {
    return;
  }
  vtkDataArray* tokens = input->GetPointData()->GetArray(Names::BoundToken);
  atlas::ThrowIf<atlas::OptionError>(tokens == nullptr || tokens->GetNumberOfComponents() != 1,
    "Structure: expected points with the array '", Names::BoundToken,
    "', found none; give the output of Bind Tokens, bound to a recording of the protein.");
  output->ShallowCopy(input);
  const auto effects =
    NewTuples<vtkFloatArray>(Protein::MeanEffect, 1, tokens->GetNumberOfTuples());
  for (vtkIdType i = 0; i < tokens->GetNumberOfTuples(); ++i)
  {
    const auto place =
      static_cast<std::int64_t>(tokens->GetComponent(i, 0)) - this->protein.firstResidue;
    const bool isResidue = place >= 0 && place < static_cast<std::int64_t>(this->Places());
    effects->SetValue(i,
      isResidue ? static_cast<float>(this->mean[place]) : std::numeric_limits<float>::quiet_NaN());
  }
  output->GetPointData()->AddArray(effects);
  output->GetPointData()->SetActiveScalars(Protein::MeanEffect);
}

vtkMutationScan::vtkMutationScan()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkPolyData?" },
      { "vtkTable", "vtkImageData", "vtkTable", "vtkPolyData" }, TOGETHER | WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

/// Whether there is anything to run.
bool vtkMutationScan::IsAsked(vtkMultiBlockDataSet* model) const
{
  return !IsEmpty(model) && !this->Protein.empty();
}

/// The residues of the protein; 1 if there are none or that is an error, which Execute tells.
int vtkMutationScan::CountResidues(vtkMultiBlockDataSet* model) const
{
  if (!this->IsAsked(model))
  {
    return 1;
  }
  try
  {
    const auto open = ToTransformer(model);
    return static_cast<int>(atlas::EncodeProtein(*open, this->Protein, ProteinName).letters.size());
  }
  catch (const std::exception&)
  {
    return 1;
  }
}

int vtkMutationScan::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AnnounceImage(this->CountResidues(vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this))),
    static_cast<int>(AminoAcids.size()), outputVector->GetInformationObject(1), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Runs the masked sequences with all ranks, of which each does a part.
vtkMutationScan::Scan vtkMutationScan::MakeScan(vtkMultiBlockDataSet* input, const Task& task) const
{
  const auto model = ToTransformer(input);
  Scan scan;
  scan.protein = atlas::EncodeProtein(*model, this->Protein, ProteinName);
  const std::vector<std::int64_t>& ids = scan.protein.ids;
  const auto places = static_cast<std::int64_t>(scan.protein.letters.size());
  atlas::MaskedOptions options;
  options.mask = scan.protein.mask;
  options.candidates = scan.protein.aminoAcids;
  for (std::int64_t place = task.Ranks().Rank(); place < places; place += task.Ranks().Count())
  {
    options.positions.push_back(scan.protein.firstResidue + place);
  }
  // The wild type may be another letter than the twenty, such as X.
  std::vector<std::int64_t> own = ids;
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  options.candidates.insert(options.candidates.end(), own.begin(), own.end());
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  atlas::TransformerInput whole;
  whole.tokens = { ids };
  atlas::CheckInput(model->GetModel().GetConfig(), whole, std::string(ProteinName) + ": ");
  RequireMemory(static_cast<double>(atlas::MaskedMemory(model->GetModel(), ids, options)),
    "masked runs of " + std::to_string(places) + " residues", "give a shorter protein.");
  const std::size_t width = options.candidates.size();
  const std::vector<double> all = task.Ranks().GatherDealt(
    atlas::PredictMasked(model->GetModel(), ids, options), scan.protein.letters.size(), width);
  for (std::int64_t place = 0; place < places; ++place)
  {
    const auto row = all.begin() + place * static_cast<std::int64_t>(width);
    scan.mutants.insert(scan.mutants.end(), row, row + AminoAcids.size());
    const auto wild =
      std::lower_bound(own.begin(), own.end(), ids[scan.protein.firstResidue + place]);
    scan.wildType.push_back(row[AminoAcids.size() + (wild - own.begin())]);
  }
  scan.FindMeans();
  return scan;
}

void vtkMutationScan::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(!this->IsAsked(input))) // a rank without a model has told why
  {
    return;
  }
  const Scan& scan =
    this->Kept->scan.Get(task, MakeKey(TimeOf(input), std::hash<std::string>()(this->Protein)),
      [&] { return this->MakeScan(input, task); });
  scan.MakeImage(task.OutputInformation(1));
  scan.RequireProtein(task.Input<vtkPolyData>(1), task);
  scan.MakeStructure(task.Input<vtkPolyData>(1), task.Output<vtkPolyData>(3));
  if (task.IsFirst())
  {
    scan.MakeTable(task.Output<vtkTable>());
    scan.MakePlaces(task.Output<vtkTable>(2));
  }
}
