// Also tests: RecordedModel

#include "AttentionTokens.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "TokenCounts.h"
#include "TransformerOracle.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ExpectClose;
using atlas::test::LargestMagnitude;
using atlas::test::MessageOf;
using atlas::test::TransformerOracle;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

/// Of values, relative to the largest magnitude of their array
/// (Testing/Oracle/analysis/README.md).
constexpr double Tolerance = 1e-5;

constexpr std::int64_t LayerCount = 2;
constexpr std::int64_t HeadCount = 4;

struct Vector
{
  HeadVector vector;
  std::string name;
};

const std::vector<Vector>& Vectors()
{
  static const std::vector<Vector> vectors = { { HeadVector::Query, "q" }, { HeadVector::Key, "k" },
    { HeadVector::Value, "v" }, { HeadVector::Output, "z" }, { HeadVector::QueryKey, "qk" },
    { HeadVector::DotProduct, "dp" } };
  return vectors;
}

/// A model, a reading and its name in the oracle.
struct Case
{
  std::string model;
  TokenReading reading;
  std::string combination;
};

Transformer ReadModel(const std::string& name)
{
  return Transformer::Read(TransformerOracle::Folder(name));
}

Recording Record(const Transformer& model, const TransformerInput& input)
{
  return RecordTransformer(model, input, {}).value();
}

Recording Record(const std::string& name)
{
  return Record(ReadModel(name), TransformerOracle(name).Input());
}

/// The attention tokens of a small model as an independent program found them.
class OfTokens : public testing::TestWithParam<Case>
{
public:
  static std::string Name(const testing::TestParamInfo<Case>& info)
  {
    return info.param.model == "gpt2" ? "gpt2_" + info.param.combination
                                      : "attn_only_" + info.param.combination;
  }

protected:
  SafetensorsFile Expected{ std::filesystem::path(ATLAS_ORACLE_DIR) / "analysis" /
                            (GetParam().model + ".tokens.safetensors") };
  Transformer Model = ReadModel(GetParam().model);
  std::vector<std::int64_t> Ids = this->Expected.GetTensors().at("input_ids").ToInteger();
  std::int64_t Length = this->Expected.GetTensors().at("input_ids").shape[1];
  Recording Recorded = Record(this->Model, this->Input());
  std::vector<HeadTokens> Found = this->Find();

  std::string Prefix(const std::string& vector) const
  {
    return "tokens." + GetParam().combination + "." + vector + ".";
  }
  std::vector<std::int64_t> Integers(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name).ToInteger();
  }

  TransformerInput Input() const
  {
    TransformerInput input;
    for (auto begin = this->Ids.begin(); begin != this->Ids.end(); begin += this->Length)
    {
      input.tokens.emplace_back(begin, begin + this->Length);
    }
    return input;
  }

  AttentionTokenOptions Options() const
  {
    AttentionTokenOptions options;
    options.reading = GetParam().reading;
    options.top = 10;
    options.vectors.clear();
    for (const Vector& vector : Vectors())
    {
      if (vector.vector != HeadVector::DotProduct || options.reading == TokenReading::PublishedCode)
      {
        options.vectors.push_back(vector.vector);
      }
    }
    return options;
  }

  std::vector<HeadTokens> Find() const
  {
    return FindAttentionTokens(this->Recorded, this->Model, this->Options()).value();
  }

  /// Calls check(tokens, vector, index of the layer, sequence and head in the oracle's arrays).
  template<class Check>
  void ForHeads(const Check& check) const
  {
    for (const HeadTokens& tokens : this->Found)
    {
      const std::int64_t sequences = this->Recorded.SequenceCount();
      check(tokens, Vectors()[static_cast<std::size_t>(tokens.vector)].name,
        (tokens.layer * sequences + tokens.sequence) * HeadCount + tokens.head);
    }
  }

  std::size_t VectorsIn(const HeadTokens& tokens) const
  {
    return static_cast<std::size_t>(
      IsOfCells(tokens.vector) ? this->Length * this->Length : this->Length);
  }

  /// The place of vector number i of a head in an array [..., T] or [..., T, T].
  std::size_t PlaceOf(const HeadTokens& tokens, std::size_t i) const
  {
    if (!IsOfCells(tokens.vector))
    {
      return i;
    }
    std::size_t query = 0;
    for (; (query + 1) * (query + 2) / 2 <= i; ++query)
    {
    }
    return query * static_cast<std::size_t>(this->Length) + i - query * (query + 1) / 2;
  }
};

