#include "RecordedAttention.h"

#include "Base/Error.h"
#include "Files/MappedFile.h"
#include "Internal/Rollout.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <memory>
#include <numeric>
#include <vector>

namespace atlas
{
namespace
{

/// Values between two reports of progress.
constexpr std::int64_t PointsPerReport = std::int64_t{ 1 } << 24;

/// One head of one layer, with its indices.
struct Place
{
  const RecordedLayer& layer;
  const RecordedHead& head;
  std::int64_t h;
  std::int64_t sequence;
};

Place FindPlace(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  return { FindLayer(recording, layer), FindHead(recording, layer, head), head, sequence };
}

/// Mask Cross: the number of tokens of the source; otherwise 0.
std::int64_t SourceLength(const Recording& recording, std::int64_t sequence)
{
  return recording.mask == AttentionMask::Cross ? recording.sourceLengths.at(sequence) : 0;
}

/// Which keys queries may attend to, and what takes part in the softmax beside them.
HeadScores SoftmaxOf(const Recording& recording, const Place& place)
{
  HeadScores scores = MaskOf(recording, place.sequence, place.layer);
  if (!place.layer.sinks.empty())
  {
    scores.sink = place.layer.sinks.at(place.h);
  }
  return scores;
}

/// Gives scores the places of patches of a sequence that begins in row `first`.
void SetPatches(const Recording& recording, std::int64_t first, HeadScores& scores)
{
  scores.patchRow = recording.tokens.row.data() + first;
  scores.patchColumn = recording.tokens.column.data() + first;
}

/// Those of a head, if there are any.
void SetVectorsOfDistances(const SharedMatrix& all, std::int64_t head, std::size_t heads,
  std::int64_t& reach, const float*& vectors)
{
  if (all.IsRecorded())
  {
    const std::int64_t distances = all.rows / static_cast<std::int64_t>(heads);
    reach = distances / 2;
    vectors = all.Row(head * distances + reach);
  }
}

HeadScores ScoresOf(const Recording& recording, const Place& place)
{
  const RecordedHead& head = place.head;
  if (!head.query.IsRecorded() || !head.key.IsRecorded())
  {
    throw OptionError("the recording has no queries and keys, from which attention is computed",
      head.HasAttention()
        ? "; it stores only the " + std::string(head.scores.empty() ? "weights" : "scores") + "."
        : ".");
  }
  const std::int64_t first = recording.sequenceOffsets[place.sequence];
  HeadScores scores = SoftmaxOf(recording, place);
  scores.query = head.query.Row(first);
  scores.key = head.key.Row(first);
  scores.dimension = head.query.columns;
  scores.scale = static_cast<float>(place.layer.scoreScale);
  scores.slope =
    recording.alibiSlopes.empty() ? 0 : static_cast<float>(recording.alibiSlopes[place.h]);
  scores.slopeUnit = static_cast<float>(recording.alibiUnit);
  scores.cap = static_cast<float>(place.layer.scoreCap);
  const SharedMatrix& own = place.layer.distanceBias;
  const SharedMatrix& bias = own.IsRecorded() ? own : recording.distanceBias;
  if (bias.IsRecorded())
  {
    scores.reach = bias.columns / 2;
    scores.distanceBias = bias.Row(place.h) + scores.reach;
  }
  if (place.layer.patchBias.IsRecorded())
  {
    SetPatches(recording, first, scores);
    const auto sizeOf = [&](const std::int32_t* places)
    { return std::int64_t{ 1 } + *std::max_element(places, places + scores.length); };
    scores.patchRows = sizeOf(scores.patchRow);
    scores.patchColumns = sizeOf(scores.patchColumn);
    scores.patchBias = place.layer.patchBias.Row(place.h);
  }
  SetVectorsOfDistances(place.layer.positionKeys, place.h, place.layer.heads.size(),
    scores.positionReach, scores.positionKey);
  SetVectorsOfDistances(place.layer.positionQueries, place.h, place.layer.heads.size(),
    scores.positionReach, scores.positionQuery);
  return scores;
}

/// Copies the first `keys` values of rows begin <= i < end.
void CopyRows(const SharedMatrix& matrix, std::int64_t begin, std::int64_t end, std::int64_t keys,
  float* values)
{
  for (std::int64_t row = begin; row < end; ++row)
  {
    values = std::copy_n(matrix.Row(row), keys, values);
  }
}

/// Copies attention that is stored in the recording. Returns false if it has to be computed.
bool CopyStored(const Recording& recording, const Place& place, AttentionQuantity quantity,
  std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  const RecordedHead& head = place.head;
  const bool isOfScores = quantity == AttentionQuantity::Scores;
  ThrowIf<OptionError>(
    isOfScores && head.scores.empty() && head.HasAttention() && head.query.IsRecorded(),
    "the recording has no scores, and its weights do not follow from its queries and keys.");
  if (!(isOfScores ? !head.scores.empty()
                   : quantity == AttentionQuantity::Weights && head.HasAttention()))
  {
    return false;
  }
  const bool areWeights = !isOfScores && !head.weights.empty();
  CopyRows((areWeights ? head.weights : head.scores)[place.sequence], begin, end, keys, values);
  if (!isOfScores && !areWeights)
  {
    NormalizeScores(SoftmaxOf(recording, place), begin, end, keys, values);
  }
  return true;
}

/// Checks the files of mapped matrices, which may have been truncated.
void RequireIntact(const Place& place)
{
  const RecordedHead& head = place.head;
  for (const SharedMatrix* matrix : { &head.query, &head.key, &head.valueNorm })
  {
    atlas::RequireIntact(matrix->values.get());
  }
  for (const auto* matrices : { &head.weights, &head.scores })
  {
    if (!matrices->empty())
    {
      atlas::RequireIntact((*matrices)[place.sequence].values.get());
    }
  }
}

/// The part of a quantity of one head that is Weights, Scores, Content or Bias, for the first
/// `keys` keys, which include all that the mask allows.
void EvaluatePlain(const Recording& recording, const Place& place, AttentionQuantity quantity,
  std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  if (CopyStored(recording, place, quantity, begin, end, keys, values))
  {
    return;
  }
  const HeadScores scores = ScoresOf(recording, place);
  if (begin == end)
  {
    return;
  }
  const SingleThreadedBlas blas;
  if (quantity == AttentionQuantity::Weights)
  {
    EvaluateWeights(scores, begin, end, keys, values);
    return;
  }
  if (quantity == AttentionQuantity::Bias)
  {
    std::fill_n(values, (end - begin) * keys, 0.0F);
  }
  else
  {
    EvaluateContent(scores, begin, end, keys, values);
  }
  if (quantity == AttentionQuantity::Scores)
  {
    CapScores(scores, end - begin, keys, values);
  }
  if (quantity != AttentionQuantity::Content)
  {
    AddBias(scores, begin, end, keys, values);
  }
}

void MultiplyByNorms(const Recording& recording, const Place& place, std::int64_t rows,
  std::int64_t keys, float* values)
{
  const SharedMatrix& norms = place.head.valueNorm;
  ThrowIf<OptionError>(!norms.IsRecorded(),
    "the recording has no value norms, by which NormWeighted multiplies "
    "weights; record it again with the Transformer Recorder.");
  const float* norm = norms.Row(recording.sequenceOffsets[place.sequence]);
  for (std::int64_t row = 0; row < rows; ++row, values += keys)
  {
    std::transform(values, values + keys, norm, values, std::multiplies<float>());
  }
}

/// One head on one sequence, for the first `keys` keys.
void EvaluateHead(const Recording& recording, const Place& place, AttentionQuantity quantity,
  std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  const bool isWeighted = quantity == AttentionQuantity::NormWeighted;
  EvaluatePlain(
    recording, place, isWeighted ? AttentionQuantity::Weights : quantity, begin, end, keys, values);
  if (isWeighted)
  {
    MultiplyByNorms(recording, place, end - begin, keys, values);
  }
  RequireIntact(place);
}

/// The number of keys, from the first, beyond which a head has 0 for all queries before `end`.
std::int64_t KeysToEvaluate(
  const Recording& recording, const Place& place, AttentionQuantity quantity, std::int64_t end)
{
  const bool isMasked =
    quantity == AttentionQuantity::Weights || quantity == AttentionQuantity::NormWeighted;
  return isMasked && recording.mask == AttentionMask::Causal && !place.head.HasAttention()
           ? MaskOf(recording, place.sequence, place.layer).KeyCount(end)
           : recording.SequenceLength(place.sequence);
}

/// Spreads packed rows of `keys` values to rows of `length`, in place, with 0 behind them.
void SpreadRows(std::int64_t rows, std::int64_t keys, std::int64_t length, float* values)
{
  for (std::int64_t row = rows - 1; row >= 0 && keys < length; --row)
  {
    std::copy_backward(
      values + row * keys, values + (row + 1) * keys, values + row * length + keys);
    std::fill(values + row * length + keys, values + (row + 1) * length, 0.0F);
  }
}

/// The mean over the heads of a layer, on one sequence.
void AverageHeads(const Recording& recording, const AttentionRows& rows, float* values)
{
  const std::int64_t heads = FindLayer(recording, rows.layer).heads.size();
  const std::int64_t length = recording.SequenceLength(rows.sequence);
  const std::int64_t count = rows.end - rows.begin;
  std::fill_n(values, count * length, 0.0F);
  std::vector<float> one(count * length);
  for (std::int64_t h = 0; h < std::max<std::int64_t>(heads, 1); ++h) // without heads: an error
  {
    const Place place = FindPlace(recording, rows.sequence, rows.layer, h);
    const std::int64_t keys = KeysToEvaluate(recording, place, rows.quantity, rows.end);
    EvaluateHead(recording, place, rows.quantity, rows.begin, rows.end, keys, one.data());
    for (std::int64_t i = 0; i < count; ++i)
    {
      std::transform(one.begin() + i * keys, one.begin() + (i + 1) * keys, values + i * length,
        values + i * length, std::plus<float>());
    }
  }
  const float share = 1 / static_cast<float>(heads);
  std::for_each(values, values + count * length, [share](float& value) { value *= share; });
}

/// Rows on one sequence.
void EvaluateSequence(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress)
{
  if (rows.quantity == AttentionQuantity::Rollout)
  {
    EvaluateRollout(recording, rows, values, threads, progress);
    return;
  }
  if (rows.head == AllHeads)
  {
    AverageHeads(recording, rows, values);
    return;
  }
  const Place place = FindPlace(recording, rows.sequence, rows.layer, rows.head);
  const std::int64_t keys = KeysToEvaluate(recording, place, rows.quantity, rows.end);
  EvaluateHead(recording, place, rows.quantity, rows.begin, rows.end, keys, values);
  SpreadRows(rows.end - rows.begin, keys, recording.SequenceLength(rows.sequence), values);
}

/// Divides sums over sequences by the number of sequences that have both positions.
void DivideByCounts(const Recording& recording, const AttentionRows& rows, float* values)
{
  const std::int64_t length = AttentionLength(recording, AllSequences);
  std::vector<float> share(length, 0.0F); // of sequences that have a position
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    std::for_each(
      share.begin(), share.begin() + recording.SequenceLength(s), [](float& count) { ++count; });
  }
  for (std::int64_t i = rows.begin; i < rows.end; ++i)
  {
    for (std::int64_t key = 0; key < length; ++key, ++values)
    {
      *values /= share[std::max(i, key)];
    }
  }
}

double SumOf(const float* values, std::int64_t count)
{
  return std::accumulate(values, values + count, 0.0);
}

/// Whether rows add up to 1 or, with sinks, to less.
bool IsAttention(AttentionQuantity quantity)
{
  return quantity == AttentionQuantity::Weights || quantity == AttentionQuantity::Rollout;
}

/// Makes each row add up to its number of `sums`.
void ScaleRows(const std::vector<double>& sums, std::int64_t keys, float* values)
{
  for (const double wanted : sums)
  {
    const double sum = SumOf(values, keys);
    std::for_each(values, values + keys, [sum, wanted](float& value)
      { value = sum > 0 ? static_cast<float>(static_cast<double>(value) * wanted / sum) : 0; });
    values += keys;
  }
}

/// The mean over the sequences that have both positions.
void AverageSequences(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress)
{
  const std::int64_t keys = AttentionLength(recording, AllSequences);
  const std::int64_t sequences = recording.SequenceCount();
  const bool hasSinks = HasSinks(recording, rows.layer, rows.quantity);
  std::fill_n(values, (rows.end - rows.begin) * keys, 0.0F);
  std::vector<double> sums(rows.end - rows.begin, hasSinks ? 0 : 1); // of each row
  std::vector<std::int64_t> counts(sums.size(), 0);
  std::vector<float> one;
  for (std::int64_t s = 0; s < sequences; ++s)
  {
    const std::int64_t length = recording.SequenceLength(s);
    AttentionRows part = rows;
    part.sequence = s;
    part.begin = std::min(rows.begin, length);
    part.end = std::min(rows.end, length);
    one.resize((part.end - part.begin) * length);
    EvaluateSequence(recording, part, one.data(), threads, progress.Part(s, s + 1, sequences));
    for (std::int64_t i = 0; i < part.end - part.begin; ++i)
    {
      std::transform(one.begin() + i * length, one.begin() + (i + 1) * length, values + i * keys,
        values + i * keys, std::plus<float>());
      if (hasSinks)
      {
        const auto share = 1 / static_cast<double>(++counts[i]);
        double& mean = sums[i];
        mean += share * (SumOf(one.data() + i * length, length) - mean);
      }
    }
  }
  DivideByCounts(recording, rows, values);
  if (IsAttention(rows.quantity))
  {
    ScaleRows(sums, keys, values);
  }
}

void RequireQueries(const Recording& recording, const AttentionRows& rows)
{
  FindLayer(recording, rows.layer); // a layer or head that is not there is told first
  if (rows.head != AllHeads)
  {
    FindHead(recording, rows.layer, rows.head);
  }
  const std::int64_t keys = AttentionLength(recording, rows.sequence);
  ThrowIf<OptionError>(
    recording.mask == AttentionMask::Cross &&
      (rows.sequence == AllSequences || rows.quantity == AttentionQuantity::Rollout),
    rows.sequence == AllSequences
      ? "expected one sequence of cross attention, found all; targets begin at "
        "different positions."
      : "expected another quantity than Rollout, as layers of cross attention "
        "do not follow each other.");
  ThrowIf<OptionError>(rows.begin < 0 || rows.begin > rows.end || rows.end > keys,
    "expected queries from 0 to ", keys, ", found ", rows.begin, " to ", rows.end, ".");
}

void Evaluate(const Recording& recording, const AttentionRows& rows, float* values, int threads,
  const Progress& progress)
{
  if (rows.sequence == AllSequences)
  {
    AverageSequences(recording, rows, values, threads, progress);
  }
  else
  {
    EvaluateSequence(recording, rows, values, threads, progress);
  }
}

/// Whether rows begin and end where blocks do.
bool IsWhole(const AttentionRows& rows, std::int64_t keys)
{
  return rows.begin % QueriesPerBlock == 0 && (rows.end % QueriesPerBlock == 0 || rows.end == keys);
}

/// Calls body(rows, whole) for the rows of each block of queries, and the block, on several
/// threads. Blocks begin at multiples of QueriesPerBlock. What OpenBLAS computes of a row may
/// depend on its place among all rows of a product, so whole blocks are evaluated whatever rows are
/// asked for: each row is then the same to the byte on any number of ranks.
void ForEachBlock(const AttentionRows& rows, std::int64_t keys, int threads,
  const Progress& progress,
  const std::function<void(const AttentionRows&, const AttentionRows&)>& body)
{
  const std::int64_t first = rows.begin / QueriesPerBlock;
  const std::int64_t last = BlockCount(rows.end, QueriesPerBlock);
  const std::int64_t step = std::max(PointsPerReport / (QueriesPerBlock * keys), std::int64_t{ 1 });
  for (std::int64_t done = first; done < last; done += step)
  {
    ParallelFor(std::min(step, last - done), threads,
      [&](std::int64_t i)
      {
        AttentionRows whole = rows;
        whole.begin = (done + i) * QueriesPerBlock;
        whole.end = std::min(whole.begin + QueriesPerBlock, keys); // as many queries as keys
        AttentionRows part = whole;
        part.begin = std::max(rows.begin, whole.begin);
        part.end = std::min(rows.end, whole.end);
        body(part, whole);
      });
    progress(std::min(done + step, last) - first, last - first);
  }
}

}

