// attention-atlas record, run as its users run it.

#include "CommandTest.h"
#include "Files/MappedFile.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "PictureBytes.h"
#include "Recording/RecordingFile.h"
#include "SameRecording.h"

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

class RecordCommand : public test::CommandTest
{
protected:
  RecordCommand()
    : CommandTest("record")
  {
  }

  /// What is written by a run that succeeds.
  Recording Written(const std::string& arguments) const
  {
    return ReadRecording(this->Write(arguments)).recording;
  }
};

std::string Words(const std::vector<std::int64_t>& ids)
{
  return Joined(ids, [](std::int64_t id) { return std::to_string(id); }, " ");
}

/// Token ids as --token-ids takes them.
std::string Ids(const TransformerOracle& oracle)
{
  return "--token-ids '" + Joined(oracle.Input().tokens, Words, "\n") + "'";
}

void ExpectHeads(const TransformerOracle& oracle, const Recording& recording)
{
  ASSERT_EQ(recording.layers.size(), 2U);
  for (const RecordedLayer& layer : recording.layers)
  {
    const std::string prefix = "layer." + std::to_string(layer.index) + ".";
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      const RecordedHead& head = layer.heads[h];
      const auto number = static_cast<std::int64_t>(h);
      ExpectRows(oracle, recording, prefix + "query", number, head.query, 2e-5);
      ExpectRows(oracle, recording, prefix + "key", number, head.key, 2e-5);
      ExpectRows(oracle, recording, prefix + "value", number, head.value, 2e-5);
      ExpectRows(oracle, recording, prefix + "head_output", number, head.output, 2e-5);
    }
  }
}

TEST_F(RecordCommand, WritesWhatTheOriginalComputes)
{
  const TransformerOracle oracle("gpt2");
  const Recording found = this->Written(Quoted(oracle.Path()) + " --record all " + Ids(oracle));
  ExpectHeads(oracle, found);
  ExpectRows(oracle, found, "logits", 0, found.logits, 2e-4);
  ExpectRows(oracle, found, "hidden.1", 0, found.residual.at(1), 2e-4);
  EXPECT_EQ(found.architecture, "gpt2");
}

/// The folder of an adapter stands for its base with it.
TEST_F(RecordCommand, AppliesAnAdapter)
{
  const std::filesystem::path oracle = ModelsOracle("adapters/llama-lora");
  const std::filesystem::path folder = this->Folder / "adapter";
  std::filesystem::copy(oracle / "adapter", folder);
  std::string settings = test::ReadBytes(folder / "adapter_config.json");
  const std::string none = R"("base_model_name_or_path": null)";
  settings.replace(settings.find(none), none.size(),
    R"("base_model_name_or_path": ")" + (oracle / "base").string() + "\"");
  test::WriteBytes(folder / "adapter_config.json", settings);
  const SafetensorsFile expected(oracle / "expected.safetensors");
  const std::string ids = Words(expected.GetTensors().at("0.input_ids").ToInteger());
  const Recording found = this->Written(Quoted(folder) + " --record all --token-ids '" + ids + "'");
  test::ExpectClose("logits", test::Rows(found.logits, 0, 19),
    expected.GetTensors().at("0.logits").ToDouble(), 2e-5);
}

TEST_F(RecordCommand, RecordsTheRoutingOfAModelWithExperts)
{
  const std::string model = Quoted(ModelsOracle("transformers/mixtral"));
  for (const std::string what : { "all", "Routing" })
  {
    const Recording found = this->Written(model + " --record " + what + " --token-ids '3 1 4 1 5'");
    ASSERT_EQ(found.layers.size(), 2U);
    EXPECT_EQ(found.layers[1].routing.experts, 5);
    EXPECT_EQ(found.layers[1].routing.chosen.columns, 2);
    EXPECT_EQ(found.layers[1].heads[0].query.IsRecorded(), what == "all");
  }
}

