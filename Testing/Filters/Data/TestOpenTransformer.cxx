#include "Recorder/OpenTransformer.h"

#include "Core/GgufBytes.h"
#include "Core/TinyTransformer.h"
#include "OpenedFiles.h"
#include "TransformerConversion.h"
#include "Transformers.h"
#include "Weights/ProcessedWeights.h"

#include <chrono>
#include <future>
#include <thread>

using namespace atlas;
using namespace atlas::test;
using atlas::OpenTransformer;

namespace
{

/// The folder of a random GPT-2 whose vocabulary is the letters from a to l.
class LetterModel
{
public:
  TinyTransformer Tiny;

  LetterModel()
  {
    WriteBytes(this->Folder / "config.json", TinyTransformer::Config());
    WriteBytes(this->Folder / "merges.txt", "#version: 0.2\n");
    WriteBytes(this->Folder / "vocab.json", Vocabulary("abcdefghijkl"));
    WriteBytes(this->Folder / "model.safetensors", this->Weights());
  }

  const std::filesystem::path& Path() const { return this->Folder.Path(); }
  std::filesystem::path operator/(const std::string& name) const { return this->Folder / name; }

  std::string Weights() const
  {
    const TemporaryDirectory folder;
    WriteSafetensors(folder / "weights", this->Tiny.tensors, {});
    return ReadBytes(folder / "weights");
  }

  /// The letters by rising id.
  static std::string Vocabulary(const std::string& letters)
  {
    std::string text;
    for (std::size_t i = 0; i < letters.size(); ++i)
    {
      text += (i == 0 ? "{\"" : ", \"") + letters.substr(i, 1) + "\": " + std::to_string(i);
    }
    return text + "}";
  }

private:
  TemporaryDirectory Folder;
};

/// The recording of a prompt by a reader and a recorder of their own, which open all files.
Recording RecordedAnew(const LetterModel& model, const char* prompt)
{
  // In a folder of its own, as models are known by their paths.
  const TemporaryDirectory folder;
  const std::filesystem::path copy = folder / model.Path().filename().string();
  std::filesystem::copy(model.Path(), copy);
  Pipeline pipeline(copy);
  pipeline.Recorder->SetPrompts(prompt);
  return pipeline.Record();
}

TEST(OpenTransformer, AnEditedPromptOpensNoFile)
{
  const LetterModel model;
  OpenedFiles opened(model.Path());
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("abc");
  pipeline.Update();
  EXPECT_THAT(
    opened.Take(), ElementsAre("config.json", "merges.txt", "model.safetensors", "vocab.json"));
  pipeline.Recorder->SetPrompts("abdabd");
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(0, 1, 3, 0, 1, 3));
  pipeline.Model->Modified();
  pipeline.Update();
  EXPECT_THAT(opened.Take(), IsEmpty());
  pipeline.Recorder->SetPrompts(nullptr);
  pipeline.Recorder->SetTokenIds("1 2 3");
  pipeline.Update();
  EXPECT_THAT(opened.Take(), IsEmpty());
  ExpectEqual(pipeline.Record(), RecordedAnew(model, "bcd"));
}

TEST(OpenTransformer, RecordingsNameTheirModel)
{
  const LetterModel model;
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("abc");
  EXPECT_EQ(pipeline.Record().model, model.Path().filename().string());
}

TEST(OpenTransformer, AGgufFileNeedsNothingBesideIt)
{
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / "tiny.gguf";
  WriteBytes(path, TinyGguf().File());
  TransformerReader reader;
  EXPECT_EQ(reader->CanReadFile(path.c_str()), 1);
  reader->SetFileName(path.c_str());
  Warned<vtkTransformerRecorder> recorder;
  recorder->SetInputConnection(reader->GetOutputPort());
  recorder->SetPrompts("abc<|endoftext|>");
  OpenedFiles opened(folder.Path());
  recorder->Update();
  EXPECT_THAT(opened.Take(), ElementsAre("tiny.gguf"));
  EXPECT_THAT(AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(recorder.Get())).tokens.id,
    ElementsAre(3, 2, 4));
  EXPECT_THAT(reader.TakeWarnings(), IsEmpty());
  WriteBytes(path, TinyGguf().File().substr(0, 500));
  reader->Modified();
  EXPECT_THAT(reader.Error(), HasSubstr("tiny.gguf: "));
}

