#include "TransformerWeights.h"

#include "ArchitectureLimits.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/TextEnds.h"
#include "Files/PackedNumbers.h"
#include "Internal/Quantization.h"
#include "Internal/TensorNames.h"
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

/// Outputs first <= o < first + count of a map that is stored as [outputs, inputs].
LinearTensors OutputsOf(const LinearTensors& linear, std::int64_t first, std::int64_t count)
{
  LinearTensors part = linear;
  part.weight = RowsOf(linear.weight, first, count);
  if (linear.bias.data != nullptr)
  {
    part.bias = RowsOf(linear.bias, first, count);
  }
  part.outputs = count;
  return part;
}

/// A name with a number in the place of its "*".
std::string Numbered(std::string name, std::int64_t number)
{
  return name.replace(name.find('*'), 1, std::to_string(number));
}

class Binder
{
public:
  /// `tiedHead`: what a decoder's TiedHead is, for an encoder that shares its embedding.
  Binder(const TransformerConfig& config, const WeightFiles& files, std::string tiedHead = {})
    : Config(config)
    , Files(files)
    , Lens(config.architecture == "transformer_lens" || this->Has(LensNames().tokens) ||
           this->Has(LensEncoderNames().tokens))
    , Bridge(!this->Lens && this->Has("embed.weight") && this->Has("blocks.0.attn.o.weight"))
    , Gguf(!this->Lens && this->Has("token_embd.weight"))
    , Name(this->ChooseNames())
    , Prefixes(this->FindPrefixes())
    , Prefix(this->Prefixes.first)
    , Head(std::move(tiedHead))
  {
    if (config.tiedUnembedding && !this->Name.unembedding.weight.empty())
    {
      this->Head = this->Prefixes.second + this->Name.unembedding.weight;
    }
  }

  /// The unembedding that is tied to the token embedding; empty if none is.
  const std::string& TiedHead() const { return this->Head; }

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
  const TransformerConfig& Config;
  const WeightFiles& Files;
  bool Lens;   ///< TransformerLens' names
  bool Bridge; ///< those of its TransformerBridge, for tensors as Hugging Face has them
  bool Gguf;   ///< those of llama.cpp
  const TensorNames Name;
  std::pair<std::string, std::string> Prefixes; ///< of the base model, and of its unembedding
  const std::string& Prefix;
  std::string Head; ///< tied to the token embedding; empty: none
  std::set<std::string, std::less<>> Used;
  TransformerWeights Weights;

  template<class... Parts>
  [[noreturn]] void Fail(std::string_view tensor, const Parts&... message) const
  {
    throw ModelError(this->Files.FileOf(tensor), ": tensor '", tensor, "'", message...);
  }

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

  [[noreturn]] void FailMissing(std::string_view tensor) const
  {
    const bool isListed = this->Files.GetMissing().count(tensor) != 0;
    this->Fail(
      tensor, isListed ? " is missing, although the index of shards lists it." : " is missing.");
  }

  TensorNames ChooseNames() const
  {
    if (!this->Lens)
    {
      TensorNames names = NamesFor(this->Config);
      const std::string head = "lm_predictions.lm_head."; // it reads the token embedding
      if (this->Has(head + "dense.weight") && !this->Has(names.transform.weight)) // DeBERTa-v3
      {
        const std::string norm = head + "LayerNorm.";
        names.transform = { head + "dense.weight", head + "dense.bias" };
        names.transformNorm = { norm + "weight", norm + "bias" };
        names.unembedding = { names.prefix + names.tokens, head + "bias" };
      }
      this->UseFusedExperts(names);
      return this->Gguf     ? GgufNames(this->Config, { this->Has("blk.0.attn_qkv.weight"),
                                                        this->Has("blk.0.attn_k_b.weight") })
             : this->Bridge ? BridgeNames(names)
                            : names;
    }
    return this->Has(LensEncoderNames().tokens) ? LensEncoderNames() : LensNames();
  }

  /// Release 5 of transformers has the experts of a layer in one tensor. Its files have the older
  /// names, unless they were written from its state: then also for what is beside the experts.
  void UseFusedExperts(TensorNames& names) const
  {
    constexpr std::string_view ending = "experts.gate_up_proj";
    const bool isOther = names.expertsGate.weight.find('*') == std::string::npos &&
                         names.expertLayout == WeightLayout::InputOutput;
    const TensorViews& tensors = this->Files.GetTensors();
    const auto found = std::find_if(tensors.begin(), tensors.end(),
      [&](const auto& tensor) { return EndsWith(tensor.first, ending); });
    if (isOther || found == tensors.end())
    {
      return;
    }
    std::string before = found->first; // model.layers.1.mlp.
    before.resize(before.size() - ending.size());
    const std::size_t dot =
      before.rfind('.', before.size() - std::min<std::size_t>(before.size(), 2));
    const std::string module = before.substr(dot == std::string::npos ? 0 : dot + 1);
    names.expertsGate = { module + std::string(ending), "" };
    names.expertsUp = {};
    names.expertsDown = { module + "experts.down_proj", "" };
    names.expertLayout = WeightLayout::OutputInput;
    for (const char* router : { "gate.weight", "router.weight" })
    {
      if (this->Has(before + router))
      {
        names.router.weight = module + router;
      }
    }
    for (const char* bias : { "e_score_correction_bias", "gate.e_score_correction_bias",
           "gate.moe_statics.e_score_correction_bias" })
    {
      if (this->Has(before + bias))
      {
        names.expertBias = module + bias;
      }
    }
  }

