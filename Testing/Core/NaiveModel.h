#pragma once

#include "NaiveLlama.h"

#include <map>

namespace atlas::test
{

/// The architectures of Hugging Face written anew, one by one, as plain matrix products in double
/// precision, from the formulas of the original code. It reads config.json itself and asks for
/// weights by their names there, so that neither settings nor names are those that the product
/// understands.
class NaiveModel : public NaiveLlama
{
public:
  using NaiveLlama::NaiveLlama;

  Run RunText(const std::vector<std::int64_t>& ids)
  {
    using Runner = Run (NaiveModel::*)(const std::vector<std::int64_t>&);
    static const std::map<std::string, Runner> others = { { "phi", &NaiveModel::RunOneNorm },
      { "gptj", &NaiveModel::RunOneNorm }, { "stablelm", &NaiveModel::RunStableLm },
      { "gpt_neox", &NaiveModel::RunGptNeoX }, { "opt", &NaiveModel::RunOpt },
      { "gpt_neo", &NaiveModel::RunGptNeo }, { "roberta", &NaiveModel::RunEncoder },
      { "distilbert", &NaiveModel::RunEncoder }, { "clip_text_model", &NaiveModel::RunClipText } };
    const auto other = others.find(this->Type);
    return other == others.end() ? this->RunLlama(ids) : (this->*other->second)(ids);
  }

  /// An image [3, h, w].
  Run RunImage(const std::vector<double>& pixels)
  {
    return this->Type == "clip_vision_model" ? this->RunClipVision(pixels) : this->RunVit(pixels);
  }

protected:
  // Phi and GPT-J.

