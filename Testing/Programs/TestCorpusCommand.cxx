// attention-atlas corpus, run as its users run it.

#include "CommandTest.h"
#include "Corpus/CorpusFile.h"

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

class CorpusCommand : public test::CommandTest
{
protected:
  CorpusCommand()
    : CommandTest("corpus")
  {
  }

  /// What is written by a run that succeeds.
  CorpusStatistics Written(const std::string& arguments) const
  {
    return ReadCorpus(this->Write(this->Letters() + arguments));
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
    this->Written(this->WithFile("one.txt", "ab,a\nb\n") + " " + this->WithFile("two.txt", "cab"));
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
  const std::string text = this->WithFile("text.txt", "abcabc\nab\n\ncab");
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
    this->Letters() + this->WithFile("text.txt", LongText(60)) + " --batch 16 -o ";
  this->Succeed(run + this->File("whole.safetensors"));
  this->Succeed(run + this->File("part.safetensors") + " --tokens 100");
  const CorpusStatistics part = ReadCorpus(this->Folder / "part.safetensors");
  EXPECT_EQ(part.tokens, 112); // the first batches of 16 that reach 100
  EXPECT_FALSE(part.isComplete);
  EXPECT_NE(this->BytesOf("part.safetensors"), this->BytesOf("whole.safetensors"));
  const std::string continued = this->File("part.safetensors");
  this->Succeed(run + continued + " --continue-from " + continued);
  EXPECT_EQ(this->BytesOf("part.safetensors"), this->BytesOf("whole.safetensors"));
}

/// Statistics of other weights or settings, or of other texts of the same size, do not go on, and
/// nothing is written.
TEST_F(CorpusCommand, GoesOnWithTheSameModelAndTextsAlone)
{
  const std::string model = this->Letters();
  const std::string text = this->WithFile("text.txt", "abcabc\nab\n");
  const std::string part = this->File("part.safetensors");
  this->Succeed(model + text + " --tokens 6 -o " + part);
  const std::string goesOn =
    text + " --tokens 0 --continue-from " + part + " -o " + this->File("run.safetensors");
  const auto refusal = [&]
  {
    const ProgramResult result = Run(model + goesOn);
    EXPECT_EQ(result.code, 1);
    EXPECT_FALSE(std::filesystem::exists(this->Folder / "run.safetensors"));
    return result.errors;
  };
  this->WithFile("text.txt", "abcabb\nab\n");
  EXPECT_THAT(refusal(), HasSubstr("text.txt had other tokens when it was measured."));
  this->WithFile("text.txt", "abcabc\nab\n");
  const std::filesystem::path weights = this->Folder / "letters" / "model.safetensors";
  const std::string bytes = test::ReadBytes(weights);
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  test::WriteBytes(weights, changed);
  EXPECT_THAT(refusal(), HasSubstr("found those of one with other weights, then at "));
  test::WriteBytes(weights, bytes);
  this->Succeed(model + goesOn);
}

TEST_F(CorpusCommand, ThreadsDoNotMatter)
{
  this->ExpectSameForThreads(this->Letters() + this->WithFile("text.txt", LongText(100)));
}

TEST_F(CorpusCommand, KeepsWhatItSawWhenItIsInterrupted)
{
  const std::string output = this->File("run.safetensors");
  const std::string run =
    this->Letters() + this->WithFile("text.txt", LongText(9'000'000)) + " -o ";
  const ProgramResult result = RunProgram(
    "--preserve-status --signal=INT 4 '" ATLAS_PROGRAM "' corpus --tokens 0 " + run + output,
    "timeout");
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.errors, HasSubstr("attention-atlas corpus: stopped after "));
  EXPECT_THAT(
    result.errors, EndsWith(" To go on, add to the command: --continue-from " + output + "\n"));
  const CorpusStatistics seen = ReadCorpus(this->Folder / "run.safetensors");
  EXPECT_GT(seen.tokens, 0);
  EXPECT_FALSE(seen.isComplete);
  const std::string limit = " --tokens " + std::to_string(seen.tokens);
  this->Succeed(run + this->File("same.safetensors") + limit);
  EXPECT_EQ(this->BytesOf("run.safetensors"), this->BytesOf("same.safetensors"));
}

TEST_F(CorpusCommand, SaysHowMuchMemoryItNeeds)
{
  const std::string run =
    this->Letters() + this->WithFile("text.txt", "abc") + " -o " + this->File("run.safetensors");
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
  const std::string model = this->Letters();
  const std::string text = model + this->WithFile("text.txt", "abc\n");
  const std::string images = Quoted(TransformerOracle::Folder("vit"));
  this->ExpectRefusals({
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
  });
}

TEST_F(CorpusCommand, RefusesTextsThatItCannotRead)
{
  const std::string output = " -o " + this->File("run.safetensors");
  this->ExpectRefusals(
    {
      { this->Letters() + this->WithFile("zero.txt", std::string("ab\nc\0a\n", 7)) + output,
        "zero.txt, line 2: expected UTF-8 text" },
      { this->Letters() + this->WithFile("empty.txt", "\n\n") + output,
        "expected documents with tokens, found none" },
      { this->Letters() + this->WithFile("ids.jsonl", R"({"tokens": [0, 100000]})") + output,
        "100000" },
    },
    2); // that of its memory comes first
}

TEST_F(CorpusCommand, RefusesToGoOnWithOtherOptions)
{
  const std::string run = this->Letters() + this->WithFile("text.txt", "abc\nab") + " -o " +
                          this->File("run.safetensors");
  this->Succeed(run + " --tokens 1 --batch 1");
  const ProgramResult result =
    Run(run + " --batch 2 --continue-from " + this->File("run.safetensors"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, HasSubstr("BatchTokens 2"));
  EXPECT_THAT(result.errors, HasSubstr("BatchTokens 1"));
}

TEST_F(CorpusCommand, LeavesNoPartOfAFile)
{
  this->ExpectNoPart(this->Letters() + this->WithFile("text.txt", "abc"), "full.safetensors");
}

}
