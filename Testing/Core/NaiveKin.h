#pragma once

#include "KinSettings.h"

namespace atlas::test
{

/// Decoders since 2023 that are Llama or GPT with other switches, like NaiveModel.
class NaiveKin : public KinSettings
{
public:
  using KinSettings::KinSettings;

  /// Of one of these, or of the others.
  Run RunKnownText(const std::vector<std::int64_t>& ids)
  {
    const bool isKin = this->Is({ "apertus", "arcee", "biogpt", "bitnet", "codegen", "cohere",
      "cohere2", "ernie4_5", "exaone4", "falcon", "glm", "glm4", "gpt_bigcode", "granite",
      "granite_swa", "helium", "hunyuan_v1_dense", "ministral", "ministral3", "modernbert-decoder",
      "mpt", "nemotron", "olmo2", "olmo3", "openai-gpt", "seed_oss", "smollm3", "starcoder2",
      "vaultgemma", "xglm" });
    return isKin ? this->RunKin(ids) : this->RunText(ids);
  }

private:
  Run RunKin(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix(this->BasePrefix());
    const Index d =
      this->Count(this->Is({ "mpt", "xglm" })                            ? "d_model"
                  : this->Is({ "gpt_bigcode", "openai-gpt", "codegen" }) ? "n_embd"
                                                                         : "hidden_size");
    const Index layers =
      this->Count(this->Is({ "xglm" })                                   ? "num_layers"
                  : this->Is({ "mpt" })                                  ? "n_layers"
                  : this->Is({ "gpt_bigcode", "openai-gpt", "codegen" }) ? "n_layer"
                                                                         : "num_hidden_layers");
    const std::string table = base + this->TableName();
    Run run;
    Rows x = this->Embed(ids, table, this->Count("vocab_size"), d);
    x *= this->Is({ "granite", "granite_swa" }) ? this->Number("embedding_multiplier", 1)
         : this->Is({ "vaultgemma" }) ||
             (this->Is({ "biogpt", "xglm" }) && NaiveModel::Is("scale_embedding", true))
           ? std::sqrt(static_cast<double>(d))
           : 1;
    x += this->PositionsOf(base, x);
    if (this->Is({ "modernbert-decoder" }))
    {
      x = this->Norm(x, base + "embeddings.norm");
    }
    for (Index l = 0; l < layers; ++l)
    {
      run.hidden.push_back(x);
      this->RunLayer(x, base, l, run);
    }
    if (!this->Is({ "openai-gpt" }))
    {
      x = this->Norm(x, base + this->FinalNorm());
    }
    run.hidden.push_back(x);
    this->RunHead(x, table, run);
    return run;
  }

  Rows PositionsOf(const std::string& base, const Rows& x)
  {
    if (this->Is({ "xglm" }))
    {
      Rows sines(x.rows(), x.cols());
      const Index half = x.cols() / 2;
      for (Index i = 0; i < sines.size(); ++i)
      {
        const Index j = i % x.cols();
        const double angle = static_cast<double>(i / x.cols() + 2) *
                             std::exp(-std::log(10000.0) * static_cast<double>(j % half) /
                                      static_cast<double>(half - 1));
        sines.data()[i] = j < half ? std::sin(angle) : std::cos(angle);
      }
      return sines;
    }
    if (!this->Is({ "gpt_bigcode", "openai-gpt", "biogpt", "xglm" }))
    {
      return Rows::Zero(x.rows(), x.cols());
    }
    const bool isBio = this->Is({ "biogpt", "xglm" });
    const char* name = isBio                        ? "embed_positions.weight"
                       : this->Is({ "openai-gpt" }) ? "positions_embed.weight"
                                                    : "wpe.weight";
    const Index rows =
      this->Count(isBio ? "max_position_embeddings" : "n_positions") + (isBio ? 2 : 0);
    return this->Get(base + name, { rows, x.cols() }).middleRows(isBio ? 2 : 0, x.rows());
  }

