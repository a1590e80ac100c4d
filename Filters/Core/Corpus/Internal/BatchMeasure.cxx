#include "BatchMeasure.h"

#include "Analysis/AttentionFocus.h"
#include "Analysis/HeadCopying.h"
#include "Analysis/HeadPatterns.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"

#include <algorithm>

namespace atlas
{
namespace
{

using Matrix = CorpusWeights::Matrix;

/// A well-mixed number of a place in the text (the finalizer of MurmurHash3, Appleby).
std::uint64_t HashOf(std::int64_t document, std::int64_t position)
{
  auto mix = [](std::uint64_t x)
  {
    x ^= x >> 33U;
    x *= 0xff51afd7ed558ccdU;
    x ^= x >> 33U;
    x *= 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33U);
  };
  return mix(mix(static_cast<std::uint64_t>(document) + 0x9e3779b97f4a7c15U) +
             static_cast<std::uint64_t>(position));
}

/// The best pair of a window by each measure.
struct Best
{
  float value = 0;
  std::int64_t query = -1;
  std::int64_t key = 0;

  void Offer(float other, std::int64_t i, std::int64_t j)
  {
    if (this->query < 0 || other > this->value)
    {
      *this = { other, i, j };
    }
  }
};

/// Which keys a query looks at most: of all, and of those that contexts show.
struct Looks
{
  std::int64_t strongest = 0;
  std::int64_t other = 0;
};

/// What is added up of a head over a window, and working memory.
struct HeadWork
{
  PatternSums patterns;
  FocusSums focus;
  std::array<double, CorpusSumCount> sums = {};
  std::int64_t next = 0;
  std::int64_t copying = 0;
  std::vector<double> distances;
  std::vector<double> from, fromDistance, to, toDistance; ///< [length]
  Eigen::ArrayXf ofDistances, ofTo, ofToDistance;         ///< [length], of one block
  Eigen::ArrayXf ramp;                                    ///< 0, 1, ... length - 1
  Eigen::ArrayXf products;
  std::array<Best, ContextMeasureCount> best;
  std::vector<float> scores; ///< [queries, keys]
  std::vector<float> ownWeights;
  float* weights = nullptr; ///< [queries, keys], in ownWeights or among those of all heads

  void Begin(std::int64_t length)
  {
    this->patterns = {};
    this->focus = {};
    this->sums = {};
    this->next = 0;
    this->copying = 0;
    this->best = {};
    this->ramp.setLinSpaced(length, 0, static_cast<float>(length - 1));
    for (auto* list :
      { &this->distances, &this->from, &this->fromDistance, &this->to, &this->toDistance })
    {
      list->assign(length, 0.0);
    }
  }

  double& Sum(CorpusSum sum) { return this->sums[static_cast<std::size_t>(sum)]; }
  Best& BestOf(ContextMeasure measure) { return this->best[static_cast<std::size_t>(measure)]; }
};

/// The key with the largest of `values` that is neither the query nor the first one; -1 if there is
/// none. `keys` are those that the query may attend to.
std::int64_t StrongestOther(const float* values, const KeyRange& keys, std::int64_t query)
{
  std::int64_t strongest = -1;
  for (const KeyRange& part : { KeyRange{ std::max<std::int64_t>(keys.begin, 1), query },
         KeyRange{ std::max<std::int64_t>(query + 1, 1), keys.end } })
  {
    if (part.begin < part.end)
    {
      const float* first = values + part.begin;
      const float largest =
        Eigen::Map<const Eigen::ArrayXf>(first, part.end - part.begin).maxCoeff();
      if (strongest < 0 || largest > values[strongest])
      {
        strongest = std::find(first, values + part.end, largest) - values;
      }
    }
  }
  return strongest;
}

std::size_t BinOf(float value)
{
  const auto bin = static_cast<std::int64_t>(value * static_cast<float>(HistogramBins));
  return std::clamp<std::int64_t>(bin, 0, HistogramBins - 1);
}

class Batch
{
public:
  Batch(const Recording& recording, const std::vector<CorpusWindow>& windows,
    const CorpusWeights& weights, int threads, CorpusStatistics& statistics)
    : Record(recording)
    , Windows(windows)
    , Weights(weights)
    , Threads(threads)
    , Result(statistics)
    , Work(statistics.heads.size())
    , HeadsOfLayer(recording.layers.front().heads.size())
  {
    this->FindKinds();
    this->ProjectTokens();
  }

