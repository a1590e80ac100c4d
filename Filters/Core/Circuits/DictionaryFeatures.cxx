#include "DictionaryFeatures.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/ParallelProgress.h"
#include "CircuitFactors.h"
#include "CircuitWeights.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"
#include "ResidualComponents.h"
#include "Weights/ArchitectureLimits.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

bool IsOfStream(DictionarySite site)
{
  return site != DictionarySite::HeadValues && site != DictionarySite::AttentionOutput;
}

/// Whether TransformerLens subtracts means over components from weights that write to the residual
/// stream, when it is asked to.
bool CanCenter(const TransformerConfig& config)
{
  return config.norm == NormKind::LayerNorm && config.position != PositionKind::Shortformer;
}

/// Whether they are subtracted from what a dictionary reads.
bool Centers(const TransformerConfig& config, const SparseDictionary& dictionary)
{
  return dictionary.steps.centersWriting && CanCenter(config) &&
         dictionary.site != DictionarySite::HeadValues;
}

/// Whether the stream is the sum of what heads write and something else.
bool AddsHeads(const TransformerConfig& config)
{
  using Switch = ArchitectureSwitch;
  return config.normPlace != NormPlace::AfterSublayer &&
         !HasSwitch(config,
           { Switch::NormsAfterToo, Switch::NormsInside, Switch::LayerScales, Switch::LayerSides });
}

/// The biases of the values of each head of a layer, which are no part of z; empty if they are.
std::vector<Vector> FoldedValues(
  const Transformer& model, const SparseDictionary& dictionary, std::int64_t layer)
{
  std::vector<Vector> biases;
  if (!dictionary.steps.foldsValues)
  {
    return biases;
  }
  const bool folds = dictionary.steps.foldsNorms;
  const ProcessedWeights weights(
    model, folds ? WeightSteps::TransformerLens : WeightSteps::Stored, 1);
  for (const ProcessedHead& head : weights.Attention(layer).heads)
  {
    biases.push_back(folds ? head.foldedBias : head.valueBias);
  }
  return biases;
}

[[noreturn]] void ThrowMissing(const std::string& expected, const char* record)
{
  throw OptionError(
    "Dictionary: expected a recording with ", expected, ", found none; record ", record, ".");
}

/// The heads of a layer, all with what is asked for.
template<class HasIt>
const std::vector<RecordedHead>& HeadsOf(const Recording& recording,
  const TransformerConfig& config, std::int64_t layer, const char* what, const char* record,
  const HasIt& hasIt)
{
  const auto found = std::find_if(recording.layers.begin(), recording.layers.end(),
    [layer](const RecordedLayer& recorded) { return recorded.index == layer; });
  const std::int64_t count = found == recording.layers.end()
                               ? 0
                               : std::count_if(found->heads.begin(), found->heads.end(), hasIt);
  ThrowIf<OptionError>(count != config.heads, "Dictionary: expected a recording with ", what,
    " of all heads of layer ", layer, ", found ", count, " of ", config.heads, "; record ", record,
    " of this layer and all its heads.");
  return found->heads;
}

const std::vector<RecordedHead>& WritingHeads(
  const Recording& recording, const TransformerConfig& config, std::int64_t layer)
{
  return HeadsOf(recording, config, layer, "outputs", "HeadOutputs", [&](const RecordedHead& head)
    { return head.output.IsRecorded() && head.output.columns == config.modelDimension; });
}

DoubleMatrix RecordedRows(const SharedMatrix& matrix, std::int64_t begin, std::int64_t end)
{
  return Eigen::Map<const SparseDictionary::Matrix>(matrix.Row(begin), end - begin, matrix.columns)
    .cast<double>();
}

