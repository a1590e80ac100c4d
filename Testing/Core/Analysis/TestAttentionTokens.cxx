#include "Analysis/AttentionTokens.h"

#include "Analysis/TokenCounts.h"
#include "Base/Error.h"
#include "ErrorMessage.h"
#include "OracleFile.h"
#include "TestName.h"
#include "TransformerOracle.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

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

/// A model, and a reading by its name in the oracle.
using Case = std::tuple<std::string, std::string>;

Transformer ReadModel(const std::string& name)
{
  return Transformer::Read(TransformerOracle::Folder(name));
}

Recording Record(const Transformer& model, const TransformerInput& input)
{
  return RecordTransformer(model, input, {});
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
    return TestName(std::get<0>(info.param) + "_" + std::get<1>(info.param));
  }

protected:
  OracleFile Expected{ "analysis/" + std::get<0>(GetParam()) + ".tokens.safetensors" };
  Transformer Model = ReadModel(std::get<0>(GetParam()));
  std::vector<std::int64_t> Ids = this->Expected.Integers("input_ids");
  std::int64_t Length = this->Expected.Tensors().at("input_ids").shape[1];
  Recording Recorded = Record(this->Model, this->Input());
  std::vector<HeadTokens> Found = this->Find();

  std::string Prefix(const std::string& vector) const
  {
    return "tokens." + std::get<1>(GetParam()) + "." + vector + ".";
  }
  std::vector<std::int64_t> Integers(const std::string& name) const
  {
    return this->Expected.Integers(name);
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
    options.reading = std::map<std::string, TokenReading>{
      { "plain", TokenReading::Plain }, { "refactored", TokenReading::Refactored },
      { "code", TokenReading::PublishedCode }
    }.at(std::get<1>(GetParam()));
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
    return FindAttentionTokens(this->Recorded, this->Model, this->Options());
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
    return IsOfCells(tokens.vector) ? this->Length * this->Length : this->Length;
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
      const TensorView& view = this->Expected.Tensors().at(this->Prefix(vector) + "values");
      const std::vector<double> values = view.ToDouble();
      const std::vector<std::int64_t> ids = this->Integers(this->Prefix(vector) + "ids");
      const std::size_t top = view.shape.back();
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
    SCOPED_TRACE(name);
    const auto expected = [&](const char* quantity)
    { return this->Integers(this->Prefix(name) + quantity); };
    std::vector<std::int64_t> count(8 * vocabulary);
    std::vector<std::int64_t> positions(count.size());
    std::vector<std::int64_t> ranks(count.size());
    std::vector<std::vector<std::int32_t>> ofHead(LayerCount * HeadCount);
    for (const TokenCount& token : counts)
    {
      if (token.vector == vector)
      {
        const std::size_t head = token.layer * HeadCount + token.head;
        const std::size_t place = head * vocabulary + token.id;
        count[place] = token.count;
        positions[place] = token.positions;
        ranks[place] = token.rank;
        ofHead[head].push_back(token.id);
      }
    }
    EXPECT_EQ(count, expected("count"));
    EXPECT_EQ(ranks, expected("rank"));
    if (this->Expected.Has(this->Prefix(name) + "count_positions"))
    {
      EXPECT_EQ(positions, expected("count_positions"));
    }
    std::vector<std::int64_t> unique;
    std::vector<std::int64_t> ofLayers;
    for (const UniqueCount& one : CountUnique(counts))
    {
      if (one.vector == vector)
      {
        (one.head < 0 ? ofLayers : unique).push_back(one.unique);
      }
    }
    EXPECT_EQ(unique, expected("unique"));
    EXPECT_EQ(ofLayers, expected("unique_layer"));
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
    EXPECT_EQ(shared, expected("shared"));
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
  testing::Combine(
    testing::Values("gpt2", "attn-only"), testing::Values("plain", "refactored", "code")),
  OfTokens::Name);

std::vector<HeadTokens> Find(const std::string& name, const AttentionTokenOptions& options = {})
{
  return FindAttentionTokens(Record(name), ReadModel(name), options);
}

/// The same numbers from the definition, one vector at a time, for models of other architectures.
using OfModels = testing::TestWithParam<std::string>;

