#include "OutputParts.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Internal/MomentRoot.h"
#include "ScoreParts.h"
#include "Weights/ThinSvd.h"
#include "Weights/VectorNorm.h"

#include <algorithm>

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
  ThrowIf<OptionError>(config.ValueDimension() != statistics.valueDimension ||
                         last.layer >= config.layers || last.head + 1 != config.heads,
    "Model: expected that of the statistics, with ", last.head + 1, " heads and values of ",
    statistics.valueDimension, " dimensions, found one with ", config.heads,
    " heads and values of ", config.ValueDimension(), " dimensions.");
  const bool isKnown = !statistics.fingerprint.weights.empty(); // not of older versions
  ThrowIf<OptionError>(isKnown && !(FingerprintOf(model) == statistics.fingerprint),
    "Model: expected that of the statistics, then at ", statistics.model,
    ", found one with other weights or settings.");
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

}

OutputParts FindOutputParts(const CorpusStatistics& statistics, const ProcessedWeights& weights,
  std::int64_t layer, std::int64_t head, std::int64_t most)
{
  const CorpusHead& sums = statistics.heads[FindCorpusHead(statistics, layer, head)];
  const std::int64_t d = statistics.valueDimension;
  ThrowIf<OptionError>(d == 0, "output parts: expected statistics with values, found none; measure "
                               "the text with Sample Values.");
  ThrowIf<OptionError>(
    statistics.tokens == 0, "output parts: expected statistics of a text, found no tokens.");
  RequireModel(statistics, weights.GetModel());
  const auto count = static_cast<double>(statistics.tokens);
  OutputParts result;
  result.valueMean = MeanVector(sums.valueSum, d, count);
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
    const double sign = SignOfLargest(svd.v.col(r));
    part.reading = sign * (values.inverse * svd.u.col(r));
    part.writing = sign * svd.v.col(r);
    result.parts.push_back(std::move(part));
  }
  return result;
}

Eigen::MatrixXd OutputCoordinates(
  const CorpusStatistics& statistics, std::size_t head, const OutputParts& parts)
{
  Eigen::MatrixXd values =
    SampleVectors(statistics, head, &CorpusSample::values, statistics.valueDimension);
  values.rowwise() -= parts.valueMean.transpose();
  return values * ColumnsOf(parts.parts, &OutputPart::reading, parts.valueMean.size());
}

Eigen::MatrixXd EmbeddingCoordinates(const Transformer& model, std::int64_t layer,
  std::int64_t head, const OutputParts& parts, int threads)
{
  const TransformerConfig& config = model.GetConfig();
  const TransformerWeights& tensors = model.GetWeights();
  const ProcessedWeights stored(model, WeightSteps::Stored, threads);
  const ProcessedHead weights = stored.Attention(layer).heads[head];
  const Eigen::MatrixXd reading =
    ColumnsOf(parts.parts, &OutputPart::reading, parts.valueMean.size());
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
  Eigen::MatrixXd directions =
    ColumnsOf(parts.parts, &OutputPart::writing, weights.GetModel().GetConfig().modelDimension);
  for (Eigen::Index r = 0; r < directions.cols(); ++r)
  {
    directions.col(r) *= parts.parts[r].strength;
  }
  return InBlocks(weights.OutputVocabulary(), directions.cols(), threads,
    [&](std::int64_t begin, std::int64_t end) -> Eigen::MatrixXd
    { return weights.UnembeddingColumns(begin, end) * directions; });
}

}
