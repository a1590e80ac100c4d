#include "LogitAttribution.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "CircuitWeights.h"
#include "LogitLens.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

/// Targets between two reports of progress.
constexpr std::int64_t StepTargets = 512;

/// Columns of the unembedding of the tokens of targets, each of which is read once.
class Columns
{
public:
  Columns(const ProcessedWeights& weights, const std::vector<LogitTarget>& targets)
    : Weights(weights)
  {
    for (const LogitTarget& target : targets)
    {
      this->Read(target.id);
      if (target.against >= 0)
      {
        this->Read(target.against);
      }
    }
  }

  /// U[:, id], minus that of the other token.
  Vector Direction(const LogitTarget& target) const
  {
    Vector direction = this->Known.at(target.id);
    if (target.against >= 0)
    {
      direction -= this->Known.at(target.against);
    }
    return direction;
  }

  double Bias(const LogitTarget& target) const
  {
    const Vector& bias = this->Weights.UnembeddingBias();
    return bias(target.id) - (target.against >= 0 ? bias(target.against) : 0);
  }

private:
  const ProcessedWeights& Weights;
  std::map<std::int32_t, Vector> Known;

  void Read(std::int32_t id)
  {
    ThrowIf<OptionError>(id < 0 || id >= this->Weights.OutputVocabulary(),
      "expected a token id from 0 to ", this->Weights.OutputVocabulary() - 1, ", found ", id, ".");
    if (this->Known.count(id) == 0)
    {
      this->Known.emplace(id, this->Weights.UnembeddingColumns(id, id + 1));
    }
  }
};

/// Whether the final normalization is folded into the unembedding, and logits are centered.
bool IsProcessed(const ProcessedWeights& weights)
{
  return weights.GetSteps() != WeightSteps::Stored &&
         weights.GetModel().GetConfig().position != PositionKind::Shortformer;
}

/// Gain and shift of a final normalization, empty where there are none.
struct FinalNorm
{
  Vector gain;
  Vector shift;

  explicit FinalNorm(const Transformer& model)
  {
    if (model.GetConfig().norm != NormKind::None)
    {
      this->gain = ToVector(model.GetWeights().finalNorm.gain);
      this->gain.array() += model.GetConfig().gainOffset;
      this->shift = ToVector(model.GetWeights().finalNorm.shift);
    }
  }
};

/// The end of the residual stream, normalized without gain and shift, as it was recorded.
std::optional<Vector> RecordedEnd(
  const Recording& recording, const Transformer& model, const FinalNorm& norm, std::int64_t row)
{
  const TransformerConfig& config = model.GetConfig();
  const std::size_t last = config.layers;
  const bool isNormed = config.lastResidualIsNormed && config.norm != NormKind::None;
  if (last >= recording.residual.size() || !recording.residual[last].IsRecorded() ||
      recording.residual[last].columns != config.modelDimension ||
      (isNormed && (norm.gain.array() == 0).any()))
  {
    return std::nullopt;
  }
  Vector x = RowOf(recording.residual[last], row);
  if (!isNormed)
  {
    NormalizeVector(config, {}, x);
    return x;
  }
  if (norm.shift.size() > 0)
  {
    x -= norm.shift;
  }
  return norm.gain.size() > 0 ? Vector(x.cwiseQuotient(norm.gain)) : x;
}

/// How logits follow from the end of the residual stream.
struct Reader
{
  const ProcessedWeights& weights;
  FinalNorm norm;
  Columns columns;

  Reader(const ProcessedWeights& source, const std::vector<LogitTarget>& targets)
    : weights(source)
    , norm(source.GetModel())
    , columns(source, targets)
  {
  }

  /// What the normalized stream is multiplied with.
  Vector Direction(const LogitTarget& target) const
  {
    const Vector direction = this->columns.Direction(target);
    return IsProcessed(this->weights) || this->norm.gain.size() == 0
             ? direction
             : Vector(direction.cwiseProduct(this->norm.gain));
  }