  void Measure()
  {
    for (std::size_t w = 0; w < this->Windows.size(); ++w)
    {
      this->MeasureWindow(w);
    }
    this->MeasureMoments();
    this->DrawSamples();
  }

private:
  const Recording& Record;
  const std::vector<CorpusWindow>& Windows;
  const CorpusWeights& Weights;
  int Threads;
  CorpusStatistics& Result;
  std::vector<HeadWork> Work;
  std::size_t HeadsOfLayer;
  std::vector<std::int64_t> Kind;  ///< of each row of the recording
  std::vector<std::int64_t> Ids;   ///< of tokens with a logit, sorted
  std::vector<Matrix> Projections; ///< by layer: W_O W_U [heads d_head, ids]

  struct Place
  {
    std::size_t index; ///< of the head among all
    std::size_t layer; ///< among the recorded ones
    std::size_t head;
  };
  Place PlaceOf(std::int64_t h) const
  {
    return { ToIndex(h), ToIndex(h) / this->HeadsOfLayer, ToIndex(h) % this->HeadsOfLayer };
  }
  const RecordedHead& HeadAt(const Place& place) const
  {
    return this->Record.layers[place.layer].heads[place.head];
  }

  void FindKinds()
  {
    for (std::size_t w = 0; w < this->Windows.size(); ++w)
    {
      const CorpusWindow& window = this->Windows[w];
      for (std::size_t i = 0; i < window.tokens.size(); ++i)
      {
        this->Kind.push_back(this->Result.KindOf(window.tokens[i]));
        this->Result.occurrences[this->Kind.back()] +=
          static_cast<std::int64_t>(i) >= window.firstQuery ? 1 : 0;
      }
      this->Result.documents += window.begin == 0 ? 1 : 0;
      this->Result.tokens += static_cast<std::int64_t>(window.tokens.size()) - window.firstQuery;
    }
    this->Result.windows += static_cast<std::int64_t>(this->Windows.size());
    for (CorpusHead& head : this->Result.heads)
    {
      head.tokens.resize(this->Result.ids.size());
    }
  }

  /// What each head would add to the logits of all tokens of the batch per unit of its values.
  void ProjectTokens()
  {
    if (!this->Weights.HasLogits())
    {
      return;
    }
    const std::vector<std::int64_t>& ids = this->Record.tokens.id;
    this->Ids = DifferentIds(ids.data(), ids.data() + ids.size(), this->Weights.OutputVocabulary());
    if (this->Ids.empty())
    {
      return;
    }
    const Matrix unembedding = this->Weights.Unembedding(this->Ids, this->Threads);
    const std::int64_t columns = this->Ids.size();
    const std::int64_t model = unembedding.cols();
    const std::int64_t dimension = this->Result.headDimension;
    this->Projections.resize(this->Record.layers.size());
    for (Matrix& projection : this->Projections)
    {
      projection.resize(static_cast<Eigen::Index>(this->HeadsOfLayer) * dimension, columns);
    }
    ParallelFor(this->Work.size(), this->Threads,
      [&](std::int64_t h)
      {
        const Place place = this->PlaceOf(h);
        const Matrix& output = this->Weights.Heads(place.layer)[place.head].output;
        MultiplyMatrices(dimension, columns, model, 1, { output.data(), model },
          { unembedding.data(), model, true },
          this->Projections[place.layer].data() +
            static_cast<std::int64_t>(place.head) * dimension * columns,
          columns);
      });
  }

  LogitTokens LogitTokensOf(const CorpusWindow& window) const
  {
    const std::int64_t* ids = window.tokens.data();
    return { ids, ids + window.tokens.size(), this->Weights.OutputVocabulary(), this->Ids };
  }

