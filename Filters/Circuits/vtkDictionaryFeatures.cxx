#include "vtkDictionaryFeatures.h"

#include "Analysis/RecordedModel.h"
#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Circuits/DictionaryFeatures.h"
#include "Circuits/ResidualComponents.h"
#include "DataFormat.h"
#include "Files/FileStamp.h"
#include "ImageRequest.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenNames.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::ActiveFeature;
using atlas::FeaturePart;
using atlas::SparseDictionary;
using atlas::ToIndex;

enum FeatureOutput
{
  ActivationTable,
  ActivationImage,
  PartTable,
  LogitTable,
  ContextTable
};

/// Words on either side of one that is shown in its context.
constexpr std::int64_t WordsAround = 8;

/// Of the image: the point's number and place, and its values, with a short text.
constexpr double BytesOfPoint = sizeof(std::size_t) + 32. + 64. + 48.;

/// A feature at a token.
struct FeatureAtToken
{
  std::int64_t token = 0; ///< of those that were encoded
  int rank = 0;           ///< from 1
  ActiveFeature active;
};

/// What a dictionary makes of the tokens of a sequence, or of all.
struct Encoded
{
  std::vector<std::int64_t> rows; ///< of the tokens in the recording
  atlas::DoubleMatrix vectors;    ///< [tokens, d_in]
  atlas::SparseCode code;
  double unexplained = 0;
};

Encoded EncodeTokens(const atlas::Recording& recording, const atlas::Transformer& model,
  const SparseDictionary& dictionary, std::int64_t sequence, const atlas::Progress& progress)
{
  std::vector<std::int64_t> sequences(sequence < 0 ? recording.SequenceCount() : 1, sequence);
  if (sequence < 0)
  {
    std::iota(sequences.begin(), sequences.end(), 0);
  }
  std::int64_t count = 0;
  for (const std::int64_t s : sequences)
  {
    count += recording.SequenceLength(s);
  }
  RequireMemory(static_cast<double>(count) * 32. * static_cast<double>(dictionary.Inputs()) +
                  atlas::EncodingMemory(dictionary, count),
    "the features of " + std::to_string(count) + " tokens", "choose one Sequence, a shorter one.");
  Encoded encoded;
  encoded.vectors.resize(count, dictionary.Inputs());
  const atlas::Progress ofInputs = progress.Part(0., 0.5);
  for (std::size_t i = 0; i < sequences.size(); ++i)
  {
    const auto first = static_cast<std::int64_t>(encoded.rows.size());
    const std::int64_t length = recording.SequenceLength(sequences[i]);
    encoded.vectors.middleRows(first, length) = atlas::DictionaryInputs(recording, model,
      dictionary, sequences[i], ThreadLimit(), ofInputs.Part(i, i + 1, sequences.size()));
    encoded.rows.resize(first + length);
    std::iota(
      encoded.rows.begin() + first, encoded.rows.end(), recording.sequenceOffsets[sequences[i]]);
  }
  encoded.code = atlas::Encode(dictionary, encoded.vectors, ThreadLimit(), progress.Part(0.5, 1.));
  if (count > 0)
  {
    encoded.unexplained = atlas::UnexplainedVariance(encoded.vectors, encoded.code.reconstructed);
  }
  return encoded;
}

/// The strongest features of an encoded text, by falling largest activation, then number; others
/// follow by number.
std::vector<std::int32_t> StrongestFeatures(
  const Encoded& encoded, std::int64_t features, std::int64_t count)
{
  std::vector<ActiveFeature> largest(features);
  for (std::int64_t f = 0; f < features; ++f)
  {
    largest[f].feature = static_cast<std::int32_t>(f);
  }
  for (const std::vector<ActiveFeature>& active : encoded.code.active)
  {
    for (const ActiveFeature& item : active)
    {
      double& value = largest[item.feature].value;
      value = std::max(value, item.value);
    }
  }
  const auto before = [](const ActiveFeature& a, const ActiveFeature& b) { return a.IsBefore(b); };
  std::partial_sort(largest.begin(), largest.begin() + count, largest.end(), before);
  std::vector<std::int32_t> strongest;
  strongest.reserve(count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    strongest.push_back(largest[i].feature);
  }
  return strongest;
}

