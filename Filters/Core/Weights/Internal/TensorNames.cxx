#include "TensorNames.h"

#include "NamedValues.h"

#include <algorithm>

namespace atlas
{
namespace
{

constexpr TensorNames Gpt2Names = { "transformer.", "wte.weight", "wpe.weight", {}, {}, "h.",
  WeightLayout::InputOutput, Fused::KindHead, { "attn.c_attn.weight", "attn.c_attn.bias" }, {}, {},
  { "attn.c_proj.weight", "attn.c_proj.bias" }, { "ln_1.weight", "ln_1.bias" },
  { "ln_2.weight", "ln_2.bias" }, {}, { "mlp.c_fc.weight", "mlp.c_fc.bias" },
  { "mlp.c_proj.weight", "mlp.c_proj.bias" }, { "ln_f.weight", "ln_f.bias" },
  { "lm_head.weight", {} }, {}, {} };

constexpr TensorNames BertNames = { "bert.", "embeddings.word_embeddings.weight",
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

constexpr TensorNames VitLayerNames = { "vit.", {}, "embeddings.position_embeddings", {}, {},
  "encoder.layer.", WeightLayout::OutputInput, Fused::No,
  { "attention.attention.query.weight", "attention.attention.query.bias" },
  { "attention.attention.key.weight", "attention.attention.key.bias" },
  { "attention.attention.value.weight", "attention.attention.value.bias" },
  { "attention.output.dense.weight", "attention.output.dense.bias" },
  { "layernorm_before.weight", "layernorm_before.bias" },
  { "layernorm_after.weight", "layernorm_after.bias" }, {},
  { "intermediate.dense.weight", "intermediate.dense.bias" },
  { "output.dense.weight", "output.dense.bias" }, { "layernorm.weight", "layernorm.bias" }, {}, {},
  {} };

constexpr TensorNames BloomNames = { "transformer.", "word_embeddings.weight", {}, {},
  { "word_embeddings_layernorm.weight", "word_embeddings_layernorm.bias" }, "h.",
  WeightLayout::OutputInput, Fused::HeadKind,
  { "self_attention.query_key_value.weight", "self_attention.query_key_value.bias" }, {}, {},
  { "self_attention.dense.weight", "self_attention.dense.bias" },
  { "input_layernorm.weight", "input_layernorm.bias" },
  { "post_attention_layernorm.weight", "post_attention_layernorm.bias" }, {},
  { "mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias" },
  { "mlp.dense_4h_to_h.weight", "mlp.dense_4h_to_h.bias" }, { "ln_f.weight", "ln_f.bias" },
  { "lm_head.weight", {} }, {}, {} };

constexpr TensorNames LlamaNames = { "model.", "embed_tokens.weight", {}, {}, {}, "layers.",
  WeightLayout::OutputInput, Fused::No, { "self_attn.q_proj.weight", "self_attn.q_proj.bias" },
  { "self_attn.k_proj.weight", "self_attn.k_proj.bias" },
  { "self_attn.v_proj.weight", "self_attn.v_proj.bias" },
  { "self_attn.o_proj.weight", "self_attn.o_proj.bias" }, { "input_layernorm.weight", {} },
  { "post_attention_layernorm.weight", {} }, { "mlp.gate_proj.weight", "mlp.gate_proj.bias" },
  { "mlp.up_proj.weight", "mlp.up_proj.bias" }, { "mlp.down_proj.weight", "mlp.down_proj.bias" },
  { "norm.weight", {} }, { "lm_head.weight", {} }, {}, {} };

/// RoBERTa is BERT with another head.
constexpr TensorNames RobertaNames()
{
  TensorNames names = BertNames;
  names.prefix = "roberta.";
  names.unembedding = { "lm_head.decoder.weight", "lm_head.bias" };
  names.transform = { "lm_head.dense.weight", "lm_head.dense.bias" };
  names.transformNorm = { "lm_head.layer_norm.weight", "lm_head.layer_norm.bias" };
  return names;
}

constexpr TensorNames DistilBertNames()
{
  TensorNames names = BertNames;
  names.prefix = "distilbert.";
  names.segments = {};
  names.layers = "transformer.layer.";
  names.query = { "attention.q_lin.weight", "attention.q_lin.bias" };
  names.key = { "attention.k_lin.weight", "attention.k_lin.bias" };
  names.value = { "attention.v_lin.weight", "attention.v_lin.bias" };
  names.output = { "attention.out_lin.weight", "attention.out_lin.bias" };
  names.attentionNorm = { "sa_layer_norm.weight", "sa_layer_norm.bias" };
  names.up = { "ffn.lin1.weight", "ffn.lin1.bias" };
  names.down = { "ffn.lin2.weight", "ffn.lin2.bias" };
  names.mlpNorm = { "output_layer_norm.weight", "output_layer_norm.bias" };
  names.unembedding = { "vocab_projector.weight", "vocab_projector.bias" };
  names.transform = { "vocab_transform.weight", "vocab_transform.bias" };
  names.transformNorm = { "vocab_layer_norm.weight", "vocab_layer_norm.bias" };
  return names;
}

constexpr TensorNames VitNames()
{
  TensorNames names = VitLayerNames;
  names.patches = { "embeddings.patch_embeddings.projection.weight",
    "embeddings.patch_embeddings.projection.bias" };
  names.classToken = "embeddings.cls_token";
  return names;
}

constexpr TensorNames DeitNames()
{
  TensorNames names = VitNames();
  names.prefix = "deit.";
  names.distillationToken = "embeddings.distillation_token";
  return names;
}

constexpr TensorNames DinoV2Names()
{
  TensorNames names = VitNames();
  names.prefix = "dinov2.";
  names.attentionNorm = { "norm1.weight", "norm1.bias" };
  names.mlpNorm = { "norm2.weight", "norm2.bias" };
  names.up = { "mlp.fc1.weight", "mlp.fc1.bias" };
  names.down = { "mlp.fc2.weight", "mlp.fc2.bias" };
  names.attentionScale = "layer_scale1.lambda1";
  names.mlpScale = "layer_scale2.lambda1";
  return names;
}

/// With a gated MLP, gate and up are in one tensor.
constexpr TensorNames GatedDinoV2Names()
{
  TensorNames names = DinoV2Names();
  names.gate = { "mlp.weights_in.weight", "mlp.weights_in.bias" };
  names.up = {};
  names.down = { "mlp.weights_out.weight", "mlp.weights_out.bias" };
  return names;
}

constexpr TensorNames RegisterNames()
{
  TensorNames names = DinoV2Names();
  names.prefix = "dinov2_with_registers.";
  names.registers = "embeddings.register_tokens";
  return names;
}

constexpr TensorNames GatedRegisterNames()
{
  TensorNames names = GatedDinoV2Names();
  names.prefix = "dinov2_with_registers.";
  names.registers = "embeddings.register_tokens";
  return names;
}

constexpr TensorNames ClipTextNames()
{
  TensorNames names;
  names.prefix = "text_model.";
  names.tokens = "embeddings.token_embedding.weight";
  names.positions = "embeddings.position_embedding.weight";
  names.layers = "encoder.layers.";
  names.query = { "self_attn.q_proj.weight", "self_attn.q_proj.bias" };
  names.key = { "self_attn.k_proj.weight", "self_attn.k_proj.bias" };
  names.value = { "self_attn.v_proj.weight", "self_attn.v_proj.bias" };
  names.output = { "self_attn.out_proj.weight", "self_attn.out_proj.bias" };
  names.attentionNorm = { "layer_norm1.weight", "layer_norm1.bias" };
  names.mlpNorm = { "layer_norm2.weight", "layer_norm2.bias" };
  names.up = { "mlp.fc1.weight", "mlp.fc1.bias" };
  names.down = { "mlp.fc2.weight", "mlp.fc2.bias" };
  names.finalNorm = { "final_layer_norm.weight", "final_layer_norm.bias" };
  return names;
}

constexpr TensorNames ClipVisionNames()
{
  TensorNames names = ClipTextNames();
  names.prefix = "vision_model.";
  names.tokens = {};
  names.patches = { "embeddings.patch_embedding.weight", {} };
  names.classToken = "embeddings.class_embedding";
  names.embeddingNorm = { "pre_layrnorm.weight", "pre_layrnorm.bias" }; // sic
  names.finalNorm = { "post_layernorm.weight", "post_layernorm.bias" };
  return names;
}

/// SigLIP, and the encoder of SmolVLM.
constexpr TensorNames SiglipNames()
{
  TensorNames names = ClipVisionNames();
  names.patches.bias = "embeddings.patch_embedding.bias";
  names.classToken = {};
  names.embeddingNorm = {};
  return names;
}

constexpr TensorNames InternVlVisionNames()
{
  TensorNames names = VitNames();
  names.prefix = "vision_tower.";
  names.query = { "attention.q_proj.weight", "attention.q_proj.bias" };
  names.key = { "attention.k_proj.weight", "attention.k_proj.bias" };
  names.value = { "attention.v_proj.weight", "attention.v_proj.bias" };
  names.output = { "attention.projection_layer.weight", "attention.projection_layer.bias" };
  names.queryNorm = { "attention.q_norm.weight", {} };
  names.keyNorm = { "attention.k_norm.weight", {} };
  names.up = { "mlp.fc1.weight", "mlp.fc1.bias" };
  names.down = { "mlp.fc2.weight", "mlp.fc2.bias" };
  names.attentionScale = "lambda_1";
  names.mlpScale = "lambda_2";
  return names;
}

constexpr TensorNames QwenVisionNames(bool isGated)
{
  TensorNames names;
  names.prefix = "visual.";
  names.patches = { "patch_embed.proj.weight", {} };
  names.layers = "blocks.";
  names.fused = Fused::KindHead;
  names.query = { "attn.qkv.weight", "attn.qkv.bias" };
  names.output = { "attn.proj.weight", "attn.proj.bias" };
  names.attentionNorm = { "norm1.weight", "norm1.bias" };
  names.mlpNorm = { "norm2.weight", "norm2.bias" };
  if (isGated)
  {
    names.gate = { "mlp.gate_proj.weight", "mlp.gate_proj.bias" };
    names.up = { "mlp.up_proj.weight", "mlp.up_proj.bias" };
    names.down = { "mlp.down_proj.weight", "mlp.down_proj.bias" };
  }
  else
  {
    names.up = { "mlp.fc1.weight", "mlp.fc1.bias" };
    names.down = { "mlp.fc2.weight", "mlp.fc2.bias" };
  }
  return names;
}

/// The projector of LLaVA and InternVL.
constexpr ProjectorNames MultiModalNames = { { "multi_modal_projector.layer_norm.weight",
                                               "multi_modal_projector.layer_norm.bias" },
  { "multi_modal_projector.linear_1.weight", "multi_modal_projector.linear_1.bias" },
  { "multi_modal_projector.linear_2.weight", "multi_modal_projector.linear_2.bias" } };
constexpr ProjectorNames ConnectorNames = { {}, { "connector.modality_projection.proj.weight", {} },
  {} };
constexpr ProjectorNames MergerNames = { { "merger.ln_q.weight", "merger.ln_q.bias" },
  { "merger.mlp.0.weight", "merger.mlp.0.bias" }, { "merger.mlp.2.weight", "merger.mlp.2.bias" } };

constexpr TensorNames GptJNames()
{
  TensorNames names = Gpt2Names;
  names.layout = WeightLayout::OutputInput;
  names.fused = Fused::No;
  names.positions = {};
  names.query = { "attn.q_proj.weight", {} };
  names.key = { "attn.k_proj.weight", {} };
  names.value = { "attn.v_proj.weight", {} };
  names.output = { "attn.out_proj.weight", {} };
  names.mlpNorm = {};
  names.up = { "mlp.fc_in.weight", "mlp.fc_in.bias" };
  names.down = { "mlp.fc_out.weight", "mlp.fc_out.bias" };
  names.unembedding.bias = "lm_head.bias";
  return names;
}

/// nanoGPT has nn.Linear where GPT-2 has its own matrices, and no shifts without biases.
constexpr TensorNames NanoGptNames(bool hasBiases)
{
  TensorNames names = Gpt2Names;
  names.layout = WeightLayout::OutputInput;
  if (!hasBiases)
  {
    names.attentionNorm.shift = {};
    names.mlpNorm.shift = {};
    names.finalNorm.shift = {};
  }
  return names;
}

/// Meta's own names.
constexpr TensorNames MetaLlamaNames()
{
  TensorNames names = LlamaNames;
  names.prefix = {};
  names.tokens = "tok_embeddings.weight";
  names.query = { "attention.wq.weight", {} };
  names.key = { "attention.wk.weight", {} };
  names.value = { "attention.wv.weight", {} };
  names.output = { "attention.wo.weight", {} };
  names.attentionNorm = { "attention_norm.weight", {} };
  names.mlpNorm = { "ffn_norm.weight", {} };
  names.gate = { "feed_forward.w1.weight", {} };
  names.up = { "feed_forward.w3.weight", {} };
  names.down = { "feed_forward.w2.weight", {} };
  names.unembedding = { "output.weight", {} };
  return names;
}

constexpr TensorNames GptNeoNames()
{
  TensorNames names = Gpt2Names;
  names.layout = WeightLayout::OutputInput;
  names.fused = Fused::No;
  names.query = { "attn.attention.q_proj.weight", {} };
  names.key = { "attn.attention.k_proj.weight", {} };
  names.value = { "attn.attention.v_proj.weight", {} };
  names.output = { "attn.attention.out_proj.weight", "attn.attention.out_proj.bias" };
  return names;
}

constexpr TensorNames GptNeoXNames()
{
  TensorNames names = BloomNames;
  names.prefix = "gpt_neox.";
  names.tokens = "embed_in.weight";
  names.embeddingNorm = {};
  names.layers = "layers.";
  names.query = { "attention.query_key_value.weight", "attention.query_key_value.bias" };
  names.output = { "attention.dense.weight", "attention.dense.bias" };
  names.finalNorm = { "final_layer_norm.weight", "final_layer_norm.bias" };
  names.unembedding = { "embed_out.weight", {} };
  return names;
}

constexpr TensorNames OptNames()
{
  TensorNames names = LlamaNames;
  names.prefix = "model.decoder.";
  names.positions = "embed_positions.weight";
  names.output = { "self_attn.out_proj.weight", "self_attn.out_proj.bias" };
  names.attentionNorm = { "self_attn_layer_norm.weight", "self_attn_layer_norm.bias" };
  names.mlpNorm = { "final_layer_norm.weight", "final_layer_norm.bias" };
  names.gate = {};
  names.up = { "fc1.weight", "fc1.bias" };
  names.down = { "fc2.weight", "fc2.bias" };
  names.finalNorm = { "final_layer_norm.weight", "final_layer_norm.bias" };
  names.projectIn = "project_in.weight";
  names.projectOut = "project_out.weight";
  return names;
}

constexpr TensorNames NormedLlamaNames()
{
  TensorNames names = LlamaNames;
  names.queryNorm = { "self_attn.q_norm.weight", {} };
  names.keyNorm = { "self_attn.k_norm.weight", {} };
  return names;
}

constexpr TensorNames Gemma2Names()
{
  TensorNames names = NormedLlamaNames();
  names.attentionAfter = { "post_attention_layernorm.weight", {} };
  names.mlpNorm = { "pre_feedforward_layernorm.weight", {} };
  names.mlpAfter = { "post_feedforward_layernorm.weight", {} };
  return names;
}

constexpr TensorNames GptOssNames()
{
  TensorNames names = LlamaNames;
  names.gate = {};
  names.up = {};
  names.down = {};
  names.sinks = "self_attn.sinks";
  names.router = { "mlp.router.weight", "mlp.router.bias" };
  names.expertsGate = { "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj_bias" };
  names.expertsDown = { "mlp.experts.down_proj", "mlp.experts.down_proj_bias" };
  return names;
}

constexpr TensorNames MixtralNames()
{
  TensorNames names = LlamaNames;
  names.router = { "block_sparse_moe.gate.weight", {} };
  names.expertsGate = { "block_sparse_moe.experts.*.w1.weight", {} };
  names.expertsUp = { "block_sparse_moe.experts.*.w3.weight", {} };
  names.expertsDown = { "block_sparse_moe.experts.*.w2.weight", {} };
  return names;
}

/// Qwen2-MoE, Qwen3-MoE and OLMoE. The first has no normalizations of queries and keys, the others
/// have no shared expert.
constexpr TensorNames MixtureNames()
{
  TensorNames names = NormedLlamaNames();
  names.router = { "mlp.gate.weight", {} };
  names.expertsGate = { "mlp.experts.*.gate_proj.weight", {} };
  names.expertsUp = { "mlp.experts.*.up_proj.weight", {} };
  names.expertsDown = { "mlp.experts.*.down_proj.weight", {} };
  names.sharedGate = "mlp.shared_expert.gate_proj.weight";
  names.sharedUp = "mlp.shared_expert.up_proj.weight";
  names.sharedDown = "mlp.shared_expert.down_proj.weight";
  names.sharedFactor = "mlp.shared_expert_gate.weight";
  return names;
}

/// Without a latent vector of queries, q_proj gives them.
constexpr TensorNames DeepSeekNames(bool hasQueryLatent)
{
  TensorNames names = MixtureNames();
  names.queryNorm = {};
  names.keyNorm = {};
  if (hasQueryLatent)
  {
    names.queryLatent = { "self_attn.q_a_proj.weight", {} };
    names.queryLatentNorm = { "self_attn.q_a_layernorm.weight", {} };
    names.query = { "self_attn.q_b_proj.weight", {} };
  }
  names.keyLatent = { "self_attn.kv_a_proj_with_mqa.weight", {} };
  names.keyLatentNorm = { "self_attn.kv_a_layernorm.weight", {} };
  names.key = { "self_attn.kv_b_proj.weight", {} };
  names.value = {};
  names.sharedGate = "mlp.shared_experts.gate_proj.weight";
  names.sharedUp = "mlp.shared_experts.up_proj.weight";
  names.sharedDown = "mlp.shared_experts.down_proj.weight";
  names.sharedFactor = {};
  return names;
}

constexpr TensorNames PhiNames()
{
  TensorNames names = LlamaNames;
  names.output = { "self_attn.dense.weight", "self_attn.dense.bias" };
  names.attentionNorm = { "input_layernorm.weight", "input_layernorm.bias" };
  names.mlpNorm = {};
  names.gate = {};
  names.up = { "mlp.fc1.weight", "mlp.fc1.bias" };
  names.down = { "mlp.fc2.weight", "mlp.fc2.bias" };
  names.finalNorm = { "final_layernorm.weight", "final_layernorm.bias" };
  names.unembedding.bias = "lm_head.bias";
  names.queryNorm = { "self_attn.q_layernorm.weight", "self_attn.q_layernorm.bias" };
  names.keyNorm = { "self_attn.k_layernorm.weight", "self_attn.k_layernorm.bias" };
  return names;
}

constexpr TensorNames Phi3Names()
{
  TensorNames names = LlamaNames;
  names.fused = Fused::KindHead;
  names.query = { "self_attn.qkv_proj.weight", {} };
  names.key = {};
  names.value = {};
  names.gate = { "mlp.gate_up_proj.weight", {} };
  names.up = {};
  return names;
}

constexpr TensorNames StableLmNames()
{
  TensorNames names = LlamaNames;
  names.attentionNorm.shift = "input_layernorm.bias";
  names.mlpNorm.shift = "post_attention_layernorm.bias";
  names.finalNorm.shift = "norm.bias";
  names.queryNorm = { "self_attn.q_layernorm.norms.*.weight", {} };
  names.keyNorm = { "self_attn.k_layernorm.norms.*.weight", {} };
  return names;
}

/// Where the embedding of a stack may be, in the order in which the original code would take it:
/// its own, the shared one, or the other stack's.
constexpr std::array<std::string_view, 3> SharedTokens(bool isEncoder)
{
  constexpr std::string_view encoder = "encoder.embed_tokens.weight";
  constexpr std::string_view decoder = "decoder.embed_tokens.weight";
  return { isEncoder ? encoder : decoder, "shared.weight", isEncoder ? decoder : encoder };
}

/// The encoder of T5, or its decoder.
constexpr TensorNames T5Names(bool isEncoder, bool isGated)
{
  TensorNames names;
  names.prefix = isEncoder ? "encoder." : "decoder.";
  names.sharedTokens = SharedTokens(isEncoder);
  names.layers = "block.";
  names.relativeBias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  names.query = { "layer.0.SelfAttention.q.weight", {} };
  names.key = { "layer.0.SelfAttention.k.weight", {} };
  names.value = { "layer.0.SelfAttention.v.weight", {} };
  names.output = { "layer.0.SelfAttention.o.weight", {} };
  names.attentionNorm = { "layer.0.layer_norm.weight", {} };
  if (isEncoder)
  {
    names.gate = { "layer.1.DenseReluDense.wi_0.weight", {} };
    names.up = {
      isGated ? "layer.1.DenseReluDense.wi_1.weight" : "layer.1.DenseReluDense.wi.weight", {}
    };
    names.down = { "layer.1.DenseReluDense.wo.weight", {} };
    names.mlpNorm = { "layer.1.layer_norm.weight", {} };
  }
  else
  {
    names.crossQuery = { "layer.1.EncDecAttention.q.weight", {} };
    names.crossKey = { "layer.1.EncDecAttention.k.weight", {} };
    names.crossValue = { "layer.1.EncDecAttention.v.weight", {} };
    names.crossOutput = { "layer.1.EncDecAttention.o.weight", {} };
    names.crossNorm = { "layer.1.layer_norm.weight", {} };
    names.gate = { "layer.2.DenseReluDense.wi_0.weight", {} };
    names.up = {
      isGated ? "layer.2.DenseReluDense.wi_1.weight" : "layer.2.DenseReluDense.wi.weight", {}
    };
    names.down = { "layer.2.DenseReluDense.wo.weight", {} };
    names.mlpNorm = { "layer.2.layer_norm.weight", {} };
    names.unembedding = { "lm_head.weight", {} };
  }
  names.finalNorm = { "final_layer_norm.weight", {} };
  return names;
}

/// The encoder of BART, or its decoder; mBART, Marian and Pegasus have the same.
constexpr TensorNames BartNames(bool isEncoder)
{
  TensorNames names = OptNames();
  names.prefix = isEncoder ? "model.encoder." : "model.decoder.";
  names.tokens = {};
  names.sharedTokens = SharedTokens(isEncoder);
  names.embeddingNorm = { "layernorm_embedding.weight", "layernorm_embedding.bias" };
  names.finalNorm = { "layer_norm.weight", "layer_norm.bias" };
  names.projectIn = {};
  names.projectOut = {};
  names.unembedding = {};
  if (!isEncoder)
  {
    names.crossQuery = { "encoder_attn.q_proj.weight", "encoder_attn.q_proj.bias" };
    names.crossKey = { "encoder_attn.k_proj.weight", "encoder_attn.k_proj.bias" };
    names.crossValue = { "encoder_attn.v_proj.weight", "encoder_attn.v_proj.bias" };
    names.crossOutput = { "encoder_attn.out_proj.weight", "encoder_attn.out_proj.bias" };
    names.crossNorm = { "encoder_attn_layer_norm.weight", "encoder_attn_layer_norm.bias" };
    names.unembedding = { "lm_head.weight", "final_logits_bias" };
  }
  return names;
}

constexpr TensorNames WhisperNames(bool isEncoder)
{
  TensorNames names = BartNames(isEncoder);
  names.sharedTokens = {};
  names.key.bias = {};
  names.crossKey.bias = {};
  if (isEncoder)
  {
    names.firstConvolution = { "conv1.weight", "conv1.bias" };
    names.secondConvolution = { "conv2.weight", "conv2.bias" };
  }
  else
  {
    names.tokens = "embed_tokens.weight";
    names.unembedding = { "proj_out.weight", {} };
  }
  return names;
}

/// Those that differ from LlamaNames.
constexpr std::array<Named<TensorNames>, 44> AllNames = { {
  { "bart", BartNames(false) },
  { "bert", BertNames },
  { "bloom", BloomNames },
  { "camembert", RobertaNames() },
  { "clip_text_model", ClipTextNames() },
  { "clip_vision_model", ClipVisionNames() },
  { "deepseek_v2", DeepSeekNames(true) },
  { "deit", DeitNames() },
  { "dinov2", DinoV2Names() },
  { "dinov2_with_registers", RegisterNames() },
  { "distilbert", DistilBertNames() },
  { "gemma2", Gemma2Names() },
  { "gemma3", Gemma2Names() },
  { "gemma3_text", Gemma2Names() },
  { "gpt2", Gpt2Names },
  { "gpt_neo", GptNeoNames() },
  { "gpt_neox", GptNeoXNames() },
  { "gpt_oss", GptOssNames() },
  { "gptj", GptJNames() },
  { "idefics3", NormedLlamaNames() },
  { "internvl", NormedLlamaNames() },
  { "internvl_vision", InternVlVisionNames() },
  { "llava", NormedLlamaNames() },
  { "marian", BartNames(false) },
  { "mbart", BartNames(false) },
  { "meta_llama", MetaLlamaNames() },
  { "mixtral", MixtralNames() },
  { "nanogpt", NanoGptNames(true) },
  { "olmoe", MixtureNames() },
  { "opt", OptNames() },
  { "pegasus", BartNames(false) },
  { "phi", PhiNames() },
  { "phi3", Phi3Names() },
  { "qwen2_moe", MixtureNames() },
  { "qwen3", NormedLlamaNames() },
  { "qwen3_moe", MixtureNames() },
  { "roberta", RobertaNames() },
  { "siglip_vision_model", SiglipNames() },
  { "smolvlm", NormedLlamaNames() },
  { "smolvlm_vision", SiglipNames() },
  { "stablelm", StableLmNames() },
  { "vit", VitNames() },
  { "whisper", WhisperNames(false) },
  { "xlm-roberta", RobertaNames() },
} };

/// Of encoders beside decoders.
constexpr std::array<Named<TensorNames>, 7> EncoderNames = { {
  { "bart", BartNames(true) },
  { "marian", BartNames(true) },
  { "mbart", BartNames(true) },
  { "pegasus", BartNames(true) },
  { "qwen2_5_vl", QwenVisionNames(true) },
  { "qwen2_vl", QwenVisionNames(false) },
  { "whisper", WhisperNames(true) },
} };

constexpr TensorNames T5Encoder = T5Names(true, false);
constexpr TensorNames T5Decoder = T5Names(false, false);
constexpr TensorNames GatedT5Encoder = T5Names(true, true);
constexpr TensorNames GatedT5Decoder = T5Names(false, true);
constexpr TensorNames UnbiasedNanoGpt = NanoGptNames(false);
constexpr TensorNames DeepSeekLite = DeepSeekNames(false);
constexpr TensorNames GatedDinoV2 = GatedDinoV2Names();
constexpr TensorNames GatedRegisters = GatedRegisterNames();

/// Suffixes of the names of stored tensors that are not weights.
constexpr std::array<std::string_view, 20> Buffers = { "attn.mask", "attention.mask", "attn.IGNORE",
  "attn.rotary_sin", "attn.rotary_cos", ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
  "rotary_emb.cos_cached", "rotary_emb.sin_cached", "embeddings.position_ids",
  "embeddings.token_type_ids", ".attention.bias", ".attention.masked_bias", "attn.embed_positions",
  "embeddings.mask_token", "rope.freqs", "freqs_cos", "freqs_sin",
  "EncDecAttention.relative_attention_bias.weight" };

constexpr std::array<std::string_view, 17> Heads = { "classifier", "cls", "cls_classifier",
  "distillation_classifier", "embed_out", "head", "lm_head", "mlm_head", "nsp_head", "pooler",
  "pre_classifier", "qa_outputs", "score", "vocab_layer_norm", "vocab_projector", "vocab_transform",
  "logit_scale" };

}

const TensorNames LensNames = { {}, "embed.W_E", "pos_embed.W_pos", {},
  { "embed.ln.w", "embed.ln.b" }, "blocks.", WeightLayout::InputOutput, Fused::No,
  { "attn.W_Q", "attn.b_Q" }, { "attn.W_K", "attn.b_K" }, { "attn.W_V", "attn.b_V" },
  { "attn.W_O", "attn.b_O" }, { "ln1.w", "ln1.b" }, { "ln2.w", "ln2.b" },
  { "mlp.W_gate", "mlp.b_gate" }, { "mlp.W_in", "mlp.b_in" }, { "mlp.W_out", "mlp.b_out" },
  { "ln_final.w", "ln_final.b" }, { "unembed.W_U", "unembed.b_U" }, {}, {} };

/// BERT in TransformerLens.
const TensorNames LensEncoderNames = { {}, "embed.embed.W_E", "embed.pos_embed.W_pos",
  "embed.token_type_embed.W_token_type", { "embed.ln.w", "embed.ln.b" }, "blocks.",
  WeightLayout::InputOutput, Fused::No, { "attn.W_Q", "attn.b_Q" }, { "attn.W_K", "attn.b_K" },
  { "attn.W_V", "attn.b_V" }, { "attn.W_O", "attn.b_O" }, { "ln1.w", "ln1.b" },
  { "ln2.w", "ln2.b" }, {}, { "mlp.W_in", "mlp.b_in" }, { "mlp.W_out", "mlp.b_out" }, {},
  { "unembed.W_U", "unembed.b_U" }, { "mlm_head.W", "mlm_head.b" },
  { "mlm_head.ln.w", "mlm_head.ln.b" } };

const TensorNames& NamesFor(const TransformerConfig& config)
{
  if (config.gated && config.architecture == "dinov2")
  {
    return GatedDinoV2;
  }
  if (config.gated && config.architecture == "dinov2_with_registers")
  {
    return GatedRegisters;
  }
  if (!config.mlpBias && config.architecture == "nanogpt")
  {
    return UnbiasedNanoGpt;
  }
  if (config.queryLatent == 0 && config.architecture == "deepseek_v2")
  {
    return DeepSeekLite;
  }
  const bool isEncoder = config.mask == AttentionMask::Bidirectional;
  if (config.architecture == "t5" || config.architecture == "mt5")
  {
    return isEncoder ? (config.gated ? GatedT5Encoder : T5Encoder)
                     : (config.gated ? GatedT5Decoder : T5Decoder);
  }
  if (const auto* encoder = isEncoder ? FindNamed(EncoderNames, config.architecture) : nullptr)
  {
    return encoder->value;
  }
  const auto* found = FindNamed(AllNames, config.architecture);
  return found != nullptr ? found->value : LlamaNames;
}

const ProjectorNames& ProjectorNamesFor(const TransformerConfig& config)
{
  return !config.vision->projectorHasTwo                                          ? ConnectorNames
         : config.vision->projectorNorm == VisionConfig::ProjectorNorm::OfPatches ? MergerNames
                                                                                  : MultiModalNames;
}

TensorNames BridgeNames(const TensorNames& huggingFace)
{
  TensorNames names = huggingFace;
  const auto rename = [](std::string_view& name, std::string_view bridge)
  { name = name.empty() ? name : bridge; };
  const auto renameNorm = [&](NormNames& norm, std::string_view gain, std::string_view shift)
  {
    rename(norm.gain, gain);
    rename(norm.shift, shift);
  };
  const auto renameLinear = [&](LinearNames& linear, std::string_view weight, std::string_view bias)
  {
    rename(linear.weight, weight);
    rename(linear.bias, bias);
  };
  names.prefix = {};
  names.layers = "blocks.";
  rename(names.tokens, "embed.weight");
  rename(names.positions, "pos_embed.weight");
  if (names.fused == Fused::No)
  {
    renameLinear(names.query, "attn.q.weight", "attn.q.bias");
  }
  else
  {
    renameLinear(names.query, "attn.qkv.weight", "attn.qkv.bias");
  }
  renameLinear(names.key, "attn.k.weight", "attn.k.bias");
  renameLinear(names.value, "attn.v.weight", "attn.v.bias");
  renameLinear(names.output, "attn.o.weight", "attn.o.bias");
  renameNorm(names.attentionNorm, "ln1.weight", "ln1.bias");
  renameNorm(names.mlpNorm, "ln2.weight", "ln2.bias");
  renameNorm(names.attentionAfter, "ln1_post.weight", "ln1_post.bias");
  renameNorm(names.mlpAfter, "ln2_post.weight", "ln2_post.bias");
  renameNorm(names.queryNorm, "attn.q_norm.weight", "attn.q_norm.bias");
  renameNorm(names.keyNorm, "attn.k_norm.weight", "attn.k_norm.bias");
  renameLinear(names.gate, "mlp.gate.weight", "mlp.gate.bias");
  renameLinear(names.up, "mlp.in.weight", "mlp.in.bias");
  renameLinear(names.down, "mlp.out.weight", "mlp.out.bias");
  renameNorm(names.finalNorm, "ln_final.weight", "ln_final.bias");
  names.unembedding = { "unembed.weight", "unembed.bias" };
  return names;
}

namespace
{

/// The names of llama.cpp for experts and latent attention.
void AddGgufExperts(TensorNames& names, const TransformerConfig& config, bool splitsLatent)
{
  names.router = { "ffn_gate_inp.weight", {} };
  names.expertsGate = { "ffn_gate_exps.weight", {} };
  names.expertsUp = { "ffn_up_exps.weight", {} };
  names.expertsDown = { "ffn_down_exps.weight", {} };
  names.sharedGate = "ffn_gate_shexp.weight";
  names.sharedUp = "ffn_up_shexp.weight";
  names.sharedDown = "ffn_down_shexp.weight";
  names.sharedFactor = "ffn_gate_inp_shexp.weight";
  if (config.queryLatent > 0)
  {
    names.queryLatent = { "attn_q_a.weight", {} };
    names.queryLatentNorm = { "attn_q_a_norm.weight", {} };
    names.query = { "attn_q_b.weight", {} };
  }
  if (config.keyLatent > 0)
  {
    names.keyLatent = { "attn_kv_a_mqa.weight", {} };
    names.keyLatentNorm = { "attn_kv_a_norm.weight", {} };
    names.key = { splitsLatent ? "attn_k_b.weight" : "attn_kv_b.weight", {} };
    names.value = { splitsLatent ? std::string_view("attn_v_b.weight") : std::string_view(), {} };
  }
}

}

TensorNames GgufNames(const TransformerConfig& config, const GgufLayout& layout)
{
  TensorNames names;
  names.tokens = "token_embd.weight";
  names.positions = "position_embd.weight";
  names.segments = "token_types.weight";
  names.embeddingNorm = { "token_embd_norm.weight", "token_embd_norm.bias" };
  names.layers = "blk.";
  names.query = { "attn_q.weight", "attn_q.bias" };
  names.key = { "attn_k.weight", "attn_k.bias" };
  names.value = { "attn_v.weight", "attn_v.bias" };
  names.output = { "attn_output.weight", "attn_output.bias" };
  names.attentionNorm = { "attn_norm.weight", "attn_norm.bias" };
  names.mlpNorm = { "ffn_norm.weight", "ffn_norm.bias" };
  names.gate = { "ffn_gate.weight", "ffn_gate.bias" };
  names.up = { "ffn_up.weight", "ffn_up.bias" };
  names.down = { "ffn_down.weight", "ffn_down.bias" };
  names.finalNorm = { "output_norm.weight", "output_norm.bias" };
  names.unembedding = { "output.weight", "output.bias" };
  names.queryNorm = { "attn_q_norm.weight", {} };
  names.keyNorm = { "attn_k_norm.weight", {} };
  names.attentionAfter = { "post_attention_norm.weight", {} };
  names.mlpAfter = { "post_ffw_norm.weight", {} };
  AddGgufExperts(names, config, layout.splitsLatent);
  if (layout.isFused)
  {
    names.fused = Fused::KindHead;
    names.query = { "attn_qkv.weight", "attn_qkv.bias" };
  }
  if (config.normPlace == NormPlace::AfterSublayer)
  {
    names.attentionNorm = { "attn_output_norm.weight", "attn_output_norm.bias" };
    names.mlpNorm = { "layer_output_norm.weight", "layer_output_norm.bias" };
  }
  if (NamesFor(config).up.weight.empty())
  {
    names.gate = names.up;
    names.up = {};
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
      if (name.substr(0, outer.base.size()) == outer.base)
      {
        name.remove_prefix(outer.base.size());
        return (isOfImages ? "" : "vision_tower.") + std::string(name);
      }
    }
  }
  std::array<std::string_view, OuterPrefixes.size() + 3> prefixes = {};
  std::size_t count = 0;
  if (config.encoder == nullptr) // else those of the stacks tell them apart
  {
    const std::string_view own = NamesFor(config).prefix;
    prefixes.at(count++) = own;
    prefixes.at(count++) = own.substr(std::min(own.size(), own.find('.') + 1));
    for (const OuterPrefix& outer : OuterPrefixes)
    {
      prefixes.at(count++) = outer.base;
    }
  }
  prefixes.at(count++) = "model.";
  const auto isBefore = [&name](std::string_view prefix)
  { return !prefix.empty() && name.substr(0, prefix.size()) == prefix; };
  for (auto found = prefixes.begin(); found != prefixes.end();)
  {
    found = std::find_if(prefixes.begin(), prefixes.end(), isBefore);
    name.remove_prefix(found == prefixes.end() ? 0 : found->size());
  }
  return std::string(name);
}

bool IsBuffer(std::string_view name)
{
  return std::any_of(Buffers.begin(), Buffers.end(), [name](std::string_view end)
    { return name.size() >= end.size() && name.substr(name.size() - end.size()) == end; });
}

bool IsHead(std::string_view module)
{
  return std::find(Heads.begin(), Heads.end(), module) != Heads.end();
}

}
