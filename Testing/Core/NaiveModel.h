#pragma once

#include "Files/Safetensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

namespace atlas::test
{

/// The architectures of Hugging Face written anew, one by one, as plain matrix products in double
/// precision, from the formulas of the original code. It reads config.json itself and asks for
/// weights by their names there, so that neither settings nor names are those that the product
/// understands. Weights that it is not given are random: a run then also makes the model's file.
class NaiveModel
{
public:
  using Index = Eigen::Index;
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  struct Layer
  {
    std::vector<Rows> query;     ///< per head, [T, d_head], rotated
    std::vector<Rows> key;       ///< per head
    std::vector<Rows> scores;    ///< per head, [T, T], before the mask
    std::vector<Rows> attention; ///< per head
    std::vector<Rows> output;    ///< per head, [T, d_model], without the output bias
  };

  struct Run
  {
    std::vector<Layer> layers;
    std::vector<Rows> hidden; ///< 0 ... L, as the original code returns them
    Rows logits;              ///< empty if there are none
  };

  /// `base` is before the names of the base model; by default the one that the original code writes
  /// for a model with a head.
  NaiveModel(const nlohmann::json& config, Tensors weights, std::string base = {})
    : Config(config)
    , Weights(std::move(weights))
    , Makes(this->Weights.empty())
    , Base(std::move(base))
    , Type(config.at("model_type"))
  {
  }

  const Tensors& GetWeights() const { return this->Weights; }

  /// A weight that a file has besides those of the model.
  void AddUnused(const std::string& name, const Shape& shape) { this->Get(name, shape); }

  Run RunText(const std::vector<std::int64_t>& ids)
  {
    if (this->Type == "phi" || this->Type == "gptj")
    {
      return this->RunOneNorm(ids);
    }
    if (this->Type == "stablelm")
    {
      return this->RunStableLm(ids);
    }
    if (this->Type == "gpt_neox")
    {
      return this->RunGptNeoX(ids);
    }
    if (this->Type == "opt")
    {
      return this->RunOpt(ids);
    }
    if (this->Type == "gpt_neo")
    {
      return this->RunGptNeo(ids);
    }
    if (this->Type == "roberta" || this->Type == "distilbert")
    {
      return this->RunEncoder(ids);
    }
    if (this->Type == "clip_text_model")
    {
      return this->RunClipText(ids);
    }
    return this->RunLlama(ids);
  }

  /// An image [3, h, w].
  Run RunImage(const std::vector<double>& pixels)
  {
    return this->Type == "clip_vision_model" ? this->RunClipVision(pixels) : this->RunVit(pixels);
  }

protected:
  /// What the attention of a layer needs besides queries, keys and values.
  struct Attention
  {
    Index heads = 0;
    Index keyHeads = 0;
    double scale = 0;
    bool isCausal = true;
    Index window = 0;
    double cap = 0;
    Rows sinks;                   ///< [1, heads], or empty
    bool sinksAreOutside = false; ///< attention is shown without them
    std::vector<double> slopes;   ///< per head, of ALiBi; empty: none
  };

  /// A rotation of the first `angles.size() * 2` components of every head.
  struct Rotation
  {
    std::vector<double> angles; ///< per pair, radians per position
    double factor = 1;
    bool isInterleaved = false;
  };

  const nlohmann::json Config; // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members)
  Tensors Weights;
  bool Makes;
  std::string Base;
  std::string Type;
  std::mt19937 Generator{ 5 };

  // Settings.

  static bool Has(const nlohmann::json& settings, const std::string& key)
  {
    return settings.contains(key) && !settings.at(key).is_null();
  }

  double Number(const std::string& key, double otherwise) const
  {
    return Has(this->Config, key) ? this->Config.at(key).get<double>() : otherwise;
  }

  Index Count(const std::string& key, Index otherwise = 0) const
  {
    return Has(this->Config, key) ? this->Config.at(key).get<Index>() : otherwise;
  }

  bool Is(const std::string& key, bool otherwise) const
  {
    return Has(this->Config, key) ? this->Config.at(key).get<bool>() : otherwise;
  }

  std::string Text(const std::string& key, const std::string& otherwise) const
  {
    return Has(this->Config, key) ? this->Config.at(key).get<std::string>() : otherwise;
  }

  std::string Prefix(const std::string& usual) const
  {
    return this->Base.empty() ? usual : this->Base == "-" ? std::string() : this->Base;
  }