/// z of all heads of a layer, one after another.
DoubleMatrix MixedValues(const Recording& recording, const Transformer& model,
  const SparseDictionary& dictionary, std::int64_t sequence, int threads, const Progress& progress)
{
  const std::int64_t layer = dictionary.layer;
  const std::vector<RecordedHead>& heads = HeadsOf(recording, model.GetConfig(), layer, "values",
    "Values", [](const RecordedHead& head) { return head.value.IsRecorded(); });
  const std::vector<Vector> biases = FoldedValues(model, dictionary, layer);
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  const std::int64_t size = dictionary.Inputs() / static_cast<std::int64_t>(heads.size());
  const SingleThreadedBlas blas;
  DoubleMatrix mixed(length, dictionary.Inputs());
  std::int64_t column = 0;
  for (std::int64_t h = 0; h < static_cast<std::int64_t>(heads.size()); ++h)
  {
    ThrowIf<OptionError>(heads[h].value.columns != size, "Dictionary: expected values of ", size,
      " components, found ", heads[h].value.columns, ".");
    const DoubleMatrix values = RecordedRows(heads[h].value, first, first + length);
    EvaluateAttentionBlocks(
      recording, { sequence, layer, h, AttentionQuantity::Weights, 0, length },
      [&](std::int64_t begin, std::int64_t end, const float* found)
      {
        const DoubleMatrix weights =
          Eigen::Map<const SparseDictionary::Matrix>(found, end - begin, length).cast<double>();
        mixed.block(begin, column, end - begin, size) = Product(weights, values);
      },
      threads, progress.Part(h, h + 1, static_cast<std::int64_t>(heads.size())));
    if (!biases.empty())
    {
      mixed.middleCols(column, size).rowwise() -= biases[h];
    }
    column += size;
  }
  return mixed;
}

/// The part of a dictionary's input that the attention of its layer adds to the stream.
DoubleMatrix AttentionOutputs(const Recording& recording, const Transformer& model,
  std::int64_t layer, std::int64_t begin, std::int64_t end)
{
  DoubleMatrix sum = DoubleMatrix::Zero(end - begin, model.GetConfig().modelDimension);
  const Vector bias = ToVector(model.GetWeights().layers[layer].output.bias);
  if (bias.size() > 0)
  {
    sum.rowwise() += bias;
  }
  for (const RecordedHead& head : WritingHeads(recording, model.GetConfig(), layer))
  {
    sum += RecordedRows(head.output, begin, end);
  }
  return sum;
}

/// The residual stream before a layer, or after the last one.
DoubleMatrix StreamBefore(const Recording& recording, const TransformerConfig& config,
  std::int64_t layer, std::int64_t begin, std::int64_t end)
{
  if (ToIndex(layer) >= recording.residual.size() || !recording.residual[layer].IsRecorded() ||
      recording.residual[layer].columns != config.modelDimension)
  {
    ThrowMissing(layer < config.layers ? "the residual stream before layer " + std::to_string(layer)
                                       : "the residual stream after the last layer",
      "Residual");
  }
  return RecordedRows(recording.residual[layer], begin, end);
}

/// The direction of a feature in the residual stream.
Vector StreamDirection(
  const Transformer& model, const SparseDictionary& dictionary, std::int64_t feature)
{
  Vector direction = dictionary.DirectionOf(feature);
  if (dictionary.site != DictionarySite::HeadValues)
  {
    return direction;
  }
  const ProcessedWeights weights(model, WeightSteps::Stored, 1);
  Vector sum = Vector::Zero(model.GetConfig().modelDimension);
  std::int64_t first = 0;
  for (const ProcessedHead& head : weights.Attention(dictionary.layer).heads)
  {
    sum += direction.segment(first, head.output.rows()) * head.output;
    first += head.output.rows();
  }
  return sum;
}

/// |d A B^T| / (|d| |A B^T|)
double ReadingScore(const Vector& direction, const DoubleMatrix& a, const DoubleMatrix& b)
{
  const DoubleMatrix gramA = a.transpose() * a;
  const DoubleMatrix gramB = b.transpose() * b;
  const double norm = direction.norm() * std::sqrt(std::max(gramA.cwiseProduct(gramB).sum(), 0.));
  return norm > 0 ? (direction * a * b.transpose()).norm() / norm : 0;
}