  /// The prefix of the base model's names in this file, and what is before those of its
  /// unembedding.
  std::pair<std::string, std::string> FindPrefixes() const
  {
    const TensorViews& tensors = this->Files.GetTensors();
    const bool hasTokens = !this->Name.tokens.empty() &&
                           std::any_of(tensors.begin(), tensors.end(), [this](const auto& t)
                             { return EndsWith(t.first, this->Name.tokens); });
    const std::string first = hasTokens                            ? this->Name.tokens
                              : !this->Name.patches.weight.empty() ? this->Name.patches.weight
                                                                   : this->Name.layers + "0.";
    const auto isBefore = [&](const std::string& before)
    {
      const auto found = tensors.lower_bound(before + first);
      return found != tensors.end() && BeginsWith(found->first, before + first);
    };
    const std::string& prefix = this->Name.prefix;
    if (!this->Lens && !prefix.empty() && !isBefore(prefix))
    {
      const bool isOfImages = this->Config.input == InputKind::Images;
      const OuterPrefix* outer = isOfImages ? OuterImagePrefixes.data() : OuterPrefixes.data();
      const OuterPrefix* end =
        outer + (isOfImages ? OuterImagePrefixes.size() : OuterPrefixes.size());
      for (; outer != end; ++outer)
      {
        if (isBefore(std::string(outer->base)))
        {
          return { std::string(outer->base), std::string(outer->head) };
        }
      }
      // One that ends otherwise, such as "decoder." of "model.decoder.".
      const std::size_t dot = prefix.find('.');
      const std::string rest = prefix.substr(dot + 1);
      return { !rest.empty() && isBefore(rest) ? rest : std::string(), std::string() };
    }
    return { prefix, std::string() };
  }

  /// A tensor of any type and shape, or nullptr.
  const TensorView* Find(std::string_view name) const
  {
    const auto found = this->Files.GetTensors().find(name);
    return found == this->Files.GetTensors().end() ? nullptr : &found->second;
  }

  bool Has(std::string_view name) const { return this->Find(name) != nullptr; }

  std::string LayerPrefix(std::int64_t layer) const
  {
    if (this->Config.layerGroups > 0)
    {
      const std::int64_t turns = this->Config.layers / this->Config.groupLayers;
      const double perGroup =
        static_cast<double>(turns) / static_cast<double>(this->Config.layerGroups);
      const std::int64_t turn = layer / this->Config.groupLayers;
      const auto group = static_cast<std::int64_t>(static_cast<double>(turn) / perGroup);
      const std::string name = Numbered(this->Prefix + this->Name.layers, group);
      return Numbered(name, layer % this->Config.groupLayers) + ".";
    }
    return this->Prefix + this->Name.layers + std::to_string(layer) + ".";
  }

  /// A tensor of values that are made here.
  TensorView Keep(std::vector<float> values, const Shape& shape)
  {
    const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    this->Weights.owned.push_back(kept);
    return { DType::F32, shape, reinterpret_cast<const std::byte*>(kept->data()) };
  }

  /// A floating-point tensor of any shape.
  const TensorView& Get(const std::string& name)
  {
    const TensorView* view = this->Find(name);
    if (view == nullptr || !IsFloating(view->dtype) || IsFloatOfByte(view->dtype))
    {
      const std::string method = QuantizationOf(this->Files.GetTensors(), name);
      if (!method.empty())
      {
        this->Fail(name, " is ", QuantizationMessage(method));
      }
    }
    if (view == nullptr)
    {
      this->FailMissing(name);
    }
    if (!IsFloating(view->dtype))
    {
      this->Fail(name, ": expected F32, F16, BF16 or F64, found ", atlas::Name(view->dtype), ".");
    }
    this->Used.insert(name);
    return *view;
  }

  TensorView Get(const std::string& name, const Shape& shape)
  {
    const TensorView& view = this->Get(name);
    if (view.shape != shape)
    {
      this->Fail(name, ": expected shape ", ToString(shape), " by the configuration, found ",
        ToString(view.shape), ".");
    }
    return view;
  }

  /// Quantized matrices have a row per output, whatever the layout of others.
  void RequireRows(const std::string& name, WeightLayout layout) const
  {
    const TensorView* view = this->Find(name);
    if (view != nullptr && view->packed != nullptr && layout != WeightLayout::OutputInput)
    {
      this->Fail(name, " is quantized by ", view->packed->name,
        ", which is run only for matrices with a row for each output; expected the model before "
        "its quantization.");
    }
  }

  /// A tensor of one number, of any number of axes.
  TensorView GetNumber(const std::string& name)
  {
    const TensorView& view = this->Get(name);
    return view.Count() == 1 ? view : this->Get(name, { 1 });
  }

  /// The shift of a LayerNorm, or a bias in TransformerLens naming, which may be missing.
  TensorView GetOptional(const std::string& name, const Shape& shape)
  {
    return this->Has(name) ? this->Get(name, shape) : TensorView();
  }

  /// The name itself, or that in the first releases of BERT: gamma and beta.
  std::string OldName(const std::string& name, const std::string& end, const char* oldEnd) const
  {
    if (!this->Has(name) && EndsWith(name, end))
    {
      const std::string old = name.substr(0, name.size() - end.size()) + oldEnd;
      return this->Has(old) ? old : name;
    }
    return name;
  }

