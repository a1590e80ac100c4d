#include "TransformerRun.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Numerics/MatrixProduct.h"
#include "PictureProjector.h"
#include "Preprocessing/PictureTokens.h"
#include "Run/PromptMeans.h"
#include "SoundEmbedding.h"
#include "TransformerEmbedding.h"
#include "TransformerKernels.h"
#include "TransformerNorm.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace atlas
{

RecordSelection::RecordSelection(
  const TransformerConfig& config, const RecordOptions& options, std::int64_t least)
  : Layers(config.layers, options.layers.empty())
  , Residual(options.residual)
  , Least(options.logits || options.finalScale ? config.layers : least)
{
  for (const std::int64_t layer : options.layers)
  {
    if (layer < config.layers)
    {
      this->Layers[layer] = true;
    }
  }
}

std::int64_t RecordSelection::LayersToRun() const
{
  std::int64_t count = this->Layers.size();
  while (count > this->Least && !this->HasLayer(count - 1))
  {
    --count;
  }
  return count;
}

/// The run of the encoder, and the cross attention of the decoder or the places of pictures.
struct TransformerRun::EncoderPart
{
  TransformerInput texts; ///< that it reads; sound and pictures are in the input of the whole
  RecordOptions options;
  std::unique_ptr<TransformerRun> run;
  std::optional<CrossPart> cross;
  std::vector<ImageToken> tokens; ///< of the text
  EncodedSource features;         ///< of those of the sequences to run

  /// For some of the texts. Without a run if there are no pictures.
  EncoderPart(const Transformer& model, const TransformerInput& input, const RecordOptions& chosen,
    const SequenceRange& range);
};

namespace
{

/// The texts of a model that has an encoder, or those of one that has none.
PackedSequences SequencesOf(const TransformerConfig& config, const TransformerInput& input,
  const std::optional<SequenceRange>& range)
{
  const std::vector<std::int64_t> lengths = SequenceLengths(config, input);
  return config.encoder == nullptr ? PackedSequences(lengths, range)
                                   : PackedSequences(lengths, range, SourceLengths(config, input));
}

/// What is recorded of the encoder: of the layers that it has the same as of the decoder's.
RecordOptions OptionsOfEncoder(const RecordOptions& options)
{
  RecordOptions encoder = options;
  encoder.logits = false;
  encoder.routing = false;
  encoder.finalScale = false;
  encoder.interventions = {};
  return encoder;
}

}

TransformerRun::TransformerRun(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
  : TransformerRun(model, model.GetConfig(), model.GetWeights(), input, options,
      SequencesOf(model.GetConfig(), input, options.sequences), {})
{
  if (this->Config.encoder != nullptr || this->Config.vision != nullptr)
  {
    this->Encoder =
      std::make_unique<EncoderPart>(model, input, OptionsOfEncoder(options), this->Sequences.run);
  }
  if (this->Config.encoder != nullptr)
  {
    this->Encoder->cross.emplace(
      this->Config, options, this->Sequences, SourceLengths(this->Config, input));
  }
  else if (this->Encoder != nullptr && this->Encoder->run == nullptr)
  {
    this->Encoder.reset();
  }
  if (this->Encoder != nullptr)
  {
    const TransformerRun& run = *this->Encoder->run;
    const auto work = static_cast<double>(run.Sequences.Rows() * run.Config.layers);
    const auto rest = static_cast<double>(this->Sequences.Rows() * this->Config.layers);
    this->EncoderShare = work > 0 ? work / (work + rest) : 0;
  }
}

TransformerRun::TransformerRun(const Transformer& model, const TransformerConfig& config,
  const TransformerWeights& weights, const TransformerInput& input, const RecordOptions& options,
  PackedSequences sequences, const std::vector<std::int64_t>& readLayers)
  : Model(model)
  , Config(config)
  , Weights(weights)
  , Input(input)
  , Options(options)
  , Selected(this->Config, options,
      readLayers.empty() ? 0 : *std::max_element(readLayers.begin(), readLayers.end()))
  , Sequences(std::move(sequences))
  , SourceNeeds(SourcePlaces(this->Config, options.interventions))
  , Read(readLayers.size())
  , ReadLayers(readLayers)
  , Sides(config, weights)
  , Name(readLayers.empty() ? "" : "encoder, ")
{
  if (config.ReadsAnySize())
  {
    const VisionConfig* vision = model.GetConfig().vision.get();
    this->Places = PatchPlaces(vision == nullptr ? 1 : vision->merge, input);
  }
  else if (config.vision != nullptr && !config.vision->rotarySections.empty())
  {
    this->Places = TextPlaces(config, input);
  }
  else if (config.position == PositionKind::RotaryOfPatches)
  {
    this->Places = GridPlaces(config, input.images);
  }
  if (!this->Places.empty())
  {
    this->Sequences.SetPlaces(this->Places);
  }
  if (config.vision != nullptr && (config.vision->seesWholePrompts ||
                                    (config.vision->seesWholePictures && !input.tiles.empty())))
  {
    this->Record.tokens.keyEnd = KeyEnds(config, input);
    this->Sequences.SetKeyEnds(this->Record.tokens.keyEnd);
  }
}

TransformerRun::EncoderPart::EncoderPart(const Transformer& model, const TransformerInput& input,
  const RecordOptions& chosen, const SequenceRange& range)
  : options(chosen)
{
  const TransformerConfig& config = model.GetConfig();
  this->options.sequences = range;
  if (config.encoder != nullptr)
  {
    const TransformerConfig& encoder = *config.encoder;
    this->texts.tokens = input.source;
    this->run.reset(new TransformerRun(model, encoder, *model.GetWeights().encoder,
      encoder.input == InputKind::Sound ? input : this->texts, this->options,
      PackedSequences(SourceLengths(config, input), range), { encoder.layers }));
    return;
  }
  this->tokens = ImageTokens(config, input);
  if (this->tokens.empty())
  {
    return;
  }
  const VisionConfig& vision = *config.vision;
  this->options.sequences = EncoderRange(config, input, this->tokens, range);
  std::vector<std::int64_t> layers = vision.deepLayers;
  layers.insert(layers.begin(), vision.moreLayersRead.begin(), vision.moreLayersRead.end());
  layers.insert(layers.begin(), vision.layersRead);
  this->run.reset(new TransformerRun(model, *vision.encoder, model.GetWeights().vision->encoder,
    input, this->options,
    PackedSequences(SequenceLengths(*vision.encoder, input), this->options.sequences), layers));
}

CrossPart* TransformerRun::Cross() const
{
  if (this->Encoder == nullptr)
  {
    return nullptr;
  }
  std::optional<CrossPart>& cross = this->Encoder->cross;
  return cross.has_value() ? &*cross : nullptr;
}

TransformerRun::~TransformerRun() = default;

MemoryEstimate TransformerRun::EstimateMemory() const
{
  const TransformerConfig& config = this->Config;
  const RecordOptions& options = this->Options;
  const std::int64_t d = config.modelDimension;
  const std::int64_t queries = config.heads * config.headDimension;
  const std::int64_t keys = config.keyHeads * config.headDimension;
  const std::int64_t values = config.keyHeads * config.ValueDimension();

  // Floats per row of the recording.
  std::int64_t recorded = options.logits ? this->Weights.unembedding.outputs : 0;
  for (std::int64_t l = 0; l <= config.layers; ++l)
  {
    recorded += this->Selected.HasResidual(l) ? d : 0;
    if (this->Records(l))
    {
      recorded +=
        (options.queriesAndKeys ? queries + keys + (options.valueNorms ? config.heads : 0) : 0) +
        (options.values ? values : 0) + (options.headOutputs ? config.heads * d : 0) +
        (options.routing && config.HasExperts(l)
            ? (config.expertBias ? 3 : 2) * config.expertsPerToken
            : 0);
    }
  }
  const std::int64_t residual = 2 * d;           // floats per row to run; twice for the logits
  const std::int64_t spare = queries + 2 * keys; // floats per row of the largest group
  std::int64_t groupRows = this->Sequences.LargestGroup();
  if (const CrossPart* cross = this->Cross())
  {
    groupRows = std::max(groupRows, cross->GetSources().LargestGroup());
  }
  const std::uint64_t widened = WidenedBytes(this->Weights, options.threads);
  // Of each thread: a head's part of the matrix that heads write by, and its products.
  const std::int64_t outputs = options.headOutputs
                                 ? ThreadCount(options.threads) *
                                     (config.ValueDimension() + std::min(groupRows, RowsAtOnce)) * d
                                 : 0;
  MemoryEstimate estimate;
  estimate.recording = ToIndex(this->Sequences.offsets.back()) * ToIndex(recorded) * sizeof(float);
  estimate.working = ToIndex(this->Sequences.Rows() * residual + groupRows * spare + outputs +
                             TransformerLayer::WorkingFloats(config, groupRows, options.threads)) *
                       sizeof(float) +
                     widened;
  estimate.working += ToIndex(RunSides::Floats(config, this->Sequences.Rows()) +
                              (config.sharedKeyLayers > 0 ? 4 * this->Sequences.offsets.back() *
                                                              config.keyHeads * config.headDimension
                                                          : 0)) *
                      sizeof(float);
  if (config.input == InputKind::Sound && !config.HasPatches())
  {
    estimate.working +=
      ToIndex(SoundFloats(config, this->Input, this->Sequences.run)) * sizeof(float);
  }
  for (const std::int64_t layer : this->ReadLayers)
  {
    estimate.working += layer < this->Selected.LayersToRun()
                          ? ToIndex(this->Sequences.Rows() * d) * sizeof(float)
                          : 0;
  }
  if (const CrossPart* cross = this->Cross())
  {
    std::uint64_t layers = 0;
    for (std::int64_t l = 0; l < config.layers; ++l)
    {
      layers += this->Selected.HasLayer(l) ? 1 : 0;
    }
    estimate.recording += layers * cross->RecordedFloats() * sizeof(float);
    estimate.working += ToIndex(cross->WorkingFloats()) * sizeof(float);
  }
  if (this->Encoder != nullptr)
  {
    const TransformerRun& run = *this->Encoder->run;
    const MemoryEstimate encoder = run.EstimateMemory();
    const std::int64_t projected =
      config.vision == nullptr ? 0 : ProjectFloats(config, run.Sequences);
    std::uint64_t projector = 0;
    if (config.vision != nullptr)
    {
      for (const LinearTensors* linear : MatricesOfProjectors(*this->Weights.vision))
      {
        projector = std::max(projector, WidenedBytes(*linear, options.threads));
      }
    }
    estimate.recording += encoder.recording;
    estimate.working =
      std::max(estimate.working, encoder.working + ToIndex(projected) * sizeof(float) + projector);
  }
  if (!this->SourceNeeds.empty())
  {
    const std::int64_t length = options.interventions.source.tokens.front().size();
    estimate.working +=
      ToIndex(CaptureFloats(config, length, this->SourceNeeds, options.threads)) * sizeof(float);
  }
  return estimate;
}

Recording TransformerRun::Run()
{
  const SingleThreadedBlas blas;
  // On all ranks as far as the longest text of any.
  const bool isDisentangled = this->Config.position == PositionKind::Disentangled;
  const std::int64_t longest =
    isDisentangled ? this->Sequences.LongestOfAll() : this->Sequences.Longest();
  const PositionEncoding positions(
    this->Config, this->Weights, std::max(longest, EndOfPlaces(this->Places)));
  this->Record.alibiSlopes = positions.GetSlopes();
  this->Record.alibiUnit = this->Config.SlopeUnit();
  this->Record.distanceBias = positions.GetDistanceBias();
  this->Describe();
  this->RunEncoder();
  this->RunSource();
  const Progress progress =
    this->Options.progress.Part(std::max(this->SourceShare, this->EncoderShare), 1);
  progress(0); // of a million tokens, the embedding takes a second
  this->Embed();
  const std::int64_t layers = this->Selected.LayersToRun();
  for (std::int64_t l = 0; l < layers; ++l)
  {
    for (std::size_t i = 0; i < this->Read.size(); ++i)
    {
      if (l == this->ReadLayers[i])
      {
        this->Read[i] = SharedMatrix::Zero(this->Residual.rows, this->Residual.columns);
        std::copy_n(
          this->Residual.values.get(), this->Residual.Count(), this->Read[i].values.get());
      }
    }
    this->RunLayer(l, positions, progress.Part(l, l + 1, layers));
  }
  this->Finish();
  for (SharedMatrix& read : this->Read)
  {
    read = read.IsRecorded() ? read : this->Residual;
  }
  progress(1);
  return std::move(this->Record);
}

/// Runs the encoder, if there is one.
void TransformerRun::RunEncoder()
{
  if (this->Encoder == nullptr)
  {
    return;
  }
  std::unique_ptr<TransformerRun> run = std::move(this->Encoder->run);
  this->Encoder->options.progress = this->Options.progress.Part(0, this->EncoderShare);
  const auto recording = std::make_shared<Recording>(run->Run());
  if (CrossPart* cross = this->Cross())
  {
    cross->Begin(*recording, this->Record, run->Read.front());
    this->Record.cross = cross->GetRecording();
  }
  else
  {
    this->Encoder->features =
      ProjectPictures(this->Model, this->Input, run->Sequences, run->Read, this->Options.threads);
    DescribePictures(this->Config, this->Input, this->Encoder->tokens, this->Record);
  }
  this->Record.encoder = recording;
}

EncodedSource TransformerRun::Encode(const Transformer& model, const TransformerInput& input,
  const SequenceRange& sequences, int threads)
{
  RecordOptions options;
  options.queriesAndKeys = false;
  options.values = false;
  options.layers = { std::numeric_limits<std::int64_t>::max() }; // none
  options.threads = threads;
  const EncoderPart part(model, input, options, sequences);
  if (part.run == nullptr)
  {
    return {};
  }
  part.run->Run();
  return model.GetConfig().encoder != nullptr
           ? EncodedSource{ part.run->Read.front(), {} }
           : ProjectPictures(model, input, part.run->Sequences, part.run->Read, threads);
}

/// Runs the other input of the interventions, if they have one.
void TransformerRun::RunSource()
{
  if (this->SourceNeeds.empty() || this->Sequences.groups.empty())
  {
    return;
  }
  const TransformerInput& input = this->Options.interventions.source;
  const auto length = static_cast<double>(input.tokens.front().size());
  this->SourceShare = length / (length + static_cast<double>(this->Sequences.Rows()));
  this->Source = CaptureActivations(this->Model, input, this->SourceNeeds, this->Options.threads,
    this->Options.progress.Part(0, this->SourceShare));
}

/// Applies the interventions at a matrix of layer l to the rows of a group.
void TransformerRun::Change(
  ActivationPlace place, std::int64_t l, const RowGroup& group, float* values) const
{
  const Interventions& interventions = this->Options.interventions;
  const std::int64_t meanColumns = MeanColumns(this->Config, interventions);
  std::int64_t column = 0; // of the means
  for (const Intervention& one : interventions.list)
  {
    const ActivationSlice slice = SliceOf(this->Config, one.site);
    const bool isMean = one.by == Replacement::MeanOverPrompts;
    for (std::size_t s = 0;
      one.site.layer == l && slice.place == place && s + 1 < group.offsets.size(); ++s)
    {
      const std::int64_t sequence = this->Sequences.SequenceAt(group.begin + group.offsets[s]);
      const float* given = nullptr;
      if (one.by == Replacement::Source)
      {
        given = this->Source.at({ l, place }).data();
      }
      else if (isMean)
      {
        given = interventions.means.data() + sequence * meanColumns + column;
      }
      Replace(this->Config, one, given, group.offsets[s + 1] - group.offsets[s],
        values + group.offsets[s] * slice.width);
    }
    column += isMean ? slice.count : 0;
  }
}

/// Changes the residual stream before layer l.
void TransformerRun::ChangeResidual(std::int64_t l)
{
  for (const RowGroup& group : this->Sequences.groups)
  {
    this->Change(ActivationPlace::Residual, l, group, this->ResidualRow(group.begin));
  }
}

/// What changes layer l while it runs; empty if nothing does.
ActivationVisitor TransformerRun::VisitorOf(std::int64_t l) const
{
  const std::vector<Intervention>& list = this->Options.interventions.list;
  if (std::none_of(
        list.begin(), list.end(), [l](const Intervention& one) { return one.site.layer == l; }))
  {
    return {};
  }
  return [this, l](ActivationPlace place, const RowGroup& group, float* values)
  { this->Change(place, l, group, values); };
}

/// Fills in everything in the recording except its matrices.
void TransformerRun::Describe()
{
  this->Record.architecture = this->Config.architecture;
  this->Record.model = this->Model.GetName();
  this->Record.mask = this->Config.mask;
  this->Record.rotated = this->Config.position == PositionKind::Rotary ||
                         this->Config.position == PositionKind::RotaryOfPatches;
  this->Record.processing = this->Weights.processing;
  this->Record.products = this->Model.GetProducts();
  this->Record.interventions = ToText(this->Options.interventions);
  this->Record.layerCount = static_cast<std::int32_t>(this->Config.layers);
  for (std::int32_t l = 0; l < this->Record.layerCount; ++l)
  {
    if (this->Selected.HasLayer(l) && !this->Config.HasAttention(l))
    {
      this->Record.layersWithoutHeads.push_back(l);
    }
  }
  this->Record.sequenceOffsets = this->Sequences.offsets;
  for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
  {
    this->DescribeSequence(s);
  }
  if (this->Options.residual)
  {
    this->Record.residual.resize(ToIndex(this->Config.layers) + 1);
  }
}

void TransformerRun::DescribeSequence(std::int64_t sequence)
{
  RecordedTokens& tokens = this->Record.tokens;
  const std::size_t s = sequence;
  for (std::int64_t t = 0; t < this->Sequences.Length(sequence); ++t)
  {
    tokens.sequence.push_back(static_cast<std::int32_t>(s));
    tokens.position.push_back(static_cast<std::int32_t>(t));
    if (this->Config.ReadsAnySize())
    {
      const RotaryPlace& place = this->Places[this->Sequences.offsets[s] + t];
      tokens.row.push_back(static_cast<std::int32_t>(place[1]));
      tokens.column.push_back(static_cast<std::int32_t>(place[2]));
    }
    else if (this->Config.HasPatches())
    {
      const std::int64_t columns = this->Config.PatchColumns();
      const std::int64_t patch = t - this->Config.TokensBeforePatches();
      tokens.row.push_back(patch < 0 ? -1 : static_cast<std::int32_t>(patch / columns));
      tokens.column.push_back(patch < 0 ? -1 : static_cast<std::int32_t>(patch % columns));
    }
    else if (this->Config.input == InputKind::Tokens)
    {
      tokens.id.push_back(this->Input.tokens[s][t]);
      if (this->Config.segments > 0)
      {
        const auto& segments = this->Input.segments;
        tokens.segment.push_back(segments.empty() ? 0 : static_cast<std::int32_t>(segments[s][t]));
      }
    }
  }
}

void TransformerRun::Embed()
{
  this->Residual = SharedMatrix::Zero(this->Sequences.Rows(), this->Config.modelDimension);
  EmbedInput(this->Config, this->Weights, this->Input, this->Sequences, this->Residual.Row(0),
    this->Options.threads);
  if (this->Encoder != nullptr && this->Config.vision != nullptr)
  {
    const std::int64_t d = this->Config.modelDimension;
    this->VisitPictures(this->Encoder->features.tokens,
      [d](const float* feature, float* x) { std::copy_n(feature, d, x); });
  }
  if (this->Config.HasLayerSides())
  {
    this->Sides.Begin(this->Input, this->Sequences, this->Residual.Row(0), this->Options.threads);
  }
  this->CheckFinite("the embedding", this->Sequences.FirstRow(), this->Sequences.EndRow());
}

/// Calls visit(vector, row of the residual stream) for the vectors of the pictures of the texts
/// that are run.
template<class Visitor>
void TransformerRun::VisitPictures(const SharedMatrix& features, const Visitor& visit) const
{
  const float* feature = features.values.get();
  for (const ImageToken& token : this->Encoder->tokens)
  {
    if (token.sequence >= this->Sequences.run.first && token.sequence < this->Sequences.run.end)
    {
      visit(feature, this->ResidualRow(this->Sequences.offsets[token.sequence] + token.position));
      feature += this->Config.modelDimension;
    }
  }
}

void TransformerRun::RunLayer(
  std::int64_t l, const PositionEncoding& positions, const Progress& progress)
{
  const ActivationVisitor visitor = this->VisitorOf(l);
  this->ChangeResidual(l);
  this->RecordResidual(l);
  this->AllocateHeads(l);
  this->AllocateRouting(l);
  CrossPart* cross = this->Cross();
  if (cross != nullptr)
  {
    cross->BeginLayer(l, this->Selected.HasLayer(l));
  }
  const bool isDisentangled = this->Config.position == PositionKind::Disentangled;
  if (this->Sequences.groups.empty() && !isDisentangled) // its vectors are recorded anyway
  {
    return;
  }
  const TransformerLayer layer(this->Config, this->Weights.layers[l], l, positions);
  this->RecordBiases(l, layer, positions);
  for (std::size_t g = 0; g < this->Sequences.groups.size(); ++g)
  {
    const RowGroup& group = this->Sequences.groups[g];
    const CrossSource source = cross == nullptr ? CrossSource() : cross->SourceOf(g);
    const std::int64_t first = this->Sequences.FirstRow();
    const Progress ofGroup =
      progress.Part(group.begin - first, group.end - first, this->Sequences.Rows());
    ofGroup(0);
    layer.Apply(group, this->RowsOf(l, group), this->ResidualRow(group.begin), this->Work,
      this->Options.threads, ofGroup, visitor, this->RoutingOf(l, group), &source,
      { &this->Sides, group.begin - first });
    if (cross != nullptr)
    {
      cross->Keep(g);
    }
    this->CheckFinite("layer " + std::to_string(l), group.begin, group.end);
  }
  if (this->Encoder != nullptr && ToIndex(l) < this->Encoder->features.deep.size())
  {
    const std::int64_t d = this->Config.modelDimension;
    this->VisitPictures(this->Encoder->features.deep[l],
      [d](const float* feature, float* x) { AddRow(d, feature, x); });
  }
}

/// Records what a layer adds to scores by the places of query and key.
void TransformerRun::RecordBiases(
  std::int64_t l, const TransformerLayer& layer, const PositionEncoding& positions)
{
  if (!this->Records(l))
  {
    return;
  }
  RecordedLayer& recorded = this->Record.layers.back();
  recorded.positionKeys = layer.GetAttention().GetPositionKeys();
  recorded.positionQueries = layer.GetAttention().GetPositionQueries();
  if (this->Config.biasByLayer && this->Config.position == PositionKind::Relative)
  {
    recorded.distanceBias = positions.GetDistanceBias(l);
  }
  if (const SharedMatrix* patches = positions.GetPatchBias(l))
  {
    recorded.patchBias = *patches;
  }
}

void TransformerRun::RecordResidual(std::int64_t l)
{
  if (this->Selected.HasResidual(l))
  {
    SharedMatrix& residual = this->Record.residual[l];
    residual = SharedMatrix::Zero(this->Record.tokens.Count(), this->Config.modelDimension);
    std::copy_n(
      this->Residual.Row(0), this->Residual.Count(), residual.Row(this->Sequences.FirstRow()));
  }
}

/// Adds the layer to the recording if it is selected, and allocates spare matrices for the
/// quantities that are not recorded.
void TransformerRun::AllocateHeads(std::int64_t l)
{
  if (!this->Config.HasAttention(l))
  {
    return;
  }
  const bool recorded = this->Records(l);
  const std::size_t heads = this->Config.heads;
  if (recorded)
  {
    RecordedLayer layer;
    layer.index = static_cast<std::int32_t>(l);
    layer.scoreScale = this->Config.ScoreScale(l);
    layer.scoreCap = this->Config.scoreCap;
    layer.window = this->Config.Window(l);
    layer.chunk = this->Config.Chunk(l);
    layer.patchWindow = this->Config.PatchWindow(l);
    if (this->Config.sinks && !this->Config.sinksAreOutside)
    {
      const FloatValues sinks(this->Weights.layers[l].sinks);
      layer.sinks.assign(sinks.Data(), sinks.Data() + heads);
    }
    layer.heads.resize(heads);
    this->Record.layers.push_back(layer);
  }
  if (this->Config.HasLayerSizes())
  {
    this->Spare.clear();
  }
  this->Spare.resize(heads);
  for (std::size_t h = 0; h < heads; ++h)
  {
    this->AllocateHead(l, h, recorded ? &this->Record.layers.back().heads : nullptr);
  }
}

/// Whether layers from l on have the keys and values of layer l, or it has those of another.
bool TransformerRun::SharesKeys(std::int64_t l) const
{
  const TransformerConfig& config = this->Config;
  bool shares = config.KeyLayer(l) != l;
  for (std::int64_t other = config.layers - config.sharedKeyLayers; other < config.layers; ++other)
  {
    shares = shares || config.KeyLayer(other) == l;
  }
  return shares;
}

void TransformerRun::AllocateHead(
  std::int64_t l, std::size_t h, std::vector<RecordedHead>* recorded)
{
  const TransformerConfig& whole = this->Config;
  const std::int64_t keyHeads =
    whole.keyHeadCounts.empty() ? whole.keyHeads : whole.keyHeadCounts[l];
  const std::size_t groupSize = whole.heads / keyHeads;
  const auto allocate =
    [&](bool record, SharedMatrix RecordedHead::* quantity, bool shared, std::int64_t columns)
  {
    std::vector<RecordedHead>& heads = record && recorded != nullptr ? *recorded : this->Spare;
    const std::int64_t rows =
      &heads == recorded ? this->Record.tokens.Count() : this->Sequences.LargestGroup();
    SharedMatrix& matrix = heads[h].*quantity;
    if (shared && h % groupSize != 0)
    {
      matrix = heads[h - h % groupSize].*quantity;
    }
    else if (!matrix.IsRecorded())
    {
      matrix = SharedMatrix::Zero(rows, columns);
    }
  };
  const bool hasSizes = !whole.headDimensions.empty();
  const std::int64_t dimension = hasSizes ? whole.headDimensions[l] : whole.headDimension;
  allocate(this->Options.queriesAndKeys, &RecordedHead::query, false, dimension);
  if (this->SharesKeys(l))
  {
    // Of all rows, since layers run one after another.
    std::vector<RecordedHead>& kept = this->Kept[whole.KeyLayer(l)];
    kept.resize(ToIndex(whole.heads));
    for (SharedMatrix RecordedHead::* quantity : { &RecordedHead::key, &RecordedHead::value })
    {
      SharedMatrix& matrix = kept[h].*quantity;
      if (!matrix.IsRecorded())
      {
        matrix = h % groupSize == 0 ? SharedMatrix::Zero(this->Record.tokens.Count(), dimension)
                                    : kept[h - h % groupSize].*quantity;
      }
    }
    if (recorded != nullptr)
    {
      RecordedHead& head = (*recorded)[h];
      head.key = this->Options.queriesAndKeys ? kept[h].key : head.key;
      head.value = this->Options.values ? kept[h].value : head.value;
    }
  }
  else
  {
    allocate(this->Options.queriesAndKeys, &RecordedHead::key, true, dimension);
    allocate(this->Options.values, &RecordedHead::value, true,
      hasSizes ? dimension : whole.ValueDimension());
  }
  if (this->Options.headOutputs && recorded != nullptr)
  {
    allocate(true, &RecordedHead::output, false, this->Config.modelDimension);
  }
  // A gate changes what the value of a key adds, token by token, so that it has no norm of its own.
  const bool hasNorms = this->Options.valueNorms && !this->Config.gatesAttention;
  if (this->Options.queriesAndKeys && hasNorms && recorded != nullptr)
  {
    allocate(true, &RecordedHead::valueNorm, false, 1);
  }
}

void TransformerRun::AllocateRouting(std::int64_t l)
{
  if (this->Options.routing && this->Records(l) && this->Config.HasExperts(l))
  {
    const std::int64_t rows = this->Record.tokens.Count();
    RecordedRouting& routing = this->Record.layers.back().routing;
    routing.experts = static_cast<std::int32_t>(this->Config.experts);
    routing.chosen = SharedMatrix::Zero(rows, this->Config.expertsPerToken);
    routing.weights = SharedMatrix::Zero(rows, this->Config.expertsPerToken);
    if (this->Config.expertBias)
    {
      routing.scores = SharedMatrix::Zero(rows, this->Config.expertsPerToken);
      routing.bias = SharedMatrix::Zero(1, this->Config.experts);
      this->Weights.layers[l].experts.bias.ToFloat(
        0, ToIndex(this->Config.experts), routing.bias.Row(0));
    }
  }
}

/// Where layer l writes its routing of the rows of a group.
RoutingRows TransformerRun::RoutingOf(std::int64_t l, const RowGroup& group) const
{
  if (!this->Records(l) || !this->Record.layers.back().routing.chosen.IsRecorded())
  {
    return {};
  }
  const RecordedRouting& routing = this->Record.layers.back().routing;
  return { routing.chosen.Row(group.begin), routing.weights.Row(group.begin),
    routing.scores.IsRecorded() ? routing.scores.Row(group.begin) : nullptr };
}

/// Where layer l writes the results of its heads for the rows of a group.
std::vector<HeadRows> TransformerRun::RowsOf(std::int64_t l, const RowGroup& group) const
{
  if (!this->Config.HasAttention(l))
  {
    return {};
  }
  const bool recorded = this->Records(l);
  const auto kept = this->Kept.find(this->Config.KeyLayer(l));
  std::vector<HeadRows> rows;
  for (std::size_t h = 0; h < this->Spare.size(); ++h)
  {
    const auto find = [&](SharedMatrix RecordedHead::* quantity)
    {
      const bool isKept = quantity == &RecordedHead::key || quantity == &RecordedHead::value;
      if (isKept && kept != this->Kept.end())
      {
        return (kept->second[h].*quantity).Row(group.begin);
      }
      if (recorded)
      {
        const SharedMatrix& matrix = this->Record.layers.back().heads[h].*quantity;
        if (matrix.IsRecorded())
        {
          return matrix.Row(group.begin);
        }
      }
      return (this->Spare[h].*quantity).values.get();
    };
    rows.push_back({ find(&RecordedHead::query), find(&RecordedHead::key),
      find(&RecordedHead::value), find(&RecordedHead::output), find(&RecordedHead::valueNorm) });
  }
  return rows;
}

/// Records the last residual, and computes the logits.
void TransformerRun::Finish()
{
  const TransformerConfig& config = this->Config;
  const std::int64_t layers = this->Selected.LayersToRun();
  if (layers < config.layers) // the stream before a layer that is not run any more
  {
    this->ChangeResidual(layers);
  }
  if (layers < config.layers || !config.lastResidualIsNormed)
  {
    this->RecordResidual(layers);
  }
  if (layers < config.layers)
  {
    return;
  }
  float* x = this->Residual.Row(0);
  if (config.HasLayerSides())
  {
    this->Sides.Finish(x, this->Options.threads);
  }
  if (this->Options.finalScale)
  {
    this->Record.finalScale.resize(this->Record.tokens.Count(), 1);
    for (std::int64_t row = this->Sequences.FirstRow(); row < this->Sequences.EndRow(); ++row)
    {
      this->Record.finalScale[row] = SplitNorm(
        config, Eigen::Map<const Eigen::RowVectorXf>(this->ResidualRow(row), config.modelDimension)
                  .cast<double>())
                                       .sigma;
    }
  }
  if (config.finalNorm)
  {
    TransformerNorm(config, this->Weights.finalNorm)
      .Apply(this->Sequences.Rows(), config.modelDimension, x, x, this->Options.threads);
  }
  if (config.lastResidualIsNormed)
  {
    this->RecordResidual(config.layers);
  }
  if (this->Options.logits)
  {
    this->Record.logits =
      SharedMatrix::Zero(this->Record.tokens.Count(), this->Weights.unembedding.outputs);
    EvaluateLogits(config, this->Weights, this->Sequences, x,
      this->Record.logits.Row(this->Sequences.FirstRow()), this->Options.threads);
  }
}

/// Throws ModelError if x is not finite in one of these rows of the recording.
void TransformerRun::CheckFinite(
  const std::string& name, std::int64_t begin, std::int64_t end) const
{
  const std::int64_t d = this->Config.modelDimension;
  const float* x = this->ResidualRow(begin);
  const std::int64_t found = FindNotFinite((end - begin) * d, x);
  if (found >= 0)
  {
    const std::size_t row = begin + found / d;
    const std::string text =
      std::isnan(x[found]) ? "nan" : std::to_string(x[found]); // regardless of its sign
    throw ModelError(this->Name, name, ": an activation is ", text, " (sequence ",
      this->Record.tokens.sequence[row], ", position ", this->Record.tokens.position[row],
      "); expected finite numbers.");
  }
}

}
