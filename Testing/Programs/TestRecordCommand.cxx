// attention-atlas record, run as its users run it.

#include "MappedFile.h"
#include "ModelsOracle.h"
#include "PictureBytes.h"
#include "Program.h"
#include "RecordingFile.h"
#include "Safetensors.h"
#include "SameRecording.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ExpectRows;
using atlas::test::ModelsOracle;
using atlas::test::ProgramResult;
using atlas::test::Quoted;
using atlas::test::RunProgram;
using atlas::test::TemporaryDirectory;
using atlas::test::TransformerOracle;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace
{

class RecordCommand : public testing::Test
{
protected:
  TemporaryDirectory Folder;

  static ProgramResult Run(const std::string& arguments)
  {
    return RunProgram(ATLAS_PROGRAM, "record " + arguments);
  }

  /// What is written by a run that succeeds.
  Recording Written(const std::string& arguments)
  {
    const std::string path = this->Folder / "run.safetensors";
    const ProgramResult result = Run(arguments + " -o '" + path + "'");
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_EQ(result.output, path + "\n");
    return ReadRecording(path).recording;
  }

  /// The model of the oracle with a tokenizer of its own: a token per letter.
  std::string WithLetters() const
  {
    const std::filesystem::path folder = this->Folder / "letters";
    std::filesystem::copy(TransformerOracle::Folder("gpt2"), folder);
    test::WriteBytes(folder / "vocab.json", R"({"a": 0, "b": 1, "c": 2, ",": 3, "\u010a": 4})");
    test::WriteBytes(folder / "merges.txt", "#version: 0.2\n");
    return "'" + folder.string() + "'";
  }
};

/// Token ids as --token-ids takes them.
std::string Ids(const TransformerOracle& oracle)
{
  std::string text = "--token-ids '";
  for (const std::vector<std::int64_t>& sequence : oracle.Input().tokens)
  {
    for (const std::int64_t id : sequence)
    {
      text += std::to_string(id) + " ";
    }
    text += "\n";
  }
  return text + "'";
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
  std::string ids;
  for (const std::int64_t id : expected.GetTensors().at("0.input_ids").ToInteger())
  {
    ids += std::to_string(id) + " ";
  }
  const Recording found = this->Written(Quoted(folder) + " --record all --token-ids '" + ids + "'");
  test::ExpectClose("logits", test::Rows(found.logits, 0, 19),
    expected.GetTensors().at("0.logits").ToDouble(), 2e-5);
}

TEST_F(RecordCommand, RecordsTheRoutingOfAModelWithExperts)
{
  const std::filesystem::path path =
    TransformerOracle::Folder("gpt2").parent_path().parent_path() / "models/transformers/mixtral";
  for (const std::string what : { "all", "Routing" })
  {
    const Recording found =
      this->Written(Quoted(path) + " --record " + what + " --token-ids '3 1 4 1 5'");
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
  const std::filesystem::path encoder =
    TransformerOracle::Folder("gpt2").parent_path().parent_path() /
    "models/transformers/distilbert";
  const Recording text = this->Written(Quoted(encoder) + " --record all --token-ids '3 1 4 1 5'");
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
    files.push_back(Quoted(this->Folder / (std::to_string(color) + ".png")));
    test::WriteBytes(this->Folder / (std::to_string(color) + ".png"),
      test::PngFile(32, 32, 8, test::PngColor::Rgb, rows));
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
  const std::string model = this->WithLetters();
  const Recording found = this->Written(model + " 'ab,a' cab");
  EXPECT_THAT(found.tokens.id, ElementsAre(0, 1, 3, 0, 2, 0, 1));
  EXPECT_THAT(found.tokens.text, ElementsAre("a", "b", ",", "a", "c", "a", "b"));
  EXPECT_THAT(found.sequenceOffsets, ElementsAre(0, 4, 7));

  test::WriteBytes(this->Folder / "prompts.txt", "ab,a\ncab\n");
  const Recording same =
    this->Written(model + " --prompts " + Quoted(this->Folder / "prompts.txt"));
  test::ExpectEqual(same.layers.at(1).heads.at(1), found.layers.at(1).heads.at(1));
  EXPECT_EQ(same.tokens.text, found.tokens.text);

  const ProgramResult cut =
    Run(model + " abba --max-length 3 -o " + Quoted(this->Folder / "cut.safetensors"));
  EXPECT_THAT(cut.errors, HasSubstr("warning: sequence 0 has 4 tokens; the last 1 are left out"));
  EXPECT_THAT(
    ReadRecording(this->Folder / "cut.safetensors").recording.tokens.id, ElementsAre(0, 1, 1));
}

TEST_F(RecordCommand, NamesSettingsThatAreNotKnown)
{
  const std::string model = this->WithLetters();
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
  const std::string model = this->WithLetters();
  const Recording found = this->Written(model + " 'a\nb\n' 'c\n\na'");
  EXPECT_THAT(found.tokens.id, ElementsAre(0, 4, 1, 4, 2, 4, 4, 0));
  EXPECT_THAT(found.sequenceOffsets, ElementsAre(0, 4, 8));
  test::WriteBytes(
    this->Folder / "prompts.jsonl", "\"a\\nb\\n\"\n{\"id\": 7, \"prompt\": \"c\\n\\na\"}\n");
  const std::string output = this->Folder / "file.safetensors";
  const ProgramResult result =
    Run(model + " --prompts " + Quoted(this->Folder / "prompts.jsonl") + " -o " + Quoted(output));
  EXPECT_THAT(
    result.errors, HasSubstr("warning: " + (this->Folder / "prompts.jsonl").string() +
                             ": only the text of each line is read, and not its \"id\"."));
  EXPECT_EQ(ReadRecording(output).recording.tokens.id, found.tokens.id);
}

TEST_F(RecordCommand, SaysWhatIsWrongWithPrompts)
{
  const std::string model = this->WithLetters();
  const std::string output = " -o " + Quoted(this->Folder / "run.safetensors");
  test::WriteBytes(this->Folder / "list.json", "[\"a\"]");
  test::WriteBytes(this->Folder / "bad.jsonl", "\"a\"\n{\"messages\": []}\n");
  test::WriteBytes(this->Folder / "empty.txt", "");
  const std::string folder = this->Folder.Path().string() + "/";
  const std::string list = folder + "list.json";
  const std::string long_ = " '" + std::string(400, 'a') + "'";
  for (const auto& [arguments, message] :
    std::vector<std::pair<std::string, std::string>>{
      { " ''", "prompt 1: expected a text, found no tokens." },
      { " a ''", "prompt 2: expected a text, found no tokens." },
      { " --prompts " + list, list + ": expected a text with one prompt per line, or JSON lines" },
      { " --prompts " + folder + "bad.jsonl", "bad.jsonl, line 2: expected a prompt as" },
      { " --prompts " + folder + "empty.txt",
        "empty.txt: expected at least one prompt, found none." },
      { " --prompts " + folder + "none.txt", "none.txt: cannot open file" },
      { long_, "positions of the model; shorten it, or set --max-length to cut it off." },
      { " a --target b", "--target: expected a model with an encoder and a decoder" } })
  {
    const ProgramResult result = Run(model + arguments + output);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(message)) << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
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
  for (const char* threads : { "1", "3" })
  {
    EXPECT_EQ(Run(Quoted(oracle.Path()) + " " + Ids(oracle) + " --threads " + threads + " -o " +
                  Quoted(this->Folder / (std::string(threads) + ".safetensors")))
                .code,
      0);
  }
  EXPECT_EQ(test::ReadBytes(this->Folder / "1.safetensors"),
    test::ReadBytes(this->Folder / "3.safetensors"));
}

TEST_F(RecordCommand, RefusesWhatItCannotDo)
{
  const std::string folder = this->Folder.Path().string();
  const std::string output = " -o '" + folder + "/run.safetensors'";
  const std::string model = Quoted(TransformerOracle::Folder("gpt2"));
  const std::string ids = model + " --token-ids '1 2' ";
  const std::vector<std::pair<std::string, std::string>> cases = {
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
                                            "architecture gpt2 reads no films, found 2." },
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
  };
  for (const auto& [arguments, message] : cases)
  {
    const ProgramResult result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.errors, StartsWith("attention-atlas record: ")) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(message)) << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << arguments;
    EXPECT_THAT(result.output, IsEmpty()) << arguments;
    EXPECT_THAT(this->Folder.Entries(), IsEmpty()) << arguments;
  }
}

TEST_F(RecordCommand, LeavesNoPartOfARecording)
{
  // A folder with something in it is not replaced.
  std::filesystem::create_directories(this->Folder / "full.safetensors" / "of things");
  const ProgramResult result =
    Run(Quoted(TransformerOracle::Folder("gpt2")) + " --token-ids 1 -o " +
        Quoted(this->Folder / "full.safetensors"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(this->Folder.Entries(), ElementsAre("full.safetensors"));
}

}
