#include "RecorderInput.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "PicturePrompts.h"
#include "PicturesModel.h"
#include "RecordInput.h"
#include "RecordPictures.h"
#include "VisionProcessor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
    const ModelOracle oracle(this->Model->Oracle() / "expected.safetensors");
    std::vector<Ids> sequences;
    const Ids ids = oracle.Get("input_ids").ToInteger();
    const std::int64_t length = oracle.Get("input_ids").shape[1];
    for (std::int64_t s = 0; s < 2; ++s)
    {
      sequences.emplace_back();
      for (const std::int64_t place : oracle.Places(s))
      {
        sequences.back().push_back(ids[s * length + place]);
      }
    }
    return sequences;
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

  void ExpectPixels(const RecorderInput& found, const std::string& name) const
  {
    const ModelOracle oracle(this->Model->Oracle() / "expected.safetensors");
    std::vector<float> expected(oracle.Get(name).Count());
    oracle.Get(name).ToFloat(0, expected.size(), expected.data());
    ASSERT_LE(found.input.pixels.size(), expected.size());
    for (std::size_t i = 0; i < found.input.pixels.size(); ++i)
    {
      ASSERT_NEAR(found.input.pixels[i], expected[i], 1e-6);
    }
  }
};

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfLlava)
{
  this->Use("llava", { 0, 1 });
  const std::vector<Ids> expected = this->Expected();
  const RecorderInput input = this->Gather(
    TextOf(expected[0], { 60 }, " <image>") + "\n" + TextOf(expected[1], { 60 }, "<image>"));
  EXPECT_EQ(input.input.tokens, expected);
  EXPECT_THAT(input.input.tiles, ElementsAre(TilePlace{ 0 }, TilePlace{ 1 }));
  this->ExpectPixels(input, "pixel_values");
  EXPECT_EQ(input.pictures, this->Sources.imageFiles);
  EXPECT_THAT(input.warnings[0],
    HasSubstr("its 26 x 20 pixels (width x height) are resized and cropped to 12 x 12."));
}

/// Pictures are padded, so nothing of them is cut off.
TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfLlavaWithSiglip)
{
  this->Use("llava-siglip", { 0, 1 });
  const std::vector<Ids> expected = this->Expected();
  const RecorderInput input = this->Gather(
    TextOf(expected[0], { 60 }, " <image>") + "\n" + TextOf(expected[1], { 60 }, "<image>"));
  EXPECT_EQ(input.input.tokens, expected);
  this->ExpectPixels(input, "pixel_values");
  EXPECT_THAT(input.warnings, IsEmpty());
  const auto model = this->Open();
  std::string warning;
  const Recording kept = RecordInput(*model, input, {}, true, warning);
  CheckRecording(kept, "test");
  EXPECT_EQ(kept.encoder->pictures.HeightOf(0), 12);
  const Recording named = RecordInput(*model, input, {}, false, warning);
  for (int picture = 0; picture < 2; ++picture)
  {
    const auto pixels = FindPicture(kept.pictures, picture);
    const auto found = FindPicture(named.pictures, picture);
    const auto encoder = FindPicture(kept.encoder->pictures, picture);
    EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + 3 * 12 * 12, found.get()));
    EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + 3 * 12 * 12, encoder.get()));
  }
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfInternVL)
{
  for (const char* marker : { " <image>", "<IMG_CONTEXT>" })
  {
    this->Use("internvl", { 0, 1 });
    const std::vector<Ids> expected = this->Expected();
    const RecorderInput input = this->Gather(TextOf(expected[0], { 60, 61, 62 }, marker) + "\n" +
                                             TextOf(expected[1], { 60, 61, 62 }, marker));
    EXPECT_EQ(input.input.tokens, expected);
    EXPECT_EQ(input.input.images, 4);
    EXPECT_THAT(input.warnings, IsEmpty());
    this->ExpectPixels(input, "pixel_values");
  }
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfSmolVLM)
{
  this->Use("smolvlm", { 0 });
  const std::vector<Ids> expected = this->Expected();
  Ids around = { 39, 60, 61, 62 };
  for (std::int64_t token = 40; token < 48; ++token)
  {
    around.push_back(token);
  }
  const RecorderInput input =
    this->Gather(TextOf(expected[0], around, "<image>") + "\n" + TextOf(expected[1], {}, ""));
  EXPECT_EQ(input.input.tokens, expected);
  EXPECT_THAT(input.input.tiles, ElementsAre(TilePlace{ 0, 0, 0, 1, 2 }, TilePlace{ 0, 0, 1, 1, 2 },
                                   TilePlace{ 0, -1, -1, 1, 2 }));
  this->ExpectPixels(input, "pixel_values");
}