TEST(OpenTransformer, AnotherRecorderOpensNoFile)
{
  const LetterModel model;
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("abc");
  pipeline.Update();
  OpenedFiles opened(model.Path());
  Warned<vtkTransformerRecorder> other;
  // Of a copy, as ranks and clients have it.
  auto copy = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  copy->DeepCopy(OutputOf<vtkMultiBlockDataSet>(pipeline.Model.Get()));
  Connect(other.Get(), 0, copy);
  other->SetPrompts("abc");
  other->Update();
  EXPECT_THAT(opened.Take(), IsEmpty());
  ExpectEqual(
    AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(other.Get())), pipeline.Record());
}

TEST(OpenTransformer, TheRecorderKeepsTheModelWithoutTheReader)
{
  const LetterModel model;
  auto description = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  {
    TransformerReader reader;
    reader->SetFileName((model / "config.json").c_str());
    reader->Update();
    description->DeepCopy(OutputOf<vtkMultiBlockDataSet>(reader.Get()));
  }
  OpenedFiles opened(model.Path());
  Warned<vtkTransformerRecorder> recorder;
  Connect(recorder.Get(), 0, description);
  recorder->SetPrompts("abc");
  recorder->Update();
  EXPECT_EQ(opened.Take().size(), 4U) << "nobody held the model";
  recorder->SetPrompts("abd");
  recorder->Update();
  EXPECT_THAT(opened.Take(), IsEmpty());
}

/// Files are changed in these ways.
enum class Change
{
  InPlace,
  Replaced
};

class ChangedFile : public testing::TestWithParam<Change>
{
protected:
  LetterModel Model;
  Pipeline Pipe{ this->Model.Path() };