  // Weights.

  /// A tensor as a matrix: a row per index of the first axis, or one row of a vector.
  Rows Get(const std::string& name, const Shape& shape)
  {
    const Index rows = shape.size() == 1 ? 1 : shape[0];
    const Index columns = static_cast<Index>(ElementCount(shape).value()) / rows;
    const auto found = this->Weights.find(name);
    if (found == this->Weights.end() && !this->Makes)
    {
      throw std::runtime_error(name + " is not there");
    }
    if (found == this->Weights.end())
    {
      this->Weights[name] = Tensor::FromDouble(DType::F32, shape, this->Draw(name, rows, columns));
    }
    else if (found->second.View().shape != shape)
    {
      throw std::runtime_error(name + " has another shape");
    }
    const std::vector<double> values = this->Weights.at(name).View().ToDouble();
    return Eigen::Map<const Rows>(values.data(), rows, columns);
  }

  std::vector<double> Draw(const std::string& name, Index rows, Index columns)
  {
    const bool isGain = rows == 1 && name.size() > 6 && name.substr(name.size() - 6) == "weight";
    const double width = rows == 1 ? 0.4 : 2.5 / std::sqrt(static_cast<double>(columns));
    const double centered = isGain && this->Type.substr(0, 5) != "gemma" ? 1 : 0;
    std::vector<double> values(rows * columns);
    for (double& value : values)
    {
      const double uniform = static_cast<double>(this->Generator() % 20001) / 10000 - 1;
      value = static_cast<double>(static_cast<float>(centered + width * uniform));
    }
    return values;
  }

  /// y = W x + b with W [outputs, inputs].
  Rows Linear(const Rows& x, const std::string& name, Index outputs, bool hasBias = true)
  {
    Rows y = x * this->Get(name + ".weight", { outputs, x.cols() }).transpose();
    if (hasBias)
    {
      y.rowwise() += this->Get(name + ".bias", { outputs }).row(0);
    }
    return y;
  }

  Rows Embed(
    const std::vector<std::int64_t>& ids, const std::string& name, Index rows, Index columns)
  {
    const Rows table = this->Get(name, { rows, columns });
    Rows x(static_cast<Index>(ids.size()), columns);
    for (Index t = 0; t < x.rows(); ++t)
    {
      x.row(t) = table.row(ids[t]);
    }
    return x;
  }

  // Arithmetic.

  /// x / sqrt(mean of squares + eps) of each row.
  static Rows DividedByRms(const Rows& x, double epsilon)
  {
    const Eigen::ArrayXd squares = x.array().square().rowwise().mean();
    return (x.array().colwise() / (squares + epsilon).sqrt()).matrix();
  }

  /// (x - mean) / sqrt(variance + eps) of each row.
  static Rows Normalized(const Rows& x, double epsilon)
  {
    return DividedByRms(x.colwise() - x.rowwise().mean(), epsilon);
  }

  static Rows Scaled(const Rows& x, const Rows& factors)
  {
    return (x.array().rowwise() * factors.row(0).array()).matrix();
  }

  Rows LayerNorm(const Rows& x, const std::string& name, double epsilon, bool hasWeights = true)
  {
    Rows y = Normalized(x, epsilon);
    if (hasWeights)
    {
      y = Scaled(y, this->Get(name + ".weight", { x.cols() }));
      y.rowwise() += this->Get(name + ".bias", { x.cols() }).row(0);
    }
    return y;
  }

  Rows RmsNorm(const Rows& x, const std::string& name, double epsilon, double offset)
  {
    const Rows gain = this->Get(name + ".weight", { x.cols() });
    return Scaled(DividedByRms(x, epsilon), (gain.array() + offset).matrix());
  }

  /// Calls norm(head, its number) for the part of each head.
  template<class Norm>
  static void NormHeads(Rows& x, Index size, const Norm& norm)
  {
    for (Index h = 0; h < x.cols() / size; ++h)
    {
      x.middleCols(h * size, size) = norm(Rows(x.middleCols(h * size, size)), h);
    }
  }

  static double TanhGelu(double x)
  {
    const double pi = 3.14159265358979323846;
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
  }

