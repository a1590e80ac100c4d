#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace atlas::test
{

/// The message of the ErrorType that `call` throws; a failed test if it throws another or none.
template<class ErrorType, class Call>
std::string MessageOf(const Call& call)
{
  try
  {
    call();
  }
  catch (const ErrorType& e)
  {
    return e.what();
  }
  catch (const std::exception& e)
  {
    ADD_FAILURE() << "threw an error of another class: " << e.what();
    return {};
  }
  ADD_FAILURE() << "threw nothing";
  return {};
}

}