  Rows Norm(const Rows& x, const std::string& name)
  {
    if (!this->HasLayerNorm())
    {
      return this->RmsNorm(x, name, this->Epsilon(), this->Is({ "vaultgemma" }) ? 1 : 0);
    }
    const Rows gain = this->Get(name + ".weight", { x.cols() });
    Rows y = Scaled(Normalized(x, this->Epsilon()),
      (gain.array() + (this->Is({ "nemotron" }) ? 1.0 : 0.0)).matrix());
    const bool hasShift = this->Is({ "modernbert-decoder" })
                            ? NaiveModel::Is("norm_bias", false)
                            : !this->Is({ "cohere", "cohere2", "mpt" });
    if (hasShift)
    {
      y.rowwise() += this->Get(name + ".bias", { x.cols() }).row(0);
    }
    return y;
  }

  void RunLayer(Rows& x, const std::string& base, Index l, Run& run)
  {
    const std::string name = this->LayerName(base, l);
    if (this->Is({ "olmo2", "olmo3", "exaone4" }))
    {
      x += this->Norm(this->Attention(x, name, l, run), name + "post_attention_layernorm");
      x += this->Norm(this->Inner(x, name), name + "post_feedforward_layernorm");
      return;
    }
    if (this->Is({ "openai-gpt" }))
    {
      x = this->Norm(x + this->Attention(x, name, l, run), name + "ln_1");
      x = this->Norm(x + this->Inner(x, name), name + "ln_2");
      return;
    }
    if (this->Is({ "cohere", "cohere2", "codegen" }))
    {
      const Rows normed =
        this->Norm(x, name + (this->Is({ "codegen" }) ? "ln_1" : "input_layernorm"));
      const Rows attended = this->Attention(normed, name, l, run);
      x += attended + this->Inner(normed, name);
      return;
    }
    if (this->Is({ "falcon" }) && NaiveModel::Is("parallel_attn", true))
    {
      const bool hasTwo = NaiveModel::Is("new_decoder_architecture", false) &&
                          this->Count("num_ln_in_parallel_attn", 2) == 2;
      const Rows first = this->Norm(x, name + (hasTwo ? "ln_attn" : "input_layernorm"));
      const Rows second = hasTwo ? this->Norm(x, name + "ln_mlp") : first;
      const Rows attended = this->Attention(first, name, l, run);
      x += attended + this->Inner(second, name);
      return;
    }
    const bool isModern = this->Is({ "modernbert-decoder" });
    const char* first = this->Is({ "mpt" })              ? "norm_1"
                        : this->Is({ "gpt_bigcode" })    ? "ln_1"
                        : isModern                       ? "attn_norm"
                        : this->Is({ "biogpt", "xglm" }) ? "self_attn_layer_norm"
                        : this->Is({ "apertus" })        ? "attention_layernorm"
                                                         : "input_layernorm";
    const char* second = this->Is({ "mpt" })              ? "norm_2"
                         : this->Is({ "gpt_bigcode" })    ? "ln_2"
                         : isModern                       ? "mlp_norm"
                         : this->Is({ "biogpt", "xglm" }) ? "final_layer_norm"
                         : this->Is({ "apertus" })        ? "feedforward_layernorm"
                         : this->Is({ "vaultgemma" })     ? "pre_feedforward_layernorm"
                                                          : "post_attention_layernorm";
    const double scale =
      this->Is({ "granite", "granite_swa" }) ? this->Number("residual_multiplier", 1) : 1;
    const bool hasFour = this->Is({ "glm4" });
    Rows added =
      this->Attention(isModern && l == 0 ? x : this->Norm(x, name + first), name, l, run);
    x += scale * (hasFour ? this->Norm(added, name + "post_self_attn_layernorm") : added);
    added = this->Inner(this->Norm(x, name + second), name);
    x += scale * (hasFour ? this->Norm(added, name + "post_mlp_layernorm") : added);
  }

