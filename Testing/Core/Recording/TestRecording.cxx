#include "Recording/Recording.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "HandMadeRecording.h"
#include "TranslatedRecording.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// A part that does not fit the whole.
TEST(Recording, PartsThatDoNotFitAreRefused)
{
  const Recording whole = TranslatedRecording();
  const auto message = [](const Recording& recording)
  { return MessageOf<ModelError>([&] { CheckRecording(recording, "file"); }); };
  const auto withCross = [&](const std::function<void(Recording&)>& change)
  {
    auto cross = *whole.cross;
    change(cross);
    Recording changed = whole;
    changed.cross = std::make_shared<const Recording>(cross);
    return message(changed);
  };
  Recording alone = whole;
  alone.encoder = nullptr;
  EXPECT_THAT(message(alone), HasSubstr("found one alone"));
  alone = whole;
  alone.encoder = std::make_shared<const Recording>(HandMadeRecording());
  EXPECT_THAT(
    message(alone), HasSubstr("encoder: expected 2 sequences with the mask bidirectional"));
  EXPECT_THAT(withCross([](Recording& r) { r.sourceLengths.pop_back(); }),
    HasSubstr("file: cross: expected 2 lengths of sources"));
  EXPECT_THAT(withCross([](Recording& r) { r.sourceLengths[1] = 8; }),
    HasSubstr("sequence 1: expected a source of 0 to 7 tokens, found 8."));
  EXPECT_THAT(withCross([](Recording& r) { r.sourceLengths[0] = 3; }),
    HasSubstr("sequence 0: expected the 4 tokens of the source and the 3 of the target, found 3"));
  Recording biased = whole;
  biased.distanceBias = SharedMatrix::Zero(2, 4);
  EXPECT_THAT(message(biased), HasSubstr("an odd number of values, found shape [2, 4]."));
  biased.distanceBias = SharedMatrix::Zero(2, 5);
  biased.distanceBias.Row(1)[3] = std::nanf("");
  EXPECT_THAT(message(biased), HasSubstr("expected finite numbers, found nan at row 1."));
}

TEST(Recording, ThatFitsTogetherIsAccepted)
{
  CheckRecording(HandMadeRecording(), "file");
  Recording empty;
  empty.sequenceOffsets = { 0 };
  CheckRecording(empty, "file");
}

/// One expert of `experts` for each of 10 tokens, by turns of `turns`.
RecordedRouting Routing(std::int64_t turns, std::int32_t experts)
{
  RecordedRouting routing = { experts, SharedMatrix::Zero(10, 1), SharedMatrix::Zero(10, 1) };
  for (std::int64_t row = 0; row < 10; ++row)
  {
    *routing.chosen.Row(row) = static_cast<float>(row % turns);
  }
  return routing;
}

RecordedHead& LastHead(Recording& recording)
{
  return recording.layers[1].heads[1];
}

