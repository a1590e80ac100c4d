#pragma once

// Internal to Core: access to the arrays of a file that become a recording.

#include "Base/Error.h"
#include "Files/ArrayFile.h"
#include "Recording/Recording.h"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace atlas
{

/// Finds arrays, keeps track of which were used, and converts them to matrices.
class RecordingArrays
{
public:
  RecordingArrays(const ArrayFile& file, const std::string& source)
    : File(file)
    , Source(source)
  {
  }

  /// From here on, the names given to all functions are those of arrays that begin with `prefix`,
  /// without it.
  void Enter(std::string prefix) { this->Prefix = std::move(prefix); }

  const ArrayFile::Entries& GetEntries() const { return this->File.GetEntries(); }
  const std::string& GetSource() const { return this->Source; }

  /// Throws ModelError about an array.
  template<class... Parts>
  [[noreturn]] void Fail(const std::string& name, const Parts&... parts) const
  {
    throw ModelError(this->Source, ": array '", this->Prefix, name, "': ", parts...);
  }

  template<class... Parts>
  void FailIf(bool isWrong, const std::string& name, const Parts&... parts) const
  {
    ThrowIf<ModelError>(isWrong, this->Source, ": array '", this->Prefix, name, "': ", parts...);
  }

  /// The type and shape of an array, or nullptr if it is missing.
  const ArrayFile::Entry* Find(const std::string& name) const;
  bool Has(const std::string& name) const { return this->Find(name) != nullptr; }

  /// Loads an array that must have this shape; -1 matches any size. Throws ModelError.
  LoadedArray Load(const std::string& name, const Shape& shape);
  LoadedArray LoadFloating(const std::string& name, const Shape& shape);
  std::vector<std::int64_t> LoadIntegers(const std::string& name, const Shape& shape);

  /// The numbers of an array, from `least` on and of 32 bits. Throws ModelError for others.
  std::vector<std::int32_t> Narrowed(const std::string& name,
    const std::vector<std::int64_t>& numbers,
    std::int32_t least = std::numeric_limits<std::int32_t>::min()) const;

  /// A matrix whose row i begins at element `offset(i)` of the array: a view of the array if
  /// possible, else a copy. Values must be finite, or -infinity if `allowMinusInfinity`.
  SharedMatrix Gather(const std::string& name, const LoadedArray& array, std::int64_t rows,
    std::int64_t columns, const std::function<std::uint64_t(std::int64_t)>& offset,
    bool allowMinusInfinity = false) const;

  /// Loads an entire array [rows, columns]; an empty matrix if there is none.
  SharedMatrix LoadMatrix(const std::string& name, std::int64_t rows, std::int64_t columns,
    bool allowMinusInfinity = false);

  /// Sets the reason that is given if this array is listed as unused.
  void Explain(const std::string& name, const std::string& reason);

  /// One line per unused array; arrays that differ only in their layer share a line.
  std::vector<std::string> Unused() const;

private:
  const ArrayFile& File;
  const std::string& Source;
  std::string Prefix;
  std::set<std::string, std::less<>> Used;
  std::map<std::string, std::string, std::less<>> Reasons;
};

/// Makes this the residual of a recording, unless nothing of it was recorded.
void KeepResidual(std::vector<SharedMatrix> residual, Recording& recording);

/// Parses the metadata entry alibi_slopes, a JSON array of numbers; empty if it is missing.
std::vector<double> ParseSlopes(const Metadata& metadata, const std::string& source);

/// Parses a number of digits only, at most `maximum`; otherwise returns std::nullopt.
std::optional<std::int64_t> ParseIndex(std::string_view text, std::int64_t maximum);

/// Splits "PREFIX{number}.REST" into number and rest; returns std::nullopt for other names.
std::optional<std::pair<std::int64_t, std::string>> ParseIndexed(
  std::string_view name, std::string_view prefix);

/// Limits on layers and heads, which protect against corrupt files that would exhaust memory.
inline constexpr std::int64_t MaximumLayers = 10'000;
inline constexpr std::int64_t MaximumHeads = 1'000'000; ///< of all layers together
inline constexpr std::uint64_t MaximumExperts =
  1'000'000; ///< of a layer; floats have these exactly

}
