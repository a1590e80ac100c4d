#pragma once

#include "NaiveParts.h"

namespace atlas::test
{

/// Llama and those that are like it, for NaiveModel.
class NaiveLlama : public NaiveParts
{
public:
  using NaiveParts::NaiveParts;

protected:
  /// The window of a layer, or 0.
  Index WindowOf(Index l) const
  {
    const Index window = this->Count("sliding_window");
    if (Has(this->Config, "layer_types"))
    {
      return this->Config.at("layer_types").at(l) == "sliding_attention" ? window : 0;
    }
    if (this->Type == "mistral" || this->Type == "phi3")
    {
      return window;
    }
    if (this->Type == "qwen2" || this->Type == "qwen3")
    {
      const bool slides =
        this->Is("use_sliding_window", false) && l >= this->Count("max_window_layers", 28);
      return slides ? window : 0;
    }
    if (this->Type == "gemma2" || this->Type == "gpt_oss")
    {
      return l % 2 == 0 ? window : 0;
    }
    if (this->Type == "gemma3_text")
    {
      return (l + 1) % this->Count("sliding_window_pattern", 6) != 0 ? window : 0;
    }
    return 0;
  }

  Rotation LlamaRotation(Index l, Index headDimension, Index length) const
  {
    if (this->Type != "gemma3_text")
    {
      const double part = this->Type == "phi3" ? this->Number("partial_rotary_factor", 1) : 1;
      return this->UsualRotation(headDimension, part, length);
    }
    const bool slides = this->WindowOf(l) > 0;
    const bool isNew = Has(this->Config, "rope_parameters");
    nlohmann::json settings = nlohmann::json::object();
    if (isNew)
    {
      settings =
        this->Config.at("rope_parameters").at(slides ? "sliding_attention" : "full_attention");
    }
    else if (!slides && Has(this->Config, "rope_scaling"))
    {
      settings = this->Config.at("rope_scaling");
    }
    const double base = isNew    ? settings.at("rope_theta").get<double>()
                        : slides ? this->Number("rope_local_base_freq", 10000)
                                 : this->Number("rope_theta", 1e6);
    Rotation rotation;
    rotation.angles = PlainAngles(base, headDimension);
    this->ScaleAngles(rotation, base, settings, length);
    return rotation;
  }

  /// null is none.
  double Cap(const std::string& key, double otherwise) const
  {
    return this->Config.contains(key) ? this->Number(key, 0) : otherwise;
  }

  double RmsEpsilon() const
  {
    return this->Number(
      "rms_norm_eps", this->Type == "phi3" || this->Type == "gpt_oss" ? 1e-5 : 1e-6);
  }

  /// RMS, or LayerNorm without weights in OLMo.
  Rows LlamaNorm(const Rows& x, const std::string& name)
  {
    if (this->Type == "olmo")
    {
      return this->LayerNorm(x, name, 1e-5, false);
    }
    return this->RmsNorm(x, name, this->RmsEpsilon(), this->Type.substr(0, 5) == "gemma" ? 1 : 0);
  }

  Rows LlamaAttention(const Rows& x, const std::string& name, Index l, Run& run)
  {
    const Index d = x.cols();
    const Index heads = this->Count("num_attention_heads");
    Attention how = How(heads, this->Count("num_key_value_heads", heads), d);
    const Index size = this->Count("head_dim", d / heads);
    how.scale = 1 / std::sqrt(this->Number("query_pre_attn_scalar", static_cast<double>(size)));
    how.window = this->WindowOf(l);
    how.cap = this->Type == "gemma2" ? this->Cap("attn_logit_softcapping", 50) : 0;
    const bool hasBias = this->Is("attention_bias", this->Type == "gpt_oss");
    if (this->Type == "gpt_oss")
    {
      how.sinks = this->Get(name + "sinks", { heads });
    }
    const bool inputBias = hasBias || this->Type == "qwen2";
    const Index first = heads * size;
    const Index second = how.keyHeads * size;
    Rows q;
    Rows k;
    Rows v;
    if (this->Type == "phi3")
    {
      const Rows all = this->Linear(x, name + "qkv_proj", first + 2 * second, false);
      q = all.leftCols(first);
      k = all.middleCols(first, second);
      v = all.rightCols(second);
    }
    else
    {
      q = this->Linear(x, name + "q_proj", first, inputBias);
      k = this->Linear(x, name + "k_proj", second, inputBias);
      v = this->Linear(x, name + "v_proj", second, inputBias);
    }
    if (this->Type == "qwen3" || this->Type == "gemma3_text")
    {
      const auto norm = [&](const char* which)
      {
        return [this, which, &name](const Rows& part, Index)
        {
          const double offset = this->Type == "gemma3_text" ? 1 : 0;
          return this->RmsNorm(part, name + which, this->RmsEpsilon(), offset);
        };
      };
      NormHeads(q, size, norm("q_norm"));
      NormHeads(k, size, norm("k_norm"));
    }
    if (this->Type == "olmo" && Has(this->Config, "clip_qkv"))
    {
      const double limit = this->Number("clip_qkv", 0);
      for (Rows* rows : { &q, &k, &v })
      {
        *rows = rows->cwiseMax(-limit).cwiseMin(limit);
      }
    }
    const Rotation rotation = this->LlamaRotation(l, size, x.rows());
    Rotate(q, size, rotation);
    Rotate(k, size, rotation);
    return this->Attend(q, k, v, how, name + "o_proj", d, hasBias, run);
  }

