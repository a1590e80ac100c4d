#include "Base/Error.h"
#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "Files/Safetensors.h"
#include "NaiveHeads.h"
#include "TemporaryDirectory.h"
#include "TransformerOracle.h"

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
using namespace testing;
namespace fs = std::filesystem;

namespace
{

struct CorpusFileTest : testing::Test
{
  TemporaryDirectory folder;
  std::shared_ptr<const OpenTransformer> model = OpenModel("language-2");
  CorpusOptions options;
  CorpusRunOptions run;

  CorpusFileTest()
  {
    this->options.batch = 200;
    this->options.samples = 20;
    this->options.contexts = 3;
    this->run.files = { WriteProse(this->folder) };
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
  Tensors tensors = CopyTensors(model.GetModel().GetFiles().GetTensors());
  change(changed.config, tensors);
  changed.weights = std::make_shared<const Tensors>(std::move(tensors));
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(ShippedModel("language-2")))
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
  const auto rounded =
    OpenTransformer::Open(ShippedModel("language-2"), "", false, ProductPrecision::Bfloat16);
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
  EXPECT_THAT(this->Refusal(earlier), HasSubstr("one with other weights, then at a model"));
  this->model =
    Changed(*own, "setting", [](TransformerConfig& config, Tensors&) { config.epsilon *= 2; });
  EXPECT_THAT(this->Refusal(earlier), HasSubstr("one with other settings, then at a model"));
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
    EXPECT_THAT(this->Refusal(earlier), HasSubstr(changed + " had other tokens"));
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
  EXPECT_THAT(this->Refusal(read), HasSubstr("an older version"));
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
  const fs::path path = this->folder / "a.safetensors";
  WriteCorpus(path, this->Measured());
  const SafetensorsFile file(path);
  const auto message = [&](const Metadata& metadata, const TensorViews& tensors)
  {
    const fs::path other = this->folder / "b.safetensors";
    WriteSafetensorViews(other, tensors, metadata);
    return MessageOf<Error>([&] { ReadCorpus(other); });
  };
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
  const auto withEntry = [&](const std::string& entry, const std::string& value)
  {
    Metadata metadata = file.GetMetadata();
    metadata[entry] = value;
    return message(metadata, file.GetTensors());
  };
  EXPECT_THAT(withEntry("format", "another"), HasSubstr("expected statistics of a corpus"));
  EXPECT_THAT(withEntry("sizes", "{}"), HasSubstr("the entry sizes"));
  EXPECT_THAT(withEntry("options", "{\"split\": 3}"), HasSubstr("the entry options"));
  EXPECT_THAT(withEntry("fingerprints", "{}"), HasSubstr("the entry fingerprints"));
  for (const auto& [option, value] : std::map<std::string, int>{ { "window", 1 }, { "overlap", 70 },
         { "contexts", 1001 }, { "samples", -1 }, { "batch", 0 } })
  {
    nlohmann::json changed = nlohmann::json::parse(file.GetMetadata().at("options"));
    changed[option] = value;
    EXPECT_THAT(withEntry("options", changed.dump()), HasSubstr(option + " is out of range"));
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
  const auto expectRefusal =
    [&](const std::string& name, const TensorView& changed, const std::string& why)
  {
    TensorViews tensors = file.GetTensors();
    tensors[name] = changed;
    WriteSafetensorViews(other, tensors, file.GetMetadata());
    EXPECT_THAT(MessageOf<ModelError>([&] { ReadCorpus(other); }),
      AllOf(StartsWith(other.string() + ": "), HasSubstr(name), HasSubstr(why)));
  };
  for (const std::string name : { "places", "ids", "contexts", "text_ends", "samples" })
  {
    TensorView changed = file.GetTensors().at(name);
    changed.shape = { std::int64_t{ 1 } << 60, 0 }; // of 0 bytes
    expectRefusal(name, changed, "as I64 [");
  }
  struct Integer
  {
    const char* tensor;
    std::size_t at;
    std::int64_t value;
    const char* why;
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const std::vector<Integer> integers = {
    { "totals", 9, -1, "no window can begin" }, // nor where none begins:
    { "totals", 9, 1, "no window can begin" },
    { "totals", 9, 5, "no window can begin" },
    { "totals", 7, -1, "no window can begin" },
    { "totals", 0, 0, "dimension of heads is out of range" },
    { "totals", 2, -3, "numbers from 0 to" },
    { "places", 0, 1, "all heads of each of the layers" },
    { "places", 3, 7, "all heads of each of the layers" },
    { "places", 1, huge, "numbers from -2147483648" },
    { "ids", 0, huge, "rising numbers from 0" },
    { "ids", 0, -1, "rising numbers from 0" },
    { "occurrences", 0, -1, "numbers from 0 to" },
    { "sums", 0, huge, "numbers from -" },
    { "distances", 2, huge, "numbers from -" },
    { "tokens", 2, huge, "numbers from -" },
    { "histograms", 2, huge, "numbers from 0" },
    { "sketches", 2, huge, "numbers from 0" },
    { "contexts", 0, 1 << 30, "out of range" },
    { "contexts", 1, 1 << 30, "out of range" },
    { "contexts", 4, 1 << 30, "out of range" },
    { "contexts", 5, 1 << 30, "out of range" },
    { "contexts", 6, 1 << 30, "out of range" },
    { "context_tokens", 0, 999'999, "tokens of ids" },
    { "samples", 3, 999'999, "tokens of ids" },
    { "samples", 0, -1, "rising order" },
  };
  for (const Integer& one : integers)
  {
    const TensorView& view = file.GetTensors().at(one.tensor);
    std::vector<std::int64_t> values = view.ToInteger();
    values.at(one.at) = one.value;
    const Tensor changed = Tensor::FromInteger(view.shape, values);
    expectRefusal(one.tensor, changed.View(), one.why);
  }
  for (const auto& [name, value] :
    { std::pair("context_values", std::nan("")), std::pair("context_values", 1e300),
      std::pair("score_scales", std::nan("")), std::pair("sample_keys", std::nan("")) })
  {
    const TensorView& view = file.GetTensors().at(name);
    std::vector<double> values = view.ToDouble();
    values[1] = value;
    const Tensor changed = Tensor::FromDouble(view.dtype, view.shape, values);
    expectRefusal(name, changed.View(), "finite numbers");
  }
}
