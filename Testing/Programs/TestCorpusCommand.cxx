// attention-atlas corpus, run as its users run it.

#include "CorpusFile.h"
#include "Program.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ProgramResult;
using atlas::test::Quoted;
using atlas::test::RunProgram;
using atlas::test::TemporaryDirectory;
using atlas::test::TransformerOracle;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

namespace
{

class CorpusCommand : public testing::Test
{
protected:
  TemporaryDirectory Folder;

  static ProgramResult Run(const std::string& arguments)
  {
    return RunProgram(ATLAS_PROGRAM, "corpus " + arguments);
  }

  std::string File(const std::string& name) const { return Quoted(this->Folder / name); }

  std::string WithText(const std::string& name, const std::string& text) const
  {
    test::WriteBytes(this->Folder / name, text);
    return this->File(name);
  }

  /// The model of the oracle, of two layers of four heads, with a tokenizer of a token per letter.
  std::string Model() const
  {
    const std::filesystem::path folder = this->Folder / "letters";
    if (!std::filesystem::exists(folder))
    {
      std::filesystem::copy(TransformerOracle::Folder("gpt2"), folder);
      test::WriteBytes(folder / "vocab.json", R"({"a": 0, "b": 1, "c": 2, ",": 3, "\u010a": 4})");
      test::WriteBytes(folder / "merges.txt", "#version: 0.2\n");
    }
    return Quoted(folder) + " ";
  }

  /// What is written by a run that succeeds.
  CorpusStatistics Written(const std::string& arguments)
  {
    const std::string path = this->Folder / "run.safetensors";
    const ProgramResult result = Run(this->Model() + arguments + " -o '" + path + "'");
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_EQ(result.output, path + "\n");
    return ReadCorpus(path);
  }