/// By how much the queries, keys and values of a layer's heads read a direction.
void AddReading(const ProcessedWeights& weights, std::int64_t layer, const Vector& direction,
  std::vector<FeaturePart>& parts)
{
  const ProcessedAttention attention = weights.Attention(layer);
  RequireFinite(attention, layer);
  const std::int64_t heads = attention.heads.size();
  for (std::int64_t h = 0; h < heads; ++h)
  {
    const ProcessedHead& head = attention.heads[h];
    const DoubleMatrix written = head.output.transpose();
    parts[layer * heads + h].reading = { ReadingScore(direction, head.query, head.key),
      ReadingScore(direction, head.key, head.query), ReadingScore(direction, head.value, written) };
  }
}

/// What parts of the vectors of a dictionary contribute to a feature.
class Contributions
{
public:
  Contributions(const Recording& recording, const Transformer& model,
    const SparseDictionary& dictionary, std::int64_t feature, const std::vector<std::int64_t>& rows,
    const DoubleMatrix& vectors)
    : Source(recording)
    , Model(model)
    , Dictionary(dictionary)
    , Rows(rows)
    , Vectors(vectors)
    , Encoder(dictionary.EncoderOf(feature))
  {
    for (std::int64_t i = 0; i < vectors.rows(); ++i)
    {
      this->Scales.push_back(NormOf(dictionary, vectors.row(i)).scale);
    }
    this->Bias = dictionary.BiasOf(feature) -
                 (dictionary.subtractsBias ? dictionary.decoderBias.dot(this->Encoder) : 0);
    if (dictionary.norm == DictionaryNorm::LayerNorm || Centers(model.GetConfig(), dictionary))
    {
      this->Encoder.array() -= this->Encoder.mean();
    }
  }

  /// Fills in those of the heads of a layer and returns their sum.
  double AddHeads(std::int64_t layer, std::vector<FeaturePart>& parts) const
  {
    const std::int64_t heads = this->Model.GetConfig().heads;
    const std::vector<double> found = this->Dictionary.site == DictionarySite::HeadValues
                                        ? this->OfValues()
                                        : this->OfOutputs(layer);
    for (std::int64_t h = 0; h < heads; ++h)
    {
      parts[layer * heads + h].contribution = found[h];
    }
    return std::accumulate(found.begin(), found.end(), 0.);
  }

  double OfAll() const
  {
    return this->Mean([this](std::int64_t i) { return this->Vectors.row(i).dot(this->Encoder); });
  }
  double OfBias() const { return this->Bias; }

private:
  const Recording& Source;
  const Transformer& Model;
  const SparseDictionary& Dictionary;
  const std::vector<std::int64_t>& Rows;
  const DoubleMatrix& Vectors;
  Vector Encoder; ///< centered where means are subtracted
  std::vector<double> Scales;
  double Bias = 0;

  template<class ProductAt>
  double Mean(const ProductAt& productAt) const
  {
    double sum = 0;
    for (std::size_t i = 0; i < this->Scales.size(); ++i)
    {
      sum += this->Scales[i] * productAt(static_cast<std::int64_t>(i));
    }
    return sum / static_cast<double>(this->Scales.size());
  }

  std::vector<double> OfValues() const
  {
    const std::int64_t heads = this->Model.GetConfig().heads;
    const std::int64_t size = this->Dictionary.Inputs() / heads;
    std::vector<double> found;
    for (std::int64_t first = 0; first < this->Dictionary.Inputs(); first += size)
    {
      found.push_back(this->Mean(
        [&](std::int64_t i)
        {
          return this->Vectors.row(i).segment(first, size).dot(this->Encoder.segment(first, size));
        }));
    }
    return found;
  }

  std::vector<double> OfOutputs(std::int64_t layer) const
  {
    const std::vector<Vector> biases = FoldedValues(this->Model, this->Dictionary, layer);
    const ProcessedAttention attention =
      biases.empty() ? ProcessedAttention()
                     : ProcessedWeights(this->Model, WeightSteps::Stored, 1).Attention(layer);
    std::vector<double> found;
    for (const RecordedHead& head : WritingHeads(this->Source, this->Model.GetConfig(), layer))
    {
      const std::size_t h = found.size();
      const double folded =
        biases.empty() ? 0 : (biases[h] * attention.heads[h].output).dot(this->Encoder);
      found.push_back(this->Mean([&](std::int64_t i)
        { return RowOf(head.output, this->Rows[i]).dot(this->Encoder) - folded; }));
    }
    return found;
  }
};

