#pragma once

#include "NaiveModel.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace atlas::test
{

/// What the families that NaiveKin computes call their tensors, and which sizes and switches they
/// have.
class KinSettings : public NaiveModel
{
public:
  using NaiveModel::NaiveModel;

protected:
  using NaiveModel::Is;

  bool Is(std::initializer_list<const char*> types) const
  {
    return std::find(types.begin(), types.end(), this->Type) != types.end();
  }

  std::string BasePrefix() const
  {
    return this->Is({ "falcon", "mpt", "gpt_bigcode", "openai-gpt", "codegen" }) ? "transformer."
           : this->Is({ "biogpt" })                                              ? "biogpt."
                                                                                 : "model.";
  }

  std::string TableName() const
  {
    return this->Is({ "falcon" })                          ? "word_embeddings.weight"
           : this->Is({ "mpt", "gpt_bigcode", "codegen" }) ? "wte.weight"
           : this->Is({ "openai-gpt" })                    ? "tokens_embed.weight"
           : this->Is({ "modernbert-decoder" })            ? "embeddings.tok_embeddings.weight"
                                                           : "embed_tokens.weight";
  }

  std::string FinalNorm() const
  {
    return this->Is({ "falcon", "gpt_bigcode", "codegen" }) ? "ln_f"
           : this->Is({ "mpt" })                            ? "norm_f"
           : this->Is({ "modernbert-decoder" })             ? "final_norm"
           : this->Is({ "biogpt", "xglm" })                 ? "layer_norm"
                                                            : "norm";
  }

  bool HasLayerNorm() const
  {
    return this->Is({ "cohere", "cohere2", "nemotron", "starcoder2", "falcon", "mpt", "gpt_bigcode",
      "openai-gpt", "modernbert-decoder", "biogpt", "codegen", "xglm" });
  }

  double Epsilon() const
  {
    return this->Is({ "cohere", "cohere2" })                ? this->Number("layer_norm_eps", 1e-5)
           : this->Is({ "nemotron", "modernbert-decoder" }) ? this->Number("norm_eps", 1e-5)
           : this->Is({ "starcoder2" })                     ? this->Number("norm_epsilon", 1e-5)
           : this->Is({ "biogpt", "xglm" })                 ? 1e-5
           : this->HasLayerNorm()        ? this->Number("layer_norm_epsilon", 1e-5)
           : this->Is({ "glm", "glm4" }) ? this->Number("rms_norm_eps", 1.5625e-7)
           : this->Is({ "helium" })      ? this->Number("rms_norm_eps", 1e-8)
           : this->Is({ "smollm3", "granite", "ministral", "seed_oss", "vaultgemma" })
             ? this->Number("rms_norm_eps", 1e-6)
             : this->Number("rms_norm_eps", 1e-5);
  }

  std::string LayerName(const std::string& base, Index l) const
  {
    const char* layers = this->Is({ "falcon", "gpt_bigcode", "openai-gpt", "codegen" }) ? "h."
                         : this->Is({ "mpt" })                                          ? "blocks."
                                                                                        : "layers.";
    return base + layers + std::to_string(l) + ".";
  }

  Index Heads() const
  {
    return this->Count(this->Is({ "xglm" })  ? "attention_heads"
                       : this->Is({ "mpt" }) ? "n_heads"
                       : this->Is({ "gpt_bigcode", "openai-gpt", "codegen" })
                         ? "n_head"
                         : "num_attention_heads");
  }

  Index KeyHeads() const
  {
    const Index heads = this->Heads();
    if (this->Is({ "falcon" }))
    {
      return NaiveModel::Is("new_decoder_architecture", false) ? this->Count("num_kv_heads", heads)
             : NaiveModel::Is("multi_query", true)             ? 1
                                                               : heads;
    }
    if (this->Is({ "gpt_bigcode" }))
    {
      return NaiveModel::Is("multi_query", true) ? 1 : heads;
    }
    const bool isPlain =
      this->Is({ "mpt", "openai-gpt", "codegen", "biogpt", "xglm", "modernbert-decoder" });
    return isPlain ? heads : this->Count("num_key_value_heads", heads);
  }

  Index KinWindow(Index l) const
  {
    const bool isModern = this->Is({ "modernbert-decoder" });
    const Index window =
      isModern ? this->Count("local_attention", 128) / 2 : this->Count("sliding_window");
    if (this->Is({ "smollm3" }) && !NaiveModel::Is("use_sliding_window", false))
    {
      return 0;
    }
    if (Has(this->Config, "layer_types"))
    {
      return this->Config.at("layer_types").at(l) == "sliding_attention" ? window : 0;
    }
    const bool slides =
      this->Is({ "olmo3" })         ? (l + 1) % 4 != 0
      : this->Is({ "exaone4" })     ? (l + 1) % this->Count("sliding_window_pattern", 4) != 0
      : this->Is({ "cohere2" })     ? (l + 1) % this->Count("sliding_window_pattern", 4) != 0
      : this->Is({ "smollm3" })     ? !this->IsRotated(l)
      : this->Is({ "granite_swa" }) ? l % 4 != 0
      : this->Is({ "vaultgemma" })  ? l % 2 == 0
      : isModern                    ? l % this->Count("global_attn_every_n_layers", 3) != 0
                                    : true;
    return slides ? window : 0;
  }

  bool IsRotated(Index l) const
  {
    if (this->Is({ "mpt", "gpt_bigcode", "openai-gpt", "biogpt", "xglm" }))
    {
      return false;
    }
    if (this->Is({ "falcon" }))
    {
      return !NaiveModel::Is("alibi", false);
    }
    if (this->Is({ "smollm3" }))
    {
      return Has(this->Config, "no_rope_layers")
               ? this->Config.at("no_rope_layers").at(l) != 0
               : (l + 1) % this->Count("no_rope_layer_interval", 4) != 0;
    }
    if (this->Is({ "granite_swa" }) && Has(this->Config, "layer_rope_theta"))
    {
      return this->Config.at("layer_rope_theta").at(l) != 0;
    }
    if (this->Is({ "exaone4" }))
    {
      return this->Count("sliding_window") == 0 || this->KinWindow(l) > 0;
    }
    return !this->Is({ "cohere2" }) || this->KinWindow(l) > 0;
  }

  /// Of a layer, from rope_parameters, perhaps by the kind of layer.
  Rotation KinRotation(Index l, Index size, Index length) const
  {
    if (this->Is({ "codegen" }))
    {
      Rotation rotation;
      rotation.angles = PlainAngles(10000, this->Count("rotary_dim", 64));
      rotation.isInterleaved = true;
      return rotation;
    }
    nlohmann::json settings = Has(this->Config, "rope_parameters")
                                ? this->Config.at("rope_parameters")
                              : Has(this->Config, "rope_scaling") ? this->Config.at("rope_scaling")
                                                                  : nlohmann::json::object();
    const bool slides = this->KinWindow(l) > 0;
    double base = this->Number("rope_theta", 10000);
    if (settings.contains("full_attention"))
    {
      settings = settings.at(slides ? "sliding_attention" : "full_attention");
    }
    else if (this->Is({ "olmo3" }) && slides)
    {
      settings = nlohmann::json::object();
    }
    if (this->Is({ "modernbert-decoder" }))
    {
      base =
        this->Number(slides ? "local_rope_theta" : "global_rope_theta", slides ? 10000 : 160000);
    }
    base = settings.value("rope_theta", base);
    if (this->Is({ "granite_swa" }) && Has(this->Config, "layer_rope_theta"))
    {
      base = this->Config.at("layer_rope_theta").at(l);
    }
    if (this->Is({ "hunyuan_v1_dense" }) && settings.contains("alpha"))
    {
      const auto width = static_cast<double>(size);
      base *= std::pow(settings.at("alpha").get<double>(), width / (width - 2));
      settings = nlohmann::json::object();
    }
    const double part = settings.value("partial_rotary_factor",
      this->Number("partial_rotary_factor", this->Is({ "glm", "glm4", "nemotron" }) ? 0.5 : 1));
    Rotation rotation;
    rotation.angles = PlainAngles(base, static_cast<Index>(static_cast<double>(size) * part));
    this->ScaleAngles(rotation, base, settings, length);
    if (settings.contains("mscale")) // and mscale_all_dim, which is the same
    {
      rotation.factor = 1;
    }
    rotation.isInterleaved = this->Is({ "cohere", "cohere2", "glm", "glm4", "ernie4_5", "helium" });
    return rotation;
  }

  bool InputBias() const
  {
    return this->Is({ "gpt_bigcode", "openai-gpt", "biogpt", "xglm" }) ? true
           : this->Is({ "mpt", "codegen", "ministral", "ministral3" }) ? false
           : this->Is({ "falcon" })     ? NaiveModel::Is("bias", false)
           : this->Is({ "starcoder2" }) ? NaiveModel::Is("use_bias", true)
           : this->Is({ "ernie4_5" })   ? NaiveModel::Is("use_bias", false)
           : this->Is({ "exaone4" })
             ? false
             : NaiveModel::Is("attention_bias", this->Is({ "glm", "glm4", "seed_oss" }));
  }

  bool OutputBias() const
  {
    return this->Is({ "glm", "glm4", "helium" }) ? false
           : this->Is({ "seed_oss" })            ? NaiveModel::Is("attention_out_bias", false)
                                                 : this->InputBias();
  }
};

}