  /// What is added.
  double Bias(const LogitTarget& target) const
  {
    const double bias = this->columns.Bias(target);
    return IsProcessed(this->weights) || this->norm.shift.size() == 0
             ? bias
             : bias + this->norm.shift.dot(this->columns.Direction(target));
  }
};

/// The logit of a target by the logits that were recorded of its token.
double RecordedLogit(
  const Recording& recording, const ProcessedWeights& weights, const LogitTarget& target)
{
  const float* logits = recording.logits.Row(target.row);
  if (target.against >= 0)
  {
    return static_cast<double>(logits[target.id]) - static_cast<double>(logits[target.against]);
  }
  const double mean = std::accumulate(logits, logits + recording.logits.columns, 0.) /
                      static_cast<double>(recording.logits.columns);
  return static_cast<double>(logits[target.id]) - (IsProcessed(weights) ? mean : 0);
}

/// Fills the terms of targets first, first + 1, ...
void AddTerms(const Recording& recording, const ResidualWeights& weights, const Reader& reader,
  const std::vector<LogitTarget>& targets, std::int64_t first, int threads, LastMlps& mlps,
  LogitTerms& terms)
{
  const TransformerConfig& config = weights.GetConfig();
  const Transformer& model = weights.GetWeights().GetModel();
  std::vector<std::int64_t> rows;
  std::transform(targets.begin(), targets.end(), std::back_inserter(rows),
    [](const LogitTarget& target) { return target.row; });
  mlps.Find(recording, weights, rows, threads);
  ParallelFor(targets.size(), threads,
    [&](std::int64_t t)
    {
      const LogitTarget& target = targets[t];
      DoubleMatrix vectors = ComponentVectors(
        recording, weights, target.row, config.layers, mlps.At(target.row), mlps.GetMixers());
      const NormSplit split = SplitNorm(config, vectors.colwise().sum());
      if (split.centers)
      {
        vectors.colwise() -= vectors.rowwise().mean().eval();
      }
      const Vector direction = reader.Direction(target);
      auto values = terms.values.row(first + t);
      values.head(vectors.rows()) = (vectors * direction.transpose()).transpose() / split.sigma;
      values(vectors.rows()) = reader.Bias(target);
      const std::size_t i = first + t;
      terms.scales[i] = split.sigma;
      terms.sums[i] = values.sum();
      terms.logits[i] = terms.sums[i];
      if (recording.logits.IsRecorded())
      {
        terms.logits[i] = RecordedLogit(recording, weights.GetWeights(), target);
      }
      else if (const auto end = RecordedEnd(recording, model, reader.norm, target.row))
      {
        terms.logits[i] = end->dot(direction) + reader.Bias(target);
      }
    });
}

}

LogitTerms AttributeLogits(const Recording& recording, const ResidualWeights& weights,
  const std::vector<LogitTarget>& targets, LastMlps& mlps, int threads, const Progress& progress)
{
  const TransformerConfig& config = weights.GetConfig();
  RequireUnembedding(weights.GetWeights().GetModel());
  RequireLogits(recording, weights.GetWeights().GetModel());
  RequireComponents(recording, config, config.layers, "Logit Attribution");
  LogitTerms terms;
  terms.components = NamedComponentsBefore(config, config.layers);
  terms.components.push_back({ "b_U", {}, false });
  const std::int64_t count = targets.size();
  terms.values.resize(count, terms.components.size());
  terms.scales.resize(targets.size());
  terms.sums.resize(targets.size());
  terms.logits.resize(targets.size());
  const Reader reader(weights.GetWeights(), targets);
  for (std::int64_t begin = 0; begin < count; begin += StepTargets)
  {
    const std::int64_t end = std::min(begin + StepTargets, count);
    const std::vector<LogitTarget> step(targets.begin() + begin, targets.begin() + end);
    AddTerms(recording, weights, reader, step, begin, threads, mlps, terms);
    progress(end, count);
  }
  RequireIntactRecording(recording);
  return terms;
}

}
