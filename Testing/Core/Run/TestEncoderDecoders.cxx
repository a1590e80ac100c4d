#include "ActivationPatching.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "GenerateTokens.h"
#include "MappedFile.h"
#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "SameRecording.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

constexpr double PairTolerance = 2e-5;       ///< of scores, attention and head outputs
constexpr double PairStreamTolerance = 2e-4; ///< of hidden states and logits

using Tokens = std::vector<std::vector<std::int64_t>>;

RecordOptions Everything()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

/// Not with std::max, which would lose NaN.
void Raise(double& largest, double difference)
{
  largest = std::abs(difference) <= largest ? largest : std::abs(difference);
}

/// What the original code computed with a model that has an encoder; see the README beside it.
class PairOracle
{
public:
  explicit PairOracle(const std::string& name)
    : Expected(Folder(name) / "expected.safetensors")
  {
    this->Input.tokens =
      this->Sequences("decoder_input_ids", this->Targets, "decoder_attention_mask");
    if (this->Has("input_features"))
    {
      const TensorView& features = this->Get("input_features");
      this->Input.sounds = features.shape[0];
      this->Input.features.resize(features.Count());
      features.ToFloat(0, features.Count(), this->Input.features.data());
      std::vector<std::int64_t> places(this->Get("encoder.hidden.0").shape[1]);
      std::iota(places.begin(), places.end(), 0);
      this->Sources.assign(features.shape[0], places);
    }
    else
    {
      this->Input.source = this->Sequences("input_ids", this->Sources, "attention_mask");
    }
  }

  static std::filesystem::path Folder(const std::string& name)
  {
    return ModelsOracle("transformers/" + name);
  }

  bool Has(const std::string& name) const { return this->Expected.GetTensors().count(name) != 0; }
  const TensorView& Get(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name);
  }

  TransformerInput Input;
  Tokens Sources; ///< the places of each sequence that are no padding
  Tokens Targets;

private:
  SafetensorsFile Expected;

  Tokens Sequences(const std::string& name, Tokens& places, const std::string& maskName) const
  {
    const TensorView& view = this->Get(name);
    const std::vector<std::int64_t> ids = view.ToInteger();
    const std::vector<std::int64_t> mask = this->Get(maskName).ToInteger();
    Tokens tokens(view.shape[0]);
    places.resize(tokens.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      const std::int64_t s = static_cast<std::int64_t>(i) / view.shape[1];
      if (mask[i] != 0)
      {
        tokens[s].push_back(ids[i]);
        places[s].push_back(static_cast<std::int64_t>(i) % view.shape[1]);
      }
    }
    return tokens;
  }
};

