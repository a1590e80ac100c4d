#include "CorpusFile.h"
#include "CorpusRun.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace
{

struct CorpusFileTest : testing::Test
{
  TemporaryDirectory folder;
  std::shared_ptr<const OpenTransformer> model =
    OpenTransformer::Open(fs::path(ATLAS_DATA_DIR) / "models" / "language-2", "");
  CorpusOptions options;
  CorpusRunOptions run;

  CorpusFileTest()
  {
    this->options.batch = 200;
    this->options.samples = 20;
    this->options.contexts = 3;
    this->run.files = { (fs::path(ATLAS_SOURCE_DIR) / "README.md").string() };
    this->run.tokenLimit = 1000;
  }

  CorpusStatistics Measured() const
  {
    CorpusStatistics statistics = BeginCorpus(*this->model, "a model", this->options);
    MeasureCorpus(*this->model, this->run, statistics);
    return statistics;
  }
};

}

/// Statistics of rounded products say so, and are not joined to those of floats.
TEST_F(CorpusFileTest, KeepsThePrecisionOfProducts)
{
  const CorpusStatistics exact = BeginCorpus(*this->model, "a model", this->options);
  EXPECT_EQ(CorpusFromBytes(CorpusToBytes(exact), "test").precision, ProductPrecision::Single);
  const auto rounded = OpenTransformer::Open(
    fs::path(ATLAS_DATA_DIR) / "models" / "language-2", "", false, ProductPrecision::Bfloat16);
  const CorpusStatistics other = BeginCorpus(*rounded, "a model", this->options);
  const CorpusStatistics read = CorpusFromBytes(CorpusToBytes(other), "test");
  EXPECT_EQ(read.precision, ProductPrecision::Bfloat16);
  EXPECT_NO_THROW(RequireSameOptions(read, other, "test"));
  EXPECT_THROW(RequireSameOptions(read, exact, "test"), OptionError);
}

/// A run that was stopped, written, read and goes on gives the bytes of one that was not.
TEST_F(CorpusFileTest, IsReadAndGoesOn)
{
  const fs::path whole = this->folder / "whole.safetensors";
  const fs::path part = this->folder / "part.safetensors";
  WriteCorpus(whole, this->Measured());
  this->run.tokenLimit = 500;
  WriteCorpus(part, this->Measured());
  EXPECT_NE(ReadBytes(part), ReadBytes(whole));
  CorpusStatistics read = ReadCorpus(part);
  EXPECT_EQ(read.model, "a model");
  EXPECT_EQ(read.texts.size(), read.ids.size());
  this->run.tokenLimit = 1000;
  MeasureCorpus(*this->model, this->run, read);
  WriteCorpus(part, read);
  EXPECT_EQ(ReadBytes(part), ReadBytes(whole));
  const std::vector<char> bytes = CorpusToBytes(read);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), ReadBytes(whole));
  EXPECT_EQ(CorpusToBytes(CorpusFromBytes(bytes, "test")), bytes);
}

TEST_F(CorpusFileTest, GoesOnWithTheSameFilesAlone)
{
  const std::string first = (this->folder / "a.txt").string();
  const std::string second = (this->folder / "b.txt").string();
  WriteBytes(first, "In the beginning God created the heaven and the earth.\n");
  WriteBytes(second, "And God said, Let there be light.\n");
  this->options.batch = 1; // so that batches end where the first file does
  this->run.files = { first };
  CorpusStatistics statistics = CorpusFromBytes(CorpusToBytes(this->Measured()), "test");
  this->run.files = { second };
  EXPECT_THAT(MessageOf<OptionError>([&] { MeasureCorpus(*this->model, this->run, statistics); }),
    HasSubstr("expected file 1 of 55 bytes, as it was measured before, found " + second));
  this->run.files = { first, second };
  const std::int64_t tokens = statistics.tokens;
  MeasureCorpus(*this->model, this->run, statistics);
  EXPECT_GT(statistics.tokens, tokens);
  EXPECT_EQ(CorpusToBytes(statistics), CorpusToBytes(this->Measured()));
}

TEST_F(CorpusFileTest, WithoutContextsSamplesAndAgreement)
{
  this->options.samples = 0;
  this->options.contexts = 0;
  this->options.agreement = false;
  const CorpusStatistics statistics = this->Measured();
  const std::vector<char> bytes = CorpusToBytes(statistics);
  EXPECT_EQ(CorpusToBytes(CorpusFromBytes(bytes, "test")), bytes);
}

TEST_F(CorpusFileTest, RefusesOtherFiles)
{
  const CorpusStatistics statistics = this->Measured();
  const fs::path path = this->folder / "a.safetensors";
  WriteCorpus(path, statistics);
  const SafetensorsFile file(path);
  const auto message = [&](const Metadata& metadata, const TensorViews& tensors)
  {
    const fs::path other = this->folder / "b.safetensors";
    WriteSafetensorViews(other, tensors, metadata);
    return MessageOf<Error>([&] { ReadCorpus(other); });
  };
  Metadata metadata = file.GetMetadata();
  metadata["format"] = "another";
  EXPECT_THAT(message(metadata, file.GetTensors()), HasSubstr("expected statistics of a corpus"));
  for (const auto& [name, view] : file.GetTensors())
  {
    TensorViews tensors = file.GetTensors();
    tensors.erase(name);
    EXPECT_THAT(message(file.GetMetadata(), tensors),
      HasSubstr("expected the tensor " + name + ", found none"));
    if (view.shape.back() > 1)
    {
      tensors = file.GetTensors();
      tensors[name].shape.back() -= 1;
      EXPECT_THAT(message(file.GetMetadata(), tensors), HasSubstr("expected ")) << name;
    }
  }
  metadata = file.GetMetadata();
  metadata["sizes"] = "{}";
  EXPECT_THAT(message(metadata, file.GetTensors()), HasSubstr("the entry sizes"));
  metadata = file.GetMetadata();
  metadata["options"] = "{\"split\": 3}";
  EXPECT_THAT(message(metadata, file.GetTensors()), HasSubstr("the entry options"));
  const std::string bytes = ReadBytes(path);
  WriteBytes(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(MessageOf<Error>([&] { ReadCorpus(path); }), HasSubstr("a.safetensors"));
}