  /// The first of two names with a comma between them that is there.
  std::string Either(const std::string& prefix, const std::string& names) const
  {
    const std::size_t comma = names.find(',');
    const std::string first = prefix + names.substr(0, comma);
    return comma == std::string::npos || this->Has(first) ? first
                                                          : prefix + names.substr(comma + 1);
  }

  /// A normalization. Its gain and shift may be folded into the next weights.
  NormTensors GetNorm(const std::string& prefix, const PairNames& names)
  {
    return this->Weights.normsAreFolded ? NormTensors() : this->GetUnfoldedNorm(prefix, names);
  }

  /// Of d_model components, or `dimension`.
  NormTensors GetUnfoldedNorm(
    const std::string& prefix, const PairNames& names, std::int64_t dimension = 0)
  {
    NormTensors norm;
    if (this->Config.norm == NormKind::None || !this->Config.normsHaveWeights)
    {
      return norm;
    }
    const Shape shape = { dimension > 0 ? dimension : this->Config.modelDimension };
    norm.gain = this->Get(
      this->OldName(this->Either(prefix, names.weight), "LayerNorm.weight", "LayerNorm.gamma"),
      shape);
    if (this->Config.norm == NormKind::LayerNorm && this->Config.normsHaveShifts &&
        !names.bias.empty())
    {
      norm.shift =
        this->Get(this->OldName(prefix + names.bias, "LayerNorm.bias", "LayerNorm.beta"), shape);
    }
    return norm;
  }