HeadScores MaskOf(const Recording& recording, std::int64_t sequence, const RecordedLayer& layer)
{
  HeadScores scores;
  scores.length = recording.SequenceLength(sequence);
  scores.mask = recording.mask;
  scores.window = layer.window;
  scores.chunk = layer.chunk;
  scores.source = SourceLength(recording, sequence);
  if (!recording.tokens.keyEnd.empty())
  {
    scores.keyEnds = recording.tokens.keyEnd.data() + recording.sequenceOffsets[sequence];
  }
  if (layer.patchWindow > 0)
  {
    scores.patchWindow = layer.patchWindow;
    SetPatches(recording, recording.sequenceOffsets[sequence], scores);
  }
  return scores;
}

HeadScores ScoresOf(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  RequireOneSequence(recording, sequence);
  return ScoresOf(recording, FindPlace(recording, sequence, layer, head));
}

std::int64_t AttentionLength(const Recording& recording, std::int64_t sequence)
{
  const std::int64_t count = recording.SequenceCount();
  ThrowIf<OptionError>(count == 0 || sequence < AllSequences || sequence >= count,
    "expected a sequence from 0 to ", count - 1, ", found ", sequence, ".");
  if (sequence != AllSequences)
  {
    return recording.SequenceLength(sequence);
  }
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < count; ++s)
  {
    longest = std::max(longest, recording.SequenceLength(s));
  }
  return longest;
}