TEST_F(PicturePromptsTest, AreThoseOfTheOriginalOfQwen)
{
  this->Use("qwen2_5_vl", { 0, 1 });
  std::vector<Ids> expected = this->Expected();
  const RecorderInput input = this->Gather(TextOf(expected[0], { 60, 61, 62 }, " <image>") + "\n" +
                                           TextOf(expected[1], { 60, 61, 62 }, "<image>"));
  EXPECT_EQ(input.input.tokens, expected);
  this->ExpectPixels(input, "pixel_values");
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerFilm = 3;
  this->Sources.framesPerSecond = 4;
  expected = this->Expected();
  const RecorderInput film = this->Gather(TextOf(expected[1], { 59, 61, 62 }, "<video>"));
  EXPECT_EQ(film.input.tokens, std::vector<Ids>{ expected[1] });
  ASSERT_EQ(film.input.extents.size(), 1U);
  EXPECT_TRUE(film.input.extents[0].isFilm);
  EXPECT_EQ(film.input.extents[0].frames, 2);
  EXPECT_EQ(film.input.extents[0].seconds, 0.5);
  this->ExpectPixels(film, "pixel_values_videos");
}

/// Films have settings of their own, pictures keep theirs.
TEST_F(PicturePromptsTest, FramesAreThoseOfTheOriginalOfFilms)
{
  this->Use("qwen2_vl", { 1, 2, 3 });
  const std::filesystem::path film = ModelsOracle("transformers/qwen2_vl-film");
  std::filesystem::copy(
    film / FilmProcessorFile, std::filesystem::path(this->Model->Path()) / FilmProcessorFile);
  this->Sources.framesPerFilm = 3;
  const RecorderInput input = this->Gather("w3 <video> w5");
  const ModelOracle oracle(film / "expected.safetensors");
  ASSERT_EQ(input.input.extents.size(), 1U);
  EXPECT_THAT(oracle.Get("video_grid_thw").ToInteger(),
    ElementsAre(
      input.input.extents[0].frames, input.input.extents[0].rows, input.input.extents[0].columns));
  std::vector<float> expected(oracle.Get("pixel_values_videos").Count());
  oracle.Get("pixel_values_videos").ToFloat(0, expected.size(), expected.data());
  EXPECT_THAT(input.input.pixels, Pointwise(FloatNear(1e-6F), expected));
  const auto model = this->Open();
  std::string warning;
  const Recording kept = RecordInput(*model, input, {}, true, warning);
  const Recording named = RecordInput(*model, input, {}, false, warning);
  ASSERT_EQ(kept.pictures.count, 2);
  const auto pixels = FindPicture(kept.pictures, 1);
  const auto found = FindPicture(named.pictures, 1);
  EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + 3 * 24 * 32, found.get()));
  // By the mean and the deviation of red in the file.
  const std::size_t group = expected.size() / 2;
  EXPECT_EQ(pixels.get()[0], std::lround(255 * (expected[group] * 0.25 + 0.5)));
  this->Sources.framesPerFilm = 0;
  const RecorderInput pictures = this->Gather("w3 <image> w5 <image> <image>");
  EXPECT_EQ(pictures.input.extents[0].rows, 2);
  EXPECT_EQ(pictures.input.extents[0].columns, 4);
}

/// The prompts, token ids and pixels of films whose frames are pictures.
class FilmsInTiles
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
    std::filesystem::copy(this->Oracle / FilmProcessorFile,
      std::filesystem::path(this->Model->Path()) / FilmProcessorFile);
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

TEST_P(FilmsInTiles, AreWrittenAsTheOriginalDoes)
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
    std::int64_t films = 0;
    for (const std::string& text : texts)
    {
      films += text.find("<video>") != std::string::npos ? 1 : 0;
      films += text.find("<video>") != text.rfind("<video>") ? 1 : 0;
    }
    this->UseFrames(films * frames);
    std::vector<std::string> warnings;
    const VisionPixels pixels =
      ReadVisionPixels(this->Sources.imageFiles, frames, framesPerSecond, *model, warnings);
    const PicturePrompts prompts(*model, pixels, framesPerSecond);
    EXPECT_EQ(prompts.Count(), films);
    EXPECT_EQ(prompts.Expand(texts, "Prompts"), one["expected"].get<std::vector<std::string>>());
  }
}

