#include "TransformerWeights.h"

#include "ArchitectureLimits.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/TextEnds.h"
#include "Files/PackedNumbers.h"
#include "FloatValues.h"
#include "Internal/LayerBinder.h"
#include "ResizedPositions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

namespace atlas
{
namespace
{

class Binder : public LayerBinder
{
public:
  using LayerBinder::LayerBinder;

  TokenTensors TokenNames() const
  {
    const auto full = [](const std::string& prefix, const std::string& name)
    { return name.empty() ? name : prefix + name; };
    const bool hasHead =
      this->Name.transform.weight.empty() || this->Has(this->Name.transform.weight);
    TokenTensors names;
    names.embedding = full(this->Prefix, this->Name.tokens);
    names.unembedding = full(this->Prefixes.second, this->Name.unembedding.weight);
    names.areTied = hasHead && !names.embedding.empty() && !this->Head.empty();
    return names;
  }

  /// Binds all tensors. Those of `encoder` are another binder's.
  TransformerWeights Bind(const Binder* encoder)
  {
    if (this->Lens)
    {
      using Switch = ArchitectureSwitch;
      RefuseSwitches(this->Config, "tensors with the names of TransformerLens",
        { Switch::GainOffset, Switch::EmbeddingScale, Switch::NormsAfterToo, Switch::QueryKeyNorms,
          Switch::Sinks, Switch::Experts, Switch::LayerScales, Switch::EmbeddingProjection,
          Switch::NormsInside, Switch::FirstUnnormed, Switch::XieluActivation, Switch::ValueNorms,
          Switch::LayerSides, Switch::Mixers, Switch::OutputGate });
    }
    this->Weights.normsAreFolded =
      this->Config.normsAreFolded ||
      (this->Lens && this->Config.norm != NormKind::None &&
        !this->Has(this->LayerPrefix(0) + this->Name.attentionNorm.weight));
    this->Weights.processing = this->Weights.normsAreFolded ? WeightProcessing::Processed
                               : this->Lens                 ? WeightProcessing::Unknown
                                                            : WeightProcessing::Unprocessed;
    this->BindEmbedding();
    this->BindLayers();
    this->BindUnembedding();
    this->CheckContacts();
    this->CheckUnused(encoder);
    return std::move(this->Weights);
  }

  /// Binds all tensors of an encoder; which of the others are unused is known only later.
  TransformerWeights BindEncoder()
  {
    this->BindEmbedding();
    this->BindLayers();
    return std::move(this->Weights);
  }

  /// Likewise of an encoder of images, with the projector of the whole model.
  VisionWeights BindVision(const TransformerConfig& whole)
  {
    const VisionConfig& vision = *whole.vision;
    VisionWeights weights;
    weights.encoder = this->BindEncoder();
    const bool isLlava = whole.architecture == "llava" || !vision.gridSizes.empty();
    if (isLlava) // it does not read what the last normalization gives
    {
      this->Used.insert(
        { this->Prefix + this->Name.finalNorm.weight, this->Prefix + this->Name.finalNorm.bias });
    }
    const ProjectorNames names = ProjectorNamesFor(whole);
    std::string prefix = this->Prefix;
    for (const char* outer : { "", "model." }) // projectors that are not behind the encoder's
    {
      prefix = this->Has(outer + names.in.weight) ? outer : prefix;
    }
    weights.projector = this->BindProjector(whole, prefix, names, vision.projectorNorm);
    for (const std::int64_t number : vision.deepProjectors)
    {
      weights.deep.push_back(this->BindProjector(
        whole, prefix, DeepProjectorNames(number), VisionConfig::ProjectorNorm::OfMerged));
    }
    if (!vision.gridSizes.empty())
    {
      weights.newline = this->Get(prefix + "image_newline", { whole.modelDimension });
    }
    return weights;
  }

private:
  ProjectorTensors BindProjector(const TransformerConfig& whole, const std::string& prefix,
    const ProjectorNames& names, VisionConfig::ProjectorNorm norm)
  {
    const VisionConfig& vision = *whole.vision;
    const std::int64_t own =
      this->Config.modelDimension * (static_cast<std::int64_t>(vision.moreLayersRead.size()) + 1);
    const std::int64_t joined = vision.averages ? own : vision.merge * vision.merge * own;
    ProjectorTensors projector;
    if (norm == VisionConfig::ProjectorNorm::OfPatches)
    {
      projector.norm = this->GetUnfoldedNorm(prefix, names.norm);
    }
    else if (norm == VisionConfig::ProjectorNorm::OfMerged)
    {
      projector.norm.gain = this->Get(prefix + names.norm.weight, { joined });
      projector.norm.shift =
        names.norm.bias.empty() ? TensorView() : this->Get(prefix + names.norm.bias, { joined });
    }
    const std::int64_t d = whole.modelDimension;
    if (vision.averages)
    {
      projector.in = { this->Get(prefix + names.in.weight, { joined, d }), {},
        WeightLayout::InputOutput, joined, d };
      return projector;
    }
    if (vision.joinsByMatrix)
    {
      projector.join = this->GetLinear(prefix, names.join, joined, own, false);
    }
    // LLaVA may have no biases.
    const bool hasBias = this->Has(prefix + names.in.bias) || this->Has(prefix + names.out.bias);
    const std::int64_t inputs = vision.joinsByMatrix ? own : joined;
    const std::int64_t hidden = vision.rotarySections.empty() ? d : inputs; // Qwen's
    projector.in = this->GetLinear(prefix, names.in, inputs, hidden, hasBias);
    if (vision.projectorHasTwo)
    {
      projector.out = this->GetLinear(prefix, names.out, hidden, d, hasBias);
    }
    return projector;
  }

