#pragma once

// Internal to Core: the arrays of a file on their way into a recording.

#include "ArrayFile.h"
#include "Recording.h"

#include <functional>
#include <set>

namespace atlas
{

/// Looks arrays up, remembers which were used, and makes matrices of them.
class RecordingArrays
{
public:
  RecordingArrays(const ArrayFile& file, const std::string& source)
    : File(file)
    , Source(source)
  {
  }

  const ArrayFile::Entries& GetEntries() const { return this->File.GetEntries(); }
  const std::string& GetSource() const { return this->Source; }

  [[noreturn]] void Fail(const std::string& name, const std::string& message) const;

  /// The array's type and shape, or nullptr.
  const ArrayFile::Entry* Find(const std::string& name) const;

  /// Loads an array of this shape; a size of -1 fits any. Throws ModelError.
  LoadedArray Load(const std::string& name, const Shape& shape);
  LoadedArray LoadFloating(const std::string& name, const Shape& shape);
  std::vector<std::int64_t> LoadIntegers(const std::string& name, const Shape& shape);

  /// A matrix whose row i is found at element `offset(i)` of the array: a view of the array where
  /// that is possible, else a copy. Values must be finite, or -infinity if `allowMinusInfinity`.
  SharedMatrix Gather(const std::string& name, const LoadedArray& array, std::int64_t rows,
    std::int64_t columns, const std::function<std::uint64_t(std::int64_t)>& offset,
    bool allowMinusInfinity = false) const;

  /// A whole array [rows, columns] of this file.
  SharedMatrix LoadMatrix(const std::string& name, std::int64_t rows, std::int64_t columns,
    bool allowMinusInfinity = false);

  /// Will be in the list of unused arrays with this reason.
  void Explain(const std::string& name, const std::string& reason);

  /// A line for each unused array; those that differ by their layer only share one.
  std::vector<std::string> Unused() const;

private:
  const ArrayFile& File;
  const std::string& Source;
  std::set<std::string, std::less<>> Used;
  std::map<std::string, std::string, std::less<>> Reasons;

  void CheckFinite(
    const std::string& name, const SharedMatrix& matrix, bool allowMinusInfinity) const;
};

/// The metadata entry alibi_slopes, a JSON array of numbers; empty if there is none.
std::vector<double> ParseSlopes(const Metadata& metadata, const std::string& source);

/// A number that is all digits, at most `maximum`; nothing otherwise.
std::optional<std::int64_t> ParseIndex(std::string_view text, std::int64_t maximum);

/// Splits "PREFIX{number}.REST" into number and rest; nothing if the name is not like that.
std::optional<std::pair<std::int64_t, std::string>> ParseIndexed(
  std::string_view name, std::string_view prefix);

/// Layers and heads beyond these are a mistake, or an attack on memory.
inline constexpr std::int64_t MaximumLayers = 10'000;
inline constexpr std::int64_t MaximumHeads = 1'000'000; ///< of all layers together

}
