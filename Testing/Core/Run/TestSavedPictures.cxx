// Models of pictures among words as release 5 of transformers saves them, from the files of
// pictures and a prompt on, against what it computes. The layout of these files is in
// Testing/Oracle/v5/README.md.

#include "ModelsOracle.h"
#include "OracleFile.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "Preprocessing/PictureTokens.h"
#include "Preprocessing/RecordPictures.h"
#include "Recorder/OpenTransformer.h"
#include "Recorder/RecordInput.h"
#include "Recorder/RecorderInput.h"
#include "Recording/RecordingFile.h"
#include "Refusals.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "WholeRuns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

class SavedPictures : public testing::TestWithParam<std::string>
{
protected:
  std::filesystem::path Folder = AnyOracle(std::filesystem::path("v5/vlm") / this->GetParam());
  OracleFile Expected{ this->Folder / "expected.safetensors" };
  std::shared_ptr<const OpenTransformer> Open = OpenTransformer::Open(this->Folder, "");
  const Transformer& Model = this->Open->GetModel();

  /// The prompt with its pictures, as a user gives them.
  RecorderInput Gather(PixelMaker maker = PixelMaker::Pillow) const
  {
    RecorderSources sources;
    sources.prompts = this->Expected.Text("prompt");
    sources.promptFormat = PromptFormat::OneText;
    sources.pixels = maker;
    for (const char* name : { "picture.png", "picture-1.png" })
    {
      if (std::filesystem::exists(this->Folder / name))
      {
        sources.imageFiles.push_back((this->Folder / name).string());
      }
    }
    return GatherInput(sources, *this->Open);
  }

  static RecordOptions All()
  {
    RecordOptions options;
    options.residual = true;
    options.logits = true;
    return options;
  }

  /// Pixels of the original code in the order of ours.
  std::vector<float> Pixels(const std::string& name, const TransformerInput& input) const
  {
    const std::vector<float> all = this->Expected.Floats(name);
    const Shape& shape = this->Expected.ShapeOf(name);
    std::vector<float> pixels;
    if (shape.size() == 2 || input.images == shape[0]) // patches, or images
    {
      return all;
    }
    if (shape.size() == 5) // all of each picture, then its tiles, and zeros
    {
      const std::int64_t size = shape[2] * shape[3] * shape[4];
      std::int64_t next = 0; // tile
      for (std::size_t i = 0; i < input.tiles.size(); ++i)
      {
        const TilePlace& tile = input.tiles[i];
        next = i == 0 || input.tiles[i - 1].picture != tile.picture ? 1 : next;
        const auto from =
          all.begin() + (tile.picture * shape[1] + (tile.IsWhole() ? 0 : next++)) * size;
        pixels.insert(pixels.end(), from, from + size);
      }
      return pixels;
    }
    // Of any size, with zeros at the right and below.
    const VisionConfig& vision = *this->Model.GetConfig().vision;
    const std::int64_t side = vision.encoder->patchHeight;
    for (std::size_t i = 0; i < input.extents.size(); ++i)
    {
      TransformerInput one;
      one.extents = { input.extents[i] };
      for (const RotaryPlace& place : PatchPlaces(vision.merge, one))
      {
        for (std::int64_t channel = 0; channel < shape[1]; ++channel)
        {
          for (std::int64_t y = 0; y < side; ++y)
          {
            const std::int64_t line =
              (static_cast<std::int64_t>(i) * shape[1] + channel) * shape[2] + place[1] * side + y;
            const auto from = all.begin() + line * shape[3] + place[2] * side;
            pixels.insert(pixels.end(), from, from + side);
          }
        }
      }
    }
    return pixels;
  }

public:
  static std::vector<std::string> Names()
  {
    std::set<std::string> names;
    for (const std::filesystem::path& folder : AllOracles("v5/vlm"))
    {
      for (const auto& entry : std::filesystem::directory_iterator(folder))
      {
        names.insert(entry.path().filename().string());
      }
    }
    return { names.begin(), names.end() };
  }
};

