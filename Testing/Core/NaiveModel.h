#pragma once

#include "Safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas::test
{

/// The architectures of Hugging Face written anew, one by one, as plain loops in double precision,
/// from the formulas of the original code. It reads config.json itself and asks for weights by
/// their names there, so that neither settings nor names are those that the product understands.
/// Weights that it is not given are random: a run then also makes the model's file.
class NaiveModel
{
public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>; ///< [T, columns]

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
  Run RunImage(const Row& pixels)
  {
    return this->Type == "clip_vision_model" ? this->RunClipVision(pixels) : this->RunVit(pixels);
  }

private:
  /// What the attention of a layer needs besides queries, keys and values.
  struct Attention
  {
    std::size_t heads = 0;
    std::size_t keyHeads = 0;
    double scale = 0;
    bool isCausal = true;
    std::size_t window = 0;
    double cap = 0;
    Row sinks; ///< per head, or empty
  };

  /// A rotation of the first `angles.size() * 2` components of every head.
  struct Rotation
  {
    Row angles; ///< per pair, radians per position
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

  std::size_t Count(const std::string& key, std::size_t otherwise = 0) const
  {
    return Has(this->Config, key) ? this->Config.at(key).get<std::size_t>() : otherwise;
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

  Row Get(const std::string& name, const Shape& shape)
  {
    const auto found = this->Weights.find(name);
    if (found != this->Weights.end())
    {
      if (found->second.View().shape != shape)
      {
        throw std::runtime_error(name + " has another shape");
      }
      return found->second.View().ToDouble();
    }
    if (!this->Makes)
    {
      throw std::runtime_error(name + " is not there");
    }
    Row values(ElementCount(shape).value());
    const bool isGain =
      shape.size() == 1 && name.size() > 6 && name.substr(name.size() - 6) == "weight";
    const double width = shape.size() == 1
                           ? 0.4
                           : 2.5 / std::sqrt(static_cast<double>(ElementCount(shape).value()) /
                                             static_cast<double>(shape[0]));
    for (double& value : values)
    {
      const double uniform = static_cast<double>(this->Generator() % 20001) / 10000 - 1;
      const double centered = isGain && this->Type.substr(0, 5) != "gemma" ? 1 : 0;
      value = static_cast<double>(static_cast<float>(centered + width * uniform));
    }
    this->Weights[name] = Tensor::FromDouble(DType::F32, shape, values);
    return values;
  }

  static std::int64_t Signed(std::size_t size) { return static_cast<std::int64_t>(size); }

  /// y = W x + b with W [outputs, inputs].
  Rows Linear(const Rows& x, const std::string& name, std::size_t outputs, bool hasBias = true)
  {
    const std::size_t inputs = x[0].size();
    const Row weight = this->Get(name + ".weight", { Signed(outputs), Signed(inputs) });
    const Row bias = hasBias ? this->Get(name + ".bias", { Signed(outputs) }) : Row(outputs, 0);
    Rows y(x.size(), bias);
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      for (std::size_t o = 0; o < outputs; ++o)
      {
        for (std::size_t i = 0; i < inputs; ++i)
        {
          y[t][o] += weight[o * inputs + i] * x[t][i];
        }
      }
    }
    return y;
  }

  Rows Embed(const std::vector<std::int64_t>& ids, const std::string& name, std::size_t rows,
    std::size_t columns)
  {
    const Row table = this->Get(name, { Signed(rows), Signed(columns) });
    Rows x;
    for (const std::int64_t id : ids)
    {
      const auto first = table.begin() + id * Signed(columns);
      x.emplace_back(first, first + Signed(columns));
    }
    return x;
  }

  // Arithmetic.

  static void Add(Rows& to, const Rows& from)
  {
    for (std::size_t t = 0; t < to.size(); ++t)
    {
      for (std::size_t c = 0; c < to[t].size(); ++c)
      {
        to[t][c] += from[t][c];
      }
    }
  }

  static void Scale(Rows& to, const Row& factors)
  {
    for (Row& row : to)
    {
      for (std::size_t c = 0; c < row.size(); ++c)
      {
        row[c] *= factors[c];
      }
    }
  }

  /// (x - mean) / sqrt(variance + eps) gain + shift over `size` components from `first` on.
  static void NormalizePart(
    Row& x, std::size_t first, std::size_t size, double epsilon, const Row& gain, const Row& shift)
  {
    double mean = 0;
    for (std::size_t i = 0; i < size; ++i)
    {
      mean += x[first + i] / static_cast<double>(size);
    }
    double variance = 0;
    for (std::size_t i = 0; i < size; ++i)
    {
      variance += (x[first + i] - mean) * (x[first + i] - mean) / static_cast<double>(size);
    }
    for (std::size_t i = 0; i < size; ++i)
    {
      x[first + i] =
        (x[first + i] - mean) / std::sqrt(variance + epsilon) * (gain.empty() ? 1 : gain[i]) +
        (shift.empty() ? 0 : shift[i]);
    }
  }

  /// Likewise without mean and shift; with gains to which `offset` is added.
  static void NormalizeRmsPart(
    Row& x, std::size_t first, std::size_t size, double epsilon, const Row& gain, double offset)
  {
    double square = 0;
    for (std::size_t i = 0; i < size; ++i)
    {
      square += x[first + i] * x[first + i] / static_cast<double>(size);
    }
    for (std::size_t i = 0; i < size; ++i)
    {
      x[first + i] = x[first + i] / std::sqrt(square + epsilon) * (offset + gain[i]);
    }
  }

  Rows LayerNorm(Rows x, const std::string& name, double epsilon, bool hasWeights = true)
  {
    const std::int64_t size = Signed(x[0].size());
    const Row gain = hasWeights ? this->Get(name + ".weight", { size }) : Row();
    const Row shift = hasWeights ? this->Get(name + ".bias", { size }) : Row();
    for (Row& row : x)
    {
      NormalizePart(row, 0, row.size(), epsilon, gain, shift);
    }
    return x;
  }

  Rows RmsNorm(Rows x, const std::string& name, double epsilon, double offset)
  {
    const Row gain = this->Get(name + ".weight", { Signed(x[0].size()) });
    for (Row& row : x)
    {
      NormalizeRmsPart(row, 0, row.size(), epsilon, gain, offset);
    }
    return x;
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

  static Rows Activate(Rows x, const std::string& name)
  {
    for (Row& row : x)
    {
      for (double& value : row)
      {
        value = Activated(name, value);
      }
    }
    return x;
  }

  static void Multiply(Rows& to, const Rows& from)
  {
    for (std::size_t t = 0; t < to.size(); ++t)
    {
      for (std::size_t c = 0; c < to[t].size(); ++c)
      {
        to[t][c] *= from[t][c];
      }
    }
  }

  static Rows Columns(const Rows& from, std::size_t first, std::size_t count)
  {
    Rows to;
    for (const Row& row : from)
    {
      to.emplace_back(row.begin() + Signed(first), row.begin() + Signed(first + count));
    }
    return to;
  }

  static void Rotate(Rows& x, std::size_t headDimension, const Rotation& rotation)
  {
    const std::size_t half = rotation.angles.size();
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      for (std::size_t first = 0; first < x[t].size(); first += headDimension)
      {
        for (std::size_t i = 0; i < half; ++i)
        {
          const double angle = static_cast<double>(t) * rotation.angles[i];
          double& a = x[t][first + (rotation.isInterleaved ? 2 * i : i)];
          double& b = x[t][first + (rotation.isInterleaved ? 2 * i + 1 : i + half)];
          const double sine = std::sin(angle) * rotation.factor;
          const double cosine = std::cos(angle) * rotation.factor;
          const double turned = a * cosine - b * sine;
          b = b * cosine + a * sine;
          a = turned;
        }
      }
    }
  }

  static Row PlainAngles(double base, std::size_t rotated)
  {
    Row angles(rotated / 2);
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
    Rotation& rotation, double base, const nlohmann::json& settings, std::size_t length) const
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
  Rotation UsualRotation(std::size_t headDimension, double part, std::size_t length) const
  {
    const char* name = Has(this->Config, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const nlohmann::json settings =
      Has(this->Config, name) ? this->Config.at(name) : nlohmann::json::object();
    const double base = settings.value(
      "rope_theta", this->Number("rope_theta", this->Number("rotary_emb_base", 10000)));
    part = settings.value("partial_rotary_factor", part);
    Rotation rotation;
    rotation.angles =
      PlainAngles(base, static_cast<std::size_t>(static_cast<double>(headDimension) * part));
    this->ScaleAngles(rotation, base, settings, length);
    return rotation;
  }

  static std::size_t HeadSize(std::size_t columns, const Attention& how)
  {
    if (how.heads == 0)
    {
      throw std::runtime_error("no heads");
    }
    return columns / how.heads;
  }

  /// The output of an attention block, with what views show of it.
  Rows Attend(const Rows& q, const Rows& k, const Rows& v, const Attention& how,
    const std::string& name, std::size_t d, bool hasBias, Run& run)
  {
    const std::size_t length = q.size();
    const std::size_t size = q[0].size() / how.heads;
    const std::size_t inputs = q[0].size();
    const Row weight = this->Get(name + ".weight", { Signed(d), Signed(inputs) });
    const Row bias = hasBias ? this->Get(name + ".bias", { Signed(d) }) : Row(d, 0);
    Rows sum(length, bias);
    Layer layer;
    for (std::size_t h = 0; h < how.heads; ++h)
    {
      const std::size_t group = h / (how.heads / how.keyHeads);
      layer.query.push_back(Columns(q, h * size, size));
      layer.key.push_back(Columns(k, group * size, size));
      const Rows values = Columns(v, group * size, size);
      Rows scores(length, Row(length, 0));
      Rows attention = scores;
      Rows output(length, Row(d, 0));
      for (std::size_t i = 0; i < length; ++i)
      {
        double total = how.sinks.empty() ? 0 : std::exp(how.sinks[h]);
        for (std::size_t j = 0; j < length; ++j)
        {
          double& score = scores[i][j];
          for (std::size_t c = 0; c < size; ++c)
          {
            score += layer.query[h][i][c] * layer.key[h][j][c] * how.scale;
          }
          score = how.cap > 0 ? how.cap * std::tanh(score / how.cap) : score;
          const bool isSeen = !how.isCausal || (j <= i && (how.window == 0 || j + how.window > i));
          attention[i][j] = isSeen ? std::exp(score) : 0;
          total += attention[i][j];
        }
        Row mixed(size, 0);
        for (std::size_t j = 0; j < length; ++j)
        {
          attention[i][j] /= total;
          for (std::size_t c = 0; c < size; ++c)
          {
            mixed[c] += attention[i][j] * values[j][c];
          }
        }
        for (std::size_t o = 0; o < d; ++o)
        {
          for (std::size_t c = 0; c < size; ++c)
          {
            output[i][o] += weight[o * inputs + h * size + c] * mixed[c];
          }
        }
      }
      Add(sum, output);
      layer.scores.push_back(scores);
      layer.attention.push_back(attention);
      layer.output.push_back(output);
    }
    run.layers.push_back(layer);
    return sum;
  }

  Rows Unembed(const Rows& x, const std::string& head, const std::string& embedding, bool isTied,
    bool hasBias = false)
  {
    const std::size_t vocabulary = this->Count("vocab_size");
    if (!isTied)
    {
      return this->Linear(x, head, vocabulary, hasBias);
    }
    const std::size_t d = x[0].size();
    const Row table = this->Get(embedding, { Signed(vocabulary), Signed(d) });
    const Row bias =
      hasBias ? this->Get(head + ".bias", { Signed(vocabulary) }) : Row(vocabulary, 0);
    Rows logits(x.size(), bias);
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      for (std::size_t o = 0; o < vocabulary; ++o)
      {
        for (std::size_t i = 0; i < d; ++i)
        {
          logits[t][o] += table[o * d + i] * x[t][i];
        }
      }
    }
    return logits;
  }

  // Llama and those that are like it.

  /// The window of a layer, or 0.
  std::size_t WindowOf(std::size_t l) const
  {
    const std::size_t window = this->Count("sliding_window");
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

  Rotation LlamaRotation(std::size_t l, std::size_t headDimension, std::size_t length) const
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

  void NormHeadsRms(Rows& x, const std::string& name, std::size_t headDimension)
  {
    const Row gain = this->Get(name + ".weight", { Signed(headDimension) });
    for (Row& row : x)
    {
      for (std::size_t first = 0; first < row.size(); first += headDimension)
      {
        NormalizeRmsPart(
          row, first, headDimension, this->RmsEpsilon(), gain, this->Type == "gemma3_text" ? 1 : 0);
      }
    }
  }

  Rows LlamaAttention(const Rows& x, const std::string& name, std::size_t l, Run& run)
  {
    Attention how;
    how.heads = this->Count("num_attention_heads");
    how.keyHeads = this->Count("num_key_value_heads", how.heads);
    const std::size_t d = x[0].size();
    const std::size_t size = this->Count("head_dim", HeadSize(d, how));
    how.scale = 1 / std::sqrt(this->Number("query_pre_attn_scalar", static_cast<double>(size)));
    how.window = this->WindowOf(l);
    how.cap = this->Type == "gemma2" ? this->Cap("attn_logit_softcapping", 50) : 0;
    const bool hasBias = this->Is("attention_bias", this->Type == "gpt_oss");
    if (this->Type == "gpt_oss")
    {
      how.sinks = this->Get(name + "sinks", { Signed(how.heads) });
    }
    const bool inputBias = hasBias || this->Type == "qwen2";
    Rows q;
    Rows k;
    Rows v;
    if (this->Type == "phi3")
    {
      const std::size_t first = how.heads * size;
      const std::size_t second = how.keyHeads * size;
      const Rows all = this->Linear(x, name + "qkv_proj", first + 2 * second, false);
      q = Columns(all, 0, first);
      k = Columns(all, first, second);
      v = Columns(all, first + second, second);
    }
    else
    {
      q = this->Linear(x, name + "q_proj", how.heads * size, inputBias);
      k = this->Linear(x, name + "k_proj", how.keyHeads * size, inputBias);
      v = this->Linear(x, name + "v_proj", how.keyHeads * size, inputBias);
    }
    if (this->Type == "qwen3" || this->Type == "gemma3_text")
    {
      this->NormHeadsRms(q, name + "q_norm", size);
      this->NormHeadsRms(k, name + "k_norm", size);
    }
    if (this->Type == "olmo" && Has(this->Config, "clip_qkv"))
    {
      const double limit = this->Number("clip_qkv", 0);
      for (Rows* rows : { &q, &k, &v })
      {
        for (Row& row : *rows)
        {
          for (double& value : row)
          {
            value = std::clamp(value, -limit, limit);
          }
        }
      }
    }
    const Rotation rotation = this->LlamaRotation(l, size, x.size());
    Rotate(q, size, rotation);
    Rotate(k, size, rotation);
    return this->Attend(q, k, v, how, name + "o_proj", d, hasBias, run);
  }

  Rows GatedMlp(const Rows& x, const std::string& name, const std::string& activation, bool hasBias)
  {
    const std::size_t inner = this->Count("intermediate_size");
    Rows gate;
    Rows up;
    if (this->Type == "phi3")
    {
      const Rows both = this->Linear(x, name + "gate_up_proj", 2 * inner, false);
      gate = Columns(both, 0, inner);
      up = Columns(both, inner, inner);
    }
    else
    {
      gate = this->Linear(x, name + "gate_proj", inner, hasBias);
      up = this->Linear(x, name + "up_proj", inner, hasBias);
    }
    gate = Activate(gate, activation);
    Multiply(gate, up);
    return this->Linear(gate, name + "down_proj", x[0].size(), hasBias);
  }

  /// The experts of gpt-oss, whose matrices are [inputs, outputs], gate and linear part by turns.
  Rows ExpertMlp(const Rows& x, const std::string& name)
  {
    const std::size_t d = x[0].size();
    const std::size_t count = this->Count("num_local_experts");
    const std::size_t chosen = this->Count("num_experts_per_tok");
    const std::size_t inner = this->Count("intermediate_size");
    const double limit = this->Number("swiglu_limit", 7);
    const Rows routes = this->Linear(x, name + "router", count);
    const Row in =
      this->Get(name + "experts.gate_up_proj", { Signed(count), Signed(d), Signed(2 * inner) });
    const Row inBias =
      this->Get(name + "experts.gate_up_proj_bias", { Signed(count), Signed(2 * inner) });
    const Row out =
      this->Get(name + "experts.down_proj", { Signed(count), Signed(inner), Signed(d) });
    const Row outBias = this->Get(name + "experts.down_proj_bias", { Signed(count), Signed(d) });
    Rows y(x.size(), Row(d, 0));
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t e = 0; e < count; ++e)
      {
        order.emplace_back(-routes[t][e], e);
      }
      std::sort(order.begin(), order.end());
      double total = 0;
      for (std::size_t i = 0; i < chosen; ++i)
      {
        total += std::exp(-order[i].first);
      }
      for (std::size_t i = 0; i < chosen; ++i)
      {
        const std::size_t e = order[i].second;
        Row hidden(inner);
        for (std::size_t o = 0; o < inner; ++o)
        {
          double gate = inBias[e * 2 * inner + 2 * o];
          double up = inBias[e * 2 * inner + 2 * o + 1];
          for (std::size_t c = 0; c < d; ++c)
          {
            gate += x[t][c] * in[(e * d + c) * 2 * inner + 2 * o];
            up += x[t][c] * in[(e * d + c) * 2 * inner + 2 * o + 1];
          }
          gate = std::min(gate, limit);
          up = std::clamp(up, -limit, limit);
          hidden[o] = (up + 1) * gate / (1 + std::exp(-1.702 * gate));
        }
        for (std::size_t c = 0; c < d; ++c)
        {
          double sum = outBias[e * d + c];
          for (std::size_t o = 0; o < inner; ++o)
          {
            sum += hidden[o] * out[(e * inner + o) * d + c];
          }
          y[t][c] += std::exp(-order[i].first) / total * sum;
        }
      }
    }
    return y;
  }

  Run RunLlama(const std::vector<std::int64_t>& ids)
  {
    const bool isGemma = this->Type.substr(0, 5) == "gemma";
    const bool hasFourNorms = isGemma && this->Type != "gemma";
    const std::string base = this->Prefix("model.");
    const std::size_t d = this->Count("hidden_size");
    const std::string activation = isGemma ? "gelu_new" : this->Text("hidden_act", "silu");
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), d);
    if (isGemma)
    {
      Scale(x, Row(d, std::sqrt(static_cast<double>(d))));
    }
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      Rows added = this->LlamaAttention(
        this->LlamaNorm(x, name + "input_layernorm"), name + "self_attn.", l, run);
      if (hasFourNorms)
      {
        added = this->LlamaNorm(added, name + "post_attention_layernorm");
      }
      Add(x, added);
      const Rows normed = this->LlamaNorm(
        x, name + (hasFourNorms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
      added = this->Type == "gpt_oss"
                ? this->ExpertMlp(normed, name + "mlp.")
                : this->GatedMlp(normed, name + "mlp.", activation, this->Is("mlp_bias", false));
      if (hasFourNorms)
      {
        added = this->LlamaNorm(added, name + "post_feedforward_layernorm");
      }
      Add(x, added);
    }
    x = this->LlamaNorm(x, base + "norm");
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "lm_head", base + "embed_tokens.weight", this->Is("tie_word_embeddings", isGemma));
    const double cap = this->Type == "gemma2" ? this->Cap("final_logit_softcapping", 30) : 0;
    for (Row& row : run.logits)
    {
      for (double& logit : row)
      {
        logit = cap > 0 ? cap * std::tanh(logit / cap) : logit;
      }
    }
    return run;
  }

  // Phi and GPT-J.

  Run RunOneNorm(const std::vector<std::int64_t>& ids)
  {
    const bool isPhi = this->Type == "phi";
    const std::string base = this->Prefix(isPhi ? "model." : "transformer.");
    const std::string embedding = base + (isPhi ? "embed_tokens.weight" : "wte.weight");
    const std::size_t d = this->Count(isPhi ? "hidden_size" : "n_embd");
    Attention how;
    how.heads = this->Count(isPhi ? "num_attention_heads" : "n_head");
    how.keyHeads = isPhi ? this->Count("num_key_value_heads", how.heads) : how.heads;
    const std::size_t size = HeadSize(d, how);
    how.scale = 1 / std::sqrt(static_cast<double>(size));
    const double epsilon = this->Number(isPhi ? "layer_norm_eps" : "layer_norm_epsilon", 1e-5);
    const std::size_t inner =
      isPhi ? this->Count("intermediate_size") : this->Count("n_inner", 4 * d);
    const std::string activation =
      this->Text(isPhi ? "hidden_act" : "activation_function", "gelu_new");
    Rotation rotation;
    if (isPhi)
    {
      rotation = this->UsualRotation(size, this->Number("partial_rotary_factor", 0.5), ids.size());
    }
    else
    {
      rotation.angles = PlainAngles(10000, this->Count("rotary_dim", 64));
      rotation.isInterleaved = true;
    }
    Run run;
    Rows x = this->Embed(ids, embedding, this->Count("vocab_size"), d);
    for (std::size_t l = 0; l < this->Count(isPhi ? "num_hidden_layers" : "n_layer"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + (isPhi ? "layers." : "h.") + std::to_string(l) + ".";
      const std::string block = name + (isPhi ? "self_attn." : "attn.");
      const Rows normed = this->LayerNorm(x, name + (isPhi ? "input_layernorm" : "ln_1"), epsilon);
      Rows q = this->Linear(normed, block + "q_proj", how.heads * size, isPhi);
      Rows k = this->Linear(normed, block + "k_proj", how.keyHeads * size, isPhi);
      const Rows v = this->Linear(normed, block + "v_proj", how.keyHeads * size, isPhi);
      if (isPhi && this->Is("qk_layernorm", false))
      {
        this->NormHeads(q, block + "q_layernorm", size, epsilon);
        this->NormHeads(k, block + "k_layernorm", size, epsilon);
      }
      Rotate(q, size, rotation);
      Rotate(k, size, rotation);
      Add(x, this->Attend(q, k, v, how, block + (isPhi ? "dense" : "out_proj"), d, isPhi, run));
      Add(x,
        this->Linear(Activate(this->Linear(normed, name + (isPhi ? "mlp.fc1" : "mlp.fc_in"), inner),
                       activation),
          name + (isPhi ? "mlp.fc2" : "mlp.fc_out"), d));
    }
    x = this->LayerNorm(x, base + (isPhi ? "final_layernorm" : "ln_f"), epsilon);
    run.hidden.push_back(x);
    run.logits =
      this->Unembed(x, "lm_head", embedding, this->Is("tie_word_embeddings", false), true);
    return run;
  }

  /// One LayerNorm for all heads.
  void NormHeads(Rows& x, const std::string& name, std::size_t headDimension, double epsilon)
  {
    const Row gain = this->Get(name + ".weight", { Signed(headDimension) });
    const Row shift = this->Get(name + ".bias", { Signed(headDimension) });
    for (Row& row : x)
    {
      for (std::size_t first = 0; first < row.size(); first += headDimension)
      {
        NormalizePart(row, first, headDimension, epsilon, gain, shift);
      }
    }
  }

  Run RunStableLm(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("model.");
    const std::size_t d = this->Count("hidden_size");
    Attention how;
    how.heads = this->Count("num_attention_heads", 32);
    how.keyHeads = this->Count("num_key_value_heads", 32);
    const std::size_t size = HeadSize(d, how);
    how.scale = 1 / std::sqrt(static_cast<double>(size));
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    const bool hasBias = this->Is("use_qkv_bias", false);
    const bool isParallel = this->Is("use_parallel_residual", false);
    const Rotation rotation =
      this->UsualRotation(size, this->Number("partial_rotary_factor", 0.25), ids.size());
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), d);
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
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
      const std::string activation = this->Text("hidden_act", "silu");
      if (isParallel)
      {
        Add(x, attended);
        Add(x, this->GatedMlp(normed, name + "mlp.", activation, false));
      }
      else
      {
        Add(x, attended);
        Add(x, this->GatedMlp(this->LayerNorm(x, name + "post_attention_layernorm", epsilon),
                 name + "mlp.", activation, false));
      }
    }
    x = this->LayerNorm(x, base + "norm", epsilon);
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "lm_head", base + "embed_tokens.weight", this->Is("tie_word_embeddings", false));
    return run;
  }

  void NormEachHead(Rows& x, const std::string& name, std::size_t headDimension, double epsilon)
  {
    for (std::size_t h = 0; h < x[0].size() / headDimension; ++h)
    {
      const Row gain = this->Get(name + std::to_string(h) + ".weight", { Signed(headDimension) });
      for (Row& row : x)
      {
        NormalizePart(row, h * headDimension, headDimension, epsilon, gain, {});
      }
    }
  }

  Run RunGptNeoX(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("gpt_neox.");
    const std::size_t d = this->Count("hidden_size");
    Attention how;
    how.heads = this->Count("num_attention_heads");
    how.keyHeads = how.heads;
    const std::size_t size = HeadSize(d, how);
    how.scale = 1 / std::sqrt(static_cast<double>(size));
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    const bool hasBias = this->Is("attention_bias", true);
    const Rotation rotation =
      this->UsualRotation(size, this->Number("rotary_pct", 0.25), ids.size());
    Run run;
    Rows x = this->Embed(ids, base + "embed_in.weight", this->Count("vocab_size"), d);
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      const Rows all = this->Linear(this->LayerNorm(x, name + "input_layernorm", epsilon),
        name + "attention.query_key_value", 3 * d, hasBias);
      Rows parts[3]; // NOLINT(modernize-avoid-c-arrays)
      for (std::size_t kind = 0; kind < 3; ++kind)
      {
        parts[kind].resize(all.size());
        for (std::size_t t = 0; t < all.size(); ++t)
        {
          for (std::size_t c = 0; c < d; ++c)
          {
            parts[kind][t].push_back(all[t][(c / size * 3 + kind) * size + c % size]);
          }
        }
      }
      Rotate(parts[0], size, rotation);
      Rotate(parts[1], size, rotation);
      const Rows attended =
        this->Attend(parts[0], parts[1], parts[2], how, name + "attention.dense", d, hasBias, run);
      Rows between = x;
      Add(between, attended);
      const Rows& second = this->Is("use_parallel_residual", true) ? x : between;
      Add(between, this->Mlp(this->LayerNorm(second, name + "post_attention_layernorm", epsilon),
                     name + "mlp.dense_h_to_4h", name + "mlp.dense_4h_to_h",
                     this->Count("intermediate_size"), this->Text("hidden_act", "gelu")));
      x = between;
    }
    x = this->LayerNorm(x, base + "final_layer_norm", epsilon);
    run.hidden.push_back(x);
    run.logits = this->Unembed(
      x, "embed_out", base + "embed_in.weight", this->Is("tie_word_embeddings", false));
    return run;
  }

  Rows Mlp(const Rows& x, const std::string& up, const std::string& down, std::size_t inner,
    const std::string& activation, bool hasBias = true)
  {
    return this->Linear(
      Activate(this->Linear(x, up, inner, hasBias), activation), down, x[0].size(), hasBias);
  }

  Run RunOpt(const std::vector<std::int64_t>& ids)
  {
    const std::string base = this->Prefix("model.decoder.");
    const std::size_t d = this->Count("hidden_size");
    const std::size_t embedded = this->Count("word_embed_proj_dim", d);
    Attention how;
    how.heads = this->Count("num_attention_heads");
    how.keyHeads = how.heads;
    how.scale = 1 / std::sqrt(static_cast<double>(HeadSize(d, how)));
    const bool isBefore = this->Is("do_layer_norm_before", true);
    const bool hasBias = this->Is("enable_bias", true);
    const bool hasGains = this->Is("layer_norm_elementwise_affine", true);
    Run run;
    Rows x = this->Embed(ids, base + "embed_tokens.weight", this->Count("vocab_size"), embedded);
    if (embedded != d)
    {
      x = this->Linear(x, base + "project_in", d, false);
    }
    std::vector<std::int64_t> places;
    for (std::size_t t = 0; t < ids.size(); ++t)
    {
      places.push_back(Signed(t) + 2);
    }
    Add(x, this->Embed(places, base + "embed_positions.weight",
             this->Count("max_position_embeddings") + 2, d));
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "layers." + std::to_string(l) + ".";
      const auto norm = [&](const Rows& rows, const char* which)
      { return this->LayerNorm(rows, name + which, 1e-5, hasGains); };
      const Rows from = isBefore ? norm(x, "self_attn_layer_norm") : x;
      Add(x, this->Attend(this->Linear(from, name + "self_attn.q_proj", d, hasBias),
               this->Linear(from, name + "self_attn.k_proj", d, hasBias),
               this->Linear(from, name + "self_attn.v_proj", d, hasBias), how,
               name + "self_attn.out_proj", d, hasBias, run));
      x = isBefore ? x : norm(x, "self_attn_layer_norm");
      Add(x, this->Mlp(isBefore ? norm(x, "final_layer_norm") : x, name + "fc1", name + "fc2",
               this->Count("ffn_dim"), this->Text("activation_function", "relu"), hasBias));
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
    const std::size_t d = this->Count("hidden_size");
    Attention how;
    how.heads = this->Count("num_heads");
    how.keyHeads = how.heads;
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
        for (std::size_t i = 0; i < item.at(1).get<std::size_t>(); ++i)
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
    this->AddPositions(x, base + "wpe.weight", this->Count("max_position_embeddings"));
    for (std::size_t l = 0; l < this->Count("num_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "h." + std::to_string(l) + ".";
      const std::string block = name + "attn.attention.";
      how.window = kinds.at(l) == "local" ? this->Count("window_size", 256) : 0;
      const Rows from = this->LayerNorm(x, name + "ln_1", epsilon);
      Add(x,
        this->Attend(this->Linear(from, block + "q_proj", d, false),
          this->Linear(from, block + "k_proj", d, false),
          this->Linear(from, block + "v_proj", d, false), how, block + "out_proj", d, true, run));
      Add(x, this->Mlp(this->LayerNorm(x, name + "ln_2", epsilon), name + "mlp.c_fc",
               name + "mlp.c_proj", this->Count("intermediate_size", 4 * d),
               this->Text("activation_function", "gelu_new")));
    }
    x = this->LayerNorm(x, base + "ln_f", epsilon);
    run.hidden.push_back(x);
    run.logits =
      this->Unembed(x, "lm_head", base + "wte.weight", this->Is("tie_word_embeddings", true));
    return run;
  }

  void AddPositions(Rows& x, const std::string& name, std::size_t rows)
  {
    std::vector<std::int64_t> places;
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      places.push_back(Signed(t));
    }
    Add(x, this->Embed(places, name, rows, x[0].size()));
  }

  // RoBERTa and DistilBERT.

  Run RunEncoder(const std::vector<std::int64_t>& ids)
  {
    const bool isRoberta = this->Type == "roberta";
    const std::string base = this->Prefix(isRoberta ? "roberta." : "distilbert.");
    const std::size_t d = this->Count(isRoberta ? "hidden_size" : "dim");
    Attention how;
    how.heads = this->Count(isRoberta ? "num_attention_heads" : "n_heads");
    how.keyHeads = how.heads;
    how.scale = 1 / std::sqrt(static_cast<double>(HeadSize(d, how)));
    how.isCausal = false;
    const double epsilon = isRoberta ? this->Number("layer_norm_eps", 1e-12) : 1e-12;
    const std::string activation = this->Text(isRoberta ? "hidden_act" : "activation", "gelu");
    const std::size_t vocabulary = this->Count("vocab_size");
    const std::string embedding = base + "embeddings.word_embeddings.weight";
    Run run;
    Rows x = this->Embed(ids, embedding, vocabulary, d);
    const auto padding = static_cast<std::int64_t>(this->Count("pad_token_id", 1));
    std::vector<std::int64_t> places;
    std::int64_t seen = 0;
    for (std::size_t t = 0; t < ids.size(); ++t)
    {
      seen += ids[t] == padding ? 0 : 1;
      places.push_back(!isRoberta ? Signed(t) : ids[t] == padding ? padding : padding + seen);
    }
    Add(x, this->Embed(places, base + "embeddings.position_embeddings.weight",
             this->Count("max_position_embeddings"), d));
    if (isRoberta)
    {
      Add(
        x, this->Embed(std::vector<std::int64_t>(ids.size(), 0),
             base + "embeddings.token_type_embeddings.weight", this->Count("type_vocab_size"), d));
    }
    x = this->LayerNorm(x, base + "embeddings.LayerNorm", epsilon);
    for (std::size_t l = 0; l < this->Count(isRoberta ? "num_hidden_layers" : "n_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name =
        base + (isRoberta ? "encoder.layer." : "transformer.layer.") + std::to_string(l) + ".";
      const std::string block = name + (isRoberta ? "attention.self." : "attention.");
      Add(x, this->Attend(this->Linear(x, block + (isRoberta ? "query" : "q_lin"), d),
               this->Linear(x, block + (isRoberta ? "key" : "k_lin"), d),
               this->Linear(x, block + (isRoberta ? "value" : "v_lin"), d), how,
               name + (isRoberta ? "attention.output.dense" : "attention.out_lin"), d, true, run));
      x = this->LayerNorm(
        x, name + (isRoberta ? "attention.output.LayerNorm" : "sa_layer_norm"), epsilon);
      Add(x, this->Mlp(x, name + (isRoberta ? "intermediate.dense" : "ffn.lin1"),
               name + (isRoberta ? "output.dense" : "ffn.lin2"),
               this->Count(isRoberta ? "intermediate_size" : "hidden_dim"), activation));
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
  Rows Patches(const Row& pixels, const std::string& name, std::size_t d, bool hasBias)
  {
    const std::size_t side = this->Count("image_size", 224);
    const std::size_t patch = this->Count("patch_size", 16);
    const std::size_t channels = this->Count("num_channels", 3);
    const Row weight =
      this->Get(name + ".weight", { Signed(d), Signed(channels), Signed(patch), Signed(patch) });
    const Row bias = hasBias ? this->Get(name + ".bias", { Signed(d) }) : Row(d, 0);
    Rows x;
    for (std::size_t top = 0; top + patch <= side; top += patch)
    {
      for (std::size_t left = 0; left + patch <= side; left += patch)
      {
        x.push_back(bias);
        for (std::size_t o = 0; o < d; ++o)
        {
          for (std::size_t c = 0; c < channels; ++c)
          {
            for (std::size_t i = 0; i < patch; ++i)
            {
              for (std::size_t j = 0; j < patch; ++j)
              {
                x.back()[o] += weight[((o * channels + c) * patch + i) * patch + j] *
                               pixels[(c * side + top + i) * side + left + j];
              }
            }
          }
        }
      }
    }
    return x;
  }

  Run RunVit(const Row& pixels)
  {
    const bool isDino = this->Type != "deit" && this->Type != "vit";
    const std::string base = this->Prefix(this->Type + ".");
    const std::size_t d = this->Count("hidden_size");
    Attention how;
    how.heads = this->Count("num_attention_heads");
    how.keyHeads = how.heads;
    how.scale = 1 / std::sqrt(static_cast<double>(HeadSize(d, how)));
    how.isCausal = false;
    const double epsilon = this->Number("layer_norm_eps", isDino ? 1e-6 : 1e-12);
    const std::string activation = this->Text("hidden_act", "gelu");
    const bool hasBias = this->Is("qkv_bias", true);
    Rows x{ this->Get(base + "embeddings.cls_token", { 1, 1, Signed(d) }) };
    if (this->Type == "deit")
    {
      x.push_back(this->Get(base + "embeddings.distillation_token", { 1, 1, Signed(d) }));
    }
    for (const Row& patch :
      this->Patches(pixels, base + "embeddings.patch_embeddings.projection", d, true))
    {
      x.push_back(patch);
    }
    const Row positions =
      this->Get(base + "embeddings.position_embeddings", { 1, Signed(x.size()), Signed(d) });
    for (std::size_t t = 0; t < x.size(); ++t)
    {
      for (std::size_t c = 0; c < d; ++c)
      {
        x[t][c] += positions[t * d + c];
      }
    }
    if (isDino)
    {
      this->Get(base + "embeddings.mask_token", { 1, Signed(d) });
    }
    if (this->Type == "dinov2_with_registers")
    {
      const std::size_t registers = this->Count("num_register_tokens", 4);
      const Row table =
        this->Get(base + "embeddings.register_tokens", { 1, Signed(registers), Signed(d) });
      for (std::size_t r = 0; r < registers; ++r)
      {
        x.insert(x.begin() + 1 + Signed(r),
          Row(table.begin() + Signed(r * d), table.begin() + Signed((r + 1) * d)));
      }
    }
    Run run;
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "encoder.layer." + std::to_string(l) + ".";
      const std::string block = name + "attention.attention.";
      const Rows from = this->LayerNorm(x, name + (isDino ? "norm1" : "layernorm_before"), epsilon);
      Rows added = this->Attend(this->Linear(from, block + "query", d, hasBias),
        this->Linear(from, block + "key", d, hasBias),
        this->Linear(from, block + "value", d, hasBias), how, name + "attention.output.dense", d,
        true, run);
      if (isDino)
      {
        Scale(added, this->Get(name + "layer_scale1.lambda1", { Signed(d) }));
      }
      Add(x, added);
      const Rows normed =
        this->LayerNorm(x, name + (isDino ? "norm2" : "layernorm_after"), epsilon);
      const double ratio = this->Number("mlp_ratio", 4);
      const auto wide = static_cast<std::size_t>(static_cast<double>(d) * ratio);
      if (isDino && this->Is("use_swiglu_ffn", false))
      {
        const std::size_t inner =
          (static_cast<std::size_t>(static_cast<double>(wide) * 2 / 3) + 7) / 8 * 8;
        const Rows both = this->Linear(normed, name + "mlp.weights_in", 2 * inner);
        Rows gate = Activate(Columns(both, 0, inner), "silu");
        Multiply(gate, Columns(both, inner, inner));
        added = this->Linear(gate, name + "mlp.weights_out", d);
      }
      else
      {
        added = isDino ? this->Mlp(normed, name + "mlp.fc1", name + "mlp.fc2", wide, activation)
                       : this->Mlp(normed, name + "intermediate.dense", name + "output.dense",
                           this->Count("intermediate_size"), activation);
      }
      if (isDino)
      {
        Scale(added, this->Get(name + "layer_scale2.lambda1", { Signed(d) }));
      }
      Add(x, added);
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
    this->AddPositions(
      x, base + "embeddings.position_embedding.weight", this->Count("max_position_embeddings"));
    Run run = this->RunClipLayers(x, base, true);
    this->LayerNorm(x, base + "final_layer_norm", 1e-5);
    return run;
  }

  Run RunClipVision(const Row& pixels)
  {
    const std::string base = this->Prefix("vision_model.");
    const std::size_t d = this->Count("hidden_size");
    Rows x{ this->Get(base + "embeddings.class_embedding", { Signed(d) }) };
    for (const Row& patch : this->Patches(pixels, base + "embeddings.patch_embedding", d, false))
    {
      x.push_back(patch);
    }
    this->AddPositions(x, base + "embeddings.position_embedding.weight", x.size());
    x = this->LayerNorm(x, base + "pre_layrnorm", this->Number("layer_norm_eps", 1e-5));
    Run run = this->RunClipLayers(x, base, false);
    this->LayerNorm(x, base + "post_layernorm", 1e-5);
    return run;
  }

  Run RunClipLayers(Rows x, const std::string& base, bool isCausal)
  {
    const std::size_t d = x[0].size();
    const double epsilon = this->Number("layer_norm_eps", 1e-5);
    Attention how;
    how.heads = this->Count("num_attention_heads");
    how.keyHeads = how.heads;
    how.scale = 1 / std::sqrt(static_cast<double>(HeadSize(d, how)));
    how.isCausal = isCausal;
    Run run;
    for (std::size_t l = 0; l < this->Count("num_hidden_layers"); ++l)
    {
      run.hidden.push_back(x);
      const std::string name = base + "encoder.layers." + std::to_string(l) + ".";
      const Rows from = this->LayerNorm(x, name + "layer_norm1", epsilon);
      Add(x, this->Attend(this->Linear(from, name + "self_attn.q_proj", d),
               this->Linear(from, name + "self_attn.k_proj", d),
               this->Linear(from, name + "self_attn.v_proj", d), how, name + "self_attn.out_proj",
               d, true, run));
      Add(x, this->Mlp(this->LayerNorm(x, name + "layer_norm2", epsilon), name + "mlp.fc1",
               name + "mlp.fc2", this->Count("intermediate_size"),
               this->Text("hidden_act", "quick_gelu")));
    }
    run.hidden.push_back(x);
    return run;
  }
};

}