  void BindLayers()
  {
    this->BindModelSides();
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      this->Weights.layers.push_back(this->BindLayer(l));
    }
    if (this->Config.finalNorm)
    {
      this->Weights.finalNorm = this->GetNorm(this->Prefix, this->Name.finalNorm);
    }
  }

  void BindEmbedding()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    if (config.HasPatches())
    {
      this->BindPatchEmbedding();
    }
    else if (config.sound != nullptr)
    {
      this->BindWaveform();
    }
    else if (config.input == InputKind::Sound)
    {
      this->Weights.firstConvolution =
        this->GetConvolution(this->Name.firstConvolution, config.melBands, 3);
      this->Weights.secondConvolution = this->GetConvolution(this->Name.secondConvolution, d, 3);
    }
    else
    {
      this->Weights.tokenEmbedding =
        this->Get(this->TokensName(), { config.vocabulary, config.EmbeddingDimension() });
      if (config.embeddingDimension > 0)
      {
        const bool hasBias = config.embeddingProjection == EmbeddingProjection::OfNormed;
        this->Weights.embeddingIn = this->GetLinear(
          this->Prefix, this->Name.projectIn, config.embeddingDimension, d, hasBias);
      }
      if (config.embeddingDimension > 0 && !this->Name.projectOut.weight.empty())
      {
        this->Weights.embeddingOut =
          this->GetLinear(this->Prefix, this->Name.projectOut, d, config.embeddingDimension, false);
      }
    }
    const std::string positions = this->Prefix + this->Name.positions;
    if (config.position == PositionKind::Sinusoidal && this->Has(positions))
    {
      this->Weights.positionEmbedding = this->Get(positions, { config.positions, d });
    }
    else if (config.ReadsAnySize() && config.HasPositionVectors())
    {
      const TensorView* found = this->Find(positions);
      const std::int64_t square = config.positionSide * config.positionSide;
      const bool hasMore = config.alignsPositions && found != nullptr && found->shape.size() == 2 &&
                           found->shape[0] > square; // than its original reads
      this->Weights.positionEmbedding =
        this->Get(positions, { hasMore ? found->shape[0] : square, d });
    }
    else if (config.HasPositionVectors() || config.position == PositionKind::Shortformer)
    {
      const std::int64_t width = config.SumDimension();
      const std::int64_t rows = config.positions - config.registers + config.firstPosition;
      const TensorView* found = this->Find(positions);
      const bool isNested =
        config.HasPatches() &&
        (found == nullptr || found->shape.size() != 2); // CLIP has no first axis
      const bool resizes = ResizesPositions(config);
      const std::int64_t stored =
        resizes ? config.classTokens + config.positionSide * config.positionSide : rows;
      TensorView& view = this->Weights.positionEmbedding;
      view = this->Get(positions, isNested ? Shape{ 1, stored, width } : Shape{ stored, width });
      if (resizes)
      {
        const auto resized =
          std::make_shared<const std::vector<float>>(ResizedPositions(view, config));
        view = { DType::F32, { 1, rows, d }, reinterpret_cast<const std::byte*>(resized->data()) };
        this->Weights.resizedPositions = resized;
      }
    }
    else
    {
      // TransformerLens may store one even if it is not used.
      this->Used.insert(LensNames().positions);
    }
    if (!config.biasByLayer)
    {
      this->Weights.relativeBias = this->GetRelativeBias(this->Prefix);
    }
    if (config.position == PositionKind::Disentangled)
    {
      const std::int64_t span =
        config.relativeBuckets > 0 ? config.relativeBuckets : config.relativeDistance;
      this->Weights.distanceEmbedding =
        this->Get(this->Prefix + this->Name.distanceEmbedding, { 2 * span, d });
    }
    if (config.positionNorm)
    {
      this->Weights.distanceNorm = this->GetUnfoldedNorm(this->Prefix, this->Name.distanceNorm);
    }
    else if (config.position != PositionKind::Disentangled) // files have it, and nothing reads it
    {
      this->Used.insert({ this->Prefix + this->Name.distanceNorm.weight,
        this->Prefix + this->Name.distanceNorm.bias });
    }
    if (config.segments > 0)
    {
      this->Weights.segmentEmbedding =
        this->Get(this->Prefix + this->Name.segments, { config.segments, config.SumDimension() });
    }
    std::istringstream frequencies(this->Name.frequencies);
    for (std::string name; std::getline(frequencies, name, ',');)
    {
      if (config.position == PositionKind::Rotary && this->Has(this->Prefix + name))
      {
        this->Weights.rotaryFrequencies =
          this->Get(this->Prefix + name, { config.RotatedDimension() / 2 });
      }
    }
    this->CheckRotations();
    if (config.tasks > 0)
    {
      this->Weights.taskEmbedding =
        this->Get(this->Prefix + this->Name.tasks, { config.tasks, config.SumDimension() });
    }
    if (config.embeddingNorm)
    {
      const bool isOfSum = config.embeddingProjection == EmbeddingProjection::OfNormed;
      this->Weights.embeddingNorm = this->GetUnfoldedNorm(
        this->Prefix, this->Name.embeddingNorm, isOfSum ? config.SumDimension() : d);
    }
  }

