#include "HeadLayouts.h"

#include "ApproximateNeighbors.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "EmbeddingQuality.h"
#include "HeadCorrelation.h"
#include "Internal/LayoutNeighbors.h"
#include "Numerics/MatrixProduct.h"
#include "Principal.h"
#include "TSne.h"
#include "Umap.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <optional>
#include <sstream>

namespace atlas
{
namespace
{

constexpr double NotMeasured = std::numeric_limits<double>::quiet_NaN();

/// The time between two reports of progress.
constexpr std::chrono::milliseconds ReportInterval(50);
/// Iterations of one head between two looks at whether to stop.
constexpr int StopInterval = 25;
/// The neighbors of a point of which layouts keep a share, the fewest points for which it is
/// measured, and the points that stand for all.
constexpr int KeptNeighbors = 15;
constexpr std::int64_t FewestPoints = 24;
constexpr std::int64_t KeptSample = 500;
/// What remains of the iterations of t-SNE for a layout that starts from another.
constexpr int StartedShare = 3;

TSneOptions TSneOptionsOf(const LayoutOptions& options)
{
  TSneOptions found;
  found.dimensions = options.dimensions;
  found.metric = options.metric;
  found.perplexity = options.perplexity;
  found.iterations = options.iterations;
  found.randomStart = options.randomStart;
  found.exaggeratedIterations = options.exaggeratedIterations;
  found.learningRate = options.learningRate;
  found.seed = options.seed;
  found.interval = options.frameInterval > 0 ? options.frameInterval : StopInterval;
  return found;
}

UmapOptions UmapOptionsOf(const LayoutOptions& options)
{
  UmapOptions found;
  found.dimensions = options.dimensions;
  found.metric = options.metric;
  found.neighbors = options.neighbors;
  found.minimumDistance = options.minimumDistance;
  found.seed = options.seed;
  found.interval = StopInterval;
  return found;
}

bool IsCosine(const LayoutOptions& options)
{
  return options.method != LayoutMethod::Principal && options.metric != PointMetric::Euclidean;
}

/// A text for each list of values.
template<class... Values>
std::string KeyOf(const Values&... values)
{
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  ((text << values << ' '), ...);
  return text.str();
}

/// The state of LayOutHeads that its threads share.
class Work
{
public:
  Work(const Recording& recording, const JointRows& rows, const std::vector<LayoutTask>& tasks,
    const LayoutOptions& options)
    : Record(recording)
    , Rows(rows)
    , Tasks(tasks)
    , Options(options)
    , Results(tasks.size())
    , Shares(tasks.size())
  {
  }

  void Run(int threads)
  {
    const bool isLarge = this->Rows.Points() >= ParallelPoints;
    const SingleThreadedBlas blas;
    ParallelFor(this->Tasks.size(), isLarge ? 1 : threads,
      [&](std::int64_t i)
      {
        if (!this->Stopped)
        {
          this->LayOut(i, isLarge ? threads : 1);
        }
      });
  }

  void Stop() { this->Stopped = true; }

  LayoutProgress Progress() const
  {
    LayoutProgress progress;
    progress.done = this->Done;
    progress.heads = static_cast<std::int64_t>(this->Tasks.size());
    for (const std::atomic<float>& share : this->Shares)
    {
      progress.share += static_cast<double>(share);
    }
    progress.share /= static_cast<double>(std::max<std::int64_t>(progress.heads, 1));
    progress.divergence = this->Divergence;
    return progress;
  }

  std::vector<HeadLayout> TakeResults()
  {
    std::vector<HeadLayout> layouts;
    for (std::optional<HeadLayout>& result : this->Results)
    {
      if (result)
      {
        layouts.push_back(std::move(*result));
      }
    }
    return layouts;
  }

private:
  const Recording& Record;
  const JointRows& Rows;
  const std::vector<LayoutTask>& Tasks;
  const LayoutOptions& Options;
  std::vector<std::optional<HeadLayout>> Results;
  std::vector<std::atomic<float>> Shares; ///< per task, 0 to 1
  std::atomic<std::int64_t> Done = 0;
  std::atomic<double> Divergence = NotMeasured;
  std::atomic<bool> Stopped = false;

