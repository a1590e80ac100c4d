#include "TensorNames.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Base/TextEnds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

namespace atlas
{
namespace
{

/// What the words of a NameSet set.
using Role = std::variant<std::string TensorNames::*, PairNames TensorNames::*,
  WeightLayout TensorNames::*, Fused TensorNames::*>;
#define ROLE(name) { #name, &TensorNames::name }
constexpr std::array<Named<Role>, 65> Roles = { { ROLE(attentionAfter), ROLE(attentionNorm),
  ROLE(attentionScale), ROLE(classToken), ROLE(crossAfter), ROLE(crossKey), ROLE(crossNorm), ROLE(crossOutput),
  ROLE(crossQuery), ROLE(crossValue), ROLE(distanceEmbedding), ROLE(distanceNorm),
  ROLE(distillationToken), ROLE(down), ROLE(embeddingNorm),
  ROLE(expertsDown), ROLE(expertsGate), ROLE(expertsUp), ROLE(finalNorm), ROLE(firstConvolution),
  ROLE(frequencies), ROLE(fused), ROLE(gate), ROLE(key), ROLE(keyLatent), ROLE(keyLatentNorm), ROLE(keyNorm),
  ROLE(layers), ROLE(layout), ROLE(mlpAfter), ROLE(mlpNorm), ROLE(mlpScale), ROLE(output),
  ROLE(patches), ROLE(positionKey), ROLE(positionQuery), ROLE(positions), ROLE(prefix), ROLE(projectIn), ROLE(projectOut), ROLE(query),
  ROLE(queryBias), ROLE(queryLatent), ROLE(queryLatentNorm), ROLE(queryNorm), ROLE(registers), ROLE(relativeBias),
  ROLE(router), ROLE(secondConvolution), ROLE(segments), ROLE(sharedBias), ROLE(sharedDown), ROLE(sharedFactor),
  ROLE(sharedGate), ROLE(sharedTokens), ROLE(sharedUp), ROLE(sinks), ROLE(tasks), ROLE(tokens), ROLE(transform),
  ROLE(transformNorm), ROLE(unembedding), ROLE(up), ROLE(value), ROLE(valueBias) } };
#undef ROLE

/// The names of architectures as words ROLE=NAME; those of `base` hold where it says nothing. Of a
/// linear map or normalization NAME+ is NAME.weight and NAME.bias, NAME is NAME.weight alone, and
/// two whole names have a | between them.
struct NameSet
{
  std::string_view architectures; ///< perhaps with a variant behind a slash; see NamesFor
  std::string_view base;
  std::string_view words;
};
constexpr std::array<NameSet, 48> NameSets = { {
  { "gpt2", "",
    "prefix=transformer. tokens=wte.weight positions=wpe.weight layers=h. layout=InputOutput "
    "fused=KindHead query=attn.c_attn+ output=attn.c_proj+ attentionNorm=ln_1+ mlpNorm=ln_2+ "
    "up=mlp.c_fc+ down=mlp.c_proj+ finalNorm=ln_f+ unembedding=lm_head" },
  // nn.Linear where GPT-2 has its own matrices, and no shifts without biases
  { "nanogpt", "gpt2", "layout=OutputInput" },
  { "nanogpt/unbiased", "nanogpt", "attentionNorm=ln_1 mlpNorm=ln_2 finalNorm=ln_f" },
  { "gptj", "gpt2",
    "layout=OutputInput fused=No positions= query=attn.q_proj key=attn.k_proj value=attn.v_proj "
    "output=attn.out_proj mlpNorm= up=mlp.fc_in+ down=mlp.fc_out+ unembedding=lm_head+" },
  { "gpt_neo", "gpt2",
    "layout=OutputInput fused=No query=attn.attention.q_proj key=attn.attention.k_proj "
    "value=attn.attention.v_proj output=attn.attention.out_proj+" },
  { "bloom", "",
    "prefix=transformer. tokens=word_embeddings.weight embeddingNorm=word_embeddings_layernorm+ "
    "layers=h. fused=HeadKind query=self_attention.query_key_value+ output=self_attention.dense+ "
    "attentionNorm=input_layernorm+ mlpNorm=post_attention_layernorm+ up=mlp.dense_h_to_4h+ "
    "down=mlp.dense_4h_to_h+ finalNorm=ln_f+ unembedding=lm_head" },
  { "gpt_neox", "bloom",
    "prefix=gpt_neox. tokens=embed_in.weight embeddingNorm= layers=layers. "
    "query=attention.query_key_value+ output=attention.dense+ finalNorm=final_layer_norm+ "
    "unembedding=embed_out" },
  { "bert", "",
    "prefix=bert. tokens=embeddings.word_embeddings.weight "
    "positions=embeddings.position_embeddings.weight "
    "segments=embeddings.token_type_embeddings.weight embeddingNorm=embeddings.LayerNorm+ "
    "layers=encoder.layer. query=attention.self.query+ key=attention.self.key+ "
    "value=attention.self.value+ output=attention.output.dense+ "
    "attentionNorm=attention.output.LayerNorm+ mlpNorm=output.LayerNorm+ up=intermediate.dense+ "
    "down=output.dense+ unembedding=cls.predictions.decoder.weight|cls.predictions.bias "
    "transform=cls.predictions.transform.dense+ "
    "transformNorm=cls.predictions.transform.LayerNorm+" },
  { "roberta camembert xlm-roberta", "bert",
    "prefix=roberta. unembedding=lm_head.decoder.weight|lm_head.bias transform=lm_head.dense+ "
    "transformNorm=lm_head.layer_norm+" },
  { "distilbert", "bert",
    "prefix=distilbert. segments= layers=transformer.layer. query=attention.q_lin+ "
    "key=attention.k_lin+ value=attention.v_lin+ output=attention.out_lin+ "
    "attentionNorm=sa_layer_norm+ up=ffn.lin1+ down=ffn.lin2+ mlpNorm=output_layer_norm+ "
    "unembedding=vocab_projector+ transform=vocab_transform+ transformNorm=vocab_layer_norm+" },
  { "vit", "",
    "prefix=vit. positions=embeddings.position_embeddings "
    "patches=embeddings.patch_embeddings.projection+ classToken=embeddings.cls_token "
    "layers=encoder.layer. query=attention.attention.query+ key=attention.attention.key+ "
    "value=attention.attention.value+ output=attention.output.dense+ "
    "attentionNorm=layernorm_before+ mlpNorm=layernorm_after+ up=intermediate.dense+ "
    "down=output.dense+ finalNorm=layernorm+" },
  { "deit", "vit", "prefix=deit. distillationToken=embeddings.distillation_token" },
  { "dinov2", "vit",
    "prefix=dinov2. attentionNorm=norm1+ mlpNorm=norm2+ up=mlp.fc1+ down=mlp.fc2+ "
    "attentionScale=layer_scale1.lambda1 mlpScale=layer_scale2.lambda1" },
  { "dinov2/gated", "dinov2", "gate=mlp.weights_in+ up= down=mlp.weights_out+" },
  { "dinov2_with_registers", "dinov2",
    "prefix=dinov2_with_registers. registers=embeddings.register_tokens" },
  { "dinov2_with_registers/gated", "dinov2/gated",
    "prefix=dinov2_with_registers. registers=embeddings.register_tokens" },
  { "internvl_vision", "vit",
    "prefix=vision_tower. query=attention.q_proj+ key=attention.k_proj+ value=attention.v_proj+ "
    "output=attention.projection_layer+ queryNorm=attention.q_norm keyNorm=attention.k_norm "
    "up=mlp.fc1+ down=mlp.fc2+ attentionScale=lambda_1 mlpScale=lambda_2" },
  { "clip_text_model", "",
    "prefix=text_model. tokens=embeddings.token_embedding.weight "
    "positions=embeddings.position_embedding.weight layers=encoder.layers. "
    "query=self_attn.q_proj+ key=self_attn.k_proj+ value=self_attn.v_proj+ "
    "output=self_attn.out_proj+ attentionNorm=layer_norm1+ mlpNorm=layer_norm2+ up=mlp.fc1+ "
    "down=mlp.fc2+ finalNorm=final_layer_norm+" },
  { "clip_vision_model", "clip_text_model",
    "prefix=vision_model. tokens= patches=embeddings.patch_embedding "
    "classToken=embeddings.class_embedding embeddingNorm=pre_layrnorm+ " // sic
    "finalNorm=post_layernorm+" },
  { "siglip_vision_model smolvlm_vision", "clip_vision_model",
    "patches=embeddings.patch_embedding+ classToken= embeddingNorm=" },
  { "qwen2_vl/encoder", "",
    "prefix=visual. patches=patch_embed.proj layers=blocks. fused=KindHead query=attn.qkv+ "
    "output=attn.proj+ attentionNorm=norm1+ mlpNorm=norm2+ up=mlp.fc1+ down=mlp.fc2+" },
  { "qwen2_5_vl/encoder", "qwen2_vl/encoder",
    "gate=mlp.gate_proj+ up=mlp.up_proj+ down=mlp.down_proj+" },
  { "llama", "",
    "prefix=model. tokens=embed_tokens.weight layers=layers. query=self_attn.q_proj+ "
    "key=self_attn.k_proj+ value=self_attn.v_proj+ output=self_attn.o_proj+ "
    "attentionNorm=input_layernorm mlpNorm=post_attention_layernorm gate=mlp.gate_proj+ "
    "up=mlp.up_proj+ down=mlp.down_proj+ finalNorm=norm unembedding=lm_head" },
  { "meta_llama", "llama", // Meta's own names
    "prefix= tokens=tok_embeddings.weight query=attention.wq key=attention.wk value=attention.wv "
    "output=attention.wo attentionNorm=attention_norm mlpNorm=ffn_norm gate=feed_forward.w1 "
    "up=feed_forward.w3 down=feed_forward.w2 unembedding=output" },
  { "qwen3 idefics3 internvl llava smolvlm", "llama",
    "queryNorm=self_attn.q_norm keyNorm=self_attn.k_norm" },
  { "gemma2 gemma3 gemma3_text", "qwen3",
    "attentionAfter=post_attention_layernorm mlpNorm=pre_feedforward_layernorm "
    "mlpAfter=post_feedforward_layernorm" },
  { "phi", "llama",
    "output=self_attn.dense+ attentionNorm=input_layernorm+ mlpNorm= gate= up=mlp.fc1+ "
    "down=mlp.fc2+ finalNorm=final_layernorm+ unembedding=lm_head+ "
    "queryNorm=self_attn.q_layernorm+ keyNorm=self_attn.k_layernorm+" },
  { "phi3", "llama",
    "fused=KindHead query=self_attn.qkv_proj key= value= gate=mlp.gate_up_proj up=" },
  { "stablelm", "llama",
    "attentionNorm=input_layernorm+ mlpNorm=post_attention_layernorm+ finalNorm=norm+ "
    "queryNorm=self_attn.q_layernorm.norms.* keyNorm=self_attn.k_layernorm.norms.*" },
  { "gpt_oss", "llama",
    "gate= up= down= sinks=self_attn.sinks router=mlp.router+ "
    "expertsGate=mlp.experts.gate_up_proj|mlp.experts.gate_up_proj_bias "
    "expertsDown=mlp.experts.down_proj|mlp.experts.down_proj_bias" },
  { "mixtral", "llama",
    "router=block_sparse_moe.gate expertsGate=block_sparse_moe.experts.*.w1 "
    "expertsUp=block_sparse_moe.experts.*.w3 expertsDown=block_sparse_moe.experts.*.w2" },
  // Qwen2-MoE has no normalizations of queries and keys, the others have no shared expert.
  { "olmoe qwen2_moe qwen3_moe", "qwen3",
    "router=mlp.gate expertsGate=mlp.experts.*.gate_proj expertsUp=mlp.experts.*.up_proj "
    "expertsDown=mlp.experts.*.down_proj sharedGate=mlp.shared_expert.gate_proj "
    "sharedUp=mlp.shared_expert.up_proj sharedDown=mlp.shared_expert.down_proj "
    "sharedFactor=mlp.shared_expert_gate" },
  { "deepseek_v2/direct", "olmoe",
    "queryNorm= keyNorm= keyLatent=self_attn.kv_a_proj_with_mqa "
    "keyLatentNorm=self_attn.kv_a_layernorm key=self_attn.kv_b_proj value= "
    "sharedGate=mlp.shared_experts.gate_proj sharedUp=mlp.shared_experts.up_proj "
    "sharedDown=mlp.shared_experts.down_proj sharedFactor=" },
  { "deepseek_v2", "deepseek_v2/direct",
    "queryLatent=self_attn.q_a_proj queryLatentNorm=self_attn.q_a_layernorm "
    "query=self_attn.q_b_proj" },
  { "opt", "llama",
    "prefix=model.decoder. positions=embed_positions.weight output=self_attn.out_proj+ "
    "attentionNorm=self_attn_layer_norm+ mlpNorm=final_layer_norm+ gate= up=fc1+ down=fc2+ "
    "finalNorm=final_layer_norm+ projectIn=project_in projectOut=project_out" },
  // The embedding of a stack, in the order in which the original code would take it: its own, the
  // shared one, or the other stack's.
  { "bart/encoder marian/encoder mbart/encoder pegasus/encoder", "opt",
    "prefix=model.encoder. tokens= "
    "sharedTokens=encoder.embed_tokens.weight,shared.weight,decoder.embed_tokens.weight "
    "embeddingNorm=layernorm_embedding+ finalNorm=layer_norm+ projectIn= projectOut= "
    "unembedding=" },
  { "bart marian mbart pegasus", "bart/encoder",
    "prefix=model.decoder. "
    "sharedTokens=decoder.embed_tokens.weight,shared.weight,encoder.embed_tokens.weight "
    "crossQuery=encoder_attn.q_proj+ crossKey=encoder_attn.k_proj+ "
    "crossValue=encoder_attn.v_proj+ crossOutput=encoder_attn.out_proj+ "
    "crossNorm=encoder_attn_layer_norm+ unembedding=lm_head.weight|final_logits_bias" },
  { "whisper/encoder", "bart/encoder",
    "sharedTokens= key=self_attn.k_proj firstConvolution=conv1+ secondConvolution=conv2+" },
  { "whisper", "bart",
    "tokens=embed_tokens.weight sharedTokens= key=self_attn.k_proj crossKey=encoder_attn.k_proj "
    "unembedding=proj_out" },
  { "t5/encoder mt5/encoder", "",
    "prefix=encoder. "
    "sharedTokens=encoder.embed_tokens.weight,shared.weight,decoder.embed_tokens.weight "
    "layers=block. relativeBias=block.0.layer.0.SelfAttention.relative_attention_bias.weight "
    "query=layer.0.SelfAttention.q key=layer.0.SelfAttention.k value=layer.0.SelfAttention.v "
    "output=layer.0.SelfAttention.o attentionNorm=layer.0.layer_norm "
    "gate=layer.1.DenseReluDense.wi_0 up=layer.1.DenseReluDense.wi "
    "down=layer.1.DenseReluDense.wo mlpNorm=layer.1.layer_norm finalNorm=final_layer_norm" },
  { "t5/encoder/gated mt5/encoder/gated", "t5/encoder", "up=layer.1.DenseReluDense.wi_1" },
  { "t5 mt5", "t5/encoder",
    "prefix=decoder. "
    "sharedTokens=decoder.embed_tokens.weight,shared.weight,encoder.embed_tokens.weight "
    "crossQuery=layer.1.EncDecAttention.q crossKey=layer.1.EncDecAttention.k "
    "crossValue=layer.1.EncDecAttention.v crossOutput=layer.1.EncDecAttention.o "
    "crossNorm=layer.1.layer_norm gate=layer.2.DenseReluDense.wi_0 "
    "up=layer.2.DenseReluDense.wi down=layer.2.DenseReluDense.wo mlpNorm=layer.2.layer_norm "
    "unembedding=lm_head" },
  { "t5/gated mt5/gated", "t5", "up=layer.2.DenseReluDense.wi_1" },
  { "lens", "", // TransformerLens
    "tokens=embed.W_E positions=pos_embed.W_pos embeddingNorm=embed.ln.w|embed.ln.b "
    "layers=blocks. layout=InputOutput query=attn.W_Q|attn.b_Q key=attn.W_K|attn.b_K "
    "value=attn.W_V|attn.b_V output=attn.W_O|attn.b_O attentionNorm=ln1.w|ln1.b "
    "mlpNorm=ln2.w|ln2.b gate=mlp.W_gate|mlp.b_gate up=mlp.W_in|mlp.b_in "
    "down=mlp.W_out|mlp.b_out finalNorm=ln_final.w|ln_final.b "
    "unembedding=unembed.W_U|unembed.b_U" },
  { "lens/encoder", "lens",
    "tokens=embed.embed.W_E positions=embed.pos_embed.W_pos "
    "segments=embed.token_type_embed.W_token_type gate= finalNorm= "
    "transform=mlm_head.W|mlm_head.b transformNorm=mlm_head.ln.w|mlm_head.ln.b" },
  { "bridge", "", // TransformerBridge
    "tokens=embed.weight positions=pos_embed.weight layers=blocks. query=attn.q+ key=attn.k+ "
    "value=attn.v+ output=attn.o+ attentionNorm=ln1+ mlpNorm=ln2+ attentionAfter=ln1_post+ "
    "mlpAfter=ln2_post+ queryNorm=attn.q_norm+ keyNorm=attn.k_norm+ gate=mlp.gate+ up=mlp.in+ "
    "down=mlp.out+ finalNorm=ln_final+" },
  { "bridge/fused", "bridge", "query=attn.qkv+" },
  { "gguf", "", // llama.cpp
    "tokens=token_embd.weight positions=position_embd.weight segments=token_types.weight "
    "embeddingNorm=token_embd_norm+ layers=blk. query=attn_q+ key=attn_k+ value=attn_v+ "
    "output=attn_output+ attentionNorm=attn_norm+ mlpNorm=ffn_norm+ gate=ffn_gate+ up=ffn_up+ "
    "down=ffn_down+ finalNorm=output_norm+ unembedding=output+ queryNorm=attn_q_norm "
    "keyNorm=attn_k_norm attentionAfter=post_attention_norm mlpAfter=post_ffw_norm "
    "router=ffn_gate_inp expertsGate=ffn_gate_exps expertsUp=ffn_up_exps "
    "expertsDown=ffn_down_exps sharedGate=ffn_gate_shexp sharedUp=ffn_up_shexp "
    "sharedDown=ffn_down_shexp sharedFactor=ffn_gate_inp_shexp" },
} };

PairNames ToPair(std::string_view name)
{
  const std::size_t bar = name.find('|');
  if (bar != std::string_view::npos)
  {
    return { std::string(name.substr(0, bar)), std::string(name.substr(bar + 1)) };
  }
  const bool hasBias = EndsWith(name, "+");
  const std::string stem(name.substr(0, name.size() - (hasBias ? 1 : 0)));
  return { name.empty() ? "" : stem + ".weight", hasBias ? stem + ".bias" : "" };
}

void Set(std::string& own, std::string_view name)
{
  own = name;
}
void Set(PairNames& own, std::string_view name)
{
  own = ToPair(name);
}
void Set(WeightLayout& own, std::string_view name)
{
  own = name == "InputOutput" ? WeightLayout::InputOutput : WeightLayout::OutputInput;
}
void Set(Fused& own, std::string_view name)
{
  own = name == "KindHead" ? Fused::KindHead : name == "HeadKind" ? Fused::HeadKind : Fused::No;
}

/// Sets names by words like those of a NameSet.
void SetNames(TensorNames& names, std::string_view words)
{
  while (!words.empty())
  {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::size_t sign = word.find('=');
    std::visit([&](auto role) { Set(names.*role, word.substr(sign + 1)); },
      ParseNamed<Error>(Roles, word.substr(0, sign), "names of tensors"));
  }
}

using SetsByName = std::map<std::string, TensorNames, std::less<>>;

const SetsByName& AllNames()
{
  static const SetsByName all = []
  {
    SetsByName sets;
    for (const NameSet& set : NameSets)
    {
      TensorNames names = set.base.empty() ? TensorNames() : sets.find(set.base)->second;
      SetNames(names, set.words);
      std::istringstream architectures{ std::string(set.architectures) };
      for (std::string name; architectures >> name;)
      {
        sets.emplace(name, names);
      }
    }
    return sets;
  }();
  return all;
}

/// Suffixes of the names of stored tensors that are not weights.
constexpr std::array<std::string_view, 23> Buffers = { "attn.mask", "attention.mask", "attn.IGNORE",
  "attn.rotary_sin", "attn.rotary_cos", ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
  "rotary_emb.cos_cached", "rotary_emb.sin_cached", "embeddings.position_ids",
  "embeddings.token_type_ids", ".attention.bias", ".attention.masked_bias", "attn.embed_positions",
  "embeddings.mask_token", "relative_position_index",
  "rotary_embeddings.inv_freq", "embed_positions.weights", "rope.freqs", "freqs_cos", "freqs_sin",
  "EncDecAttention.relative_attention_bias.weight" };

constexpr std::array<std::string_view, 17> Heads = { "classifier", "cls", "cls_classifier",
  "distillation_classifier", "embed_out", "head", "lm_head", "mlm_head", "nsp_head", "pooler",
  "pre_classifier", "qa_outputs", "score", "vocab_layer_norm", "vocab_projector", "vocab_transform",
  "logit_scale" };

/// What is named in both is called as in `bridge`.
void Rename(std::string& own, const std::string& bridge)
{
  own = own.empty() || bridge.empty() ? own : bridge;
}
void Rename(PairNames& own, const PairNames& bridge)
{
  Rename(own.weight, bridge.weight);
  Rename(own.bias, bridge.bias);
}
template<class Kind>
void Rename(Kind& /*own*/, const Kind& /*bridge*/)
{
}

}

const TensorNames& LensNames()
{
  return AllNames().at("lens");
}

const TensorNames& LensEncoderNames()
{
  return AllNames().at("lens/encoder");
}

const TensorNames& NamesFor(const TransformerConfig& config)
{
  const std::array<std::pair<bool, const char*>, 4> variants = { {
    { config.mask == AttentionMask::Bidirectional, "/encoder" },
    { config.gated, "/gated" },
    { !config.mlpBias, "/unbiased" },
    { config.queryLatent == 0, "/direct" },
  } };
  const SetsByName& all = AllNames();
  std::string name = config.architecture;
  for (const auto& [has, variant] : variants)
  {
    name += has && all.count(name + variant) != 0 ? variant : "";
  }
  const auto found = all.find(name);
  return found != all.end() ? found->second : all.at("llama");
}

ProjectorNames ProjectorNamesFor(const TransformerConfig& config)
{
  if (!config.vision->projectorHasTwo)
  {
    return { {}, ToPair("connector.modality_projection.proj"), {} };
  }
  if (config.vision->projectorNorm == VisionConfig::ProjectorNorm::OfPatches)
  {
    return { ToPair("merger.ln_q+"), ToPair("merger.mlp.0+"), ToPair("merger.mlp.2+") };
  }
  return { ToPair("multi_modal_projector.layer_norm+"), ToPair("multi_modal_projector.linear_1+"),
    ToPair("multi_modal_projector.linear_2+") };
}

TensorNames BridgeNames(const TensorNames& huggingFace)
{
  TensorNames names = huggingFace;
  const TensorNames& bridge = AllNames().at(names.fused == Fused::No ? "bridge" : "bridge/fused");
  for (const Named<Role>& role : Roles)
  {
    std::visit([&](auto member) { Rename(names.*member, bridge.*member); }, role.value);
  }
  SetNames(names, "prefix= unembedding=unembed+");
  return names;
}

TensorNames GgufNames(const TransformerConfig& config, const GgufLayout& layout)
{
  TensorNames names = AllNames().at("gguf");
  if (config.queryLatent > 0)
  {
    SetNames(names, "queryLatent=attn_q_a queryLatentNorm=attn_q_a_norm query=attn_q_b");
  }
  if (config.keyLatent > 0)
  {
    SetNames(names, "keyLatent=attn_kv_a_mqa keyLatentNorm=attn_kv_a_norm");
    SetNames(names, layout.splitsLatent ? "key=attn_k_b value=attn_v_b" : "key=attn_kv_b value=");
  }
  if (layout.isFused)
  {
    SetNames(names, "fused=KindHead query=attn_qkv+");
  }
  if (config.normPlace == NormPlace::AfterSublayer)
  {
    SetNames(names, "attentionNorm=attn_output_norm+ mlpNorm=layer_output_norm+");
  }
  if (NamesFor(config).up.weight.empty())
  {
    names.gate = std::exchange(names.up, {});
  }
  return names;
}

std::string BareName(std::string_view name, const TransformerConfig& config)
{
  const bool isOfImages = config.input == InputKind::Images;
  if (isOfImages || config.vision != nullptr)
  {
    for (const OuterPrefix& outer : OuterImagePrefixes)
    {
      if (BeginsWith(name, outer.base))
      {
        name.remove_prefix(outer.base.size());
        return (isOfImages ? "" : "vision_tower.") + std::string(name);
      }
    }
  }
  std::vector<std::string_view> prefixes = { "model." };
  if (config.encoder == nullptr) // else those of the stacks tell them apart
  {
    const std::string_view own = NamesFor(config).prefix;
    prefixes = { own, own.substr(std::min(own.size(), own.find('.') + 1)) };
    for (const OuterPrefix& outer : OuterPrefixes)
    {
      prefixes.push_back(outer.base);
    }
    prefixes.emplace_back("model.");
  }
  const auto isBefore = [&name](std::string_view prefix)
  { return !prefix.empty() && BeginsWith(name, prefix); };
  for (auto found = prefixes.begin(); found != prefixes.end();)
  {
    found = std::find_if(prefixes.begin(), prefixes.end(), isBefore);
    name.remove_prefix(found == prefixes.end() ? 0 : found->size());
  }
  return std::string(name);
}

bool IsBuffer(std::string_view name)
{
  return std::any_of(
    Buffers.begin(), Buffers.end(), [name](std::string_view end) { return EndsWith(name, end); });
}

bool IsHead(std::string_view module)
{
  return std::find(Heads.begin(), Heads.end(), module) != Heads.end();
}

}