  /// The columns of a head's projection that belong to the tokens of a window [d_head, tokens].
  Matrix ProjectionOf(const Place& place, const LogitTokens& tokens) const
  {
    const std::int64_t dimension = this->Result.headDimension;
    const auto all = this->Projections[place.layer].middleRows(
      static_cast<Eigen::Index>(place.head) * dimension, dimension);
    Matrix own(dimension, static_cast<Eigen::Index>(tokens.rows.size()));
    for (Eigen::Index i = 0; i < own.rows(); ++i)
    {
      for (Eigen::Index t = 0; t < own.cols(); ++t)
      {
        own(i, t) = all(i, tokens.rows[t]);
      }
    }
    return own;
  }

  void MeasureWindow(std::size_t w)
  {
    const CorpusWindow& window = this->Windows[w];
    const std::int64_t sequence = w;
    const std::int64_t length = window.tokens.size();
    const RepeatedTokens repeated(this->Record, sequence);
    const LogitTokens logits =
      this->Weights.HasLogits() ? this->LogitTokensOf(window) : LogitTokens();
    const std::int64_t heads = this->Work.size();
    std::vector<Matrix> projections(heads);
    ParallelFor(heads, this->Threads,
      [&](std::int64_t h)
      {
        this->Work[h].Begin(length);
        if (!logits.rows.empty())
        {
          projections[h] = this->ProjectionOf(this->PlaceOf(h), logits);
        }
      });
    for (std::int64_t begin = 0; begin < length; begin += QueriesPerBlock)
    {
      const std::int64_t end = std::min(begin + QueriesPerBlock, length);
      if (end <= window.firstQuery)
      {
        continue;
      }
      const std::int64_t pairs = (end - begin) * this->KeysOf(w, end);
      if (this->Result.options.agreement)
      {
        this->Stacked.resize(heads * pairs); // keeps its memory
      }
      ParallelFor(heads, this->Threads,
        [&](std::int64_t h)
        {
          HeadWork& work = this->Work[h];
          work.scores.resize(pairs);
          work.ownWeights.resize(this->Result.options.agreement ? 0 : pairs);
          work.weights = this->Result.options.agreement ? this->Stacked.data() + h * pairs
                                                        : work.ownWeights.data();
          this->MeasureBlock(w, this->PlaceOf(h), begin, end, repeated, logits, projections[h]);
        });
      this->AddProducts(w, begin, end);
    }
    ParallelFor(heads, this->Threads, [&](std::int64_t h) { this->AddWindow(w, h); });
  }

  /// The keys that queries before `end` of a window may attend to are among the first ones.
  std::int64_t KeysOf(std::size_t w, std::int64_t end) const
  {
    const HeadPlace& first = this->Result.places.front();
    return ScoresOf(this->Record, static_cast<std::int64_t>(w), first.layer, first.head)
      .KeyCount(end);
  }