/// The words around a token of a recording, with [ ] around it.
std::string ContextOf(const atlas::Recording& recording, std::int64_t row)
{
  const std::int64_t sequence = recording.tokens.sequence[row];
  const std::int64_t begin = std::max(row - WordsAround, recording.sequenceOffsets[sequence]);
  const std::int64_t end = std::min(row + WordsAround + 1, recording.sequenceOffsets[sequence + 1]);
  std::vector<std::string> texts;
  for (std::int64_t i = begin; i < end; ++i)
  {
    texts.push_back(TokenText(recording, i));
  }
  const bool hasSpaces = std::any_of(texts.begin(), texts.end(),
    [](const std::string& text) { return !text.empty() && text[0] == ' '; });
  std::string all;
  for (std::int64_t i = begin; i < end; ++i)
  {
    std::string text = texts[i - begin];
    if ((hasSpaces && !text.empty() && text[0] == ' ') || (!hasSpaces && i > begin))
    {
      all += ' ';
      text.erase(0, hasSpaces ? 1 : 0);
    }
    all += i == row ? "[" + text + "]" : text;
  }
  return all;
}

}

vtkStandardNewMacro(vtkDictionaryFeatures);

/// What is kept between executions.
struct vtkDictionaryFeatures::Memory
{
  LastResult<Encoded> encoded;
  std::int64_t read = 0; ///< dictionaries that were read

  /// The dictionary of a file, which is read again if it has changed.
  SparseDictionary& Read(const std::string& path)
  {
    const bool isKnown = this->Dictionary != nullptr && path == this->Path &&
                         std::all_of(this->Stamps.begin(), this->Stamps.end(),
                           [](const atlas::FileStamp& stamp) { return stamp.IsCurrent(); });
    if (!isKnown)
    {
      this->Dictionary.reset();
      const std::filesystem::path weights = atlas::DictionaryWeights(path);
      this->Stamps = { atlas::FileStamp(weights),
        atlas::FileStamp(weights.parent_path() / "cfg.json") };
      this->Dictionary = std::make_unique<SparseDictionary>(atlas::ReadSparseDictionary(path));
      this->OfFile = this->Dictionary->steps;
      this->Path = path;
      ++this->read;
    }
    return *this->Dictionary;
  }

  /// The steps of the activations on which it was trained.
  atlas::ActivationSteps StepsOf(int processing) const
  {
    const bool folds = processing == TRANSFORMER_LENS;
    return processing == FROM_FILE ? this->OfFile : atlas::ActivationSteps{ folds, folds, folds };
  }

private:
  std::unique_ptr<SparseDictionary> Dictionary;
  atlas::ActivationSteps OfFile;
  std::string Path;
  std::vector<atlas::FileStamp> Stamps;
};

/// What is shown.
struct vtkDictionaryFeatures::Found
{
  const atlas::Recording& recording;
  const SparseDictionary& dictionary;
  const Encoded& encoded;
  std::vector<std::int32_t> strongest; ///< those of the image
  std::int32_t feature = 0;
  int sequence = 0; ///< -1: all

  std::int64_t RowOf(const FeatureAtToken& place) const { return this->encoded.rows[place.token]; }

  /// Adds where places are in the recording.
  void AddTokens(const std::vector<FeatureAtToken>& places, vtkDataSetAttributes* data) const
  {
    const atlas::RecordedTokens& tokens = this->recording.tokens;
    ListArrays(places, data)
      .Int(Names::Sequence,
        [&](const FeatureAtToken& place) { return tokens.sequence[this->RowOf(place)]; })
      .Int(Names::Position,
        [&](const FeatureAtToken& place) { return tokens.position[this->RowOf(place)]; })
      .Id(Names::TokenIndex, [&](const FeatureAtToken& place) { return this->RowOf(place); })
      .Text(Names::Token, [&](const FeatureAtToken& place)
        { return TokenText(this->recording, this->RowOf(place)); });
  }

