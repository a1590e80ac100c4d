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

/// Settings, weights and arithmetic of a NaiveModel. Weights that it is not given are random: a run
/// then also makes the model's file.
class NaiveParts
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
  NaiveParts(const nlohmann::json& config, Tensors weights, std::string base = {})
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
    const bool isLessOne =
      this->Type.substr(0, 5) == "gemma" || this->Type == "vaultgemma" || this->Type == "nemotron";
    const double centered = isGain && !isLessOne ? 1 : 0;
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
    const bool isTanh = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
    const bool isKnown =
      isTanh || name == "gelu" || name == "quick_gelu" || name == "silu" || name == "relu";
    if (isKnown)
    {
      return isTanh                 ? TanhGelu(x)
             : name == "gelu"       ? 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))
             : name == "quick_gelu" ? x / (1 + std::exp(-1.702 * x))
             : name == "silu"       ? x / (1 + std::exp(-x))
                                    : std::max(x, 0.0);
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
};

}
