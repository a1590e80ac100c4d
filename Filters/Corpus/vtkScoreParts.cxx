#include "vtkScoreParts.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Corpus/OutputParts.h"
#include "Corpus/ScoreParts.h"
#include "CorpusConversion.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "RecordingRanges.h"
#include "Shapes.h"
#include "Task.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// What a coordinate belongs to: values of the array Kind.
enum class CoordinateKind
{
  Query = 0,
  Key = 1,
  Embedding = 2,
  Logit = 3,
  Value = 4
};

/// A token, and where it is in the text; -1 of one of the vocabulary.
struct Place
{
  std::int32_t token = 0;
  std::int64_t document = -1;
  std::int64_t position = -1;
  std::string text;
};

/// Tokens of a kind with their coordinates [tokens, parts].
struct Tokens
{
  CoordinateKind kind = CoordinateKind::Query;
  Eigen::MatrixXd coordinates;
  std::vector<Place> places;
  bool isDrawn = false; ///< from the text, and shown as points
};

/// The parts of a head with the tokens that have coordinates.
struct Found
{
  double variance = 0;
  std::vector<double> strengths;
  std::vector<Tokens> tokens;
};

/// A token at an end of a part, or a point.
struct EndRow
{
  int part;
  int kind;
  const char* end;
  int rank;
  double coordinate;
  const Place* place;
};

/// The tokens at both ends of a part.
void AddEnds(const Tokens& tokens, int part, int most, std::vector<EndRow>& rows)
{
  std::vector<std::int64_t> order(tokens.places.size());
  std::iota(order.begin(), order.end(), std::int64_t{ 0 });
  const auto count = std::min(order.size(), static_cast<std::size_t>(most));
  for (const bool isHigh : { true, false })
  {
    // What is before among equals in the one order is behind in the other.
    const auto isBefore = [&](std::int64_t a, std::int64_t b)
    {
      const double ofA = tokens.coordinates(a, part);
      const double ofB = tokens.coordinates(b, part);
      return (ofA != ofB ? ofA > ofB : a < b) == isHigh && a != b;
    };
    std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), isBefore);
    for (std::size_t i = 0; i < count; ++i)
    {
      rows.push_back({ part + 1, static_cast<int>(tokens.kind), isHigh ? "Highest" : "Lowest",
        static_cast<int>(i) + 1, tokens.coordinates(order[i], part), &tokens.places[order[i]] });
    }
  }
}

std::vector<Place> DrawnPlaces(const atlas::CorpusStatistics& statistics)
{
  std::vector<Place> places;
  places.reserve(statistics.samples.size());
  for (const atlas::CorpusSample& sample : statistics.samples)
  {
    places.push_back({ sample.token, sample.document, sample.position,
      KindText(statistics, FindKind(statistics, sample.token)) });
  }
  return places;
}

/// The tokens of a vocabulary with as many as there are rows.
std::vector<Place> VocabularyPlaces(const TokenNames& names, std::int64_t count)
{
  std::vector<Place> places;
  places.reserve(count);
  for (std::int64_t id = 0; id < count; ++id)
  {
    const auto token = static_cast<std::int32_t>(id);
    places.push_back({ token, -1, -1, names.Of(token) });
  }
  return places;
}

Found PartsOfScores(const atlas::CorpusStatistics& statistics, int layer, int head, int most)
{
  const std::size_t index = atlas::FindCorpusHead(statistics, layer, head);
  const atlas::ScoreParts parts = atlas::FindScoreParts(statistics, layer, head, most);
  Found found;
  found.variance = parts.variance;
  for (const atlas::ScorePart& part : parts.parts)
  {
    found.strengths.push_back(part.strength);
  }
  for (const bool ofKeys : { false, true })
  {
    found.tokens.push_back({ ofKeys ? CoordinateKind::Key : CoordinateKind::Query,
      atlas::CoordinatesOf(statistics, index, parts, ofKeys), DrawnPlaces(statistics), true });
  }
  return found;
}

Found PartsOfOutputs(const atlas::CorpusStatistics& statistics,
  const std::shared_ptr<const atlas::OpenTransformer>& model, int layer, int head, int most)
{
  const std::size_t index = atlas::FindCorpusHead(statistics, layer, head);
  const int threads = ThreadLimit();
  const atlas::ProcessedWeights weights(
    model->GetModel(), atlas::WeightSteps::TransformerLens, threads);
  const atlas::OutputParts parts = atlas::FindOutputParts(statistics, weights, layer, head, most);
  Found found;
  found.variance = parts.variance;
  for (const atlas::OutputPart& part : parts.parts)
  {
    found.strengths.push_back(part.strength);
  }
  const TokenNames names(model);
  const auto add = [&](CoordinateKind kind, Eigen::MatrixXd coordinates)
  {
    std::vector<Place> places = VocabularyPlaces(names, coordinates.rows());
    found.tokens.push_back({ kind, std::move(coordinates), std::move(places), false });
  };
  add(CoordinateKind::Embedding,
    atlas::EmbeddingCoordinates(model->GetModel(), layer, head, parts, threads));
  add(CoordinateKind::Logit, atlas::LogitEffects(weights, parts, threads));
  found.tokens.push_back({ CoordinateKind::Value,
    atlas::OutputCoordinates(statistics, index, parts), DrawnPlaces(statistics), true });
  return found;
}

}