class EncoderDecoderParity : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    this->Expected.emplace(this->GetParam());
    this->Model.emplace(Transformer::Read(PairOracle::Folder(this->GetParam())));
    this->Found = RecordTransformer(*this->Model, this->Expected->Input, Everything());
  }

  /// The row of a part's matrices at place i of the source or the target of sequence s.
  std::int64_t Row(AttentionKind kind, std::int64_t s, std::int64_t i, bool isSource) const
  {
    const Recording& part = PartOf(this->Found, kind);
    const bool isBehind = kind == AttentionKind::Cross && !isSource;
    return part.sequenceOffsets[s] + (isBehind ? part.sourceLengths[s] : 0) + i;
  }

  /// The largest deviation of a matrix [tokens, columns] from the expected [B, H, T, columns] at
  /// head `head`, or [B, T, columns].
  double Deviation(AttentionKind kind, const std::string& quantity, bool isSource,
    const SharedMatrix& found, std::int64_t head) const
  {
    const TensorView& view = this->Expected->Get(quantity);
    const Shape& shape = view.shape;
    EXPECT_EQ(shape.back(), found.columns) << quantity;
    const std::int64_t heads = shape.size() == 4 ? shape[1] : 1;
    const std::int64_t length = shape[shape.size() - 2];
    const Tokens& places = isSource ? this->Expected->Sources : this->Expected->Targets;
    double largest = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      for (std::size_t i = 0; i < places[s].size(); ++i)
      {
        const float* row = found.Row(this->Row(kind, s, static_cast<std::int64_t>(i), isSource));
        const std::int64_t first = ((s * heads + head) * length + places[s][i]) * found.columns;
        for (std::int64_t c = 0; c < found.columns; ++c)
        {
          Raise(
            largest, static_cast<double>(row[c]) - view.At(static_cast<std::uint64_t>(first + c)));
        }
      }
    }
    return largest;
  }

  /// Likewise of scores or weights, as views show them, at the pairs that the mask allows.
  double AttentionDeviation(
    AttentionKind kind, std::size_t l, std::int64_t h, AttentionQuantity quantity) const
  {
    const bool isScores = quantity == AttentionQuantity::Scores;
    const TensorView& view =
      this->Expected->Get(std::string(Name(kind)) + ".layer." + std::to_string(l) +
                          (isScores ? ".scores" : ".attention"));
    const Recording& part = PartOf(this->Found, kind);
    const bool isOfTargets = kind != AttentionKind::Encoder;
    const bool isToSources = kind != AttentionKind::Decoder;
    double largest = 0;
    for (std::int64_t s = 0; s < part.SequenceCount(); ++s)
    {
      const std::int64_t count = part.SequenceLength(s);
      std::vector<float> found(count * count);
      EvaluateAttention(part, s, static_cast<std::int64_t>(l), h, quantity, 0, count, found.data());
      const std::vector<std::int64_t>& queries =
        (isOfTargets ? this->Expected->Targets : this->Expected->Sources)[s];
      const std::vector<std::int64_t>& keys =
        (isToSources ? this->Expected->Sources : this->Expected->Targets)[s];
      const std::int64_t firstQuery = kind == AttentionKind::Cross ? part.sourceLengths[s] : 0;
      for (std::size_t q = 0; q < queries.size(); ++q)
      {
        for (std::size_t k = 0; k < keys.size(); ++k)
        {
          if (isScores && kind == AttentionKind::Decoder && k > q)
          {
            continue;
          }
          const std::int64_t first = (s * view.shape[1] + h) * view.shape[2] + queries[q];
          const auto place = static_cast<std::uint64_t>(first * view.shape[3] + keys[k]);
          const std::int64_t row = firstQuery + static_cast<std::int64_t>(q);
          Raise(largest, static_cast<double>(found[row * count + static_cast<std::int64_t>(k)]) -
                           view.At(place));
        }
      }
    }
    return largest;
  }

  /// Deviations of all layers of a part.
  void Compare(AttentionKind kind, std::map<std::string, double>& deviations) const
  {
    const Recording& part = PartOf(this->Found, kind);
    const auto raise = [&](const std::string& name, double value)
    { Raise(deviations[name], value); };
    const bool isOfSources = kind == AttentionKind::Encoder;
    const bool hasSourceKeys = kind != AttentionKind::Decoder;
    const TransformerConfig& config = this->Model->GetConfig();
    const std::int64_t layers = isOfSources ? config.encoder->layers : config.layers;
    ASSERT_EQ(part.layers.size(), static_cast<std::size_t>(layers));
    for (std::size_t l = 0; l < part.layers.size(); ++l)
    {
      const std::string prefix = std::string(Name(kind)) + ".layer." + std::to_string(l) + ".";
      for (std::int64_t h = 0; h < config.heads; ++h)
      {
        const RecordedHead& head = part.layers[l].heads[h];
        raise("query", this->Deviation(kind, prefix + "query", isOfSources, head.query, h));
        raise("key", this->Deviation(kind, prefix + "key", hasSourceKeys, head.key, h));
        raise("value", this->Deviation(kind, prefix + "value", hasSourceKeys, head.value, h));
        raise(
          "outputs", this->Deviation(kind, prefix + "head_output", isOfSources, head.output, h));
        raise("scores", this->AttentionDeviation(kind, l, h, AttentionQuantity::Scores));
        raise("attention", this->AttentionDeviation(kind, l, h, AttentionQuantity::Weights));
      }
    }
    for (std::size_t l = 0; l < part.residual.size(); ++l)
    {
      raise(
        "hidden", this->Deviation(kind, std::string(Name(kind)) + ".hidden." + std::to_string(l),
                    isOfSources, part.residual[l], 0));
    }
  }

  std::optional<PairOracle> Expected;
  std::optional<Transformer> Model;
  Recording Found;
};

