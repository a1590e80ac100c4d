#include "ScoreParts.h"

#include "Base/Error.h"
#include "Internal/MomentRoot.h"

#include <algorithm>
#include <cmath>

#include <Eigen/SVD>

namespace atlas
{
std::size_t FindCorpusHead(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head)
{
  const auto found = std::find_if(statistics.places.begin(), statistics.places.end(),
    [&](const HeadPlace& place) { return place.layer == layer && place.head == head; });
  ThrowIf<OptionError>(found == statistics.places.end(),
    "expected a head of the statistics, found layer ", layer, ", head ", head, ".");
  return found - statistics.places.begin();
}

ScoreParts FindScoreParts(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head, std::int64_t most)
{
  const CorpusHead& sums = statistics.heads[FindCorpusHead(statistics, layer, head)];
  ThrowIf<OptionError>(
    statistics.tokens == 0, "score parts: expected statistics of a text, found no tokens.");
  const auto count = static_cast<double>(statistics.tokens);
  const std::int64_t d = statistics.headDimension;
  ScoreParts result;
  result.keyMean = MeanVector(sums.keySum, d, count);
  const MomentRoot queries(MeanMoment(sums.queryMoment, d, count));
  const MomentRoot keys(
    MeanMoment(sums.keyMoment, d, count) - result.keyMean * result.keyMean.transpose());
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(
    queries.root * keys.root, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const double scale = std::abs(sums.scoreScale);
  const Eigen::VectorXd strengths = svd.singularValues() * scale;
  result.variance = strengths.squaredNorm();
  for (Eigen::Index r = 0; r < std::min<Eigen::Index>(most, d); ++r)
  {
    if (strengths[r] <= strengths[0] * 1e-6)
    {
      break;
    }
    ScorePart part;
    part.strength = strengths[r];
    part.variance = strengths[r] * strengths[r];
    part.query = queries.inverse * svd.matrixU().col(r);
    part.key = keys.inverse * svd.matrixV().col(r);
    const double sign = SignOfLargest(part.query);
    part.query *= sign;
    part.key *= sign;
    result.parts.push_back(std::move(part));
  }
  return result;
}

Eigen::MatrixXd CoordinatesOf(
  const CorpusStatistics& statistics, std::size_t head, const ScoreParts& parts, bool ofKeys)
{
  Eigen::MatrixXd vectors = SampleVectors(statistics, head,
    ofKeys ? &CorpusSample::keys : &CorpusSample::queries, statistics.headDimension);
  if (ofKeys)
  {
    vectors.rowwise() -= parts.keyMean.transpose();
  }
  return vectors * ColumnsOf(parts.parts, ofKeys ? &ScorePart::key : &ScorePart::query,
                     statistics.headDimension);
}

}
