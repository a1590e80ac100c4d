#include "HeadCopying.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Numerics/Lanes.h"
#include "Numerics/MatrixProduct.h"
#include "RecordedModel.h"
#include "Recording/RecordedAttention.h"
#include "Weights/ProcessedWeights.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace atlas
{
namespace
{

using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::int64_t PlaceIn(const std::vector<std::int64_t>& sorted, std::int64_t id)
{
  return std::lower_bound(sorted.begin(), sorted.end(), id) - sorted.begin();
}

/// Everything that all heads share.
class Copying
{
public:
  Copying(const Recording& recording, const Transformer& model, int threads)
    : Record(recording)
    , Weights(model, WeightSteps::TransformerLens, threads)
    // Made elsewhere with processed weights, which had folded the biases of values already.
    , HasBias(recording.processing != WeightProcessing::Processed ||
              model.GetWeights().processing == WeightProcessing::Processed)
  {
    const std::vector<std::int64_t>& ids = recording.tokens.id;
    const std::int64_t vocabulary = this->Weights.OutputVocabulary();
    const std::vector<std::int64_t> all =
      DifferentIds(ids.data(), ids.data() + ids.size(), vocabulary);
    const std::int64_t d = model.GetConfig().modelDimension;
    this->Unembedding.resize(all.size(), d);
    ParallelFor(all.size(), threads, [&](std::int64_t i)
      { this->Unembedding.row(i) = this->Weights.UnembeddingColumns(all[i], all[i] + 1); });
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      const std::int64_t* first = ids.data() + recording.sequenceOffsets[s];
      const std::int64_t* last = first + recording.SequenceLength(s);
      this->Sequences.emplace_back(first, last, vocabulary, all);
    }
  }

  ProcessedAttention Attention(std::int64_t layer) const { return this->Weights.Attention(layer); }

  double Measure(const HeadPlace& place, const ProcessedHead& weights) const
  {
    double sum = 0;
    std::int64_t queries = 0;
    for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
    {
      this->AddSequence(place, weights, s, sum, queries);
    }
    return queries > 0 ? sum / static_cast<double>(queries) : 0;
  }

private:
  const Recording& Record;
  ProcessedWeights Weights;
  bool HasBias;
  DoubleMatrix Unembedding; ///< [different tokens, d_model]
  std::vector<LogitTokens> Sequences;

  /// W_O W_U of the different tokens of a sequence, [d_head, tokens].
  FloatMatrix Projection(const ProcessedHead& weights, const LogitTokens& tokens) const
  {
    const std::int64_t count = tokens.rows.size();
    FloatMatrix projection(weights.output.rows(), count);
    for (Eigen::Index i = 0; i < count; ++i)
    {
      projection.col(i) =
        (weights.output * this->Unembedding.row(tokens.rows[i]).transpose()).cast<float>();
    }
    return projection;
  }

  void AddSequence(const HeadPlace& place, const ProcessedHead& weights, std::int64_t sequence,
    double& sum, std::int64_t& queries) const
  {
    const LogitTokens& tokens = this->Sequences[sequence];
    const SharedMatrix& recorded = FindHead(this->Record, place.layer, place.head).value;
    const std::int64_t length = this->Record.SequenceLength(sequence);
    const std::int64_t dimension = recorded.columns;
    FloatMatrix values = Eigen::Map<const FloatMatrix>(
      recorded.Row(this->Record.sequenceOffsets[sequence]), length, dimension);
    if (this->HasBias && weights.foldedBias.size() > 0)
    {
      values.rowwise() -= weights.foldedBias.cast<float>();
    }
    if (tokens.rows.empty()) // no token has a logit
    {
      return;
    }
    const FloatMatrix projection = this->Projection(weights, tokens);
    FloatMatrix attention(std::min(QueriesPerBlock, length), length);
    FloatMatrix mixed(attention.rows(), dimension);
    FloatMatrix logits(attention.rows(), projection.cols());
    for (std::int64_t begin = 0; begin < length; begin += QueriesPerBlock)
    {
      const std::int64_t rows = std::min(QueriesPerBlock, length - begin);
      EvaluateAttention(this->Record, sequence, place.layer, place.head, AttentionQuantity::Weights,
        begin, begin + rows, attention.data());
      MultiplyMatrices(rows, dimension, length, 1, { attention.data(), length },
        { values.data(), dimension }, mixed.data(), dimension);
      MultiplyMatrices(rows, projection.cols(), dimension, 1, { mixed.data(), dimension },
        { projection.data(), projection.cols() }, logits.data(), projection.cols());
      for (std::int64_t row = 0; row < rows; ++row)
      {
        Eigen::Index strongest = 0;
        attention.row(row).maxCoeff(&strongest);
        const double share = CopyingShare(logits.row(row), tokens.token[strongest]);
        sum += std::max(share, 0.0);
        queries += share < 0 ? 0 : 1;
      }
    }
  }
};

void RequireQuantities(const Recording& recording, const Transformer& model)
{
  ThrowIf<OptionError>(!model.HasLogits(), "Copying needs a model with an unembedding.");
  ThrowIf<OptionError>(recording.tokens.id.empty(),
    "Copying needs the ids of the tokens, which the recording does not have.");
  for (const RecordedLayer& layer : recording.layers)
  {
    for (const RecordedHead& head : layer.heads)
    {
      ThrowIf<OptionError>(!head.value.IsRecorded(),
        "Copying needs values, which were not recorded; choose Values in "
        "Record of the Transformer Recorder.");
    }
  }
}

}