  /// The embedding of tokens. Files may hold that of encoder and decoder once or more often, and a
  /// tied one under the name of the unembedding alone.
  std::string TokensName()
  {
    if (this->Name.sharedTokens.empty())
    {
      const std::string name = this->Prefix + this->Name.tokens;
      this->Used.insert(name);
      return this->Has(this->Head) && !this->Has(name) ? this->Head : name;
    }
    // The names of both stacks begin with that of the model.
    const std::size_t end = this->Prefix.rfind('.', this->Prefix.size() - 2);
    const std::string model = end == std::string::npos ? "" : this->Prefix.substr(0, end + 1);
    std::vector<std::string> names;
    std::istringstream shared(this->Name.sharedTokens);
    for (std::string one; std::getline(shared, one, ',');)
    {
      names.push_back(model + one);
      this->Used.insert(names.back());
    }
    // The unembedding is that of the decoder, whatever the encoder has.
    names.insert(names.end() - (this->Config.encoder != nullptr ? 1 : 0), this->Head);
    const auto found = std::find_if(
      names.begin(), names.end(), [this](const std::string& name) { return this->Has(name); });
    return found != names.end() ? *found : names[1];
  }

  /// What makes tokens of a waveform.
  void BindWaveform()
  {
    const TransformerConfig& config = this->Config;
    const SoundConfig& sound = *config.sound;
    std::int64_t inputs = 1;
    for (std::size_t i = 0; i < sound.channels.size(); ++i)
    {
      const auto number = static_cast<std::int64_t>(i);
      const std::int64_t outputs = sound.channels[i];
      this->Weights.soundConvolutions.push_back(
        this->GetSoundConvolution(number, inputs, sound.widths[i], outputs));
      if (i == 0 || sound.normsEach)
      {
        const PairNames& names = this->Name.soundNorm;
        this->Weights.soundNorms.push_back(this->GetUnfoldedNorm(
          this->Prefix, { Numbered(names.weight, number), Numbered(names.bias, number) }, outputs));
      }
      inputs = outputs;
    }
    if (sound.normsLast)
    {
      this->Weights.featureNorm =
        this->GetUnfoldedNorm(this->Prefix, this->Name.featureNorm, inputs);
    }
    this->Weights.embeddingIn =
      this->GetLinear(this->Prefix, this->Name.projectIn, inputs, config.modelDimension, true);
    this->Weights.positionConvolution = this->GetPositionConvolution();
  }