/// All is what there is: no logits of an encoder alone, no routing without experts.
TEST_F(RecordCommand, RecordsAllThatAModelHas)
{
  const TransformerOracle oracle("vit");
  const Recording found = this->Written(Quoted(oracle.Path()) + " --record all --images " +
                                        Quoted(oracle.Path() / "expected.safetensors"));
  ExpectHeads(oracle, found);
  ExpectRows(oracle, found, "hidden.1", 0, found.residual.at(1), 2e-4);
  EXPECT_FALSE(found.logits.IsRecorded());
  const Recording text = this->Written(
    Quoted(ModelsOracle("transformers/distilbert")) + " --record all --token-ids '3 1 4 1 5'");
  EXPECT_EQ(text.tokens.Count(), 5);
  EXPECT_TRUE(text.layers.at(0).heads.at(0).output.IsRecorded());
}

TEST_F(RecordCommand, TakesPixelValues)
{
  const TransformerOracle oracle("vit");
  const Recording found = this->Written(Quoted(oracle.Path() / "config.json") +
                                        " --record QueriesAndKeys,Values,HeadOutputs --images " +
                                        Quoted(oracle.Path() / "expected.safetensors"));
  ExpectHeads(oracle, found);
  EXPECT_EQ(found.pictures.height, 32);
}

TEST_F(RecordCommand, TakesPicturesAfterAModelOfImages)
{
  std::vector<std::string> files;
  for (const char color : { '\20', '\100' })
  {
    std::string rows;
    for (int row = 0; row < 32; ++row)
    {
      rows += '\0' + std::string(96, color);
    }
    files.push_back(this->WithFile(
      std::to_string(color) + ".png", test::PngFile(32, 32, 8, test::PngColor::Rgb, rows)));
  }
  const std::string model = Quoted(TransformerOracle::Folder("vit"));
  const Recording found = this->Written(model + " " + files[0] + " " + files[1]);
  const Recording named = this->Written(model + " --images " + files[0] + " " + files[1]);
  EXPECT_EQ(found.SequenceCount(), 2);
  ASSERT_NE(found.pictures.pixels, nullptr);
  EXPECT_EQ(found.pictures.pixels.get()[0], 16);
  EXPECT_EQ(found.pictures.pixels.get()[found.pictures.BytesPerPicture()], 64);
  test::ExpectEqual(named.pictures, found.pictures);
  test::ExpectEqual(named.layers.at(0).heads.at(0), found.layers.at(0).heads.at(0));
  EXPECT_EQ(this->Written(model + " --no-pictures " + files[0]).pictures.pixels, nullptr);
}

TEST_F(RecordCommand, TokenizesPrompts)
{
  const std::string model = this->Letters();
  const Recording found = this->Written(model + " 'ab,a' cab");
  EXPECT_THAT(found.tokens.id, ElementsAre(0, 1, 3, 0, 2, 0, 1));
  EXPECT_THAT(found.tokens.text, ElementsAre("a", "b", ",", "a", "c", "a", "b"));
  EXPECT_THAT(found.sequenceOffsets, ElementsAre(0, 4, 7));

  const Recording same =
    this->Written(model + " --prompts " + this->WithFile("prompts.txt", "ab,a\ncab\n"));
  test::ExpectEqual(same.layers.at(1).heads.at(1), found.layers.at(1).heads.at(1));
  EXPECT_EQ(same.tokens.text, found.tokens.text);

  const ProgramResult cut = Run(model + " abba --max-length 3 -o " + this->File("cut.safetensors"));
  EXPECT_THAT(cut.errors, HasSubstr("warning: sequence 0 has 4 tokens; the last 1 are left out"));
  EXPECT_THAT(
    ReadRecording(this->Folder / "cut.safetensors").recording.tokens.id, ElementsAre(0, 1, 1));
}

TEST_F(RecordCommand, NamesSettingsThatAreNotKnown)
{
  const std::string model = this->Letters();
  const std::filesystem::path config = this->Folder / "letters" / "config.json";
  std::string text = ReadFile(config);
  test::WriteBytes(config, text.insert(text.find('{') + 1, R"("my_notes": "mine", )"));
  const ProgramResult result = Run(model + " ab -o " + Quoted(this->Folder / "known.safetensors"));
  EXPECT_THAT(
    result.errors, HasSubstr("warning: " + (this->Folder / "letters").string() +
                             ": these settings are not known, and are not used: 'my_notes'."));
}