/// The layers whose heads write what a dictionary reads: the first, and the one after the last.
std::pair<std::int64_t, std::int64_t> WritingLayers(
  const TransformerConfig& config, const SparseDictionary& dictionary)
{
  const std::int64_t end = dictionary.layer + (dictionary.ReadsItsLayer() ? 1 : 0);
  if (!IsOfStream(dictionary.site))
  {
    return { dictionary.layer, end };
  }
  return { 0, AddsHeads(config) ? end : 0 };
}

}

void CheckDictionary(const Transformer& model, const SparseDictionary& dictionary)
{
  using Switch = ArchitectureSwitch;
  const TransformerConfig& config = model.GetConfig();
  const std::string what = "Dictionary of " + dictionary.hook;
  const bool isOfAttention = dictionary.site != DictionarySite::StreamBefore &&
                             dictionary.site != DictionarySite::StreamAfter;
  ThrowIf<OptionError>(dictionary.layer >= config.layers, what, ": expected a layer from 0 to ",
    config.layers - 1, " as in the model, found ", dictionary.layer, ".");
  ThrowIf<ModelError>(isOfAttention && !config.HasAttention(dictionary.layer), what,
    ": expected a layer with attention, found one without.");
  RefuseSwitches(config, what, { Switch::Encoder, Switch::LayerSides });
  if (dictionary.site == DictionarySite::HeadValues)
  {
    RefuseSwitches(config, what, { Switch::OutputGate, Switch::NormsInside });
  }
  else if (isOfAttention)
  {
    RefuseSwitches(config, what, { Switch::NormsAfterToo, Switch::LayerScales });
  }
  if (dictionary.site == DictionarySite::StreamBetween)
  {
    RefuseSwitches(config, what, { Switch::Parallel });
    ThrowIf<ModelError>(config.normPlace == NormPlace::AfterSublayer, what,
      ": expected a model whose normalizations come before attention and MLP, found ",
      config.architecture, ".");
  }
  if (dictionary.steps.foldsValues)
  {
    RefuseSwitches(config, what, { Switch::Sinks });
  }
  ThrowIf<ModelError>(dictionary.site == DictionarySite::StreamAfter &&
                        dictionary.layer + 1 == config.layers && config.lastResidualIsNormed &&
                        config.norm != NormKind::None,
    what, ": expected the residual stream after the last layer, found one in recordings of ",
    config.architecture, " that is normalized.");
  const std::int64_t size = dictionary.site == DictionarySite::HeadValues
                              ? model.GetWeights().layers[dictionary.layer].output.inputs
                              : config.modelDimension;
  ThrowIf<OptionError>(dictionary.Inputs() != size, what, ": expected ", size,
    " inputs as in the model, found ", dictionary.Inputs(), ".");
}

DoubleMatrix DictionaryInputs(const Recording& recording, const Transformer& model,
  const SparseDictionary& dictionary, std::int64_t sequence, int threads, const Progress& progress)
{
  CheckDictionary(model, dictionary);
  RequireOneSequence(recording, sequence);
  const TransformerConfig& config = model.GetConfig();
  const std::int64_t begin = recording.sequenceOffsets[sequence];
  const std::int64_t end = recording.sequenceOffsets[sequence + 1];
  DoubleMatrix inputs;
  if (begin == end)
  {
    return DoubleMatrix(0, dictionary.Inputs());
  }
  switch (dictionary.site)
  {
    case DictionarySite::HeadValues:
      inputs = MixedValues(recording, model, dictionary, sequence, threads, progress);
      break;
    case DictionarySite::AttentionOutput:
      inputs = AttentionOutputs(recording, model, dictionary.layer, begin, end);
      break;
    case DictionarySite::StreamBefore:
      inputs = StreamBefore(recording, config, dictionary.layer, begin, end);
      break;
    case DictionarySite::StreamBetween:
      inputs = StreamBefore(recording, config, dictionary.layer, begin, end) +
               AttentionOutputs(recording, model, dictionary.layer, begin, end);
      break;
    case DictionarySite::StreamAfter:
      inputs = StreamBefore(recording, config, dictionary.layer + 1, begin, end);
      break;
  }
  RequireIntactRecording(recording);
  RequireFinite(inputs, dictionary.hook);
  if (Centers(config, dictionary))
  {
    inputs.colwise() -= inputs.rowwise().mean().eval();
  }
  return inputs;
}