  /// A tensor of MLX, whose second axis comes last there.
  TensorView ChannelsFirst(const TensorView& stored, const Shape& shape)
  {
    const FloatValues values(stored);
    const std::int64_t channels = shape[1];
    const std::int64_t outputs = shape[0];
    const auto pixels = static_cast<std::int64_t>(stored.Count()) / outputs / channels;
    std::vector<float> moved(stored.Count());
    for (std::int64_t i = 0; i < outputs * pixels * channels; ++i)
    {
      const std::int64_t output = i / (pixels * channels);
      const std::int64_t pixel = i / channels % pixels;
      moved[(output * channels + i % channels) * pixels + pixel] = values.Data()[i];
    }
    return this->Keep(std::move(moved), shape);
  }

  /// A convolution whose stride equals its size is a matrix on the pixels of a patch.
  void BindPatchEmbedding()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    LinearTensors& linear = this->Weights.patchEmbedding;
    Shape shape = { d, config.channels, config.patchHeight, config.patchWidth };
    if (config.channelsLast)
    {
      shape = { d, config.patchHeight * config.patchWidth * config.channels };
    }
    const std::string patches = this->Prefix + this->Name.patches.weight;
    const TensorView* found = this->Find(patches);
    const bool isPlain =
      config.patchFrames == 1 && found != nullptr && found->shape.size() == shape.size();
    if (config.ReadsAnySize() && !config.channelsLast && !isPlain)
    {
      shape.insert(shape.begin() + 2, config.patchFrames);
    }
    Shape channelsLast = shape;
    std::rotate(channelsLast.begin() + 1, channelsLast.begin() + 2, channelsLast.end());
    const bool isMlx = found != nullptr && found->shape == channelsLast && shape != channelsLast;
    linear.weight =
      isMlx ? this->ChannelsFirst(this->Get(patches), shape) : this->Get(patches, shape);
    if (config.patchBias)
    {
      linear.bias = this->Get(this->Prefix + this->Name.patches.bias, { d });
    }
    linear.inputs = config.channels * config.patchFrames * config.patchHeight * config.patchWidth;
    linear.outputs = d;
    if (config.classTokens > 0)
    {
      const std::string token = this->Prefix + this->Name.classToken;
      this->Weights.classToken = this->Get(token);
      if (this->Weights.classToken.Count() != ToIndex(d))
      {
        this->Get(token, { 1, 1, d }); // its message
      }
    }
    if (config.classTokens > 1)
    {
      this->Weights.distillationToken =
        this->Get(this->Prefix + this->Name.distillationToken, { 1, 1, d });
    }
    if (config.registers > 0)
    {
      this->Weights.registers =
        this->Get(this->Prefix + this->Name.registers, { 1, config.registers, d });
    }
  }

  /// Stored sines and cosines [positions, components of a head] must be those of the rotation.
  void CheckRotations()
  {
    const TransformerConfig& config = this->Config;
    const std::string name = this->Prefix + this->Name.rotations;
    if (this->Name.rotations.empty() || !this->Has(name))
    {
      return;
    }
    const std::int64_t pairs = config.RotatedDimension() / 2;
    const std::vector<double> values = this->Get(name, { config.positions, 2 * pairs }).ToDouble();
    constexpr double tolerance = 2e-3; // that of 16 bits
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      const auto component = static_cast<std::int64_t>(i) % (2 * pairs);
      const std::int64_t position = static_cast<std::int64_t>(i) / (2 * pairs);
      const double turn = std::pow(
        config.rotaryBase, -static_cast<double>(component % pairs) / static_cast<double>(pairs));
      const double angle = static_cast<double>(position) * turn;
      const double expected = component < pairs ? std::sin(angle) : std::cos(angle);
      if (!(std::abs(values[i] - expected) <= tolerance))
      {
        this->Fail(name, ": expected the sines and cosines of the rotation, found ", values[i],
          " in place of ", expected, "; rotations that were trained are not run.");
      }
    }
  }

  /// What all layers are told of tokens and their embeddings, and what makes several residual
  /// streams of one.
  void BindModelSides()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    if (config.layerInput > 0)
    {
      const std::int64_t width = config.layers * config.layerInput;
      this->Weights.layerTokens =
        this->Get(this->Prefix + this->Name.layerTokens, { config.layerInputVocabulary, width });
      this->Weights.layerProjection =
        this->GetLinear(this->Prefix, this->Name.layerProjection, d, width, false);
      this->Weights.layerProjectionNorm =
        this->GetUnfoldedNorm(this->Prefix, this->Name.layerProjectionNorm, config.layerInput);
    }
    for (std::int64_t i = 0; i + 1 < config.streams; ++i)
    {
      const auto get = [&](const PairNames& names)
      { return this->GetLinear(this->Prefix, { Numbered(names.weight, i), {} }, d, d, false); };
      this->Weights.streamIn.push_back(get(this->Name.streamIn));
      this->Weights.streamOut.push_back(get(this->Name.streamOut));
    }
  }

  /// A separate unembedding, the token embedding if they are tied, or none.
  void BindUnembedding()
  {
    const TransformerConfig& config = this->Config;
    const std::string name = this->Prefixes.second + this->Name.unembedding.weight;
    const std::int64_t d = config.UnembeddingInputs();
    LinearTensors& linear = this->Weights.unembedding;
    if (!NamesFor(config).transform.weight.empty() && !this->BindTransform())
    {
      return;
    }
    if (this->Has(name))
    {
      linear = this->GetLinear({}, { name, {} }, d, config.outputVocabulary, false);
    }
    else if (config.tiedUnembedding)
    {
      this->Used.insert(name);
      linear.weight = this->Weights.tokenEmbedding;
      linear.inputs = d;
      linear.outputs = config.vocabulary;
    }
    if (linear.Exists())
    {
      const bool isRow = config.encoder != nullptr; // BART
      linear.bias = this->GetOptional(
        this->UnembeddingBiasName(), isRow ? Shape{ 1, linear.outputs } : Shape{ linear.outputs });
      if (isRow && linear.bias.data != nullptr)
      {
        linear.bias.shape = { linear.outputs };
      }
    }
  }

  /// BERT and its kind know the bias by two names, of which a file may have one or both.
  std::string UnembeddingBiasName()
  {
    std::string name = this->Prefixes.second + this->Name.unembedding.bias;
    const bool has = this->Has(name);
    for (const char* copy :
      { "cls.predictions.decoder.bias", "lm_head.decoder.bias", "predictions.decoder.bias" })
    {
      if (has || this->Has(copy))
      {
        this->Used.insert({ name, copy });
        name = has ? name : copy;
      }
    }
    return name;
  }

  /// The head that predicts masked words; false for a model without it.
  bool BindTransform()
  {
    if (!this->Has(this->Name.transform.weight))
    {
      return false;
    }
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t width = this->Config.UnembeddingInputs();
    this->Weights.logitsTransform =
      this->GetLinear({}, this->Name.transform, d, width, this->Config.transformBias);
    this->Weights.logitsNorm = this->Weights.normsAreFolded
                                 ? NormTensors()
                                 : this->GetUnfoldedNorm({}, this->Name.transformNorm, width);
    return true;
  }

  /// Checks the head of ESM-2 that predicts contacts, where the file has it. ReadContactHead reads
  /// it.
  void CheckContacts()
  {
    const PairNames& names = this->Name.contacts;
    if (!names.weight.empty() && this->Has(this->Prefix + names.weight))
    {
      this->GetLinear(this->Prefix, names, this->Config.layers * this->Config.heads, 1, true);
    }
  }

  /// The layer that a tensor belongs to, or -1.
  std::int64_t LayerOf(std::string_view name) const
  {
    const std::string all = this->Prefix + this->Name.layers;
    const std::string prefix = all.substr(0, all.find('*'));
    std::int64_t layer = -1;
    if (BeginsWith(name, prefix))
    {
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    }
    return layer;
  }

  /// Whether a tensor outside of the layers is part of a normalization, and not of a head. In a
  /// file whose names have the prefix of the base model, the others belong to heads.
  bool IsNorm(std::string_view name) const
  {
    if (!BeginsWith(name, this->Prefix))
    {
      return false;
    }
    name.remove_prefix(this->Prefix.size());
    const std::string_view module = name.substr(0, name.find('.'));
    if (IsHead(module))
    {
      return false;
    }
    std::string lower(name.substr(0, std::min(name.rfind('.'), name.size())));
    std::transform(lower.begin(), lower.end(), lower.begin(),
      [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return lower.find("norm") != std::string::npos || BeginsWith(lower, "ln_") ||
           EndsWith(lower, ".ln");
  }

  /// Whether a tensor repeats part of another: TransformerBridge splits those of queries, keys and
  /// values and keeps both.
  bool IsCopy(std::string_view name) const
  {
    const std::array<std::string_view, 3> parts = { ".attn.q.", ".attn.k.", ".attn.v." };
    return this->Bridge && this->Name.fused != Fused::No &&
           std::any_of(parts.begin(), parts.end(),
             [name](std::string_view part) { return name.find(part) != std::string_view::npos; });
  }

  void CheckLayer(const std::string& name) const
  {
    const std::int64_t groups = this->Config.layerGroups;
    const std::int64_t count = groups > 0 ? groups : this->Config.layers;
    if (this->LayerOf(name) >= count + this->Config.predictionLayers)
    {
      this->Fail(name, ": the configuration has only ", count,
        groups > 0 ? " groups of layers, from 0." : " layers, from 0.");
    }
  }

  /// Whether a tensor belongs to a layer or a normalization.
  bool IsPart(std::string_view name) const
  {
    const std::int64_t layer = this->LayerOf(name);
    const bool predicts = this->Config.predictionLayers > 0 && layer >= this->Config.layers;
    return !predicts && (layer >= 0 || this->IsNorm(name));
  }

  /// Results without a tensor of a layer or a normalization would be wrong, as they would be
  /// without one that an index lists; those of a head are none of the recording.
  void CheckUnused(const Binder* encoder)
  {
    if (encoder != nullptr)
    {
      this->Used.insert(encoder->Used.begin(), encoder->Used.end());
    }
    for (const auto& [name, view] : this->Files.GetTensors())
    {
      const std::string_view text = name;
      this->CheckLayer(name);
      if (encoder != nullptr)
      {
        encoder->CheckLayer(name);
      }
      if (this->Used.count(text) == 0 && !IsBuffer(text) && !this->IsCopy(text))
      {
        if (this->IsPart(text) || (encoder != nullptr && encoder->IsPart(text)))
        {
          this->Fail(name, ": the attention, MLPs and normalizations of ",
            this->Config.architecture,
            ", as configured, have no such tensor, and results without it would "
            "be wrong; expected the architecture that the model was made for.");
        }
        this->Weights.unused.push_back(name);
      }
    }
    for (const auto& [name, shard] : this->Files.GetMissing())
    {
      if (this->Used.count(name) == 0 && !IsBuffer(name))
      {
        this->FailMissing(name);
      }
    }
  }
};

}