  void Describe(vtkDataObject* output, const char* format) const
  {
    vtkFieldData* fields = output->GetFieldData();
    std::int64_t active = 0;
    for (const std::vector<ActiveFeature>& items : this->encoded.code.active)
    {
      active += static_cast<std::int64_t>(items.size());
    }
    AddField(fields, Names::HookName, this->dictionary.hook);
    AddField(fields, Names::Feature, this->feature);
    AddField(fields, Names::Features, this->dictionary.Features());
    AddField(fields, Names::ActiveFeatures,
      static_cast<double>(active) / static_cast<double>(this->encoded.rows.size()));
    AddField(fields, Names::UnexplainedVariance, this->encoded.unexplained);
    SetFormat(output, format);
  }

  void FillActivations(std::int64_t top, vtkTable* table) const
  {
    std::vector<FeatureAtToken> places;
    for (std::size_t t = 0; t < this->encoded.rows.size(); ++t)
    {
      int rank = 0;
      for (const ActiveFeature& item : this->encoded.code.active[t])
      {
        if (rank == top)
        {
          break;
        }
        places.push_back({ static_cast<std::int64_t>(t), ++rank, item });
      }
    }
    vtkDataSetAttributes* rows = table->GetRowData();
    this->AddTokens(places, rows);
    ListArrays(places, rows)
      .Int(Names::Rank, &FeatureAtToken::rank)
      .Int(Names::Feature, [](const FeatureAtToken& place) { return place.active.feature; })
      .Double(Names::Activation, [](const FeatureAtToken& place) { return place.active.value; })
      .Double(Names::ReconstructionError,
        [this](const FeatureAtToken& place)
        {
          const auto vector = this->encoded.vectors.row(place.token);
          const double length = vector.norm();
          const double left = (vector - this->encoded.code.reconstructed.row(place.token)).norm();
          return length > 0 ? left / length : 0;
        });
    rows->SetPedigreeIds(rows->GetAbstractArray(Names::TokenIndex));
    this->Describe(table, Formats::DictionaryFeatures);
  }

  void FillImage(vtkInformation* info, const atlas::Progress& progress) const
  {
    const std::int64_t tokens = this->encoded.rows.size();
    const std::int64_t shown = this->strongest.size();
    const std::array<int, 6> asked = RequestedExtent(info, tokens, shown);
    RequireMemory((asked[1] - asked[0] + 1.) * (asked[3] - asked[2] + 1.) * BytesOfPoint,
      "the image of " + std::to_string(shown) + " features at " + std::to_string(tokens) +
        " tokens",
      "choose fewer ImageFeatures, or one Sequence.");
    std::vector<FeatureAtToken> places;
    const std::vector<std::size_t> cells = BeginImage(info, tokens, shown);
    const std::size_t width = asked[1] - asked[0] + 1;
    places.reserve(cells.size());
    for (const std::size_t cell : cells)
    {
      if (places.size() % width == 0)
      {
        progress(places.size(), cells.size());
      }
      const std::size_t token = cell % this->encoded.rows.size();
      const std::int32_t number = this->strongest[cell / this->encoded.rows.size()];
      const std::vector<ActiveFeature>& active = this->encoded.code.active[token];
      const auto found = std::find_if(active.begin(), active.end(),
        [number](const ActiveFeature& item) { return item.feature == number; });
      places.push_back({ static_cast<std::int64_t>(token), 0,
        { number, found == active.end() ? 0 : found->value } });
    }
    auto* image = vtkImageData::GetData(info);
    vtkPointData* points = image->GetPointData();
    ListArrays(places, points)
      .Double(Names::Activation, [](const FeatureAtToken& place) { return place.active.value; })
      .Int(Names::Feature, [](const FeatureAtToken& place) { return place.active.feature; });
    this->AddTokens(places, points);
    points->SetActiveScalars(Names::Activation);
    vtkFieldData* fields = image->GetFieldData();
    ListArrays(this->encoded.rows, fields)
      .Text(Names::KeyToken, [this](std::int64_t row) { return TokenText(this->recording, row); });
    ListArrays(this->strongest, fields)
      .Text(Names::QueryToken, [](std::int32_t number) { return std::to_string(number); });
    AddField(fields, Names::KeyTitle, "Token");
    AddField(fields, Names::QueryTitle, "Feature");
    if (this->sequence < 0)
    {
      AddAllSequences(this->recording, fields);
    }
    else
    {
      AddSequence(this->sequence, SequenceText(this->recording, this->sequence), fields);
    }
    this->Describe(image, Formats::DictionaryFeaturesImage);
  }

