#include "vtkAttentionSentence.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Joined.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Recording/JoinedPictures.h"
#include "Recording/SpecialTokens.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "SentenceOutput.h"
#include "Signs.h"
#include "Task.h"
#include "TokenText.h"

#include <vtkDataSet.h>
#include <vtkExtractSelection.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using atlas::TokenSide;

namespace
{

constexpr std::array<atlas::AttentionQuantity, 3> SentenceQuantities = {
  atlas::AttentionQuantity::Weights, atlas::AttentionQuantity::NormWeighted,
  atlas::AttentionQuantity::Rollout
};

/// Sets the flags of the positions of tokens, given as rows of the recording's tokens. Those of
/// other sequences have none.
std::vector<bool> FlagsOf(const std::vector<vtkIdType>& rows, const char* property,
  const SentenceWords& words, std::int64_t tokens)
{
  std::vector<bool> flags(words.tokens.size());
  for (const vtkIdType row : rows)
  {
    atlas::ThrowIf<atlas::OptionError>(row < 0 || row >= tokens, property,
      ": expected tokens from 0 to ", tokens - 1, ", found ", row, ".");
    const std::int64_t word = words.WordOf(row);
    if (word >= 0)
    {
      flags[word] = true;
    }
  }
  return flags;
}

/// The numbers of a list as text.
template<class Number>
std::string OfList(const std::vector<Number>& numbers)
{
  return atlas::Joined(numbers, [](Number number) { return std::to_string(number); });
}

}

vtkStandardNewMacro(vtkAttentionSentence);

/// What is shown: all but the outputs.
struct vtkAttentionSentence::Shown
{
  vtkMultiBlockDataSet* input = nullptr;
  std::vector<int> numbers;   ///< of the heads
  bool joins = false;         ///< whether pictures are joined
  atlas::Recording recording; ///< of one sequence of words, if pictures are joined
  std::int64_t tokens = 0;    ///< of the recording of the input
  atlas::AttentionQuantity quantity = atlas::AttentionQuantity::Weights; ///< of the input
  std::int64_t sequence = 0;                                             ///< likewise
  std::unique_ptr<SentenceWords> words;
  std::unique_ptr<atlas::SentenceLayout> layout;
  atlas::SentenceOptions options;
  SentenceHeads heads;
  vtkNew<vtkPolyData> wordPoints;

  /// Reads a head, beside the tokens.
  void Read(int head)
  {
    this->options.head = head;
    this->recording = ToRecording(this->input, this->options.layer, head, this->quantity);
    // Checks that all is there, before anything is allocated.
    atlas::EvaluateAttention(
      this->recording, this->sequence, this->options.layer, head, this->quantity, 0, 0, nullptr);
  }

  /// Makes the recording one of words, of which a picture is one.
  void Join(const atlas::Progress& progress)
  {
    const atlas::JoinedWords joined = atlas::JoinPictures(this->recording, this->sequence);
    this->recording = atlas::JoinAttention(this->recording,
      { this->sequence, this->options.layer, this->options.head, this->quantity, 0, 0 }, joined,
      ThreadLimit(), progress);
    this->options.head = 0;
  }

  /// The number of tokens that can be named: of all sequences or, for their mean, of positions.
  std::int64_t TokenCount() const
  {
    return this->options.sequence == atlas::AllSequences
             ? static_cast<std::int64_t>(this->words->tokens.size())
             : this->tokens;
  }

  /// Throws if the words and the most lines that there can be do not fit into memory.
  void RequireMemory() const
  {
    double ends = 0;
    for (const atlas::SentencePage& page : this->layout->Pages())
    {
      ends += static_cast<double>(page.queryEnd - page.queryBegin + page.keyEnd - page.keyBegin);
    }
    const auto rows =
      static_cast<double>(this->layout->Queries().end - this->layout->Queries().begin);
    const auto keys = static_cast<double>(this->layout->Keys().end - this->layout->Keys().begin);
    const bool addsUp = this->options.quantity != atlas::AttentionQuantity::NormWeighted;
    const double perRow = addsUp && this->options.threshold > 0
                            ? std::min(keys, 1 / this->options.threshold + 1)
                            : keys;
    const auto count = static_cast<double>(this->numbers.size());
    const double lines = count * rows * perRow;
    constexpr double bytesPerLine =
      sizeof(atlas::AttentionLink) + 5. * sizeof(vtkIdType) + 5 * sizeof(float);
    constexpr double bytesPerWord = 300;
    constexpr double bytesPerEnd = 32;
    AttentionAtlas::RequireMemory(
      lines * bytesPerLine + ends * (bytesPerWord + count * bytesPerEnd),
      "up to " + std::to_string(static_cast<std::int64_t>(lines)) + " lines",
      "raise Threshold, or show fewer words by TokenCount.");
  }
};

/// What is kept of the heads: another page or threshold changes their lines alone.
struct vtkAttentionSentence::LastOutput
{
  LastResult<std::vector<atlas::SentenceSums>> sums;
};

