#include "Embedding/HeadLayouts.h"

#include "Base/Error.h"
#include "Embedding/Principal.h"
#include "EmbeddingOracle.h"
#include "ErrorMessage.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// The heads of the gpt2 oracle: 2 layers of 4 heads, 34 tokens.
class OfHeads : public testing::Test
{
protected:
  const EmbeddingOracle Oracle{ "gpt2" };
  const Recording Record = this->Oracle.MakeRecording();
  const JointRows Rows = ChooseTokens(this->Record, {});

  static std::vector<LayoutTask> Tasks()
  {
    std::vector<LayoutTask> tasks;
    for (std::int32_t i = 0; i < 8; ++i)
    {
      tasks.push_back({ { i / 4, i % 4 }, nullptr, nullptr });
    }
    return tasks;
  }

  static LayoutOptions Options(LayoutMethod method)
  {
    LayoutOptions options;
    options.method = method;
    options.perplexity = 15;
    options.iterations = 120;
    return options;
  }

  std::vector<HeadLayout> LayOut(const LayoutOptions& options, int threads = 2,
    const std::function<bool(const LayoutProgress&)>& progress = nullptr) const
  {
    return LayOutHeads(this->Record, this->Rows, Tasks(), options, threads, progress);
  }

  /// All heads of the recording.
  LayoutRequest Request(const LayoutOptions& options) const
  {
    LayoutRequest request;
    for (const LayoutTask& task : Tasks())
    {
      request.heads.push_back(task.place);
      request.contents.push_back(
        static_cast<std::uint64_t>(10 * task.place.layer + task.place.head));
    }
    request.options = options;
    return request;
  }
};

TEST_F(OfHeads, PrincipalComponentsAreThoseOfTheOracle)
{
  LayoutOptions options = Options(LayoutMethod::Principal);
  options.dimensions = 3;
  options.scaling = KeyScaling::None;
  const std::vector<HeadLayout> layouts = this->LayOut(options);
  ASSERT_EQ(layouts.size(), 8);
  for (const HeadLayout& layout : layouts)
  {
    const std::string prefix = this->Oracle.Prefix(layout.place.layer, layout.place.head);
    ExpectClose("scores", layout.points, this->Oracle.Values(prefix + "pca.scores"), 1e-6);
    ExpectClose("norm", layout.norms, this->Oracle.Values(prefix + "norm"), 1e-6);
    const std::vector<double> ratio = this->Oracle.Values(prefix + "pca.ratio");
    EXPECT_NEAR(layout.varianceExplained, ratio[0] + ratio[1] + ratio[2], 1e-6);
    EXPECT_TRUE(std::isnan(layout.divergence));
    EXPECT_GT(layout.neighborsKept, 0.2);
    EXPECT_LE(layout.neighborsKept, 1);
  }
}

TEST_F(OfHeads, ThreadsDoNotChangeALayout)
{
  for (const LayoutMethod method :
    { LayoutMethod::Principal, LayoutMethod::TSne, LayoutMethod::Umap })
  {
    const std::vector<HeadLayout> one = this->LayOut(Options(method), 1);
    const std::vector<HeadLayout> many = this->LayOut(Options(method), 3);
    ASSERT_EQ(one.size(), many.size());
    for (std::size_t i = 0; i < one.size(); ++i)
    {
      EXPECT_EQ(one[i].points, many[i].points);
      EXPECT_EQ(one[i].points.size(), 68 * 2);
      EXPECT_EQ(one[i].place.head, many[i].place.head);
    }
  }
}

/// Exaggerated attraction of a perplexity that is large for the number of points brings all of them
/// together.
TEST_F(OfHeads, AreNotFlattenedByExaggeration)
{
  LayoutOptions options = Options(LayoutMethod::TSne);
  options.perplexity = 22;
  options.iterations = 750;
  for (const HeadLayout& layout : this->LayOut(options))
  {
    const PrincipalComponents axes = FindPrincipalComponents({ layout.points.data(), 68, 2 }, 2);
    EXPECT_GT(std::sqrt(axes.variance[1] / axes.variance[0]), 0.2);
  }
}

