#pragma once

#include "TemporaryDirectory.h"

#include <cstdlib>
#include <string>

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

/// Runs a program with arguments as a shell reads them.
inline ProgramResult RunProgram(const std::string& program, const std::string& arguments)
{
  const TemporaryDirectory log;
  const std::string command = "'" + program + "' " + arguments + " >'" + (log / "output").string() +
                              "' 2>'" + (log / "errors").string() + "'";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status)) << command;
  return { WEXITSTATUS(status), ReadBytes(log / "output"), ReadBytes(log / "errors") };
}

}