vtkAttentionSentence::vtkAttentionSentence()
  : vtkHeadAlgorithm(WITH_MEANS, { "vtkMultiBlockDataSet", "vtkSelection?" },
      { "vtkPolyData", "vtkPolyData", "vtkPolyData" })
  , Last(std::make_unique<LastOutput>())
{
}

std::vector<bool> vtkAttentionSentence::FindHidden(const Shown& shown) const
{
  std::vector<bool> hidden =
    FlagsOf(this->HiddenTokens, "HiddenTokens", *shown.words, shown.TokenCount());
  if (this->HideFirst && !hidden.empty())
  {
    hidden[0] = true;
  }
  if (this->HideSpecial)
  {
    const std::vector<bool> special =
      atlas::FindSpecialTokens(shown.recording, shown.options.sequence);
    std::transform(hidden.begin(), hidden.end(), special.begin(), hidden.begin(),
      [](bool isHidden, bool isSpecial) { return isHidden || isSpecial; });
  }
  return hidden;
}

/// Finds the tokens to which lines are restricted: those that are set, and the selected words.
void vtkAttentionSentence::ChooseTokens(vtkSelection* selection, Shown& shown) const
{
  const bool hasSelection = selection != nullptr && selection->GetNumberOfNodes() > 0;
  TokenSide side = this->Direction == FROM_QUERIES ? TokenSide::Query : TokenSide::Key;
  if (!this->SelectedTokens.empty() || hasSelection)
  {
    shown.options.chosen =
      FlagsOf(this->SelectedTokens, "SelectedTokens", *shown.words, shown.TokenCount());
  }
  if (hasSelection)
  {
    vtkNew<vtkExtractSelection> extract;
    extract->SetInputDataObject(0, shown.wordPoints);
    extract->SetInputDataObject(1, selection);
    extract->Update();
    auto* found = vtkDataSet::SafeDownCast(extract->GetOutputDataObject(0));
    std::array<std::vector<std::int64_t>, 2> positions; // of queries and of keys
    for (vtkIdType i = 0; found != nullptr && i < found->GetNumberOfPoints(); ++i)
    {
      vtkPointData* words = found->GetPointData();
      const bool isKey = words->GetArray(Names::Side)->GetComponent(i, 0) != 0;
      positions.at(isKey ? 1 : 0)
        .push_back(shown.words->WordOf(
          static_cast<std::int64_t>(words->GetArray(Names::TokenIndex)->GetComponent(i, 0))));
    }
    if (this->SelectedTokens.empty() && positions[0].empty() != positions[1].empty())
    {
      side = positions[0].empty() ? TokenSide::Key : TokenSide::Query;
    }
    for (const std::int64_t position : positions.at(side == TokenSide::Key ? 1 : 0))
    {
      shown.options.chosen[position] = true;
    }
  }
  shown.options.chosenSide = side;
  const bool hasChosenKeys = !shown.options.chosen.empty() && side == TokenSide::Key;
  shown.heads.bars = hasChosenKeys ? TokenSide::Query : TokenSide::Key;
}

/// Finds the words that are shown, and which tokens are hidden and chosen.
void vtkAttentionSentence::FindWords(
  vtkSelection* selection, Shown& shown, const atlas::Progress& progress) const
{
  for (const int head : this->Heads.empty() ? std::vector<int>{ this->Head } : this->Heads)
  {
    if (std::find(shown.numbers.begin(), shown.numbers.end(), head) == shown.numbers.end())
    {
      shown.numbers.push_back(head);
    }
  }
  if (this->Quantity == ROLLOUT) // that of all heads together
  {
    shown.numbers.resize(1);
  }
  shown.sequence = shown.options.sequence = this->Sequence;
  shown.options.layer = shown.heads.layer = this->Layer;
  shown.quantity = shown.options.quantity = SentenceQuantities.at(this->Quantity);
  shown.options.threshold = this->Threshold;
  shown.options.renormalize = this->Renormalize;
  bool isCausal = this->RowsPerPage > 0;
  for (std::size_t h = shown.numbers.size(); h-- > 0;) // ends with the first
  {
    shown.Read(shown.numbers[h]);
    isCausal = isCausal && IsCausal(shown.recording, this->Sequence);
  }
  shown.tokens = shown.recording.tokens.Count();
  shown.joins = this->JoinPictures && !shown.recording.tokens.picture.empty() &&
                this->Sequence != atlas::AllSequences;
  std::vector<std::int64_t> rows;
  std::int64_t endRow = 0;
  if (shown.joins)
  {
    const std::int64_t begin = shown.recording.sequenceOffsets[this->Sequence];
    rows = atlas::JoinPictures(shown.recording, this->Sequence).first;
    std::for_each(rows.begin(), rows.end(), [begin](std::int64_t& row) { row += begin; });
    endRow = rows.back();
    rows.pop_back();
    shown.options.sequence = 0;
    shown.options.quantity = atlas::AttentionQuantity::Weights;
    shown.Join(progress);
  }
  shown.words = std::make_unique<SentenceWords>(shown.recording, shown.options.sequence);
  shown.words->sequence = this->Sequence;
  if (shown.joins)
  {
    shown.words->rows = rows;
    shown.words->endRow = endRow;
  }
  shown.words->hidden = shown.options.hidden = this->FindHidden(shown);
  const std::int64_t sequence = shown.options.sequence;
  shown.layout =
    std::make_unique<atlas::SentenceLayout>(atlas::QueryPositions(shown.recording, sequence),
      atlas::KeyPositions(shown.recording, sequence),
      atlas::SentenceLayoutOptions{
        this->FirstToken, this->TokenCount, this->RowsPerPage, shown.words->Width(), isCausal });
  shown.options.queries = shown.layout->Queries();
  shown.options.keys = shown.layout->Keys();
  shown.RequireMemory();
  FillWords(*shown.words, *shown.layout, shown.wordPoints);
  this->ChooseTokens(selection, shown);
}