  /// Queries, keys and values [T, heads size] of one tensor, or of three.
  std::array<Rows, 3> Projections(
    const Rows& x, const std::string& name, Index size, Index keyHeads)
  {
    const Index heads = this->Heads();
    const Index all = (heads + 2 * keyHeads) * size;
    const bool hasBias = this->InputBias();
    std::array<Rows, 3> found = { Rows(x.rows(), heads * size), Rows(x.rows(), keyHeads * size),
      Rows(x.rows(), keyHeads * size) };
    if (this->Is({ "mpt" }))
    {
      const Rows fused = this->Linear(x, name + "attn.Wqkv", all, hasBias);
      return { fused.leftCols(heads * size), fused.middleCols(heads * size, heads * size),
        fused.rightCols(heads * size) };
    }
    if (this->Is({ "openai-gpt" })) // its own matrices, [inputs, outputs]
    {
      Rows fused = x * this->Get(name + "attn.c_attn.weight", { x.cols(), all });
      fused.rowwise() += this->Get(name + "attn.c_attn.bias", { all }).row(0);
      return { fused.leftCols(heads * size), fused.middleCols(heads * size, heads * size),
        fused.rightCols(heads * size) };
    }
    if (this->Is({ "codegen" }))
    {
      const Rows fused = this->Linear(x, name + "attn.qkv_proj", all, false);
      const Index width = heads * size / 4;
      for (Index block = 0; block < 4; ++block)
      {
        found[0].middleCols(block * width, width) = fused.middleCols(3 * block * width, width);
        found[2].middleCols(block * width, width) =
          fused.middleCols((3 * block + 1) * width, width);
        found[1].middleCols(block * width, width) =
          fused.middleCols((3 * block + 2) * width, width);
      }
      return found;
    }
    if (this->Is({ "falcon", "gpt_bigcode" }))
    {
      const Rows fused = this->Linear(x,
        name + (this->Is({ "falcon" }) ? "self_attention.query_key_value" : "attn.c_attn"), all,
        hasBias);
      const Index group = heads / keyHeads;
      for (Index g = 0; g < keyHeads; ++g)
      {
        const Index first = g * (group + 2) * size;
        found[0].middleCols(g * group * size, group * size) = fused.middleCols(first, group * size);
        found[1].middleCols(g * size, size) = fused.middleCols(first + group * size, size);
        found[2].middleCols(g * size, size) = fused.middleCols(first + (group + 1) * size, size);
      }
      return found;
    }
    const std::string block = name + (this->Is({ "modernbert-decoder" }) ? "attn." : "self_attn.");
    return { this->Linear(x, block + "q_proj", heads * size, hasBias),
      this->Linear(x, block + "k_proj", keyHeads * size, hasBias),
      this->Linear(x, block + "v_proj", keyHeads * size, hasBias) };
  }

  void NormQueries(std::array<Rows, 3>& found, const std::string& name, Index size)
  {
    const std::string block = name + "self_attn.";
    if (this->Is({ "olmo2", "olmo3" }))
    {
      found[0] = this->Norm(found[0], block + "q_norm");
      found[1] = this->Norm(found[1], block + "k_norm");
      return;
    }
    const bool isHunyuan = this->Is({ "hunyuan_v1_dense" });
    if (this->Is({ "exaone4", "apertus" }) || isHunyuan)
    {
      const auto norm = [&](const char* which)
      {
        return [this, which, block](const Rows& part, Index)
        { return this->Norm(part, block + which); };
      };
      NormHeads(found[0], size, norm(isHunyuan ? "query_layernorm" : "q_norm"));
      NormHeads(found[1], size, norm(isHunyuan ? "key_layernorm" : "k_norm"));
      return;
    }
    if (this->Is({ "cohere" }) && NaiveModel::Is("use_qk_norm", false))
    {
      const auto norm = [&](const char* which, Index heads)
      {
        const Rows gains = this->Get(block + which + ".weight", { heads, size });
        return [this, gains](const Rows& part, Index h)
        { return Scaled(Normalized(part, this->Epsilon()), gains.row(h)); };
      };
      NormHeads(found[0], size, norm("q_norm", this->Heads()));
      NormHeads(found[1], size, norm("k_norm", this->KeyHeads()));
    }
  }

