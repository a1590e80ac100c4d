#pragma once

#include <string>
#include <vector>

/// The commands of attention-atlas. `arguments` begin with the name for messages, such as
/// "attention-atlas learn". Each returns the exit status and throws std::exception for what cannot
/// be done.
namespace atlas::programs
{

int Corpus(const std::vector<std::string>& arguments);
int Learn(const std::vector<std::string>& arguments);
int Map(const std::vector<std::string>& arguments);
int Record(const std::vector<std::string>& arguments);
int View(const std::vector<std::string>& arguments);

/// Runs a command of the Python package in the host's Python, in place of this process, so that
/// signals and the exit status are Python's.
int RunPython(const std::string& command, const std::vector<std::string>& arguments);

}
