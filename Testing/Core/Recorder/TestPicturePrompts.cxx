#include "Recorder/RecorderInput.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "PicturesModel.h"
#include "Preprocessing/RecordPictures.h"
#include "Preprocessing/VisionPixels.h"
#include "Recorder/PicturePrompts.h"
#include "Recorder/RecordInput.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Ids = std::vector<std::int64_t>;

/// Texts and pictures of a model of the oracle.
class PicturePromptsTest : public Test
{
protected:
  std::unique_ptr<PicturesModel> Model;
  RecorderSources Sources;

  void Use(const std::string& architecture, const std::vector<int>& pictures = {})
  {
    this->Model = std::make_unique<PicturesModel>(architecture);
    this->Sources = {};
    for (const int picture : pictures)
    {
      this->Sources.imageFiles.push_back(this->Model->PictureFile(picture));
    }
  }

  std::shared_ptr<const OpenTransformer> Open() const
  {
    return OpenTransformer::Open(this->Model->Path(), "");
  }

  RecorderInput Gather(const std::string& prompts)
  {
    this->Sources.prompts = prompts;
    return GatherInput(this->Sources, *this->Open());
  }

  std::string Refusal(const std::string& prompts)
  {
    return MessageOf<OptionError>([&] { this->Gather(prompts); });
  }

  /// The sequences of the oracle, without padding.
  std::vector<Ids> Expected() const
  {
    return ModelOracle(this->Model->Oracle() / "expected.safetensors").Sequences();
  }

  /// The words of a sequence without its pictures, of which each begins and ends with one of these
  /// tokens, and is replaced by the marker.
  static std::string TextOf(
    const Ids& ids, const std::vector<std::int64_t>& ofPictures, const std::string& marker)
  {
    std::string text;
    bool isPicture = false;
    for (const std::int64_t id : ids)
    {
      const bool isPart = std::count(ofPictures.begin(), ofPictures.end(), id) != 0;
      text += isPart ? (isPicture ? "" : marker) : " w" + std::to_string(id);
      isPicture = isPart;
    }
    return text;
  }

  /// The pixels are the first of a tensor.
  static void ExpectPixels(
    const RecorderInput& found, const ModelOracle& oracle, const std::string& name)
  {
    std::vector<float> expected = oracle.Floats(name);
    ASSERT_LE(found.input.pixels.size(), expected.size());
    expected.resize(found.input.pixels.size());
    EXPECT_THAT(found.input.pixels, Pointwise(FloatNear(1e-6F), expected));
  }
  void ExpectPixels(const RecorderInput& found, const std::string& name) const
  {
    ExpectPixels(found, ModelOracle(this->Model->Oracle() / "expected.safetensors"), name);
  }

  /// The texts of the oracle, with markers in place of the tokens of pictures, become its ids and
  /// its pixels.
  RecorderInput ExpectOriginal(const std::string& architecture, const std::vector<int>& pictures,
    const Ids& around, const std::string& first, const std::string& second)
  {
    this->Use(architecture, pictures);
    const std::vector<Ids> expected = this->Expected();
    RecorderInput input =
      this->Gather(TextOf(expected[0], around, first) + "\n" + TextOf(expected[1], around, second));
    EXPECT_EQ(input.input.tokens, expected);
    this->ExpectPixels(input, "pixel_values");
    return input;
  }

  /// Records an input with its pixels, which are found again in the files of a recording without.
  Recording RecordBothWays(const RecorderInput& input) const
  {
    const auto model = this->Open();
    std::string warning;
    Recording kept = RecordInput(*model, input, {}, true, warning);
    EXPECT_EQ(warning, "");
    CheckRecording(kept, "test");
    const Recording named = RecordInput(*model, input, {}, false, warning);
    EXPECT_EQ(named.pictures.pixels, nullptr);
    for (std::int64_t i = 0; i < kept.pictures.count; ++i)
    {
      const std::int64_t bytes = 3 * kept.pictures.HeightOf(i) * kept.pictures.WidthOf(i);
      const auto pixels = FindPicture(kept.pictures, i);
      EXPECT_EQ(std::memcmp(pixels.get(), FindPicture(named.pictures, i).get(), bytes), 0) << i;
      EXPECT_THAT(this->Sources.imageFiles, Contains(named.pictures.sources[i].file));
    }
    return kept;
  }
};

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfLlava)
{
  const RecorderInput input =
    this->ExpectOriginal("llava", { 0, 1 }, { 60 }, " <image>", "<image>");
  EXPECT_THAT(input.input.tiles, ElementsAre(TilePlace{ 0 }, TilePlace{ 1 }));
  EXPECT_EQ(input.pictures, this->Sources.imageFiles);
  EXPECT_THAT(input.warnings[0],
    HasSubstr("26 x 20 pixels (width x height) are resized and cropped to 12 x 12"));
}