  /// Queries begin <= i < end of a head.
  void MeasureBlock(std::size_t w, const Place& place, std::int64_t begin, std::int64_t end,
    const RepeatedTokens& repeated, const LogitTokens& logits, const Matrix& projection)
  {
    const CorpusWindow& window = this->Windows[w];
    const auto sequence = static_cast<std::int64_t>(w);
    const HeadPlace& names = this->Result.places[place.index];
    const HeadScores scores = ScoresOf(this->Record, sequence, names.layer, names.head);
    const std::int64_t keys = scores.KeyCount(end);
    HeadWork& work = this->Work[place.index];
    EvaluateContent(scores, begin, end, keys, work.scores.data());
    CapScores(scores, end - begin, keys, work.scores.data());
    AddBias(scores, begin, end, keys, work.scores.data());
    std::copy(work.scores.begin(), work.scores.end(), work.weights);
    NormalizeScores(scores, begin, end, keys, work.weights);
    std::vector<Looks> looks(end - begin);
    for (Eigen::ArrayXf* list : { &work.ofDistances, &work.ofTo, &work.ofToDistance })
    {
      list->setZero(static_cast<Eigen::Index>(window.tokens.size()));
    }
    for (std::int64_t query = std::max(begin, window.firstQuery); query < end; ++query)
    {
      const float* row = work.scores.data() + (query - begin) * keys;
      const float* weights = work.weights + (query - begin) * keys;
      const KeyRange allowed = AllowedKeys(this->Record, sequence, names.layer, query);
      const QueryFocus focus = FocusOfScores({ query, allowed.begin, allowed.end - allowed.begin,
        row + allowed.begin, scores.sink, 1, weights + allowed.begin });
      work.focus.Add(focus, this->Result.options.sinkThreshold);
      this->AddToHistograms(place.index, focus);
      work.Sum(CorpusSum::StrongestWeight) += static_cast<double>(focus.strongestWeight);
      work.patterns.AddQuery(weights, query, keys, repeated, {});
      AddDistances(weights, allowed, query, work);
      const std::int64_t key = StrongestOther(row, allowed, query);
      looks[query - begin] = { focus.strongest, focus.strongest };
      if (key >= 0)
      {
        const auto own = static_cast<float>(AlibiBias(
          static_cast<double>(scores.slope), static_cast<double>(scores.slopeUnit), query));
        const float byDistance = row[key] - own; // of ALiBi
        work.BestOf(ContextMeasure::Score).Offer(byDistance, query, key);
        work.BestOf(ContextMeasure::Attention).Offer(weights[key], query, key);
        looks[query - begin].other = key;
      }
    }
    AddBlock(work);
    this->MeasureWriting(w, place, begin, end, keys, looks, logits, projection);
  }

  void AddToHistograms(std::size_t head, const QueryFocus& focus)
  {
    CorpusHead& result = this->Result.heads[head];
    const auto count = [&result](CorpusHistogram histogram, float value)
    { ++result.histograms[static_cast<std::size_t>(histogram)][BinOf(value)]; };
    count(CorpusHistogram::Entropy, focus.entropy);
    count(CorpusHistogram::StrongestWeight, focus.strongestWeight);
    this->Sketch(head, CorpusSketch::Entropy, focus.entropy);
    this->Sketch(head, CorpusSketch::Concentration, focus.concentration);
  }

  void Sketch(std::size_t head, CorpusSketch sketch, double value)
  {
    this->Result.heads[head].sketches[static_cast<std::size_t>(sketch)].Add(value);
  }

  /// Adds the weights of a query by distance, and those of other tokens than itself and the first.
  static void AddDistances(
    const float* weights, const KeyRange& keys, std::int64_t query, HeadWork& work)
  {
    const auto rowOf = [weights](std::int64_t begin, std::int64_t end)
    { return Eigen::Map<const Eigen::ArrayXf>(weights + begin, end - begin); };
    const std::int64_t before = std::min(query + 1, keys.end) - keys.begin; // with itself
    if (before > 0)
    {
      work.ofDistances.segment(query - keys.begin - before + 1, before) +=
        rowOf(keys.begin, keys.begin + before).reverse();
    }
    if (keys.end > query + 1)
    {
      work.ofDistances.segment(1, keys.end - query - 1) += rowOf(query + 1, keys.end);
    }
    for (const KeyRange& part : { KeyRange{ std::max<std::int64_t>(keys.begin, 1), query },
           KeyRange{ std::max<std::int64_t>(query + 1, 1), keys.end } })
    {
      const std::int64_t count = part.end - part.begin;
      if (count > 0)
      {
        const auto row = rowOf(part.begin, part.end);
        if (part.end <= query)
        {
          work.products = row * work.ramp.segment(query - part.end + 1, count).reverse();
        }
        else
        {
          work.products = row * work.ramp.segment(part.begin - query, count);
        }
        work.ofTo.segment(part.begin, count) += row;
        work.ofToDistance.segment(part.begin, count) += work.products;
        work.from[query] += static_cast<double>(row.sum());
        work.fromDistance[query] += static_cast<double>(work.products.sum());
      }
    }
  }

