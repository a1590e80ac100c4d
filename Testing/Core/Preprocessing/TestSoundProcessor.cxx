#include "Preprocessing/SoundProcessor.h"

#include "Base/Error.h"
#include "Base/Pi.h"
#include "ErrorMessage.h"
#include "Files/ArrayFile.h"
#include "ModelsOracle.h"
#include "Oracle.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

std::filesystem::path Whisper()
{
  return ModelsOracle("transformers/whisper");
}

TransformerConfig Encoder(std::int64_t bands, std::int64_t positions)
{
  TransformerConfig config;
  config.input = InputKind::Sound;
  config.melBands = bands;
  config.positions = positions;
  return config;
}

/// As the original's feature extractor computed them; a shorter sound is filled up.
TEST(SoundProcessor, FeaturesAreThoseOfTheOriginal)
{
  const ArrayFile oracle(Whisper() / "expected.safetensors");
  const SoundProcessor processor = ReadSoundProcessor(Whisper(), Encoder(16, 20));
  const LoadedArray expected = oracle.GetEntries().at("input_features").load();
  std::vector<double> all = expected.view.ToDouble();
  const std::size_t one = all.size() / 2;
  for (std::size_t i = 0; i < 2; ++i)
  {
    const Sound sound = ReadSound(Whisper() / ("sound-" + std::to_string(i) + ".wav"));
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(i * one);
    ExpectClose("input_features", LogMelFeatures(sound, processor),
      { all.begin() + first, all.begin() + first + static_cast<std::ptrdiff_t>(one) }, 2e-5);
  }
  SoundProcessor full; // Whisper's own bands and hop, for a second
  full.samples = 16000;
  ExpectClose("log_mel.80", LogMelFeatures(ReadSound(Whisper() / "sound-1.wav"), full),
    oracle.GetEntries().at("log_mel.80").load().view.ToDouble(), 2e-5);
}

/// As the original's feature extractors make them of the same files.
TEST(SoundProcessor, WaveformsAndFilterBanksAreThoseOfTheOriginal)
{
  for (const std::string name :
    { "wav2vec2-a", "wav2vec2-b", "hubert-b", "audio-spectrogram-transformer-a" })
  {
    const std::filesystem::path folder = AnyOracle("v5/sound/" + name);
    const TransformerConfig config = ReadTransformerConfig(folder / "config.json");
    const SoundProcessor processor = ReadSoundProcessor(folder, config);
    const ArrayFile oracle(folder / "expected.safetensors");
    for (const std::string number : { "0", "1" })
    {
      const std::vector<float> found =
        SoundFeatures(ReadSound(folder / ("sound-" + number + ".wav")), processor);
      const LoadedArray loaded = oracle.GetEntries().at(number + ".input_values").load();
      std::vector<double> expected = loaded.view.ToDouble();
      if (config.HasPatches()) // they are stored by frames
      {
        const std::vector<double> stored = expected;
        const std::int64_t frames = config.SoundFrames();
        for (std::int64_t i = 0; i < frames * config.melBands; ++i)
        {
          expected[i] = stored[i % frames * config.melBands + i / frames];
        }
      }
      ExpectClose(name, found, expected, 2e-5);
    }
  }
}

