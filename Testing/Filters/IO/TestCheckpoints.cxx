#include "KeptRecordings.h"
#include "Matchers.h"
#include "Recorder/OpenTransformer.h"

#include "Core/TinyTransformer.h"
#include "Files/Safetensors.h"
#include "OpenedFiles.h"
#include "Transformers.h"

#include <chrono>

using namespace atlas;
using namespace atlas::test;
using atlas::OpenTransformer;
using AttentionAtlas::KeptRecordings;

namespace
{

using SDDP = vtkStreamingDemandDrivenPipeline;

/// The folder of a training: a random GPT-2 with checkpoints at 0, 10 and 100 steps, which differ
/// in one weight, and a model after 200 steps. The tokenizer of letters is in the folder itself.
class Training
{
public:
  Training()
  {
    this->Write(".", 200);
    for (const int step : { 0, 10, 100 })
    {
      this->Write("checkpoint-" + std::to_string(step), step);
    }
    WriteBytes(this->Folder / "merges.txt", "#version: 0.2\n");
    WriteBytes(this->Folder / "vocab.json", R"({"a": 0, "b": 1, "c": 2, "d": 3})");
  }

  const std::filesystem::path& Path() const { return this->Folder.Path(); }
  std::filesystem::path operator/(const std::string& name) const { return this->Folder / name; }

private:
  TemporaryDirectory Folder;
  TinyTransformer Tiny;

  void Write(const std::string& name, int step)
  {
    const std::filesystem::path folder = this->Folder / name;
    std::filesystem::create_directory(folder);
    this->Tiny.Set("h.0.attn.c_attn.weight", 5, 0.001F * static_cast<float>(step));
    WriteBytes(folder / "config.json", TinyTransformer::Config());
    WriteSafetensors(folder / "model.safetensors", this->Tiny.tensors, {});
  }
};

/// The time of an output, or -1.
double TimeOf(vtkDataObject* data)
{
  return data->GetInformation()->Has(vtkDataObject::DATA_TIME_STEP())
           ? data->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP())
           : -1;
}

/// The recording of "abcd" with one folder's model alone.
Recording RecordedAlone(const Training& training, const std::string& name)
{
  const TemporaryDirectory folder;
  std::filesystem::copy(training / name, folder / "model");
  Pipeline pipeline(folder / "model");
  pipeline.Recorder->SetTokenIds("0 1 2 3");
  return pipeline.Record();
}

/// A reader of a training, and a recorder of "abcd", at some time.
class Watched : public Pipeline
{
public:
  explicit Watched(const Training& training)
    : Pipeline(training.Path())
  {
    this->Recorder->SetTokenIds("0 1 2 3");
  }

  Recording At(double time)
  {
    this->Recorder->UpdateTimeStep(time);
    return AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(this->Recorder.Get()));
  }
};

/// A reader of a file of a training.
class ModelReader : public TransformerReader
{
public:
  explicit ModelReader(const std::filesystem::path& path)
  {
    this->Get()->SetFileName(path.c_str());
  }

  double Time() { return TimeOf(OutputOf<vtkMultiBlockDataSet>(this->Get())); }
  std::string ModelFile() { return this->FieldTexts("Model File").at(0); }
};

TEST(Checkpoints, AreStepsInTime)
{
  const Training training;
  ModelReader reader(training / "config.json");
  EXPECT_THAT(TimesOf(reader.Get()), ElementsAre(0, 10, 100));
  const double* range = reader->GetOutputInformation(0)->Get(SDDP::TIME_RANGE());
  EXPECT_THAT(std::vector<double>(range, range + 2), ElementsAre(0, 100));
  for (const auto& [time, step] :
    { std::pair(-3., 0), { 0, 0 }, { 9.9, 0 }, { 10, 10 }, { 55, 10 }, { 100, 100 }, { 1e9, 100 } })
  {
    reader->UpdateTimeStep(time);
    EXPECT_EQ(reader.Time(), step) << time;
    EXPECT_EQ(Texts(OutputOf<vtkMultiBlockDataSet>(reader.Get())->GetFieldData(), "Model File")[0],
      training / ("checkpoint-" + std::to_string(step)) / "config.json");
  }
}

TEST(Checkpoints, WithoutATimeTheLastIsRead)
{
  const Training training;
  ModelReader reader(training / "config.json");
  reader->Update();
  EXPECT_EQ(reader.Time(), 100);
}

TEST(Checkpoints, CanBeTurnedOff)
{
  const Training training;
  ModelReader reader(training / "config.json");
  EXPECT_TRUE(reader->GetCheckpoints());
  reader->CheckpointsOff();
  EXPECT_THAT(TimesOf(reader.Get()), IsEmpty());
  EXPECT_FALSE(reader->GetOutputInformation(0)->Has(SDDP::TIME_RANGE()));
  EXPECT_EQ(reader.ModelFile(), training / "config.json");
  EXPECT_EQ(reader.Time(), -1);
  reader->CheckpointsOn();
  EXPECT_THAT(TimesOf(reader.Get()), ElementsAre(0, 10, 100));
}