  void LayOut(std::size_t i, int threads)
  {
    HeadLayout layout;
    layout.place = this->Tasks[i].place;
    try
    {
      JointVectors joint = JoinQueriesAndKeys(
        this->Record, layout.place.layer, layout.place.head, this->Rows, this->Options.translate);
      this->Measure(joint, layout);
      if (this->Tasks[i].same)
      {
        this->Copy(*this->Tasks[i].same, layout);
      }
      else
      {
        if (!IsCosine(this->Options))
        {
          ScaleJointVectors(layout.scale, joint);
        }
        this->Place(joint, this->Tasks[i], threads, layout);
        layout.stopped = this->Stopped && this->Options.method != LayoutMethod::Principal;
      }
    }
    catch (const GeometryError& e)
    {
      layout.error = e.what();
    }
    this->Results[i] = std::move(layout);
    this->Shares[i] = 1;
    ++this->Done;
  }

  /// The numbers that do not depend on the layout.
  void Measure(const JointVectors& joint, HeadLayout& layout) const
  {
    layout.norms.assign(joint.norms.begin(), joint.norms.end());
    layout.queryNorm = joint.QueryNorm();
    layout.keyNorm = joint.KeyNorm();
    const HeadCorrelation correlation(this->Record, this->Rows, joint);
    const ScaleOptimum scale = this->ScaleOf(joint, correlation);
    layout.scale = scale.scale;
    layout.correlation = scale.correlation;
    layout.correlationBefore = correlation.Pearson({ false, false }, 1);
    layout.rankCorrelation = correlation.Spearman(true);
  }

  ScaleOptimum ScaleOf(const JointVectors& joint, const HeadCorrelation& correlation) const
  {
    if (this->Options.scaling == KeyScaling::Optimized)
    {
      return correlation.LowestPearson({});
    }
    const double scale = this->Options.scaling == KeyScaling::None    ? 1
                         : this->Options.scaling == KeyScaling::Norms ? NormScale(joint)
                                                                      : this->Options.scale;
    return { scale, correlation.Pearson({}, scale) };
  }

  static void Copy(const HeadLayout& same, HeadLayout& layout)
  {
    layout.points = same.points;
    layout.frames = same.frames;
    layout.neighborsKept = same.neighborsKept;
    layout.varianceExplained = same.varianceExplained;
    layout.divergence = same.divergence;
    layout.iterations = same.iterations;
    layout.stopped = same.stopped;
  }

  void Place(const JointVectors& joint, const LayoutTask& task, int threads, HeadLayout& layout)
  {
    layout.varianceExplained = layout.divergence = layout.neighborsKept = NotMeasured;
    const PointView points = joint.View();
    switch (this->Options.method)
    {
      case LayoutMethod::Principal:
        this->PlaceByPrincipal(points, layout);
        break;
      case LayoutMethod::TSne:
        this->PlaceByTSne(points, task, threads, layout);
        break;
      case LayoutMethod::Umap:
        this->PlaceByUmap(points, task, threads, layout);
        break;
    }
    if (points.count >= FewestPoints && !this->Stopped)
    {
      layout.neighborsKept = NeighborsKept(points, this->Metric(), layout.points.data(),
        this->Options.dimensions, KeptNeighbors, threads, KeptSample);
    }
  }

  std::atomic<float>& ShareOf(const LayoutTask& task)
  {
    return this->Shares[&task - this->Tasks.data()];
  }

  PointMetric Metric() const
  {
    return this->Options.method == LayoutMethod::Principal ? PointMetric::Euclidean
                                                           : this->Options.metric;
  }

  void PlaceByPrincipal(const PointView& points, HeadLayout& layout) const
  {
    const PrincipalComponents principal = FindPrincipalComponents(points, this->Options.dimensions);
    layout.points = Project(points, principal, this->Options.dimensions);
    layout.varianceExplained = principal.Ratio(this->Options.dimensions);
  }

  void PlaceByTSne(const PointView& points, const LayoutTask& task, int threads, HeadLayout& layout)
  {
    TSneOptions options = TSneOptionsOf(this->Options);
    options.threads = threads;
    if (task.start)
    {
      options.start = task.start->points.data();
      options.iterations = std::max(options.iterations / StartedShare, 1);
      options.exaggeratedIterations = 0;
    }
    std::atomic<float>& share = this->ShareOf(task);
    options.progress = [&](const LayoutStep& step)
    {
      share = static_cast<float>(step.done);
      this->Divergence = step.divergence;
      if (this->Options.frameInterval > 0 && step.layout != nullptr)
      {
        layout.frames.insert(
          layout.frames.end(), step.layout, step.layout + points.count * options.dimensions);
      }
      return !this->Stopped;
    };
    Layout found = TSne(points, options);
    layout.points = std::move(found.points);
    layout.divergence = found.divergence;
    layout.iterations = found.iterations;
  }

