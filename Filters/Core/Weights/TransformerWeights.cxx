#include "TransformerWeights.h"

#include "Error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace atlas
{
namespace
{

/// The order of outputs in a single tensor of queries, keys and values.
enum class Fused
{
  No,
  KindHead, ///< all queries, all keys, all values; each in order of heads
  HeadKind  ///< in order of heads; for each head query, key, value
};

struct NormNames
{
  std::string_view gain;
  std::string_view shift;
};

struct LinearNames
{
  std::string_view weight;
  std::string_view bias;
};

/// The names of the tensors of an architecture. Names in layers are without their prefix, such as
/// "h.3."; an empty name means that there is no such tensor.
struct Names
{
  std::string_view prefix; ///< prefix of the base model; may be missing in a file
  std::string_view tokens;
  std::string_view positions;
  std::string_view segments;
  NormNames embeddingNorm;
  std::string_view layers; ///< prefix before the index of the layer
  WeightLayout layout;
  Fused fused;
  LinearNames query;
  LinearNames key;
  LinearNames value;
  LinearNames output;
  NormNames attentionNorm;
  NormNames mlpNorm;
  LinearNames gate;
  LinearNames up;
  LinearNames down;
  NormNames finalNorm;
  LinearNames unembedding; ///< never with the prefix
  LinearNames transform;   ///< likewise
  NormNames transformNorm; ///< likewise
};

constexpr Names Gpt2Names = { "transformer.", "wte.weight", "wpe.weight", {}, {}, "h.",
  WeightLayout::InputOutput, Fused::KindHead, { "attn.c_attn.weight", "attn.c_attn.bias" }, {}, {},
  { "attn.c_proj.weight", "attn.c_proj.bias" }, { "ln_1.weight", "ln_1.bias" },
  { "ln_2.weight", "ln_2.bias" }, {}, { "mlp.c_fc.weight", "mlp.c_fc.bias" },
  { "mlp.c_proj.weight", "mlp.c_proj.bias" }, { "ln_f.weight", "ln_f.bias" },
  { "lm_head.weight", {} }, {}, {} };

constexpr Names BertNames = { "bert.", "embeddings.word_embeddings.weight",
  "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight",
  { "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias" }, "encoder.layer.",
  WeightLayout::OutputInput, Fused::No,
  { "attention.self.query.weight", "attention.self.query.bias" },
  { "attention.self.key.weight", "attention.self.key.bias" },
  { "attention.self.value.weight", "attention.self.value.bias" },
  { "attention.output.dense.weight", "attention.output.dense.bias" },
  { "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias" },
  { "output.LayerNorm.weight", "output.LayerNorm.bias" }, {},
  { "intermediate.dense.weight", "intermediate.dense.bias" },
  { "output.dense.weight", "output.dense.bias" }, {},
  { "cls.predictions.decoder.weight", "cls.predictions.bias" },
  { "cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias" },
  { "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.bias" } };

constexpr Names VitNames = { "vit.", {}, "embeddings.position_embeddings", {}, {}, "encoder.layer.",
  WeightLayout::OutputInput, Fused::No,
  { "attention.attention.query.weight", "attention.attention.query.bias" },
  { "attention.attention.key.weight", "attention.attention.key.bias" },
  { "attention.attention.value.weight", "attention.attention.value.bias" },
  { "attention.output.dense.weight", "attention.output.dense.bias" },
  { "layernorm_before.weight", "layernorm_before.bias" },
  { "layernorm_after.weight", "layernorm_after.bias" }, {},
  { "intermediate.dense.weight", "intermediate.dense.bias" },
  { "output.dense.weight", "output.dense.bias" }, { "layernorm.weight", "layernorm.bias" }, {}, {},
  {} };

constexpr Names BloomNames = { "transformer.", "word_embeddings.weight", {}, {},
  { "word_embeddings_layernorm.weight", "word_embeddings_layernorm.bias" }, "h.",
  WeightLayout::OutputInput, Fused::HeadKind,
  { "self_attention.query_key_value.weight", "self_attention.query_key_value.bias" }, {}, {},
  { "self_attention.dense.weight", "self_attention.dense.bias" },
  { "input_layernorm.weight", "input_layernorm.bias" },
  { "post_attention_layernorm.weight", "post_attention_layernorm.bias" }, {},
  { "mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias" },
  { "mlp.dense_4h_to_h.weight", "mlp.dense_4h_to_h.bias" }, { "ln_f.weight", "ln_f.bias" },
  { "lm_head.weight", {} }, {}, {} };

constexpr Names LlamaNames = { "model.", "embed_tokens.weight", {}, {}, {}, "layers.",
  WeightLayout::OutputInput, Fused::No, { "self_attn.q_proj.weight", "self_attn.q_proj.bias" },
  { "self_attn.k_proj.weight", "self_attn.k_proj.bias" },
  { "self_attn.v_proj.weight", "self_attn.v_proj.bias" },
  { "self_attn.o_proj.weight", "self_attn.o_proj.bias" }, { "input_layernorm.weight", {} },
  { "post_attention_layernorm.weight", {} }, { "mlp.gate_proj.weight", "mlp.gate_proj.bias" },
  { "mlp.up_proj.weight", "mlp.up_proj.bias" }, { "mlp.down_proj.weight", "mlp.down_proj.bias" },
  { "norm.weight", {} }, { "lm_head.weight", {} }, {}, {} };

constexpr Names LensNames = { {}, "embed.W_E", "pos_embed.W_pos", {},
  { "embed.ln.w", "embed.ln.b" }, "blocks.", WeightLayout::InputOutput, Fused::No,
  { "attn.W_Q", "attn.b_Q" }, { "attn.W_K", "attn.b_K" }, { "attn.W_V", "attn.b_V" },
  { "attn.W_O", "attn.b_O" }, { "ln1.w", "ln1.b" }, { "ln2.w", "ln2.b" },
  { "mlp.W_gate", "mlp.b_gate" }, { "mlp.W_in", "mlp.b_in" }, { "mlp.W_out", "mlp.b_out" },
  { "ln_final.w", "ln_final.b" }, { "unembed.W_U", "unembed.b_U" }, {}, {} };

/// BERT in TransformerLens.
constexpr Names LensEncoderNames = { {}, "embed.embed.W_E", "embed.pos_embed.W_pos",
  "embed.token_type_embed.W_token_type", { "embed.ln.w", "embed.ln.b" }, "blocks.",
  WeightLayout::InputOutput, Fused::No, { "attn.W_Q", "attn.b_Q" }, { "attn.W_K", "attn.b_K" },
  { "attn.W_V", "attn.b_V" }, { "attn.W_O", "attn.b_O" }, { "ln1.w", "ln1.b" },
  { "ln2.w", "ln2.b" }, {}, { "mlp.W_in", "mlp.b_in" }, { "mlp.W_out", "mlp.b_out" }, {},
  { "unembed.W_U", "unembed.b_U" }, { "mlm_head.W", "mlm_head.b" },
  { "mlm_head.ln.w", "mlm_head.ln.b" } };

/// Suffixes of the names of stored tensors that are not weights.
constexpr std::array<std::string_view, 11> Buffers = { "attn.mask", "attn.IGNORE",
  "attn.rotary_sin", "attn.rotary_cos", ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
  "rotary_emb.cos_cached", "rotary_emb.sin_cached", "embeddings.position_ids",
  "embeddings.token_type_ids" };

/// Modules on top of a model, by the first part of their names. What they compute is not part of a
/// recording, but for the logits of those in Names.
constexpr std::array<std::string_view, 8> Heads = { "classifier", "cls", "lm_head", "mlm_head",
  "nsp_head", "pooler", "qa_outputs", "score" };

bool EndsWith(std::string_view text, std::string_view end)
{
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

const Names& HuggingFaceNames(const std::string& architecture)
{
  if (architecture == "bert")
  {
    return BertNames;
  }
  if (architecture == "vit")
  {
    return VitNames;
  }
  if (architecture == "bloom")
  {
    return BloomNames;
  }
  return architecture == "llama" ? LlamaNames : Gpt2Names;
}

class Binder
{
public:
  Binder(const TransformerConfig& config, const WeightFiles& files)
    : Config(config)
    , Files(files)
    , Lens(config.architecture == "transformer_lens" || this->Has(LensNames.tokens) ||
           this->Has(LensEncoderNames.tokens))
    , Name(this->ChooseNames())
    , Prefix(this->FindPrefix())
  {
  }

  TransformerWeights Bind()
  {
    this->Weights.normsAreFolded = this->Config.normsAreFolded ||
                                   (this->Lens && this->Config.norm != NormKind::None &&
                                     !this->Has(this->LayerName(0, this->Name.attentionNorm.gain)));
    this->Weights.processing = this->Weights.normsAreFolded ? WeightProcessing::Processed
                               : this->Lens                 ? WeightProcessing::Unknown
                                                            : WeightProcessing::Unprocessed;
    this->BindEmbedding();
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      this->Weights.layers.push_back(this->BindLayer(l));
    }
    if (this->Config.finalNorm)
    {
      this->Weights.finalNorm = this->GetNorm(this->Prefix, this->Name.finalNorm);
    }
    this->BindUnembedding();
    this->CheckUnused();
    return std::move(this->Weights);
  }

private:
  const TransformerConfig& Config;
  const WeightFiles& Files;
  bool Lens; ///< TransformerLens' names
  const Names& Name;
  std::string Prefix;
  std::set<std::string, std::less<>> Used;
  TransformerWeights Weights;

  [[noreturn]] void Fail(std::string_view tensor, const std::string& message) const
  {
    throw ModelError(
      this->Files.FileOf(tensor) + ": tensor '" + std::string(tensor) + "'" + message);
  }

  const Names& ChooseNames() const
  {
    if (!this->Lens)
    {
      return HuggingFaceNames(this->Config.architecture);
    }
    return this->Has(LensEncoderNames.tokens) ? LensEncoderNames : LensNames;
  }

  /// The prefix of the base model's names in this file.
  std::string FindPrefix() const
  {
    const std::string prefix(this->Name.prefix);
    const std::string_view first =
      this->Name.tokens.empty() ? this->Name.positions : this->Name.tokens;
    return this->Has(prefix + std::string(first)) ? prefix : std::string();
  }

  bool Has(std::string_view name) const { return this->Files.GetTensors().count(name) != 0; }

  std::string LayerName(std::int64_t layer, std::string_view name) const
  {
    return this->LayerPrefix(layer) + std::string(name);
  }

  std::string LayerPrefix(std::int64_t layer) const
  {
    return this->Prefix + std::string(this->Name.layers) + std::to_string(layer) + ".";
  }

  /// A floating-point tensor of any shape.
  const TensorView& Get(const std::string& name)
  {
    const auto found = this->Files.GetTensors().find(name);
    if (found == this->Files.GetTensors().end())
    {
      this->Fail(name, " is missing.");
    }
    const TensorView& view = found->second;
    if (!IsFloating(view.dtype))
    {
      this->Fail(name,
        ": expected F32, F16, BF16 or F64, found " + std::string(atlas::Name(view.dtype)) + ".");
    }
    this->Used.insert(name);
    return view;
  }

  TensorView Get(const std::string& name, const Shape& shape)
  {
    const TensorView& view = this->Get(name);
    if (view.shape != shape)
    {
      this->Fail(name, ": expected shape " + ToString(shape) + " by the configuration, found " +
                         ToString(view.shape) + ".");
    }
    return view;
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

  /// A normalization. Its gain and shift may be folded into the next weights.
  NormTensors GetNorm(const std::string& prefix, const NormNames& names)
  {
    return this->Weights.normsAreFolded ? NormTensors() : this->GetUnfoldedNorm(prefix, names);
  }

  NormTensors GetUnfoldedNorm(const std::string& prefix, const NormNames& names)
  {
    NormTensors norm;
    if (this->Config.norm == NormKind::None)
    {
      return norm;
    }
    const Shape shape = { this->Config.modelDimension };
    norm.gain = this->Get(
      this->OldName(prefix + std::string(names.gain), "LayerNorm.weight", "LayerNorm.gamma"),
      shape);
    if (this->Config.norm == NormKind::LayerNorm)
    {
      norm.shift = this->Get(
        this->OldName(prefix + std::string(names.shift), "LayerNorm.bias", "LayerNorm.beta"),
        shape);
    }
    return norm;
  }

  /// A matrix with its bias. `bias` states whether the configuration has one; with TransformerLens
  /// names it may be missing, which means 0.
  LinearTensors GetLinear(const std::string& prefix, const LinearNames& names, std::int64_t inputs,
    std::int64_t outputs, bool bias)
  {
    return this->GetLinear(prefix, names, inputs, outputs, bias, this->Name.layout);
  }

  LinearTensors GetLinear(const std::string& prefix, const LinearNames& names, std::int64_t inputs,
    std::int64_t outputs, bool bias, WeightLayout layout)
  {
    LinearTensors linear;
    linear.layout = layout;
    linear.inputs = inputs;
    linear.outputs = outputs;
    linear.weight = this->Get(prefix + std::string(names.weight),
      layout == WeightLayout::OutputInput ? Shape{ outputs, inputs } : Shape{ inputs, outputs });
    const std::string biasName = prefix + std::string(names.bias);
    if (this->Lens)
    {
      linear.bias = this->GetOptional(biasName, { outputs });
    }
    else if (bias)
    {
      linear.bias = this->Get(biasName, { outputs });
    }
    return linear;
  }

  void BindEmbedding()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    if (config.input == InputKind::Images)
    {
      this->BindPatchEmbedding();
    }
    else
    {
      this->Weights.tokenEmbedding =
        this->Get(this->Prefix + std::string(this->Name.tokens), { config.vocabulary, d });
    }
    if (config.position == PositionKind::Learned || config.position == PositionKind::Shortformer)
    {
      const Shape shape = config.input == InputKind::Images ? Shape{ 1, config.positions, d }
                                                            : Shape{ config.positions, d };
      this->Weights.positionEmbedding =
        this->Get(this->Prefix + std::string(this->Name.positions), shape);
    }
    else
    {
      // TransformerLens may store one even if it is not used.
      this->Used.emplace(LensNames.positions);
    }
    if (config.segments > 0)
    {
      this->Weights.segmentEmbedding =
        this->Get(this->Prefix + std::string(this->Name.segments), { config.segments, d });
    }
    if (config.embeddingNorm)
    {
      this->Weights.embeddingNorm = this->GetUnfoldedNorm(this->Prefix, this->Name.embeddingNorm);
    }
  }

  /// A convolution whose stride equals its size is a matrix on the pixels of a patch.
  void BindPatchEmbedding()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t d = config.modelDimension;
    const std::string prefix = this->Prefix + "embeddings.";
    LinearTensors& linear = this->Weights.patchEmbedding;
    linear.weight = this->Get(prefix + "patch_embeddings.projection.weight",
      { d, config.channels, config.patchHeight, config.patchWidth });
    linear.bias = this->Get(prefix + "patch_embeddings.projection.bias", { d });
    linear.inputs = config.channels * config.patchHeight * config.patchWidth;
    linear.outputs = d;
    this->Weights.classToken = this->Get(prefix + "cls_token", { 1, 1, d });
  }

  LayerTensors BindLayer(std::int64_t l)
  {
    const TransformerConfig& config = this->Config;
    const std::string prefix = this->LayerPrefix(l);
    const std::int64_t d = config.modelDimension;
    LayerTensors layer;
    layer.attentionNorm = this->GetNorm(prefix, this->Name.attentionNorm);
    if (this->Name.fused != Fused::No)
    {
      this->BindFused(layer, prefix);
    }
    else
    {
      layer.query = this->GetHeads(prefix, this->Name.query, config.heads, false);
      layer.key = this->GetHeads(prefix, this->Name.key, config.keyHeads, true);
      layer.value = this->GetHeads(prefix, this->Name.value, config.keyHeads, true);
    }
    layer.output = this->GetOutput(prefix);
    if (config.mlpDimension > 0)
    {
      layer.mlpNorm = this->GetNorm(prefix, this->Name.mlpNorm);
      const std::int64_t hidden = config.mlpDimension;
      if (config.gated)
      {
        layer.gate = this->GetLinear(prefix, this->Name.gate, d, hidden, config.mlpBias);
      }
      layer.up = this->GetLinear(prefix, this->Name.up, d, hidden, config.mlpBias);
      if (config.gated && this->Lens)
      {
        this->RequireZero(prefix + std::string(this->Name.up.bias), layer.up.bias);
      }
      layer.down = this->GetLinear(prefix, this->Name.down, hidden, d, config.mlpBias);
    }
    return layer;
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
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t all = this->Config.heads * dimension;
    const LinearTensors fused = this->GetLinear(
      prefix, this->Name.query, this->Config.modelDimension, 3 * all, this->Config.inputBias);
    std::int64_t kind = 0;
    for (LinearTensors* linear : { &layer.query, &layer.key, &layer.value })
    {
      *linear = fused;
      const bool byHead = this->Name.fused == Fused::HeadKind;
      linear->headFirst = kind * (byHead ? dimension : all);
      linear->headStep = byHead ? 3 * dimension : dimension;
      ++kind;
    }
  }

  /// Queries, keys or values in a separate tensor.
  LinearTensors GetHeads(
    const std::string& prefix, const LinearNames& names, std::int64_t heads, bool grouped)
  {
    const TransformerConfig& config = this->Config;
    LinearTensors linear;
    if (this->Lens)
    {
      // Keys and values that are shared by groups of heads have an underscore: attn._W_K.
      const bool shared = grouped && config.keyHeads != config.heads;
      const auto name = [&](std::string_view end)
      { return prefix + "attn." + (shared ? "_" : "") + std::string(end.substr(5)); };
      linear.weight =
        this->Get(name(names.weight), { heads, config.modelDimension, config.headDimension });
      linear.bias = this->GetOptional(name(names.bias), { heads, config.headDimension });
      linear.layout = WeightLayout::HeadInputOutput;
      linear.inputs = config.modelDimension;
      linear.outputs = heads * config.headDimension;
    }
    else
    {
      linear = this->GetLinear(
        prefix, names, config.modelDimension, heads * config.headDimension, config.inputBias);
    }
    linear.headStep = config.headDimension;
    return linear;
  }

  LinearTensors GetOutput(const std::string& prefix)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t inputs = config.heads * config.headDimension;
    const std::int64_t d = config.modelDimension;
    if (!this->Lens)
    {
      return this->GetLinear(prefix, this->Name.output, inputs, d, config.outputBias);
    }
    LinearTensors linear;
    linear.layout = WeightLayout::InputOutput;
    linear.inputs = inputs;
    linear.outputs = d;
    linear.weight = this->Get(
      prefix + std::string(this->Name.output.weight), { config.heads, config.headDimension, d });
    linear.bias = this->GetOptional(prefix + std::string(this->Name.output.bias), { d });
    return linear;
  }

  /// A separate unembedding, the token embedding if they are tied, or none.
  void BindUnembedding()
  {
    const TransformerConfig& config = this->Config;
    const std::string name(this->Name.unembedding.weight);
    const std::int64_t d = config.modelDimension;
    LinearTensors& linear = this->Weights.unembedding;
    if (config.architecture == "bert" && !this->BindTransform())
    {
      return;
    }
    if (!name.empty() && this->Has(name))
    {
      const WeightLayout layout =
        this->Lens ? WeightLayout::InputOutput : WeightLayout::OutputInput;
      linear = this->GetLinear({}, { name, {} }, d, config.outputVocabulary, false, layout);
    }
    else if (config.tiedUnembedding)
    {
      linear.weight = this->Weights.tokenEmbedding;
      linear.inputs = d;
      linear.outputs = config.vocabulary;
    }
    if (linear.Exists())
    {
      linear.bias = this->GetOptional(std::string(this->Name.unembedding.bias), { linear.outputs });
      this->Used.emplace("cls.predictions.decoder.bias"); // a copy of the bias
    }
  }

  /// The head that predicts masked words; false for a model without it.
  bool BindTransform()
  {
    const LinearNames& names = this->Name.transform;
    if (!this->Has(names.weight))
    {
      return false;
    }
    const std::int64_t d = this->Config.modelDimension;
    this->Weights.logitsTransform = this->GetLinear({}, names, d, d, true);
    this->Weights.logitsNorm = this->GetNorm({}, this->Name.transformNorm);
    return true;
  }

  /// The layer that a tensor belongs to, or -1.
  std::int64_t LayerOf(std::string_view name) const
  {
    const std::string prefix = this->Prefix + std::string(this->Name.layers);
    std::int64_t layer = -1;
    if (name.substr(0, prefix.size()) == prefix)
    {
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    }
    return layer;
  }

  /// Whether a tensor outside of the layers is part of a normalization, and not of a head. In a
  /// file whose names have the prefix of the base model, the others belong to heads.
  bool IsNorm(std::string_view name) const
  {
    if (name.substr(0, this->Prefix.size()) != this->Prefix)
    {
      return false;
    }
    name.remove_prefix(this->Prefix.size());
    const std::string_view module = name.substr(0, name.find('.'));
    if (std::find(Heads.begin(), Heads.end(), module) != Heads.end())
    {
      return false;
    }
    std::string lower(name.substr(0, std::min(name.rfind('.'), name.size())));
    std::transform(lower.begin(), lower.end(), lower.begin(),
      [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return lower.find("norm") != std::string::npos || lower.substr(0, 3) == "ln_" ||
           EndsWith(lower, ".ln");
  }

  /// Results without a tensor of a layer or a normalization would be wrong; those of a head are
  /// none of the recording.
  void CheckUnused()
  {
    for (const auto& [name, view] : this->Files.GetTensors())
    {
      const std::string_view text = name;
      if (this->LayerOf(text) >= this->Config.layers)
      {
        this->Fail(name, ": the configuration has only " + std::to_string(this->Config.layers) +
                           " layers, from 0.");
      }
      if (this->Used.count(text) == 0 &&
          std::none_of(Buffers.begin(), Buffers.end(),
            [text](std::string_view buffer) { return EndsWith(text, buffer); }))
      {
        if (this->LayerOf(text) >= 0 || this->IsNorm(text))
        {
          this->Fail(name, ": the attention, MLPs and normalizations of " +
                             this->Config.architecture +
                             ", as configured, have no such tensor, and results without it would "
                             "be wrong; expected the architecture that the model was made for.");
        }
        this->Weights.unused.push_back(name);
      }
    }
  }
};

}

TransformerWeights BindTransformerWeights(const TransformerConfig& config, const WeightFiles& files)
{
  return Binder(config, files).Bind();
}

}
