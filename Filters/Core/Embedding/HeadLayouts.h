#pragma once

#include "JointVectors.h"
#include "PointView.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

/// Layouts of the joint vectors of many heads.
namespace atlas
{

enum class LayoutMethod
{
  Principal, ///< principal components
  TSne,      ///< van der Maaten and Hinton 2008
  Umap       ///< McInnes, Healy and Melville 2018
};

struct LayoutOptions
{
  LayoutMethod method = LayoutMethod::TSne;
  int dimensions = 2; ///< 2 or 3
  bool translate = true;
  KeyScaling scaling = KeyScaling::Optimized;
  double scale = 1;                         ///< of KeyScaling::Fixed, above 0
  PointMetric metric = PointMetric::Cosine; ///< of t-SNE and UMAP
  double perplexity = 50;                   ///< of t-SNE, as the next four
  int iterations = 750;
  bool randomStart = false;
  int exaggeratedIterations = -1; ///< -1: a third of the iterations
  double learningRate = 0;        ///< 0: as TSneOptions has it
  int neighbors = 15;             ///< of UMAP, counting the point itself
  double minimumDistance = 0.1;   ///< of UMAP
  std::uint64_t seed = 0;
  int frameInterval = 0; ///< iterations of t-SNE between layouts that are kept; 0: none are
};

/// These options with the settings of the published pictures of AttentionViz (Yeh et al. 2023) for
/// texts or for images. Those of t-SNE do not let it converge. UMAP starts from eigenvectors, not
/// at random.
LayoutOptions PublishedOptions(LayoutOptions options, bool ofImages);

/// The numbers of iterations at which layouts are kept: 0, every multiple of the interval, and the
/// last. Empty if none are.
std::vector<int> FrameIterations(const LayoutOptions& options);

/// Throws OptionError if these options do not fit so many points, as TSne and Umap do, and unless
/// there are 2 or 3 dimensions and a scale above 0.
void CheckLayoutOptions(std::int64_t points, const LayoutOptions& options);

/// The layout of one head, and what is known of the head. NaN where a number is not defined.
struct HeadLayout
{
  HeadPlace place;
  std::vector<float> points; ///< [queries + keys, dimensions]
  std::vector<float> norms;  ///< [queries + keys], before translation
  std::vector<float> frames; ///< [frames, queries + keys, dimensions]: earlier layouts, if asked
                             ///< for
  double scale;              ///< c
  double correlation;        ///< Pearson, of q . (k + shift) and | q / c - c (k + shift) |
  double correlationBefore;  ///< Pearson, of q . k and |q - k|
  double rankCorrelation;    ///< Spearman within sequences, of q . k and 1 - cos(q, k + shift)
  double queryNorm;          ///< mean |q|
  double keyNorm;            ///< mean |k|
  double neighborsKept;      ///< of the 15 nearest, the share that is near in the layout, 0 to 1
  double varianceExplained;  ///< by the components shown, 0 to 1; of principal components
  double divergence;         ///< Kullback-Leibler divergence in nats; of t-SNE
  int iterations = 0;        ///< done; of t-SNE
  bool stopped = false;      ///< whether `progress` ended it early
  std::string error;         ///< why there is no layout; else empty

  /// The layout at frame number `frame`, or the last if there are fewer.
  const float* Frame(std::size_t frame) const
  {
    const std::size_t begin = frame * this->points.size();
    return begin < this->frames.size() ? this->frames.data() + begin : this->points.data();
  }
};

/// What is to be laid out: a head, and layouts from earlier that help.
struct LayoutTask
{
  HeadPlace place;
  std::shared_ptr<const HeadLayout> same;  ///< the layout, of which only the numbers changed
  std::shared_ptr<const HeadLayout> start; ///< a similar one to start from
};

/// How far LayOutHeads is.
struct LayoutProgress
{
  std::int64_t done = 0; ///< heads
  std::int64_t heads = 0;
  double share = 0;      ///< of the work, 0 to 1
  double divergence = 0; ///< the latest of t-SNE; NaN if none is known
};

/// Lays out heads, in the order of `tasks`, on up to `threads` threads: heads in parallel on one
/// thread each or, from ParallelPoints points per head, one after another. The layouts do not
/// depend on the threads. `progress` is called on the calling thread several times a second. If it
/// returns false, t-SNE and UMAP end with the layout reached, and heads that have not begun are
/// missing.
///
/// A head whose queries or keys are all equal has an error instead of a layout. Throws as
/// CheckLayoutOptions and JoinQueriesAndKeys do otherwise.
std::vector<HeadLayout> LayOutHeads(const Recording& recording, const JointRows& rows,
  const std::vector<LayoutTask>& tasks, const LayoutOptions& options, int threads,
  const std::function<bool(const LayoutProgress&)>& progress);
inline constexpr std::int64_t ParallelPoints = 50000;

/// The memory in bytes that LayOutHeads takes for its result, and beside it while it runs; `points`
/// are those of a head.
struct LayoutMemory
{
  double layouts;
  double working;
};
LayoutMemory EstimateLayoutMemory(std::int64_t points, std::int64_t dimension, std::int64_t heads,
  const LayoutOptions& options, int threads);

/// What a set of layouts is made from.
struct LayoutRequest
{
  std::vector<HeadPlace> heads;
  std::vector<std::uint64_t> contents; ///< per head, a hash of its queries and keys
  std::uint64_t tokens = 0;            ///< a hash of the chosen tokens
  double time = 0;                     ///< of the recording
  LayoutOptions options;
};

/// Layouts that are kept between requests, so that only what changed is computed again.
///
/// - A layout whose request is the same is used again; one that was stopped only as long as no
/// other
///   is requested for its head.
/// - If only the scale changed, and the metric is a cosine, the layout is the same.
/// - If only scale or perplexity changed, or the recording at another time has other values at the
///   same tokens, t-SNE and UMAP start from the layout used last, so that points stay where they
///   were. Such a layout depends on those before it.
class HeadLayouts
{
public:
  /// The heads that have to be laid out.
  std::vector<LayoutTask> Missing(const LayoutRequest& request) const;

  /// Keeps layouts of a request. Forgets old ones of other requests beyond `limit` bytes.
  void Keep(const LayoutRequest& request, std::vector<HeadLayout> layouts,
    double limit = 512. * 1024 * 1024);

  /// The layout of head number `i` of the request; nullptr if there is none.
  std::shared_ptr<const HeadLayout> Find(const LayoutRequest& request, std::size_t i) const;

private:
  struct Entry
  {
    std::string key;    ///< all that the numbers depend on
    std::string layout; ///< all that the layout depends on
    std::string start;  ///< all but scale, perplexity, content and time
    std::uint64_t content;
    double time;
    std::uint64_t age; ///< of the request that used it last
    std::shared_ptr<const HeadLayout> value;
  };
  static Entry EntryOf(const LayoutRequest& request, std::size_t i);
  void Forget(double limit);

  std::map<HeadPlace, std::vector<Entry>> Entries; ///< the latest last
  std::uint64_t Requests = 0;
};

}