  void PlaceByUmap(const PointView& points, const LayoutTask& task, int threads, HeadLayout& layout)
  {
    UmapOptions options = UmapOptionsOf(this->Options);
    options.threads = threads;
    options.start = task.start ? task.start->points.data() : nullptr;
    std::atomic<float>& share = this->ShareOf(task);
    options.progress = [&](const LayoutStep& step)
    {
      share = static_cast<float>(step.done);
      return !this->Stopped;
    };
    layout.points = Umap(points, options).points;
  }
};

}

void CheckLayoutOptions(std::int64_t points, const LayoutOptions& options)
{
  ThrowIf<OptionError>(options.dimensions != 2 && options.dimensions != 3,
    "expected 2 or 3 dimensions, found ", options.dimensions, ".");
  ThrowIf<OptionError>(
    options.scaling == KeyScaling::Fixed && !(options.scale > 0 && std::isfinite(options.scale)),
    "expected a key scale above 0, found ", options.scale, ".");
  if (options.method == LayoutMethod::TSne)
  {
    CheckTSneOptions(points, TSneOptionsOf(options));
  }
  else if (options.method == LayoutMethod::Umap)
  {
    CheckUmapOptions(points, UmapOptionsOf(options));
  }
}

LayoutOptions PublishedOptions(LayoutOptions options, bool ofImages)
{
  options.scaling = KeyScaling::None;
  options.metric =
    options.method == LayoutMethod::TSne ? PointMetric::SquaredCosine : PointMetric::Cosine;
  options.perplexity = ofImages ? 20 : 50;
  options.iterations = ofImages ? 1000 : 300;
  options.randomStart = true;
  options.exaggeratedIterations = 250;
  options.learningRate =
    ofImages ? 0 : 800; // scikit-learn's 200, which multiplies 4 times the step
  options.neighbors = ofImages ? 10 : 15;
  options.minimumDistance = 0.1;
  return options;
}

std::vector<int> FrameIterations(const LayoutOptions& options)
{
  std::vector<int> iterations;
  if (options.frameInterval > 0 && options.method == LayoutMethod::TSne)
  {
    for (int i = 0; i < options.iterations; i += options.frameInterval)
    {
      iterations.push_back(i);
    }
    iterations.push_back(options.iterations);
  }
  return iterations;
}

std::vector<HeadLayout> LayOutHeads(const Recording& recording, const JointRows& rows,
  const std::vector<LayoutTask>& tasks, const LayoutOptions& options, int threads,
  const std::function<bool(const LayoutProgress&)>& progress)
{
  CheckLayoutOptions(rows.Points(), options);
  Work work(recording, rows, tasks, options);
  if (tasks.empty() || (progress && !progress(work.Progress())))
  {
    return {};
  }
  // Another thread works, so that this one can tell and be told at any time.
  std::future<void> done = std::async(std::launch::async, [&] { work.Run(threads); });
  while (done.wait_for(ReportInterval) != std::future_status::ready)
  {
    if (progress && !progress(work.Progress()))
    {
      work.Stop();
    }
  }
  done.get(); // throws what was thrown
  return work.TakeResults();
}

LayoutMemory EstimateLayoutMemory(std::int64_t points, std::int64_t dimension, std::int64_t heads,
  const LayoutOptions& options, int threads)
{
  const auto ofPoints = static_cast<double>(points);
  const auto frames = static_cast<double>(FrameIterations(options).size());
  const double perPoint = sizeof(float) * ((1 + frames) * options.dimensions + 1);
  // The vectors in single and double precision; neighbors with their weights, once as found and
  // once symmetric; the tree.
  const double edges = options.method == LayoutMethod::Principal ? 0
                       : options.method == LayoutMethod::TSne    ? 3 * options.perplexity
                                                                 : options.neighbors;
  const double ofHead = ofPoints * (16. * static_cast<double>(dimension) + 40 * edges + 200);
  const std::int64_t atOnce =
    points >= ParallelPoints ? 1 : std::min<std::int64_t>(heads, ThreadCount(threads));
  return { static_cast<double>(heads) * ofPoints * perPoint, static_cast<double>(atOnce) * ofHead };
}

HeadLayouts::Entry HeadLayouts::EntryOf(const LayoutRequest& request, std::size_t i)
{
  const LayoutOptions& options = request.options;
  const bool isPrincipal = options.method == LayoutMethod::Principal;
  const bool isTSne = options.method == LayoutMethod::TSne;
  const std::string start =
    KeyOf(request.tokens, static_cast<int>(options.method), options.dimensions, options.translate) +
    (isPrincipal ? "" : KeyOf(static_cast<int>(options.metric), options.seed)) +
    (isTSne         ? KeyOf(options.iterations, options.randomStart, options.exaggeratedIterations,
                        options.learningRate, options.frameInterval)
      : isPrincipal ? ""
                    : KeyOf(options.neighbors, options.minimumDistance));
  const std::string layout =
    start + KeyOf(request.contents[i]) + (isTSne ? KeyOf(options.perplexity) : "");
  const std::string key = layout + KeyOf(static_cast<int>(options.scaling),
                                     options.scaling == KeyScaling::Fixed ? options.scale : 1);
  return { key, IsCosine(options) ? layout : key, start, request.contents[i], request.time, 0,
    nullptr };
}

std::shared_ptr<const HeadLayout> HeadLayouts::Find(
  const LayoutRequest& request, std::size_t i) const
{
  const auto found = this->Entries.find(request.heads[i]);
  if (found != this->Entries.end())
  {
    const std::string key = EntryOf(request, i).key;
    for (const Entry& entry : found->second)
    {
      if (entry.key == key)
      {
        return entry.value;
      }
    }
  }
  return nullptr;
}

std::vector<LayoutTask> HeadLayouts::Missing(const LayoutRequest& request) const
{
  std::vector<LayoutTask> tasks;
  for (std::size_t i = 0; i < request.heads.size(); ++i)
  {
    if (this->Find(request, i))
    {
      continue;
    }
    LayoutTask task{ request.heads[i], nullptr, nullptr };
    const auto found = this->Entries.find(request.heads[i]);
    const Entry wanted = EntryOf(request, i);
    for (std::size_t e = 0; found != this->Entries.end() && e < found->second.size(); ++e)
    {
      const Entry& entry = found->second[e];
      const bool hasLayout = entry.value->error.empty();
      if (hasLayout && entry.layout == wanted.layout)
      {
        task.same = entry.value;
      }
      else if (hasLayout && !entry.value->stopped && entry.start == wanted.start &&
               (entry.content == wanted.content || entry.time != wanted.time))
      {
        task.start = entry.value;
      }
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void HeadLayouts::Keep(const LayoutRequest& request, std::vector<HeadLayout> layouts, double limit)
{
  ++this->Requests;
  std::map<HeadPlace, HeadLayout*> added;
  for (HeadLayout& layout : layouts)
  {
    added[layout.place] = &layout;
  }
  for (std::size_t i = 0; i < request.heads.size(); ++i)
  {
    std::vector<Entry>& entries = this->Entries[request.heads[i]];
    Entry wanted = EntryOf(request, i);
    entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const Entry& entry)
                    { return entry.value->stopped && entry.key != wanted.key; }),
      entries.end());
    const auto known = std::find_if(
      entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == wanted.key; });
    const auto found = added.find(request.heads[i]);
    if (known != entries.end()) // to the end, as the latest
    {
      std::rotate(known, known + 1, entries.end());
      entries.back().age = this->Requests;
      entries.back().time = request.time;
    }
    else if (found != added.end())
    {
      wanted.age = this->Requests;
      wanted.value = std::make_shared<const HeadLayout>(std::move(*found->second));
      entries.push_back(std::move(wanted));
    }
  }
  this->Forget(limit);
}

/// Removes the oldest layouts that the latest request does not use, until the rest is small enough.
void HeadLayouts::Forget(double limit)
{
  const auto sizeOf = [](const Entry& entry)
  {
    return static_cast<double>(
      sizeof(float) *
      (entry.value->points.size() + entry.value->frames.size() + entry.value->norms.size()));
  };
  double bytes = 0;
  std::vector<std::uint64_t> ages;
  for (const auto& [place, entries] : this->Entries)
  {
    for (const Entry& entry : entries)
    {
      bytes += sizeOf(entry);
      ages.push_back(entry.age);
    }
  }
  std::sort(ages.begin(), ages.end());
  ages.erase(std::unique(ages.begin(), ages.end()), ages.end());
  for (std::size_t i = 0; i < ages.size() && ages[i] < this->Requests && bytes > limit; ++i)
  {
    for (auto& [place, entries] : this->Entries)
    {
      const auto old = std::remove_if(entries.begin(), entries.end(),
        [&](const Entry& entry)
        {
          const bool isOld = entry.age == ages[i];
          bytes -= isOld ? sizeOf(entry) : 0;
          return isOld;
        });
      entries.erase(old, entries.end());
    }
  }
}

}