  std::string BytesOf(const std::string& name) const
  {
    return test::ReadBytes(this->Folder / name);
  }
};

/// Lines of letters without an end in sight.
std::string LongText(std::size_t lines)
{
  std::string text;
  for (std::size_t line = 0; line < lines; ++line)
  {
    for (std::size_t i = 0; i < 8; ++i)
    {
      text += "abc,"[(line * line + i * (line % 5)) % 4];
    }
    text += '\n';
  }
  return text;
}

TEST_F(CorpusCommand, CountsTheTokensOfAllFiles)
{
  const CorpusStatistics found =
    this->Written(this->WithText("one.txt", "ab,a\nb\n") + " " + this->WithText("two.txt", "cab"));
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.windows, 3);
  EXPECT_EQ(found.tokens, 8);
  EXPECT_TRUE(found.isComplete);
  EXPECT_THAT(found.ids, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(found.texts, ElementsAre("a", "b", "c", ","));
  EXPECT_THAT(found.occurrences, ElementsAre(3, 3, 1, 1));
  EXPECT_THAT(found.heads, SizeIs(8));
  for (const CorpusHead& head : found.heads)
  {
    // Each first query attends to itself alone.
    EXPECT_EQ(head.Count(CorpusCount::FirstQueries), 3);
    EXPECT_EQ(head.Sum(CorpusSum::FirstAttention), 3);
  }
  EXPECT_EQ(
    found.model, std::filesystem::absolute(this->Folder / "letters" / "config.json").string());
}

TEST_F(CorpusCommand, OptionsSayWhatIsMeasured)
{
  const std::string text = this->WithText("text.txt", "abcabc\nab\n\ncab");
  const CorpusStatistics found = this->Written(
    text + " --documents Paragraphs --window 4 --overlap 1 --layers 1 --contexts 1 --samples 2 "
           "--no-agreement --no-special-tokens --sink-threshold 1 --batch 1");
  EXPECT_EQ(found.documents, 2);
  EXPECT_EQ(found.options.split, DocumentSplit::Paragraphs);
  EXPECT_EQ(found.options.window, 4);
  EXPECT_EQ(found.options.overlap, 1);
  EXPECT_EQ(found.options.batch, 1);
  EXPECT_FALSE(found.options.addSpecialTokens);
  EXPECT_THAT(found.options.layers, ElementsAre(1));
  EXPECT_THAT(found.samples, SizeIs(2));
  EXPECT_THAT(found.products, IsEmpty());
  ASSERT_THAT(found.heads, SizeIs(4));
  EXPECT_THAT(found.heads[0].contexts[1], SizeIs(1));
  EXPECT_EQ(found.heads[0].Sum(CorpusSum::SinkRate), 0); // no weight is above 1
  EXPECT_EQ(found.valueDimension, 0);
  EXPECT_EQ(this->Written(text + " --documents Files").documents, 1);
  const CorpusStatistics sampled = this->Written(text + " --samples 2 --sample-values");
  EXPECT_TRUE(sampled.options.sampleValues);
  ASSERT_THAT(sampled.samples, SizeIs(2));
  EXPECT_EQ(sampled.samples[0].values.size(), sampled.samples[0].keys.size());
}

TEST_F(CorpusCommand, GoesOnWhereItStopped)
{
  const std::string run =
    this->Model() + this->WithText("text.txt", LongText(60)) + " --batch 16 -o ";
  EXPECT_EQ(Run(run + this->File("whole.safetensors")).code, 0);
  EXPECT_EQ(Run(run + this->File("part.safetensors") + " --tokens 100").code, 0);
  const CorpusStatistics part = ReadCorpus(this->Folder / "part.safetensors");
  EXPECT_EQ(part.tokens, 112); // the first batches of 16 that reach 100
  EXPECT_FALSE(part.isComplete);
  EXPECT_NE(this->BytesOf("part.safetensors"), this->BytesOf("whole.safetensors"));
  const std::string continued = this->File("part.safetensors");
  EXPECT_EQ(Run(run + continued + " --continue-from " + continued).code, 0);
  EXPECT_EQ(this->BytesOf("part.safetensors"), this->BytesOf("whole.safetensors"));
}

/// Statistics of other weights or settings, or of other texts of the same size, do not go on, and
/// nothing is written.
TEST_F(CorpusCommand, GoesOnWithTheSameModelAndTextsAlone)
{
  const std::string model = this->Model();
  const std::string text = this->WithText("text.txt", "abcabc\nab\n");
  const std::string part = this->File("part.safetensors");
  EXPECT_EQ(Run(model + text + " --tokens 6 -o " + part).code, 0);
  const std::string goesOn =
    text + " --tokens 0 --continue-from " + part + " -o " + this->File("run.safetensors");
  const auto refusal = [&]
  {
    const ProgramResult result = Run(model + goesOn);
    EXPECT_EQ(result.code, 1);
    EXPECT_FALSE(std::filesystem::exists(this->Folder / "run.safetensors"));
    return result.errors;
  };
  this->WithText("text.txt", "abcabb\nab\n");
  EXPECT_THAT(refusal(), HasSubstr("text.txt had other tokens when it was measured."));
  this->WithText("text.txt", "abcabc\nab\n");
  const std::filesystem::path weights = this->Folder / "letters" / "model.safetensors";
  const std::string bytes = test::ReadBytes(weights);
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  test::WriteBytes(weights, changed);
  EXPECT_THAT(refusal(), HasSubstr("found those of one with other weights, then at "));
  test::WriteBytes(weights, bytes);
  EXPECT_EQ(Run(model + goesOn).code, 0);
}

TEST_F(CorpusCommand, ThreadsDoNotMatter)
{
  const std::string run = this->Model() + this->WithText("text.txt", LongText(100)) + " --threads ";
  for (const std::string threads : { "1", "3" })
  {
    EXPECT_EQ(Run(run + threads + " -o " + this->File(threads + ".safetensors")).code, 0);
  }
  EXPECT_EQ(this->BytesOf("1.safetensors"), this->BytesOf("3.safetensors"));
}

TEST_F(CorpusCommand, KeepsWhatItSawWhenItIsInterrupted)
{
  const std::string output = this->File("run.safetensors");
  const std::string run = this->Model() + this->WithText("text.txt", LongText(9'000'000)) + " -o ";
  const ProgramResult result = RunProgram("timeout",
    "--preserve-status --signal=INT 4 '" ATLAS_PROGRAM "' corpus --tokens 0 " + run + output);
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.errors, HasSubstr("attention-atlas corpus: stopped after "));
  EXPECT_THAT(
    result.errors, EndsWith(" To go on, add to the command: --continue-from " + output + "\n"));
  const CorpusStatistics seen = ReadCorpus(this->Folder / "run.safetensors");
  EXPECT_GT(seen.tokens, 0);
  EXPECT_FALSE(seen.isComplete);
  const std::string limit = " --tokens " + std::to_string(seen.tokens);
  EXPECT_EQ(Run(run + this->File("same.safetensors") + limit).code, 0);
  EXPECT_EQ(this->BytesOf("run.safetensors"), this->BytesOf("same.safetensors"));
}

TEST_F(CorpusCommand, SaysHowMuchMemoryItNeeds)
{
  const std::string run =
    this->Model() + this->WithText("text.txt", "abc") + " -o " + this->File("run.safetensors");
  const ProgramResult result = Run(run);
  EXPECT_THAT(result.errors, StartsWith("attention-atlas corpus: 8 heads, at most "));
  EXPECT_THAT(result.errors, EndsWith(" MB beside the weights\n"));
  ::setenv("ATLAS_MEMORY_LIMIT_KIB", "100", 1);
  const ProgramResult failed = Run(run);
  ::unsetenv("ATLAS_MEMORY_LIMIT_KIB");
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.errors, HasSubstr("the statistics of all heads"));
  EXPECT_THAT(failed.errors, HasSubstr("choose --layers, or --no-agreement."));
}

