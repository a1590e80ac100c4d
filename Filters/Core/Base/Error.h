#pragma once

#include <stdexcept>

namespace atlas
{

/// Base of every error that Core throws. The message names the thing (file, tensor, option), what
/// was expected and what was found, so that it can be shown to a user as it is.
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

/// Bytes are not what their format says: header, offsets, data types.
class FormatError : public Error
{
public:
  using Error::Error;
};

/// Tensors are readable but do not make up a model: one is missing, has a wrong shape or holds a
/// value that no model can have.
class ModelError : public Error
{
public:
  using Error::Error;
};

/// An option of an evaluation does not fit the model that it is applied to.
class OptionError : public Error
{
public:
  using Error::Error;
};

/// Geometry cannot be computed from the numbers given.
class GeometryError : public Error
{
public:
  using Error::Error;
};

}
