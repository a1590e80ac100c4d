#include "PatchAttention.h"

#include "Base/Error.h"
#include "Base/Index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

/// Throws if two tokens are the same patch.
void RequireDistinct(const PatchGrid& grid)
{
  std::vector<std::array<std::int32_t, 3>> places;
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if (grid.row[i] >= 0)
    {
      places.push_back({ grid.picture.empty() ? 0 : grid.picture[i], grid.row[i], grid.column[i] });
    }
  }
  std::sort(places.begin(), places.end());
  const auto twice = std::adjacent_find(places.begin(), places.end());
  if (twice != places.end())
  {
    const auto& [picture, row, column] = *twice;
    throw ModelError("expected a token per patch, found two of row ", row, ", column ", column,
      grid.picture.empty() ? "." : " of picture " + std::to_string(picture) + ".");
  }
}

/// Throws unless all images have the same patches, token by token.
void RequireSameImages(const Recording& recording)
{
  const RecordedTokens& tokens = recording.tokens;
  const std::int64_t length = recording.SequenceLength(0);
  for (std::int64_t s = 1; s < recording.SequenceCount(); ++s)
  {
    const std::int64_t begin = recording.sequenceOffsets[s];
    const bool isSame =
      recording.SequenceLength(s) == length &&
      std::equal(tokens.row.begin(), tokens.row.begin() + length, tokens.row.begin() + begin) &&
      std::equal(
        tokens.column.begin(), tokens.column.begin() + length, tokens.column.begin() + begin);
    ThrowIf<OptionError>(!isSame,
      "expected images of the same patches for their mean, found others in image ", s,
      " than in image 0.");
  }
}

/// Finds the pictures of a text, and puts those that are shown side by side.
void PlacePictures(const Recording& recording, std::int64_t begin, std::int64_t end,
  std::int64_t shown, PatchGrid& grid)
{
  const auto first = recording.tokens.picture.begin();
  std::vector<std::int32_t> entries(first + begin, first + end);
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  entries.erase(entries.begin(), std::lower_bound(entries.begin(), entries.end(), 0));
  ThrowIf<OptionError>(
    entries.empty(), "expected a sequence with pictures among its words, found words alone.");
  const auto count = static_cast<std::int64_t>(entries.size());
  ThrowIf<OptionError>(shown < AllPictures || shown >= count, "Picture: expected one from 0 to ",
    count - 1, ", or -1 for all of the sequence, found ", shown, ".");
  for (const std::int32_t entry : entries)
  {
    grid.pictures.push_back({ entry });
  }
  for (std::int64_t row = begin; row < end; ++row)
  {
    const std::int32_t entry = recording.tokens.picture[row];
    const auto number = std::lower_bound(entries.begin(), entries.end(), entry) - entries.begin();
    grid.picture.push_back(entry < 0 ? -1 : static_cast<std::int32_t>(number));
    if (entry >= 0)
    {
      PatchPicture& picture = grid.pictures[number];
      const std::size_t i = row - begin;
      picture.rows = std::max(picture.rows, std::int64_t{ 1 } + grid.row[i]);
      picture.columns = std::max(picture.columns, std::int64_t{ 1 } + grid.column[i]);
    }
  }
  constexpr std::int64_t gap = 1;
  grid.rows = grid.columns = 0;
  for (std::int64_t n = 0; n < count; ++n)
  {
    if (shown == AllPictures || shown == n)
    {
      PatchPicture& picture = grid.pictures[n];
      picture.left = grid.columns == 0 ? 0 : grid.columns + gap;
      grid.columns = picture.left + picture.columns;
      grid.rows = std::max(grid.rows, picture.rows);
    }
  }
}

void CheckOptions(const PatchOptions& options, std::int64_t tokens)
{
  ThrowIf<OptionError>(!(options.threshold >= 0) || !std::isfinite(options.threshold),
    "ArrowThreshold: expected a weight of at least 0, found ", options.threshold, ".");
  ThrowIf<OptionError>(options.tokens.empty(), "expected at least one chosen token, found none.");
  for (const std::int64_t token : options.tokens)
  {
    ThrowIf<OptionError>(token < 0 || token >= tokens, "expected chosen tokens from 0 to ",
      tokens - 1, ", found ", token, ".");
  }
}

