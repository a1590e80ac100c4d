#include "Recording/RecordingPrefix.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TinyTransformer.h"
#include "TranslatedRecording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class RecordingPrefix : public OnTiny
{
protected:
  Recording Record(const TransformerInput& input) const
  {
    Recording recording = RecordTransformer(this->Model, input, AllQuantities());
    for (const std::int64_t id : recording.tokens.id)
    {
      recording.tokens.text.push_back("token " + std::to_string(id));
    }
    return recording;
  }

  static TransformerInput Cut(TransformerInput input, const std::vector<std::size_t>& lengths)
  {
    for (std::size_t s = 0; s < lengths.size(); ++s)
    {
      input.tokens[s].resize(lengths[s]);
    }
    return input;
  }
};

/// Products of more rows at once may round otherwise, so that values are compared and not bytes.
void ExpectNear(const SharedMatrix& found, const SharedMatrix& expected)
{
  ASSERT_EQ(found.rows, expected.rows);
  ASSERT_EQ(found.columns, expected.columns);
  for (std::size_t i = 0; i < expected.Count(); ++i)
  {
    ASSERT_NEAR(found.values.get()[i], expected.values.get()[i], 2e-4) << i;
  }
}

TEST_F(RecordingPrefix, IsTheRecordingOfTheShorterSequences)
{
  for (const std::vector<std::size_t>& lengths :
    { std::vector<std::size_t>{ 17 }, std::vector<std::size_t>{ 9, 30, 4 } })
  {
    const TransformerInput input = TinyInput(lengths);
    std::vector<std::size_t> shorter;
    for (const std::size_t length : lengths)
    {
      shorter.push_back(length / 2 + 1);
    }
    const Recording found = FirstTokens(this->Record(input), { shorter.begin(), shorter.end() });
    EXPECT_NO_THROW(CheckRecording(found, "prefix"));
    const Recording expected = this->Record(Cut(input, shorter));
    EXPECT_EQ(found.sequenceOffsets, expected.sequenceOffsets);
    EXPECT_EQ(found.tokens.id, expected.tokens.id);
    EXPECT_EQ(found.tokens.text, expected.tokens.text);
    EXPECT_EQ(found.tokens.position, expected.tokens.position);
    EXPECT_EQ(found.tokens.sequence, expected.tokens.sequence);
    const std::vector<SharedMatrix> matrices = TokenMatrices(expected);
    const std::vector<SharedMatrix> prefixes = TokenMatrices(found);
    ASSERT_EQ(prefixes.size(), matrices.size());
    for (std::size_t i = 0; i < matrices.size(); ++i)
    {
      ExpectNear(prefixes[i], matrices[i]);
    }
  }
}

/// The source stays whole.
TEST(TranslatedPrefix, CutsTheTargetAlone)
{
  const Recording recording = TranslatedRecording();
  const Recording found = FirstTokens(recording, { 2, 3 });
  EXPECT_NO_THROW(CheckRecording(found, "prefix"));
  ExpectEqual(*found.encoder, *recording.encoder);
  EXPECT_THAT(found.sequenceOffsets, ElementsAre(0, 2, 5));
  EXPECT_THAT(found.cross->sequenceOffsets, ElementsAre(0, 6, 11));
  EXPECT_THAT(found.cross->tokens.text,
    ElementsAre("s0", "s1", "s2", "s3", "t0", "t1", "s0", "s1", "t0", "t1", "t2"));
  const SharedMatrix& query = found.cross->layers[1].heads[0].query;
  EXPECT_EQ(query.Row(8)[1], recording.cross->layers[1].heads[0].query.Row(9)[1]);
  EXPECT_THAT(MessageOf<OptionError>([&] { FirstTokens(*recording.cross, { 3, 7 }); }),
    HasSubstr("expected a causal mask"));
}

TEST_F(RecordingPrefix, OneSequenceSharesItsMemory)
{
  const Recording all = this->Record(TinyInput({ 12 }));
  const Recording first = FirstTokens(all, { 5 });
  EXPECT_EQ(first.layers[1].heads[2].query.values, all.layers[1].heads[2].query.values);
  EXPECT_EQ(first.layers[1].heads[2].query.rows, 5);
  atlas::test::ExpectEqual(FirstTokens(all, { 12 }), all);
}

TEST_F(RecordingPrefix, StoredAttentionIsCropped)
{
  Recording recording = this->Record(TinyInput({ 3 }));
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.weights = { SharedMatrix::Zero(3, 3) };
      for (int i = 0; i < 9; ++i)
      {
        head.weights.front().values.get()[i] = static_cast<float>(i);
      }
    }
  }
  const SharedMatrix found = FirstTokens(recording, { 2 }).layers[0].heads[0].weights.front();
  EXPECT_EQ(found.rows, 2);
  EXPECT_THAT(
    std::vector<float>(found.values.get(), found.values.get() + 4), ElementsAre(0, 1, 3, 4));
}

TEST_F(RecordingPrefix, ImpossibleLengthsAreRefused)
{
  Recording recording = this->Record(TinyInput({ 4, 6 }));
  EXPECT_THAT(MessageOf<OptionError>([&] { FirstTokens(recording, { 4 }); }),
    HasSubstr("each of 2 sequences, found 1"));
  EXPECT_THAT(MessageOf<OptionError>([&] { FirstTokens(recording, { 4, 7 }); }),
    HasSubstr("sequence 1 has 6 tokens, expected its first 7"));
  EXPECT_THAT(
    MessageOf<OptionError>([&] { FirstTokens(recording, { -1, 6 }); }), HasSubstr("first -1"));
  recording.mask = AttentionMask::Bidirectional;
  EXPECT_THAT(
    MessageOf<OptionError>([&] { FirstTokens(recording, { 4, 5 }); }), HasSubstr("causal mask"));
  EXPECT_NO_THROW(FirstTokens(recording, { 4, 6 }));
}

}
