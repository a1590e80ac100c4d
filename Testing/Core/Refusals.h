#pragma once

#include "ErrorMessage.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace atlas::test
{

/// An input that must be refused, and a part of the message about it.
struct Refused
{
  std::string input;
  std::string message;
};

/// Expects that `read` throws an ErrorType for each input, with a short message that begins with
/// `source` and has the part given.
template<class ErrorType, class Read>
void ExpectRefusals(
  const std::vector<Refused>& all, const Read& read, const std::string& source = "")
{
  for (const auto& [input, part] : all)
  {
    SCOPED_TRACE(testing::PrintToString(input.substr(0, 300)));
    const std::string message = MessageOf<ErrorType>([&, &text = input] { read(text); });
    EXPECT_THAT(message, testing::AllOf(testing::StartsWith(source), testing::HasSubstr(part)));
    EXPECT_LT(message.size(), 2000U); // the names of all types of models are 1,000
  }
}

}