INSTANTIATE_TEST_SUITE_P(, SavedPictures, testing::ValuesIn(SavedPictures::Names()),
  [](const auto& test) { return TestName(test.param); });

TEST_P(SavedPictures, TokensAreThoseOfTheOriginalProcessor)
{
  const RecorderInput read = this->Gather();
  EXPECT_EQ(read.input.tokens.at(0), this->Expected.Integers("input_ids"));
  EXPECT_THAT(this->Model.GetConfig().unknownSettings, testing::IsEmpty());
}

/// Those of the processors with Pillow, and of those with torchvision where they are there.
TEST_P(SavedPictures, PixelsAreThoseOfTheOriginalProcessors)
{
  for (const auto& [maker, name] : { std::pair(PixelMaker::Pillow, "pixel_values"),
         std::pair(PixelMaker::Torchvision, "pixels.torchvision") })
  {
    if (this->Expected.Has(name))
    {
      const TransformerInput input = this->Gather(maker).input;
      EXPECT_TRUE(input.pixels == this->Pixels(name, input)) << name;
    }
  }
}

TEST_P(SavedPictures, ComputeWhatTheOriginalDoes)
{
  const TransformerInput input = this->Gather().input;
  const Recording found = RecordTransformer(this->Model, input, All());
  CheckRecording(found, "recording");
  TensorViews expected;
  for (const auto& [name, view] : this->Expected.Tensors())
  {
    TensorView one = view;
    one.shape.insert(one.shape.begin(), 1);
    const bool isAttention = name.substr(0, 10) == "attention.";
    const std::int64_t layer =
      isAttention ? LayerOfAttention(this->Model.GetConfig(), std::stoll(name.substr(10))) : 0;
    expected[isAttention ? "layer." + std::to_string(layer) + ".attention" : name] = one;
  }
  ExpectedPlaces places;
  for (std::int64_t row = 0; row < found.tokens.Count(); ++row)
  {
    places.push_back({ row, 0, row });
  }
  const PartParity parity = { found, expected, "", places, places };
  std::map<std::string, double> deviations = parity.Deviations();
  EXPECT_EQ(NamesOf(deviations), "attention");
  const double deviation = parity.Deviation("logits", found.logits, places);
  // In units of the largest logit.
  const std::vector<double> logits = this->Expected.Values("logits");
  const double largest = std::abs(*std::max_element(
    logits.begin(), logits.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  deviations["logits"] = deviation / largest;
  ExpectSmall(this->GetParam(), deviations);
  deviations["logits"] = deviation;
  Write(TestName(this->GetParam() + "_safetensors5"),
    ParityRow{ this->GetParam(), "", "safetensors, transformers 5", "F32", deviations });
}

TEST_P(SavedPictures, GreedyTokensAreThoseOfWholeRuns)
{
  ExpectGreedy(this->Model, this->Gather().input, 4);
}

TEST_P(SavedPictures, ThreadsAndRangesDoNotMatter)
{
  const TransformerInput input = this->Gather().input;
  RecordOptions options = All();
  options.threads = 3;
  const Recording found = RecordTransformer(this->Model, input, options);
  options.threads = 1;
  ExpectEqual(RecordTransformer(this->Model, input, options), found);
  ExpectRangesAddUp(this->Model, input, options, found);
}

/// What users see: the recording with its pictures, and how their pixels were made, in a file.
TEST_P(SavedPictures, GiveRecordingsThatFilesKeep)
{
  const TemporaryDirectory folder;
  for (const PixelMaker maker : { PixelMaker::Pillow, PixelMaker::Torchvision })
  {
    for (const bool keepsPixels : { true, false })
    {
      std::string warning;
      const RecorderInput input = this->Gather(maker);
      const Recording found = RecordInput(*this->Open, input, All(), keepsPixels, warning);
      EXPECT_EQ(warning, "");
      EXPECT_EQ(found.pixels, Name(maker));
      WriteRecording(folder / "recording.safetensors", found);
      const Recording read = ReadRecording(folder / "recording.safetensors").recording;
      ExpectEqual(read, found);
      EXPECT_EQ(read.pixels, found.pixels);
      EXPECT_EQ(read.tokens.keyEnd, found.tokens.keyEnd);
      for (std::int64_t i = 0; i < read.pictures.count; ++i)
      {
        EXPECT_NE(FindPicture(read.pictures, i), nullptr); // from its file, if it is not here
      }
    }
  }
}

/// Release 4 of transformers saves the experts of Qwen3-VL with inputs first.
TEST(SavedExperts, MayHaveInputsFirst)
{
  const std::shared_ptr<const OpenTransformer> open =
    OpenTransformer::Open(AnyOracle("v5/vlm/qwen3_vl_moe"), "");
  const Transformer& stored = open->GetModel();
  TensorViews views = stored.GetFiles().GetTensors();
  std::vector<std::vector<float>> kept;
  kept.reserve(views.size());
  for (auto& [name, view] : views)
  {
    if (view.shape.size() != 3 || name.find("experts.") == std::string::npos)
    {
      continue;
    }
    const Shape shape = view.shape;
    std::vector<float> values(view.Count());
    view.ToFloat(0, values.size(), values.data());
    std::vector<float>& moved = kept.emplace_back();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i)
    {
      const std::int64_t expert = i / (shape[1] * shape[2]);
      const std::int64_t input = i / shape[1] % shape[2];
      moved.push_back(values[(expert * shape[1] + i % shape[1]) * shape[2] + input]);
    }
    view = { DType::F32, { shape[0], shape[2], shape[1] },
      reinterpret_cast<const std::byte*>(moved.data()) };
  }
  EXPECT_EQ(kept.size(), 4U);
  TransformerInput input;
  input.tokens = { { 57, 61, 20, 9, 12 } };
  RecordOptions options;
  options.logits = true;
  const Recording found = RecordTransformer(
    Transformer(stored.GetConfig(), WeightFiles(views, "model.safetensors")), input, options);
  const Recording expected = RecordTransformer(stored, input, options);
  for (std::uint64_t i = 0; i < expected.logits.Count(); ++i)
  {
    EXPECT_NEAR(found.logits.values.get()[i], expected.logits.values.get()[i], 1e-5);
  }
}

/// MLX has the colors of patches last. A file with its text alone is run as text.
TEST(SavedPicturesOfMlx, ComputeTheSame)
{
  const std::shared_ptr<const OpenTransformer> open =
    OpenTransformer::Open(AnyOracle("v5/vlm/qwen3_5"), "");
  const Transformer& stored = open->GetModel();
  TensorViews views = stored.GetFiles().GetTensors();
  TensorView& patches = views.at("model.visual.patch_embed.proj.weight");
  ASSERT_EQ(patches.shape, (Shape{ 32, 3, 2, 8, 8 }));
  std::vector<float> values(patches.Count());
  patches.ToFloat(0, values.size(), values.data());
  std::vector<float> moved;
  for (std::size_t output = 0; output < 32; ++output)
  {
    for (std::size_t pixel = 0; pixel < 128; ++pixel)
    {
      for (std::size_t color = 0; color < 3; ++color)
      {
        moved.push_back(values[(output * 3 + color) * 128 + pixel]);
      }
    }
  }
  patches = { DType::F32, { 32, 2, 8, 8, 3 }, reinterpret_cast<const std::byte*>(moved.data()) };
  const Transformer model(stored.GetConfig(), WeightFiles(views, "model.safetensors"));
  TransformerInput input;
  input.tokens = { { 57, 6, 61, 20 } };
  input.extents.emplace_back();
  input.extents[0].rows = input.extents[0].columns = 2;
  for (std::size_t i = 0; i < 4 * 384; ++i)
  {
    input.pixels.push_back(std::sin(static_cast<float>(i)));
  }
  ExpectEqual(RecordTransformer(model, input, {}), RecordTransformer(stored, input, {}));
  for (auto view = views.begin(); view != views.end();)
  {
    view = view->first.find("visual") != std::string::npos ? views.erase(view) : std::next(view);
  }
  const Transformer text(stored.GetConfig(), WeightFiles(views, "model.safetensors"));
  EXPECT_EQ(text.GetConfig().vision, nullptr);
  EXPECT_THAT(UnusedWarnings("some", text),
    testing::ElementsAre(
      testing::HasSubstr("some: is run as a model of texts, without the encoder of pictures")));
  EXPECT_THAT(UnusedWarnings("some", stored), testing::IsEmpty());
  TransformerInput words;
  words.tokens = { { 57, 61, 20 } };
  ExpectEqual(RecordTransformer(text, words, {}), RecordTransformer(stored, words, {}));
}

/// Its text alone would not see whole prompts. Those of other runs are no pictures.
TEST(SavedPaliGemma, NeedsItsPictures)
{
  const Transformer model = Transformer::Read(AnyOracle("v5/vlm/paligemma"));
  TensorViews views = model.GetFiles().GetTensors();
  for (auto view = views.begin(); view != views.end();)
  {
    const bool isOfPictures = view->first.find("language_model") == std::string::npos;
    view = isOfPictures ? views.erase(view) : std::next(view);
  }
  ASSERT_FALSE(views.empty());
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { Transformer(model.GetConfig(), WeightFiles(views, "model.safetensors")); }),
    testing::HasSubstr("is missing"));
  TransformerInput input;
  input.tokens = { { 5, 6 } };
  RecordOptions options;
  options.interventions.list = { { { ActivationKind::Residual, 0 }, Replacement::Source } };
  options.interventions.source = input;
  EXPECT_THAT(MessageOf<ModelError>([&] { RecordTransformer(model, input, options); }),
    testing::HasSubstr("a model without an encoder beside its decoder, found paligemma"));
}