TokenTensors FindTokenTensors(const TransformerConfig& config, const WeightFiles& files)
{
  return Binder(config, files).TokenNames();
}

TensorView RowsOf(const TensorView& view, std::int64_t first, std::int64_t count)
{
  TensorView rows = view;
  if (view.packed != nullptr)
  {
    rows.shape[0] = count;
    return PartOf(view, view.Count() / ToIndex(view.shape[0]) * ToIndex(first), rows.shape);
  }
  const std::uint64_t bytes = view.Bytes() / static_cast<std::uint64_t>(view.shape[0]);
  rows.shape[0] = count;
  rows.data += ToIndex(first) * bytes;
  return rows;
}

TransformerWeights BindTransformerWeights(const TransformerConfig& config, const WeightFiles& files)
{
  if (config.vision != nullptr)
  {
    Binder encoder(*config.vision->encoder, files);
    auto vision = std::make_shared<const VisionWeights>(encoder.BindVision(config));
    TransformerWeights weights = Binder(config, files).Bind(&encoder);
    weights.vision = std::move(vision);
    return weights;
  }
  if (config.encoder == nullptr)
  {
    return Binder(config, files).Bind(nullptr);
  }
  Binder decoder(config, files);
  Binder encoder(*config.encoder, files, decoder.TiedHead());
  auto encoderWeights = std::make_shared<const TransformerWeights>(encoder.BindEncoder());
  TransformerWeights weights = decoder.Bind(&encoder);
  weights.encoder = std::move(encoderWeights);
  return weights;
}

}