std::vector<std::int64_t> DifferentIds(
  const std::int64_t* begin, const std::int64_t* end, std::int64_t limit)
{
  std::vector<std::int64_t> ids;
  std::copy_if(
    begin, end, std::back_inserter(ids), [limit](std::int64_t id) { return id < limit; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

LogitTokens::LogitTokens(const std::int64_t* begin, const std::int64_t* end, std::int64_t limit,
  const std::vector<std::int64_t>& all)
{
  const std::vector<std::int64_t> own = DifferentIds(begin, end, limit);
  std::transform(own.begin(), own.end(), std::back_inserter(this->rows),
    [&](std::int64_t id) { return PlaceIn(all, id); });
  std::transform(begin, end, std::back_inserter(this->token),
    [&](std::int64_t id) { return id < limit ? PlaceIn(own, id) : -1; });
}

double CopyingShare(const Eigen::Ref<const Eigen::RowVectorXf>& logits, std::int64_t token)
{
  if (token < 0)
  {
    return -1;
  }
  const std::int64_t count = logits.size();
  const double mean = SumOf(count, logits.data()) / static_cast<double>(count);
  using DoubleLanes = Eigen::Array<double, LaneCount, 1>;
  DoubleLanes raisedLanes = DoubleLanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes lanes = Load(logits.data() + i, left, std::numeric_limits<float>::lowest());
      raisedLanes += (lanes.cast<double>() - mean).max(0.0);
    });
  const double raised = raisedLanes.sum();
  return raised > 0 ? std::max(static_cast<double>(logits[token]) - mean, 0.0) / raised : -1;
}

std::vector<double> MeasureCopying(const Recording& recording, const Transformer& model,
  const std::vector<HeadPlace>& heads, int threads, const Progress& progress)
{
  RequireSameModel(recording, model, "Copying");
  RequireQuantities(recording, model);
  for (const HeadPlace& place : heads)
  {
    EvaluateAttention(
      recording, 0, place.layer, place.head, AttentionQuantity::Weights, 0, 0, nullptr);
  }
  const SingleThreadedBlas blas;
  const Copying copying(recording, model, threads);
  std::vector<double> scores(heads.size());
  for (std::size_t begin = 0; begin < heads.size();)
  {
    const std::int32_t layer = heads[begin].layer;
    const auto last = std::find_if(heads.begin() + static_cast<std::ptrdiff_t>(begin), heads.end(),
      [layer](const HeadPlace& place) { return place.layer != layer; });
    const std::size_t end = last - heads.begin();
    const ProcessedAttention weights = copying.Attention(layer);
    ParallelFor(static_cast<std::int64_t>(end - begin), threads,
      [&](std::int64_t i)
      {
        const HeadPlace& place = heads[begin + ToIndex(i)];
        scores[begin + ToIndex(i)] = copying.Measure(place, weights.heads[place.head]);
      });
    begin = end;
    progress(end, heads.size());
  }
  return scores;
}

}