/// Values within the tolerance, and ids where neighboring values differ by more.
TEST_P(OfTokens, LargestLogitsAreExpected)
{
  std::map<std::string, double> errors;
  std::size_t compared = 0;
  this->ForHeads(
    [&](const HeadTokens& tokens, const std::string& vector, std::int64_t place)
    {
      const TensorView& view = this->Expected.GetTensors().at(this->Prefix(vector) + "values");
      const std::vector<double> values = view.ToDouble();
      const std::vector<std::int64_t> ids = this->Integers(this->Prefix(vector) + "ids");
      const auto top = static_cast<std::size_t>(view.shape.back());
      const double scale = LargestMagnitude(values);
      const std::size_t first = static_cast<std::size_t>(place) * this->VectorsIn(tokens);
      for (std::size_t i = 0; i < tokens.Count(); ++i)
      {
        const std::size_t row = (first + this->PlaceOf(tokens, i)) * top;
        for (std::size_t k = 0; k < top; ++k)
        {
          const TokenLogit& token = (&tokens.Best(i))[k];
          const double error = std::abs(static_cast<double>(token.logit) - values[row + k]) / scale;
          errors[vector] = std::max(errors[vector], error);
          const bool isClose =
            (k > 0 && values[row + k - 1] - values[row + k] <= 2 * Tolerance * scale) ||
            k + 1 == top || values[row + k] - values[row + k + 1] <= 2 * Tolerance * scale;
          if (!isClose || (top == 1 && k == 0))
          {
            ASSERT_EQ(token.id, ids[row + k]) << vector << ", row " << row << ", rank " << k;
            ++compared;
          }
        }
      }
    });
  for (const auto& [vector, error] : errors)
  {
    EXPECT_LE(error, Tolerance) << vector;
    testing::Test::RecordProperty(this->Prefix(vector) + "values", testing::PrintToString(error));
  }
  EXPECT_GT(compared, 5000U);
}

TEST_P(OfTokens, CountsAreExpected)
{
  const std::int64_t vocabulary = this->Model.GetConfig().vocabulary;
  const std::vector<TokenCount> counts = CountTokens(this->Found);
  for (const HeadVector vector : this->Options().vectors)
  {
    const std::string& name = Vectors()[static_cast<std::size_t>(vector)].name;
    std::vector<std::int64_t> count(static_cast<std::size_t>(8 * vocabulary));
    std::vector<std::int64_t> positions(count.size());
    std::vector<std::int64_t> ranks(count.size());
    for (const TokenCount& token : counts)
    {
      if (token.vector == vector)
      {
        const auto place =
          static_cast<std::size_t>((token.layer * HeadCount + token.head) * vocabulary + token.id);
        count[place] = token.count;
        positions[place] = token.positions;
        ranks[place] = token.rank;
      }
    }
    EXPECT_EQ(count, this->Integers(this->Prefix(name) + "count")) << name;
    EXPECT_EQ(ranks, this->Integers(this->Prefix(name) + "rank")) << name;
    const std::string positionsName = this->Prefix(name) + "count_positions";
    if (this->Expected.GetTensors().count(positionsName) != 0)
    {
      EXPECT_EQ(positions, this->Integers(positionsName)) << name;
    }
  }
}

TEST_P(OfTokens, UniqueTokensAreExpected)
{
  const std::vector<UniqueCount> unique = CountUnique(CountTokens(this->Found));
  for (const HeadVector vector : this->Options().vectors)
  {
    const std::string& name = Vectors()[static_cast<std::size_t>(vector)].name;
    std::vector<std::int64_t> ofHeads;
    std::vector<std::int64_t> ofLayers;
    for (const UniqueCount& count : unique)
    {
      if (count.vector == vector)
      {
        (count.head < 0 ? ofLayers : ofHeads).push_back(count.unique);
      }
    }
    EXPECT_EQ(ofHeads, this->Integers(this->Prefix(name) + "unique")) << name;
    EXPECT_EQ(ofLayers, this->Integers(this->Prefix(name) + "unique_layer")) << name;
  }
}

TEST_P(OfTokens, SharedTokensAreExpected)
{
  for (const HeadVector vector : this->Options().vectors)
  {
    const std::string& name = Vectors()[static_cast<std::size_t>(vector)].name;
    std::vector<std::vector<std::int32_t>> ofHead(LayerCount * HeadCount);
    for (const TokenCount& token : CountTokens(this->Found))
    {
      if (token.vector == vector)
      {
        ofHead[static_cast<std::size_t>(token.layer * HeadCount + token.head)].push_back(token.id);
      }
    }
    std::vector<std::int64_t> shared;
    for (std::vector<std::int32_t>& ids : ofHead)
    {
      std::sort(ids.begin(), ids.end());
    }
    for (const std::vector<std::int32_t>& first : ofHead)
    {
      for (const std::vector<std::int32_t>& second : ofHead)
      {
        shared.push_back(static_cast<std::int64_t>(CommonTokens(first, second).size()));
      }
    }
    EXPECT_EQ(shared, this->Integers(this->Prefix(name) + "shared")) << name;
  }
}

TEST_P(OfTokens, DiscoveryIsExpected)
{
  this->ForHeads(
    [&](const HeadTokens& tokens, const std::string& vector, std::int64_t place)
    {
      if (!IsOfCells(tokens.vector))
      {
        return;
      }
      const std::vector<std::int64_t> expected = this->Integers(this->Prefix(vector) + "discovery");
      const std::vector<std::int32_t> found = DiscoveryOf(tokens);
      const std::size_t first = static_cast<std::size_t>(place) * this->VectorsIn(tokens);
      for (std::size_t i = 0; i < found.size(); ++i)
      {
        ASSERT_EQ(found[i], expected[first + this->PlaceOf(tokens, i)]) << vector << " " << i;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Readings, OfTokens,
  testing::Values(Case{ "gpt2", TokenReading::Plain, "plain" },
    Case{ "gpt2", TokenReading::Refactored, "refactored" },
    Case{ "gpt2", TokenReading::PublishedCode, "code" },
    Case{ "attn-only", TokenReading::Plain, "plain" },
    Case{ "attn-only", TokenReading::Refactored, "refactored" },
    Case{ "attn-only", TokenReading::PublishedCode, "code" }),
  OfTokens::Name);

}