  static double Activated(const std::string& name, double x)
  {
    if (name == "gelu")
    {
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    }
    if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    {
      return TanhGelu(x);
    }
    if (name == "quick_gelu")
    {
      return x / (1 + std::exp(-1.702 * x));
    }
    if (name == "silu")
    {
      return x / (1 + std::exp(-x));
    }
    if (name == "relu")
    {
      return x > 0 ? x : 0;
    }
    throw std::runtime_error("unknown activation " + name);
  }

  static Rows Activate(const Rows& x, const std::string& name)
  {
    return x.unaryExpr([&](double value) { return Activated(name, value); });
  }

  static void Rotate(Rows& x, Index headDimension, const Rotation& rotation)
  {
    const auto half = static_cast<Index>(rotation.angles.size());
    for (Index t = 0; t < x.rows(); ++t)
    {
      for (Index first = 0; first < x.cols(); first += headDimension)
      {
        for (Index i = 0; i < half; ++i)
        {
          const double angle = static_cast<double>(t) * rotation.angles[i];
          double& a = x(t, first + (rotation.isInterleaved ? 2 * i : i));
          double& b = x(t, first + (rotation.isInterleaved ? 2 * i + 1 : i + half));
          const double sine = std::sin(angle) * rotation.factor;
          const double cosine = std::cos(angle) * rotation.factor;
          const double turned = a * cosine - b * sine;
          b = b * cosine + a * sine;
          a = turned;
        }
      }
    }
  }