  Rows Attention(const Rows& x, const std::string& name, Index l, Run& run)
  {
    const Index d = x.cols();
    NaiveModel::Attention how = How(this->Heads(), this->KeyHeads(), d);
    const bool splits = this->Is({ "cohere2", "falcon", "mpt", "gpt_bigcode", "openai-gpt",
      "codegen", "biogpt", "xglm", "modernbert-decoder" });
    const bool isWide = this->Is({ "glm", "glm4", "ernie4_5", "seed_oss", "ministral3" }) &&
                        !this->Config.contains("head_dim");
    const Index size = splits   ? d / how.heads
                       : isWide ? 128
                                : this->Count("head_dim", d / how.heads);
    how.scale = this->Is({ "granite", "granite_swa" }) ? this->Number("attention_multiplier", 1)
                : this->Is({ "vaultgemma" })
                  ? 1 / std::sqrt(this->Number("query_pre_attn_scalar", 256))
                : this->Is({ "gpt_bigcode" }) && !NaiveModel::Is("scale_attn_weights", true)
                  ? 1
                  : 1 / std::sqrt(static_cast<double>(size));
    how.window = this->KinWindow(l);
    how.cap = this->Is({ "vaultgemma" }) ? this->Cap("attn_logit_softcapping", 50) : 0;
    if (this->Is({ "granite_swa" }))
    {
      how.sinks = this->Get(name + "self_attn.sinks", { how.heads });
      how.sinksAreOutside = true;
    }
    if (this->Is({ "mpt" }) || (this->Is({ "falcon" }) && NaiveModel::Is("alibi", false)))
    {
      for (Index h = 0; h < how.heads; ++h) // of powers of two
      {
        const double slope =
          std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(how.heads));
        how.slopes.push_back(this->Is({ "mpt" }) ? slope : slope * how.scale);
      }
    }
    std::array<Rows, 3> found = this->Projections(x, name, size, how.keyHeads);
    if (this->Is({ "mpt" }))
    {
      const nlohmann::json attention = this->Config.value("attn_config", nlohmann::json::object());
      if (Has(attention, "softmax_scale"))
      {
        how.scale = attention.at("softmax_scale");
      }
      for (Rows& rows : found)
      {
        const double limit =
          Has(attention, "clip_qkv") ? attention.at("clip_qkv").get<double>() : 1e9;
        rows = rows.cwiseMax(-limit).cwiseMin(limit).eval();
      }
    }
    const bool normsLast = this->Is({ "hunyuan_v1_dense" });
    if (!normsLast)
    {
      this->NormQueries(found, name, size);
    }
    if (this->IsRotated(l))
    {
      const Rotation rotation = this->KinRotation(l, size, x.rows());
      Rotate(found[0], size, rotation);
      Rotate(found[1], size, rotation);
    }
    if (normsLast)
    {
      this->NormQueries(found, name, size);
    }
    if (this->Is({ "ministral3" }))
    {
      const nlohmann::json& rope = this->Config.at("rope_parameters");
      const double step = rope.at("original_max_position_embeddings");
      for (Index t = 0; t < x.rows(); ++t)
      {
        const double steps = std::floor(static_cast<double>(t) / step);
        found[0].row(t) *= 1 + rope.at("llama_4_scaling_beta").get<double>() * std::log(1 + steps);
      }
    }
    return this->Output(found, how, name, d, run);
  }

  Rows Output(const std::array<Rows, 3>& found, const NaiveModel::Attention& how,
    const std::string& name, Index d, Run& run)
  {
    const std::string out = name + (this->Is({ "falcon" })            ? "self_attention.dense"
                                     : this->Is({ "mpt", "codegen" }) ? "attn.out_proj"
                                     : this->Is({ "gpt_bigcode", "openai-gpt" }) ? "attn.c_proj"
                                     : this->Is({ "modernbert-decoder" })        ? "attn.Wo"
                                     : this->Is({ "biogpt", "xglm" }) ? "self_attn.out_proj"
                                                                      : "self_attn.o_proj");
    if (this->Is({ "bitnet", "openai-gpt" }))
    {
      return this->OtherOutput(found, how, name, out, d, run);
    }
    return this->Attend(found[0], found[1], found[2], how, out, d, this->OutputBias(), run);
  }

