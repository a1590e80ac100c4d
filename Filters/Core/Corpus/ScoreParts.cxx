#include "ScoreParts.h"

#include "Error.h"
#include "MomentRoot.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <Eigen/SVD>

namespace atlas
{
std::size_t FindCorpusHead(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head)
{
  const auto found = std::find_if(statistics.places.begin(), statistics.places.end(),
    [&](const HeadPlace& place) { return place.layer == layer && place.head == head; });
  if (found == statistics.places.end())
  {
    throw OptionError("expected a head of the statistics, found layer " + std::to_string(layer) +
                      ", head " + std::to_string(head) + ".");
  }
  return found - statistics.places.begin();
}

ScoreParts FindScoreParts(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head, std::int64_t most)
{
  const CorpusHead& sums = statistics.heads[FindCorpusHead(statistics, layer, head)];
  if (statistics.tokens == 0)
  {
    throw OptionError("score parts: expected statistics of a text, found no tokens.");
  }
  const auto count = static_cast<double>(statistics.tokens);
  const std::int64_t d = statistics.headDimension;
  ScoreParts result;
  result.keyMean =
    Eigen::VectorXd::NullaryExpr(d, [&](Eigen::Index i) { return sums.keySum[i].Value() / count; });
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
    Eigen::Index largest = 0;
    part.query.cwiseAbs().maxCoeff(&largest);
    if (part.query[largest] < 0)
    {
      part.query *= -1;
      part.key *= -1;
    }
    result.parts.push_back(std::move(part));
  }
  return result;
}

Eigen::MatrixXd CoordinatesOf(
  const CorpusStatistics& statistics, std::size_t head, const ScoreParts& parts, bool ofKeys)
{
  const auto d = static_cast<Eigen::Index>(statistics.headDimension);
  const auto count = static_cast<Eigen::Index>(parts.parts.size());
  Eigen::MatrixXd directions(d, count);
  for (Eigen::Index r = 0; r < count; ++r)
  {
    directions.col(r) = ofKeys ? parts.parts[r].key : parts.parts[r].query;
  }
  Eigen::MatrixXd vectors(statistics.samples.size(), d);
  for (Eigen::Index s = 0; s < vectors.rows(); ++s)
  {
    const CorpusSample& sample = statistics.samples[s];
    const float* first = (ofKeys ? sample.keys : sample.queries).data() + head * d;
    vectors.row(s) = Eigen::Map<const Eigen::RowVectorXf>(first, d).cast<double>();
  }
  if (ofKeys)
  {
    vectors.rowwise() -= parts.keyMean.transpose();
  }
  return vectors * directions;
}

}