  static std::vector<double> PlainAngles(double base, Index rotated)
  {
    std::vector<double> angles(rotated / 2);
    for (std::size_t i = 0; i < angles.size(); ++i)
    {
      angles[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
    }
    return angles;
  }

  /// Old files say "su".
  static bool IsLongRope(const std::string& kind) { return kind == "longrope" || kind == "su"; }

  /// Scaled as the settings say.
  void ScaleAngles(
    Rotation& rotation, double base, const nlohmann::json& settings, Index length) const
  {
    const double pi = 3.14159265358979323846;
    const std::string kind = settings.contains("rope_type")
                               ? settings.at("rope_type").get<std::string>()
                               : settings.value("type", "default");
    const auto number = [&](const char* key, double otherwise)
    { return Has(settings, key) ? settings.at(key).get<double>() : otherwise; };
    const double factor = number("factor", 1);
    const double positions = this->Number("max_position_embeddings", 0);
    const double original = number("original_max_position_embeddings",
      this->Number("original_max_position_embeddings", this->Type == "phi3" ? 4096 : positions));
    const auto rotated = static_cast<double>(2 * rotation.angles.size());
    const auto at = [&](double turns)
    { return rotated * std::log(original / (turns * 2 * pi)) / (2 * std::log(base)); };
    double low = at(number("beta_fast", 32));
    double high = at(number("beta_slow", 1));
    if (settings.value("truncate", true))
    {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, rotated - 1);
    for (std::size_t i = 0; i < rotation.angles.size(); ++i)
    {
      double& angle = rotation.angles[i];
      const double wavelength = 2 * pi / angle;
      if (kind == "linear")
      {
        angle /= factor;
      }
      else if (kind == "llama3")
      {
        const double lowFactor = number("low_freq_factor", 1);
        const double highFactor = number("high_freq_factor", 4);
        const double smooth =
          std::clamp((original / wavelength - lowFactor) / (highFactor - lowFactor), 0.0, 1.0);
        angle = (1 - smooth) * angle / factor + smooth * angle;
      }
      else if (kind == "yarn")
      {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        angle = angle * (1 - ramp) + angle / factor * ramp;
      }
      else if (IsLongRope(kind))
      {
        const bool isLong = static_cast<double>(length) > original;
        angle /= settings.at(isLong ? "long_factor" : "short_factor").at(i).get<double>();
      }
      else if (kind != "default")
      {
        throw std::runtime_error("unknown rotation " + kind);
      }
    }
    const double longer = positions / original;
    rotation.factor = kind == "yarn" ? 0.1 * std::log(factor) + 1
                      : IsLongRope(kind) && longer > 1
                        ? std::sqrt(1 + std::log(longer) / std::log(original))
                        : 1;
    if (kind == "yarn" || IsLongRope(kind))
    {
      rotation.factor = number("attention_factor", rotation.factor);
    }
  }

  /// The rotation by rope_theta and rope_scaling, or rope_parameters.
  Rotation UsualRotation(std::size_t headDimension, double part, Index length) const
  {
    const char* name = Has(this->Config, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const nlohmann::json settings =
      Has(this->Config, name) ? this->Config.at(name) : nlohmann::json::object();
    const double base = settings.value(
      "rope_theta", this->Number("rope_theta", this->Number("rotary_emb_base", 10000)));
    part = settings.value("partial_rotary_factor", part);
    Rotation rotation;
    rotation.angles =
      PlainAngles(base, static_cast<Index>(static_cast<double>(headDimension) * part));
    this->ScaleAngles(rotation, base, settings, length);
    return rotation;
  }

  /// Heads of d components together, whose scores are divided by sqrt(d_head).
  static Attention How(Index heads, Index keyHeads, Index d)
  {
    if (heads == 0)
    {
      throw std::runtime_error("no heads");
    }
    Attention how;
    how.heads = heads;
    how.keyHeads = keyHeads;
    how.scale = 1 / std::sqrt(static_cast<double>(d / heads));
    return how;
  }

  /// The output of an attention block, with what views show of it.
  Rows Attend(const Rows& q, const Rows& k, const Rows& v, const Attention& how,
    const std::string& name, Index d, bool hasBias, Run& run)
  {
    const Index length = q.rows();
    const Index size = q.cols() / how.heads;
    const Rows weight = this->Get(name + ".weight", { d, q.cols() });
    Rows sum = Rows::Zero(length, d);
    if (hasBias)
    {
      sum.rowwise() += this->Get(name + ".bias", { d }).row(0);
    }
    Layer layer;
    for (Index h = 0; h < how.heads; ++h)
    {
      const Index group = h / (how.heads / how.keyHeads);
      layer.query.emplace_back(q.middleCols(h * size, size));
      layer.key.emplace_back(k.middleCols(group * size, size));
      Rows scores = how.scale * layer.query.back() * layer.key.back().transpose();
      if (how.cap > 0)
      {
        scores = how.cap * (scores / how.cap).array().tanh();
      }
      for (Index j = 0; j < (how.slopes.empty() ? 0 : length); ++j)
      {
        scores.col(j).array() += how.slopes[h] * static_cast<double>(j);
      }
      Rows attention = scores.array().exp();
      for (Index i = 0; i < length; ++i)
      {
        for (Index j = 0; j < length; ++j)
        {
          const bool isSeen = !how.isCausal || (j <= i && (how.window == 0 || j + how.window > i));
          attention(i, j) = isSeen ? attention(i, j) : 0;
        }
        const double sink = how.sinks.size() == 0 ? 0 : std::exp(how.sinks(0, h));
        attention.row(i) /= attention.row(i).sum() + sink;
      }
      const Rows output = attention * v.middleCols(group * size, size) *
                          weight.middleCols(h * size, size).transpose();
      sum += output;
      layer.scores.push_back(scores);
      if (how.sinksAreOutside)
      {
        attention.array().colwise() /= attention.rowwise().sum().array().eval();
      }
      layer.attention.push_back(attention);
      layer.output.push_back(output);
    }
    run.layers.push_back(layer);
    return sum;
  }

  /// Likewise of queries, keys and values that are linear maps to d components; the names are
  /// those of query, key, value and output.
  Rows SelfAttend(const Rows& x, const std::array<std::string, 4>& names, const Attention& how,
    Index d, bool hasInputBias, bool hasOutputBias, Run& run)
  {
    const Rows q = this->Linear(x, names[0], d, hasInputBias);
    const Rows k = this->Linear(x, names[1], d, hasInputBias);
    const Rows v = this->Linear(x, names[2], d, hasInputBias);
    return this->Attend(q, k, v, how, names[3], d, hasOutputBias, run);
  }

  Rows Mlp(const Rows& x, const std::string& up, const std::string& down, Index inner,
    const std::string& activation, bool hasBias = true)
  {
    return this->Linear(
      Activate(this->Linear(x, up, inner, hasBias), activation), down, x.cols(), hasBias);
  }

  Rows Unembed(const Rows& x, const std::string& head, const std::string& embedding, bool isTied,
    bool hasBias = false)
  {
    const Index vocabulary = this->Count("vocab_size");
    if (!isTied)
    {
      return this->Linear(x, head, vocabulary, hasBias);
    }
    Rows logits = x * this->Get(embedding, { vocabulary, x.cols() }).transpose();
    if (hasBias)
    {
      logits.rowwise() += this->Get(head + ".bias", { vocabulary }).row(0);
    }
    return logits;
  }

  // Llama and those that are like it.

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
