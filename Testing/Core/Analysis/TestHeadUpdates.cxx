#include "Analysis/HeadUpdates.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "FocusOracle.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

std::vector<HeadUpdate> MeasureHead(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<HeadUpdate> updates(length);
  std::vector<float> work;
  MeasureUpdates(recording, sequence, layer, head, 0, length, work, updates.data());
  return updates;
}

using UpdatesOfModel = OfFocus;

TEST_P(UpdatesOfModel, EqualTheOracle)
{
  std::vector<double> magnitude;
  std::vector<double> orientation;
  std::vector<double> context;
  this->Oracle.ForHeads(
    [&](std::int64_t layer, std::int64_t sequence, std::int64_t head)
    {
      for (const HeadUpdate& update :
        MeasureHead(this->Oracle.GetRecording(), sequence, layer, head))
      {
        magnitude.push_back(update.output.magnitude);
        orientation.push_back(update.output.orientation);
        context.push_back(update.contextMagnitude);
      }
    });
  const FocusOracle& oracle = this->Oracle;
  ExpectClose("magnitude", magnitude, oracle.Values("update.magnitude"), FocusTolerance);
  ExpectClose("orientation", orientation, oracle.Values("update.orientation"), FocusTolerance);
  ExpectClose("context", context, oracle.Values("update.context_magnitude"), FocusTolerance);
}

TEST_P(UpdatesOfModel, OfAllHeadsEqualTheOracle)
{
  std::vector<double> magnitude;
  std::vector<double> orientation;
  const Recording& recording = this->Oracle.GetRecording();
  const std::int64_t tokens = recording.tokens.Count();
  for (const std::int64_t layer : { 0, 1 })
  {
    std::vector<StreamUpdate> updates(tokens);
    const std::vector<float> bias = OutputBias(this->Oracle.GetModel(), layer);
    MeasureLayerUpdates(recording, layer, bias, 0, 3, updates.data());
    MeasureLayerUpdates(recording, layer, bias, 3, tokens, updates.data() + 3);
    for (const StreamUpdate& update : updates)
    {
      magnitude.push_back(update.magnitude);
      orientation.push_back(update.orientation);
    }
  }
  const FocusOracle& oracle = this->Oracle;
  ExpectClose("magnitude", magnitude, oracle.Values("update.total_magnitude"), FocusTolerance);
  ExpectClose(
    "orientation", orientation, oracle.Values("update.total_orientation"), FocusTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, UpdatesOfModel, OfFocus::Models(), OfFocus::Name);

/// A head and a residual stream of two components on two tokens.
Recording Make()
{
  Recording recording;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, 2 };
  recording.tokens.sequence = { 0, 0 };
  recording.tokens.position = { 0, 1 };
  recording.residual = { SharedMatrix::Zero(2, 2) };
  *recording.residual[0].Row(0) = 2;
  RecordedLayer layer;
  layer.heads.resize(1);
  layer.heads[0].output = SharedMatrix::Zero(2, 2);
  recording.layers.push_back(layer);
  return recording;
}

TEST(HeadUpdates, AreZeroWhereAVectorIs)
{
  const Recording recording = Make();
  const auto zero = [](const StreamUpdate& update)
  { return update.magnitude == 0 && update.orientation == 0; };
  float* output = recording.layers[0].heads[0].output.Row(0);
  EXPECT_TRUE(zero(MeasureHead(recording, 0, 0, 0)[0].output));
  output[1] = 3;
  output[2] = 3;
  const std::vector<HeadUpdate> updates = MeasureHead(recording, 0, 0, 0);
  EXPECT_EQ(updates[0].output.magnitude, 1.5F);
  EXPECT_EQ(updates[0].output.orientation, 0);
  EXPECT_TRUE(zero(updates[1].output)); // the stream is 0
  EXPECT_EQ(updates[0].contextMagnitude, 0);
  EXPECT_FALSE(HasContext(recording.layers[0].heads[0]));
  output[0] = -1;
  output[1] = 0;
  EXPECT_EQ(MeasureHead(recording, 0, 0, 0)[0].output.orientation, -1);
}

TEST(HeadUpdates, AreCountedInHalfOpenBins)
{
  EXPECT_THAT(CountInBins({ 0, 0.25F, 0.5F, 0.75F, 1 }, 0, 1, 4), ElementsAre(1, 1, 1, 2));
  EXPECT_THAT(CountInBins({ -1, 2 }, 0, 1, 2), ElementsAre(1, 1));
  EXPECT_THAT(CountInBins({ 0, 0 }, 0, 0, 2), ElementsAre(2, 0));
}

TEST(HeadUpdates, NameWhatIsMissing)
{
  Recording recording = Make();
  const auto message = [&recording]()
  { return MessageOf<OptionError>([&recording] { MeasureHead(recording, 0, 0, 0); }); };
  recording.residual[0] = SharedMatrix::Zero(2, 3);
  EXPECT_THAT(message(), HasSubstr("expected outputs of 3 components like the residual stream"));
  recording.residual[0] = {};
  EXPECT_THAT(message(), HasSubstr("no residual stream before layer 0"));
  recording.residual.clear();
  EXPECT_THAT(message(), HasSubstr("record Residual"));
  recording.layers[0].heads[0].output = {};
  EXPECT_THAT(message(), HasSubstr("no outputs of layer 0, head 0; record HeadOutputs"));
}

}