/// Settings of waveforms and filter banks that would change what is read, and are not known.
TEST(SoundProcessor, OtherSettingsOfEncodersAreNamed)
{
  const auto message = [](const std::string& model, const std::string& text)
  {
    const TransformerConfig config =
      ReadTransformerConfig(AnyOracle("v5/sound/" + model) / "config.json");
    return MessageOf<Error>([&] { ParseSoundProcessor(text, "file", config); });
  };
  const std::string ast = "audio-spectrogram-transformer-a";
  EXPECT_THAT(message("wav2vec2-a", R"({"feature_extractor_type": "ASTFeatureExtractor"})"),
    HasSubstr("file: expected the feature_extractor_type to be Wav2Vec2FeatureExtractor, as the "
              "model reads, found ASTFeatureExtractor."));
  EXPECT_THAT(message("wav2vec2-a", R"({"fmax": 7600})"), HasSubstr("'fmax' is 7600"));
  EXPECT_THAT(message("wav2vec2-a", R"({"padding_value": 1})"), HasSubstr("'padding_value' is 1"));
  EXPECT_THAT(
    message("wav2vec2-a", R"({"feature_size": 80})"), HasSubstr("'feature_size' to be 1"));
  EXPECT_THAT(message(ast, "{}"),
    HasSubstr("expected 16 bands and 44 frames, as the model reads, found 128 and 1024."));
  EXPECT_THAT(message(ast, R"({"num_mel_bins": 16, "max_length": 44, "mean": "x"})"),
    HasSubstr("expected 'mean' to be a number"));
  SoundProcessor processor;
  processor.kind = SoundProcessor::Kind::FilterBank;
  Sound sound;
  sound.rate = 16000;
  sound.samples.resize(399);
  EXPECT_THAT(MessageOf<OptionError>([&] { SoundFeatures(sound, processor); }),
    HasSubstr("expected a sound of at least 400 samples, found 399."));
}

/// Release 5 of transformers keeps them with those of the tokenizer.
TEST(SoundProcessor, SettingsMayBeAPartOfThoseOfAProcessor)
{
  const TemporaryDirectory folder;
  std::ofstream(folder.Path() / "processor_config.json")
    << R"({"processor_class": "Wav2Vec2Processor", "feature_extractor": {"do_normalize": false}})";
  const TransformerConfig config =
    ReadTransformerConfig(AnyOracle("v5/sound/wav2vec2-a") / "config.json");
  EXPECT_FALSE(ReadSoundProcessor(folder.Path(), config).normalizes);
}

/// A tone is loudest in the filter whose middle is nearest.
TEST(SoundProcessor, ATonesBandIsTheOneAroundIt)
{
  SoundProcessor processor;
  processor.samples = 16000;
  Sound sound;
  sound.rate = 16000;
  for (int i = 0; i < 16000; ++i)
  {
    sound.samples.push_back(static_cast<float>(std::sin(2 * Pi * 1000 * i / 16000)));
  }
  const std::vector<float> features = LogMelFeatures(sound, processor);
  // The scale's end is at 8000 Hz: mel 15 + 27 ln(8) / ln(6.4) = 45.2; 1000 Hz is mel 15, so the
  // middle of filter 15 / 45.2 * 81 - 1 = 25.9.
  const auto level = [&](std::int64_t band) { return features[band * 100 + 50]; };
  EXPECT_GT(level(26), level(24));
  EXPECT_GT(level(26), level(28));
  EXPECT_GT(level(26), level(60) + 0.5F);
}

/// Without a file it is Whisper's, for the bands and places of the model.
TEST(SoundProcessor, AFolderMayHaveNoSettings)
{
  const TemporaryDirectory folder;
  const SoundProcessor whole = ReadSoundProcessor(folder.Path(), Encoder(80, 1500));
  EXPECT_EQ(whole.samples, SoundProcessor().samples);
  EXPECT_EQ(whole.SecondsPerPlace(), 0.02);
  const SoundProcessor small = ReadSoundProcessor(folder.Path(), Encoder(16, 20));
  EXPECT_EQ(small.bands, 16);
  EXPECT_EQ(small.Frames(), 40);
}