std::string PairName(const testing::TestParamInfo<std::string>& info)
{
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(, EncoderDecoderParity,
  testing::Values(
    "t5", "t5-v1_1", "mt5", "bart", "mbart", "pegasus", "marian", "marian-two", "whisper"),
  PairName);

/// The row of a model in the table of deviations, if Plugin/scripts/parity.py asks for it.
void WritePair(
  const std::string& model, AttentionKind kind, const std::map<std::string, double>& deviations)
{
  const char* folder = std::getenv("ATLAS_PARITY_DIR");
  if (folder == nullptr)
  {
    return;
  }
  const std::string part(Name(kind));
  std::ofstream file(std::filesystem::path(folder) / (model + "_" + part + ".json"));
  file << R"({"model": ")" << model << R"(", "architecture": ")" << part
       << R"(", "file": "safetensors", "dtype": "F32")";
  for (const auto& [quantity, deviation] : deviations)
  {
    file << ", \"" << quantity << "\": " << deviation;
  }
  file << "}\n";
}

TEST_P(EncoderDecoderParity, IsThatOfTheOriginalCode)
{
  CheckRecording(this->Found, "recording");
  for (const AttentionKind kind :
    { AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross })
  {
    std::map<std::string, double> deviations;
    this->Compare(kind, deviations);
    if (kind == AttentionKind::Decoder)
    {
      deviations["logits"] = this->Deviation(kind, "logits", false, this->Found.logits, 0);
    }
    std::ostringstream text;
    for (const auto& [name, deviation] : deviations)
    {
      const bool isStream = name == "hidden" || name == "logits";
      EXPECT_LE(deviation, isStream ? PairStreamTolerance : PairTolerance)
        << Name(kind) << " " << name;
      text << " " << name << " " << deviation;
    }
    std::cout << this->GetParam() << ", " << Name(kind) << ":" << text.str() << "\n";
    WritePair(this->GetParam(), kind, deviations);
  }
}

TEST_P(EncoderDecoderParity, GreedyTokensAreThoseOfTheOriginalCode)
{
  const TensorView& view = this->Expected->Get("greedy");
  const std::vector<std::int64_t> greedy = view.ToInteger();
  const auto count = static_cast<std::size_t>(view.shape[1]);
  TransformerInput input = this->Expected->Input;
  Tokens expected;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const auto first = greedy.begin() + static_cast<std::ptrdiff_t>(s * count);
    EXPECT_EQ(*first, this->Model->GetConfig().decoderStart);
    input.tokens[s] = { *first };
    expected.emplace_back(first + 1, first + static_cast<std::ptrdiff_t>(count));
  }
  GenerationOptions options;
  options.count = static_cast<std::int64_t>(count) - 1;
  EXPECT_EQ(GenerateTokens(*this->Model, input, options), expected);
  options.threads = 3;
  EXPECT_EQ(GenerateTokens(*this->Model, input, options), expected);
}

/// Rows that a part has no quantity at are 0, as its documentation says.
TEST_P(EncoderDecoderParity, CrossAttentionHasQueriesOfTargetsAndKeysOfSources)
{
  const Recording& cross = PartOf(this->Found, AttentionKind::Cross);
  EXPECT_EQ(cross.mask, AttentionMask::Cross);
  for (std::int64_t s = 0; s < cross.SequenceCount(); ++s)
  {
    const auto source = static_cast<std::int64_t>(this->Expected->Sources[s].size());
    const auto target = static_cast<std::int64_t>(this->Expected->Targets[s].size());
    EXPECT_EQ(cross.sourceLengths[s], source);
    ASSERT_EQ(cross.SequenceLength(s), source + target);
    for (std::int64_t i = 0; i < source + target; ++i)
    {
      const std::int64_t row = cross.sequenceOffsets[s] + i;
      EXPECT_EQ(cross.tokens.position[row], i < source ? i : i - source);
      const bool isSource = i < source;
      const bool isSound = this->Expected->Input.sounds > 0;
      EXPECT_EQ(cross.tokens.id[row], !isSource  ? this->Expected->Input.tokens[s][i - source]
                                      : !isSound ? this->Expected->Input.source[s][i]
                                                 : -1);
      const RecordedHead& head = cross.layers[0].heads[1];
      const auto isZero = [row](const SharedMatrix& matrix)
      {
        return std::all_of(matrix.Row(row), matrix.Row(row) + matrix.columns,
          [](float value) { return value == 0; });
      };
      EXPECT_EQ(isZero(head.query), isSource);
      EXPECT_EQ(isZero(head.output), isSource);
      EXPECT_EQ(isZero(head.key), !isSource);
      EXPECT_EQ(isZero(head.value), !isSource);
      EXPECT_EQ(isZero(head.valueNorm), !isSource);
    }
  }
}