TEST(Recording, DamageIsRefused)
{
  const std::vector<std::pair<std::function<void(Recording&)>, std::string>> damages = {
    { [](Recording& r) { LastHead(r).query = LastHead(r).key = SharedMatrix::Zero(10, 4); },
      "layer 4, head 1: query: expected shape [10, 5], found [10, 4]" },
    { [](Recording& r) { LastHead(r).key = SharedMatrix::Zero(10, 4); },
      "layer 4, head 1: key: expected shape [10, 5], found [10, 4]" },
    { [](Recording& r) { LastHead(r).key = SharedMatrix::Zero(9, 5); },
      "layer 4, head 1: key: expected a row for each of the 10 tokens, found shape [9, 5]" },
    { [](Recording& r) { LastHead(r).key = {}; },
      "layer 4, head 1: expected both queries and keys" },
    { [](Recording& r) { LastHead(r).valueNorm = SharedMatrix::Zero(10, 2); },
      "layer 4, head 1: value_norm: expected shape [10, 1], found [10, 2]" },
    { [](Recording& r) { LastHead(r).value = SharedMatrix::Zero(10, 5); },
      "layer 4, head 1: value: expected to be recorded in all heads" },
    { [](Recording& r) { r.layers[1].heads.pop_back(); }, "layer 4: expected 2 as in layer 1" },
    { [](Recording& r) { r.layers[1].index = 1; }, "layer 1: expected layers in ascending order" },
    { [](Recording& r) { r.layers[1].index = 5; }, "layer 5: expected layers in ascending order" },
    { [](Recording& r) { r.alibiSlopes = { 1 }; }, "layer 1: expected 2 ALiBi slopes, found 1" },
    { [](Recording& r) { r.layers[1].scoreCap = -1; }, "layer 4: expected a score cap above 0" },
    { [](Recording& r) { r.layers[1].scoreCap = std::nan(""); }, "none, found nan" },
    { [](Recording& r) { r.layers[1].scoreCap = 1e-300; },
      "layer 4: expected a score cap above 0" },
    { [](Recording& r) { r.layers[1].window = -1; },
      "layer 4: expected a window of at least 1 key" },
    { [](Recording& r) { r.layers[1].chunk = -1; },
      "layer 4: expected chunks of at least 1 token" },
    { [](Recording& r)
      {
        r.layers[1].chunk = 3;
        r.mask = AttentionMask::Bidirectional;
      },
      "under a causal mask, or 0 for none, found 3 under the mask bidirectional" },
    { [](Recording& r) { r.layers[1].sinks = { 1 }; },
      "layer 4: expected a sink for each of the 2 heads, found 1" },
    { [](Recording& r) { r.layers[1].sinks = { 1, std::nanf("") }; },
      "layer 4, head 1: expected a finite sink, found nan" },
    { [](Recording& r) { r.layers[1].routing = Routing(3, 2); },
      "layer 4: experts: expected numbers of its 2 experts, from 0, found 2 at token 2" },
    { [](Recording& r)
      {
        r.layers[1].routing = Routing(2, 2);
        r.layers[1].routing.chosen.Row(7)[0] = 0.5F;
      },
      "layer 4: experts: expected numbers of its 2 experts, from 0, found 0.5 at token 7" },
    { [](Recording& r)
      {
        r.layers[1].routing = Routing(2, 2);
        r.layers[1].routing.weights.Row(9)[0] = std::nanf("");
      },
      "layer 4: expert_weights: expected finite numbers, found nan at token 9" },
    { [](Recording& r)
      {
        r.layers[1].routing = Routing(2, 2);
        r.layers[1].routing.weights = SharedMatrix::Zero(10, 2);
      },
      "layer 4: expert_weights: expected shape [10, 1], found [10, 2]" },
    { [](Recording& r) { r.tokens.position.pop_back(); }, "a position for each of the 10 tokens" },
    { [](Recording& r) { r.tokens.text = { "a" }; }, "a token text for each of the 10 tokens" },
    { [](Recording& r) { r.sequenceOffsets.back() = 11; }, "tokens, 10, found [0, 3, 4, 11]" },
    { [](Recording& r) { r.sequenceOffsets[1] = 5; }, "found [0, 5, 4, 10]" },
    { [](Recording& r) { r.tokens.sequence[3] = 0; }, "token 3: expected sequence 1, found 0" },
    { [](Recording& r) { r.residual.resize(5); }, "expected 6 residuals" },
    { [](Recording& r)
      {
        r.residual.resize(6);
        r.residual[1] = SharedMatrix::Zero(10, 7);
        r.residual[3] = SharedMatrix::Zero(10, 8);
      },
      "residual 3: expected shape [10, 7], found [10, 8]" },
    { [](Recording& r) { r.logits = SharedMatrix::Zero(3, 7); },
      "logits: expected a row for each of the 10 tokens, found shape [3, 7]" }
  };
  for (const auto& [damage, message] : damages)
  {
    Recording recording = HandMadeRecording();
    damage(recording);
    EXPECT_THAT(MessageOf<ModelError>([&] { CheckRecording(recording, "file"); }),
      testing::AllOf(testing::StartsWith("file: "), HasSubstr(message)));
  }
}

}