TEST_F(RecordCommand, KeepsLineBreaksOfPrompts)
{
  const std::string model = this->Letters();
  const Recording found = this->Written(model + " 'a\nb\n' 'c\n\na'");
  EXPECT_THAT(found.tokens.id, ElementsAre(0, 4, 1, 4, 2, 4, 4, 0));
  EXPECT_THAT(found.sequenceOffsets, ElementsAre(0, 4, 8));
  const std::string output = this->Folder / "file.safetensors";
  const ProgramResult result =
    Run(model + " --prompts " +
        this->WithFile("prompts.jsonl", "\"a\\nb\\n\"\n{\"id\": 7, \"prompt\": \"c\\n\\na\"}\n") +
        " -o " + Quoted(output));
  EXPECT_THAT(
    result.errors, HasSubstr("warning: " + (this->Folder / "prompts.jsonl").string() +
                             ": only the text of each line is read, and not its \"id\"."));
  EXPECT_EQ(ReadRecording(output).recording.tokens.id, found.tokens.id);
}

TEST_F(RecordCommand, SaysWhatIsWrongWithPrompts)
{
  const std::string model = this->Letters();
  const std::string output = " -o " + this->File("run.safetensors");
  test::WriteBytes(this->Folder / "list.json", "[\"a\"]");
  test::WriteBytes(this->Folder / "bad.jsonl", "\"a\"\n{\"messages\": []}\n");
  test::WriteBytes(this->Folder / "empty.txt", "");
  const std::string folder = this->Folder.Path().string() + "/";
  const std::string list = folder + "list.json";
  this->ExpectRefusals({
    { model + " ''" + output, "prompt 1: expected a text, found no tokens." },
    { model + " a ''" + output, "prompt 2: expected a text, found no tokens." },
    { model + " --prompts " + list + output,
      list + ": expected a text with one prompt per line, or JSON lines" },
    { model + " --prompts " + folder + "bad.jsonl" + output,
      "bad.jsonl, line 2: expected a prompt as" },
    { model + " --prompts " + folder + "empty.txt" + output,
      "empty.txt: expected at least one prompt, found none." },
    { model + " --prompts " + folder + "none.txt" + output, "none.txt: cannot open file" },
    { model + "'" + std::string(400, 'a') + "'" + output,
      "positions of the model; shorten it, or set --max-length to cut it off." },
    { model + " a --target b" + output,
      "--target: expected a model with an encoder and a decoder" },
  });
}

TEST_F(RecordCommand, RecordsWhatFiguresNeed)
{
  const Recording found =
    this->Written(Quoted(TransformerOracle::Folder("gpt2")) + " --token-ids '5 3 2'");
  const RecordedHead& head = found.layers.front().heads.front();
  EXPECT_TRUE(head.query.IsRecorded() && head.value.IsRecorded() && head.output.IsRecorded());
  EXPECT_TRUE(found.residual.front().IsRecorded());
  EXPECT_FALSE(found.logits.IsRecorded());
  EXPECT_THAT(Run("--help").output, HasSubstr("QueriesAndKeys,Values,HeadOutputs,Residual"));
}

TEST_F(RecordCommand, RecordsWhatIsChosen)
{
  const std::string model = Quoted(TransformerOracle::Folder("gpt2")) + " --token-ids '5 3 2' ";
  const Recording layer = this->Written(model + "--layers 1 --record QueriesAndKeys,Values");
  ASSERT_EQ(layer.layers.size(), 1U);
  EXPECT_EQ(layer.layers.front().index, 1);
  EXPECT_EQ(layer.layerCount, 2);
  const RecordedHead& head = layer.layers.front().heads.front();
  EXPECT_TRUE(head.query.IsRecorded() && head.value.IsRecorded());
  EXPECT_FALSE(head.output.IsRecorded() || layer.logits.IsRecorded());
  const Recording logits = this->Written(model + "--record Logits");
  EXPECT_TRUE(logits.logits.IsRecorded());
  EXPECT_FALSE(logits.layers.front().heads.front().query.IsRecorded());
}

