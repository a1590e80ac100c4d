#pragma once

#include "Base/Error.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// What libFuzzer, or Replay.cxx, calls with each input. Returns 0, or -1 for an input that is not
/// worth keeping.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace atlas::fuzz
{

/// What messages of the readers begin with.
inline const std::string Source = "input";

/// Ends the program, which reports a finding to the fuzzer.
inline void Require(bool holds, const std::string& expectation)
{
  if (!holds)
  {
    std::fprintf(stderr, "Expected %s.\n", expectation.c_str());
    std::abort();
  }
}

/// Calls a reader. Returns false if it rejects the input properly: with an error of Core whose
/// message names the source. Any other exception ends the program.
template<class Call>
bool Read(const Call& call)
{
  try
  {
    call();
    return true;
  }
  catch (const Error& e)
  {
    Require(std::string_view(e.what()).substr(0, Source.size()) == Source,
      "a message that begins with '" + Source + "', found: " + e.what());
    return false;
  }
}

/// Uses the data that was read. Any error of Core is allowed.
template<class Call>
void Use(const Call& call)
{
  try
  {
    call();
  }
  catch (const Error&) // NOLINT(bugprone-empty-catch): refused, as it may be
  {
  }
}

inline std::string_view Text(const std::uint8_t* data, std::size_t size)
{
  return { reinterpret_cast<const char*>(data), size };
}

inline const std::byte* Bytes(const std::uint8_t* data)
{
  return reinterpret_cast<const std::byte*>(data);
}

/// Removes and returns the text before the next NUL, or all of it.
inline std::string_view NextPart(std::string_view& text)
{
  const std::string_view part = text.substr(0, text.find('\0'));
  text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
  return part;
}

}