  ChangedFile()
  {
    this->Pipe.Recorder->SetPrompts("abc");
    // So long ago that the clock of any file system tells the change apart.
    for (const auto& entry : std::filesystem::directory_iterator(this->Model.Path()))
    {
      std::filesystem::last_write_time(
        entry, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    }
    this->Pipe.Update();
    this->Pipe.Recorder->SetPrompts("bcda");
  }

  void Write(const std::string& name, const std::string& bytes) const
  {
    const bool inPlace = GetParam() == Change::InPlace;
    WriteBytes(this->Model / (inPlace ? name : "new"), bytes);
    if (!inPlace)
    {
      std::filesystem::rename(this->Model / "new", this->Model / name);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, ChangedFile, testing::Values(Change::InPlace, Change::Replaced),
  [](const auto& test) { return test.param == Change::InPlace ? "InPlace" : "Replaced"; });

TEST_P(ChangedFile, OfWeightsIsNoticed)
{
  this->Model.Tiny.Set("h.0.attn.c_attn.weight", 5, 0.75F);
  this->Write("model.safetensors", this->Model.Weights());
  const Recording found = this->Pipe.Record();
  ExpectEqual(found, RecordedAnew(this->Model, "bcda"));
  OpenedFiles opened(this->Model.Path());
  this->Pipe.Recorder->SetPrompts("abcd");
  this->Pipe.Update();
  EXPECT_THAT(opened.Take(), IsEmpty()) << "it is open again";
}

TEST_P(ChangedFile, OfTheTokenizerIsNoticed)
{
  EXPECT_THAT(this->Pipe.Record().tokens.id, ElementsAre(1, 2, 3, 0));
  this->Write("vocab.json", LetterModel::Vocabulary("lkjihgfedcba"));
  this->Pipe.Recorder->SetPrompts("abcd");
  EXPECT_THAT(this->Pipe.Record().tokens.id, ElementsAre(11, 10, 9, 8));
}

TEST_P(ChangedFile, OfTheConfigurationIsNoticed)
{
  EXPECT_EQ(this->Pipe.Record().layers[0].heads.size(), 3U);
  std::string config = TinyTransformer::Config();
  config.replace(config.find("\"n_head\": 3"), 11, "\"n_head\": 4");
  this->Write("config.json", config);
  this->Pipe.Recorder->SetPrompts("abcd");
  EXPECT_EQ(this->Pipe.Record().layers[0].heads.size(), 4U);
}

TEST(OpenTransformer, AFileThatAppearsIsNoticed)
{
  const LetterModel model;
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("abc");
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(0, 1, 2));
  WriteBytes(model / "added_tokens.json", R"({"bc": 12})");
  pipeline.Recorder->SetPrompts("abcd");
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(0, 12, 3));
}

/// Whatever a model may have beside its weights.
TEST(OpenTransformer, EveryFileThatAppearsIsNoticed)
{
  std::vector<std::string> names = { ImageProcessorFile, ProcessorFile, VideoProcessorFile,
    "generation_config.json" };
  names.insert(names.end(), TokenizerFiles.begin(), TokenizerFiles.end());
  const LetterModel model;
  for (const std::string& name : names)
  {
    const auto open = OpenTransformer::Open(model.Path(), "");
    EXPECT_EQ(OpenTransformer::Open(model.Path(), ""), open);
    const std::string before =
      std::filesystem::exists(model / name) ? ReadBytes(model / name) : std::string();
    WriteBytes(model / name, before + "{}");
    EXPECT_NE(OpenTransformer::Open(model.Path(), ""), open) << name;
    std::filesystem::remove(model / name);
  }
}

/// The long configuration of one model is read while another one opens.
TEST(OpenTransformer, AModelDoesNotWaitForAnother)
{
  const LetterModel slow;
  const LetterModel fast;
  WriteBytes(
    slow / "config.json", std::string(std::size_t{ 1 } << 26U, ' ') + TinyTransformer::Config());
  OpenedFiles opened(slow.Path());
  const auto other =
    std::async(std::launch::async, [&slow] { return OpenTransformer::Open(slow.Path(), ""); });
  while (opened.Take().count("config.json") == 0)
  {
    std::this_thread::yield();
  }
  EXPECT_NE(OpenTransformer::Open(fast.Path(), ""), nullptr);
  EXPECT_EQ(other.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST(OpenTransformer, AFileThatIsGoneIsOneError)
{
  for (const char* name : { "config.json", "model.safetensors", "vocab.json" })
  {
    const LetterModel model;
    Pipeline pipeline(model.Path());
    pipeline.Recorder->SetPrompts("abc");
    pipeline.Update();
    std::filesystem::rename(model / name, model / "hidden");
    pipeline.Recorder->SetPrompts("abcd");
    EXPECT_THAT(pipeline.Recorder.Error(), HasSubstr(name));
    std::filesystem::rename(model / "hidden", model / name);
    pipeline.Recorder->SetPrompts("abc");
    EXPECT_EQ(pipeline.Record().tokens.Count(), 3);
  }
}

TEST(OpenTransformer, IsOneForAllThreads)
{
  const LetterModel model;
  OpenedFiles opened(model.Path());
  std::vector<std::shared_ptr<const OpenTransformer>> found(8);
  std::vector<const Tokenizer*> tokenizers(found.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    threads.emplace_back(
      [&, i]
      {
        found[i] = OpenTransformer::Open(model / "config.json", "");
        tokenizers[i] = &found[i]->GetTokenizer();
      });
  }
  for (std::thread& thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), 1U);
  EXPECT_EQ(std::set(tokenizers.begin(), tokenizers.end()).size(), 1U);
  EXPECT_NE(OpenTransformer::Open(model / "config.json", "gpt2"), found[0]) << "architecture";
  EXPECT_NE(OpenTransformer::Open(model / "config.json", "", true), found[0]) << "processing";
  const auto rounded =
    OpenTransformer::Open(model / "config.json", "", false, ProductPrecision::Bfloat16);
  EXPECT_NE(rounded, found[0]) << "products";
  EXPECT_EQ(rounded->GetModel().GetProducts(), ProductPrecision::Bfloat16);
  EXPECT_EQ(found[0]->GetModel().GetProducts(), ProductPrecision::Single);
  // Nobody but the holders keeps the files open.
  const std::weak_ptr<const OpenTransformer> last = found[0];
  found.clear();
  EXPECT_TRUE(last.expired());
}

/// The model of LetterModel in memory.
atlas::ModelInMemory LettersInMemory(const LetterModel& model)
{
  const std::string tokenizer =
    R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "BPE", "merges": [], "vocab": )" +
    LetterModel::Vocabulary("abcdefghijkl") + "}}";
  return { ParseTransformerConfig(TinyTransformer::Config(), "config.json"),
    std::make_shared<const Tensors>(model.Tiny.tensors),
    std::make_shared<const std::map<std::string, std::string>>(
      std::map<std::string, std::string>{ { "tokenizer.json", tokenizer } }),
    {} };
}

/// A recorder of a model in memory.
struct MemoryPipeline
{
  explicit MemoryPipeline(const OpenTransformer& model, const std::string& path, bool processes)
  {
    auto description = vtkSmartPointer<vtkMultiBlockDataSet>::New();
    AttentionAtlas::ToDataSet(model.GetModel(), path, "", processes, description);
    Connect(this->Recorder.Get(), 0, description);
    this->Recorder->SetPrompts("abdabd");
  }