KeyRange QueryPositions(const Recording& recording, std::int64_t sequence)
{
  const std::int64_t length = AttentionLength(recording, sequence);
  if (sequence != AllSequences)
  {
    return { SourceLength(recording, sequence), length };
  }
  const std::vector<std::int64_t>& sources = recording.sourceLengths;
  return { sources.empty() ? 0 : *std::min_element(sources.begin(), sources.end()), length };
}

KeyRange KeyPositions(const Recording& recording, std::int64_t sequence)
{
  const std::int64_t length = AttentionLength(recording, sequence);
  const std::vector<std::int64_t>& sources = recording.sourceLengths;
  if (recording.mask != AttentionMask::Cross)
  {
    return { 0, length };
  }
  return { 0, sequence != AllSequences ? SourceLength(recording, sequence)
                                       : *std::max_element(sources.begin(), sources.end()) };
}

KeyRange AllowedKeys(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t query)
{
  const HeadScores scores = MaskOf(recording, sequence, FindLayer(recording, layer));
  return { scores.FirstKey(query), scores.KeyCount(query + 1) };
}

bool HasKey(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t query, std::int64_t key)
{
  return MaskOf(recording, sequence, FindLayer(recording, layer)).SharesWindow(query, key);
}

std::vector<std::int64_t> KeysOf(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t query)
{
  const HeadScores scores = MaskOf(recording, sequence, FindLayer(recording, layer));
  std::vector<std::int64_t> keys;
  for (std::int64_t key = scores.FirstKey(query); key < scores.KeyCount(query + 1); ++key)
  {
    if (scores.SharesWindow(query, key))
    {
      keys.push_back(key);
    }
  }
  return keys;
}