/// Pictures are padded, so nothing of them is cut off.
TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfLlavaWithSiglip)
{
  const RecorderInput input =
    this->ExpectOriginal("llava-siglip", { 0, 1 }, { 60 }, " <image>", "<image>");
  EXPECT_THAT(input.warnings, IsEmpty());
  const Recording kept = this->RecordBothWays(input);
  EXPECT_EQ(kept.encoder->pictures.HeightOf(0), 12);
  for (int picture = 0; picture < 2; ++picture)
  {
    const auto pixels = FindPicture(kept.pictures, picture);
    const auto encoder = FindPicture(kept.encoder->pictures, picture);
    EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + 3 * 12 * 12, encoder.get()));
  }
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfInternVL)
{
  for (const char* marker : { " <image>", "<IMG_CONTEXT>" })
  {
    const RecorderInput input =
      this->ExpectOriginal("internvl", { 0, 1 }, { 60, 61, 62 }, marker, marker);
    EXPECT_EQ(input.input.images, 4);
    EXPECT_THAT(input.warnings, IsEmpty());
  }
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfSmolVLM)
{
  const Ids around = { 39, 40, 41, 42, 43, 44, 45, 46, 47, 60, 61, 62 };
  const RecorderInput input = this->ExpectOriginal("smolvlm", { 0 }, around, "<image>", "");
  EXPECT_THAT(input.input.tiles, ElementsAre(TilePlace{ 0, 0, 0, 1, 2 }, TilePlace{ 0, 0, 1, 1, 2 },
                                   TilePlace{ 0, -1, -1, 1, 2 }));
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfQwen)
{
  this->ExpectOriginal("qwen2_5_vl", { 0, 1 }, { 60, 61, 62 }, " <image>", "<image>");
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerVideo = 3;
  this->Sources.framesPerSecond = 4;
  const Ids expected = this->Expected()[1];
  const RecorderInput video = this->Gather(TextOf(expected, { 59, 61, 62 }, "<video>"));
  EXPECT_EQ(video.input.tokens, std::vector<Ids>{ expected });
  ASSERT_EQ(video.input.extents.size(), 1U);
  EXPECT_TRUE(video.input.extents[0].isVideo);
  EXPECT_EQ(video.input.extents[0].frames, 2);
  EXPECT_EQ(video.input.extents[0].seconds, 0.5);
  this->ExpectPixels(video, "pixel_values_videos");
}

/// Videos have settings of their own, pictures keep theirs.
TEST_F(PicturePromptsTest, FramesAreThoseOfTheOriginalOfVideos)
{
  this->Use("qwen2_vl", { 1, 2, 3 });
  const std::filesystem::path video = ModelsOracle("transformers/qwen2_vl-film");
  std::filesystem::copy(
    video / VideoProcessorFile, std::filesystem::path(this->Model->Path()) / VideoProcessorFile);
  this->Sources.framesPerVideo = 3;
  const RecorderInput input = this->Gather("w3 <video> w5");
  const ModelOracle oracle(video / "expected.safetensors");
  ASSERT_EQ(input.input.extents.size(), 1U);
  EXPECT_THAT(oracle.Get("video_grid_thw").ToInteger(),
    ElementsAre(
      input.input.extents[0].frames, input.input.extents[0].rows, input.input.extents[0].columns));
  const std::vector<float> expected = oracle.Floats("pixel_values_videos");
  EXPECT_THAT(input.input.pixels, Pointwise(FloatNear(1e-6F), expected));
  const Recording kept = this->RecordBothWays(input);
  ASSERT_EQ(kept.pictures.count, 2);
  EXPECT_EQ(kept.pictures.HeightOf(1), 24);
  EXPECT_EQ(kept.pictures.WidthOf(1), 32);
  const auto pixels = FindPicture(kept.pictures, 1);
  // By the mean and the deviation of red in the file.
  const std::size_t group = expected.size() / 2;
  EXPECT_EQ(pixels.get()[0], std::lround(255 * (expected[group] * 0.25 + 0.5)));
  this->Sources.framesPerVideo = 0;
  const RecorderInput pictures = this->Gather("w3 <image> w5 <image> <image>");
  EXPECT_EQ(pictures.input.extents[0].rows, 2);
  EXPECT_EQ(pictures.input.extents[0].columns, 4);
}

