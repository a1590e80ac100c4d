#include "Recorder/RecorderInput.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "SentencePieceBytes.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Ids = std::vector<std::int64_t>;

/// Marian with a tokenizer of its own for each language.
class MarianInput : public testing::Test
{
protected:
  void SetUp() override
  {
    this->Copy("marian");
    WriteBytes(this->Folder / "source.spm",
      SentencePieceFile(
        { { "<unk>", 0, 2 }, { "\u2581ab", -1 }, { "\u2581", -3 }, { "a", -2 }, { "b", -2 } }));
    WriteBytes(this->Folder / "target.spm",
      SentencePieceFile(
        { { "<unk>", 0, 2 }, { "\u2581a", -1 }, { "\u2581", -3 }, { "a", -2 }, { "b", -2 } }));
    WriteBytes(this->Folder / "vocab.json",
      R"({"</s>": 0, "<unk>": 1, "a": 2, "b": 3, "\u2581ab": 4, "\u2581a": 5, "\u2581": 6})");
  }

  void Copy(const std::string& name) const
  {
    const std::filesystem::path model = ModelsOracle("transformers/" + name);
    std::filesystem::copy(model / "model.safetensors", this->Folder / "model.safetensors",
      std::filesystem::copy_options::overwrite_existing);
    this->WriteConfig(ReadBytes(model / "config.json"));
  }

  void WriteConfig(const std::string& text) const
  {
    WriteBytes(this->Folder / "config.json", text);
  }

  RecorderInput Gather(const std::string& prompts, const std::string& targets) const
  {
    RecorderSources sources;
    sources.prompts = prompts;
    sources.targets = targets;
    return GatherInput(sources, *OpenTransformer::Open(this->Folder.Path(), ""));
  }

  TemporaryDirectory Folder;
};

/// The decoder's texts begin with its start token, and do not end.
TEST_F(MarianInput, SourcesAndTargetsAreSplitByTheirOwnModels)
{
  const RecorderInput input = this->Gather("ab b\nb", "ab b\na");
  EXPECT_THAT(input.input.source, ElementsAre(Ids{ 4, 6, 3, 0 }, Ids{ 6, 3, 0 }));
  EXPECT_THAT(input.input.tokens, ElementsAre(Ids{ 82, 5, 3, 6, 3 }, Ids{ 82, 5 }));
}

/// The target's 41 tokens are not those of the source, whose ids they share.
TEST_F(MarianInput, TargetsMayHaveAVocabularyOfTheirOwn)
{
  this->Copy("marian-two");
  std::string vocabulary = R"({"</s>": 0, "<unk>": 1, "\u2581": 2, "b": 3, "a": 4, "\u2581a": 5)";
  for (int id = 6; id < 41; ++id)
  {
    vocabulary += ", \"" + std::to_string(id) + "\": " + std::to_string(id);
  }
  WriteBytes(this->Folder / "target_vocab.json", vocabulary + "}");
  const RecorderInput input = this->Gather("ab b\nb", "ab b\na");
  EXPECT_THAT(input.input.source, ElementsAre(Ids{ 4, 6, 3, 0 }, Ids{ 6, 3, 0 }));
  EXPECT_THAT(input.input.tokens, ElementsAre(Ids{ 40, 5, 3, 2, 3 }, Ids{ 40, 5 }));
  EXPECT_THAT(input.sourceLabels, ElementsAre(" ab", " ", "b", "</s>", " ", "b", "</s>"));
  EXPECT_THAT(input.labels, ElementsAre("40", " a", "b", " ", "b", "40", " a"));
}

TEST_F(MarianInput, WithoutTargetsTheDecoderReadsItsStartAlone)
{
  EXPECT_THAT(this->Gather("ab\nb", "").input.tokens, ElementsAre(Ids{ 82 }, Ids{ 82 }));
}

TEST_F(MarianInput, TargetsThatDoNotFitAreRefused)
{
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Gather("ab\nb", "a"); }),
    HasSubstr("Targets: expected one of each of the 2 sequences, found 1"));
  std::string config = ReadBytes(this->Folder / "config.json");
  const std::string key = "decoder_start_token_id";
  config.replace(config.find(key), key.size(), "another_token_id");
  this->WriteConfig(config);
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Gather("ab", "a"); }),
    HasSubstr("a token with which targets begin, decoder_start_token_id"));
}

/// A folder with the settings and the weights of a model alone.
std::filesystem::path CopyModel(const std::string& name, const TemporaryDirectory& folder)
{
  const std::filesystem::path model = ModelsOracle("transformers/" + name);
  for (const char* file : { "config.json", "model.safetensors" })
  {
    std::filesystem::copy(model / file, folder / file);
  }
  return model;
}

/// Features need no settings of a processor of sound; they would only say how sound becomes them.
TEST(RecorderInput, FeaturesNeedNoProcessor)
{
  const TemporaryDirectory folder;
  RecorderSources sources;
  sources.soundFiles = { CopyModel("whisper", folder) / "expected.safetensors" };
  const RecorderInput input = GatherInput(sources, *OpenTransformer::Open(folder.Path(), ""));
  EXPECT_EQ(input.input.sounds, 2);
  EXPECT_EQ(input.sourceLabels.size(), 40U);
  EXPECT_EQ(input.sourceLabels[1], "0.02 s");
}

/// A waveform of any length: 2400 and 1333 samples, of which every 60 are a token.
TEST(RecorderInput, TokensOfWaveformsHaveTimes)
{
  const std::filesystem::path folder = AnyOracle("v5/sound/wav2vec2-a");
  RecorderSources sources;
  sources.soundFiles = { folder / "sound-0.wav", folder / "sound-1.wav" };
  const RecorderInput input = GatherInput(sources, *OpenTransformer::Open(folder, ""));
  EXPECT_EQ(input.input.samples, (std::vector<std::int64_t>{ 2400, 1333 }));
  ASSERT_EQ(input.labels.size(), 39U + 22);
  EXPECT_EQ(input.labels[38], "0.14 s"); // of 0.1425
  EXPECT_EQ(input.labels[39], "0.00 s");
  EXPECT_FALSE(input.IsEmpty());
  sources.targets = "9";
  EXPECT_THAT(
    MessageOf<OptionError>([&] { GatherInput(sources, *OpenTransformer::Open(folder, "")); }),
    HasSubstr("Targets: expected a model with an encoder and a decoder"));
}

/// Nor do pixels.
TEST(RecorderInput, PixelsNeedNoProcessor)
{
  const TemporaryDirectory folder;
  RecorderSources sources;
  sources.imageFiles = { CopyModel("dinov2", folder) / "expected.safetensors" };
  WriteBytes(folder / "preprocessor_config.json", "not JSON");
  EXPECT_THAT(MessageOf<FormatError>(
                [&] { GatherInput(sources, *OpenTransformer::Open(folder.Path(), "")); }),
    HasSubstr("preprocessor_config.json"));
  std::filesystem::remove(folder / "preprocessor_config.json");
  EXPECT_EQ(GatherInput(sources, *OpenTransformer::Open(folder.Path(), "")).input.images, 2);
}

}
