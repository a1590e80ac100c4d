// attention-atlas learn, run as its users run it.

#include "CheckpointFiles.h"
#include "Program.h"
#include "RecipeFile.h"
#include "SavedTraining.h"
#include "TemporaryDirectory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ProgramResult;
using atlas::test::Quoted;
using atlas::test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace
{

const std::string Small = "--task RepeatedTokens --vocabulary 8 --context 16 --heads 2 "
                          "--model-dimension 16 --batch-size 4 --warmup 5 ";

ProgramResult Learn(const std::string& arguments)
{
  return test::RunProgram(ATLAS_PROGRAM, "learn " + arguments);
}

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

TEST(LearnCommand, WritesAModelItsCheckpointsAndCurves)
{
  const TemporaryDirectory folder;
  const ProgramResult result =
    Learn(Small + "--steps 20 --checkpoint-every 10 -o " + Quoted(folder / "run"));
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("Held-out Loss"));
  const std::map<std::string, std::string> files = FilesIn(folder / "run");
  for (const char* name : { "config.json", "model.safetensors", "curves.csv", "recipe.json",
         "training-state.safetensors", "checkpoint-0/config.json", "checkpoint-0/model.safetensors",
         "checkpoint-10/config.json", "checkpoint-20/model.safetensors" })
  {
    EXPECT_EQ(files.count(name), 1U) << name;
  }
  EXPECT_EQ(files.at("model.safetensors"), files.at("checkpoint-20/model.safetensors"));
  EXPECT_NE(files.at("model.safetensors"), files.at("checkpoint-10/model.safetensors"));
  EXPECT_THAT(files.at("curves.csv"), StartsWith("Step,Loss,Accuracy,Held-out Loss,"));
  EXPECT_EQ(Transformer::Read(folder / "run").GetConfig().modelDimension, 16);
  EXPECT_EQ(SavedTraining(folder / "run").step, 20);
}

TEST(LearnCommand, TheRecipeOfAModelMakesItAgain)
{
  const TemporaryDirectory folder;
  Learn(Small + "--steps 9 --seed 5 -o " + Quoted(folder / "one"));
  const ProgramResult again =
    Learn("--threads 1 --recipe " + Quoted(folder / "one" / "recipe.json") + " -o " +
          Quoted(folder / "other"));
  EXPECT_EQ(again.code, 0) << again.errors;
  EXPECT_EQ(FilesIn(folder / "one"), FilesIn(folder / "other"));
}

/// Sizes of a recipe are given, also beside a model with others.
TEST(LearnCommand, TheRecipeOfPairsOfAModelKeepsItsSizes)
{
  const TemporaryDirectory folder;
  const ProgramResult first = Learn("--task TokenPairs --heads 5 --print-recipe --model " +
                                    Quoted(ATLAS_DATA_DIR "/trained-n5-h3.safetensors"));
  EXPECT_THAT(first.output, HasSubstr("\"heads\": 5"));
  std::ofstream(folder / "recipe.json") << first.output;
  const ProgramResult again = Learn("--print-recipe --recipe " + Quoted(folder / "recipe.json"));
  EXPECT_EQ(again.output, first.output);
}

TEST(LearnCommand, GoesOn)
{
  const TemporaryDirectory folder;
  Learn(Small + "--steps 20 --checkpoint-every 10 -o " + Quoted(folder / "whole"));
  Learn(Small + "--steps 10 --checkpoint-every 10 -o " + Quoted(folder / "part"));
  const ProgramResult rest =
    Learn("--continue " + Quoted(folder / "part") + " --steps 20 --checkpoint-every 10 -o " +
          Quoted(folder / "part"));
  EXPECT_EQ(rest.code, 0) << rest.errors;
  EXPECT_EQ(FilesIn(folder / "part"), FilesIn(folder / "whole"));
}