TEST_F(CorpusCommand, RefusesWhatItCannotDo)
{
  const std::string output = " -o " + this->File("run.safetensors");
  const std::string model = this->Model();
  const std::string text = model + this->WithText("text.txt", "abc\n");
  const std::string images = Quoted(TransformerOracle::Folder("vit"));
  const std::vector<std::pair<std::string, std::string>> cases = {
    { "", "expected a model, found none; --help shows how." },
    { text, "expected --output, the statistics to write, found none." },
    { text + " -o run.json",
      "--output: expected a name ending in .safetensors, found 'run.json'." },
    { model + output, "expected files with text, found none; --help shows how." },
    { "/no/such/model text.txt" + output,
      "/no/such/model: expected the folder or the file of a model, found none." },
    { model + "/no/such.txt" + output, "/no/such.txt: No such file or directory." },
    { images + " " + this->File("text.txt") + output,
      "the model: expected one that reads text, found one of images." },
    { text + " --documents Words" + output,
      "--documents: expected one of Lines, Paragraphs, Files, found 'Words'." },
    { text + " --tokens -1" + output, "--tokens: expected at least 0, found -1." },
    { text + " --window 1" + output, "--window: expected 2 to " },
    { text + " --window 8 --overlap 4" + output, "--overlap: expected 0 to 3 tokens" },
    { text + " --layers 7" + output, "--layers: expected layers from 0 to 1, found 7." },
    { text + " --layers ''" + output, "--layers: expected numbers such as 0,4,5, found none." },
    { text + " --contexts 1001" + output, "--contexts: expected 0 to 1000, found 1001." },
    { text + " --samples -1" + output, "--samples: expected at least 0, found -1." },
    { text + " --sink-threshold 1.5" + output, "--sink-threshold: expected 0 to 1, found 1.5." },
    { text + " --batch 0" + output, "--batch: expected at least 1, found 0." },
    { text + " --threads -1" + output, "--threads: expected at least 0, found -1." },
    { text + " --continue-from " + this->File("text.txt") + output, "text.txt: expected a" },
    { text + " --love" + output, "love" },
  };
  for (const auto& [arguments, message] : cases)
  {
    const ProgramResult result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.errors, StartsWith("attention-atlas corpus: ")) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(message)) << arguments;
    std::istringstream lines(result.errors); // warnings of what is not used may come before
    std::int64_t errors = 0;
    for (std::string line; std::getline(lines, line);)
    {
      errors += line.find(": warning: ") == std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(errors, 1) << arguments;
    EXPECT_THAT(result.output, IsEmpty()) << arguments;
    EXPECT_FALSE(std::filesystem::exists(this->Folder / "run.safetensors")) << arguments;
  }
}

TEST_F(CorpusCommand, RefusesTextsThatItCannotRead)
{
  for (const auto& [name, bytes, message] :
    std::vector<std::tuple<std::string, std::string, std::string>>{
      { "zero.txt", std::string("ab\nc\0a\n", 7), "zero.txt, line 2: expected UTF-8 text" },
      { "empty.txt", "\n\n", "expected documents with tokens, found none" },
      { "ids.jsonl", R"({"tokens": [0, 100000]})", "100000" } })
  {
    const ProgramResult result =
      Run(this->Model() + this->WithText(name, bytes) + " -o " + this->File("run.safetensors"));
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_THAT(result.errors, HasSubstr(message)) << name;
    EXPECT_FALSE(std::filesystem::exists(this->Folder / "run.safetensors")) << name;
  }
}

TEST_F(CorpusCommand, RefusesToGoOnWithOtherOptions)
{
  const std::string run =
    this->Model() + this->WithText("text.txt", "abc\nab") + " -o " + this->File("run.safetensors");
  EXPECT_EQ(Run(run + " --tokens 1 --batch 1").code, 0);
  const ProgramResult result =
    Run(run + " --batch 2 --continue-from " + this->File("run.safetensors"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, HasSubstr("BatchTokens 2"));
  EXPECT_THAT(result.errors, HasSubstr("BatchTokens 1"));
}

TEST_F(CorpusCommand, LeavesNoPartOfAFile)
{
  // A folder with something in it is not replaced.
  std::filesystem::create_directories(this->Folder / "out" / "full.safetensors" / "of things");
  const ProgramResult result = Run(this->Model() + this->WithText("text.txt", "abc") + " -o " +
                                   this->File("out/full.safetensors"));
  EXPECT_EQ(result.code, 1);
  const std::filesystem::directory_iterator entries(this->Folder / "out");
  EXPECT_EQ(std::distance(entries, {}), 1);
}

}