  /// Adds what AddDistances added up of a block.
  static void AddBlock(HeadWork& work)
  {
    const auto add = [](const Eigen::ArrayXf& block, std::vector<double>& all)
    { Eigen::Map<Eigen::ArrayXd>(all.data(), block.size()) += block.cast<double>(); };
    add(work.ofDistances, work.distances);
    add(work.ofTo, work.to);
    add(work.ofToDistance, work.toDistance);
  }

  /// Measures what a head writes at queries of a block.
  void MeasureWriting(std::size_t w, const Place& place, std::int64_t begin, std::int64_t end,
    std::int64_t keys, const std::vector<Looks>& looks, const LogitTokens& logits,
    const Matrix& projection)
  {
    const CorpusWindow& window = this->Windows[w];
    const std::int64_t first = this->Record.sequenceOffsets[w];
    const SharedMatrix& values = this->HeadAt(place).value;
    const CorpusWeights::Head& weights = this->Weights.Heads(place.layer)[place.head];
    const std::int64_t dimension = values.columns;
    const std::int64_t rows = end - begin;
    HeadWork& work = this->Work[place.index];
    Matrix mixed(rows, dimension);
    MultiplyMatrices(rows, dimension, keys, 1, { work.weights, keys },
      { values.Row(first), dimension }, mixed.data(), dimension);
    Matrix written(rows, dimension);
    MultiplyMatrices(rows, dimension, dimension, 1, { mixed.data(), dimension },
      { weights.writing.data(), dimension }, written.data(), dimension);
    Matrix effects(rows, projection.cols());
    if (projection.cols() > 0)
    {
      if (weights.bias.size() > 0)
      {
        const auto attention = Eigen::Map<const Matrix>(work.weights, rows, keys);
        mixed -= attention.rowwise().sum() * weights.bias;
      }
      MultiplyMatrices(rows, projection.cols(), dimension, 1, { mixed.data(), dimension },
        { projection.data(), projection.cols() }, effects.data(), projection.cols());
    }
    for (std::int64_t query = std::max(begin, window.firstQuery); query < end; ++query)
    {
      const std::int64_t row = query - begin;
      const auto norm = static_cast<float>(written.row(row).cast<double>().norm());
      work.Sum(CorpusSum::WrittenNorm) += static_cast<double>(norm);
      this->Sketch(place.index, CorpusSketch::WrittenNorm, norm);
      work.BestOf(ContextMeasure::WrittenNorm).Offer(norm, query, looks[row].other);
      if (projection.cols() > 0)
      {
        this->MeasureLogits(
          place, window, query, first, effects.row(row), looks[row], logits, work);
      }
    }
  }

  void MeasureLogits(const Place& place, const CorpusWindow& window, std::int64_t query,
    std::int64_t first, const Eigen::Ref<const Eigen::RowVectorXf>& effects, const Looks& looks,
    const LogitTokens& logits, HeadWork& work)
  {
    const double copying = CopyingShare(effects, logits.token[looks.strongest]);
    work.Sum(CorpusSum::Copying) += std::max(copying, 0.0);
    work.copying += copying < 0 ? 0 : 1;
    const auto length = static_cast<std::int64_t>(window.tokens.size());
    const std::int64_t next = query + 1 < length ? logits.token[query + 1] : -1;
    if (next >= 0)
    {
      const double effect =
        static_cast<double>(effects[next]) / this->Record.finalScale[first + query];
      work.Sum(CorpusSum::NextTokenEffect) += effect;
      ++work.next;
      this->Sketch(place.index, CorpusSketch::NextTokenEffect, effect);
      work.BestOf(ContextMeasure::NextTokenEffect)
        .Offer(static_cast<float>(effect), query, looks.other);
    }
  }