TEST_P(FilmsInTiles, AreTheInputOfTheModel)
{
  const ModelOracle oracle(this->Oracle / "expected.safetensors");
  const nlohmann::json first = nlohmann::json::parse(oracle.Text("prompts"))[0];
  const std::string expected = first["expected"][0];
  this->UseFrames(3);
  this->Sources.framesPerFilm = 3;
  const RecorderInput input = this->Gather(first["texts"][0]);
  EXPECT_EQ(input.input.tokens, std::vector<Ids>{ this->Model->IdsOf(expected) });
  EXPECT_EQ(std::count(input.input.tokens[0].begin(), input.input.tokens[0].end(), 60), 3 * 4);
  std::vector<float> pixels(oracle.Get("pixel_values").Count());
  oracle.Get("pixel_values").ToFloat(0, pixels.size(), pixels.data());
  EXPECT_THAT(input.input.pixels, Pointwise(FloatNear(1e-6F), pixels));
  // With ids, the image token stands for the film, or is there for each of its tokens.
  this->Sources.prompts.clear();
  for (const std::string& ids : { std::string("3 60 5"), [&]
         {
           std::string all;
           for (const std::int64_t id : input.input.tokens[0])
           {
             all += std::to_string(id) + " ";
           }
           return all;
         }() })
  {
    this->Sources.tokenIds = ids;
    EXPECT_EQ(GatherInput(this->Sources, *this->Open()).input.tokens, input.input.tokens);
  }
  this->Sources.tokenIds = "3 60 60";
  EXPECT_EQ(MessageOf<OptionError>([&] { GatherInput(this->Sources, *this->Open()); }),
    "TokenIds: expected the token 60 once for each film of Images, 1, or for each of their tokens, "
    "12, found it 2 times.");
}

/// Frames are recorded as such, and found again in their files.
TEST_P(FilmsInTiles, AreRecorded)
{
  this->UseFrames(6);
  this->Sources.framesPerFilm = 3;
  const RecorderInput input = this->Gather("<video> w3\nw5 <video>");
  EXPECT_EQ(input.input.images, 6);
  const auto model = this->Open();
  std::string warning;
  const Recording kept = RecordInput(*model, input, {}, true, warning);
  CheckRecording(kept, "test");
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
  const Recording named = RecordInput(*model, input, {}, false, warning);
  EXPECT_EQ(named.pictures.sources[4].file, this->Sources.imageFiles[4]);
  for (int frame = 0; frame < 6; ++frame)
  {
    const auto expected = FindPicture(kept.pictures, frame);
    const auto found = FindPicture(named.pictures, frame);
    EXPECT_TRUE(std::equal(expected.get(), expected.get() + 3 * 16 * 16, found.get())) << frame;
  }
  EXPECT_EQ(kept.encoder->SequenceCount(), 6);
}

TEST_P(FilmsInTiles, HaveAMarkerOfTheirOwn)
{
  this->UseFrames(3);
  this->Sources.framesPerFilm = 3;
  EXPECT_EQ(this->Refusal("w1 <image> w3"),
    "Prompts: expected the marker <video> for films, found <image>; set FramesPerFilm to 0 if "
    "Images are pictures.");
  EXPECT_EQ(this->Refusal("<video> <video>"),
    "Prompts: expected a marker, <video>, for each film of Images, of which there is 1, found 2 in "
    "1 prompt.");
  this->Sources.framesPerFilm = 2;
  EXPECT_THAT(this->Refusal("<video>"), HasSubstr("that makes whole films of the 3 files"));
}

INSTANTIATE_TEST_SUITE_P(PicturePrompts, FilmsInTiles, Values("internvl", "smolvlm"),
  [](const auto& one) { return one.param; });

/// The tokens around the model's own marker are those that the text has.
TEST_F(PicturePromptsTest, TheOwnMarkerOfQwenStandsForItsTokensAlone)
{
  this->Use("qwen2_vl", { 0 });
  const std::vector<Ids> expected = this->Expected();
  EXPECT_EQ(this
              ->Gather(TextOf(expected[0], { 60, 61, 62 },
                "<|vision_start|><|image_pad|>"
                "<|vision_end|>"))
              .input.tokens[0],
    expected[0]);
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
  EXPECT_EQ(this->Refusal("w7\nw8\nw9"),
    "Prompts: expected a marker, <image>, for each picture of Images, of which there are 2, "
    "found 0 in 3 prompts.");
}