TEST_P(OfModels, PlainTokensFollowTheDefinition)
{
  const Transformer model = ReadModel(GetParam());
  const Recording recording = Record(GetParam());
  AttentionTokenOptions options;
  options.vectors = { HeadVector::QueryKey, HeadVector::Value };
  options.layer = 1;
  options.head = 3;
  const std::vector<HeadTokens> found = FindAttentionTokens(recording, model, options);
  ASSERT_EQ(found.size(), 2U * static_cast<std::size_t>(recording.SequenceCount()));
  const ProcessedWeights weights(model, WeightSteps::TransformerLens);
  const ProcessedHead head = weights.Attention(1).heads[3];
  const DoubleMatrix projection =
    head.output * weights.UnembeddingColumns(0, weights.OutputVocabulary()).transpose();
  const RecordedHead& recorded = recording.layers[1].heads[3];
  const auto row = [&](const SharedMatrix& matrix, std::int64_t i)
  {
    return Eigen::RowVectorXd(
      Eigen::Map<const Eigen::RowVectorXf>(matrix.Row(i), matrix.columns).cast<double>());
  };
  const auto expect = [&](const Eigen::RowVectorXd& vector, const TokenLogit& token)
  {
    const Eigen::RowVectorXd logits = vector * projection;
    Eigen::Index largest = 0;
    const double logit = logits.maxCoeff(&largest);
    EXPECT_NEAR(token.logit, logit, Tolerance * logits.cwiseAbs().maxCoeff());
    EXPECT_EQ(token.id, largest);
  };
  const std::int64_t first = recording.sequenceOffsets[1];
  for (std::int64_t i = 0; i < recording.SequenceLength(1); ++i)
  {
    expect(row(recorded.value, first + i) - head.foldedBias, found[3].Best(i));
    for (std::int64_t j = 0; j <= i; ++j)
    {
      expect(row(recorded.query, first + i).cwiseProduct(row(recorded.key, first + j)),
        found[2].Best(i * (i + 1) / 2 + j));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OfModels, testing::Values("gpt2", "bloom", "llama"),
  [](const auto& model) { return model.param; });

bool SameTokens(const std::vector<HeadTokens>& first, const std::vector<HeadTokens>& second)
{
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
    [](const HeadTokens& a, const HeadTokens& b)
    {
      return a.layer == b.layer && a.head == b.head && a.sequence == b.sequence &&
             a.vector == b.vector &&
             std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end(),
               [](const TokenLogit& x, const TokenLogit& y)
               { return x.id == y.id && x.logit == y.logit; });
    });
}

TEST(AttentionTokens, AreTheSameOnAnyNumberOfThreads)
{
  AttentionTokenOptions options;
  options.threads = 1;
  options.top = 3;
  options.vectors = { HeadVector::QueryKey, HeadVector::Output };
  const std::vector<HeadTokens> one = Find("gpt2", options);
  options.threads = 4;
  EXPECT_TRUE(SameTokens(one, Find("gpt2", options)));
}

/// The vocabulary of 211 tokens is one block, so that the last two parts are empty.
TEST(AttentionTokens, OfPartsOfTheVocabularyJoin)
{
  AttentionTokenOptions options;
  options.top = 2;
  const std::vector<HeadTokens> whole = Find("gpt2", options);
  options.parts = 3;
  std::vector<HeadTokens> joined = Find("gpt2", options);
  for (options.part = 1; options.part < 3; ++options.part)
  {
    std::vector<TokenLogit> others;
    for (const HeadTokens& tokens : Find("gpt2", options))
    {
      others.insert(others.end(), tokens.tokens.begin(), tokens.tokens.end());
    }
    JoinTokens(joined, others.data());
  }
  EXPECT_TRUE(SameTokens(whole, joined));
}

/// The beginning of a sequence has the tokens that it has in the whole, as attention is causal.
TEST(AttentionTokens, OfTheBeginningAreThoseOfTheWhole)
{
  AttentionTokenOptions options;
  options.vectors = { HeadVector::QueryKey, HeadVector::Output };
  options.sequence = 1;
  const std::vector<HeadTokens> whole = Find("gpt2", options);
  options.tokens = 5;
  const std::vector<HeadTokens> beginning = Find("gpt2", options);
  ASSERT_EQ(beginning.size(), whole.size());
  for (std::size_t i = 0; i < beginning.size(); ++i)
  {
    ASSERT_EQ(beginning[i].Count(), beginning[i].vector == HeadVector::Output ? 5U : 15U);
    for (std::size_t k = 0; k < beginning[i].Count(); ++k)
    {
      EXPECT_EQ(beginning[i].Best(k).id, whole[i].Best(k).id);
    }
  }
}