  /// Adds products of the attention of all pairs of heads at queries of a block.
  void AddProducts(std::size_t w, std::int64_t begin, std::int64_t end)
  {
    if (!this->Result.options.agreement)
    {
      return;
    }
    const std::int64_t skipped = std::max(this->Windows[w].firstQuery - begin, std::int64_t{ 0 });
    const std::int64_t keys = this->KeysOf(w, end);
    const std::int64_t pairs = (end - begin - skipped) * keys;
    const std::int64_t heads = this->Work.size();
    const std::int64_t stride = (end - begin) * keys;
    const float* first = this->Stacked.data() + skipped * keys;
    this->Products.setZero(heads, heads);
    constexpr std::int64_t Rows = 32; // the part g <= h, in parts of this many h
    ParallelFor((heads + Rows - 1) / Rows, this->Threads,
      [&](std::int64_t part)
      {
        const std::int64_t h = part * Rows;
        const std::int64_t last = std::min(h + Rows, heads);
        MultiplyMatrices(last - h, last, pairs, 1, { first + h * stride, stride },
          { first, stride, true }, this->Products.row(h).data(), heads);
      });
    for (std::int64_t h = 0; h < heads; ++h)
    {
      for (std::int64_t g = 0; g <= h; ++g)
      {
        this->Result.products[h * heads + g].Add(static_cast<double>(this->Products(h, g)));
      }
    }
  }

  /// Adds a window to a head.
  void AddWindow(std::size_t w, std::int64_t h)
  {
    const CorpusWindow& window = this->Windows[w];
    HeadWork& work = this->Work[h];
    CorpusHead& head = this->Result.heads[h];
    const PatternSums& patterns = work.patterns;
    work.Sum(CorpusSum::Attention) = patterns.attention;
    work.Sum(CorpusSum::FirstAttention) = patterns.firstAttention;
    work.Sum(CorpusSum::Previous) = patterns.patterns[0].attention;
    work.Sum(CorpusSum::Duplicate) = patterns.patterns[1].attention;
    work.Sum(CorpusSum::Induction) = patterns.patterns[2].attention;
    work.Sum(CorpusSum::Prefix) = patterns.prefix;
    work.Sum(CorpusSum::Sink) = patterns.sink;
    constexpr std::pair<CorpusSum, FocusMeasure> Measures[] = {
      { CorpusSum::SelfWeight, FocusMeasure::SelfWeight },
      { CorpusSum::FirstWeight, FocusMeasure::FirstWeight },
      { CorpusSum::StrongestIsSelf, FocusMeasure::StrongestIsSelf },
      { CorpusSum::StrongestIsFirst, FocusMeasure::StrongestIsFirst },
      { CorpusSum::Concentration, FocusMeasure::Concentration },
      { CorpusSum::Entropy, FocusMeasure::Entropy },
      { CorpusSum::SinkRate, FocusMeasure::SinkRate },
    };
    for (const auto& [sum, measure] : Measures)
    {
      work.Sum(sum) = work.focus.sums[static_cast<std::size_t>(measure)];
    }
    for (std::size_t s = 0; s < CorpusSumCount; ++s)
    {
      head.sums[s].Add(work.sums[s]);
    }
    const std::array<std::int64_t, CorpusCountCount> counts = { patterns.queries,
      patterns.firstQueries, patterns.prefixQueries, patterns.sinkQueries, work.next,
      work.copying };
    std::transform(
      counts.begin(), counts.end(), head.counts.begin(), head.counts.begin(), std::plus<>());
    const std::int64_t first = this->Record.sequenceOffsets[w];
    for (std::size_t i = 0; i < window.tokens.size(); ++i)
    {
      head.distances[i].Add(work.distances[i]);
      TokenAttention& token = head.tokens[this->Kind[first + static_cast<std::int64_t>(i)]];
      token.from.Add(work.from[i]);
      token.fromDistance.Add(work.fromDistance[i]);
      token.to.Add(work.to[i]);
      token.toDistance.Add(work.toDistance[i]);
    }
    for (std::size_t m = 0; m < ContextMeasureCount; ++m)
    {
      const Best& best = work.best[m];
      if (best.query >= 0)
      {
        TopContext context = { best.value, window.document, window.begin,
          static_cast<std::int32_t>(best.query), static_cast<std::int32_t>(best.key),
          { window.tokens.begin(), window.tokens.end() } };
        this->Result.Keep(ToIndex(h), static_cast<ContextMeasure>(m), std::move(context));
      }
    }
  }