TEST_F(OfHeads, ProgressStopsTSneWhereItIs)
{
  LayoutOptions options = Options(LayoutMethod::TSne);
  options.iterations = 1000000;
  double share = 0;
  const std::vector<HeadLayout> layouts = this->LayOut(options, 2,
    [&](const LayoutProgress& progress)
    {
      EXPECT_EQ(progress.heads, 8);
      EXPECT_GE(progress.share, share);
      share = progress.share;
      return share == 0;
    });
  ASSERT_GT(layouts.size(), 0);
  ASSERT_LT(layouts.size(), 8); // those that had begun
  EXPECT_GT(layouts.front().iterations, 0);
  EXPECT_LT(layouts.front().iterations, options.iterations);
  EXPECT_TRUE(layouts.front().stopped);
  EXPECT_THAT(this->LayOut(options, 2, [](const LayoutProgress&) { return false; }), IsEmpty());
}

TEST_F(OfHeads, EarlierLayoutsAreKeptIfAskedFor)
{
  LayoutOptions options = Options(LayoutMethod::TSne);
  EXPECT_THAT(FrameIterations(options), IsEmpty());
  options.frameInterval = 50;
  EXPECT_THAT(FrameIterations(options), ElementsAre(0, 50, 100, 120));
  const HeadLayout layout = this->LayOut(options).front();
  ASSERT_EQ(layout.frames.size(), 4 * layout.points.size());
  EXPECT_TRUE(std::equal(layout.points.begin(), layout.points.end(), layout.Frame(3)));
  EXPECT_EQ(layout.Frame(7), layout.points.data());
  EXPECT_LT(std::abs(layout.Frame(0)[0]), 0.01); // the start
}

TEST_F(OfHeads, OptionsThatDoNotFitAreNamed)
{
  const auto check = [](const LayoutOptions& options)
  { return MessageOf<OptionError>([&]() { CheckLayoutOptions(68, options); }); };
  LayoutOptions options;
  EXPECT_THAT(check(options), HasSubstr("perplexity from 1 to 22.33, the largest that works"));
  options.method = LayoutMethod::Umap;
  options.neighbors = 69;
  EXPECT_THAT(check(options), HasSubstr("found 69"));
  options.method = LayoutMethod::Principal;
  options.dimensions = 4;
  EXPECT_THAT(check(options), HasSubstr("expected 2 or 3 dimensions, found 4"));
  options.dimensions = 2;
  options.scaling = KeyScaling::Fixed;
  options.scale = -1;
  EXPECT_THAT(check(options), HasSubstr("expected a key scale above 0, found -1"));
}

TEST_F(OfHeads, KnownLayoutsAreUsedAgain)
{
  HeadLayouts known;
  LayoutRequest request = this->Request(Options(LayoutMethod::TSne));
  EXPECT_EQ(known.Missing(request).size(), 8);
  known.Keep(request, this->LayOut(request.options));
  EXPECT_THAT(known.Missing(request), IsEmpty());
  const auto first = known.Find(request, 0);
  ASSERT_NE(first, nullptr);

  LayoutRequest one = request;
  one.heads = { { 1, 2 } };
  one.contents = { 12 };
  EXPECT_THAT(known.Missing(one), IsEmpty());
  one.contents = { 99 }; // other values at the same time: another recording
  ASSERT_EQ(known.Missing(one).size(), 1);
  EXPECT_EQ(known.Missing(one)[0].start, nullptr);
  one.time = 1; // the next step
  EXPECT_NE(known.Missing(one)[0].start, nullptr);
  one.tokens = 5; // of other tokens
  EXPECT_EQ(known.Missing(one)[0].start, nullptr);

  request.options.scaling = KeyScaling::Norms;
  ASSERT_EQ(known.Missing(request).size(), 8);
  EXPECT_EQ(known.Missing(request)[0].same, first); // the cosine does not change
  request.options.metric = PointMetric::Euclidean;
  EXPECT_EQ(known.Missing(request)[0].same, nullptr);
  EXPECT_EQ(known.Missing(request)[0].start, nullptr);
  request.options = Options(LayoutMethod::TSne);
  request.options.perplexity = 10;
  EXPECT_EQ(known.Missing(request)[0].same, nullptr);
  EXPECT_EQ(known.Missing(request)[0].start, first);
  request.options.seed = 1;
  EXPECT_EQ(known.Missing(request)[0].start, nullptr);
}

