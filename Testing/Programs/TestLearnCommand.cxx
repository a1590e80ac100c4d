// attention-atlas learn, run as its users run it.

#include "CommandTest.h"
#include "Learning/CheckpointFiles.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

const std::string Small = "--task RepeatedTokens --vocabulary 8 --context 16 --heads 2 "
                          "--model-dimension 16 --batch-size 4 --warmup 5 ";

class LearnCommand : public test::CommandTest
{
protected:
  LearnCommand()
    : CommandTest("learn")
  {
  }
};

/// The files below a folder by name, with their bytes.
std::map<std::string, std::string> FilesIn(const std::filesystem::path& folder)
{
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
  {
    if (entry.is_regular_file())
    {
      files[entry.path().lexically_relative(folder).string()] = test::ReadBytes(entry.path());
    }
  }
  return files;
}

TEST_F(LearnCommand, WritesAModelItsCheckpointsAndCurves)
{
  const ProgramResult result =
    this->Succeed(Small + "--steps 20 --checkpoint-every 10 -o " + this->File("run"));
  EXPECT_THAT(result.output, HasSubstr("Held-out Loss"));
  const std::map<std::string, std::string> files = FilesIn(this->Folder / "run");
  for (const char* name : { "config.json", "model.safetensors", "curves.csv", "recipe.json",
         "training-state.safetensors", "checkpoint-0/config.json", "checkpoint-0/model.safetensors",
         "checkpoint-10/config.json", "checkpoint-20/model.safetensors" })
  {
    EXPECT_EQ(files.count(name), 1U) << name;
  }
  EXPECT_EQ(files.at("model.safetensors"), files.at("checkpoint-20/model.safetensors"));
  EXPECT_NE(files.at("model.safetensors"), files.at("checkpoint-10/model.safetensors"));
  EXPECT_THAT(files.at("curves.csv"), StartsWith("Step,Loss,Accuracy,Held-out Loss,"));
  EXPECT_EQ(Transformer::Read(this->Folder / "run").GetConfig().modelDimension, 16);
  EXPECT_EQ(SavedTraining(this->Folder / "run").step, 20);
}

TEST_F(LearnCommand, TheRecipeOfAModelMakesItAgain)
{
  this->Run(Small + "--steps 9 --seed 5 -o " + this->File("one"));
  this->Succeed(
    "--threads 1 --recipe " + this->File("one/recipe.json") + " -o " + this->File("other"));
  EXPECT_EQ(FilesIn(this->Folder / "one"), FilesIn(this->Folder / "other"));
}

/// Sizes of a recipe are given, also beside a model with others.
TEST_F(LearnCommand, TheRecipeOfPairsOfAModelKeepsItsSizes)
{
  const ProgramResult first = this->Run("--task TokenPairs --heads 5 --print-recipe --model " +
                                        Quoted(ATLAS_DATA_DIR "/trained-n5-h3.safetensors"));
  EXPECT_THAT(first.output, HasSubstr("\"heads\": 5"));
  std::ofstream(this->Folder / "recipe.json") << first.output;
  const ProgramResult again =
    this->Run("--print-recipe --recipe " + Quoted(this->Folder / "recipe.json"));
  EXPECT_EQ(again.output, first.output);
}

TEST_F(LearnCommand, GoesOn)
{
  this->Run(Small + "--steps 20 --checkpoint-every 10 -o " + this->File("whole"));
  this->Run(Small + "--steps 10 --checkpoint-every 10 -o " + this->File("part"));
  this->Succeed("--continue " + this->File("part") + " --steps 20 --checkpoint-every 10 -o " +
                this->File("part"));
  EXPECT_EQ(FilesIn(this->Folder / "part"), FilesIn(this->Folder / "whole"));
}

TEST_F(LearnCommand, WritesCheckpointsOfPairs)
{
  for (const std::string steps : { "1000", "20" })
  {
    const ProgramResult result = this->Succeed(
      "--task TokenPairs --steps " + steps + " --checkpoint-every 10 -o " + this->File("run"));
    EXPECT_THAT(result.output, HasSubstr("Accuracy Head 2"));
  }
  this->ExpectRefusals({ { "--continue " + this->File("run") + " -o " + this->File("more"),
    "recipe.json: expected the task of a transformer to continue" } });
  std::vector<std::string> names;
  for (const auto& [name, bytes] : FilesIn(this->Folder / "run"))
  {
    names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("curves.csv", "recipe.json", "step-00.safetensors",
                       "step-10.safetensors", "step-20.safetensors"));
}

