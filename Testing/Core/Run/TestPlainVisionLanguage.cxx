// Models of pictures among words, compared with loops in double precision.

#include "MappedFile.h"
#include "PictureTokens.h"
#include "PlainWeights.h"
#include "RecordTransformer.h"
#include "Transformer.h"
#include "VisionOracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// LLaVA and Qwen2.5-VL written anew in double precision, from their formulas: weights by their
/// names in the file, settings from config.json, patches one by one.
class PlainVision : private PlainWeights
{
public:
  using PlainWeights::Rows;

  explicit PlainVision(const std::string& name)
    : PlainWeights(VisionOracle::Folder(name) / "model.safetensors")
    , Oracle(name)
    , Config(nlohmann::json::parse(ReadFile(VisionOracle::Folder(name) / ConfigFile)))
    , Vision(this->Config["vision_config"])
    , Words(this->Config["text_config"])
    , IsQwen(name == "qwen2_5_vl")
  {
  }

  /// The vectors of all image tokens, in the order of pictures.
  Rows Features() const
  {
    std::vector<Rows> all;
    Eigen::Index count = 0;
    const std::size_t pictures =
      this->IsQwen ? this->Oracle.Input.extents.size() : this->Oracle.Input.tiles.size();
    std::size_t pixel = 0;
    for (std::size_t i = 0; i < pictures; ++i)
    {
      all.push_back(this->IsQwen ? this->QwenPicture(i, pixel) : this->LlavaPicture(i));
      count += all.back().rows();
    }
    Rows features(count, all.front().cols());
    count = 0;
    for (const Rows& rows : all)
    {
      features.middleRows(count, rows.rows()) = rows;
      count += rows.rows();
    }
    return features;
  }

  /// The logits of a text, given the vectors of all image tokens.
  Rows Text(std::size_t s, const Rows& features) const
  {
    const std::string base = this->IsQwen ? "model." : "language_model.model.";
    const std::vector<std::int64_t>& ids = this->Oracle.Input.tokens[s];
    const std::int64_t imageToken =
      this->Config[this->IsQwen ? "image_token_id" : "image_token_index"];
    Eigen::Index next = 0; // of the features
    for (std::size_t before = 0; before < s; ++before)
    {
      const auto& earlier = this->Oracle.Input.tokens[before];
      next += std::count(earlier.begin(), earlier.end(), imageToken);
    }
    const Rows table = this->Get(base + "embed_tokens.weight");
    Rows x(static_cast<Eigen::Index>(ids.size()), table.cols());
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      x.row(t) = ids[t] == imageToken ? features.row(next++) : table.row(ids[t]);
    }
    std::vector<std::array<double, 3>> places;
    if (this->IsQwen)
    {
      places = this->Places(s, imageToken);
    }
    const double epsilon = this->Words["rms_norm_eps"];
    const int heads = this->Words["num_attention_heads"];
    const int keyHeads = this->Words["num_key_value_heads"];
    const Eigen::Index dimension =
      this->IsQwen ? x.cols() / heads : this->Words["head_dim"].get<Eigen::Index>();
    for (int l = 0; l < this->Words["num_hidden_layers"]; ++l)
    {
      const std::string layer = base + "layers." + std::to_string(l) + ".";
      const Rows y = this->RmsNorm(x, layer + "input_layernorm", epsilon);
      Rows query = this->Linear(y, layer + "self_attn.q_proj");
      Rows key = this->Linear(y, layer + "self_attn.k_proj");
      const Rows value = this->Linear(y, layer + "self_attn.v_proj");
      const auto angle = [&](Eigen::Index t, Eigen::Index pair)
      {
        const Eigen::Index axis = pair < 2 ? 0 : pair - 1; // Qwen: mrope_section 2, 1, 1
        const double position = this->IsQwen ? places[t][axis] : static_cast<double>(t);
        return position *
               std::pow(10000.0, -2 * static_cast<double>(pair) / static_cast<double>(dimension));
      };
      this->Rotate(query, dimension, angle);
      this->Rotate(key, dimension, angle);
      Rows mixed(x.rows(), heads * dimension);
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        const Eigen::Index g = h / (heads / keyHeads);
        mixed.middleCols(h * dimension, dimension) =
          this->Attend(query.middleCols(h * dimension, dimension),
            key.middleCols(g * dimension, dimension), value.middleCols(g * dimension, dimension),
            [](Eigen::Index q, Eigen::Index k) { return k <= q; });
      }
      x += this->Linear(mixed, layer + "self_attn.o_proj");
      x += this->GatedMlp(
        this->RmsNorm(x, layer + "post_attention_layernorm", epsilon), layer + "mlp.");
    }
    x = this->RmsNorm(x, base + "norm", epsilon);
    return this->Linear(x, this->IsQwen ? "lm_head" : "language_model.lm_head");
  }

