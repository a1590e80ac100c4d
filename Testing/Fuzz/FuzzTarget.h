#pragma once

#include "Error.h"

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

/// Ends the program, which is how a fuzzer hears of a finding.
inline void Require(bool holds, const std::string& expectation)
{
  if (!holds)
  {
    std::fprintf(stderr, "Expected %s.\n", expectation.c_str());
    std::abort();
  }
}

/// Reads something. Returns false if that was refused as it must be: by an error of Core, whose
/// message names the source. Whatever else is thrown ends the program.
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

/// Uses what was read. It may be refused by any error of Core.
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

/// Cuts off what stands before the next NUL, or all there is.
inline std::string_view NextPart(std::string_view& text)
{
  const std::string_view part = text.substr(0, text.find('\0'));
  text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
  return part;
}

}