/// The prompts, token ids and pixels of videos whose frames are pictures.
class VideosInTiles
  : public PicturePromptsTest
  , public WithParamInterface<std::string>
{
protected:
  std::filesystem::path Oracle = ModelsOracle("transformers/" + GetParam() + "-film");

  void SetUp() override
  {
    this->Use(GetParam());
    this->Model->NameWords({ "Frame1:", "Frame2:", "Frame3:", "You", "are", "provided", "the",
      "following", "series", "of", "three", "frames", "from", "a", "0:00:01", "[H:MM:SS]", "video.",
      "Frame", "00:00:", "00:01:" });
    std::filesystem::copy(this->Oracle / VideoProcessorFile,
      std::filesystem::path(this->Model->Path()) / VideoProcessorFile);
  }

  /// The files of so many frames, of which the first three are those of the oracle.
  void UseFrames(std::int64_t frames)
  {
    const std::filesystem::path folder = ModelsOracle("transformers/qwen2_vl");
    this->Sources.imageFiles.clear();
    for (std::int64_t frame = 0; frame < frames; ++frame)
    {
      this->Sources.imageFiles.push_back(
        folder / ("picture-" + std::to_string(frame % 3 + 1) + ".png"));
    }
  }
};

TEST_P(VideosInTiles, AreWrittenAsTheOriginalDoes)
{
  const ModelOracle oracle(this->Oracle / "expected.safetensors");
  const auto model = this->Open();
  const nlohmann::json cases = nlohmann::json::parse(oracle.Text("prompts"));
  ASSERT_GT(cases.size(), 2U);
  for (const nlohmann::json& one : cases)
  {
    SCOPED_TRACE(one.dump());
    const auto texts = one["texts"].get<std::vector<std::string>>();
    const std::int64_t frames = one["frames"];
    const double framesPerSecond = one["fps"];
    std::int64_t videos = 0;
    for (const std::string& text : texts)
    {
      videos += text.find("<video>") != std::string::npos ? 1 : 0;
      videos += text.find("<video>") != text.rfind("<video>") ? 1 : 0;
    }
    this->UseFrames(videos * frames);
    std::vector<std::string> warnings;
    const VisionPixels pixels =
      ReadVisionPixels(this->Sources.imageFiles, frames, framesPerSecond, *model, warnings);
    const PicturePrompts prompts(*model, pixels, framesPerSecond);
    EXPECT_EQ(prompts.Count(), videos);
    EXPECT_EQ(prompts.Expand(texts, "Prompts"), one["expected"].get<std::vector<std::string>>());
  }
}

TEST_P(VideosInTiles, AreTheInputOfTheModel)
{
  const ModelOracle oracle(this->Oracle / "expected.safetensors");
  const nlohmann::json first = nlohmann::json::parse(oracle.Text("prompts"))[0];
  const std::string expected = first["expected"][0];
  this->UseFrames(3);
  this->Sources.framesPerVideo = 3;
  const RecorderInput input = this->Gather(first["texts"][0]);
  EXPECT_EQ(input.input.tokens, std::vector<Ids>{ this->Model->IdsOf(expected) });
  EXPECT_EQ(std::count(input.input.tokens[0].begin(), input.input.tokens[0].end(), 60), 3 * 4);
  EXPECT_THAT(input.input.pixels, Pointwise(FloatNear(1e-6F), oracle.Floats("pixel_values")));
  // With ids, the image token stands for the video, or is there for each of its tokens.
  this->Sources.prompts.clear();
  std::string all;
  for (const std::int64_t id : input.input.tokens[0])
  {
    all += std::to_string(id) + " ";
  }
  for (const std::string& ids : { std::string("3 60 5"), all })
  {
    this->Sources.tokenIds = ids;
    EXPECT_EQ(GatherInput(this->Sources, *this->Open()).input.tokens, input.input.tokens);
  }
  this->Sources.tokenIds = "3 60 60";
  EXPECT_THAT(MessageOf<OptionError>([&] { GatherInput(this->Sources, *this->Open()); }),
    HasSubstr("TokenIds: expected the token 60 once for each video of Images, 1, or for each of "
              "their tokens, 12, found it 2 times"));
}