  /// BitNet normalizes the weighted sums of all heads together, GPT has its own kind of matrix. The
  /// usual attention gives the weights.
  Rows OtherOutput(const std::array<Rows, 3>& found, const NaiveModel::Attention& how,
    const std::string& name, const std::string& out, Index d, Run& run)
  {
    Rows weight = this->Get(out + ".weight", { d, found[0].cols() });
    Run plain;
    this->Attend(found[0], found[1], found[2], how, out, d, false, plain);
    Layer layer = plain.layers.front();
    const Index size = found[0].cols() / how.heads;
    Rows mixed(found[0].rows(), found[0].cols());
    for (Index h = 0; h < how.heads; ++h)
    {
      const Index group = h / (how.heads / how.keyHeads);
      mixed.middleCols(h * size, size) =
        layer.attention[h] * found[2].middleCols(group * size, size);
    }
    if (this->Is({ "bitnet" }))
    {
      mixed = this->Norm(mixed, name + "self_attn.attn_sub_norm");
    }
    else
    {
      weight.transposeInPlace();
    }
    for (Index h = 0; h < how.heads; ++h)
    {
      layer.output[h] =
        mixed.middleCols(h * size, size) * weight.middleCols(h * size, size).transpose();
    }
    run.layers.push_back(layer);
    Rows sum = mixed * weight.transpose();
    if (this->OutputBias())
    {
      sum.rowwise() += this->Get(out + ".bias", { d }).row(0);
    }
    return sum;
  }

  // The MLP and the head.

  static Rows KinActivate(const Rows& x, const std::string& name)
  {
    if (name == "relu2")
    {
      return x.cwiseMax(0).cwiseAbs2();
    }
    return Activate(x, name);
  }

  Rows Xielu(const Rows& x, const std::string& name)
  {
    const auto number = [&](const char* which, const Shape& shape)
    { return this->Get(name + which, shape)(0, 0); };
    const auto softplus = [](double value) { return std::log1p(std::exp(value)); };
    const double linear = number("beta", { 1 });
    const double square = softplus(number("alpha_p", { 1 }));
    const double negative = linear + softplus(number("alpha_n", { 1 }));
    const double limit = number("eps", { 1 });
    return x.unaryExpr(
      [&](double value)
      {
        return value > 0 ? square * value * value + linear * value
                         : (std::expm1(std::min(value, limit)) - value) * negative + linear * value;
      });
  }