std::vector<FeaturePart> SplitFeature(const Recording& recording, const Transformer& model,
  const SparseDictionary& dictionary, std::int64_t feature, const std::vector<std::int64_t>& rows,
  const DoubleMatrix& vectors, int threads, const Progress& progress)
{
  CheckDictionary(model, dictionary);
  RequireIndex("Feature", feature, dictionary.Features());
  const TransformerConfig& config = model.GetConfig();
  std::vector<FeaturePart> parts;
  for (std::int32_t l = 0; l < config.layers; ++l)
  {
    for (std::int32_t h = 0; h < config.heads; ++h)
    {
      parts.push_back({ NameOf(ResidualComponent{ ComponentKind::Head, l, h }), l, h });
    }
  }
  if (dictionary.site == DictionarySite::HeadValues)
  {
    const Vector row = dictionary.decoder.row(feature).cast<double>();
    const std::int64_t size = dictionary.Inputs() / config.heads;
    for (std::int64_t h = 0; h < config.heads && row.norm() > 0; ++h)
    {
      parts[dictionary.layer * config.heads + h].share =
        row.segment(h * size, size).squaredNorm() / row.squaredNorm();
    }
  }
  const ProcessedWeights weights(
    model, IsProcessable(config) ? WeightSteps::TransformerLens : WeightSteps::Stored, threads);
  Vector direction = StreamDirection(model, dictionary, feature);
  if (IsProcessable(config) && CanCenter(config))
  {
    direction.array() -= direction.mean(); // what processed weights write
  }
  const std::int64_t firstReader = dictionary.layer + (dictionary.ReadsItsLayer() ? 1 : 0);
  ParallelFor(config.layers - firstReader, threads, progress,
    [&](std::int64_t i)
    {
      if (config.HasAttention(firstReader + i))
      {
        AddReading(weights, firstReader + i, direction, parts);
      }
    });
  FeaturePart rest{ "rest" };
  FeaturePart bias{ "bias" };
  if (!rows.empty())
  {
    const Contributions contributions(recording, model, dictionary, feature, rows, vectors);
    rest.contribution = contributions.OfAll();
    bias.contribution = contributions.OfBias();
    const auto [first, last] = WritingLayers(config, dictionary);
    for (std::int64_t l = first; l < last; ++l)
    {
      if (config.HasAttention(l))
      {
        rest.contribution -= contributions.AddHeads(l, parts);
      }
    }
  }
  if (dictionary.site != DictionarySite::HeadValues)
  {
    parts.push_back(rest);
  }
  parts.push_back(bias);
  RequireIntactRecording(recording);
  return parts;
}

FeatureLogits FindFeatureLogits(const Transformer& model, const SparseDictionary& dictionary,
  std::int64_t feature, const LargestProductOptions& options)
{
  CheckDictionary(model, dictionary);
  RequireIndex("Feature", feature, dictionary.Features());
  RequireTop(options.top);
  const TransformerConfig& config = model.GetConfig();
  FeatureLogits logits;
  if (!model.HasLogits() || config.input != InputKind::Tokens ||
      model.GetWeights().logitsTransform.Exists() || model.GetWeights().embeddingOut.Exists())
  {
    return logits;
  }
  const ProcessedWeights weights(model,
    IsProcessable(config) ? WeightSteps::TransformerLens : WeightSteps::Stored, options.threads);
  DoubleMatrix directions(2, config.modelDimension);
  directions.row(0) = StreamDirection(model, dictionary, feature);
  directions.row(1) = -directions.row(0);
  const std::vector<TokenLogit> found = LargestProducts(directions,
    { weights.OutputVocabulary(), [&weights](std::int64_t begin, std::int64_t end)
      { return CircuitUnembedding(weights, begin, end); } },
    options);
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2);
  logits.highest.assign(found.begin(), middle);
  for (auto token = middle; token != found.end(); ++token)
  {
    logits.lowest.push_back({ token->id, -token->logit });
  }
  return logits;
}

}