  Run RunOneNorm(const std::vector<std::int64_t>& ids)
  {
    const bool isPhi = this->Type == "phi";
    const std::string base = this->Prefix(isPhi ? "model." : "transformer.");
    const std::string embedding = base + (isPhi ? "embed_tokens.weight" : "wte.weight");
    const Index d = this->Count(isPhi ? "hidden_size" : "n_embd");
    const Index heads = this->Count(isPhi ? "num_attention_heads" : "n_head");
    const Attention how = How(heads, isPhi ? this->Count("num_key_value_heads", heads) : heads, d);
    const Index size = d / heads;
    const double epsilon = this->Number(isPhi ? "layer_norm_eps" : "layer_norm_epsilon", 1e-5);
    const Index inner = isPhi ? this->Count("intermediate_size") : this->Count("n_inner", 4 * d);
    const std::string activation =
      this->Text(isPhi ? "hidden_act" : "activation_function", "gelu_new");
    Run run;
    Rows x = this->Embed(ids, embedding, this->Count("vocab_size"), d);
    Rotation rotation;
    if (isPhi)
    {
      rotation = this->UsualRotation(size, this->Number("partial_rotary_factor", 0.5), x.rows());
    }
    else
    {
      rotation.angles = PlainAngles(10000, this->Count("rotary_dim", 64));
      rotation.isInterleaved = true;
    }
    for (Index l = 0; l < this->Count(isPhi ? "num_hidden_layers" : "n_layer"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + (isPhi ? "layers." : "h.") + std::to_string(l) + ".";
      const std::string block = name + (isPhi ? "self_attn." : "attn.");
      const Rows normed = this->LayerNorm(x, name + (isPhi ? "input_layernorm" : "ln_1"), epsilon);
      Rows q = this->Linear(normed, block + "q_proj", how.heads * size, isPhi);
      Rows k = this->Linear(normed, block + "k_proj", how.keyHeads * size, isPhi);
      const Rows v = this->Linear(normed, block + "v_proj", how.keyHeads * size, isPhi);
      if (isPhi && this->Is("qk_layernorm", false)) // one for all heads
      {
        NormHeads(q, size, [&](const Rows& part, Index)
          { return this->LayerNorm(part, block + "q_layernorm", epsilon); });
        NormHeads(k, size, [&](const Rows& part, Index)
          { return this->LayerNorm(part, block + "k_layernorm", epsilon); });
      }
      Rotate(q, size, rotation);
      Rotate(k, size, rotation);
      x += this->Attend(q, k, v, how, block + (isPhi ? "dense" : "out_proj"), d, isPhi, run);
      x += this->Mlp(normed, name + (isPhi ? "mlp.fc1" : "mlp.fc_in"),
        name + (isPhi ? "mlp.fc2" : "mlp.fc_out"), inner, activation);
    }
    x = this->LayerNorm(x, base + (isPhi ? "final_layernorm" : "ln_f"), epsilon);
    run.hidden.push_back(x);
    run.logits =
      this->Unembed(x, "lm_head", embedding, this->Is("tie_word_embeddings", false), true);
    return run;
  }

  Run RunStableLm(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("model.");
    const Index d = this->Count("hidden_size");
    const Attention how =
      How(this->Count("num_attention_heads", 32), this->Count("num_key_value_heads", 32), d);
    const Index size = d / how.heads;
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    const bool hasBias = this->Is("use_qkv_bias", false);
    const bool isParallel = this->Is("use_parallel_residual", false);
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), d);
    const Rotation rotation =
      this->UsualRotation(size, this->Number("partial_rotary_factor", 0.25), x.rows());
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      const Rows normed = this->LayerNorm(x, name + "input_layernorm", epsilon);
      Rows q = this->Linear(normed, name + "self_attn.q_proj", how.heads * size, hasBias);
      Rows k = this->Linear(normed, name + "self_attn.k_proj", how.keyHeads * size, hasBias);
      const Rows v = this->Linear(normed, name + "self_attn.v_proj", how.keyHeads * size, hasBias);
      if (this->Is("qk_layernorm", false))
      {
        this->NormEachHead(q, name + "self_attn.q_layernorm.norms.", size, epsilon);
        this->NormEachHead(k, name + "self_attn.k_layernorm.norms.", size, epsilon);
      }
      Rotate(q, size, rotation);
      Rotate(k, size, rotation);
      const Rows attended = this->Attend(q, k, v, how, name + "self_attn.o_proj", d, false, run);
      x += attended;
      x += this->GatedMlp(
        isParallel ? normed : this->LayerNorm(x, name + "post_attention_layernorm", epsilon),
        name + "mlp.", this->Text("hidden_act", "silu"), false);
    }
    x = this->LayerNorm(x, base + "norm", epsilon);
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "lm_head", base + "embed_tokens.weight", this->Is("tie_word_embeddings", false));
    return run;
  }

  void NormEachHead(Rows& x, const std::string& name, Index size, double epsilon)
  {
    NormHeads(x, size,
      [&](const Rows& part, Index h)
      {
        const Rows gain = this->Get(name + std::to_string(h) + ".weight", { size });
        return Scaled(Normalized(part, epsilon), gain);
      });
  }

  Run RunGptNeoX(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("gpt_neox.");
    const Index d = this->Count("hidden_size");
    const Index heads = this->Count("num_attention_heads");
    const Attention how = How(heads, heads, d);
    const Index size = d / heads;
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    const bool hasBias = this->Is("attention_bias", true);
    Run run;
    Rows x = this->Embed(ids, base + "embed_in.weight", this->Count("vocab_size"), d);
    const Rotation rotation = this->UsualRotation(size, this->Number("rotary_pct", 0.25), x.rows());
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      const Rows all = this->Linear(this->LayerNorm(x, name + "input_layernorm", epsilon),
        name + "attention.query_key_value", 3 * d, hasBias);
      std::array<Rows, 3> parts; // queries, keys and values of a head lie together
      for (Index kind = 0; kind < 3; ++kind)
      {
        parts.at(kind).resize(all.rows(), d);
        for (Index h = 0; h < heads; ++h)
        {
          parts.at(kind).middleCols(h * size, size) = all.middleCols((3 * h + kind) * size, size);
        }
      }
      Rotate(parts[0], size, rotation);
      Rotate(parts[1], size, rotation);
      const Rows attended =
        this->Attend(parts[0], parts[1], parts[2], how, name + "attention.dense", d, hasBias, run);
      const Rows between = x + attended;
      const Rows& second = this->Is("use_parallel_residual", true) ? x : between;
      x = between + this->Mlp(this->LayerNorm(second, name + "post_attention_layernorm", epsilon),
                      name + "mlp.dense_h_to_4h", name + "mlp.dense_4h_to_h",
                      this->Count("intermediate_size"), this->Text("hidden_act", "gelu"));
    }
    x = this->LayerNorm(x, base + "final_layer_norm", epsilon);
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "embed_out", base + "embed_in.weight", this->Is("tie_word_embeddings", false));
    return run;
  }

  Run RunOpt(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("model.decoder.");
    const Index d = this->Count("hidden_size");
    const Index embedded = this->Count("word_embed_proj_dim", d);
    const Index heads = this->Count("num_attention_heads");
    const Attention how = How(heads, heads, d);
    const bool isBefore = this->Is("do_layer_norm_before", true);
    const bool hasBias = this->Is("enable_bias", true);
    const bool hasGains = this->Is("layer_norm_elementwise_affine", true);
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), embedded);
    if (embedded != d)
    {
      x = this->Linear(x, base + "project_in", d, false);
    }
    x += this->Positions(
      base + "embed_positions.weight", this->Count("max_position_embeddings") + 2, x, 2);
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      const auto norm = [&](const Rows& rows, const char* which)
      { return this->LayerNorm(rows, name + which, 1e-5, hasGains); };
      const Rows from = isBefore ? norm(x, "self_attn_layer_norm") : x;
      const std::string block = name + "self_attn.";
      x += this->SelfAttend(from,
        { block + "q_proj", block + "k_proj", block + "v_proj", block + "out_proj" }, how, d,
        hasBias, hasBias, run);
      x = isBefore ? x : norm(x, "self_attn_layer_norm");
      x += this->Mlp(isBefore ? norm(x, "final_layer_norm") : x, name + "fc1", name + "fc2",
        this->Count("ffn_dim"), this->Text("activation_function", "relu"), hasBias);
      x = isBefore ? x : norm(x, "final_layer_norm");
    }
    if (isBefore && !this->Is("_remove_final_layer_norm", false))
    {
      x = this->LayerNorm(x, base + "final_layer_norm", 1e-5, hasGains);
    }
    run.hidden.push_back(x);
    if (embedded != d)
    {
      x = this->Linear(x, base + "project_out", embedded, false);
    }
    run.logits = this->Unembed(
      x, "lm_head", base + "embed_tokens.weight", this->Is("tie_word_embeddings", true));
    return run;
  }

  Run RunGptNeo(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("transformer.");
    const Index d = this->Count("hidden_size");
    const Index heads = this->Count("num_heads");
    Attention how = How(heads, heads, d);
    how.scale = 1;
    const double epsilon = this->Number("layer_norm_epsilon", 1e-5);
    std::vector<std::string> kinds;
    if (Has(this->Config, "attention_layers"))
    {
      kinds = this->Config.at("attention_layers").get<std::vector<std::string>>();
    }
    else
    {
      for (const nlohmann::json& item : this->Config.at("attention_types"))
      {
        for (int i = 0; i < item.at(1).get<int>(); ++i)
        {
          for (const nlohmann::json& kind : item.at(0))
          {
            kinds.push_back(kind);
          }
        }
      }
    }
    Run run;
    Rows x = this->Embed(ids, base + "wte.weight", this->Count("vocab_size"), d);
    x += this->Positions(base + "wpe.weight", this->Count("max_position_embeddings"), x);
    for (Index l = 0; l < this->Count("num_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "h." + std::to_string(l) + ".";
      const std::string block = name + "attn.attention.";
      how.window = kinds.at(l) == "local" ? this->Count("window_size", 256) : 0;
      x += this->SelfAttend(this->LayerNorm(x, name + "ln_1", epsilon),
        { block + "q_proj", block + "k_proj", block + "v_proj", block + "out_proj" }, how, d, false,
        true, run);
      x += this->Mlp(this->LayerNorm(x, name + "ln_2", epsilon), name + "mlp.c_fc",
        name + "mlp.c_proj", this->Count("intermediate_size", 4 * d),
        this->Text("activation_function", "gelu_new"));
    }
    x = this->LayerNorm(x, base + "ln_f", epsilon);
    run.hidden.push_back(x);
    run.logits =
      this->Unembed(x, "lm_head", base + "wte.weight", this->Is("tie_word_embeddings", true));
    return run;
  }

  /// The vectors of positions `first`, first + 1, ... of a table, one for each row of x.
  Rows Positions(const std::string& name, Index rows, const Rows& x, Index first = 0)
  {
    return this->Get(name, { rows, x.cols() }).middleRows(first, x.rows());
  }

  // RoBERTa and DistilBERT.

  Run RunEncoder(const std::vector<std::int64_t>& ids)
  {
    const bool isRoberta = this->Type == "roberta";
    const std::string base = this->Prefix(isRoberta ? "roberta." : "distilbert.");
    const Index d = this->Count(isRoberta ? "hidden_size" : "dim");
    const Index heads = this->Count(isRoberta ? "num_attention_heads" : "n_heads");
    Attention how = How(heads, heads, d);
    how.isCausal = false;
    const double epsilon = isRoberta ? this->Number("layer_norm_eps", 1e-12) : 1e-12;
    const std::string activation = this->Text(isRoberta ? "hidden_act" : "activation", "gelu");
    const Index vocabulary = this->Count("vocab_size");
    const std::string embedding = base + "embeddings.word_embeddings.weight";
    Run run;
    Rows x = this->Embed(ids, embedding, vocabulary, d);
    const Index padding = this->Count("pad_token_id", 1);
    std::vector<std::int64_t> places;
    std::int64_t seen = 0;
    for (Index t = 0; t < x.rows(); ++t)
    {
      seen += ids[t] == padding ? 0 : 1;
      places.push_back(!isRoberta ? t : ids[t] == padding ? padding : padding + seen);
    }
    x += this->Embed(places, base + "embeddings.position_embeddings.weight",
      this->Count("max_position_embeddings"), d);
    if (isRoberta)
    {
      x.rowwise() += this
                       ->Get(base + "embeddings.token_type_embeddings.weight",
                         { this->Count("type_vocab_size"), d })
                       .row(0);
    }
    x = this->LayerNorm(x, base + "embeddings.LayerNorm", epsilon);
    for (Index l = 0; l < this->Count(isRoberta ? "num_hidden_layers" : "n_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name =
        base + (isRoberta ? "encoder.layer." : "transformer.layer.") + std::to_string(l) + ".";
      const std::string block = name + (isRoberta ? "attention.self." : "attention.");
      x += this->SelfAttend(x,
        { block + (isRoberta ? "query" : "q_lin"), block + (isRoberta ? "key" : "k_lin"),
          block + (isRoberta ? "value" : "v_lin"),
          name + (isRoberta ? "attention.output.dense" : "attention.out_lin") },
        how, d, true, true, run);
      x = this->LayerNorm(
        x, name + (isRoberta ? "attention.output.LayerNorm" : "sa_layer_norm"), epsilon);
      x += this->Mlp(x, name + (isRoberta ? "intermediate.dense" : "ffn.lin1"),
        name + (isRoberta ? "output.dense" : "ffn.lin2"),
        this->Count(isRoberta ? "intermediate_size" : "hidden_dim"), activation);
      x =
        this->LayerNorm(x, name + (isRoberta ? "output.LayerNorm" : "output_layer_norm"), epsilon);
    }
    run.hidden.push_back(x);
    x =
      this->LayerNorm(Activate(this->Linear(x, isRoberta ? "lm_head.dense" : "vocab_transform", d),
                        isRoberta ? "gelu" : activation),
        isRoberta ? "lm_head.layer_norm" : "vocab_layer_norm", epsilon);
    run.logits = this->Unembed(x, isRoberta ? "lm_head" : "vocab_projector", embedding, true, true);
    return run;
  }

  // Images, and CLIP.

  /// Linear maps of the patches, row by row.
  Rows Patches(const std::vector<double>& pixels, const std::string& name, Index d, bool hasBias)
  {
    const Index side = this->Count("image_size", 224);
    const Index patch = this->Count("patch_size", 16);
    const Index channels = this->Count("num_channels", 3);
    const Index count = side / patch;
    Rows flat(count * count, channels * patch * patch);
    for (Index place = 0; place < flat.rows(); ++place)
    {
      for (Index i = 0; i < flat.cols(); ++i)
      {
        const Index y = place / count * patch + i / patch % patch;
        const Index x = place % count * patch + i % patch;
        flat(place, i) = pixels[(i / (patch * patch) * side + y) * side + x];
      }
    }
    Rows x = flat * this->Get(name + ".weight", { d, channels, patch, patch }).transpose();
    if (hasBias)
    {
      x.rowwise() += this->Get(name + ".bias", { d }).row(0);
    }
    return x;
  }

  /// Rows one above another.
  static Rows Stacked(const Rows& above, const Rows& below)
  {
    Rows both(above.rows() + below.rows(), above.cols());
    both << above, below;
    return both;
  }

  Run RunVit(const std::vector<double>& pixels)
  {
    const bool isDino = this->Type != "deit" && this->Type != "vit";
    const std::string base = this->Prefix(this->Type + ".");
    const Index d = this->Count("hidden_size");
    const Index heads = this->Count("num_attention_heads");
    Attention how = How(heads, heads, d);
    how.isCausal = false;
    const double epsilon = this->Number("layer_norm_eps", isDino ? 1e-6 : 1e-12);
    const std::string activation = this->Text("hidden_act", "gelu");
    const bool hasBias = this->Is("qkv_bias", true);
    Rows first = this->Get(base + "embeddings.cls_token", { 1, 1, d });
    if (this->Type == "deit")
    {
      first = Stacked(first, this->Get(base + "embeddings.distillation_token", { 1, 1, d }));
    }
    Rows x = Stacked(
      first, this->Patches(pixels, base + "embeddings.patch_embeddings.projection", d, true));
    const Rows positions = this->Get(base + "embeddings.position_embeddings", { 1, x.rows(), d });
    x += Eigen::Map<const Rows>(positions.data(), x.rows(), d);
    if (isDino)
    {
      this->Get(base + "embeddings.mask_token", { 1, d });
    }
    if (this->Type == "dinov2_with_registers")
    {
      const Index registers = this->Count("num_register_tokens", 4);
      const Rows table = this->Get(base + "embeddings.register_tokens", { 1, registers, d });
      x = Stacked(Stacked(x.topRows(1), Eigen::Map<const Rows>(table.data(), registers, d)),
        x.bottomRows(x.rows() - 1));
    }
    Run run;
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "encoder.layer." + std::to_string(l) + ".";
      const std::string block = name + "attention.attention.";
      const auto scaled = [&](const Rows& added, const char* which)
      { return isDino ? Scaled(added, this->Get(name + which + ".lambda1", { d })) : added; };
      const Rows attended = this->SelfAttend(
        this->LayerNorm(x, name + (isDino ? "norm1" : "layernorm_before"), epsilon),
        { block + "query", block + "key", block + "value", name + "attention.output.dense" }, how,
        d, hasBias, true, run);
      x += scaled(attended, "layer_scale1");
      const Rows normed =
        this->LayerNorm(x, name + (isDino ? "norm2" : "layernorm_after"), epsilon);
      const double ratio = this->Number("mlp_ratio", 4);
      const auto wide = static_cast<Index>(static_cast<double>(d) * ratio);
      Rows added;
      if (isDino && this->Is("use_swiglu_ffn", false))
      {
        const Index inner = (static_cast<Index>(static_cast<double>(wide) * 2 / 3) + 7) / 8 * 8;
        const Rows both = this->Linear(normed, name + "mlp.weights_in", 2 * inner);
        const Rows gate = Activate(both.leftCols(inner), "silu");
        added = this->Linear(gate.cwiseProduct(both.rightCols(inner)), name + "mlp.weights_out", d);
      }
      else
      {
        added = isDino ? this->Mlp(normed, name + "mlp.fc1", name + "mlp.fc2", wide, activation)
                       : this->Mlp(normed, name + "intermediate.dense", name + "output.dense",
                           this->Count("intermediate_size"), activation);
      }
      x += scaled(added, "layer_scale2");
    }
    run.hidden.push_back(x);
    this->LayerNorm(x, base + "layernorm", epsilon);
    return run;
  }

  Run RunClipText(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("text_model.");
    Rows x = this->Embed(ids, base + "embeddings.token_embedding.weight", this->Count("vocab_size"),
      this->Count("hidden_size"));
    x += this->Positions(
      base + "embeddings.position_embedding.weight", this->Count("max_position_embeddings"), x);
    Run run = this->RunClipLayers(x, base, true);
    this->LayerNorm(x, base + "final_layer_norm", 1e-5);
    return run;
  }

  Run RunClipVision(const std::vector<double>& pixels)
  {
    const std::string base = this->Prefix("vision_model.");
    const Index d = this->Count("hidden_size");
    Rows x = Stacked(this->Get(base + "embeddings.class_embedding", { d }),
      this->Patches(pixels, base + "embeddings.patch_embedding", d, false));
    x += this->Positions(base + "embeddings.position_embedding.weight", x.rows(), x);
    x = this->LayerNorm(x, base + "pre_layrnorm", this->Number("layer_norm_eps", 1e-5));
    Run run = this->RunClipLayers(x, base, false);
    this->LayerNorm(x, base + "post_layernorm", 1e-5);
    return run;
  }

  Run RunClipLayers(Rows x, const std::string& base, bool isCausal)
  {
    const Index d = x.cols();
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    const Index heads = this->Count("num_attention_heads");
    Attention how = How(heads, heads, d);
    how.isCausal = isCausal;
    Run run;
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "encoder.layers." + std::to_string(l) + ".";
      const std::string block = name + "self_attn.";
      x += this->SelfAttend(this->LayerNorm(x, name + "layer_norm1", epsilon),
        { block + "q_proj", block + "k_proj", block + "v_proj", block + "out_proj" }, how, d, true,
        true, run);
      x += this->Mlp(this->LayerNorm(x, name + "layer_norm2", epsilon), name + "mlp.fc1",
        name + "mlp.fc2", this->Count("intermediate_size"), this->Text("hidden_act", "quick_gelu"));
    }
    run.hidden.push_back(x);
    return run;
  }
};

}
