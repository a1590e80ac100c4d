#include "SkipTrigrams.h"

#include "BestItems.h"
#include "CircuitWeights.h"
#include "HeadFactors.h"
#include "Index.h"
#include "LargestPartners.h"
#include "MatrixProduct.h"
#include "Parallel.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// Sources whose products are computed together.
constexpr std::size_t BlockSources = 128;
/// Blocks between two updates of the least score and reports of progress, which run in parallel,
/// and the largest number of skip-trigrams that they are to keep together.
constexpr std::size_t BlocksPerRound = 16;
constexpr std::size_t TrigramsPerRound = 16000;
/// Bounds are enlarged by it, so that rounding does not rule anything out.
constexpr double Enlarged = 1 + 1e-9;
/// The share of the time that the factors of the circuits take, about.
constexpr double FactorShare = 0.2;

/// As many blocks as there are threads at least, so that none waits.
std::size_t BlocksInRound(const SkipTrigramOptions& options)
{
  const auto threads = std::min(ToIndex(ThreadCount(options.threads)), BlocksPerRound);
  return std::clamp(TrigramsPerRound / ToIndex(std::max(options.top, 1)), threads, BlocksPerRound);
}

/// Adds the skip-trigrams of a source, whose partners are in order.
void AddTrigrams(std::int32_t source, const std::vector<Partner>& destinations,
  const std::vector<Partner>& outputs, BestItems<SkipTrigram>& best)
{
  for (const Partner& destination : destinations)
  {
    for (const Partner& output : outputs)
    {
      const double score = destination.product * output.product;
      if (best.IsFull() && score < best.Worst().score)
      {
        break;
      }
      if (score > 0) // unless it underflows
      {
        best.Add({ source, destination.id, output.id, destination.product, output.product, score });
      }
    }
  }
}

/// The search over all sources.
class Search
{
public:
  Search(const HeadFactors& factors, const SkipTrigramOptions& options)
    : Factors(factors)
    , Options(options)
    , Queries(factors.queries)
    , Outputs(factors.outputs)
    , Best(options.top)
  {
    this->SortSources();
  }

  SkipTrigramList Run();

private:
  /// A token and the largest score that it can have as a source.
  struct Source
  {
    std::int32_t id;
    double bound;

    bool IsBefore(const Source& other) const
    {
      return std::tie(other.bound, this->id) < std::tie(this->bound, other.id);
    }
  };

  /// What a block of sources adds.
  struct Part
  {
    std::vector<SkipTrigram> trigrams;
    std::int64_t products = 0;
  };

  const HeadFactors& Factors;
  const SkipTrigramOptions& Options;
  SortedVectors Queries;
  SortedVectors Outputs;
  std::vector<Source> Sources; ///< by falling bound
  BestItems<SkipTrigram> Best;

  void SortSources();
  double LeastScore() const { return this->Best.IsFull() ? this->Best.Worst().score : 0; }
  Part SearchBlock(std::size_t begin, std::size_t end, double least) const;
};