/// Evaluates the heads.
void vtkAttentionSentence::Evaluate(Shown& shown, const Task& task) const
{
  const auto evaluate = [&](const std::vector<atlas::SentenceSums>* known)
  {
    for (std::size_t h = 0; h < shown.numbers.size(); ++h)
    {
      const atlas::Progress progress = task.Progress().Part(h, h + 1, shown.numbers.size());
      if (h > 0) // the first has been read
      {
        shown.Read(shown.numbers[h]);
        if (shown.joins)
        {
          shown.Join(progress);
        }
      }
      SentenceHead head{ shown.numbers[h], {} };
      atlas::EvaluateSentence(shown.recording, shown.options, head.attention, ThreadLimit(),
        progress, known != nullptr ? &(*known)[h] : nullptr);
      shown.heads.heads.push_back(std::move(head));
    }
  };
  TaskKey key = MakeKey(TimeOf(shown.input), this->AttentionKind, this->Sequence, this->Layer,
    this->Quantity, this->Renormalize, shown.joins, static_cast<int>(shown.options.chosenSide),
    shown.numbers.size());
  key.insert(key.end(), shown.numbers.begin(), shown.numbers.end());
  key.insert(key.end(), shown.options.hidden.begin(), shown.options.hidden.end());
  key.insert(key.end(), shown.options.chosen.begin(), shown.options.chosen.end());
  const std::vector<atlas::SentenceSums>& sums = this->Last->sums.Get(task, key,
    [&]
    {
      evaluate(nullptr);
      std::vector<atlas::SentenceSums> found;
      found.reserve(shown.numbers.size());
      for (const SentenceHead& head : shown.heads.heads)
      {
        found.push_back(head.attention);
      }
      return found;
    });
  if (shown.heads.heads.empty())
  {
    evaluate(&sums);
  }
  float largest = 0;
  for (const atlas::SentenceSums& head : sums)
  {
    largest = std::max(largest, head.largest);
  }
  if (this->Quantity == NORM_WEIGHTED && largest > 0)
  {
    shown.heads.scale = static_cast<double>(largest);
  }
}

/// Fills the outputs and their field data.
void vtkAttentionSentence::Fill(const Shown& shown, const Task& task) const
{
  const std::array<vtkPolyData*, 3> outputs = { task.Output<vtkPolyData>(0),
    task.Output<vtkPolyData>(1), task.Output<vtkPolyData>(2) };
  FillLines(*shown.words, shown.heads, *shown.layout, outputs[0]);
  AddSums(shown.heads, *shown.layout, shown.wordPoints);
  outputs[1]->ShallowCopy(shown.wordPoints);
  FillBars(*shown.words, shown.heads, *shown.layout, outputs[2]);
  const std::array<const char*, 3> quantities = { "attention weight", "norm of weight x value",
    "rollout" };
  AddSigns(outputs[0]->GetFieldData(),
    shown.heads.Signs(quantities.at(this->Quantity), outputs[2]->GetNumberOfCells() > 0));
  const std::array<const char*, 3> formats = { Formats::SentenceLines, Formats::SentenceWords,
    Formats::SentenceBars };
  for (std::size_t port = 0; port < outputs.size(); ++port)
  {
    SetFormat(outputs.at(port), formats.at(port));
    this->AddKind(outputs.at(port));
    vtkFieldData* fields = outputs.at(port)->GetFieldData();
    AddSequence(this->Sequence, SequenceText(shown.recording, shown.options.sequence), fields);
    AddField(fields, Names::Layer, this->Layer);
    AddField(fields, Names::HeadColorLegend, shown.heads.Legend());
    fields->AddArray(MakeArray<vtkDoubleArray>(Names::ViewBounds, shown.layout->Bounds()));
  }
}

int vtkAttentionSentence::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* part = this->OutlineOfPart();
  this->HasPictures = !IsEmpty(part) && part->GetFieldData()->HasArray(PictureContentsField) != 0 &&
                          part->GetFieldData()->HasArray(PatchGridField) == 0
                        ? 1
                        : 0;
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkAttentionSentence::Execute(Task& task)
{
  Shown shown;
  shown.input = this->RequirePart(task);
  if (IsEmpty(shown.input) || !task.IsFirst())
  {
    return;
  }
  this->FindWords(task.Input<vtkSelection>(1), shown, task.Progress());
  this->Evaluate(shown, task);
  this->Fill(shown, task);
}