  void FillParts(const std::vector<FeaturePart>& parts, vtkTable* table) const
  {
    const auto reading = [](std::size_t kind)
    { return [kind](const FeaturePart& part) { return part.reading.at(kind); }; };
    ListArrays(parts, table->GetRowData())
      .Text(Names::Component, &FeaturePart::name)
      .Int(Names::Layer, &FeaturePart::layer)
      .Int(Names::Head, &FeaturePart::head)
      .Double(Names::Contribution, &FeaturePart::contribution)
      .Double(Names::Share, &FeaturePart::share)
      .Double(Names::QueryReading, reading(0))
      .Double(Names::KeyReading, reading(1))
      .Double(Names::ValueReading, reading(2));
    this->Describe(table, Formats::DictionaryFeaturesHeads);
  }

  void FillLogits(
    const atlas::FeatureLogits& logits, const TokenNames& names, vtkTable* table) const
  {
    struct Row
    {
      const char* end;
      int rank;
      atlas::TokenLogit token;
    };
    std::vector<Row> rows;
    for (const auto& [end, list] :
      { std::pair("Highest", &logits.highest), std::pair("Lowest", &logits.lowest) })
    {
      int rank = 0;
      for (const atlas::TokenLogit& token : *list)
      {
        rows.push_back({ end, ++rank, token });
      }
    }
    ListArrays(rows, table->GetRowData())
      .Text(Names::End, &Row::end)
      .Int(Names::Rank, &Row::rank)
      .Text(Names::Token, [&](const Row& row) { return names.Of(row.token.id); })
      .Int(Names::TokenId, [](const Row& row) { return row.token.id; })
      .Double(Names::Logit, [](const Row& row) { return row.token.logit; });
    this->Describe(table, Formats::DictionaryFeaturesLogits);
  }

  /// Where the feature is active, strongest first.
  std::vector<FeatureAtToken> Contexts() const
  {
    std::vector<FeatureAtToken> places;
    for (std::size_t t = 0; t < this->encoded.rows.size(); ++t)
    {
      for (const ActiveFeature& item : this->encoded.code.active[t])
      {
        if (item.feature == this->feature)
        {
          places.push_back({ static_cast<std::int64_t>(t), 0, item });
        }
      }
    }
    std::sort(places.begin(), places.end(),
      [](const FeatureAtToken& a, const FeatureAtToken& b)
      {
        return a.active.value > b.active.value ||
               (a.active.value == b.active.value && a.token < b.token);
      });
    return places;
  }

  void FillContexts(std::vector<FeatureAtToken> places, std::size_t top, vtkTable* table) const
  {
    places.resize(std::min(places.size(), top));
    vtkDataSetAttributes* rows = table->GetRowData();
    ListArrays(places, rows)
      .Int(Names::Rank, [rank = 0](const FeatureAtToken&) mutable { return ++rank; })
      .Double(Names::Activation, [](const FeatureAtToken& place) { return place.active.value; });
    this->AddTokens(places, rows);
    ListArrays(places, rows)
      .Text(Names::Text, [this](const FeatureAtToken& place)
        { return ContextOf(this->recording, this->RowOf(place)); });
    rows->SetPedigreeIds(rows->GetAbstractArray(Names::TokenIndex));
    this->Describe(table, Formats::DictionaryFeaturesContexts);
  }
};

vtkDictionaryFeatures::vtkDictionaryFeatures()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkImageData", "vtkTable", "vtkTable", "vtkTable" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