/// Frames are recorded as such, and found again in their files.
TEST_P(VideosInTiles, AreRecorded)
{
  this->UseFrames(6);
  this->Sources.framesPerVideo = 3;
  const RecorderInput input = this->Gather("<video> w3\nw5 <video>");
  EXPECT_EQ(input.input.images, 6);
  const Recording kept = this->RecordBothWays(input);
  ASSERT_EQ(kept.pictures.count, 6);
  for (std::int32_t i = 0; i < 6; ++i)
  {
    const PictureContent& content = kept.pictures.contents[i];
    EXPECT_EQ(content.picture, i / 3);
    EXPECT_EQ(content.frame, i % 3);
    EXPECT_EQ(content.frames, 1);
    EXPECT_FALSE(content.isSmall);
  }
  EXPECT_EQ(kept.tokens.text[kept.tokens.Count() - 1], GetParam() == "internvl" ? "</img>" : "\n");
  EXPECT_EQ(std::count(kept.tokens.text.begin(), kept.tokens.text.end(), "5: 1, 1"), 1);
  // By the mean and the deviation of red in the file.
  const auto pixels = FindPicture(kept.pictures, 1);
  EXPECT_EQ(
    pixels.get()[0], std::lround(255 * (input.input.pixels[std::size_t{ 3 * 256 }] * 0.25 + 0.5)));
  EXPECT_EQ(kept.encoder->SequenceCount(), 6);
}

TEST_P(VideosInTiles, HaveAMarkerOfTheirOwn)
{
  this->UseFrames(3);
  this->Sources.framesPerVideo = 3;
  EXPECT_THAT(this->Refusal("w1 <image> w3"),
    HasSubstr("Prompts: expected the marker <video> for videos, found <image>"));
  EXPECT_THAT(this->Refusal("<video> <video>"),
    HasSubstr("<video>, for each video of Images, of which there is 1, found 2 in 1 prompt"));
  this->Sources.framesPerVideo = 2;
  EXPECT_THAT(this->Refusal("<video>"), HasSubstr("that makes whole videos of the 3 files"));
}

INSTANTIATE_TEST_SUITE_P(PicturePrompts, VideosInTiles, Values("internvl", "smolvlm"),
  [](const auto& one) { return one.param; });

/// The tokens around the model's own marker are those that the text has.
TEST_F(PicturePromptsTest, TheOwnMarkerOfQwenStandsForItsTokensAlone)
{
  this->Use("qwen2_vl", { 0 });
  const std::vector<Ids> expected = this->Expected();
  const std::string marker = "<|vision_start|><|image_pad|><|vision_end|>";
  EXPECT_EQ(this->Gather(TextOf(expected[0], { 60, 61, 62 }, marker)).input.tokens[0], expected[0]);
  Ids alone = expected[0];
  alone.erase(std::remove_if(
                alone.begin(), alone.end(), [](std::int64_t id) { return id == 61 || id == 62; }),
    alone.end());
  EXPECT_EQ(
    this->Gather(TextOf(alone, { 60 }, "<|image_pad|>")).input.tokens, std::vector<Ids>{ alone });
}

TEST_F(PicturePromptsTest, WithoutMarkersPicturesComeFirst)
{
  this->Use("llava", { 0, 1 });
  Ids expected(18, 60);
  expected.push_back(7);
  EXPECT_EQ(this->Gather("w7").input.tokens, std::vector<Ids>{ expected });
  EXPECT_THAT(this->Refusal("w7\nw8\nw9"),
    HasSubstr("<image>, for each picture of Images, of which there are 2, found 0 in 3 prompts"));
}