  /// Adds sums over queries, keys and values of the tokens that count as queries: of a window in
  /// single precision, of all in double.
  void MeasureMoments()
  {
    ParallelFor(this->Work.size(), this->Threads,
      [&](std::int64_t h)
      {
        const RecordedHead& recorded = this->HeadAt(this->PlaceOf(h));
        CorpusHead& head = this->Result.heads[h];
        const auto add = [&](const SharedMatrix& matrix, std::vector<ExactSum>& moment)
        {
          const std::int64_t d = matrix.columns;
          Matrix product(d, d); // of a window
          Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(d, d);
          Eigen::RowVectorXd total = Eigen::RowVectorXd::Zero(d);
          for (std::size_t w = 0; w < this->Windows.size(); ++w)
          {
            const std::int64_t first =
              this->Record.sequenceOffsets[w] + this->Windows[w].firstQuery;
            const std::int64_t count = this->Record.sequenceOffsets[w + 1] - first;
            const float* rows = matrix.Row(first);
            MultiplyMatrices(d, d, count, 1, { rows, d, true }, { rows, d }, product.data(), d);
            sum += product.cast<double>();
            for (std::int64_t row = 0; row < count; ++row)
            {
              total += Eigen::Map<const Eigen::RowVectorXf>(rows + row * d, d).cast<double>();
            }
          }
          for (std::int64_t j = 0; j < d; ++j)
          {
            for (std::int64_t i = 0; i <= j; ++i)
            {
              moment[j * d + i].Add(sum(j, i));
            }
          }
          return total;
        };
        const auto addTo = [](const Eigen::RowVectorXd& total, std::vector<ExactSum>& sum)
        {
          for (Eigen::Index i = 0; i < total.size(); ++i)
          {
            sum[i].Add(total[i]);
          }
        };
        add(recorded.query, head.queryMoment);
        addTo(add(recorded.key, head.keyMoment), head.keySum);
        if (this->Result.options.sampleValues)
        {
          addTo(add(recorded.value, head.valueMoment), head.valueSum);
        }
      });
  }

  void DrawSamples()
  {
    const auto most = static_cast<std::size_t>(this->Result.options.samples);
    for (std::size_t w = 0; most > 0 && w < this->Windows.size(); ++w)
    {
      const CorpusWindow& window = this->Windows[w];
      for (std::int64_t i = std::max(window.firstQuery, window.special);
        i < window.special + window.count; ++i)
      {
        CorpusSample sample;
        sample.document = window.document;
        sample.position = window.begin + i - window.special;
        sample.order = HashOf(sample.document, sample.position);
        if (this->Result.samples.size() == most && sample.order > this->Result.samples.back().order)
        {
          continue;
        }
        sample.token = static_cast<std::int32_t>(window.tokens[i]);
        const std::int64_t row = this->Record.sequenceOffsets[w] + i;
        for (std::size_t h = 0; h < this->Work.size(); ++h)
        {
          const RecordedHead& head = this->HeadAt(this->PlaceOf(h));
          const auto append = [row](const SharedMatrix& from, std::vector<float>& to)
          { to.insert(to.end(), from.Row(row), from.Row(row) + from.columns); };
          append(head.query, sample.queries);
          append(head.key, sample.keys);
          if (this->Result.options.sampleValues)
          {
            append(head.value, sample.values);
          }
        }
        this->Result.Keep(std::move(sample));
      }
    }
  }

  std::vector<float> Stacked; ///< attention of all heads in a block [heads, pairs]
  Matrix Products;            ///< [heads, heads]
};

}

void MeasureBatch(const Recording& recording, const std::vector<CorpusWindow>& windows,
  const CorpusWeights& weights, int threads, CorpusStatistics& statistics)
{
  const SingleThreadedBlas blas;
  Batch(recording, windows, weights, threads, statistics).Measure();
}

}