/// By hand, with the rules of the original: the size is that of 4 frames, of which the last is
/// there twice, and each group of frames has its time before it.
TEST(SavedVideos, OfQwen3HaveTheTimesOfTheirFrames)
{
  const std::filesystem::path folder = AnyOracle("v5/vlm/qwen3_vl");
  const std::shared_ptr<const OpenTransformer> open = OpenTransformer::Open(folder, "");
  RecorderSources sources;
  sources.prompts = "a<video>b";
  sources.promptFormat = PromptFormat::OneText;
  sources.imageFiles.assign(3, (folder / "picture.png").string());
  sources.framesPerVideo = 3;
  sources.framesPerSecond = 2;
  const TransformerInput input = GatherInput(sources, *open).input;
  ASSERT_EQ(input.extents.size(), 1U);
  EXPECT_EQ(input.extents[0].frames, 2);
  EXPECT_EQ(input.extents[0].rows, 192 / 16);
  EXPECT_EQ(input.extents[0].columns, 288 / 16);
  const Tokenizer& tokenizer = open->GetTokenizer();
  std::vector<std::int64_t> expected = tokenizer.EncodeIds("a");
  for (const char* time : { "<0.2 seconds>", "<1.0 seconds>" })
  {
    for (const std::int64_t id : tokenizer.EncodeIds(time))
    {
      expected.push_back(id);
    }
    expected.push_back(4); // <|vision_start|>
    expected.insert(expected.end(), 6 * 9, 7);
    expected.push_back(5); // <|vision_end|>
  }
  expected.push_back(tokenizer.EncodeIds("b").front());
  EXPECT_EQ(input.tokens.at(0), expected);
  // Frames are pictures of their own: the text goes on after the longer side, of 9 tokens.
  const std::vector<RotaryPlace> places = TextPlaces(open->GetModel().GetConfig(), input);
  EXPECT_THAT(places.at(14), testing::Each(14));
  EXPECT_THAT(places.at(15 + 53), testing::ElementsAre(15, 15 + 5, 15 + 8));
  EXPECT_THAT(places.at(15 + 54), testing::Each(24));
  EXPECT_THAT(places.back(), testing::Each(49));
  ExpectGreedy(open->GetModel(), input, 3);
}

}