/// Takes what is shown from the rows of attention, query by query.
class Collector
{
public:
  Collector(const PatchOptions& options, const PatchGrid& grid)
    : Options(options)
    , Grid(grid)
    , Tokens(grid.row.size())
    , Sums(grid.row.size(), 0)
  {
  }

  /// Whether anything that is shown depends on the row of a query.
  bool Needs(std::int64_t query) const
  {
    return this->Options.direction == PatchDirection::To || this->HasLinks(query) ||
           this->IsChosen(query);
  }

  void Add(std::int64_t query, const float* row)
  {
    this->AddWeights(query, row);
    if (this->HasLinks(query))
    {
      this->AddLinks(query, row);
    }
  }

  PatchAttention Take()
  {
    const bool isMean = this->Options.direction == PatchDirection::From;
    const double parts = isMean ? static_cast<double>(this->Options.tokens.size()) : 1;
    for (const double sum : this->Sums)
    {
      this->Found.weights.push_back(static_cast<float>(sum / parts));
    }
    for (const std::int64_t token : this->Grid.classTokens)
    {
      this->Found.onWords += this->Sums[token] / parts;
    }
    return std::move(this->Found);
  }

private:
  const PatchOptions& Options;
  const PatchGrid& Grid;
  std::int64_t Tokens;
  std::vector<double> Sums; ///< of the weights of each token
  PatchAttention Found;

  bool IsChosen(std::int64_t query) const
  {
    const std::vector<std::int64_t>& chosen = this->Options.tokens;
    return std::binary_search(chosen.begin(), chosen.end(), query);
  }

  /// Words have no place from which an arrow could go.
  bool HasLinks(std::int64_t query) const
  {
    return !this->Grid.IsAmongWords() || this->Grid.IsPatch(query);
  }

  void AddWeights(std::int64_t query, const float* row)
  {
    if (this->Options.direction == PatchDirection::To)
    {
      for (const std::int64_t token : this->Options.tokens)
      {
        this->Sums[query] += static_cast<double>(row[token]);
      }
    }
    else if (this->IsChosen(query))
    {
      std::transform(this->Sums.begin(), this->Sums.end(), row, this->Sums.begin(),
        [](double sum, float weight) { return sum + static_cast<double>(weight); });
    }
  }

  void AddLinks(std::int64_t query, const float* row)
  {
    const std::int64_t strongest = std::max_element(row, row + this->Tokens) - row;
    const bool isMarked = strongest == query || this->Grid.IsWord(strongest);
    if (isMarked)
    {
      this->AddLink(query, strongest, row, this->Found.marks);
    }
    if (this->Options.arrows == PatchArrows::Strongest)
    {
      if (!isMarked && this->HasLinks(strongest))
      {
        this->AddLink(query, strongest, row, this->Found.arrows);
      }
      return;
    }
    for (std::int64_t key = 0; key < this->Tokens; ++key)
    {
      if (key != query && !(isMarked && key == strongest) && this->HasLinks(key))
      {
        this->AddLink(query, key, row, this->Found.arrows);
      }
    }
  }

  void AddLink(
    std::int64_t query, std::int64_t key, const float* row, std::vector<AttentionLink>& links) const
  {
    if (row[key] > 0 && static_cast<double>(row[key]) >= this->Options.threshold)
    {
      links.push_back(
        { static_cast<std::int32_t>(query), static_cast<std::int32_t>(key), row[key] });
    }
  }
};

/// The layers whose mean is shown.
std::vector<std::int64_t> LayersOf(const Recording& recording, const PatchOptions& options)
{
  if (options.layer != AllLayers)
  {
    return { options.layer };
  }
  ThrowIf<OptionError>(options.quantity == AttentionQuantity::Rollout,
    "Layer: expected one for Rollout, which goes through all layers up to it, found their mean.");
  std::vector<std::int64_t> layers;
  layers.reserve(recording.layers.size());
  for (const RecordedLayer& layer : recording.layers)
  {
    layers.push_back(layer.index);
  }
  ThrowIf<OptionError>(
    layers.empty(), "Layer: expected recorded layers for their mean, found none.");
  return layers;
}

