#include "Transformer.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "RecordedAttention.h"
#include "TransformerOracle.h"

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ExpectClose;
using atlas::test::MessageOf;
using atlas::test::Oracle;
using atlas::test::TransformerOracle;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace
{

constexpr double Tolerance = 1e-4;
constexpr double StreamTolerance = 5e-4; ///< of hidden states and logits

RecordOptions Everything()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  return options;
}

/// Rows of a matrix as one list.
std::vector<float> Rows(const SharedMatrix& matrix, std::int64_t first, std::int64_t count)
{
  return { matrix.Row(first), matrix.Row(first + count) };
}

/// The first `length` rows of an expected matrix [T, columns] that begins at `offset`.
std::vector<double> Part(
  const std::vector<double>& values, std::int64_t offset, std::int64_t length, std::int64_t columns)
{
  const auto begin = values.begin() + offset;
  return { begin, begin + length * columns };
}

/// The first `length` rows and columns of an expected matrix [T, T] that begins at `offset`.
std::vector<double> Corner(
  const std::vector<double>& values, std::int64_t offset, std::int64_t length, std::int64_t stride)
{
  std::vector<double> corner;
  for (std::int64_t row = 0; row < length; ++row)
  {
    const auto begin = values.begin() + offset + row * stride;
    corner.insert(corner.end(), begin, begin + length);
  }
  return corner;
}

class OracleTransformer : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    if (!Oracle::IsPresent())
    {
      GTEST_SKIP() << Oracle::AbsenceMessage();
    }
    this->Expected.emplace(this->GetParam());
    this->Model.emplace(Transformer::Read(this->Expected->Path()));
  }

  Recording RunAll(RecordOptions options = Everything()) const
  {
    options.logits = this->Model->HasLogits();
    return RecordTransformer(*this->Model, this->Expected->Input(), options).value();
  }

  std::optional<TransformerOracle> Expected;
  std::optional<Transformer> Model;
};

INSTANTIATE_TEST_SUITE_P(, OracleTransformer,
  testing::Values("gpt2", "bert", "vit", "bloom", "llama", "attn-only", "attn-only-shortformer"),
  atlas::test::OracleTest::Name);

TEST_P(OracleTransformer, QueriesKeysValuesAndOutputsOfEachHead)
{
  const Recording recording = this->RunAll();
  CheckRecording(recording, "recording");
  ASSERT_EQ(recording.layers.size(), 2U);
  for (const RecordedLayer& layer : recording.layers)
  {
    ASSERT_EQ(layer.heads.size(), 4U);
    for (std::int64_t h = 0; h < 4; ++h)
    {
      const RecordedHead& head = layer.heads[static_cast<std::size_t>(h)];
      for (const auto& [name, matrix] :
        { std::pair("query", &head.query), std::pair("key", &head.key),
          std::pair("value", &head.value), std::pair("head_output", &head.output) })
      {
        const std::string quantity = "layer." + std::to_string(layer.index) + "." + name;
        const std::int64_t padded = this->Expected->Get(quantity).shape[2];
        for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
        {
          const std::int64_t length = recording.SequenceLength(s);
          const std::int64_t first = recording.sequenceOffsets[static_cast<std::size_t>(s)];
          ExpectClose(quantity, Rows(*matrix, first, length),
            Part(this->Expected->Values(quantity, s), h * padded * matrix->columns, length,
              matrix->columns),
            Tolerance);
        }
      }
    }
  }
}

TEST_P(OracleTransformer, AttentionIsRecomputed)
{
  const Recording recording = this->RunAll();
  for (const auto& [name, quantity] : { std::pair("scores", AttentionQuantity::Scores),
         std::pair("attention", AttentionQuantity::Weights) })
  {
    for (std::int64_t l = 0; l < 2; ++l)
    {
      const std::string expected = "layer." + std::to_string(l) + "." + name;
      const std::int64_t padded = this->Expected->Get(expected).shape[3];
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        const std::int64_t length = recording.SequenceLength(s);
        std::vector<float> found(static_cast<std::size_t>(length * length));
        for (std::int64_t h = 0; h < 4; ++h)
        {
          // In blocks of 7 queries.
          for (std::int64_t q = 0; q < length; q += 7)
          {
            EvaluateAttention(
              recording, s, l, h, quantity, q, std::min(q + 7, length), found.data() + q * length);
          }
          ExpectClose(expected, found,
            Corner(this->Expected->Values(expected, s), h * padded * padded, length, padded),
            Tolerance);
        }
      }
    }
  }
}

TEST_P(OracleTransformer, ResidualAndLogits)
{
  const Recording recording = this->RunAll();
  ASSERT_EQ(recording.residual.size(), 3U);
  std::vector<std::pair<std::string, SharedMatrix>> quantities = { { "hidden.0",
                                                                     recording.residual[0] },
    { "hidden.1", recording.residual[1] }, { "hidden.2", recording.residual[2] } };
  EXPECT_EQ(this->Expected->Has("logits"), recording.logits.IsRecorded());
  if (recording.logits.IsRecorded())
  {
    quantities.emplace_back("logits", recording.logits);
  }
  for (const auto& [name, matrix] : quantities)
  {
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      const std::int64_t length = recording.SequenceLength(s);
      const std::int64_t first = recording.sequenceOffsets[static_cast<std::size_t>(s)];
      ExpectClose(name, Rows(matrix, first, length),
        Part(this->Expected->Values(name, s), 0, length, matrix.columns), StreamTolerance);
    }
  }
}

}