bool HasSinks(const Recording& recording, std::int64_t layer, AttentionQuantity quantity)
{
  return IsAttention(quantity) && std::any_of(recording.layers.begin(), recording.layers.end(),
                                    [&](const RecordedLayer& other)
                                    {
                                      const bool takesPart = quantity == AttentionQuantity::Rollout
                                                               ? other.index <= layer
                                                               : other.index == layer;
                                      return takesPart && !other.sinks.empty();
                                    });
}

void RequireUncapped(const Recording& recording, std::int64_t layer, const std::string& done)
{
  ThrowIf<ModelError>(FindLayer(recording, layer).scoreCap != 0, "layer ", layer,
    ": the model caps scores (attn_logit_softcapping), so they are no sums that could be ", done,
    ".");
}

void RequireOneSequence(const Recording& recording, std::int64_t sequence)
{
  ThrowIf<OptionError>(sequence == AllSequences, "expected one sequence from 0 to ",
    recording.SequenceCount() - 1, ", found -1, all.");
  AttentionLength(recording, sequence);
}

std::int64_t RequireTokens(const Recording& recording, std::int64_t sequence)
{
  const std::int64_t length = AttentionLength(recording, sequence);
  ThrowIf<OptionError>(length == 0,
    sequence == AllSequences ? std::string("all sequences")
                             : "sequence " + std::to_string(sequence),
    ": expected at least 1 token, found 0.");
  const KeyRange queries = QueryPositions(recording, sequence);
  const std::int64_t keys = KeyPositions(recording, sequence).end;
  ThrowIf<OptionError>(queries.begin == queries.end || keys == 0, "sequence ", sequence,
    ": expected tokens of the source and of the target, found ", keys, " and ",
    queries.end - queries.begin, ".");
  return length;
}