TEST_F(PicturePromptsTest, MarkersAndPicturesAreAsMany)
{
  this->Use("llava", { 0 });
  EXPECT_EQ(this->Refusal("w1 <image> <image>"),
    "Prompts: expected a marker, <image>, for each picture of Images, of which there is 1, "
    "found 2 in 1 prompt.");
  this->Use("llava");
  EXPECT_THAT(this->Refusal("w1 <image>"), HasSubstr("of which there are 0, found 1 in 1 prompt."));
  EXPECT_THAT(this->Gather("w1 w2").input.tokens, ElementsAre(Ids{ 1, 2 }));
  this->Use("qwen2_vl", { 0 });
  EXPECT_THAT(this->Refusal("<video> w1"),
    HasSubstr("expected the marker <image> or <|image_pad|> for pictures, found <video>; set "
              "FramesPerFilm"));
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
    HasSubstr(
      "expected a tokenizer with the token '</img>', which a model of architecture internvl "
      "has around pictures, found none"));
  this->Use("smolvlm", { 0 });
  this->Model->WriteTokenizer("<row_1_col_2>");
  EXPECT_THAT(this->Refusal("w1"), HasSubstr("with the token '<row_1_col_2>'"));
}

TEST_F(PicturePromptsTest, FilmsNeedAModelThatReadsThem)
{
  this->Use("llava", { 0, 1 });
  this->Sources.framesPerFilm = 2;
  EXPECT_EQ(this->Refusal("<video>"),
    "FramesPerFilm: expected 0, since a model of architecture llava reads no films, found 2.");
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerFilm = 2;
  EXPECT_THAT(this->Refusal("<video>"),
    HasSubstr("a number of frames that makes whole films of the 3 files of Images, found 2"));
  this->Sources.framesPerFilm = 3;
  this->Sources.framesPerSecond = 0;
  EXPECT_THAT(
    this->Refusal("<video>"), HasSubstr("FramesPerSecond: expected a number of at least 0.000001"));
}

TEST_F(PicturePromptsTest, PicturesGoWithTexts)
{
  this->Use("llava", { 0 });
  EXPECT_THAT(this->Refusal(""),
    HasSubstr("expected Prompts, PromptFile, TokenIds or a table of token ids beside Images for a "
              "model of architecture llava, found none."));
  this->Sources.tokenIds = "1";
  EXPECT_THAT(this->Refusal("w1"), HasSubstr("found 2: Prompts, TokenIds."));
  this->Sources.tokenIds.clear();
  this->Sources.maximumLength = 9;
  EXPECT_THAT(this->Refusal("w1 <image>"),
    HasSubstr("sequence 0: expected 9 image tokens, found 8; MaximumLength would cut off a "
              "picture."));
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
  const auto model = this->Open();
  std::string warning;
  const Recording recording = RecordInput(*model, input, {}, true, warning);
  EXPECT_EQ(warning, "");
  CheckRecording(recording, "test");
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
  // Without pixels there are the file and a hash, with which they are found again.
  const Recording named = RecordInput(*model, input, {}, false, warning);
  EXPECT_EQ(named.pictures.pixels, nullptr);
  const auto found = FindPicture(named.pictures, 0);
  EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + 3 * 32 * 16, found.get()));
}

TEST_F(PicturePromptsTest, ARecordingHasTheGroupsOfAFilm)
{
  this->Use("qwen2_vl", { 1, 2, 3 });
  this->Sources.framesPerFilm = 3;
  const RecorderInput input = this->Gather("w3 <video> w5");
  const auto model = this->Open();
  std::string warning;
  const Recording recording = RecordInput(*model, input, {}, true, warning);
  CheckRecording(recording, "test");
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
  const Recording named = RecordInput(*model, input, {}, false, warning);
  EXPECT_EQ(named.pictures.sources[1].file, this->Sources.imageFiles[2]);
  const auto pixels = FindPicture(recording.pictures, 1);
  const auto found = FindPicture(named.pictures, 1);
  const std::int64_t bytes = 3 * recording.pictures.HeightOf(1) * recording.pictures.WidthOf(1);
  EXPECT_TRUE(std::equal(pixels.get(), pixels.get() + bytes, found.get()));
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