private:
  VisionOracle Oracle;
  nlohmann::json Config;
  nlohmann::json Vision;
  nlohmann::json Words;
  bool IsQwen;

  Rows RmsNorm(Rows x, const std::string& name, double epsilon) const
  {
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      x.row(i) /= std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + epsilon);
      x.row(i).array() *= this->Get(name + ".weight").row(0).array();
    }
    return x;
  }

  Rows LayerNorm(Rows x, const std::string& name) const
  {
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      x.row(i).array() -= x.row(i).mean();
      x.row(i) /= std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + 1e-5);
      x.row(i).array() *= this->Get(name + ".weight").row(0).array();
      x.row(i) += this->Get(name + ".bias").row(0);
    }
    return x;
  }

  Rows GatedMlp(const Rows& x, const std::string& prefix) const
  {
    Rows gate = this->Linear(x, prefix + "gate_proj");
    gate = gate.unaryExpr([](double v) { return v / (1 + std::exp(-v)); });
    return this->Linear(
      Rows(gate.array() * this->Linear(x, prefix + "up_proj").array()), prefix + "down_proj");
  }

  template<class Angle>
  static void Rotate(Rows& x, Eigen::Index dimension, const Angle& angle)
  {
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      for (Eigen::Index first = 0; first < x.cols(); first += dimension)
      {
        for (Eigen::Index i = 0; i < dimension / 2; ++i)
        {
          const double a = x(t, first + i);
          const double b = x(t, first + i + dimension / 2);
          x(t, first + i) = a * std::cos(angle(t, i)) - b * std::sin(angle(t, i));
          x(t, first + i + dimension / 2) = b * std::cos(angle(t, i)) + a * std::sin(angle(t, i));
        }
      }
    }
  }

  template<class Sees>
  static Rows Attend(const Rows& query, const Rows& key, const Rows& value, const Sees& sees)
  {
    Rows mixed = Rows::Zero(query.rows(), value.cols());
    for (Eigen::Index q = 0; q < query.rows(); ++q)
    {
      double sum = 0;
      for (Eigen::Index k = 0; k < key.rows(); ++k)
      {
        const double score =
          query.row(q).dot(key.row(k)) / std::sqrt(static_cast<double>(query.cols()));
        const double weight = sees(q, k) ? std::exp(score) : 0;
        mixed.row(q) += weight * value.row(k);
        sum += weight;
      }
      mixed.row(q) /= sum;
    }
    return mixed;
  }

  static Rows Gelu(const Rows& x)
  {
    return x.unaryExpr([](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
  }

  Rows LlavaPicture(std::size_t image) const
  {
    const std::string base = "vision_tower.vision_model.";
    const int side = this->Vision["image_size"];
    const int patch = this->Vision["patch_size"];
    const int across = side / patch;
    const Rows kernel = this->Get(base + "embeddings.patch_embedding.weight");
    Rows x(1 + across * across, kernel.rows());
    x.row(0) = this->Get(base + "embeddings.class_embedding");
    for (int i = 0; i < across * across; ++i)
    {
      Eigen::RowVectorXd pixels(kernel.cols());
      Eigen::Index next = 0;
      for (int channel = 0; channel < 3; ++channel)
      {
        for (int row = 0; row < patch; ++row)
        {
          for (int column = 0; column < patch; ++column)
          {
            const int y = i / across * patch + row;
            const int z = i % across * patch + column;
            const std::size_t at = ((image * 3 + channel) * side + y) * side + z;
            pixels[next++] = static_cast<double>(this->Oracle.Input.pixels[at]);
          }
        }
      }
      x.row(1 + i) = pixels * kernel.transpose();
    }
    x += this->Get(base + "embeddings.position_embedding.weight");
    x = this->LayerNorm(x, base + "pre_layrnorm");
    const int heads = this->Vision["num_attention_heads"];
    const Eigen::Index dimension = x.cols() / heads;
    const int layers = this->Vision["num_hidden_layers"];
    for (int l = 0; l < layers - 1; ++l) // the last one is not read
    {
      const std::string layer = base + "encoder.layers." + std::to_string(l) + ".";
      const Rows y = this->LayerNorm(x, layer + "layer_norm1");
      const Rows query = this->Linear(y, layer + "self_attn.q_proj");
      const Rows key = this->Linear(y, layer + "self_attn.k_proj");
      const Rows value = this->Linear(y, layer + "self_attn.v_proj");
      Rows mixed(x.rows(), x.cols());
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        mixed.middleCols(h * dimension, dimension) =
          this->Attend(query.middleCols(h * dimension, dimension),
            key.middleCols(h * dimension, dimension), value.middleCols(h * dimension, dimension),
            [](Eigen::Index, Eigen::Index) { return true; });
      }
      x += this->Linear(mixed, layer + "self_attn.out_proj");
      Rows hidden = this->Linear(this->LayerNorm(x, layer + "layer_norm2"), layer + "mlp.fc1");
      hidden = hidden.unaryExpr([](double v) { return v / (1 + std::exp(-1.702 * v)); });
      x += this->Linear(hidden, layer + "mlp.fc2");
    }
    const Rows patches = x.bottomRows(across * across);
    return this->Linear(Gelu(this->Linear(patches, "multi_modal_projector.linear_1")),
      "multi_modal_projector.linear_2");
  }

  /// One picture, whose patches begin at a pixel; moves behind them.
  Rows QwenPicture(std::size_t image, std::size_t& pixel) const
  {
    const PatchExtent& extent = this->Oracle.Input.extents[image];
    const Rows kernel = this->Get("visual.patch_embed.proj.weight");
    Rows x(extent.Count(), kernel.rows());
    std::vector<std::pair<int, int>> places; // row and column
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      Eigen::RowVectorXd pixels(kernel.cols());
      for (Eigen::Index p = 0; p < kernel.cols(); ++p)
      {
        pixels[p] = static_cast<double>(this->Oracle.Input.pixels[pixel++]);
      }
      x.row(i) = pixels * kernel.transpose();
    }
    for (int top = 0; top < extent.rows; top += 2)
    {
      for (int left = 0; left < extent.columns; left += 2)
      {
        for (int i = 0; i < 4; ++i)
        {
          places.emplace_back(top + i / 2, left + i % 2);
        }
      }
    }
    const int heads = this->Vision["num_heads"];
    const Eigen::Index dimension = x.cols() / heads;
    const std::vector<int> whole = this->Vision["fullatt_block_indexes"];
    const int window =
      this->Vision["window_size"].get<int>() / this->Vision["patch_size"].get<int>();
    for (int l = 0; l < this->Vision["depth"]; ++l)
    {
      const std::string layer = "visual.blocks." + std::to_string(l) + ".";
      const Rows all = this->Linear(this->RmsNorm(x, layer + "norm1", 1e-6), layer + "attn.qkv");
      Rows query = all.leftCols(x.cols());
      Rows key = all.middleCols(x.cols(), x.cols());
      const Rows value = all.rightCols(x.cols());
      const auto angle = [&](Eigen::Index t, Eigen::Index pair)
      {
        const Eigen::Index quarter = dimension / 4;
        const int place = pair < quarter ? places[t].first : places[t].second;
        return place * std::pow(10000.0,
                         -static_cast<double>(pair % quarter) / static_cast<double>(quarter));
      };
      this->Rotate(query, dimension, angle);
      this->Rotate(key, dimension, angle);
      const bool isWhole = std::count(whole.begin(), whole.end(), l) != 0;
      const auto sees = [&](Eigen::Index q, Eigen::Index k)
      {
        return isWhole || (places[q].first / window == places[k].first / window &&
                            places[q].second / window == places[k].second / window);
      };
      Rows mixed(x.rows(), x.cols());
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        mixed.middleCols(h * dimension, dimension) = this->Attend(
          query.middleCols(h * dimension, dimension), key.middleCols(h * dimension, dimension),
          value.middleCols(h * dimension, dimension), sees);
      }
      x += this->Linear(mixed, layer + "attn.proj");
      x += this->GatedMlp(this->RmsNorm(x, layer + "norm2", 1e-6), layer + "mlp.");
    }
    const Rows normed = this->RmsNorm(x, "visual.merger.ln_q", 1e-6);
    const Rows joined = Eigen::Map<const Rows>(normed.data(), x.rows() / 4, x.cols() * 4);
    return this->Linear(Gelu(this->Linear(joined, "visual.merger.mlp.0")), "visual.merger.mlp.2");
  }

  /// Qwen: frame, row and column of each token of a text, which has one picture.
  std::vector<std::array<double, 3>> Places(std::size_t s, std::int64_t imageToken) const
  {
    std::vector<std::array<double, 3>> places;
    double next = 0;
    double start = 0;
    std::int64_t inside = 0;
    for (const std::int64_t id : this->Oracle.Input.tokens[s])
    {
      if (id != imageToken)
      {
        places.push_back({ next, next, next });
        ++next;
        continue;
      }
      const PatchExtent& extent = this->Oracle.Input.extents[s];
      start = inside == 0 ? next : start;
      places.push_back({ start, start + static_cast<double>(inside / (extent.columns / 2)),
        start + static_cast<double>(inside % (extent.columns / 2)) });
      next = start + static_cast<double>(std::max(extent.rows, extent.columns) / 2);
      ++inside;
    }
    return places;
  }
};

