#pragma once

#include "CorpusText.h"
#include "ExactSum.h"
#include "QuantileSketch.h"
#include "Recording/Recording.h"
#include "Weights/ModelFingerprint.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// What is measured of every query of a head, or of some of them, as numbers that are added up.
enum class CorpusSum
{
  Attention,      ///< sum of the weights: 1, less with a sink
  FirstAttention, ///< the same of queries at position 0
  Previous,       ///< weight of the token before
  Duplicate,      ///< weights of earlier tokens that are the same
  Induction,      ///< weights of tokens that came after such tokens
  Prefix,         ///< the same; its mean is over queries with such tokens
  Sink,           ///< weight of position 0, from position 1 on
  SelfWeight,     ///< and those below: as in AttentionFocus.h
  FirstWeight,
  StrongestWeight,
  StrongestIsSelf,
  StrongestIsFirst,
  Concentration,
  Entropy,
  SinkRate,
  WrittenNorm,     ///< length of what the head writes, z W_O
  NextTokenEffect, ///< what it adds to the logit of the token that comes next, as
                   ///< LogitAttribution.h has it for processed weights
  Copying          ///< as in HeadCopying.h
};
inline constexpr std::size_t CorpusSumCount = 18;

/// What the numbers of a sum are counted by.
enum class CorpusCount
{
  Queries,
  FirstQueries,  ///< at position 0
  PrefixQueries, ///< whose token was there before
  SinkQueries,   ///< not at position 0
  NextQueries,   ///< with a next token that has a logit
  CopyingQueries
};
inline constexpr std::size_t CorpusCountCount = 6;

/// What has quantiles.
enum class CorpusSketch
{
  Entropy,
  Concentration,
  WrittenNorm,
  NextTokenEffect
};
inline constexpr std::size_t CorpusSketchCount = 4;
inline constexpr std::array<const char*, CorpusSketchCount> CorpusSketchNames = { "Entropy",
  "Concentration", "Written Norm", "Next Token Effect" };

/// What has a histogram with equal bins from 0 to 1; the last one is closed.
enum class CorpusHistogram
{
  Entropy,
  StrongestWeight
};
inline constexpr std::size_t CorpusHistogramCount = 2;
inline constexpr std::size_t HistogramBins = 20;

/// The measure by which the strongest contexts of a head are found. Weights and scores are those of
/// pairs of a query and a key that is neither the query itself nor the first token.
enum class ContextMeasure
{
  Score,          ///< before the softmax. ALiBi counts by distance, slope x (key - query), which
                  ///< differs from slope x key by what all keys of a query share: so scores of
                  ///< different queries can be compared
  Attention,      ///< weight
  WrittenNorm,    ///< of the query
  NextTokenEffect ///< at the query
};
inline constexpr std::size_t ContextMeasureCount = 4;
inline constexpr std::array<const char*, ContextMeasureCount> ContextMeasureNames = { "Score",
  "Attention", "WrittenNorm", "NextTokenEffect" };

/// A text that excites a head: the best pair of a window.
struct TopContext
{
  float value = 0;
  std::int64_t document = 0;
  std::int64_t begin = 0; ///< which token of the document the first one is, special ones aside
  std::int32_t query = 0; ///< position in `tokens`
  std::int32_t key = 0;   ///< of the key with the largest weight
  std::vector<std::int32_t> tokens; ///< of the window
};

/// How a head attends from and to a kind of token: its attention to keys that are neither the query
/// itself nor the first token of the window.
struct TokenAttention
{
  WeightSum from;           ///< of queries that are this token
  DistanceSum fromDistance; ///< the same times the distance in tokens
  WeightSum to;             ///< to keys that are this token
  DistanceSum toDistance;
};