  Rows Inner(const Rows& x, const std::string& name)
  {
    const Index d = x.cols();
    if (this->Is({ "openai-gpt" }))
    {
      Rows hidden = x * this->Get(name + "mlp.c_fc.weight", { d, 4 * d });
      hidden.rowwise() += this->Get(name + "mlp.c_fc.bias", { 4 * d }).row(0);
      const std::string afn = this->Text("afn", "gelu");
      hidden = Activate(hidden, afn == "gelu" ? "gelu_new" : afn);
      Rows y = hidden * this->Get(name + "mlp.c_proj.weight", { 4 * d, d });
      y.rowwise() += this->Get(name + "mlp.c_proj.bias", { d }).row(0);
      return y;
    }
    if (this->Is({ "falcon" }))
    {
      return this->Mlp(x, name + "mlp.dense_h_to_4h", name + "mlp.dense_4h_to_h",
        this->Count("ffn_hidden_size", 4 * d), this->Text("activation", "gelu"),
        NaiveModel::Is("bias", false));
    }
    if (this->Is({ "mpt" }))
    {
      return this->Mlp(x, name + "ffn.up_proj", name + "ffn.down_proj", 4 * d, "gelu", false);
    }
    if (this->Is({ "gpt_bigcode" }))
    {
      return this->Mlp(x, name + "mlp.c_fc", name + "mlp.c_proj", this->Count("n_inner", 4 * d),
        this->Text("activation_function", "gelu_new"));
    }
    if (this->Is({ "codegen" }))
    {
      return this->Mlp(x, name + "mlp.fc_in", name + "mlp.fc_out", this->Count("n_inner", 4 * d),
        this->Text("activation_function", "gelu_new"));
    }
    if (this->Is({ "biogpt", "xglm" }))
    {
      return this->Mlp(x, name + "fc1", name + "fc2",
        this->Count(this->Is({ "xglm" }) ? "ffn_dim" : "intermediate_size"),
        this->Text(this->Is({ "xglm" }) ? "activation_function" : "hidden_act", "gelu"));
    }
    const Index inner = this->Count("intermediate_size");
    const std::string block = name + "mlp.";
    if (this->Is({ "starcoder2" }))
    {
      return this->Mlp(x, block + "c_fc", block + "c_proj", inner,
        this->Text("hidden_act", "gelu_new"), NaiveModel::Is("use_bias", true));
    }
    const bool hasBias = this->Is({ "ernie4_5" }) ? NaiveModel::Is("use_bias", false)
                                                  : !this->Is({ "glm", "glm4", "olmo2" }) &&
                                                      NaiveModel::Is("mlp_bias", false);
    if (this->Is({ "nemotron", "arcee", "apertus" }))
    {
      const Rows up = this->Linear(x, block + "up_proj", inner, hasBias);
      const std::string activation =
        this->Text("hidden_act", this->Is({ "apertus" }) ? "xielu" : "relu2");
      return this->Linear(
        activation == "xielu" ? this->Xielu(up, block + "act_fn.") : KinActivate(up, activation),
        block + "down_proj", d, hasBias);
    }
    const bool isModern = this->Is({ "modernbert-decoder" });
    const std::string activation =
      isModern || this->Is({ "vaultgemma" })
        ? this->Text("hidden_activation", isModern ? "gelu" : "gelu_new")
        : this->Text("hidden_act", this->Is({ "bitnet" }) ? "relu2" : "silu");
    Rows gate;
    Rows up;
    if (isModern || this->Is({ "glm", "glm4" }))
    {
      const Rows both =
        this->Linear(x, block + (isModern ? "Wi" : "gate_up_proj"), 2 * inner, hasBias);
      gate = both.leftCols(inner);
      up = both.rightCols(inner);
    }
    else
    {
      gate = this->Linear(x, block + "gate_proj", inner, hasBias);
      up = this->Linear(x, block + "up_proj", inner, hasBias);
    }
    Rows hidden = KinActivate(gate, activation).cwiseProduct(up);
    if (this->Is({ "bitnet" }))
    {
      hidden = this->Norm(hidden, block + "ffn_sub_norm");
    }
    return this->Linear(hidden, block + (isModern ? "Wo" : "down_proj"), d, hasBias);
  }

  void RunHead(const Rows& x, const std::string& table, Run& run)
  {
    const bool isTied = NaiveModel::Is(
      "tie_word_embeddings", this->Is({ "smollm3", "granite_swa", "cohere", "cohere2", "starcoder2",
                               "falcon", "mpt", "gpt_bigcode", "openai-gpt", "ernie4_5",
                               "vaultgemma", "modernbert-decoder", "biogpt", "xglm" }));
    if (this->Is({ "modernbert-decoder" }))
    {
      const Rows dense =
        this->Linear(x, "lm_head.dense", x.cols(), NaiveModel::Is("classifier_bias", false));
      run.logits = this->Unembed(
        this->Norm(Activate(dense, this->Text("classifier_activation", "gelu")), "lm_head.norm"),
        "decoder", table, isTied, NaiveModel::Is("decoder_bias", true));
      return;
    }
    run.logits = this->Unembed(x, this->Is({ "biogpt" }) ? "output_projection" : "lm_head", table,
      isTied, this->Is({ "codegen" }));
    run.logits *= this->Is({ "granite", "granite_swa" }) ? 1 / this->Number("logits_scaling", 1)
                  : this->Is({ "cohere", "cohere2" })    ? this->Number("logit_scale", 0.0625)
                                                         : 1;
    const double cap = this->Is({ "vaultgemma" }) ? this->Cap("final_logit_softcapping", 30) : 0;
    if (cap > 0)
    {
      run.logits = (cap * (run.logits / cap).array().tanh()).matrix().eval();
    }
  }
};

}
