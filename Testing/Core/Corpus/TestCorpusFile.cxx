#include "CorpusFile.h"
#include "CorpusRun.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "JsonText.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
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

  CorpusStatistics Continued(CorpusStatistics earlier) const
  {
    return ContinueCorpus(*this->model, std::move(earlier),
      BeginCorpus(*this->model, "this model", this->options), this->run.files, "part.safetensors");
  }

  /// Why statistics cannot go on.
  std::string Refusal(const CorpusStatistics& earlier) const
  {
    return MessageOf<OptionError>([&] { this->Continued(earlier); });
  }
};

/// A model with its tokenizer, whose settings and weights can be changed.
std::shared_ptr<const OpenTransformer> Changed(const OpenTransformer& model, const char* name,
  const std::function<void(TransformerConfig&, Tensors&)>& change)
{
  ModelInMemory changed;
  changed.config = model.GetModel().GetConfig();
  Tensors tensors;
  for (const auto& [tensor, view] : model.GetModel().GetFiles().GetTensors())
  {
    tensors[tensor] = { view.dtype, view.shape, { view.data, view.data + view.Bytes() } };
  }
  change(changed.config, tensors);
  changed.weights = std::make_shared<const Tensors>(std::move(tensors));
  const fs::path folder = fs::path(ATLAS_DATA_DIR) / "models" / "language-2";
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
  {
    if (entry.path().extension() == ".json")
    {
      files[entry.path().filename().string()] = ReadBytes(entry.path());
    }
  }
  changed.files = std::make_shared<const std::map<std::string, std::string>>(std::move(files));
  return OpenTransformer::Keep(std::string("training:test-corpus-") + name, changed);
}

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
  CorpusStatistics read = this->Continued(ReadCorpus(part));
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

/// Another model of the same shape, in one setting or one bit of a weight.
TEST_F(CorpusFileTest, GoesOnWithTheSameModelAlone)
{
  this->run.tokenLimit = 300;
  const CorpusStatistics earlier = this->Measured();
  EXPECT_EQ(CorpusToBytes(this->Continued(earlier)), CorpusToBytes(earlier));
  const auto own = this->model;
  const auto keep = [](TransformerConfig&, Tensors&) {};
  this->model = Changed(*own, "same", keep);
  EXPECT_NO_THROW(this->Continued(earlier));
  this->model = Changed(*own, "weight", [](TransformerConfig&, Tensors& tensors)
    { tensors.rbegin()->second.bytes[0] ^= std::byte{ 1 }; });
  EXPECT_EQ(this->Refusal(earlier),
    "part.safetensors: expected statistics of the model this model, found those of one with other "
    "weights, then at a model.");
  this->model =
    Changed(*own, "setting", [](TransformerConfig& config, Tensors&) { config.epsilon *= 2; });
  EXPECT_EQ(this->Refusal(earlier),
    "part.safetensors: expected statistics of the model this model, found those of one with other "
    "settings, then at a model.");
}

/// Other texts with as many bytes, and even as many tokens.
TEST_F(CorpusFileTest, GoesOnWithTheSameTextAlone)
{
  const std::string first = (this->folder / "a.txt").string();
  const std::string second = (this->folder / "b.txt").string();
  const std::string text = "And God saw the light, that it was good.\n";
  WriteBytes(first, text);
  WriteBytes(second, text + text);
  this->options.batch = 1;
  this->run.files = { first, second };
  this->run.tokenLimit = 0;
  const CorpusStatistics whole = this->Measured();
  ASSERT_EQ(whole.textHashes.size(), 2);
  this->run.tokenLimit = whole.tokens / 3 + 1; // ends in the second file
  const CorpusStatistics earlier = CorpusFromBytes(CorpusToBytes(this->Measured()), "test");
  ASSERT_EQ(earlier.next.file, 1);
  EXPECT_NO_THROW(this->Continued(earlier));
  for (const std::string& changed : { first, second })
  {
    const std::string before = ReadBytes(changed);
    std::string other = before;
    other.replace(other.find("God"), 3, "Dog");
    WriteBytes(changed, other);
    EXPECT_EQ(this->Refusal(earlier), "part.safetensors: expected statistics of these texts, found "
                                      "that " +
                                        changed + " had other tokens when it was measured.");
    WriteBytes(changed, before);
  }
  std::swap(this->run.files[0], this->run.files[1]);
  EXPECT_THAT(this->Refusal(earlier), HasSubstr("expected file 1 of 41 bytes"));
  std::swap(this->run.files[0], this->run.files[1]);
  this->run.tokenLimit = 0;
  CorpusStatistics goesOn = this->Continued(earlier);
  MeasureCorpus(*this->model, this->run, goesOn);
  EXPECT_EQ(CorpusToBytes(goesOn), CorpusToBytes(whole));
}