/// The mean of rows over layers. `ofLayer` is memory for one of several.
void EvaluateLayers(const Recording& recording, const std::vector<std::int64_t>& layers,
  AttentionRows rows, std::vector<float>& ofLayer, std::vector<float>& values,
  const Progress& progress, int threads)
{
  const std::size_t count = layers.size();
  for (std::size_t l = 0; l < count; ++l)
  {
    rows.layer = layers[l];
    EvaluateAttentionRows(recording, rows, l == 0 ? values.data() : ofLayer.data(), threads,
      progress.Part(static_cast<std::int64_t>(l), static_cast<std::int64_t>(l + 1),
        static_cast<std::int64_t>(count)));
    if (l > 0)
    {
      std::transform(
        values.begin(), values.end(), ofLayer.begin(), values.begin(), std::plus<float>());
    }
  }
  if (count > 1)
  {
    const auto parts = static_cast<float>(count);
    std::for_each(values.begin(), values.end(), [parts](float& value) { value /= parts; });
  }
}

}

PatchGrid FindPatches(const Recording& recording, std::int64_t sequence, std::int64_t picture)
{
  const RecordedTokens& tokens = recording.tokens;
  ThrowIf<OptionError>(tokens.row.empty() || tokens.column.empty(),
    "expected a recording of images, whose tokens have a row and a column, found one of "
    "architecture '",
    recording.architecture, "' without.");
  AttentionLength(recording, sequence); // checks that it is there
  const bool isAmongWords = !tokens.picture.empty();
  if (sequence == AllSequences)
  {
    ThrowIf<OptionError>(isAmongWords,
      "expected one sequence of pictures among words, found the mean over all, whose "
      "positions have no pictures of their own.");
    RequireSameImages(recording);
  }
  const std::size_t image = std::max<std::int64_t>(sequence, 0);
  const std::int64_t begin = recording.sequenceOffsets[image];
  const std::int64_t end = recording.sequenceOffsets[image + 1];
  PatchGrid grid;
  grid.row.assign(tokens.row.begin() + begin, tokens.row.begin() + end);
  grid.column.assign(tokens.column.begin() + begin, tokens.column.begin() + end);
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if (grid.row[i] < 0 || grid.column[i] < 0)
    {
      grid.row[i] = grid.column[i] = -1;
      grid.classTokens.push_back(static_cast<std::int64_t>(i));
    }
    grid.rows = std::max(grid.rows, std::int64_t{ 1 } + grid.row[i]);
    grid.columns = std::max(grid.columns, std::int64_t{ 1 } + grid.column[i]);
  }
  if (isAmongWords)
  {
    PlacePictures(recording, begin, end, picture, grid);
  }
  ThrowIf<ModelError>(
    grid.rows == 0 || grid.columns == 0 || grid.rows > MaximumPatches / grid.columns, "image ",
    sequence, ": expected 1 to ", MaximumPatches, " patches, found ", grid.rows, " rows and ",
    grid.columns, " columns.");
  RequireDistinct(grid);
  return grid;
}