TEST(Checkpoints, OneAloneIsAModelWithoutTime)
{
  const Training training;
  ModelReader reader(training / "checkpoint-10/config.json");
  EXPECT_THAT(TimesOf(reader.Get()), IsEmpty());
  EXPECT_EQ(reader.ModelFile(), training / "checkpoint-10/config.json");
  EXPECT_EQ(reader.Time(), -1);
}

TEST(Checkpoints, EachIsRecordedAsItIsAlone)
{
  const Training training;
  Watched watched(training);
  const std::map<double, Recording> alone = { { 0, RecordedAlone(training, "checkpoint-0") },
    { 10, RecordedAlone(training, "checkpoint-10") },
    { 100, RecordedAlone(training, "checkpoint-100") } };
  for (const double time : { 100., 0., 10. })
  {
    Recording found = watched.At(time);
    EXPECT_EQ(TimeOf(OutputOf<vtkMultiBlockDataSet>(watched.Recorder.Get())), time);
    EXPECT_EQ(found.tokens.text.at(0), "a");
    found.tokens.text.clear(); // the one alone has no tokenizer
    ExpectEqual(found, alone.at(time));
  }
}

TEST(Checkpoints, HaveTheTokenizerOfTheFolderAbove)
{
  const Training training;
  const std::filesystem::path path = training / "checkpoint-10" / "config.json";
  EXPECT_THAT(
    OpenTransformer::Open(path, "")->GetTokenizer().Encode("dab", true).ids, ElementsAre(3, 0, 1));
  // One of its own comes first, and is noticed when it appears.
  const auto open = OpenTransformer::Open(path, "");
  WriteBytes(training / "checkpoint-10/merges.txt", "#version: 0.2\n");
  WriteBytes(training / "checkpoint-10/vocab.json", R"({"d": 0, "b": 1, "c": 2, "a": 3})");
  EXPECT_NE(OpenTransformer::Open(path, ""), open);
  EXPECT_THAT(
    OpenTransformer::Open(path, "")->GetTokenizer().Encode("dab", true).ids, ElementsAre(0, 3, 1));
}