  Rows GatedMlp(const Rows& x, const std::string& name, const std::string& activation, bool hasBias)
  {
    const Index inner = this->Count("intermediate_size");
    Rows gate;
    Rows up;
    if (this->Type == "phi3")
    {
      const Rows both = this->Linear(x, name + "gate_up_proj", 2 * inner, false);
      gate = both.leftCols(inner);
      up = both.rightCols(inner);
    }
    else
    {
      gate = this->Linear(x, name + "gate_proj", inner, hasBias);
      up = this->Linear(x, name + "up_proj", inner, hasBias);
    }
    return this->Linear(
      Activate(gate, activation).cwiseProduct(up), name + "down_proj", x.cols(), hasBias);
  }

  /// The experts of gpt-oss, whose matrices are [inputs, outputs], gate and linear part by turns.
  Rows ExpertMlp(const Rows& x, const std::string& name)
  {
    const Index d = x.cols();
    const Index count = this->Count("num_local_experts");
    const Index chosen = this->Count("num_experts_per_tok");
    const Index inner = this->Count("intermediate_size");
    const double limit = this->Number("swiglu_limit", 7);
    const Rows routes = this->Linear(x, name + "router", count);
    const Rows in = this->Get(name + "experts.gate_up_proj", { count, d, 2 * inner });
    const Rows inBias = this->Get(name + "experts.gate_up_proj_bias", { count, 2 * inner });
    const Rows out = this->Get(name + "experts.down_proj", { count, inner, d });
    const Rows outBias = this->Get(name + "experts.down_proj_bias", { count, d });
    Rows y = Rows::Zero(x.rows(), d);
    for (Index t = 0; t < x.rows(); ++t)
    {
      std::vector<std::pair<double, Index>> order;
      for (Index e = 0; e < count; ++e)
      {
        order.emplace_back(-routes(t, e), e);
      }
      std::sort(order.begin(), order.end());
      double total = 0;
      for (Index i = 0; i < chosen; ++i)
      {
        total += std::exp(-order[i].first);
      }
      for (Index i = 0; i < chosen; ++i)
      {
        const Index e = order[i].second;
        const Eigen::Map<const Rows> inMatrix(in.row(e).data(), d, 2 * inner);
        const Eigen::Map<const Rows> outMatrix(out.row(e).data(), inner, d);
        const Rows both = x.row(t) * inMatrix + inBias.row(e);
        Rows hidden(1, inner);
        for (Index o = 0; o < inner; ++o)
        {
          const double gate = std::min(both(0, 2 * o), limit);
          const double up = std::clamp(both(0, 2 * o + 1), -limit, limit);
          hidden(0, o) = (up + 1) * gate / (1 + std::exp(-1.702 * gate));
        }
        y.row(t) += std::exp(-order[i].first) / total * (hidden * outMatrix + outBias.row(e));
      }
    }
    return y;
  }

  Run RunLlama(const std::vector<std::int64_t>& ids)
  {
    const bool isGemma = this->Type.substr(0, 5) == "gemma";
    const bool hasFourNorms = isGemma && this->Type != "gemma";
    const std::string base = this->Prefix("model.");
    const Index d = this->Count("hidden_size");
    const std::string activation = isGemma ? "gelu_new" : this->Text("hidden_act", "silu");
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), d);
    x *= isGemma ? std::sqrt(static_cast<double>(d)) : 1;
    for (Index l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      Rows added = this->LlamaAttention(
        this->LlamaNorm(x, name + "input_layernorm"), name + "self_attn.", l, run);
      x += hasFourNorms ? this->LlamaNorm(added, name + "post_attention_layernorm") : added;
      const Rows normed = this->LlamaNorm(
        x, name + (hasFourNorms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
      added = this->Type == "gpt_oss"
                ? this->ExpertMlp(normed, name + "mlp.")
                : this->GatedMlp(normed, name + "mlp.", activation, this->Is("mlp_bias", false));
      x += hasFourNorms ? this->LlamaNorm(added, name + "post_feedforward_layernorm") : added;
    }
    x = this->LlamaNorm(x, base + "norm");
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "lm_head", base + "embed_tokens.weight", this->Is("tie_word_embeddings", isGemma));
    const double cap = this->Type == "gemma2" ? this->Cap("final_logit_softcapping", 30) : 0;
    if (cap > 0)
    {
      run.logits = cap * (run.logits / cap).array().tanh();
    }
    return run;
  }
};

}