std::vector<std::int64_t> ChoosePatch(
  const PatchGrid& grid, std::int64_t row, std::int64_t column, std::int64_t picture)
{
  const bool isAmongWords = grid.IsAmongWords();
  const bool isAll = row == -1 && column == -1;
  if (isAll && !isAmongWords && !grid.classTokens.empty())
  {
    return { grid.classTokens.front() };
  }
  const auto count = static_cast<std::int64_t>(grid.pictures.size());
  ThrowIf<OptionError>(isAmongWords && (picture < 0 || picture >= count),
    "PatchPicture: expected a picture of the sequence from 0 to ", count - 1, ", found ", picture,
    ".");
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if ((isAmongWords && grid.picture[i] != picture) || (isAll && grid.row[i] < 0))
    {
      continue;
    }
    if (isAll || (grid.row[i] == row && grid.column[i] == column))
    {
      tokens.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (tokens.empty())
  {
    const std::int64_t rows = isAmongWords ? grid.pictures[picture].rows : grid.rows;
    const std::int64_t columns = isAmongWords ? grid.pictures[picture].columns : grid.columns;
    throw OptionError("Patch: expected a row from 0 to ", rows - 1, " and a column from 0 to ",
      columns - 1, ", or -1 -1 for ", isAmongWords ? "none" : "the class token", ", found ", row,
      " ", column, ".");
  }
  return tokens;
}

std::int64_t ChooseToken(const PatchGrid& grid, std::int64_t position)
{
  const auto count = static_cast<std::int64_t>(grid.row.size());
  ThrowIf<OptionError>(position < -1 || position >= count, "Token: expected a position from 0 to ",
    count - 1, ", or -1 for the last one, found ", position, ".");
  return position < 0 ? count - 1 : position;
}

std::optional<ImagePlace> FindImage(
  const RecordedPictures& pictures, const Recording& encoder, std::int64_t sequence)
{
  const auto entries = static_cast<std::int64_t>(pictures.contents.size());
  if (sequence < 0 || sequence >= encoder.SequenceCount() || entries == 0)
  {
    return std::nullopt;
  }
  if (encoder.SequenceCount() == entries)
  {
    return ImagePlace{ sequence, 0, 0, pictures.HeightOf(sequence), pictures.WidthOf(sequence) };
  }
  // Tiles of one size: the pixels of all pictures, and the patches that they are.
  const PatchGrid grid = FindPatches(encoder, sequence);
  const auto patches =
    static_cast<std::uint64_t>(grid.rows * grid.columns * encoder.SequenceCount());
  const std::uint64_t pixels = pictures.FirstByte(entries) / 3;
  const auto side = static_cast<std::int64_t>(
    std::llround(std::sqrt(static_cast<double>(pixels) / static_cast<double>(patches))));
  if (static_cast<std::uint64_t>(side * side) * patches != pixels)
  {
    return std::nullopt;
  }
  const std::int64_t height = side * grid.rows;
  const std::int64_t width = side * grid.columns;
  std::int64_t first = 0; // image of a picture
  for (std::int64_t entry = 0; entry < entries; ++entry)
  {
    const std::int64_t rows = pictures.HeightOf(entry) / height;
    const std::int64_t columns = pictures.WidthOf(entry) / width;
    if (rows * height != pictures.HeightOf(entry) || columns * width != pictures.WidthOf(entry))
    {
      return std::nullopt;
    }
    const std::int64_t tile = sequence - first;
    if (tile < rows * columns)
    {
      return ImagePlace{ entry, tile / columns * height, tile % columns * width, height, width };
    }
    first += rows * columns;
  }
  return std::nullopt;
}

PatchAttention EvaluatePatches(const Recording& recording, const PatchOptions& options)
{
  const PatchGrid grid = FindPatches(recording, options.sequence, options.picture);
  const std::int64_t tokens = grid.row.size();
  CheckOptions(options, tokens);
  const std::vector<std::int64_t> layers = LayersOf(recording, options);
  AttentionRows rows = { options.sequence, layers.front(), options.head, options.quantity, 0, 0 };
  for (const std::int64_t layer : layers) // checks the places
  {
    rows.layer = layer;
    EvaluateAttentionRows(recording, rows, nullptr, options.threads);
  }
  Collector collector(options, grid);
  const std::int64_t step = QueriesAtOnce(tokens); // all of up to 4,096, as Rollout prefers
  std::vector<float> values(ToIndex(std::min(step, tokens)) * ToIndex(tokens));
  std::vector<float> ofLayer(layers.size() > 1 ? values.size() : 0);
  for (rows.begin = 0; rows.begin < tokens; rows.begin = rows.end)
  {
    std::int64_t next = rows.begin;
    while (next < tokens && !collector.Needs(next))
    {
      ++next;
    }
    if (next == tokens)
    {
      break;
    }
    rows.begin = std::max(rows.begin, next / QueriesPerBlock * QueriesPerBlock);
    rows.end = std::min(rows.begin + step, tokens);
    EvaluateLayers(recording, layers, rows, ofLayer, values,
      options.progress.Part(rows.begin, rows.end, tokens), options.threads);
    for (std::int64_t query = rows.begin; query < rows.end; ++query)
    {
      collector.Add(query, values.data() + (query - rows.begin) * tokens);
    }
  }
  return collector.Take();
}

}