void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values)
{
  const AttentionRows rows = { sequence, layer, head, quantity, begin, end };
  RequireQueries(recording, rows);
  Evaluate(recording, rows, values, 1, {});
}

void EvaluateAttentionRows(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress)
{
  RequireQueries(recording, rows);
  const std::int64_t keys = AttentionLength(recording, rows.sequence);
  if (rows.begin == rows.end ||
      (rows.quantity == AttentionQuantity::Rollout && IsWhole(rows, keys)))
  {
    Evaluate(recording, rows, values, threads, progress);
    return;
  }
  if (rows.quantity == AttentionQuantity::Rollout)
  {
    EvaluateAttentionBlocks(
      recording, rows, [&](std::int64_t begin, std::int64_t end, const float* found)
      { std::copy_n(found, (end - begin) * keys, values); }, threads, progress);
    return;
  }
  ForEachBlock(rows, keys, threads, progress,
    [&](const AttentionRows& part, const AttentionRows& whole)
    {
      float* to = values + (part.begin - rows.begin) * keys;
      if (IsWhole(part, keys))
      {
        Evaluate(recording, whole, to, 1, {});
        return;
      }
      const std::unique_ptr<float[]> all(new float[(whole.end - whole.begin) * keys]);
      Evaluate(recording, whole, all.get(), 1, {});
      std::copy_n(
        all.get() + (part.begin - whole.begin) * keys, (part.end - part.begin) * keys, to);
    });
}