  Warned<vtkTransformerRecorder> Recorder;

  Recording Record()
  {
    this->Recorder->Update();
    return AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(this->Recorder.Get()));
  }
};

TEST(OpenTransformer, AModelInMemoryIsAsInFiles)
{
  const LetterModel model;
  const std::string path = "training:letters/step-3";
  const auto kept = OpenTransformer::Keep(path, LettersInMemory(model));
  EXPECT_EQ(OpenTransformer::Keep(path, LettersInMemory(model)), kept);
  EXPECT_EQ(OpenTransformer::Open(path, ""), kept);
  EXPECT_EQ(kept->GetTokenFinder().Find("c", "test"), 2);
  MemoryPipeline pipeline(*kept, path, false);
  ExpectEqual(pipeline.Record(), RecordedAnew(model, "abdabd"));
}

TEST(OpenTransformer, AModelInMemoryIsProcessed)
{
  const LetterModel model;
  const std::string path = "training:letters/processed";
  const auto kept = OpenTransformer::Keep(path, LettersInMemory(model));
  const auto processed = OpenTransformer::Open(path, "", true);
  const auto rounded = OpenTransformer::Open(path, "", true, ProductPrecision::Bfloat16);
  EXPECT_EQ(rounded->GetModel().GetProducts(), ProductPrecision::Bfloat16);
  EXPECT_EQ(kept->GetModel().GetProducts(), ProductPrecision::Single);
  EXPECT_EQ(OpenTransformer::Open(path, "", true), processed);
  const Tensors expected = ProcessedTensors(model.Tiny.Make());
  const TensorViews& found = processed->GetModel().GetFiles().GetTensors();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected)
  {
    EXPECT_EQ(found.at(name).ToDouble(), tensor.View().ToDouble()) << name;
  }
}

TEST(OpenTransformer, AModelInMemoryGoesWithItsHolder)
{
  const LetterModel model;
  const std::string path = "training:letters/gone";
  auto kept = OpenTransformer::Keep(path, LettersInMemory(model));
  MemoryPipeline pipeline(*kept, path, false);
  kept.reset();
  EXPECT_THAT(pipeline.Recorder.Error(),
    HasSubstr(path + ": expected a model that was trained in this session, found none"));
  kept = OpenTransformer::Keep(path, LettersInMemory(model));
  pipeline.Recorder->SetPrompts("abd");
  EXPECT_EQ(pipeline.Record().tokens.Count(), 3);
}

TEST(OpenTransformer, AModelInMemoryNeedsATokenizerForTexts)
{
  const LetterModel model;
  const std::string path = "training:letters/without";
  atlas::ModelInMemory letters = LettersInMemory(model);
  letters.files = std::make_shared<const std::map<std::string, std::string>>();
  const auto kept = OpenTransformer::Keep(path, letters);
  MemoryPipeline pipeline(*kept, path, false);
  EXPECT_THAT(pipeline.Recorder.Error(), HasSubstr("a model with a tokenizer"));
  pipeline.Recorder->SetPrompts(nullptr);
  pipeline.Recorder->SetTokenIds("0 1 2");
  EXPECT_EQ(pipeline.Record().tokens.Count(), 3);
}

}
