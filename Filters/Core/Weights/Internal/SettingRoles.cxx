#include "SettingRoles.h"

#include "Files/JsonText.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace atlas
{
namespace
{

using nlohmann::json;

// Each list is of words with spaces between them.

/// Settings of files and libraries.
constexpr std::string_view OfFiles =
  "_attn_implementation _attn_implementation_autoset _commit_hash _diffusers_version "
  "_experts_implementation _flash_attn_2_enabled _name_or_path architectures attn_impl "
  "attn_implementation auto_map checkpoint_index checkpoint_label_type checkpoint_value "
  "custom_pipelines deterministic_flash_attn device device_map dtype feature_extractor_type "
  "flash_attn from_checkpoint gguf_file ignore_index image_processor_type is_llama_config "
  "language language_model legacy license max_image_size mlx_version model_name model_type "
  "n_devices n_params name original_architecture perceiver_config pixel_shuffle_factor "
  "processor_class reference_compile repad_logits_with_grad revision rope.scaling.finetuned "
  "size spatial_patch_size tensor_data_layout tf_legacy_loss tokenizer_class tokenizer_name "
  "torch_dtype torchscript transformers.js_config transformers_version transformers_weights "
  "trust_remote_code ungroup_grouped_query_attention unsloth_fixed unsloth_version use_attn_in "
  "use_attn_result use_base_siglip use_bfloat16 use_flash_attn use_hook_mlp_in use_hook_tokens "
  "use_kernels use_mambapy use_split_qkv_input";

/// Settings of training.
constexpr std::string_view OfTraining =
  "_dropout activation_dropout apply_spec_augment attention_dropout attention_dropout_prob "
  "attention_probs_dropout_prob attn_dropout attn_pdrop aux_loss_alpha aux_loss_coef "
  "auxiliary_channels auxiliary_concat_input auxiliary_loss_weight auxiliary_num_convs "
  "batch_size classifier_dropout classifier_dropout_prob classifier_dropout_rate "
  "decoder_layerdrop drop_path_rate dropout dropout_p dropout_prob dropout_rate "
  "emb_dropout_prob emb_pdrop embd_pdrop embed_dropout embedding_dropout encoder_layerdrop "
  "ep_size epochs expert_dropout ffn_dropout gradient_checkpointing hidden_dropout "
  "hidden_dropout_prob init_device init_method init_mode init_std init_weights "
  "initializer_cutoff_factor initializer_factor initializer_range initializer_std "
  "label_smoothing layer_scale_init_value layerdrop layerscale_value learning_rate "
  "linear_a_log_max linear_a_log_min linear_dt_init_floor linear_dt_max linear_dt_min "
  "logit_scale_init_value lora_dropout mask_feature_length mask_feature_min_masks "
  "mask_feature_prob mask_ratio mask_time_length mask_time_min_masks mask_time_prob "
  "max_batch_size max_steps mlp_dropout moe_loss_weight neftune_noise_alpha norm_pix_loss "
  "output_router_logits pooler_dropout pretraining_tp projection_dropout qa_dropout "
  "resid_dropout resid_pdrop residual_dropout router_aux_loss_coef router_bias_update_speed "
  "router_jitter_noise router_z_loss_coef save_step save_steps seed semantic_loss_ignore_index "
  "seq_aux seq_classif_dropout sparse_pred_ignore_index sparse_prediction summary_first_dropout "
  "summary_last_dropout use_aux_loss use_auxiliary_head use_mask_token weight_decay";

/// Settings of the speed or precision of the original code.
constexpr std::string_view OfSpeed =
  "attention_softmax_in_fp32 attn_uses_sequence_id bias_dropout_fusion cache_implementation "
  "cache_position chunk_size_feed_forward fp32_residual fused_bias_fc fused_dropout_add_ln "
  "fused_mlp hybrid_cache masked_softmax_fusion reorder_and_upcast_attn "
  "scale_attention_softmax_in_fp32 seq_length skip_bias_add skip_bias_add_qkv slow_but_exact "
  "use_cache use_cache_kernel use_cache_quantization use_fused_cross_entropy use_fused_rmsnorm "
  "use_xformers";

/// Settings of tokens and generation.
constexpr std::string_view OfGeneration =
  "bad_words_ids begin_suppress_tokens boi_token_id boi_token_index bos_token_id chat_template "
  "cls_token_id decoder_start_token_id default_prepend_bos diversity_penalty do_sample "
  "early_stopping encoder_no_repeat_ngram_size end_token_id eod_token_id eoi_token_id "
  "eoi_token_index eos_token_id exponential_decay_length_penalty fim_token_id "
  "force_bos_token_to_be_generated forced_bos_token_id forced_decoder_ids forced_eos_token_id "
  "image_end_token_id image_newline_token_id image_seq_length image_start_token_id "
  "is_encoder_decoder length_penalty mask_token_id max_length max_new_tokens max_seq_len "
  "max_sequence_length min_length model_max_length no_repeat_ngram_size num_beam_groups "
  "num_beams num_return_sequences pad_token_id prefix remove_invalid_values repetition_penalty "
  "sep_token_id suppress_tokens task_specific_params temperature tokenizer_prepends_bos top_k "
  "top_p typical_p unk_token_id user_defined_symbols vision_end_token_id vision_start_token_id "
  "vision_token_id vocab_list";

/// Settings of heads and other outputs.
constexpr std::string_view OfHeads =
  "add_fpn apply_layernorm classifier.labels classifier.output_labels classifier_activation "
  "classifier_bias classifier_pooling classifier_proj_size decoder_hidden_size "
  "decoder_intermediate_size decoder_num_attention_heads decoder_num_hidden_layers "
  "dense_2_feat_in dense_2_feat_out dense_3_feat_in dense_3_feat_out encoder_stride "
  "finetuning_task id2label is_decoder label2id median_filter_width num_labels out_features "
  "out_indices output_attentions output_hidden_states output_past output_scores pool_scales "
  "pooler_act pooler_fc_size pooler_hidden_act pooler_hidden_size pooler_num_attention_heads "
  "pooler_num_fc_layers pooler_output_size pooler_size_per_head pooler_type pooling_type "
  "problem_type proj_codevector_dim projection_dim projection_size reshape_hidden_states "
  "return_dict return_dict_in_generate sentence_pooling stage_names summary_activation "
  "summary_proj_to_labels summary_type summary_use_proj use_pooler use_weighted_layer_sum "
  "vision_use_head";

/// Settings that the names and shapes of tensors tell.
constexpr std::string_view OfTensors =
  "attention_bias attention_in_bias attention_out_bias bias conv_bias decoder_bias "
  "directionality expert_feed_forward_length expert_shared_feed_forward_length head_dim "
  "key_bias lm_head_bias mlp_bias multimodal_projector_bias no_bias norm_bias "
  "num_key_value_heads proj_bias qkv_bias query_bias sinusoidal_pos_embds tie_encoder_decoder "
  "tie_word_embeddings use_bias use_lm_head_bias use_qkv_bias value_bias vocab_size "
  "weight_tying";

constexpr std::array<std::string_view, 6> Nothing = { OfFiles, OfTraining, OfSpeed, OfGeneration,
  OfHeads, OfTensors };

/// The value with which a setting that changes numbers changes none.
enum class Neutral
{
  Off, ///< null, false, 0, or empty
  One,
  True,
  FullLayers ///< full_attention in all layers
};

constexpr std::string_view Attention =
  "_sliding_window_pattern activation_sparsity_pattern add_cross_attention alibi alibi_bias_max "
  "alibi_starting_size attention.clamp_kqv attention.group_norm_epsilon "
  "attention.group_norm_groups "
  "attention.indexer.head_count attention.indexer.key_length attention.indexer.top_k "
  "attention.key_length_swa attention.kv_lora_rank attention.max_alibi_bias "
  "attention.q_lora_rank attention.recurrent_layers attention.relative_buckets_count "
  "attention.scale attention.shared_kv_layers attention.sliding_window_pattern "
  "attention.temperature_length attention.temperature_scale attention.value_length_swa "
  "attention_chunk_size attention_k_eq_v attention_window attn_config attn_gate attn_layer_indices "
  "attn_logit_soft_cap attn_logit_softcapping attn_output_gate attn_qkv_clip attn_scale "
  "attn_scores_soft_cap attn_temperature_tuning attn_type attn_types clip_qkv "
  "cross_attention_hidden_size final_logit_soft_cap final_logit_softcapping floor_scale "
  "full_attention_interval full_attn_idxs gated_attention global_attn_every_n_layers head_gate "
  "hidden_size_per_layer_input index_topk is_prefix_lm kv_lora_rank layers_block_type "
  "learned_pos_emb "
  "linear_allow_neg_eigval linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads "
  "linear_num_value_heads linear_value_head_dim llama_4_scaling_beta local_attention "
  "local_window_size max_relative_positions multi_query mup_attn_multiplier norm_rel_ebd "
  "num_kv_heads num_kv_shared_layers num_sink_tokens output_logits_soft_cap parallel_attn "
  "pos_att_type position_buckets prefix_lm pruned_heads q_lora_rank qk_head_dim qk_layer_norms "
  "qk_layer_norms_perceiver qk_layernorm qk_ln qk_nope_head_dim qk_norm qk_rope_head_dim "
  "qkv_clip query_pre_attn_scalar relative_attention relative_attention_max_distance "
  "relative_attention_num_buckets router_logit_softcapping scale_attn_by_inverse_layer_idx "
  "share_att_key sliding_window sliding_window_pattern softmax_scale use_alibi "
  "use_bidirectional_attention use_local_attn use_logn_attn use_mla use_mrope use_qk_norm "
  "use_relative_position_bias use_resampler use_shared_relative_position_bias "
  "use_sliding_window use_swa v_head_dim window_size";

constexpr std::string_view Positions =
  "chunked_attention embedding_fraction full_attention global_rope_theta layer_rope_theta "
  "linear_attention local_rope_theta mrope_interleaved mrope_section no_rope_layer_interval "
  "no_rope_layers nope_layer_interval nope_layers ntk_alpha num_patches num_position_embeddings "
  "pos_embed_jitter pos_embed_rescale pos_embed_shift position_embedding_type "
  "rope.dimension_count_swa rope.dimension_sections rope.freq_base_swa rope.scale_linear "
  "rope.scaling.alpha rope.scaling.factor rope.scaling.type rope.scaling.yarn_log_multiplier "
  "rope_interleave rope_interleaved rope_local_base_freq rope_parameters rope_ratio "
  "rope_scaling rope_theta rotary_dim rotary_emb_base sliding_attention use_dynamic_ntk";

constexpr std::string_view Layers =
  "afn altup_active_idx altup_coef_clip altup_correct_scale altup_num_inputs "
  "apply_residual_connection_post_layernorm block_auto_adjust_ff_dim block_ffn_dim_multiplier "
  "block_multiple_of conv_L_cache decoder decoder_block_count deepstack_mapping "
  "deepstack_visual_indexes emb_layer_norm_before embedding_length_out "
  "embedding_length_per_layer_input embedding_size encoder esmfold_config expansion_ratio "
  "ffn_hidden_size hash_layer_count hc_mult hidden_activation hyper_connection.count "
  "image_grid_pinpoints is_folding_model laurel_rank lora_args mm_tokens_per_image "
  "n_deepstack_layers new_decoder_architecture nextn_predict_layers norm_after norm_before_gate "
  "norm_eps norm_epsilon num_ln_in_parallel_attn num_nextn_predict_layers num_register_tokens "
  "per_layer_config post_norm postnorm rescale_every_n_layers rmsnorm_uses_offset "
  "scale_embedding share_layers swiglu_clamp_exp swiglu_clamp_shexp swin_norm text_config_dict "
  "token_dropout use_double_wide_mlp use_gated_mlp use_parallel_residual use_post_norm "
  "use_swiglu_ffn video_token_index vision_aspect_ratio vision_config_dict "
  "vocab_size_per_layer_input word_embed_proj_dim";

constexpr std::string_view Experts =
  "decoder_sparse_step_offset enable_moe_block expert_chunk_feed_forward_length expert_count "
  "expert_group_count expert_group_scale expert_group_used_count expert_layer_offset "
  "expert_layer_period expert_shared_count expert_used_count expert_weights_norm "
  "experts_per_group experts_per_token first_k_dense_replace interleave_moe_layer_step "
  "intermediate_size_mlp leading_dense_block_count mlp_layer_types mlp_only_layers "
  "moe_every_n_layers moe_intermediate_size moe_k moe_latent_size moe_layer_end_index "
  "moe_layer_interval moe_layer_start_index moe_layers moe_norm_min moe_num_experts "
  "moe_num_shared_experts moe_topk n_group n_routed_experts n_shared_experts norm_topk_prob "
  "num_dense_layers num_experts num_experts_per_tok num_local_experts num_shared_experts "
  "scoring_func shared_expert_intermediate_size shared_intermediate_size swiglu_limit "
  "top_k_experts topk_group topk_method use_expert_bias";

constexpr std::string_view FactorSettings =
  "attention.output_scale attention.value_scale attention_multiplier decoder_sparse_step "
  "dim_model_base embedding_multiplier embedding_scale expert_gating_func expert_weights_scale "
  "full_attn_mod inner_group_num interpolate_factor key_multiplier lm_head_multiplier "
  "logit_scale logits_scaling moe_layer_freq mup_scale num_hidden_groups partial_rotary_factor "
  "residual_multiplier residual_scale rope.scaling.yarn_attn_factor "
  "rope.scaling.yarn_ext_factor rope_pct rotary_pct rotary_percent rotary_scaling_factor "
  "routed_scaling_factor scale_depth scale_emb";

constexpr std::string_view Switches =
  "causal do_layer_norm_before is_causal position_biased_input rotary scale_attn_weights "
  "use_rope";

/// Settings that change numbers, by their neutral value. Those of .gguf files have dots.
struct Deciding
{
  std::string_view words;
  Neutral neutral;
};
constexpr std::array<Deciding, 8> Numbers = { {
  { Attention, Neutral::Off },
  { Positions, Neutral::Off },
  { Layers, Neutral::Off },
  { Experts, Neutral::Off },
  { "compression_config quantization quantization_config", Neutral::Off },
  { FactorSettings, Neutral::One },
  { Switches, Neutral::True },
  { "layer_types", Neutral::FullLayers },
} };

std::optional<Neutral> NeutralOf(std::string_view key)
{
  for (const Deciding& deciding : Numbers)
  {
    if (HasWord(deciding.words, key))
    {
      return deciding.neutral;
    }
  }
  return std::nullopt;
}

bool IsNeutral(Neutral neutral, const json& value)
{
  switch (neutral)
  {
    case Neutral::Off:
      return IsOff(value);
    case Neutral::One:
      return IsOff(value) || value == json(1);
    case Neutral::True:
      return value.is_null() || value == json(true);
    case Neutral::FullLayers:
      return value.is_null() ||
             (value.is_array() && std::all_of(value.begin(), value.end(),
                                    [](const json& type) { return type == "full_attention"; }));
  }
  return false;
}

std::string_view NameOf(Neutral neutral)
{
  constexpr std::array<std::string_view, 4> names = { "off", "1", "true",
    "full_attention in all layers" };
  return names[static_cast<std::size_t>(neutral)];
}

}

SettingRole RoleOf(std::string_view key)
{
  if (NeutralOf(key))
  {
    return SettingRole::ChangesNumbers;
  }
  const bool isKnown = std::any_of(
    Nothing.begin(), Nothing.end(), [key](std::string_view words) { return HasWord(words, key); });
  return isKnown ? SettingRole::ChangesNothing : SettingRole::Unknown;
}

std::vector<std::string> DecideUnread(const Settings& settings, const std::string& model)
{
  std::vector<std::string> unknown;
  for (const Settings::Unread& unread : settings.FindUnread())
  {
    const std::optional<Neutral> neutral = NeutralOf(unread.key);
    if (neutral && !IsNeutral(*neutral, *unread.value))
    {
      settings.Fail("'", unread.place, unread.key, "' is ", Describe(*unread.value),
        ", which changes what a model computes, and '", model,
        "' is run without it; expected it to be left out or ", NameOf(*neutral), ".");
    }
    if (RoleOf(unread.key) == SettingRole::Unknown && !IsOff(*unread.value))
    {
      unknown.push_back(unread.place + unread.key);
    }
  }
  return unknown;
}

}
