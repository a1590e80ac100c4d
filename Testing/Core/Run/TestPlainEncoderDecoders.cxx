// Models with an encoder and a decoder, compared with loops in double precision.

#include "MappedFile.h"
#include "PairOracle.h"
#include "PlainWeights.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// What the encoder reads, read again in plain double precision: T5 and BART written anew, from
/// their formulas. It takes weights by their names in the file, and settings from config.json.
class PlainPair : private PlainWeights
{
public:
  using PlainWeights::Rows;

  struct Result
  {
    std::vector<Rows> encoder; ///< hidden states
    std::vector<Rows> decoder;
    std::vector<Rows> crossWeights; ///< of the first layer, per head
    Rows logits;
  };

  explicit PlainPair(const std::string& name)
    : PlainWeights(PairOracle::Folder(name) / "model.safetensors")
    , Config(nlohmann::json::parse(ReadFile(PairOracle::Folder(name) / "config.json")))
    , IsT5(this->Config["model_type"] == "t5")
    , IsMarian(this->Config["model_type"] == "marian")
    , D(this->Config["d_model"])
    , Heads(this->Config[this->IsT5 ? "num_heads" : "encoder_attention_heads"])
    , Head(this->IsT5 ? this->Config["d_kv"].get<Eigen::Index>() : this->D / this->Heads)
  {
  }

  Result Run(const std::vector<std::int64_t>& source, const std::vector<std::int64_t>& target)
  {
    Result result;
    const Rows encoded = this->Stack("encoder", source, nullptr, result.encoder, result);
    const Rows last = this->Stack("decoder", target, &encoded, result.decoder, result);
    const bool isTied = !this->Has("lm_head.weight");
    const Rows out = this->Get(isTied ? this->Shared() : "lm_head.weight");
    result.logits = last * out.transpose();
    if (this->IsT5 && isTied)
    {
      result.logits /= std::sqrt(static_cast<double>(this->D));
    }
    if (this->Has("final_logits_bias"))
    {
      result.logits.rowwise() += this->Get("final_logits_bias").row(0);
    }
    return result;
  }

private:
  nlohmann::json Config;
  bool IsT5;
  bool IsMarian;
  Eigen::Index D;
  Eigen::Index Heads;
  Eigen::Index Head;

  std::string Shared() const { return this->IsT5 ? "shared.weight" : "model.shared.weight"; }