/// The norm of value W_O^h of cross attention, from the weights.
TEST_P(EncoderDecoderParity, NormsOfValuesAreThoseOfWhatTheyWrite)
{
  const Recording& cross = PartOf(this->Found, AttentionKind::Cross);
  const LinearTensors& output = this->Model->GetWeights().layers[1].crossOutput;
  const std::vector<double> weights = output.weight.ToDouble(); // [d_model, H d_head]
  const std::int64_t h = 2;
  const RecordedHead& head = cross.layers[1].heads[h];
  for (std::int64_t i = 0; i < cross.sourceLengths[0]; ++i)
  {
    double square = 0;
    for (std::int64_t o = 0; o < output.outputs; ++o)
    {
      double sum = 0;
      for (std::int64_t c = 0; c < head.value.columns; ++c)
      {
        sum += static_cast<double>(head.value.Row(i)[c]) *
               weights[o * output.inputs + h * head.value.columns + c];
      }
      square += sum * sum;
    }
    EXPECT_NEAR(head.valueNorm.Row(i)[0], std::sqrt(square), 1e-4 * (1 + std::sqrt(square)));
  }
}

void ExpectEqualParts(const Recording& found, const Recording& expected)
{
  for (const AttentionKind kind :
    { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
  {
    const std::vector<SharedMatrix> a = TokenMatrices(PartOf(found, kind));
    const std::vector<SharedMatrix> b = TokenMatrices(PartOf(expected, kind));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
    {
      ExpectEqual(a[i], b[i]);
    }
  }
}

TEST_P(EncoderDecoderParity, ResultsDoNotDependOnThreads)
{
  RecordOptions options = Everything();
  options.threads = 3;
  ExpectEqualParts(RecordTransformer(*this->Model, this->Expected->Input, options), this->Found);
}

/// The rows of a range of sequences are those of a run of all; other rows are 0, so that the parts
/// of several processes add up.
TEST_P(EncoderDecoderParity, RangesAddUp)
{
  RecordOptions options = Everything();
  std::vector<Recording> halves;
  for (const SequenceRange range : SplitSequences(*this->Model, this->Expected->Input, 2))
  {
    options.sequences = range;
    halves.push_back(RecordTransformer(*this->Model, this->Expected->Input, options));
  }
  for (const AttentionKind kind :
    { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
  {
    const std::vector<SharedMatrix> a = TokenMatrices(PartOf(halves[0], kind));
    const std::vector<SharedMatrix> b = TokenMatrices(PartOf(halves[1], kind));
    for (std::size_t i = 0; i < a.size(); ++i)
    {
      std::transform(a[i].Row(0), a[i].Row(a[i].rows), b[i].Row(0), a[i].Row(0), std::plus<>());
    }
  }
  ExpectEqualParts(halves[0], this->Found);
}

TEST_P(EncoderDecoderParity, MemoryIsThatOfAllParts)
{
  const auto bytesOf = [](const Recording& recording)
  {
    std::uint64_t bytes = 0;
    for (const AttentionKind kind :
      { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
    {
      for (const SharedMatrix& matrix : TokenMatrices(PartOf(recording, kind)))
      {
        bytes += matrix.Count() * sizeof(float);
      }
    }
    return bytes;
  };
  RecordOptions options = Everything();
  EXPECT_EQ(
    EstimateMemory(*this->Model, this->Expected->Input, options).recording, bytesOf(this->Found));
  options = {};
  options.layers = { 1 };
  options.values = false;
  EXPECT_EQ(EstimateMemory(*this->Model, this->Expected->Input, options).recording,
    bytesOf(RecordTransformer(*this->Model, this->Expected->Input, options)));
}

/// What the encoder reads, read again in plain double precision: T5 and BART written anew, from
/// their formulas. It takes weights by their names in the file, and settings from config.json.
class PlainPair
{
public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  struct Result
  {
    std::vector<Rows> encoder; ///< hidden states
    std::vector<Rows> decoder;
    std::vector<Rows> crossWeights; ///< of the first layer, per head
    Rows logits;
  };

  explicit PlainPair(const std::string& name)
    : Config(nlohmann::json::parse(ReadFile(PairOracle::Folder(name) / "config.json")))
    , File(PairOracle::Folder(name) / "model.safetensors")
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
  SafetensorsFile File;
  bool IsT5;
  bool IsMarian;
  Eigen::Index D;
  Eigen::Index Heads;
  Eigen::Index Head;

  bool Has(const std::string& name) const { return this->File.GetTensors().count(name) != 0; }
  std::string Shared() const { return this->IsT5 ? "shared.weight" : "model.shared.weight"; }

  /// A matrix; a vector as one row.
  Rows Get(const std::string& name) const
  {
    const TensorView& view = this->File.GetTensors().at(name);
    const std::vector<double> values = view.ToDouble();
    const Eigen::Index rows = view.shape.size() == 1 ? 1 : view.shape[0];
    return Eigen::Map<const Rows>(
      values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
  }

  Rows Linear(const Rows& x, const std::string& name) const
  {
    Rows y = x * this->Get(name + ".weight").transpose();
    if (this->Has(name + ".bias"))
    {
      y.rowwise() += this->Get(name + ".bias").row(0);
    }
    return y;
  }

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

/// Tokens that look random.
std::vector<std::int64_t> SomeTokens(std::int64_t count, std::int64_t seed)
{
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
  {
    tokens.push_back((seed + 31 * i + 7 * i * i) % 83);
  }
  return tokens;
}

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

/// The row of the table of biases for each distance, in both stacks and for the sizes of the
/// published models.
TEST(RelativePositions, BucketsAreThoseOfTheOriginalCode)
{
  for (const std::string name : { "t5", "t5-v1_1" })
  {
    const PairOracle oracle(name);
    const TransformerConfig decoder =
      ReadTransformerConfig(PairOracle::Folder(name) / "config.json");
    for (const TransformerConfig* config : { decoder.encoder.get(), &decoder })
    {
      const std::string stack = config == &decoder ? "decoder" : "encoder";
      const TensorView& view = oracle.Get(stack + ".position_buckets");
      const std::vector<std::int64_t> expected = view.ToInteger();
      for (std::int64_t q = 0; q < view.shape[0]; ++q)
      {
        for (std::int64_t k = 0; k < view.shape[1]; ++k)
        {
          EXPECT_EQ(RelativeBucket(*config, k - q), expected[q * view.shape[1] + k]);
        }
      }
    }
  }
  const PairOracle oracle("t5");
  for (const bool isCausal : { false, true })
  {
    TransformerConfig config;
    config.mask = isCausal ? AttentionMask::Causal : AttentionMask::Bidirectional;
    config.relativeBuckets = 32;
    config.relativeDistance = 128;
    const std::vector<std::int64_t> expected =
      oracle.Get(isCausal ? "buckets.causal" : "buckets.bidirectional").ToInteger();
    for (std::int64_t distance = -200; distance <= 200; ++distance)
    {
      EXPECT_EQ(RelativeBucket(config, distance), expected[distance + 200]) << distance;
    }
  }
}

/// The biases that a recording of T5 keeps are those of all pairs.
TEST(RelativePositions, RecordedBiasesAreThoseOfTheOriginalCode)
{
  for (const std::string name : { "t5", "t5-v1_1" })
  {
    const PairOracle oracle(name);
    const Transformer model = Transformer::Read(PairOracle::Folder(name));
    const Recording found = RecordTransformer(model, oracle.Input, RecordOptions());
    EXPECT_FALSE(found.cross->distanceBias.IsRecorded());
    for (const AttentionKind kind : { AttentionKind::Decoder, AttentionKind::Encoder })
    {
      const SharedMatrix& bias = PartOf(found, kind).distanceBias;
      const std::int64_t reach = 20; // relative_attention_max_distance
      ASSERT_EQ(bias.rows, 4);
      ASSERT_EQ(bias.columns, 2 * reach + 1);
      const TensorView& view = oracle.Get(std::string(Name(kind)) + ".position_bias");
      std::uint64_t i = 0;
      for (std::int64_t h = 0; h < view.shape[0]; ++h)
      {
        for (std::int64_t q = 0; q < view.shape[1]; ++q)
        {
          for (std::int64_t k = 0; k < view.shape[2]; ++k, ++i)
          {
            EXPECT_EQ(bias.Row(h)[reach + k - q], static_cast<float>(view.At(i)));
          }
        }
      }
    }
  }
}

/// Layers that the decoder alone has are not recorded of the encoder.
TEST(EncoderDecoder, LayersAreThoseThatEachStackHas)
{
  const PairOracle oracle("t5-v1_1"); // three layers of the decoder, two of the encoder
  const Transformer model = Transformer::Read(PairOracle::Folder("t5-v1_1"));
  RecordOptions options = Everything();
  const Recording all = RecordTransformer(model, oracle.Input, options);
  options.layers = { 1, 2 };
  const Recording found = RecordTransformer(model, oracle.Input, options);
  CheckRecording(found, "recording");
  const auto indices = [](const Recording& recording)
  {
    std::vector<std::int32_t> list;
    for (const RecordedLayer& layer : recording.layers)
    {
      list.push_back(layer.index);
    }
    return list;
  };
  EXPECT_THAT(indices(found), ElementsAre(1, 2));
  EXPECT_THAT(indices(*found.cross), ElementsAre(1, 2));
  EXPECT_THAT(indices(*found.encoder), ElementsAre(1));
  ExpectEqual(found.layers[1].heads[2], all.layers[2].heads[2]);
  ExpectEqual(found.cross->layers[1].heads[2], all.cross->layers[2].heads[2]);
  ExpectEqual(found.encoder->layers[0].heads[2], all.encoder->layers[1].heads[2]);
  ExpectEqual(found.logits, all.logits);
  options.layers = { 2 };
  const Recording last = RecordTransformer(model, oracle.Input, options);
  EXPECT_THAT(indices(*last.encoder), ElementsAre());
  ExpectEqual(last.layers[0].heads[2], all.layers[2].heads[2]);
  options.layers = { 3 };
  EXPECT_THAT(MessageOf<OptionError>([&] { RecordTransformer(model, oracle.Input, options); }),
    HasSubstr("expected layers from 0 to 2, found 3"));
}

/// A head of the decoder's own attention that is set to zero writes nothing; the encoder and what
/// comes before it stay the same.
TEST(EncoderDecoder, HeadsOfTheDecoderCanBeSetToZero)
{
  const PairOracle oracle("bart");
  const Transformer model = Transformer::Read(PairOracle::Folder("bart"));
  RecordOptions options = Everything();
  const Recording before = RecordTransformer(model, oracle.Input, options);
  Intervention zero;
  zero.site = { ActivationKind::HeadOutput, 1, 2, AllPositions };
  zero.by = Replacement::Zero;
  options.interventions.list = { zero };
  const Recording after = RecordTransformer(model, oracle.Input, options);
  EXPECT_EQ(after.interventions, "1.2 to zero");
  EXPECT_EQ(after.cross->interventions, "1.2 to zero");
  EXPECT_EQ(after.encoder->interventions, "");
  const SharedMatrix& output = after.layers[1].heads[2].output;
  EXPECT_TRUE(
    std::all_of(output.Row(0), output.Row(output.rows), [](float value) { return value == 0; }));
  ExpectEqual(after.layers[1].heads[1].output, before.layers[1].heads[1].output);
  ExpectEqual(after.encoder->residual.back(), before.encoder->residual.back());
  ExpectEqual(after.cross->layers[0].heads[0], before.cross->layers[0].heads[0]);
  EXPECT_NE(std::memcmp(after.logits.Row(0), before.logits.Row(0), 4 * after.logits.Count()), 0);
  for (const Replacement by : { Replacement::Source, Replacement::MeanOverPrompts })
  {
    options.interventions.list[0].by = by;
    EXPECT_THAT(MessageOf<ModelError>([&] { RecordTransformer(model, oracle.Input, options); }),
      HasSubstr("expected a model without an encoder beside its decoder, found bart"));
  }
}

TEST(EncoderDecoder, ActivationPatchingIsRefused)
{
  const PairOracle oracle("t5");
  const Transformer model = Transformer::Read(PairOracle::Folder("t5"));
  TransformerInput prompt = oracle.Input;
  prompt.tokens.resize(1);
  prompt.source.resize(1);
  EXPECT_EQ(MessageOf<ModelError>([&] { CheckPatching(model, prompt, prompt, PatchingOptions()); }),
    "comparing logits: expected a model without an encoder beside its decoder, found t5.");
}

TEST(EncoderDecoder, MissingSourcesAreNamed)
{
  const PairOracle bart("bart");
  const PairOracle whisper("whisper");
  const auto message = [](const std::string& name, const TransformerInput& input)
  {
    const Transformer model = Transformer::Read(PairOracle::Folder(name));
    return MessageOf<OptionError>([&] { RecordTransformer(model, input, RecordOptions()); });
  };
  TransformerInput input = bart.Input;
  input.source.pop_back();
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found source tokens of 1.");
  input.source.clear();
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found none.");
  input.features = whisper.Input.features;
  input.sounds = 2;
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found log-mel features of 2.");
  EXPECT_EQ(message("whisper", bart.Input),
    "expected log-mel features for each of the 2 sequences, since a model of architecture whisper "
    "has an encoder, found source tokens of 2.");
  input = whisper.Input;
  input.features.pop_back();
  EXPECT_EQ(message("whisper", input),
    "source: expected log-mel features of shape [2, 16, 40], found 1279 numbers.");
  input = bart.Input;
  input.source[1] = {};
  EXPECT_EQ(message("bart", input), "source: sequence 1 is empty, expected at least one token.");
  input.source[1] = { 3, 83 };
  EXPECT_EQ(message("bart", input),
    "source: sequence 1, position 1: expected a token id from 0 to 82, found 83.");
  input.source[1] = SomeTokens(25, 1);
  EXPECT_EQ(message("bart", input),
    "source: sequence 1 has 25 tokens, 1 more than the 24 positions of the model.");
  input = bart.Input;
  input.tokens[0] = {};
  EXPECT_EQ(message("bart", input), "sequence 0 is empty, expected at least one token.");
}

TEST(EncoderDecoder, ModelsWithoutEncodersTakeNoSource)
{
  const Transformer model = Transformer::Read(PairOracle::Folder("qwen3-v5"));
  TransformerInput input;
  input.tokens = { { 1, 2, 3 } };
  input.source = { { 4 } };
  EXPECT_EQ(MessageOf<OptionError>([&] { RecordTransformer(model, input, RecordOptions()); }),
    "expected no source, since a model of architecture qwen3 has no encoder, found source tokens "
    "of "
    "1.");
}

TEST(EncoderDecoder, TextsEndWithThePositionsOfTheDecoder)
{
  const PairOracle oracle("bart");
  const Transformer model = Transformer::Read(PairOracle::Folder("bart"));
  TransformerInput input = oracle.Input;
  input.tokens = { { 2 }, { 2, 3 } };
  GenerationOptions options;
  options.count = 23;
  EXPECT_THAT(MessageOf<OptionError>([&] { GenerateTokens(model, input, options); }),
    HasSubstr("sequence 1 would have 25 tokens, but the model has 24 positions"));
  options.count = 22;
  EXPECT_EQ(GenerateTokens(model, input, options)[0].size(), 22);
}

}