int vtkDictionaryFeatures::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  const RecordingRanges ranges(recording);
  this->SequenceRange[1] = ranges.sequence[1];
  this->FeatureRange[1] = 0;
  int columns = 0;
  int rows = 0;
  if (!IsEmpty(recording) && !this->DictionaryFile.empty())
  {
    columns = this->Sequence < 0 ? ranges.tokens : SequenceTokens(recording, this->Sequence);
    try
    {
      const std::int64_t features = atlas::CountFeatures(this->DictionaryFile);
      this->FeatureRange[1] = static_cast<int>(features) - 1;
      rows = static_cast<int>(std::min<std::int64_t>(features, std::max(this->ImageFeatures, 1)));
    }
    catch (const std::exception&) // which RequestData tells
    {
      columns = 1;
      rows = 1;
    }
  }
  AnnounceImage(columns, rows, outputVector->GetInformationObject(ActivationImage), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkDictionaryFeatures::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || this->DictionaryFile.empty())
  {
    return;
  }
  for (const auto& [name, number] :
    { std::pair("Top", this->Top), std::pair("ImageFeatures", this->ImageFeatures) })
  {
    atlas::ThrowIf<atlas::OptionError>(
      number < 1, name, ": expected at least 1, found ", number, ".");
  }
  const atlas::Recording recording = ToRecording(input);
  const std::int64_t sequences = recording.SequenceCount();
  atlas::ThrowIf<atlas::OptionError>(this->Sequence < -1 || this->Sequence >= sequences,
    "Sequence: expected one from 0 to ", sequences - 1, ", or -1 for all, found ", this->Sequence,
    ".");
  auto* described = task.Input<vtkMultiBlockDataSet>(1);
  const auto open = ToTransformer(described);
  const atlas::Transformer& model = open->GetModel();
  task.Reads(atlas::DictionaryWeights(this->DictionaryFile).string().c_str());
  SparseDictionary& dictionary = this->Kept->Read(this->DictionaryFile);
  atlas::ThrowIf<atlas::OptionError>(this->Feature < -1 || this->Feature >= dictionary.Features(),
    "Feature: expected one from 0 to ", dictionary.Features() - 1,
    ", or -1 for the strongest, found ", this->Feature, ".");
  dictionary.steps = this->Kept->StepsOf(this->Processing);
  const Encoded& encoded = this->Kept->encoded.Get(task,
    MakeKey(TimeOf(input), TimeOf(described), this->Sequence, this->Processing, this->Kept->read),
    [&]
    {
      atlas::RequireSameModel(recording, model, "Dictionary Features");
      return EncodeTokens(
        recording, model, dictionary, this->Sequence, task.Progress().Part(0, 0.65));
    });
  atlas::ThrowIf<atlas::OptionError>(
    encoded.rows.empty(), "Sequence: expected one with tokens, found one without.");
  Found found{ recording, dictionary, encoded,
    StrongestFeatures(encoded, dictionary.Features(),
      std::min<std::int64_t>(this->ImageFeatures, dictionary.Features())) };
  const bool isAny = std::any_of(encoded.code.active.begin(), encoded.code.active.end(),
    [](const std::vector<ActiveFeature>& active) { return !active.empty(); });
  found.sequence = this->Sequence;
  found.feature = this->Feature >= 0 || !isAny ? this->Feature : found.strongest.front();
  const atlas::Progress ofImage = task.Progress().Part(0.65, 0.7);
  found.FillImage(task.OutputInformation(ActivationImage), ofImage);
  if (!task.IsFirst())
  {
    return;
  }
  found.FillActivations(this->Top, task.Output<vtkTable>(ActivationTable));
  if (found.feature < 0)
  {
    vtkWarningMacro(<< "Dictionary Features: no feature is active; check Processing.");
    found.FillParts({}, task.Output<vtkTable>(PartTable));
    found.FillLogits({}, TokenNames(open), task.Output<vtkTable>(LogitTable));
    found.FillContexts({}, 0, task.Output<vtkTable>(ContextTable));
    return;
  }
  const std::vector<FeatureAtToken> contexts = found.Contexts();
  atlas::DoubleMatrix vectors(contexts.size(), dictionary.Inputs());
  std::vector<std::int64_t> rows;
  for (const FeatureAtToken& place : contexts)
  {
    vectors.row(static_cast<std::int64_t>(rows.size())) = encoded.vectors.row(place.token);
    rows.push_back(found.RowOf(place));
  }
  found.FillParts(atlas::SplitFeature(recording, model, dictionary, found.feature, rows, vectors,
                    ThreadLimit(), task.Progress().Part(0.7, 0.9)),
    task.Output<vtkTable>(PartTable));
  atlas::LargestProductOptions options = LargestOptions(task, this->Top);
  options.progress = task.Progress().Part(0.9, 1.);
  found.FillLogits(atlas::FindFeatureLogits(model, dictionary, found.feature, options),
    TokenNames(open), task.Output<vtkTable>(LogitTable));
  found.FillContexts(contexts, ToIndex(this->Top), task.Output<vtkTable>(ContextTable));
}