TEST(AttentionTokens, OneTokenHasOneCell)
{
  const Transformer model = ReadModel("gpt2");
  TransformerInput input;
  input.tokens = { { 7 } };
  const std::vector<HeadTokens> found = FindAttentionTokens(Record(model, input), model, {});
  ASSERT_EQ(found.size(), 8U);
  EXPECT_EQ(found[0].Count(), 1U);
  EXPECT_EQ(DiscoveryOf(found[0]), std::vector<std::int32_t>{ 0 });
}

/// More tokens than the vocabulary has are all of them, by falling logit.
TEST(AttentionTokens, TopEndsWithTheVocabulary)
{
  AttentionTokenOptions options;
  options.top = 1000;
  options.layer = 0;
  options.head = 0;
  const std::vector<HeadTokens> found = Find("attn-only", options);
  EXPECT_EQ(found[0].top, 101);
  std::vector<std::int32_t> ids;
  for (std::int64_t k = 0; k < found[0].top; ++k)
  {
    const TokenLogit* tokens = &found[0].Best(4);
    ids.push_back(tokens[k].id);
    EXPECT_TRUE(k == 0 || tokens[k - 1].IsBefore(tokens[k]));
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()) - ids.begin(), 101);
}

TEST(AttentionTokens, ReportProgressAndStop)
{
  const Transformer model = ReadModel("gpt2");
  const Recording recording = Record("gpt2");
  AttentionTokenOptions options;
  options.threads = 1;
  double last = 0;
  options.progress = [&](double done) { last = done; };
  FindAttentionTokens(recording, model, options);
  EXPECT_EQ(last, 1);
  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(FindAttentionTokens(recording, model, options), Canceled);
}

std::string ErrorOf(
  const Recording& recording, const std::string& model, const AttentionTokenOptions& options = {})
{
  return MessageOf<Error>([&] { FindAttentionTokens(recording, ReadModel(model), options); });
}

TEST(AttentionTokens, RefuseModelsThatDoNotFit)
{
  EXPECT_THAT(ErrorOf(Record("bert"), "bert"),
    AllOf(HasSubstr("causal language model"), HasSubstr("found bert")));
  EXPECT_THAT(ErrorOf(Record("vit"), "vit"), HasSubstr("found vit, whose attention"));
  AttentionTokenOptions options;
  options.reading = TokenReading::Refactored;
  EXPECT_THAT(ErrorOf(Record("llama"), "llama", options), HasSubstr("not rotated"));
  // Another model than was recorded.
  EXPECT_THAT(ErrorOf(Record("gpt2"), "bloom"), HasSubstr("Attention Tokens needs the model"));
  Recording recording = Record("gpt2");
  recording.layerCount = 3;
  EXPECT_THAT(ErrorOf(recording, "gpt2"), HasSubstr("found 3 layers"));
  recording = Record("gpt2");
  recording.tokens.id[3] = 211;
  EXPECT_THAT(ErrorOf(recording, "gpt2"), HasSubstr("token ids from 0 to 210, found 211"));
  // The same sizes, but other weights.
  EXPECT_THAT(ErrorOf(Record("attn-only"), "gpt2"), HasSubstr("queries that the model has"));
}

TEST(AttentionTokens, RefuseOptionsThatDoNotFit)
{
  const Recording recording = Record("gpt2");
  const auto with = [&](const auto& change, const std::string& message)
  {
    AttentionTokenOptions options;
    change(options);
    EXPECT_THAT(ErrorOf(recording, "gpt2", options), HasSubstr(message));
  };
  using Options = AttentionTokenOptions;
  with([](Options& options) { options.vectors.clear(); }, "Vectors: expected at least one of");
  with([](Options& options) { options.vectors = { HeadVector::DotProduct }; },
    "DotProduct is defined for the reading PublishedCode alone");
  with([](Options& options) { options.vectors = { HeadVector::Key, HeadVector::Key }; },
    "Vectors: expected each once, found Key more than once");
  with([](Options& options) { options.top = 0; }, "Top: expected at least 1, found 0");
  with([](Options& options) { options.tokens = -1; }, "MaximumTokens: expected at least 0");
  with([](Options& options) { options.head = 4; }, "or 0 to 3, found 4");
  with([](Options& options) { options.sequence = 2; }, "or 0 to 1, found 2");
  with([](Options& options) { options.layer = 2; }, "2");
  Recording without = recording;
  without.layers[1].heads[2].value = {};
  AttentionTokenOptions options;
  options.vectors = { HeadVector::Output };
  EXPECT_THAT(ErrorOf(without, "gpt2", options),
    HasSubstr("the recording has no values of layer 1, head 2; record them"));
}

}
