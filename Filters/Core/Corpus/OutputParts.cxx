#include "OutputParts.h"

#include "Error.h"
#include "MomentRoot.h"
#include "Parallel.h"
#include "ScoreParts.h"
#include "ThinSvd.h"
#include "VectorNorm.h"

#include <algorithm>
#include <string>

namespace atlas
{
namespace
{

/// Tokens whose vectors are held at a time by a thread.
constexpr std::int64_t Block = 512;

void RequireModel(const CorpusStatistics& statistics, const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  const HeadPlace& last = statistics.places.back();
  if (config.ValueDimension() != statistics.valueDimension || last.layer >= config.layers ||
      last.head + 1 != config.heads)
  {
    throw OptionError("Model: expected that of the statistics, with " +
                      std::to_string(last.head + 1) + " heads and values of " +
                      std::to_string(statistics.valueDimension) + " dimensions, found one with " +
                      std::to_string(config.heads) + " heads and values of " +
                      std::to_string(config.ValueDimension()) + " dimensions.");
  }
  const bool isKnown = !statistics.fingerprint.weights.empty(); // not of older versions
  if (isKnown && !(FingerprintOf(model) == statistics.fingerprint))
  {
    throw OptionError("Model: expected that of the statistics, then at " + statistics.model +
                      ", found one with other weights or settings.");
  }
}

/// Rows that are computed in blocks: rowsOf(begin, end) of `count` rows.
template<class RowsOf>
Eigen::MatrixXd InBlocks(
  std::int64_t count, Eigen::Index columns, int threads, const RowsOf& rowsOf)
{
  Eigen::MatrixXd result(count, columns);
  ParallelFor((count + Block - 1) / Block, threads,
    [&](std::int64_t b)
    {
      const std::int64_t begin = b * Block;
      const std::int64_t end = std::min(begin + Block, count);
      result.middleRows(begin, end - begin) = rowsOf(begin, end);
    });
  return result;
}

/// A direction of each part as a column.
Eigen::MatrixXd ColumnsOf(const OutputParts& parts, Eigen::VectorXd OutputPart::* direction)
{
  const auto count = static_cast<Eigen::Index>(parts.parts.size());
  Eigen::MatrixXd columns(count > 0 ? (parts.parts.front().*direction).size() : 0, count);
  for (Eigen::Index r = 0; r < count; ++r)
  {
    columns.col(r) = parts.parts[r].*direction;
  }
  return columns;
}

}

OutputParts FindOutputParts(const CorpusStatistics& statistics, const ProcessedWeights& weights,
  std::int64_t layer, std::int64_t head, std::int64_t most)
{
  const CorpusHead& sums = statistics.heads[FindCorpusHead(statistics, layer, head)];
  const std::int64_t d = statistics.valueDimension;
  if (d == 0)
  {
    throw OptionError("output parts: expected statistics with values, found none; measure the text "
                      "with Sample Values.");
  }
  if (statistics.tokens == 0)
  {
    throw OptionError("output parts: expected statistics of a text, found no tokens.");
  }
  RequireModel(statistics, weights.GetModel());
  const auto count = static_cast<double>(statistics.tokens);
  OutputParts result;
  result.valueMean = Eigen::VectorXd::NullaryExpr(
    d, [&](Eigen::Index i) { return sums.valueSum[i].Value() / count; });
  const MomentRoot values(
    MeanMoment(sums.valueMoment, d, count) - result.valueMean * result.valueMean.transpose());
  const DoubleMatrix output = weights.Attention(layer).heads[head].output;
  const Eigen::MatrixXd written = values.root * output;
  const ThinSvd svd = DecomposeThin(written);
  const Eigen::VectorXd& strengths = svd.values;
  result.variance = strengths.squaredNorm();
  for (Eigen::Index r = 0; r < std::min<Eigen::Index>(most, strengths.size()); ++r)
  {
    if (strengths[r] <= strengths[0] * 1e-6)
    {
      break;
    }
    OutputPart part;
    part.strength = strengths[r];
    part.variance = strengths[r] * strengths[r];
    part.reading = values.inverse * svd.u.col(r);
    part.writing = svd.v.col(r);
    Eigen::Index largest = 0;
    part.writing.cwiseAbs().maxCoeff(&largest);
    if (part.writing[largest] < 0)
    {
      part.reading *= -1;
      part.writing *= -1;
    }
    result.parts.push_back(std::move(part));
  }
  return result;
}

Eigen::MatrixXd OutputCoordinates(
  const CorpusStatistics& statistics, std::size_t head, const OutputParts& parts)
{
  const auto d = static_cast<Eigen::Index>(statistics.valueDimension);
  Eigen::MatrixXd values(statistics.samples.size(), d);
  for (Eigen::Index s = 0; s < values.rows(); ++s)
  {
    const float* first = statistics.samples[s].values.data() + head * d;
    values.row(s) = Eigen::Map<const Eigen::RowVectorXf>(first, d).cast<double>();
  }
  values.rowwise() -= parts.valueMean.transpose();
  return values * ColumnsOf(parts, &OutputPart::reading);
}

Eigen::MatrixXd EmbeddingCoordinates(const Transformer& model, std::int64_t layer,
  std::int64_t head, const OutputParts& parts, int threads)
{
  const TransformerConfig& config = model.GetConfig();
  const TransformerWeights& tensors = model.GetWeights();
  const ProcessedWeights stored(model, WeightSteps::Stored, threads);
  const ProcessedHead weights = stored.Attention(layer).heads[head];
  const Eigen::MatrixXd reading = ColumnsOf(parts, &OutputPart::reading);
  const Eigen::MatrixXd directions = weights.value * reading;
  const Eigen::RowVectorXd offset = (weights.valueBias - parts.valueMean.transpose()) * reading;
  return InBlocks(config.vocabulary, reading.cols(), threads,
    [&](std::int64_t begin, std::int64_t end) -> Eigen::MatrixXd
    {
      DoubleMatrix rows = stored.TokenEmbedding(begin, end);
      for (Eigen::Index i = 0; i < rows.rows(); ++i)
      {
        Eigen::RowVectorXd row = rows.row(i);
        if (tensors.embeddingNorm.gain.data != nullptr)
        {
          NormalizeVector(config, tensors.embeddingNorm, row);
        }
        NormalizeVector(config, tensors.layers[layer].attentionNorm, row);
        rows.row(i) = row;
      }
      return (rows * directions).rowwise() + offset;
    });
}

Eigen::MatrixXd LogitEffects(const ProcessedWeights& weights, const OutputParts& parts, int threads)
{
  Eigen::MatrixXd directions = ColumnsOf(parts, &OutputPart::writing);
  for (Eigen::Index r = 0; r < directions.cols(); ++r)
  {
    directions.col(r) *= parts.parts[r].strength;
  }
  return InBlocks(weights.OutputVocabulary(), directions.cols(), threads,
    [&](std::int64_t begin, std::int64_t end) -> Eigen::MatrixXd
    { return weights.UnembeddingColumns(begin, end) * directions; });
}

}
