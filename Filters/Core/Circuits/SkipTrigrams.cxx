#include "SkipTrigrams.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "CircuitWeights.h"
#include "Internal/BestItems.h"
#include "Internal/HeadFactors.h"
#include "Internal/LargestPartners.h"
#include "Numerics/MatrixProduct.h"

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

  SkipTrigramList Run()
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
    list.leftOut = this->LeftOut;
    return list;
  }

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

  /// A source that bounds have not ruled out.
  struct Candidate
  {
    std::int32_t id;
    PartnerBounds destinations;
    PartnerBounds outputs;
    double bound; ///< of its scores
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
  double LeftOut = 0;          ///< the largest bound of a source beyond Options.most
  BestItems<SkipTrigram> Best;

  void SortSources()
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
    std::sort(
      all.begin(), all.end(), [](const Source& a, const Source& b) { return a.IsBefore(b); });
    if (this->Options.most > 0 && this->Options.most < static_cast<std::int64_t>(all.size()))
    {
      this->LeftOut = all[this->Options.most].bound;
      all.resize(this->Options.most, {});
    }
    for (std::size_t i = this->Options.part; i < all.size(); i += ToIndex(this->Options.parts))
    {
      this->Sources.push_back(all[i]);
    }
  }

  double LeastScore() const { return this->Best.IsFull() ? this->Best.Worst().score : 0; }
  /// The best skip-trigrams with the sources of a block that are not below a score. Most sources
  /// are ruled out by bounds of their largest entries in both circuits; only for the others these
  /// entries are searched for, the most promising source first.
  Part SearchBlock(std::size_t begin, std::size_t end, double least) const
  {
    Part part;
    std::vector<Candidate> candidates = this->BoundBlock(begin, end, least, part.products);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b)
      { return std::tie(b.bound, a.id) < std::tie(a.bound, b.id); });
    const std::size_t top = this->Options.top;
    BestItems<SkipTrigram> best(top);
    for (const Candidate& candidate : candidates)
    {
      const double worst = best.IsFull() ? std::max(least, best.Worst().score) : least;
      if (candidate.bound < worst)
      {
        break; // as are all that follow
      }
      const double* key = this->Factors.keys.row(candidate.id).data();
      const std::vector<Partner> destinations =
        FindPartners({ key, worst / candidate.outputs.largest / Enlarged }, candidate.destinations,
          this->Queries, top, part.products);
      if (destinations.empty())
      {
        continue;
      }
      const double* value = this->Factors.values.row(candidate.id).data();
      const std::vector<Partner> outputs =
        FindPartners({ value, worst / destinations.front().product / Enlarged }, candidate.outputs,
          this->Outputs, top, part.products);
      AddTrigrams(candidate.id, destinations, outputs, best);
      best.Shrink();
    }
    part.trigrams = best.Take();
    return part;
  }

  /// The sources of a block that can reach a score, with bounds of their entries.
  std::vector<Candidate> BoundBlock(
    std::size_t begin, std::size_t end, double least, std::int64_t& products) const
  {
    std::vector<PartnerSearch> keys;
    for (std::size_t i = begin; i < end; ++i)
    {
      const std::int32_t id = this->Sources[i].id;
      const double reach = this->Factors.values.row(id).norm() * this->Outputs.Largest() * Enlarged;
      keys.push_back({ this->Factors.keys.row(id).data(), reach > 0 ? least / reach : 0 });
    }
    std::vector<PartnerBounds> destinations = BoundPartners(keys, this->Queries, products);
    std::vector<Candidate> candidates;
    std::vector<PartnerSearch> values;
    for (std::size_t i = 0; i < keys.size(); ++i)
    {
      const double largest = destinations[i].largest;
      if (largest > 0 && largest * Enlarged >= keys[i].least)
      {
        const std::int32_t id = this->Sources[begin + i].id;
        candidates.push_back({ id, std::move(destinations[i]), {}, 0 });
        values.push_back({ this->Factors.values.row(id).data(), least / largest / Enlarged });
      }
    }
    std::vector<PartnerBounds> outputs = BoundPartners(values, this->Outputs, products);
    for (std::size_t i = 0; i < candidates.size(); ++i)
    {
      candidates[i].outputs = std::move(outputs[i]);
      candidates[i].bound =
        candidates[i].destinations.largest * candidates[i].outputs.largest * Enlarged;
    }
    // Without a positive entry in both circuits there is no skip-trigram.
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                       [](const Candidate& candidate) { return !(candidate.bound > 0); }),
      candidates.end());
    return candidates;
  }
};

}

SkipTrigramList FindSkipTrigrams(const Transformer& model, const SkipTrigramOptions& options)
{
  RequireUnembedding(model);
  RequireHead(model, options.layer, options.head);
  RequireTop(options.top);
  ThrowIf<OptionError>(
    options.most < 0, "SourceLimit: expected 0 or more, found ", options.most, ".");
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

bool AreOfAllSources(const std::vector<SkipTrigram>& trigrams, int top, double leftOut)
{
  const bool isFull = static_cast<std::int64_t>(trigrams.size()) >= top;
  return leftOut <= 0 || (isFull && leftOut < trigrams.back().score);
}

std::vector<SkipTrigram> JoinSkipTrigrams(const std::vector<SkipTrigram>& all, int top)
{
  BestItems<SkipTrigram> best(top);
  std::for_each(all.begin(), all.end(), [&best](const SkipTrigram& trigram) { best.Add(trigram); });
  return best.Take();
}

}