  Rows Norm(Rows x, const std::string& name) const
  {
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      const double mean = this->IsT5 ? 0 : x.row(i).mean();
      x.row(i).array() -= mean;
      x.row(i) /= std::sqrt(
        x.row(i).squaredNorm() / static_cast<double>(this->D) + (this->IsT5 ? 1e-6 : 1e-5));
      x.row(i).array() *= this->Get(name + ".weight").row(0).array();
      if (!this->IsT5)
      {
        x.row(i) += this->Get(name + ".bias").row(0);
      }
    }
    return x;
  }

  /// T5: the bias of a head at a pair, by the rule of Raffel et al., written with counts of
  /// distances instead of offsets in tables.
  double Bias(
    const Rows& table, bool isEncoder, Eigen::Index h, Eigen::Index q, Eigen::Index k) const
  {
    const int all = this->Config["relative_attention_num_buckets"];
    const double longest = this->Config["relative_attention_max_distance"];
    const int half = isEncoder ? all / 2 : all;
    const auto length =
      static_cast<double>(isEncoder ? std::abs(k - q) : std::max<Eigen::Index>(q - k, 0));
    const int exact = half / 2;
    int bucket = static_cast<int>(length);
    if (length >= exact)
    {
      bucket = exact + static_cast<int>(
                         std::log(length / exact) / std::log(longest / exact) * (half - exact));
      bucket = std::min(bucket, half - 1);
    }
    return table(bucket + (isEncoder && k > q ? half : 0), h);
  }

  struct Names
  {
    std::string query;
    std::string key;
    std::string value;
    std::string output;
  };

  Rows Attend(const Rows& x, const Rows& memory, const Names& names, bool isCausal,
    const std::string& table, bool isEncoder, std::vector<Rows>* kept) const
  {
    const Rows query = this->Linear(x, names.query);
    const Rows key = this->Linear(memory, names.key);
    const Rows value = this->Linear(memory, names.value);
    Rows mixed = Rows::Zero(x.rows(), this->Heads * this->Head);
    for (Eigen::Index h = 0; h < this->Heads; ++h)
    {
      Rows weights = query.middleCols(h * this->Head, this->Head) *
                     key.middleCols(h * this->Head, this->Head).transpose();
      weights /= this->IsT5 ? 1 : std::sqrt(static_cast<double>(this->Head));
      for (Eigen::Index q = 0; q < weights.rows(); ++q)
      {
        for (Eigen::Index k = 0; k < weights.cols(); ++k)
        {
          weights(q, k) += table.empty() ? 0 : this->Bias(this->Get(table), isEncoder, h, q, k);
          weights(q, k) = isCausal && k > q ? 0 : std::exp(weights(q, k));
        }
        weights.row(q) /= weights.row(q).sum();
      }
      mixed.middleCols(h * this->Head, this->Head) =
        weights * value.middleCols(h * this->Head, this->Head);
      if (kept != nullptr)
      {
        kept->push_back(weights);
      }
    }
    return this->Linear(mixed, names.output);
  }

  Rows Embed(const std::string& stack, const std::vector<std::int64_t>& ids) const
  {
    const Rows table = this->Get(this->Shared());
    Rows x(static_cast<Eigen::Index>(ids.size()), this->D);
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      x.row(t) = table.row(ids[t]) * (this->IsMarian ? std::sqrt(static_cast<double>(this->D)) : 1);
      for (Eigen::Index j = 0; this->IsMarian && j < this->D / 2; ++j)
      {
        const double angle =
          static_cast<double>(t) /
          std::pow(10000.0, 2.0 * static_cast<double>(j) / static_cast<double>(this->D));
        x(t, j) += std::sin(angle);
        x(t, this->D / 2 + j) += std::cos(angle);
      }
      if (!this->IsT5 && !this->IsMarian)
      {
        x.row(t) += this->Get("model." + stack + ".embed_positions.weight").row(t + 2);
      }
    }
    return this->IsT5 || this->IsMarian ? x
                                        : this->Norm(x, "model." + stack + ".layernorm_embedding");
  }

  /// T5's MLP with one matrix, or two of which one is the gate; BART's and Marian's.
  Rows Mlp(const Rows& x, const std::string& prefix) const
  {
    const auto each = [](Rows values, double (*function)(double))
    { return Rows(values.unaryExpr(function)); };
    const auto relu = [](double v) { return std::max(v, 0.0); };
    const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
    const auto gelu = [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); };
    const auto tanhGelu = [](double v)
    {
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
      return v / 2 * (1 + std::tanh(inner));
    };
    if (!this->IsT5)
    {
      const Rows up = this->Linear(x, prefix + "fc1");
      return this->Linear(this->IsMarian ? each(up, silu) : each(up, gelu), prefix + "fc2");
    }
    if (this->Has(prefix + "wi.weight"))
    {
      return this->Linear(each(this->Linear(x, prefix + "wi"), relu), prefix + "wo");
    }
    const Rows gate = each(this->Linear(x, prefix + "wi_0"), tanhGelu);
    return this->Linear(gate.cwiseProduct(this->Linear(x, prefix + "wi_1")), prefix + "wo");
  }

  Rows Stack(const std::string& stack, const std::vector<std::int64_t>& ids, const Rows* encoded,
    std::vector<Rows>& hidden, Result& result) const
  {
    Rows x = this->Embed(stack, ids);
    const std::string first = this->IsT5 ? stack + ".block." : "model." + stack + ".layers.";
    for (int l = 0;; ++l)
    {
      const std::string layer = first + std::to_string(l) + ".";
      if (!this->Has(layer + (this->IsT5 ? "layer.0.layer_norm.weight" : "fc1.weight")))
      {
        break;
      }
      hidden.push_back(x);
      std::vector<Rows>* kept = l == 0 ? &result.crossWeights : nullptr;
      x = this->IsT5 ? this->T5Layer(x, layer, encoded, kept)
                     : this->BartLayer(x, layer, encoded, kept);
    }
    x = this->IsT5 ? this->Norm(x, stack + ".final_layer_norm") : x;
    hidden.push_back(x);
    return x;
  }

  Rows T5Layer(Rows x, const std::string& layer, const Rows* encoded, std::vector<Rows>* kept) const
  {
    const bool isEncoder = encoded == nullptr;
    const auto names = [](const std::string& prefix)
    { return Names{ prefix + ".q", prefix + ".k", prefix + ".v", prefix + ".o" }; };
    const std::string table = std::string(isEncoder ? "encoder" : "decoder") +
                              ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    const Rows normed = this->Norm(x, layer + "layer.0.layer_norm");
    x += this->Attend(normed, normed, names(layer + "layer.0.SelfAttention"), !isEncoder, table,
      isEncoder, nullptr);
    if (!isEncoder)
    {
      x += this->Attend(this->Norm(x, layer + "layer.1.layer_norm"), *encoded,
        names(layer + "layer.1.EncDecAttention"), false, {}, false, kept);
    }
    const std::string mlp = layer + (isEncoder ? "layer.1." : "layer.2.");
    return x + this->Mlp(this->Norm(x, mlp + "layer_norm"), mlp + "DenseReluDense.");
  }

  Rows BartLayer(
    Rows x, const std::string& layer, const Rows* encoded, std::vector<Rows>* kept) const
  {
    const auto names = [](const std::string& prefix)
    {
      return Names{ prefix + ".q_proj", prefix + ".k_proj", prefix + ".v_proj",
        prefix + ".out_proj" };
    };
    x = this->Norm(
      x + this->Attend(x, x, names(layer + "self_attn"), encoded != nullptr, {}, false, nullptr),
      layer + "self_attn_layer_norm");
    if (encoded != nullptr)
    {
      x = this->Norm(
        x + this->Attend(x, *encoded, names(layer + "encoder_attn"), false, {}, false, kept),
        layer + "encoder_attn_layer_norm");
    }
    return this->Norm(x + this->Mlp(x, layer), layer + "final_layer_norm");
  }
};