/// What is known of a head.
struct CorpusHead
{
  double scoreScale = 1; ///< score = scoreScale query . key, before any cap and bias
  std::array<ExactSum, CorpusSumCount> sums = {};
  std::array<std::int64_t, CorpusCountCount> counts = {};
  std::array<QuantileSketch, CorpusSketchCount> sketches;
  std::array<std::array<std::int64_t, HistogramBins>, CorpusHistogramCount> histograms = {};
  std::vector<WeightSum> distances;  ///< [window], attention by distance in tokens
  std::deque<TokenAttention> tokens; ///< by kind of token; grows without copies
  std::vector<ExactSum> queryMoment; ///< [d_head, d_head], the part i <= j of sum q_i q_j
  std::vector<ExactSum> keyMoment;   ///< the same of keys
  std::vector<ExactSum> keySum;      ///< [d_head]
  std::vector<ExactSum>
    valueMoment;                  ///< [d_value, d_value], as keyMoment; empty without sampleValues
  std::vector<ExactSum> valueSum; ///< [d_value], likewise
  std::array<std::vector<TopContext>, ContextMeasureCount> contexts; ///< from the best one

  std::int64_t Count(CorpusCount count) const
  {
    return this->counts[static_cast<std::size_t>(count)];
  }
  double Sum(CorpusSum sum) const { return this->sums[static_cast<std::size_t>(sum)].Value(); }
  const QuantileSketch& Sketch(CorpusSketch sketch) const
  {
    return this->sketches[static_cast<std::size_t>(sketch)];
  }
};

/// What is known of a feature of a sparse dictionary, at tokens that are no special ones.
struct CorpusFeature
{
  std::int64_t active = 0;          ///< tokens at which it is active
  std::vector<TopContext> contexts; ///< from the best one, of a window each; the query is its
                                    ///< strongest token, and the key the same
};

/// A token of a document, no special one, with its queries and keys, drawn at random.
struct CorpusSample
{
  std::uint64_t order = 0; ///< a hash of its place; those with the smallest ones are kept
  std::int64_t document = 0;
  std::int64_t position = 0;  ///< in the document
  std::int32_t token = 0;     ///< id
  std::vector<float> queries; ///< [heads, d_head]
  std::vector<float> keys;    ///< [heads, d_head]
  std::vector<float> values;  ///< [heads, d_value]; empty without sampleValues
};

inline constexpr std::int64_t MostContexts = 1000;
inline constexpr std::int64_t MostSamples = 100'000;
inline constexpr std::int64_t MostBatch = 1 << 24;

/// What is measured and kept. Statistics of different options cannot be added.
struct CorpusOptions : CorpusTextOptions
{
  std::vector<std::int64_t> layers; ///< whose heads are measured; empty: all
  std::int64_t contexts = 20;       ///< kept of each head and measure, 0 to MostContexts
  std::int64_t samples = 1024;      ///< tokens whose queries and keys are kept, 0 to MostSamples
  bool sampleValues = false;        ///< whether their values are kept, too, for OutputParts.h
  double sinkThreshold = 0.3;       ///< of SinkRate
  bool agreement = true;            ///< whether heads are compared with each other
  std::int64_t batch = 1024;        ///< batch size in tokens, at least; 1 to MostBatch
  std::string dictionary; ///< of a run: the file of a sparse dictionary (SparseDictionary.h) of a
                          ///< layer among these; empty: none
};

/// Statistics of all heads over a text, without its activations. All numbers are sums that do not
/// depend on the order of documents, on threads or ranks (ExactSum), counts, or the best of all.
struct CorpusStatistics
{
  std::string model;                     ///< its path
  ModelFingerprint fingerprint;          ///< of it; empty in files of older versions
  std::vector<std::uint64_t> textHashes; ///< of the tokens that were read of each file of the text
  CorpusOptions options;
  std::int64_t headDimension = 0;
  std::int64_t valueDimension = 0;                       ///< of values; 0 without sampleValues
  ProductPrecision precision = ProductPrecision::Single; ///< of the model's products
  bool hasAlibi = false;                                 ///< whether scores have a bias by ALiBi
  bool hasLogits = false;        ///< whether NextTokenEffect and Copying are measured
  std::vector<HeadPlace> places; ///< of the heads, by layer and head
  std::vector<CorpusHead> heads;

  std::vector<std::int64_t> ids;  ///< of the kinds of tokens that occurred
  std::vector<std::string> texts; ///< of them, as Tokenizer::Label; empty without a tokenizer
  std::vector<std::int64_t> occurrences; ///< of them, as queries

