#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

namespace atlas
{

/// Joins texts and numbers, which are written as by std::to_string, to one text.
template<class... Parts>
std::string Concat(const Parts&... parts)
{
  std::string text;
  const auto add = [&text](const auto& part)
  {
    using Part = std::decay_t<decltype(part)>;
    static_assert(!std::is_same_v<Part, bool>, "give it as text");
    if constexpr (std::is_arithmetic_v<Part> && !std::is_same_v<Part, char>)
    {
      text += std::to_string(part);
    }
    else
    {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

/// The base class of all errors that Core throws. The message names the item (file, tensor,
/// option), what was expected and what was found, and can be shown to users unchanged.
class Error : public std::runtime_error
{
public:
  /// The message is made of parts, as by Concat.
  template<class... Parts>
  explicit Error(const Parts&... parts)
    : std::runtime_error(Concat(parts...))
  {
  }
};

/// Throws an error with this message, of parts as those of Concat, if something is wrong. The parts
/// are evaluated in any case: where that takes long or is not possible, write an if.
template<class ErrorType, class... Parts>
void ThrowIf(bool isWrong, const Parts&... parts)
{
  if (isWrong)
  {
    throw ErrorType(parts...);
  }
}

/// A file cannot be opened, mapped, written or renamed.
class FileError : public Error
{
public:
  using Error::Error;
};

/// Data does not follow its format: header, offsets, data types, encoding.
class FormatError : public Error
{
public:
  using Error::Error;
};

/// Data is readable but is not a valid model or recording: a tensor is missing, has a wrong shape
/// or contains an invalid value.
class ModelError : public Error
{
public:
  using Error::Error;
};

/// An option is invalid, or does not fit the model or data that it is applied to.
class OptionError : public Error
{
public:
  using Error::Error;
};

/// The loss or the parameters of a training are no longer finite.
class DivergenceError : public OptionError
{
public:
  using OptionError::OptionError;
};

/// Geometry cannot be computed from the given numbers.
class GeometryError : public Error
{
public:
  using Error::Error;
};

}