void EvaluateAttentionBlocks(const Recording& recording, const AttentionRows& rows,
  const UseRows& use, int threads, const Progress& progress)
{
  RequireQueries(recording, rows);
  const std::int64_t keys = AttentionLength(recording, rows.sequence);
  // Each value is written, so the memory is not cleared.
  const auto memoryFor = [keys](const AttentionRows& block)
  {
    const std::int64_t count = std::max((block.end - block.begin) * keys, std::int64_t{ 1 });
    return std::unique_ptr<float[]>(new float[count]);
  };
  if (rows.begin == rows.end)
  {
    Evaluate(recording, rows, nullptr, threads, progress);
    return;
  }
  if (rows.quantity == AttentionQuantity::Rollout)
  {
    // As ForEachBlock does, all rows together.
    AttentionRows whole = rows;
    whole.begin -= rows.begin % QueriesPerBlock;
    whole.end = std::min(BlockCount(rows.end, QueriesPerBlock) * QueriesPerBlock, keys);
    const auto values = memoryFor(whole);
    Evaluate(recording, whole, values.get(), threads, progress);
    use(rows.begin, rows.end, values.get() + (rows.begin - whole.begin) * keys);
    return;
  }
  ForEachBlock(rows, keys, threads, progress,
    [&](const AttentionRows& part, const AttentionRows& whole)
    {
      const auto values = memoryFor(whole);
      Evaluate(recording, whole, values.get(), 1, {});
      use(part.begin, part.end, values.get() + (part.begin - whole.begin) * keys);
    });
}

}