  /// A matrix with its bias. `bias` states whether the configuration has one; with TransformerLens
  /// names it may be missing, which means 0. Names without a prefix are of heads, which are no
  /// matrices of GPT-2's own kind.
  LinearTensors GetLinear(const std::string& prefix, const PairNames& names, std::int64_t inputs,
    std::int64_t outputs, bool bias)
  {
    const WeightLayout layout =
      prefix.empty() && !this->Lens ? WeightLayout::OutputInput : this->Name.layout;
    const Shape shape =
      layout == WeightLayout::OutputInput ? Shape{ outputs, inputs } : Shape{ inputs, outputs };
    const std::string biasName = prefix + names.bias;
    this->RequireRows(prefix + names.weight, layout);
    return { this->Get(prefix + names.weight, shape),
      this->Lens ? this->GetOptional(biasName, { outputs })
      : bias     ? this->Get(biasName, { outputs })
                 : TensorView(),
      layout, inputs, outputs };
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
    if (config.input == InputKind::Images)
    {
      this->BindPatchEmbedding();
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
        config.input == InputKind::Images &&
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

  /// The biases of distances or patches, of all layers or of that whose prefix this is.
  TensorView GetRelativeBias(const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const bool isShared = config.position == PositionKind::RelativeOfPatches && !config.biasByLayer;
    const std::string name = prefix + (isShared ? this->Name.sharedBias : this->Name.relativeBias);
    if (config.position == PositionKind::Relative)
    {
      return this->Get(name, { config.relativeBuckets, config.heads });
    }
    if (config.position != PositionKind::RelativeOfPatches)
    {
      return {};
    }
    const bool resizes = ResizesPositions(config);
    const std::int64_t rows = 2 * (resizes ? config.positionSide : config.PatchRows()) - 1;
    const std::int64_t columns = 2 * (resizes ? config.positionSide : config.PatchColumns()) - 1;
    TensorView view = this->Get(name, { rows * columns + 3, config.heads });
    if (!resizes)
    {
      return view;
    }
    std::vector<float> resized = ResizedPatchBias(view, config);
    const std::int64_t count = static_cast<std::int64_t>(resized.size()) / config.heads;
    return this->Keep(std::move(resized), { count, config.heads });
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

  /// A convolution over so many frames or tokens is a matrix on their values.
  LinearTensors GetConvolution(const PairNames& names, std::int64_t inputs, std::int64_t width)
  {
    const std::int64_t d = this->Config.modelDimension;
    return { this->Get(this->Prefix + names.weight, { d, inputs, width }),
      this->Get(this->Prefix + names.bias, { d }), WeightLayout::OutputInput, inputs * width, d };
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
    linear.weight = this->Get(patches, shape);
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

  LayerTensors BindLayer(std::int64_t l)
  {
    if (!this->Config.HasLayerConfigs())
    {
      return this->BindLayer(l, this->Config);
    }
    return this->BindLayer(l, this->Config.WithSizesOf(l));
  }

  /// With the sizes of this configuration.
  LayerTensors BindLayer(std::int64_t l, const TransformerConfig& config)
  {
    const std::string prefix = this->LayerPrefix(l);
    const std::int64_t d = config.modelDimension;
    LayerTensors layer;
    const bool normsBefore = config.normPlace != NormPlace::AfterOutput;
    if (normsBefore && (l > 0 || config.firstAttentionIsNormed))
    {
      layer.attentionNorm = this->GetNorm(prefix, this->Name.attentionNorm);
    }
    if (config.HasAttention(l))
    {
      this->BindAttention(layer, prefix, l, config);
    }
    else
    {
      this->BindMixer(layer.mixer, prefix, config.mixers[l]);
    }
    if (config.normPlace == NormPlace::BeforeAndAfter || !normsBefore)
    {
      layer.attentionAfter = this->GetNorm(prefix, this->Name.attentionAfter);
      layer.mlpAfter = this->GetNorm(prefix, this->Name.mlpAfter);
    }
    if (config.normsInside)
    {
      layer.mixedNorm =
        this->GetUnfoldedNorm(prefix, this->Name.mixedNorm, config.heads * config.ValueDimension());
      layer.hiddenNorm = this->GetUnfoldedNorm(prefix, this->Name.hiddenNorm, config.mlpDimension);
    }
    if (config.activation == Activation::Xielu)
    {
      layer.xielu = { this->GetNumber(prefix + this->Name.xieluSquare),
        this->GetNumber(prefix + this->Name.xieluNegative),
        this->GetNumber(prefix + this->Name.xieluLinear),
        this->GetNumber(prefix + this->Name.xieluLimit) };
    }
    if (config.convolution > 0 && l == 0)
    {
      layer.convolution = this->GetConvolution(this->Name.convolution, d, config.convolution);
      layer.convolutionNorm = this->GetNorm(this->Prefix, this->Name.convolutionNorm);
    }
    if (config.layerScales)
    {
      layer.attentionScale = this->Get(prefix + this->Name.attentionScale, { d });
      layer.mlpScale = this->Get(prefix + this->Name.mlpScale, { d });
    }
    if (config.encoder != nullptr)
    {
      const std::int64_t width = config.heads * config.headDimension;
      const std::int64_t keys = config.keyHeads * config.headDimension;
      const std::int64_t source = config.encoder->modelDimension;
      const auto get = [&](const PairNames& names)
      {
        LinearTensors linear =
          this->GetLinear(prefix, names, source, keys, config.inputBias && !names.bias.empty());
        linear.headStep = config.headDimension;
        return linear;
      };
      layer.crossNorm = this->GetNorm(prefix, this->Name.crossNorm);
      layer.crossQuery = this->GetHeads(prefix, this->Name.crossQuery, config.heads, false, config);
      layer.crossKey = get(this->Name.crossKey);
      layer.crossValue = get(this->Name.crossValue);
      if (config.normPlace == NormPlace::BeforeAndAfter)
      {
        layer.crossAfter = this->GetNorm(prefix, this->Name.crossAfter);
      }
      layer.crossOutput =
        this->GetLinear(prefix, this->Name.crossOutput, width, d, config.outputBias);
    }
    if (config.mlpDimension > 0)
    {
      if (normsBefore)
      {
        layer.mlpNorm = config.order == SublayerOrder::ParallelOfOneNorm
                          ? layer.attentionNorm
                          : this->GetNorm(prefix, this->Name.mlpNorm);
      }
      if (config.HasExperts(l))
      {
        this->BindExperts(layer.experts, prefix);
      }
      else
      {
        this->BindMlp(layer, prefix, config);
      }
    }
    if (config.HasLayerSides())
    {
      this->BindSides(layer.sides, prefix);
    }
    return layer;
  }

  void BindAttention(
    LayerTensors& layer, const std::string& prefix, std::int64_t l, const TransformerConfig& config)
  {
    if (config.keyLatent > 0)
    {
      this->BindLatent(layer, prefix);
    }
    else if (this->Name.fused != Fused::No)
    {
      this->BindFused(layer, prefix);
    }
    else
    {
      this->BindHeads(layer, prefix, l, config);
    }
    layer.output = this->GetOutput(prefix, config);
    if (config.biasByLayer)
    {
      layer.relativeBias = this->GetRelativeBias(prefix);
    }
    if (config.position == PositionKind::Disentangled)
    {
      this->BindDistances(layer, prefix);
    }
    if (config.queryKeyNorm == QueryKeyNorm::WithoutGain)
    {
      layer.queryNorm.resize(config.Rotates(l) ? 1 : 0);
      layer.keyNorm = layer.queryNorm;
    }
    else if (config.queryKeyNorm != QueryKeyNorm::None)
    {
      layer.queryNorm = this->GetHeadNorms(prefix, this->Name.queryNorm, config.heads, config);
      if (config.KeyLayer(l) == l)
      {
        layer.keyNorm = this->GetHeadNorms(prefix, this->Name.keyNorm, config.keyHeads, config);
      }
    }
    if (config.sinks)
    {
      layer.sinks = this->Get(prefix + this->Name.sinks, { config.heads });
    }
  }

  /// What a layer without attention has in its place.
  void BindMixer(MixerTensors& mixer, const std::string& prefix, Mixer kind)
  {
    const TransformerConfig& config = this->Config;
    const TensorNames& name = this->Name;
    const std::int64_t d = config.modelDimension;
    const bool isConvolution = kind == Mixer::ShortConvolution;
    const std::int64_t values = config.mixerHeads * config.mixerValueDimension;
    std::int64_t channels = d;
    if (isConvolution)
    {
      mixer.query = this->GetLinear(prefix, name.mixerQuery, d, 3 * d, config.mixerBias);
    }
    else
    {
      const std::int64_t keys = config.mixerKeyHeads * config.mixerKeyDimension;
      channels = 2 * keys + values;
      this->BindMixerHeads(mixer, prefix, keys, values);
      mixer.decayScale = this->Get(prefix + name.mixerDecayScale, { config.mixerHeads });
      mixer.decayShift = this->Get(prefix + name.mixerDecayShift, { config.mixerHeads });
      mixer.norm = this->GetUnfoldedNorm(prefix, name.mixerNorm, config.mixerValueDimension);
    }
    this->BindTaps(mixer, prefix, channels);
    mixer.output = this->GetLinear(
      prefix, name.mixerOutput, isConvolution ? d : values, d, isConvolution && config.mixerBias);
  }

  /// The maps of DeltaRule.
  void BindMixerHeads(
    MixerTensors& mixer, const std::string& prefix, std::int64_t keys, std::int64_t values)
  {
    const TransformerConfig& config = this->Config;
    const TensorNames& name = this->Name;
    const std::int64_t d = config.modelDimension;
    const std::int64_t group = config.mixerHeads / config.mixerKeyHeads;
    const auto linear = [&](const PairNames& names, std::int64_t outputs)
    { return this->GetLinear(prefix, names, d, outputs, false); };
    const auto split = [](const LinearTensors& all, std::int64_t first, std::int64_t step)
    {
      LinearTensors part = all;
      part.headFirst = first;
      part.headStep = step;
      return part;
    };
    if (!name.mixerKey.weight.empty())
    {
      mixer.query = linear(name.mixerQuery, keys);
      mixer.key = linear(name.mixerKey, keys);
      mixer.value = linear(name.mixerValue, values);
      mixer.gate = linear(name.mixerGate, values);
    }
    else if (!name.mixerGate.weight.empty())
    {
      const LinearTensors all = linear(name.mixerQuery, 2 * keys + values);
      mixer.query = OutputsOf(all, 0, keys);
      mixer.key = OutputsOf(all, keys, keys);
      mixer.value = OutputsOf(all, 2 * keys, values);
      mixer.gate = linear(name.mixerGate, values);
    }
    else // of each head of keys: its query, key, values and gates
    {
      const LinearTensors all = linear(name.mixerQuery, 2 * keys + 2 * values);
      const std::int64_t dimension = config.mixerKeyDimension;
      const std::int64_t width = group * config.mixerValueDimension;
      const std::int64_t step = 2 * (dimension + width);
      mixer.query = split(all, 0, step);
      mixer.key = split(all, dimension, step);
      mixer.value = split(all, 2 * dimension, step);
      mixer.gate = split(all, 2 * dimension + width, step);
    }
    if (name.mixerDecay.weight.empty())
    {
      const LinearTensors all = linear(name.mixerRate, 2 * config.mixerHeads);
      mixer.rate = split(all, 0, 2 * group);
      mixer.decay = split(all, group, 2 * group);
      return;
    }
    mixer.rate = linear(name.mixerRate, config.mixerHeads);
    mixer.decay = linear(name.mixerDecay, config.mixerHeads);
  }

  /// The convolution of so many channels, which files may have in three parts: those of queries,
  /// keys and values, or thirds of all, as transformers 5 saves them.
  void BindTaps(MixerTensors& mixer, const std::string& prefix, std::int64_t channels)
  {
    const TransformerConfig& config = this->Config;
    const std::string name = prefix + this->Name.mixerTaps.weight;
    const std::size_t star = name.find('*');
    if (star == std::string::npos)
    {
      mixer.taps.push_back(this->Get(name, { channels, 1, config.mixerTaps }));
    }
    std::int64_t left = channels;
    for (const char* letter : { "q", "k", "v" })
    {
      if (star == std::string::npos)
      {
        break;
      }
      const std::string part = std::string(name).replace(star, 1, letter);
      const Shape& shape = this->Get(part).shape;
      const bool isLast = *letter == 'v';
      const std::int64_t own = shape.empty() ? 0 : shape[0];
      mixer.taps.push_back(
        this->Get(part, { isLast ? left : std::min(own, left), 1, config.mixerTaps }));
      left -= own;
    }
    if (config.mixerBias)
    {
      mixer.tapsBias = this->Get(prefix + this->Name.mixerTaps.bias, { channels });
    }
  }

  /// Queries, keys and values in tensors of their own. A layer with the keys and values of another
  /// has none; files may still have them.
  void BindHeads(
    LayerTensors& layer, const std::string& prefix, std::int64_t l, const TransformerConfig& config)
  {
    if (config.gatesAttention) // the query of a head, then its gate
    {
      const std::int64_t dimension = config.headDimension;
      layer.query = this->GetLinear(prefix, this->Name.query, config.modelDimension,
        2 * config.heads * dimension, config.inputBias);
      layer.query.headStep = 2 * dimension;
      layer.attentionGate = layer.query;
      layer.attentionGate.headFirst = dimension;
    }
    else
    {
      layer.query = this->GetHeads(prefix, this->Name.query, config.heads, false, config);
    }
    if (config.KeyLayer(l) != l)
    {
      for (const PairNames* names : { &this->Name.key, &this->Name.value, &this->Name.keyNorm })
      {
        this->Used.insert({ prefix + names->weight, prefix + names->bias });
      }
      return;
    }
    layer.key = this->GetHeads(prefix, this->Name.key, config.keyHeads, true, config);
    const bool areKeys = !config.valuesAreKeys.empty() && config.valuesAreKeys[l];
    layer.value =
      areKeys ? layer.key : this->GetHeads(prefix, this->Name.value, config.keyHeads, true, config);
  }

  /// What makes keys and queries of vectors of distances.
  void BindDistances(LayerTensors& layer, const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    const std::int64_t width = config.heads * config.headDimension;
    const auto get = [&](const LinearTensors& own, const PairNames& names)
    {
      return config.sharesPositionKeys
               ? own
               : this->GetLinear(prefix, names, d, width, !names.bias.empty());
    };
    if (config.readsKeysOfPositions)
    {
      layer.positionKey = get(layer.key, this->Name.positionKey);
    }
    if (config.readsQueriesOfPositions)
    {
      layer.positionQuery = get(layer.query, this->Name.positionQuery);
    }
  }

  void BindSides(LayerSideTensors& sides, const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const TensorNames& name = this->Name;
    const std::int64_t d = config.modelDimension;
    const auto linear = [&](const PairNames& names, std::int64_t inputs, std::int64_t outputs)
    { return this->GetLinear(prefix, names, inputs, outputs, false); };
    if (config.layerInput > 0)
    {
      sides.inputGate = linear(name.inputGate, d, config.layerInput);
      sides.inputProjection = linear(name.inputProjection, config.layerInput, d);
      sides.inputNorm = this->GetUnfoldedNorm(prefix, name.inputNorm);
    }
    if (config.layerFactors)
    {
      sides.factor = this->GetNumber(prefix + name.layerFactor);
    }
    if (config.streams > 1)
    {
      sides.router = linear(name.streamRouter, d, config.streams);
      sides.routerNorm = this->GetUnfoldedNorm(prefix, name.streamRouterNorm);
      sides.prediction =
        linear(name.streamPrediction, config.streams, config.streams * config.streams);
      sides.correction = linear(name.streamCorrection, config.streams, config.streams);
      sides.activeScale = this->Get(prefix + name.streamScale, { d });
    }
    if (config.laurelRank > 0)
    {
      sides.laurelIn = linear(name.laurelIn, d, config.laurelRank);
      sides.laurelOut = linear(name.laurelOut, config.laurelRank, d);
      sides.laurelNorm = this->GetUnfoldedNorm(prefix, name.laurelNorm);
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

  void BindMlp(LayerTensors& layer, const std::string& prefix, const TransformerConfig& config)
  {
    const std::int64_t d = config.modelDimension;
    const std::int64_t hidden = config.mlpDimension;
    if (config.gated && this->Name.up.weight.empty())
    {
      const LinearTensors both =
        this->GetLinear(prefix, this->Name.gate, d, 2 * hidden, config.mlpBias);
      layer.gate = OutputsOf(both, 0, hidden);
      layer.up = OutputsOf(both, hidden, hidden);
    }
    else
    {
      if (config.gated)
      {
        layer.gate = this->GetLinear(prefix, this->Name.gate, d, hidden, config.mlpBias);
      }
      layer.up = this->GetLinear(prefix, this->Name.up, d, hidden, config.mlpBias);
    }
    if (config.gated && this->Lens)
    {
      this->RequireZero(prefix + this->Name.up.bias, layer.up.bias);
    }
    layer.down = this->GetLinear(prefix, this->Name.down, hidden, d, config.mlpBias);
  }

  /// Normalizations [d_head] of the queries or keys of all heads, or of each, or one of all
  /// together [heads d_head].
  std::vector<NormTensors> GetHeadNorms(const std::string& prefix, const PairNames& names,
    std::int64_t heads, const TransformerConfig& config)
  {
    const std::int64_t dimension = config.headDimension;
    if (this->Config.queryKeyNorm == QueryKeyNorm::OfAllHeads)
    {
      return { this->GetUnfoldedNorm(prefix, names, dimension) };
    }
    if (this->Config.queryKeyNorm == QueryKeyNorm::Together)
    {
      return { this->GetUnfoldedNorm(prefix, names, heads * dimension) };
    }
    std::vector<NormTensors> norms;
    if (names.weight.find('*') == std::string::npos)
    {
      const TensorView all = this->Get(prefix + names.weight, { heads, dimension });
      for (std::int64_t h = 0; h < heads; ++h)
      {
        norms.emplace_back().gain = RowsOf(all, h, 1);
        norms.back().gain.shape = { dimension };
      }
      return norms;
    }
    for (std::int64_t h = 0; h < heads; ++h)
    {
      norms.push_back(this->GetUnfoldedNorm(prefix, { Numbered(names.weight, h), {} }, dimension));
    }
    return norms;
  }

  void BindExperts(ExpertTensors& tensors, const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    const std::int64_t hidden = config.expertDimension;
    const bool hasBias = !this->Name.router.bias.empty();
    const bool hasBoth = this->Name.expertsUp.weight.empty();
    tensors.router = this->GetLinear(prefix, this->Name.router, d, config.experts, hasBias);
    if (config.expertBias)
    {
      const std::string name = prefix + this->Name.expertBias;
      tensors.bias = this->Get(name);
      if (tensors.bias.Count() != ToIndex(config.experts))
      {
        this->Get(name, { config.experts }); // its message
      }
    }
    tensors.gate =
      this->GetExperts(prefix, this->Name.expertsGate, d, hasBoth ? 2 * hidden : hidden);
    if (!hasBoth)
    {
      tensors.up = this->GetExperts(prefix, this->Name.expertsUp, d, hidden);
    }
    else if (this->Name.expertLayout == WeightLayout::OutputInput)
    {
      for (LinearTensors& both : tensors.gate)
      {
        tensors.up.push_back(OutputsOf(both, hidden, hidden));
        both = OutputsOf(both, 0, hidden);
      }
    }
    tensors.down = this->GetExperts(prefix, this->Name.expertsDown, hidden, d);
    if (config.sharedExpertDimension > 0)
    {
      const std::int64_t shared = config.sharedExpertDimension;
      const bool isBiased = config.mlpBias && !this->Name.sharedGate.bias.empty();
      if (this->Name.sharedUp.weight.empty())
      {
        const LinearTensors both =
          this->GetLinear(prefix, this->Name.sharedGate, d, 2 * shared, isBiased);
        tensors.sharedGate = OutputsOf(both, 0, shared);
        tensors.sharedUp = OutputsOf(both, shared, shared);
      }
      else
      {
        tensors.sharedGate = this->GetLinear(prefix, this->Name.sharedGate, d, shared, isBiased);
        tensors.sharedUp = this->GetLinear(prefix, this->Name.sharedUp, d, shared, isBiased);
      }
      tensors.sharedDown = this->GetLinear(prefix, this->Name.sharedDown, shared, d, isBiased);
      if (config.sharedExpertHasGate)
      {
        tensors.sharedFactor = this->GetSharedFactor(prefix);
      }
    }
  }

  /// What gives the factor of the shared expert. llama.cpp may leave out its first axis, of size 1.
  LinearTensors GetSharedFactor(const std::string& prefix)
  {
    const std::int64_t d = this->Config.modelDimension;
    const std::string name = prefix + this->Name.sharedFactor.weight;
    const TensorView* found = this->Find(name);
    if (this->Gguf && found != nullptr && found->shape == Shape{ d })
    {
      LinearTensors factor = { this->Get(name), {}, WeightLayout::OutputInput, d, 1 };
      factor.weight.shape = { 1, d };
      return factor;
    }
    return this->GetLinear(prefix, this->Name.sharedFactor, d, 1, false);
  }

  /// A matrix of each expert: tensors of their own; one [experts, inputs, outputs] with its biases
  /// [experts, outputs]; or, by the layout or in a GGUF file, one [experts, outputs, inputs].
  std::vector<LinearTensors> GetExperts(
    const std::string& prefix, const PairNames& names, std::int64_t inputs, std::int64_t outputs)
  {
    const std::int64_t count = this->Config.experts;
    std::vector<LinearTensors> experts;
    if (names.weight.find('*') != std::string::npos)
    {
      for (std::int64_t e = 0; e < count; ++e)
      {
        experts.push_back(
          this->GetLinear(prefix, { Numbered(names.weight, e), {} }, inputs, outputs, false));
      }
      return experts;
    }
    const TensorView* found = this->Find(prefix + names.weight);
    const bool isByRow = this->Gguf || (found != nullptr && found->packed != nullptr); // of outputs
    const WeightLayout layout = isByRow ? WeightLayout::OutputInput : this->Name.expertLayout;
    const Shape one =
      layout == WeightLayout::OutputInput ? Shape{ outputs, inputs } : Shape{ inputs, outputs };
    const TensorView weight = this->Get(prefix + names.weight, { count, one[0], one[1] });
    const TensorView bias =
      names.bias.empty() ? TensorView() : this->Get(prefix + names.bias, { count, outputs });
    for (std::int64_t e = 0; e < count; ++e)
    {
      LinearTensors& expert =
        experts.emplace_back(LinearTensors{ RowsOf(weight, e, 1), {}, layout, inputs, outputs });
      expert.weight.shape = one;
      if (bias.data != nullptr)
      {
        expert.bias = RowsOf(bias, e, 1);
        expert.bias.shape = { outputs };
      }
    }
    return experts;
  }

  /// TransformerLens adds the first bias of a gated MLP behind the gate, not before it as everyone
  /// else. Its converted models have zeros there.
  void RequireZero(const std::string& name, const TensorView& bias) const
  {
    const std::vector<double> values =
      bias.data == nullptr ? std::vector<double>() : bias.ToDouble();
    if (std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }))
    {
      this->Fail(name, ": expected zeros in a gated MLP.");
    }
  }

  /// Queries, keys and values in one tensor.
  void BindFused(LayerTensors& layer, const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t dimension = config.headDimension;
    const std::int64_t queries = config.heads * dimension;
    const std::int64_t keys = config.keyHeads * dimension;
    const bool hasBias = config.inputBias && this->Name.queryBias.empty();
    LinearTensors fused =
      this->GetLinear(prefix, this->Name.query, config.modelDimension, queries + 2 * keys, hasBias);
    if (!this->Name.queryBias.empty())
    {
      fused.bias = this->JoinBiases(prefix);
    }
    layer.query = layer.key = layer.value = fused;
    layer.query.headStep = layer.key.headStep = layer.value.headStep = dimension;
    switch (this->Name.fused)
    {
      case Fused::HeadKind:
      {
        const std::int64_t group = config.heads / config.keyHeads; // of queries, before key, value
        const std::int64_t step = (group + 2) * dimension;
        layer.key.headStep = layer.value.headStep = step;
        layer.key.headFirst = group * dimension;
        layer.value.headFirst = (group + 1) * dimension;
        layer.query.groupHeads = group > 1 ? group : 0;
        layer.query.groupStep = group > 1 ? step : 0;
        layer.query.headStep = group > 1 ? dimension : step;
        return;
      }
      case Fused::FourBlocks:
      {
        constexpr std::int64_t blocks = 4;
        const std::int64_t width = queries / blocks;
        layer.value.headFirst = width;
        layer.key.headFirst = 2 * width;
        for (LinearTensors* linear : { &layer.query, &layer.key, &layer.value })
        {
          linear->groupHeads = config.heads / blocks;
          linear->groupStep = 3 * width;
        }
        return;
      }
      default:
        break;
    }
    if (fused.layout == WeightLayout::OutputInput)
    {
      layer.query = OutputsOf(layer.query, 0, queries);
      layer.key = OutputsOf(layer.key, queries, keys);
      layer.value = OutputsOf(layer.value, queries + keys, keys);
    }
    else
    {
      layer.key.headFirst = queries;
      layer.value.headFirst = queries + keys;
    }
  }

  /// The biases of queries and values, which are apart, in the order of the fused tensor by heads;
  /// keys have none.
  TensorView JoinBiases(const std::string& prefix)
  {
    const std::int64_t heads = this->Config.heads;
    const std::int64_t dimension = this->Config.headDimension;
    std::vector<float> joined(3 * heads * dimension);
    for (const auto& [name, kind] :
      { std::pair(&this->Name.queryBias, 0), std::pair(&this->Name.valueBias, 2) })
    {
      const TensorView bias = this->Get(prefix + *name, { heads * dimension });
      for (std::int64_t head = 0; head < heads; ++head)
      {
        const auto first = ToIndex(head * dimension);
        bias.ToFloat(
          first, first + ToIndex(dimension), joined.data() + (3 * head + kind) * dimension);
      }
    }
    const Shape shape = { 3 * heads * dimension };
    return this->Keep(std::move(joined), shape);
  }

  /// Latent attention: queries perhaps, keys and values by two factors. The rows of the second one
  /// of keys and values are, for each head, components of the key that are not rotated, then those
  /// of the value.
  void BindLatent(LayerTensors& layer, const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    const std::int64_t plain = config.headDimension - config.RotatedDimension();
    const std::int64_t queries = config.heads * config.headDimension;
    if (config.queryLatent > 0)
    {
      layer.queryLatent =
        this->GetLinear(prefix, this->Name.queryLatent, d, config.queryLatent, config.inputBias);
      layer.queryLatentNorm =
        this->GetUnfoldedNorm(prefix, this->Name.queryLatentNorm, config.queryLatent);
    }
    layer.query = this->GetLinear(
      prefix, this->Name.query, config.queryLatent > 0 ? config.queryLatent : d, queries, false);
    layer.query.headStep = config.headDimension;
    layer.keyLatent = this->GetLinear(prefix, this->Name.keyLatent, d,
      config.keyLatent + config.RotatedDimension(), config.inputBias);
    layer.keyLatentNorm = this->GetUnfoldedNorm(prefix, this->Name.keyLatentNorm, config.keyLatent);
    if (!this->Name.value.weight.empty())
    {
      this->BindSplitLatent(layer, prefix, plain);
      return;
    }
    layer.key = this->GetLinear(prefix, this->Name.key, config.keyLatent,
      config.heads * (plain + config.ValueDimension()), false);
    layer.key.headStep = plain + config.ValueDimension();
    layer.value = layer.key;
    layer.value.headFirst = plain;
  }

  /// Keys and values from the latent vector as newer GGUF files have them: a tensor of each, with
  /// the inputs of keys before their outputs.
  void BindSplitLatent(LayerTensors& layer, const std::string& prefix, std::int64_t plain)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t values = config.ValueDimension();
    const std::int64_t latent = config.keyLatent;
    layer.key = { this->Get(prefix + this->Name.key.weight, { config.heads, latent, plain }), {},
      WeightLayout::HeadInputOutput, latent, config.heads * plain, 0, plain };
    layer.value = { this->Get(prefix + this->Name.value.weight, { config.heads, values, latent }),
      {}, WeightLayout::OutputInput, latent, config.heads * values, 0, values };
    layer.value.weight.shape = { config.heads * values, latent };
  }

  /// Queries, keys or values in a separate tensor.
  LinearTensors GetHeads(const std::string& prefix, const PairNames& names, std::int64_t heads,
    bool grouped, const TransformerConfig& config)
  {
    LinearTensors linear;
    if (this->Lens)
    {
      // Keys and values that are shared by groups of heads have an underscore: attn._W_K.
      const bool shared = grouped && config.keyHeads != config.heads;
      const auto name = [&](const std::string& end)
      { return prefix + "attn." + (shared ? "_" : "") + end.substr(5); };
      linear = { this->Get(
                   name(names.weight), { heads, config.modelDimension, config.headDimension }),
        this->GetOptional(name(names.bias), { heads, config.headDimension }),
        WeightLayout::HeadInputOutput, config.modelDimension, heads * config.headDimension };
    }
    else
    {
      const bool isOff = (&names == &this->Name.query && !config.queryBias) ||
                         (&names == &this->Name.key && !config.keyBias) ||
                         (&names == &this->Name.value && !config.valueBias);
      const bool hasBias = config.inputBias && !names.bias.empty() && !isOff; // not Whisper's keys
      linear = this->GetLinear(
        prefix, names, config.modelDimension, heads * config.headDimension, hasBias);
    }
    linear.headStep = config.headDimension;
    return linear;
  }

  LinearTensors GetOutput(const std::string& prefix, const TransformerConfig& config)
  {
    const std::int64_t inputs = config.heads * config.ValueDimension();
    const std::int64_t d = config.modelDimension;
    if (!this->Lens)
    {
      return this->GetLinear(prefix, this->Name.output, inputs, d, config.outputBias);
    }
    return { this->Get(
               prefix + this->Name.output.weight, { config.heads, config.headDimension, d }),
      this->GetOptional(prefix + this->Name.output.bias, { d }), WeightLayout::InputOutput, inputs,
      d };
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