TEST_F(PicturePromptsTest, MarkersAndPicturesAreAsMany)
{
  this->Use("llava", { 0 });
  EXPECT_THAT(this->Refusal("w1 <image> <image>"),
    HasSubstr("<image>, for each picture of Images, of which there is 1, found 2 in 1 prompt"));
  this->Use("llava");
  EXPECT_THAT(this->Refusal("w1 <image>"), HasSubstr("of which there are 0, found 1 in 1 prompt."));
  EXPECT_THAT(this->Gather("w1 w2").input.tokens, ElementsAre(Ids{ 1, 2 }));
  this->Use("qwen2_vl", { 0 });
  EXPECT_THAT(this->Refusal("<video> w1"),
    HasSubstr("the marker <image> or <|image_pad|> for pictures, found <video>"));
}

TEST_F(PicturePromptsTest, TokenIdsAreExpandedOrKept)
{
  for (const char* name : { "llava", "internvl", "qwen2_5_vl" })
  {
    SCOPED_TRACE(name);
    this->Use(name, { 0, 1 });
    const std::vector<Ids> expected = this->Expected();
    std::string whole;
    std::string once;
    const bool isGrid = name == std::string("internvl");
    for (const Ids& sequence : expected)
    {
      for (std::size_t i = 0; i < sequence.size(); ++i)
      {
        const std::string id = std::to_string(sequence[i]) + " ";
        const bool isRepeated = sequence[i] == 60 && i > 0 && sequence[i - 1] == 60;
        const bool isAround = isGrid && (sequence[i] == 61 || sequence[i] == 62);
        whole += id;
        once += isRepeated || isAround ? "" : id;
      }
      whole += "\n";
      once += "\n";
    }
    for (const std::string& ids : { whole, once })
    {
      this->Sources.tokenIds = ids;
      EXPECT_EQ(GatherInput(this->Sources, *this->Open()).input.tokens, expected);
    }
    this->Sources.tokenIds = "1 60 60 60";
    EXPECT_THAT(MessageOf<OptionError>([&] { GatherInput(this->Sources, *this->Open()); }),
      AllOf(StartsWith("TokenIds: expected the token 60 once for each picture of Images, 2, or for "
                       "each of their tokens, "),
        HasSubstr(", found it 3 times.")));
  }
}

TEST_F(PicturePromptsTest, TheTokenizerHasTheirTokens)
{
  this->Use("internvl", { 0 });
  this->Model->WriteTokenizer("</img>");
  EXPECT_THAT(this->Refusal("w1"),
    HasSubstr("a tokenizer with the token '</img>', which a model of architecture internvl"));
  this->Use("smolvlm", { 0 });
  this->Model->WriteTokenizer("<row_1_col_2>");
  EXPECT_THAT(this->Refusal("w1"), HasSubstr("with the token '<row_1_col_2>'"));
}

TEST_F(PicturePromptsTest, VideosNeedAModelThatReadsThem)
{
  this->Use("llava", { 0, 1 });
  this->Sources.framesPerVideo = 2;
  EXPECT_THAT(this->Refusal("<video>"),
    HasSubstr("FramesPerFilm: expected 0, since a model of architecture llava reads no videos"));
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerVideo = 2;
  EXPECT_THAT(this->Refusal("<video>"),
    HasSubstr("a number of frames that makes whole videos of the 3 files of Images, found 2"));
  this->Sources.framesPerVideo = 3;
  this->Sources.framesPerSecond = 0;
  EXPECT_THAT(
    this->Refusal("<video>"), HasSubstr("FramesPerSecond: expected a number of at least 0.000001"));
}

TEST_F(PicturePromptsTest, PicturesGoWithTexts)
{
  this->Use("llava", { 0 });
  EXPECT_THAT(this->Refusal(""),
    HasSubstr("expected Prompts, PromptFile, TokenIds or a table of token ids beside Images"));
  this->Sources.tokenIds = "1";
  EXPECT_THAT(this->Refusal("w1"), HasSubstr("found 2: Prompts, TokenIds."));
  this->Sources.tokenIds.clear();
  this->Sources.maximumLength = 9;
  EXPECT_THAT(this->Refusal("w1 <image>"),
    HasSubstr("sequence 0: expected 9 image tokens, found 8; MaximumLength"));
  this->Sources.maximumLength = 10;
  EXPECT_EQ(this->Gather("w1 <image> w2").input.tokens[0].size(), 10U);
  this->Sources.maximumLength = 0;
  this->Sources.imageFiles = { this->Model->Path() + "/model.safetensors" };
  EXPECT_THAT(this->Refusal("w1 <image>"),
    HasSubstr("Images: expected PNG or JPEG images for a model of architecture llava, found "));
}