vtkStandardNewMacro(vtkScoreParts);

vtkScoreParts::vtkScoreParts()
  : vtkCorpusAlgorithm({ "vtkTable", "vtkTable", "vtkPolyData" }, { "vtkMultiBlockDataSet?" })
{
}

void vtkScoreParts::Show(const atlas::CorpusStatistics& statistics, Task& task)
{
  auto* model = task.Input<vtkMultiBlockDataSet>(1);
  atlas::ThrowIf<atlas::OptionError>(this->Circuit == OUTPUTS && IsEmpty(model),
    "Outputs: expected the Model of the statistics, found none.");
  const Found found =
    this->Circuit == OUTPUTS
      ? PartsOfOutputs(statistics, ToTransformer(model), this->Layer, this->Head, this->Parts)
      : PartsOfScores(statistics, this->Layer, this->Head, this->Parts);
  const std::vector<double>& strengths = found.strengths;

  auto* table = task.Output<vtkTable>(0);
  double sum = 0;
  const auto shareOf = [&](double strength) { return strength * strength / found.variance; };
  ListArrays(strengths, table->GetRowData())
    .Int(Names::Part, [number = 0](double) mutable { return ++number; })
    .Double(Names::Strength)
    .Double(Names::Variance, [](double strength) { return strength * strength; })
    .Double(Names::Share, shareOf)
    .Double(Names::Cumulative, [&](double strength) { return sum += shareOf(strength); });
  AddField(table->GetFieldData(), Names::Variance, found.variance);
  SetFormat(table, Formats::ScoreParts);

  std::vector<EndRow> rows;
  for (int part = 0; part < static_cast<int>(strengths.size()); ++part)
  {
    for (const Tokens& tokens : found.tokens)
    {
      AddEnds(tokens, part, this->Ends, rows);
    }
  }
  auto* ends = task.Output<vtkTable>(1);
  ListArrays(rows, ends->GetRowData())
    .Int(Names::Part, &EndRow::part)
    .Int(Names::Kind, &EndRow::kind)
    .Text(Names::End, &EndRow::end)
    .Int(Names::Rank, &EndRow::rank)
    .Double(Names::Coordinate, &EndRow::coordinate)
    .Text(Names::Token, [](const EndRow& row) { return row.place->text; })
    .Int(Names::TokenId, [](const EndRow& row) { return row.place->token; })
    .Id(Names::Document, [](const EndRow& row) { return row.place->document; })
    .Id(Names::Position, [](const EndRow& row) { return row.place->position; });
  SetFormat(ends, Formats::ScorePartEnds);

  auto* output = task.Output<vtkPolyData>(2);
  Shapes vertices;
  std::vector<EndRow> drawn;
  for (const Tokens& tokens : found.tokens)
  {
    for (std::size_t s = 0; tokens.isDrawn && s < tokens.places.size(); ++s)
    {
      std::array<double, 3> place = { 0, 0, 0 };
      for (std::size_t r = 0; r < std::min<std::size_t>(3, strengths.size()); ++r)
      {
        // The inner product of a query and a key is the score; a value is what it writes.
        const double scale =
          tokens.kind == CoordinateKind::Value ? strengths[r] : std::sqrt(strengths[r]);
        place.at(r) =
          tokens.coordinates(static_cast<std::int64_t>(s), static_cast<std::int64_t>(r)) * scale;
      }
      vertices.AddVertex(place[0], place[1], place[2]);
      drawn.push_back({ 0, static_cast<int>(tokens.kind), "", 0, 0, &tokens.places[s] });
    }
  }
  vertices.MoveToVerts(output);
  ListArrays(drawn, output->GetPointData())
    .Int(Names::Kind, &EndRow::kind)
    .Text(Names::Token, [](const EndRow& row) { return row.place->text; })
    .Int(Names::TokenId, [](const EndRow& row) { return row.place->token; })
    .Id(Names::Document, [](const EndRow& row) { return row.place->document; })
    .Id(Names::Position, [](const EndRow& row) { return row.place->position; });
  SetFormat(output, Formats::ScorePartPoints);
  this->AddHead(task);
}