TEST(SoundProcessor, BadSettingsAreNamed)
{
  const auto message = [](const std::string& text)
  { return MessageOf<ModelError>([&] { ParseSoundProcessor(text, "file", Encoder(80, 1500)); }); };
  EXPECT_NO_THROW(ParseSoundProcessor("{}", "file", Encoder(80, 1500)));
  EXPECT_THAT(message(R"({"feature_size": 128})"),
    HasSubstr("file: expected 80 bands and 3000 frames, as the model reads, found 128 and 3000."));
  EXPECT_THAT(message(R"({"hop_length": 0})"), HasSubstr("hop_length"));
  EXPECT_THAT(message(R"({"dither": 0.1})"),
    HasSubstr("file: 'dither' is 0.1, a step of preprocessing that is not known"));
  EXPECT_THAT(message(R"({"feature_extractor_type": "Wav2Vec2FeatureExtractor"})"),
    HasSubstr("file: expected the feature_extractor_type to be WhisperFeatureExtractor"));
  EXPECT_THAT(ParseSoundProcessor(R"({"of_mine": 3, "feature_extractor_type":
    "WhisperFeatureExtractor", "return_attention_mask": true})",
                "file", Encoder(80, 1500))
                .unknownSettings,
    ElementsAre("of_mine"));
  EXPECT_THAT(message(R"({"padding_value": 1})"), HasSubstr("'padding_value' is 1"));
  EXPECT_THAT(message(R"({"do_normalize": true})"), HasSubstr("'do_normalize' is true"));
  EXPECT_THAT(message(R"({"n_fft": 401})"), HasSubstr("an even n_fft"));
  EXPECT_THAT(message(R"({"sampling_rate": 8000})"), HasSubstr("at least 16000"));
  EXPECT_THAT(MessageOf<FormatError>([] { ParseSoundProcessor("[]", "file", Encoder(80, 1500)); }),
    HasSubstr("expected the configuration to be a JSON object"));
  Sound slow;
  slow.rate = 8000;
  slow.samples = { 0 };
  EXPECT_THAT(MessageOf<OptionError>([&] { LogMelFeatures(slow, SoundProcessor()); }),
    HasSubstr("expected a sound of 16000 samples per second"));
}

/// A WAV file of 16-bit samples.
std::string Wav(const std::vector<std::int16_t>& samples, std::uint16_t channels)
{
  const auto number = [](std::uint32_t value, int bytes)
  {
    std::string text;
    for (int i = 0; i < bytes; ++i)
    {
      text += static_cast<char>((value >> (8 * i)) & 0xFFU);
    }
    return text;
  };
  const auto size = static_cast<std::uint32_t>(2 * samples.size());
  std::string wav = "RIFF" + number(36 + size, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) +
                    number(channels, 2) + number(16000, 4) + number(16000U * 2 * channels, 4) +
                    number(2U * channels, 2) + number(16, 2) + "data" + number(size, 4);
  for (const std::int16_t sample : samples)
  {
    wav += number(static_cast<std::uint16_t>(sample), 2);
  }
  return wav;
}

class SoundFiles : public testing::Test
{
protected:
  TemporaryDirectory Folder;

  std::string Write(const std::string& bytes)
  {
    const std::filesystem::path path = this->Folder / "a.wav";
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
};

TEST_F(SoundFiles, ChannelsAreAveraged)
{
  const Sound sound = ReadSound(this->Write(Wav({ 16384, -16384, 16384, 0 }, 2)));
  EXPECT_EQ(sound.rate, 16000);
  EXPECT_EQ(sound.samples, (std::vector<float>{ 0, 0.25F }));
  EXPECT_TRUE(IsSound("a/B.WAV"));
  EXPECT_FALSE(IsSound("a.png"));
}

TEST_F(SoundFiles, BadFilesAreRefused)
{
  const auto message = [&](const std::string& bytes)
  {
    const std::string path = this->Write(bytes);
    return MessageOf<FormatError>([&] { ReadSound(path); });
  };
  EXPECT_THAT(message("no sound"), HasSubstr("a.wav: expected a sound, such as a .wav file"));
  EXPECT_THAT(message(""), HasSubstr("expected a sound"));
  EXPECT_THAT(message(Wav({}, 1)), HasSubstr("expected 1 to 268435456 samples"));
  EXPECT_THAT(MessageOf<FileError>([&] { ReadSound((this->Folder / "none.wav").string()); }),
    HasSubstr("none.wav: expected a file."));
  EXPECT_THAT(MessageOf<FileError>([&] { ReadSound(this->Folder.Path().string()); }),
    HasSubstr("expected a file."));
}

}
