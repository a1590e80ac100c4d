// What the files beside a model's weights say, and is not used.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "ModelsOracle.h"
#include "Recorder/OpenTransformer.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A copy of a model, of which files are changed.
class FileWarnings : public testing::Test
{
protected:
  void Copy(const std::string& name) const
  {
    for (const auto& entry : std::filesystem::directory_iterator(ModelsOracle(name)))
    {
      if (entry.path().filename() != "expected.safetensors")
      {
        std::filesystem::copy(entry.path(), this->Folder / entry.path().filename());
      }
    }
  }

  void Add(const char* file, const std::string& key, const nlohmann::json& value) const
  {
    const std::filesystem::path path = this->Folder / file;
    nlohmann::json settings = ParseJson(ReadBytes(path), path.string());
    settings[key] = value;
    WriteBytes(path, settings.dump());
  }

  std::shared_ptr<const OpenTransformer> Open() const
  {
    return OpenTransformer::Open(this->Folder.Path(), "");
  }

  TemporaryDirectory Folder;
};

TEST_F(FileWarnings, OfPreprocessorsNameTheirSettings)
{
  this->Copy("transformers/dinov2-registers-larger");
  EXPECT_THAT(this->Open()->FileWarnings(), IsEmpty());
  this->Add("preprocessor_config.json", "of_mine", 3);
  EXPECT_THAT(this->Open()->FileWarnings(),
    ElementsAre(this->Folder.Path().string() +
                ": these settings of preprocessor_config.json are not known, and are not used: "
                "'of_mine'."));
  this->Add(
    "preprocessor_config.json", "keep_aspect_ratio", true); // DINOv2 has its size from there
  EXPECT_THAT(MessageOf<ModelError>([&] { this->Open(); }),
    HasSubstr("preprocessor_config.json: 'keep_aspect_ratio' is true, a step of preprocessing"));
}

TEST_F(FileWarnings, NameCodeThatIsNotRun)
{
  this->Copy("transformers/qwen3-v5");
  const auto warnings = [&]
  { return UnusedWarnings(this->Folder.Path(), this->Open()->GetModel()); };
  this->Add("config.json", "auto_map", { { "AutoTokenizer", "tokenization_own.Own" } });
  EXPECT_THAT(warnings(), IsEmpty());
  this->Add("config.json", "auto_map", { { "AutoModel", "modeling_own.Own" } });
  EXPECT_THAT(warnings(),
    ElementsAre(this->Folder.Path().string() +
                ": its own code, which 'auto_map' names, is not run: it is run as the qwen3 of "
                "transformers."));
}

TEST_F(FileWarnings, NameTokenizersOfOtherSteps)
{
  this->Copy("transformers/qwen3-v5");
  WriteBytes(this->Folder / "tokenizer.json", R"({"model": {"vocab": {}}})");
  WriteBytes(this->Folder / "tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_THAT(this->Open()->FileWarnings(),
    ElementsAre(HasSubstr("tokenizer.json: decides how texts are normalized and split")));
}

}