TEST_F(LearnCommand, WritesATableOfSeeds)
{
  for (const std::string& task : { std::string("--task TokenPairs "), Small })
  {
    const auto table = [&](const std::string& threads)
    {
      const ProgramResult result = this->Succeed(task + "--steps 20 --seed 7 --seeds 3 --threads " +
                                                 threads + " --table " + this->File(threads));
      EXPECT_THAT(result.output, StartsWith("3 seeds "));
      return test::ReadBytes(this->Folder / threads);
    };
    const std::string one = table("1");
    EXPECT_THAT(one, StartsWith("Seed,"));
    EXPECT_THAT(one, HasSubstr("\n9,"));
    EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 4);
    EXPECT_EQ(table("2"), one);
  }
}

TEST_F(LearnCommand, SummarizesSeeds)
{
  const ProgramResult one = this->Succeed(Small + "--steps 10 --seeds 2 --threads 1");
  EXPECT_THAT(one.output, StartsWith("2 seeds "));
  EXPECT_THAT(one.output, HasSubstr("Held-out Loss"));
  EXPECT_EQ(this->Run(Small + "--steps 10 --seeds 2 --threads 2").output, one.output);
}

TEST_F(LearnCommand, PrintsARecipe)
{
  const ProgramResult result = this->Run("--task BeliefStates --layers 7 --print-recipe");
  LearningRecipe expected = DefaultRecipe(TaskKind::BeliefStates);
  expected.architecture.layers = 7;
  EXPECT_EQ(result.output, ToJson(expected));
}

TEST_F(LearnCommand, WritesHalfPrecision)
{
  this->Run(Small + "--steps 1 --f16 -o " + this->File("run"));
  const SafetensorsFile file(this->Folder / "run" / "model.safetensors");
  EXPECT_EQ(file.GetTensors().begin()->second.dtype, DType::F16);
}

TEST_F(LearnCommand, TwoTrainingsDoNotWriteToOneFolder)
{
  const int other = ::open(this->Folder.Path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  this->ExpectRefusals({ { Small + "--steps 2 -o " + Quoted(this->Folder.Path()),
    this->Folder.Path().string() +
      ": expected a folder that no other training writes to, found one that does.\n" } });
  ::close(other);
  EXPECT_EQ(this->Run(Small + "--steps 2 -o " + Quoted(this->Folder.Path())).code, 0);
}

TEST_F(LearnCommand, RefusesWhatItCannotDo)
{
  const std::string output = "--steps 1 -o " + this->File("run") + " ";
  const std::string task = "--task RepeatedTokens ";
  this->ExpectRefusals({
    { "", "expected one of --task, --recipe and --continue; --help shows them." },
    { task + "--recipe x.json " + output, "x.json: cannot open file" },
    { task + "--continue x " + output, "x/recipe.json: cannot open file" },
    { task, "expected --output or --seeds, found neither; --help shows them." },
    { task + output + "file", "expected only options, found 'file'." },
    { "--task Chess " + output, "RepeatedTokens" },
    { task + output + "--threads -2", "--threads: expected at least 0, found -2." },
    { task + output + "--checkpoint-every -1", "--checkpoint-every: expected at least 0" },
    { task + "--seeds 0", "--seeds: expected at least 1, found 0." },
    { task + output + "--layers 0", "--layers: expected 'layers' to be an integer from 1" },
    { "--task TokenPairs --seeds 1 " + output,
      "--output: expected none with --seeds of TokenPairs" },
    { "--task TokenPairs --f16 " + output, "--f16: expected none with TokenPairs" },
    { "--task TokenPairs --layers 2 " + output, "--layers: unknown setting 'layers'" },
    { task + output + "--mode Joint", "--mode: unknown setting 'mode'" },
    { "--task TokenPairs --mode Both " + output, "--mode: unknown mode 'Both'" },
    { "--task TokenPairs --prior-decay 2 " + output, "--prior-decay: expected a number in (0, 1]" },
    { "--task TokenPairs --model /no/such " + output, "/no/such" },
    { task + output + "--heads 65", "--head-dimension: 65 heads do not fit" },
    { task + output + "--positions Sinus", "--positions: unknown positions 'Sinus'" },
    { "--task Text " + output + "--text /no/such.txt", "/no/such.txt" },
    { task + output + "--model-dimension 1000000",
      "choose smaller sizes or a larger --checkpoint-every" },
  });
}

}
