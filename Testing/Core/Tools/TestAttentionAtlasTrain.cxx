// The program attention-atlas-train, run as its users run it.

#include "Program.h"
#include "TemporaryDirectory.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ProgramResult;
using atlas::test::RunProgram;
using atlas::test::TemporaryDirectory;
using testing::IsEmpty;

namespace
{

TEST(AttentionAtlasTrain, WritesCheckpointsAndATable)
{
  const TemporaryDirectory folder;
  const ProgramResult result =
    RunProgram(ATLAS_TOOL, "--steps 20 --every 10 -o '" + (folder / "run").string() + "'");
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(result.output.rfind("step 20: loss ", 0), 0U) << result.output;
  for (const char* name :
    { "step-00.safetensors", "step-10.safetensors", "step-20.safetensors", "training.csv" })
  {
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
  }
}

TEST(AttentionAtlasTrain, ThreadsDoNotMatter)
{
  const ProgramResult one = RunProgram(ATLAS_TOOL, "--runs 3 --steps 20 --threads 1");
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_EQ(std::count(one.output.begin(), one.output.end(), '\n'), 4);
  EXPECT_EQ(RunProgram(ATLAS_TOOL, "--runs 3 --steps 20 --threads 2").output, one.output);
}

TEST(AttentionAtlasTrain, RefusesWhatItCannotDo)
{
  const TemporaryDirectory folder;
  const std::string run = "--runs 1 --steps 1 ";
  const std::string output = "--steps 1 -o '" + (folder / "run").string() + "' ";
  const std::vector<std::pair<std::string, std::string>> cases = {
    { "", "expected --output or --runs, found neither; --help shows them." },
    { run + output, "expected --output or --runs, found both; --help shows them." },
    { run + "file", "expected only options, found 'file'." },
    { output + "file", "expected only options, found 'file'." },
    { run + "--threads -2", "--threads: expected at least 0, found -2." },
    { output + "--threads -2", "--threads: expected at least 0, found -2." },
    { output + "--every 0", "--every: expected at least 1, found 0." },
    { output + "--continue", "--continue: expected a --model to continue, found none." },
    { output + "--mode Joint,Boosting", "--mode: expected one mode with --output, found 2." },
    { "--runs -1", "--runs: expected at least 0, found -1." },
    { run + "--tokens -3", "--tokens: expected at least 1, found -3." },
    { run + "--heads 0", "--heads: expected at least 1, found 0." },
    { run + "--head-dimension -1", "--head-dimension: expected at least 1, found -1." },
    { "--runs 1 --steps -1", "--steps: expected at least 0, found -1." },
    { run + "--rate -0.5", "--rate: expected a positive number, found -0.5." },
    { run + "--batch -1", "--batch: expected at least 0, found -1." },
    { run + "--prior-decay 2", "--prior-decay: expected a number in (0, 1], found 2." },
    { run + "--specialization -1", "--specialization: expected at least 0, found -1." },
  };
  for (const auto& [arguments, message] : cases)
  {
    const ProgramResult result = RunProgram(ATLAS_TOOL, arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(result.errors, "attention-atlas-train: " + message + "\n") << arguments;
    EXPECT_THAT(result.output, IsEmpty()) << arguments;
  }
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

}