TEST_F(OfHeads, StoppedLayoutsAreForgottenOnceOthersAreAskedFor)
{
  HeadLayouts known;
  LayoutRequest request = this->Request(Options(LayoutMethod::TSne));
  std::vector<HeadLayout> layouts = this->LayOut(request.options);
  EXPECT_FALSE(layouts.at(3).stopped);
  layouts.at(3).stopped = true; // by Cancel
  known.Keep(request, std::move(layouts));
  EXPECT_THAT(known.Missing(request), IsEmpty());
  LayoutRequest other = request;
  other.options.perplexity = 10;
  EXPECT_NE(known.Missing(other).at(2).start, nullptr);
  EXPECT_EQ(known.Missing(other).at(3).start, nullptr);
  known.Keep(other, {});
  ASSERT_EQ(known.Missing(request).size(), 1);
  EXPECT_EQ(known.Missing(request)[0].place.layer, request.heads.at(3).layer);
  EXPECT_EQ(known.Missing(request)[0].place.head, request.heads.at(3).head);
}

TEST_F(OfHeads, OldLayoutsAreForgottenBeyondALimit)
{
  HeadLayouts known;
  const LayoutRequest first = this->Request(Options(LayoutMethod::Principal));
  known.Keep(first, this->LayOut(first.options), 0);
  EXPECT_THAT(known.Missing(first), IsEmpty()); // the latest are always kept
  LayoutRequest second = first;
  second.options.translate = false;
  known.Keep(second, this->LayOut(second.options), 1e9);
  EXPECT_THAT(known.Missing(first), IsEmpty());
  known.Keep(second, {}, 0);
  EXPECT_EQ(known.Missing(first).size(), 8);
  EXPECT_THAT(known.Missing(second), IsEmpty());
}

TEST_F(OfHeads, ADegenerateHeadHasAnErrorOfItsOwn)
{
  Recording recording = this->Record;
  recording.layers[0].heads[1].key = SharedMatrix::Zero(34, 8);
  const std::vector<HeadLayout> layouts =
    LayOutHeads(recording, this->Rows, Tasks(), Options(LayoutMethod::Principal), 2, nullptr);
  ASSERT_EQ(layouts.size(), 8);
  EXPECT_THAT(layouts[1].error, HasSubstr("layer 0, head 1, keys: expected at least two"));
  EXPECT_THAT(layouts[1].points, IsEmpty());
  EXPECT_THAT(layouts[0].error, IsEmpty());
}

TEST(HeadLayouts, PublishedSettingsAreThoseOfTheNotebooks)
{
  LayoutOptions options;
  const LayoutOptions texts = PublishedOptions(options, false);
  EXPECT_EQ(texts.metric, PointMetric::SquaredCosine);
  EXPECT_EQ(texts.perplexity, 50);
  EXPECT_EQ(texts.iterations, 300);
  EXPECT_EQ(texts.exaggeratedIterations, 250);
  EXPECT_TRUE(texts.randomStart);
  const LayoutOptions images = PublishedOptions(options, true);
  EXPECT_EQ(images.perplexity, 20);
  EXPECT_EQ(images.iterations, 1000);
  options.method = LayoutMethod::Umap;
  EXPECT_EQ(PublishedOptions(options, true).neighbors, 10);
  EXPECT_EQ(PublishedOptions(options, false).metric, PointMetric::Cosine);
}

}