double Difference(const SharedMatrix& found, std::int64_t first, const PlainPair::Rows& expected)
{
  double largest = 0;
  EXPECT_EQ(found.columns, expected.cols());
  for (Eigen::Index i = 0; i < expected.rows(); ++i)
  {
    for (Eigen::Index c = 0; c < expected.cols(); ++c)
    {
      Raise(largest, static_cast<double>(found.Row(first + i)[c]) - expected(i, c));
    }
  }
  return largest;
}

class PlainEncoderDecoder : public testing::TestWithParam<std::string>
{
};

INSTANTIATE_TEST_SUITE_P(
  , PlainEncoderDecoder, testing::Values("t5", "t5-v1_1", "bart", "marian"), PairName);

/// Other texts than those of the original code; those of T5 are longer than the longest distance
/// with a bias of its own, and than a block of queries.
TEST_P(PlainEncoderDecoder, EqualsLoopsInDoublePrecision)
{
  const bool isT5 = this->GetParam().substr(0, 2) == "t5";
  const Transformer model = Transformer::Read(PairOracle::Folder(this->GetParam()));
  TransformerInput input;
  input.source = { SomeTokens(isT5 ? 150 : 24, 5), SomeTokens(1, 3), SomeTokens(7, 11) };
  input.tokens = { SomeTokens(isT5 ? 140 : 24, 2), SomeTokens(9, 1), SomeTokens(1, 4) };
  const Recording found = RecordTransformer(model, input, Everything());
  PlainPair plain(this->GetParam());
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const PlainPair::Result expected = plain.Run(input.source[s], input.tokens[s]);
    const std::int64_t target = found.sequenceOffsets[s];
    const std::int64_t source = found.encoder->sequenceOffsets[s];
    ASSERT_EQ(found.residual.size(), expected.decoder.size());
    ASSERT_EQ(found.encoder->residual.size(), expected.encoder.size());
    for (std::size_t l = 0; l < expected.encoder.size(); ++l)
    {
      EXPECT_LE(
        Difference(found.encoder->residual[l], source, expected.encoder[l]), PairStreamTolerance);
    }
    for (std::size_t l = 0; l < expected.decoder.size(); ++l)
    {
      EXPECT_LE(Difference(found.residual[l], target, expected.decoder[l]), PairStreamTolerance);
    }
    EXPECT_LE(Difference(found.logits, target, expected.logits), PairStreamTolerance);
    const auto sequence = static_cast<std::int64_t>(s);
    const std::int64_t length = found.cross->SequenceLength(sequence);
    const auto keys = static_cast<std::int64_t>(input.source[s].size());
    for (std::size_t h = 0; h < expected.crossWeights.size(); ++h)
    {
      std::vector<float> weights(length * length);
      EvaluateAttention(*found.cross, sequence, 0, static_cast<std::int64_t>(h),
        AttentionQuantity::Weights, 0, length, weights.data());
      double largest = 0;
      for (std::int64_t q = 0; q < length; ++q)
      {
        for (std::int64_t k = 0; k < length; ++k)
        {
          const double weight = q < keys || k >= keys ? 0 : expected.crossWeights[h](q - keys, k);
          Raise(largest, static_cast<double>(weights[q * length + k]) - weight);
        }
      }
      EXPECT_LE(largest, PairTolerance) << "sequence " << s << ", head " << h;
    }
  }
}

/// A sequence alone gives the same bytes as among others, whatever shares its products.
TEST_P(PlainEncoderDecoder, SequencesDoNotDependOnEachOther)
{
  const Transformer model = Transformer::Read(PairOracle::Folder(this->GetParam()));
  TransformerInput all;
  all.source = { SomeTokens(5, 5), SomeTokens(23, 3), SomeTokens(16, 11) };
  all.tokens = { SomeTokens(13, 2), SomeTokens(3, 1), SomeTokens(22, 4) };
  const Recording found = RecordTransformer(model, all, Everything());
  for (std::size_t s = 0; s < all.tokens.size(); ++s)
  {
    TransformerInput one;
    one.source = { all.source[s] };
    one.tokens = { all.tokens[s] };
    const Recording alone = RecordTransformer(model, one, Everything());
    for (const AttentionKind kind :
      { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
    {
      const std::vector<SharedMatrix> together = TokenMatrices(PartOf(found, kind));
      const std::vector<SharedMatrix> expected = TokenMatrices(PartOf(alone, kind));
      const std::int64_t first = PartOf(found, kind).sequenceOffsets[s];
      ASSERT_EQ(together.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
      {
        EXPECT_EQ(
          std::memcmp(together[i].Row(first), expected[i].Row(0), 4 * expected[i].Count()), 0);
      }
    }
  }
}

}