TEST_F(RecordCommand, GeneratesTheMostProbableToken)
{
  const TransformerOracle oracle("gpt2");
  const std::string model = Quoted(oracle.Path()) + " " + Ids(oracle);
  const Recording found = this->Written(model + " --generate 1");
  const std::vector<std::vector<std::int64_t>> given = oracle.Input().tokens;
  for (std::size_t s = 0; s < given.size(); ++s)
  {
    const auto sequence = static_cast<std::int64_t>(s);
    ASSERT_EQ(found.SequenceLength(sequence), static_cast<std::int64_t>(given[s].size()) + 1);
    const std::vector<double> logits = oracle.Values("logits", sequence);
    const auto vocabulary = oracle.Get("logits").shape[2];
    const auto last = logits.end() - vocabulary;
    EXPECT_EQ(found.tokens.id[static_cast<std::size_t>(found.sequenceOffsets[s + 1]) - 1],
      std::max_element(last, logits.end()) - last);
  }
  const Recording drawn = this->Written(model + " --generate 3 --temperature 2 --seed 1 --top-k 9");
  const Recording again = this->Written(model + " --generate 3 --temperature 2 --seed 1 --top-k 9");
  const Recording other = this->Written(model + " --generate 3 --temperature 2 --seed 2 --top-k 9");
  EXPECT_EQ(drawn.tokens.id, again.tokens.id);
  EXPECT_NE(drawn.tokens.id, other.tokens.id);
}

TEST_F(RecordCommand, ThreadsDoNotMatter)
{
  const TransformerOracle oracle("gpt2");
  this->ExpectSameForThreads(Quoted(oracle.Path()) + " " + Ids(oracle));
}

TEST_F(RecordCommand, RefusesWhatItCannotDo)
{
  const std::string output = " -o " + this->File("run.safetensors");
  const std::string model = Quoted(TransformerOracle::Folder("gpt2"));
  const std::string ids = model + " --token-ids '1 2' ";
  this->ExpectRefusals({
    { "", "expected a model, found none; --help shows how." },
    { ids, "expected --output, the recording to write, found none." },
    { ids + "-o run.json", "--output: expected a name ending in .safetensors, found 'run.json'." },
    { ids + "-o /no/such/run.safetensors",
      "/no/such/run.safetensors: expected an existing folder, found none." },
    { model + output, "expected prompts, --prompts, --token-ids or pictures, found none." },
    { "/no/such/model text" + output, "/no/such/model: expected the folder or the file of a model, "
                                      "found none. Models are not downloaded: " },
    { model + " text" + output, "tokenizer" },
    { ids + "text" + output, "found 2: Prompts, --token-ids" },
    { model + " --prompts /no/such.txt" + output, "tokenizer.json" },
    { model + " --images /no/such.png" + output, "/no/such.png" },
    { model + " --token-ids '1 x'" + output, "line 1" },
    { model + " --token-ids 100000" + output, "100000" },
    { ids + "--frames-per-film 2" + output, "--frames-per-film: expected 0, since a model of "
                                            "architecture gpt2 reads no videos, found 2." },
    { ids + "--frames-per-second 0" + output, "--frames-per-second: expected a positive number" },
    { ids + "--layers 7" + output, "7" },
    { ids + "--layers ''" + output, "--layers: expected numbers such as 0,4,5, found none." },
    { ids + "--record Thoughts" + output,
      "--record: expected all or some of QueriesAndKeys, Values, HeadOutputs, Residual, Logits, "
      "Routing, found 'Thoughts'." },
    { ids + "--record Routing" + output, "the model has no experts" },
    { ids + "--generate -1" + output, "--generate: expected 0 to 100000 tokens, found -1." },
    { ids + "--generate 1000" + output, "positions" },
    { ids + "--generate 1 --temperature -1" + output, "--temperature: expected a number" },
    { ids + "--top-k -1" + output, "--top-k: expected at least 0, found -1." },
    { ids + "--seed -1" + output, "--seed: expected at least 0, found -1." },
    { ids + "--max-length -1" + output, "--max-length: expected at least 0, found -1." },
    { ids + "--threads -1" + output, "--threads: expected at least 0, found -1." },
    { ids + "--love" + output, "love" },
  });
}

TEST_F(RecordCommand, LeavesNoPartOfARecording)
{
  this->ExpectNoPart(
    Quoted(TransformerOracle::Folder("gpt2")) + " --token-ids 1", "full.safetensors");
}

}