TEST_F(PicturePromptsTest, ARecordingHasTheirPicturesAndColors)
{
  this->Use("smolvlm", { 0 });
  const RecorderInput input = this->Gather("w3 <image> w5\nw4");
  const Recording recording = this->RecordBothWays(input);
  const RecordedTokens& tokens = recording.tokens;
  EXPECT_EQ(tokens.text[0], "w3");
  EXPECT_EQ(tokens.text[1], "<fake_token_around_image>");
  EXPECT_EQ(tokens.text[3], "0: 0, 0");
  EXPECT_EQ(tokens.text[6], "0: 1, 1");
  EXPECT_EQ(tokens.text[9], "0: 0, 2");
  EXPECT_EQ(recording.pictures.count, 2);
  EXPECT_EQ(recording.pictures.HeightOf(0), 16);
  EXPECT_EQ(recording.pictures.WidthOf(0), 32);
  EXPECT_TRUE(recording.pictures.contents[1].isSmall);
  const auto pixels = FindPicture(recording.pictures, 0);
  double sum = 0; // of the red of the square in row 0, column 2
  for (int y = 0; y < 8; ++y)
  {
    for (int x = 16; x < 24; ++x)
    {
      sum += pixels.get()[3 * (32 * y + x)];
    }
  }
  EXPECT_NEAR(tokens.color.Row(9)[0], sum / 64 / 255, 0.51 / 255);
  EXPECT_EQ(tokens.color.Row(0)[0], -1);
  EXPECT_EQ(tokens.color.Row(tokens.Count() - 1)[2], -1);
  ASSERT_NE(recording.encoder, nullptr);
  EXPECT_EQ(recording.encoder->SequenceCount(), 3);
  EXPECT_EQ(recording.encoder->pictures.count, 3);
}

TEST_F(PicturePromptsTest, ARecordingHasTheGroupsOfAVideo)
{
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerVideo = 3;
  const RecorderInput input = this->Gather("w3 <video> w5");
  const Recording recording = this->RecordBothWays(input);
  ASSERT_EQ(recording.pictures.count, 2);
  EXPECT_EQ(recording.pictures.contents[1].frame, 2);
  EXPECT_EQ(recording.pictures.contents[1].frames, 2);
  EXPECT_EQ(recording.tokens.text[2], "0: 0, 0");
  const std::int64_t last = recording.tokens.Count() - 3;
  EXPECT_THAT(recording.tokens.text[last], StartsWith("1: "));
  // The encoder sees the same groups, a patch for a token.
  const Recording& encoder = *recording.encoder;
  CheckRecording(encoder, "test");
  ASSERT_EQ(encoder.pictures.count, 2);
  EXPECT_EQ(encoder.pictures.pixels, recording.pictures.pixels);
  double sum = 0;
  for (int patch = 0; patch < 4; ++patch) // the first token's
  {
    sum += encoder.tokens.color.Row(patch)[1] / 4;
  }
  EXPECT_NEAR(recording.tokens.color.Row(2)[1], sum, 1e-6);
}

/// Each rank runs the encoder on the pictures of its texts.
TEST_F(PicturePromptsTest, RangesOfTextsHaveRangesOfPictures)
{
  this->Use("internvl", { 0, 1 });
  const RecorderInput input = this->Gather("<image>\nw4\n<image> w3");
  const auto model = this->Open();
  const std::vector<SequenceRange> ranges = EncoderRanges(model->GetModel().GetConfig(),
    input.input, { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 0, 3 }, { 3, 3 } });
  const auto pairs = [](const SequenceRange& range) { return std::pair(range.first, range.end); };
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  std::transform(ranges.begin(), ranges.end(), std::back_inserter(found), pairs);
  EXPECT_THAT(found, ElementsAre(Pair(0, 3), Pair(3, 3), Pair(3, 4), Pair(0, 4), Pair(4, 4)));
}

}
