#pragma once

#include <stdexcept>

namespace atlas
{

/// The base class of all errors that Core throws. The message names the item (file, tensor,
/// option), what was expected and what was found, and can be shown to users unchanged.
class Error : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

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
