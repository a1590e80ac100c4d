#pragma once

#include "TemporaryDirectory.h"
#include "TransformerOracle.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

namespace atlas::test
{

/// What a run of a program leaves behind.
struct ProgramResult
{
  int code = 0;
  std::string output;
  std::string errors;
};

/// A path as one word of a shell.
inline std::string Quoted(const std::filesystem::path& path)
{
  return "'" + path.string() + "'";
}

/// Runs attention-atlas, or another program, with arguments as a shell reads them.
inline ProgramResult RunProgram(
  const std::string& arguments, const std::string& program = ATLAS_PROGRAM)
{
  const TemporaryDirectory log;
  const std::string command = "'" + program + "' " + arguments + " >'" + (log / "output").string() +
                              "' 2>'" + (log / "errors").string() + "'";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status)) << command;
  return { WEXITSTATUS(status), ReadBytes(log / "output"), ReadBytes(log / "errors") };
}

/// The lines that are no warnings.
inline std::int64_t ErrorLines(const std::string& errors)
{
  std::istringstream lines(errors);
  std::int64_t count = 0;
  for (std::string line; std::getline(lines, line);)
  {
    count += line.find(": warning: ") == std::string::npos ? 1 : 0;
  }
  return count;
}

/// A command of attention-atlas, and a folder for what it reads and writes.
class CommandTest : public testing::Test
{
protected:
  explicit CommandTest(std::string name)
    : Name(std::move(name))
  {
  }

  TemporaryDirectory Folder;

  ProgramResult Run(const std::string& arguments) const
  {
    return RunProgram(this->Name + " " + arguments);
  }

  ProgramResult Succeed(const std::string& arguments) const
  {
    const ProgramResult result = this->Run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << "\n" << result.errors;
    return result;
  }

  /// The file that a run writes, which succeeds.
  std::filesystem::path Write(const std::string& arguments) const
  {
    const std::filesystem::path path = this->Folder / "run.safetensors";
    EXPECT_EQ(this->Succeed(arguments + " -o " + Quoted(path)).output, path.string() + "\n");
    return path;
  }

  std::string File(const std::string& name) const { return Quoted(this->Folder / name); }

  std::string WithFile(const std::string& name, const std::string& bytes) const
  {
    WriteBytes(this->Folder / name, bytes);
    return this->File(name);
  }

  std::string BytesOf(const std::string& name) const { return ReadBytes(this->Folder / name); }

  /// The model gpt2 of the oracle, of two layers of four heads, with a tokenizer of a token per
  /// letter.
  std::string Letters() const
  {
    const std::filesystem::path folder = this->Folder / "letters";
    if (!std::filesystem::exists(folder))
    {
      std::filesystem::copy(TransformerOracle::Folder("gpt2"), folder);
      WriteBytes(folder / "vocab.json", R"({"a": 0, "b": 1, "c": 2, ",": 3, "\u010a": 4})");
      WriteBytes(folder / "merges.txt", "#version: 0.2\n");
    }
    return Quoted(folder) + " ";
  }

  /// Expects an error for each of these arguments, in the last of `lines` lines beside warnings,
  /// with the part given, no output, and that no file is written.
  void ExpectRefusals(
    const std::vector<std::pair<std::string, std::string>>& cases, std::int64_t lines = 1) const
  {
    const std::set<std::string> before = this->Folder.Entries();
    for (const auto& [arguments, message] : cases)
    {
      SCOPED_TRACE(arguments);
      const ProgramResult result = this->Run(arguments);
      EXPECT_EQ(result.code, 1);
      EXPECT_THAT(result.errors, testing::StartsWith("attention-atlas " + this->Name + ": "));
      EXPECT_THAT(result.errors, testing::HasSubstr(message));
      EXPECT_EQ(ErrorLines(result.errors), lines) << result.errors;
      EXPECT_THAT(result.output, testing::IsEmpty());
      EXPECT_EQ(this->Folder.Entries(), before);
    }
  }

  /// Expects that a run replaces no folder with something in it, and leaves no part of a file.
  void ExpectNoPart(const std::string& arguments, const std::string& name) const
  {
    std::filesystem::create_directories(this->Folder / "out" / name / "of things");
    EXPECT_EQ(this->Run(arguments + " -o " + this->File("out/" + name)).code, 1);
    const std::filesystem::directory_iterator entries(this->Folder / "out");
    EXPECT_EQ(std::distance(entries, {}), 1);
  }

  void ExpectSameForThreads(const std::string& arguments) const
  {
    for (const std::string threads : { "1", "3" })
    {
      this->Succeed(
        arguments + " --threads " + threads + " -o " + this->File(threads + ".safetensors"));
    }
    EXPECT_EQ(this->BytesOf("1.safetensors"), this->BytesOf("3.safetensors"));
  }

private:
  std::string Name;
};

}