void Search::SortSources()
{
  std::vector<std::int32_t> ids = this->Options.sources;
  if (ids.empty())
  {
    ids.resize(this->Queries.Count());
    std::iota(ids.begin(), ids.end(), 0);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const double largest = this->Queries.Largest() * this->Outputs.Largest() * Enlarged;
  std::vector<Source> all;
  all.reserve(ids.size());
  for (const std::int32_t id : ids)
  {
    all.push_back(
      { id, largest * this->Factors.keys.row(id).norm() * this->Factors.values.row(id).norm() });
  }
  std::sort(all.begin(), all.end(), [](const Source& a, const Source& b) { return a.IsBefore(b); });
  for (std::size_t i = this->Options.part; i < all.size(); i += ToIndex(this->Options.parts))
  {
    this->Sources.push_back(all[i]);
  }
}

/// The best skip-trigrams with the sources of a block that are not below a score.
Search::Part Search::SearchBlock(std::size_t begin, std::size_t end, double least) const
{
  const std::size_t top = this->Options.top;
  std::vector<PartnerSearch> destinations;
  for (std::size_t i = begin; i < end; ++i)
  {
    const std::int32_t id = this->Sources[i].id;
    const double reach = this->Factors.values.row(id).norm() * this->Outputs.Largest() * Enlarged;
    destinations.push_back(
      { this->Factors.keys.row(id).data(), reach > 0 ? least / reach : 0, {} });
  }
  Part part;
  part.products = FindPartners(destinations, this->Queries, top);
  std::vector<PartnerSearch> outputs;
  std::vector<std::size_t> places; // of their sources
  for (std::size_t i = 0; i < destinations.size(); ++i)
  {
    const std::vector<Partner>& found = destinations[i].found;
    if (!found.empty() && found[0].product * Enlarged >= destinations[i].least)
    {
      const std::int32_t id = this->Sources[begin + i].id;
      outputs.push_back(
        { this->Factors.values.row(id).data(), least / found[0].product / Enlarged, {} });
      places.push_back(i);
    }
  }
  part.products += FindPartners(outputs, this->Outputs, top);
  BestItems<SkipTrigram> best(top);
  for (std::size_t i = 0; i < outputs.size(); ++i)
  {
    AddTrigrams(
      this->Sources[begin + places[i]].id, destinations[places[i]].found, outputs[i].found, best);
  }
  part.trigrams = best.Take();
  return part;
}

SkipTrigramList Search::Run()
{
  const SingleThreadedBlas blas;
  SkipTrigramList list;
  const std::size_t count = this->Sources.size();
  const std::size_t perRound = BlockSources * BlocksInRound(this->Options);
  const Progress progress = this->Options.progress.Part(FactorShare, 1);
  for (std::size_t first = 0; first < count; first += perRound)
  {
    progress(first, count);
    const double least = this->LeastScore();
    if (this->Sources[first].bound < least)
    {
      break; // as are all that follow
    }
    const std::size_t sources = std::min(perRound, count - first);
    std::vector<Part> parts((sources + BlockSources - 1) / BlockSources);
    ParallelFor(parts.size(), this->Options.threads,
      [&](std::int64_t block)
      {
        const std::size_t begin = first + ToIndex(block) * BlockSources;
        parts[block] = this->SearchBlock(begin, std::min(begin + BlockSources, count), least);
      });
    for (const Part& part : parts)
    {
      list.products += static_cast<double>(part.products);
      std::for_each(part.trigrams.begin(), part.trigrams.end(),
        [this](const SkipTrigram& trigram) { this->Best.Add(trigram); });
    }
    this->Best.Shrink();
  }
  list.trigrams = this->Best.Take();
  return list;
}

}

SkipTrigramList FindSkipTrigrams(const Transformer& model, const SkipTrigramOptions& options)
{
  RequireUnembedding(model);
  RequireHead(model, options.layer, options.head);
  RequireTop(options.top);
  const ProcessedWeights weights(model, CircuitSteps(options.processes), options.threads);
  const HeadFactors factors = MakeHeadFactors(
    weights, options.layer, options.head, options.threads, options.progress.Part(0, FactorShare));
  return Search(factors, options).Run();
}

double SkipTrigramBytes(const TransformerConfig& config, const SkipTrigramOptions& options)
{
  // Four factors in double precision, two in single precision, ids and lengths.
  const std::int64_t perToken =
    config.headDimension * static_cast<std::int64_t>(4 * sizeof(double) + 2 * sizeof(float)) + 48;
  const auto lists = static_cast<double>(BlocksInRound(options) + 1);
  return static_cast<double>(config.vocabulary * perToken) +
         lists * 2. * static_cast<double>(options.top) * sizeof(SkipTrigram);
}

std::vector<SkipTrigram> JoinSkipTrigrams(const std::vector<SkipTrigram>& all, int top)
{
  BestItems<SkipTrigram> best(top);
  std::for_each(all.begin(), all.end(), [&best](const SkipTrigram& trigram) { best.Add(trigram); });
  return best.Take();
}

}