/// The file of an earlier version that is shipped.
TEST_F(CorpusFileTest, OlderFilesAreShownButDoNotGoOn)
{
  CorpusStatistics older = this->Measured();
  older.fingerprint = {};
  older.textHashes.clear();
  const std::vector<char> bytes = CorpusToBytes(older);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()).find("fingerprints"), std::string::npos);
  const CorpusStatistics read = CorpusFromBytes(bytes, "test");
  EXPECT_EQ(read.tokens, older.tokens);
  EXPECT_EQ(this->Refusal(read),
    "part.safetensors: expected statistics that say of which model and texts they are, found those "
    "of an older version, which can be shown but not continued.");
  const CorpusStatistics shipped =
    ReadCorpus(fs::path(ATLAS_DATA_DIR) / "corpus" / "language-2.safetensors");
  EXPECT_EQ(shipped.heads.size(), 16);
  // Which stays so when settings are added that this model does not have.
  EXPECT_TRUE(shipped.fingerprint == FingerprintOf(this->model->GetModel()));
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
  metadata = file.GetMetadata();
  metadata["fingerprints"] = "{}";
  EXPECT_THAT(message(metadata, file.GetTensors()), HasSubstr("the entry fingerprints"));
  for (const auto& [option, value] : std::map<std::string, int>{ { "window", 1 }, { "overlap", 70 },
         { "contexts", 1001 }, { "samples", -1 }, { "batch", 0 } })
  {
    nlohmann::json changed = nlohmann::json::parse(file.GetMetadata().at("options"));
    changed[option] = value;
    metadata = file.GetMetadata();
    metadata["options"] = changed.dump();
    EXPECT_THAT(message(metadata, file.GetTensors()),
      HasSubstr("the entry options: " + option + " is out of range."));
  }
  const std::string bytes = ReadBytes(path);
  WriteBytes(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(MessageOf<Error>([&] { ReadCorpus(path); }), HasSubstr("a.safetensors"));
}

/// Numbers that no run writes are refused with the name of their tensor before memory is taken for
/// them.
TEST_F(CorpusFileTest, RefusesNumbersThatNoRunWrites)
{
  this->options.overlap = 5;
  const fs::path path = this->folder / "a.safetensors";
  WriteCorpus(path, this->Measured());
  const SafetensorsFile file(path);
  const fs::path other = this->folder / "b.safetensors";
  const auto refusal = [&](const TensorViews& tensors)
  {
    WriteSafetensorViews(other, tensors, file.GetMetadata());
    const std::string message = MessageOf<ModelError>([&] { ReadCorpus(other); });
    EXPECT_EQ(message.rfind(other.string() + ": ", 0), 0) << message;
    return message.substr(std::min(message.size(), other.string().size() + 2));
  };
  for (const auto& [name, columns] : std::map<std::string, Shape>{ { "places", { 0 } },
         { "ids", { 0 } }, { "contexts", { 0 } }, { "text_ends", { 0 } }, { "samples", { 0 } } })
  {
    TensorViews tensors = file.GetTensors();
    tensors[name].shape = { std::int64_t{ 1 } << 60, columns[0] }; // of 0 bytes
    EXPECT_THAT(refusal(tensors), HasSubstr("expected " + name + " as I64 [")) << name;
  }
  const auto with = [&](const std::string& name, std::size_t at, std::int64_t value)
  {
    std::vector<std::int64_t> values = file.GetTensors().at(name).ToInteger();
    values.at(at) = value;
    const Tensor tensor = Tensor::FromInteger(file.GetTensors().at(name).shape, values);
    TensorViews tensors = file.GetTensors();
    tensors[name] = tensor.View();
    return refusal(tensors);
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t token : { -1, 1, 5 }) // where no window begins
  {
    EXPECT_EQ(with("totals", 9, token), "totals: the text goes on where no window can begin.");
  }
  EXPECT_EQ(with("totals", 7, -1), "totals: the text goes on where no window can begin.");
  EXPECT_EQ(with("totals", 0, 0), "totals: the dimension of heads is out of range.");
  EXPECT_THAT(with("totals", 2, -3), HasSubstr("totals: expected numbers from 0 to"));
  const std::string places = "places: expected all heads of each of the layers of the options.";
  EXPECT_EQ(with("places", 0, 1), places);
  EXPECT_EQ(with("places", 3, 7), places);
  EXPECT_THAT(with("places", 1, huge), HasSubstr("places: expected numbers from -2147483648"));
  EXPECT_EQ(with("ids", 0, huge), "ids: expected rising numbers from 0.");
  EXPECT_EQ(with("ids", 0, -1), "ids: expected rising numbers from 0.");
  EXPECT_THAT(with("occurrences", 0, -1), HasSubstr("occurrences: expected numbers from 0 to"));
  EXPECT_THAT(with("sums", 0, huge), HasSubstr("sums: expected numbers from -"));
  EXPECT_THAT(with("distances", 2, huge), HasSubstr("distances: expected numbers from -"));
  EXPECT_THAT(with("tokens", 2, huge), HasSubstr("tokens: expected numbers from -"));
  EXPECT_THAT(with("histograms", 2, huge), HasSubstr("histograms: expected numbers from 0"));
  EXPECT_THAT(with("sketches", 2, huge), HasSubstr("sketches: expected numbers from 0"));
  for (const std::size_t column : { 0U, 1U, 4U, 5U, 6U })
  {
    EXPECT_EQ(
      with("contexts", column, 1 << 30), "contexts: a head, measure or position is out of range.");
  }
  EXPECT_EQ(with("context_tokens", 0, 999'999), "context_tokens: expected tokens of ids.");
  EXPECT_EQ(with("samples", 3, 999'999), "samples: expected tokens of ids.");
  EXPECT_EQ(with("samples", 0, -1), "samples: expected rising order.");
  for (const auto& [name, value] :
    { std::pair("context_values", std::nan("")), std::pair("context_values", 1e300),
      std::pair("score_scales", std::nan("")), std::pair("sample_keys", std::nan("")) })
  {
    std::vector<double> values = file.GetTensors().at(name).ToDouble();
    values[1] = value;
    const Tensor tensor = Tensor::FromDouble(
      file.GetTensors().at(name).dtype, file.GetTensors().at(name).shape, values);
    TensorViews tensors = file.GetTensors();
    tensors[name] = tensor.View();
    EXPECT_THAT(refusal(tensors), HasSubstr(std::string(name) + ": expected finite numbers"));
  }
}