TEST(VisionLanguage, IsThatOfPlainLoops)
{
  for (const char* name : { "llava", "qwen2_5_vl" })
  {
    const Transformer model = Transformer::Read(VisionOracle::Folder(name));
    const VisionOracle oracle(name);
    const Recording found = RecordTransformer(model, oracle.Input, AllOfPictures());
    const PlainVision plain(name);
    const PlainVision::Rows features = plain.Features();
    const std::vector<ImageToken> tokens = ImageTokens(model.GetConfig(), oracle.Input);
    ASSERT_EQ(features.rows(), static_cast<Eigen::Index>(tokens.size()));
    double largest = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      const float* row =
        found.residual[0].Row(found.sequenceOffsets[tokens[i].sequence] + tokens[i].position);
      for (Eigen::Index c = 0; c < features.cols(); ++c)
      {
        RaiseTo(largest, static_cast<double>(row[c]) - features(static_cast<Eigen::Index>(i), c));
      }
    }
    EXPECT_LE(largest, VisionStreamTolerance) << name;
    for (std::size_t s = 0; s < oracle.Input.tokens.size(); ++s)
    {
      const PlainVision::Rows logits = plain.Text(s, features);
      for (Eigen::Index t = 0; t < logits.rows(); ++t)
      {
        for (Eigen::Index c = 0; c < logits.cols(); ++c)
        {
          RaiseTo(largest,
            static_cast<double>(found.logits.Row(found.sequenceOffsets[s] + t)[c]) - logits(t, c));
        }
      }
    }
    EXPECT_LE(largest, VisionStreamTolerance) << name;
    std::cout << name << ": " << largest << "\n";
  }
}

}