  std::vector<ExactSum> products;    ///< [heads, heads], the part g <= h of sum_ij A^g_ij A^h_ij;
                                     ///< empty without agreement
  std::vector<CorpusSample> samples; ///< by order

  std::string dictionary; ///< which one: what it reads, its size and a hash; empty without one
  std::vector<CorpusFeature> features; ///< of it
  std::int64_t featureTokens = 0;      ///< at which they were looked for

  std::int64_t documents = 0; ///< that were begun
  std::int64_t windows = 0;
  std::int64_t tokens = 0;          ///< queries
  std::vector<std::uint64_t> sizes; ///< of the files of the text in bytes; empty: unknown
  CorpusPosition next;              ///< where the text goes on
  bool isComplete = false;          ///< whether the text was read to its end

  /// The kind of a token id, which is added if it is new.
  std::int64_t KindOf(std::int64_t id);

  /// Adds what was measured of other windows of the same text with the same options; `next`,
  /// `isComplete` and `textHashes` are those of this object.
  void Add(const CorpusStatistics& other);

  /// Forgets what was measured, but not of which model and text, nor where the text goes on.
  void ForgetSums();

  /// Keeps a context of a head or of a feature, or a sample, if it is among the best.
  void Keep(std::size_t head, ContextMeasure measure, TopContext context);
  void Keep(std::size_t feature, TopContext context);
  void Keep(CorpusSample sample);

  /// Sorts the kinds of tokens by id, so that their order does not depend on that of the text.
  void SortKinds();

private:
  std::map<std::int64_t, std::int64_t> Kinds; ///< by id
};

/// Columns of a table of heads.
struct CorpusColumn
{
  const char* name;
  CorpusSum sum;
  CorpusCount count; ///< that the sum is divided by
};

/// The means over queries. Previous, Duplicate and Induction are divided by the attention instead,
/// as PatternMeasure::Mul in HeadPatterns.h: see CorpusValue.
inline constexpr std::array<CorpusColumn, 16> CorpusColumns = { {
  { "Entropy", CorpusSum::Entropy, CorpusCount::Queries },
  { "Concentration", CorpusSum::Concentration, CorpusCount::Queries },
  { "Strongest Weight", CorpusSum::StrongestWeight, CorpusCount::Queries },
  { "Self Weight", CorpusSum::SelfWeight, CorpusCount::Queries },
  { "First Weight", CorpusSum::FirstWeight, CorpusCount::Queries },
  { "Strongest Is Self", CorpusSum::StrongestIsSelf, CorpusCount::Queries },
  { "Strongest Is First", CorpusSum::StrongestIsFirst, CorpusCount::Queries },
  { "Sink Rate", CorpusSum::SinkRate, CorpusCount::Queries },
  { "Sink", CorpusSum::Sink, CorpusCount::SinkQueries },
  { "Previous Token", CorpusSum::Previous, CorpusCount::Queries },
  { "Duplicate Token", CorpusSum::Duplicate, CorpusCount::Queries },
  { "Induction", CorpusSum::Induction, CorpusCount::Queries },
  { "Prefix Matching", CorpusSum::Prefix, CorpusCount::PrefixQueries },
  { "Written Norm", CorpusSum::WrittenNorm, CorpusCount::Queries },
  { "Next Token Effect", CorpusSum::NextTokenEffect, CorpusCount::NextQueries },
  { "Copying", CorpusSum::Copying, CorpusCount::CopyingQueries },
} };

/// The value of a column; 0 where there is nothing to divide by.
double CorpusValue(const CorpusHead& head, const CorpusColumn& column);

/// The mean distance of attention in tokens, and the smallest distance up to which half of it goes.
double MeanDistance(const CorpusHead& head);
double MedianDistance(const CorpusHead& head);

/// How much the attention of heads is alike [heads, heads]: the cosine of A^g and A^h as vectors
/// over all pairs of queries and keys. Empty without agreement.
Eigen::MatrixXd Agreement(const CorpusStatistics& statistics);

}