TEST(LearnCommand, WritesCheckpointsOfPairs)
{
  const TemporaryDirectory folder;
  for (const std::string steps : { "1000", "20" })
  {
    const ProgramResult result = Learn(
      "--task TokenPairs --steps " + steps + " --checkpoint-every 10 -o " + Quoted(folder / "run"));
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("Accuracy Head 2"));
  }
  const ProgramResult more =
    Learn("--continue " + Quoted(folder / "run") + " -o " + Quoted(folder / "more"));
  EXPECT_EQ(more.code, 1);
  EXPECT_THAT(
    more.errors, HasSubstr("recipe.json: expected the task of a transformer to continue"));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : FilesIn(folder / "run"))
  {
    names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("curves.csv", "recipe.json", "step-00.safetensors",
                       "step-10.safetensors", "step-20.safetensors"));
}

TEST(LearnCommand, WritesATableOfSeeds)
{
  const TemporaryDirectory folder;
  for (const std::string& task : { std::string("--task TokenPairs "), Small })
  {
    const auto table = [&](const std::string& threads)
    {
      const ProgramResult result = Learn(task + "--steps 20 --seed 7 --seeds 3 --threads " +
                                         threads + " --table " + Quoted(folder / threads));
      EXPECT_EQ(result.code, 0) << result.errors;
      EXPECT_THAT(result.output, StartsWith("3 seeds "));
      return test::ReadBytes(folder / threads);
    };
    const std::string one = table("1");
    EXPECT_THAT(one, StartsWith("Seed,"));
    EXPECT_THAT(one, HasSubstr("\n9,"));
    EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 4);
    EXPECT_EQ(table("2"), one);
  }
}

TEST(LearnCommand, SummarizesSeeds)
{
  const ProgramResult one = Learn(Small + "--steps 10 --seeds 2 --threads 1");
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_THAT(one.output, StartsWith("2 seeds "));
  EXPECT_THAT(one.output, HasSubstr("Held-out Loss"));
  EXPECT_EQ(Learn(Small + "--steps 10 --seeds 2 --threads 2").output, one.output);
}

TEST(LearnCommand, PrintsARecipe)
{
  const ProgramResult result = Learn("--task Brackets --layers 7 --print-recipe");
  LearningRecipe expected = DefaultRecipe(TaskKind::Brackets);
  expected.architecture.layers = 7;
  EXPECT_EQ(result.output, ToJson(expected));
}

TEST(LearnCommand, WritesHalfPrecision)
{
  const TemporaryDirectory folder;
  Learn(Small + "--steps 1 --f16 -o " + Quoted(folder / "run"));
  const SafetensorsFile file(folder / "run" / "model.safetensors");
  EXPECT_EQ(file.GetTensors().begin()->second.dtype, DType::F16);
}

TEST(LearnCommand, TwoTrainingsDoNotWriteToOneFolder)
{
  const TemporaryDirectory folder;
  const int other = ::open(folder.Path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  const ProgramResult result = Learn(Small + "--steps 2 -o " + Quoted(folder.Path()));
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.errors, "attention-atlas learn: " + folder.Path().string() +
                             ": expected a folder that no other training writes to, found one that "
                             "does.\n");
  EXPECT_THAT(folder.Entries(), IsEmpty());
  ::close(other);
  EXPECT_EQ(Learn(Small + "--steps 2 -o " + Quoted(folder.Path())).code, 0);
}

TEST(LearnCommand, RefusesWhatItCannotDo)
{
  const TemporaryDirectory folder;
  const std::string output = "--steps 1 -o " + Quoted(folder / "run") + " ";
  const std::string task = "--task RepeatedTokens ";
  const std::vector<std::pair<std::string, std::string>> cases = {
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
  };
  for (const auto& [arguments, message] : cases)
  {
    const ProgramResult result = Learn(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.errors, StartsWith("attention-atlas learn: ")) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(message)) << arguments;
    EXPECT_THAT(result.output, IsEmpty()) << arguments;
  }
}

}