TEST(Checkpoints, AChangedTokenizerAboveIsNoticed)
{
  const Training training;
  for (const auto& entry : std::filesystem::directory_iterator(training.Path()))
  {
    std::filesystem::last_write_time(
      entry, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  Watched watched(training);
  watched.Recorder->SetTokenIds(nullptr);
  watched.Recorder->SetPrompts("abcd");
  EXPECT_THAT(watched.At(10).tokens.id, ElementsAre(0, 1, 2, 3));
  WriteBytes(training / "vocab.json", R"({"a": 3, "b": 2, "c": 1, "d": 0})");
  watched.Recorder->SetPrompts("abc");
  EXPECT_THAT(watched.At(10).tokens.id, ElementsAre(3, 2, 1));
}

TEST(Checkpoints, StayOpen)
{
  const Training training;
  Watched watched(training);
  for (const double time : { 0., 10., 100. })
  {
    watched.At(time);
  }
  OpenedFiles opened(training / "checkpoint-0");
  watched.Recorder->SetTokenIds("3 2 1");
  watched.At(0);
  EXPECT_THAT(opened.Take(), IsEmpty());
  // Another architecture is another model, and those of the first are closed.
  const std::weak_ptr<const OpenTransformer> first =
    OpenTransformer::Open(training / "checkpoint-0/config.json", "");
  EXPECT_FALSE(first.expired());
  watched.Model->SetArchitecture("gpt2");
  watched.At(100);
  EXPECT_TRUE(first.expired());
}

TEST(Checkpoints, ABrokenOneIsOneErrorAtItsTime)
{
  const Training training;
  WriteBytes(training / "checkpoint-10/model.safetensors", "broken");
  Watched watched(training);
  EXPECT_EQ(watched.At(0).tokens.Count(), 4);
  watched.Recorder->UpdateTimeStep(10);
  EXPECT_THAT(watched.Model.TakeErrors(), ElementsAre(HasSubstr("checkpoint-10")));
  EXPECT_EQ(OutputOf<vtkMultiBlockDataSet>(watched.Recorder.Get())->GetNumberOfBlocks(), 0U);
  EXPECT_EQ(watched.At(100).tokens.Count(), 4);
  EXPECT_EQ(watched.At(0).tokens.Count(), 4);
}

/// The bytes of a matrix in place: a recording made anew has other ones.
const float* PlaceOf(const Recording& recording)
{
  return recording.layers.at(1).heads.at(2).query.values.get();
}

TEST(KeptRecordings, GoingBackInTimeRunsNothing)
{
  const Training training;
  Watched watched(training);
  const Recording first = watched.At(0);
  const Recording second = watched.At(10);
  EXPECT_NE(PlaceOf(first), PlaceOf(second));
  EXPECT_EQ(PlaceOf(watched.At(0)), PlaceOf(first));
  EXPECT_EQ(PlaceOf(watched.At(10)), PlaceOf(second));
  ExpectEqual(watched.At(0), first);
}

TEST(KeptRecordings, AnotherInputOrOptionIsRecorded)
{
  const Training training;
  Watched watched(training);
  const Recording first = watched.At(0);
  const auto differs = [&] { return PlaceOf(watched.At(0)) != PlaceOf(first); };
  const auto recorder = watched.Recorder.Get();
  recorder->SetTokenIds("0 1 2");
  EXPECT_TRUE(differs());
  recorder->SetTokenIds("0 1 2 3");
  EXPECT_FALSE(differs());
  recorder->SetAblate("0.1");
  EXPECT_TRUE(differs());
  EXPECT_EQ(watched.At(0).interventions, "0.1 to zero");
  recorder->SetAblateTo(1);
  EXPECT_EQ(watched.At(0).interventions, "0.1 to the mean over positions");
  recorder->SetAblate(nullptr);
  recorder->SetAblateTo(0);
  EXPECT_FALSE(differs());
  recorder->SetPatchFrom("3 2 1 0");
  recorder->SetPatchSites("r1");
  EXPECT_TRUE(differs());
  const Recording patched = watched.At(0);
  recorder->SetPatchFrom("3 3 3 3");
  EXPECT_NE(PlaceOf(watched.At(0)), PlaceOf(patched));
  recorder->SetPatchFrom(nullptr);
  recorder->SetPatchSites(nullptr);
  recorder->SetRecordArrayStatus("Residual", 0);
  EXPECT_TRUE(differs());
  recorder->SetRecordArrayStatus("Residual", 1);
  EXPECT_FALSE(differs());
}

TEST(KeptRecordings, CanBeTurnedOff)
{
  const Training training;
  Watched watched(training);
  EXPECT_EQ(watched.Recorder->GetKeptRecordings(), 1024);
  watched.Recorder->SetKeptRecordings(0);
  const Recording first = watched.At(0);
  watched.At(10);
  const Recording again = watched.At(0);
  EXPECT_NE(PlaceOf(again), PlaceOf(first));
  ExpectEqual(again, first);
}

TEST(KeptRecordings, OfChangedFilesAreNotUsed)
{
  const Training training;
  Watched watched(training);
  const Recording first = watched.At(0);
  std::filesystem::copy(
    training / "checkpoint-100/model.safetensors", training / "checkpoint-0/new");
  std::filesystem::rename(
    training / "checkpoint-0/new", training / "checkpoint-0/model.safetensors");
  watched.At(10);
  EXPECT_NE(PlaceOf(watched.At(0)), PlaceOf(first));
}

/// A recording of four tokens and one matrix: 4 x 8 floats are 128 bytes, and the ids 32.
Recording RecordingOfSource()
{
  Recording recording;
  recording.layers.resize(1);
  recording.layers[0].heads.resize(1);
  recording.layers[0].heads[0].query = SharedMatrix::Zero(4, 8);
  return recording;
}

TEST(KeptRecordings, TheOldestLeaveFirst)
{
  const Training training;
  const auto model = OpenTransformer::Open(training / "config.json", "");
  const auto keyOf = [&](const std::string& source)
  {
    AttentionAtlas::RecordingKey key;
    key.model = model;
    key.source = source;
    key.input.input.tokens = { { 0, 1, 2, 3 } };
    return key;
  };
  KeptRecordings kept;
  kept.SetLimit(2 * 160 + 10);
  for (const char* source : { "a", "b" })
  {
    kept.Keep(keyOf(source), RecordingOfSource(), 0);
  }
  EXPECT_NE(kept.Find(keyOf("a")), nullptr); // is now used later than b
  kept.Keep(keyOf("c"), RecordingOfSource(), 0);
  EXPECT_EQ(kept.Find(keyOf("b")), nullptr);
  EXPECT_NE(kept.Find(keyOf("a")), nullptr);
  EXPECT_NE(kept.Find(keyOf("c")), nullptr);
  kept.SetLimit(159);
  EXPECT_EQ(kept.Find(keyOf("c")), nullptr);
  kept.Keep(keyOf("d"), RecordingOfSource(), 0);
  EXPECT_EQ(kept.Find(keyOf("d")), nullptr) << "too large";
}

TEST(KeptRecordings, ThoseOfClosedModelsAreNotFound)
{
  const Training training;
  KeptRecordings kept;
  kept.SetLimit(1000);
  AttentionAtlas::RecordingKey key;
  key.model = OpenTransformer::Open(training / "config.json", "");
  EXPECT_TRUE(key.model.expired());
  kept.Keep(key, RecordingOfSource(), 0);
  EXPECT_EQ(kept.Find(key), nullptr);
}

}
