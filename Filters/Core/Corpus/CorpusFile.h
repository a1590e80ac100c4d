#pragma once

#include "CorpusStatistics.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace atlas
{

/// Values of the metadata entries `format` and `version`.
inline constexpr const char* CorpusFormat = "attention-atlas.corpus";
inline constexpr const char* CorpusVersion = "1";

/// Writes statistics as a safetensors file, from which a run can go on (ContinueCorpus): to a
/// temporary name that is renamed. Throws FileError.
void WriteCorpus(const std::filesystem::path& path, const CorpusStatistics& statistics);

/// Reads such a file. Throws FileError, FormatError if it has another format, and ModelError if its
/// tensors do not fit each other; the message begins with the name.
CorpusStatistics ReadCorpus(const std::filesystem::path& path);

/// The same bytes in memory: written to what `allocate` returns for their number, or as a list.
/// Nothing else of their size is held.
void CorpusToMemory(
  const CorpusStatistics& statistics, const std::function<char*(std::size_t)>& allocate);
std::vector<char> CorpusToBytes(const CorpusStatistics& statistics);

CorpusStatistics CorpusFromBytes(const char* bytes, std::size_t size, const std::string& source);
CorpusStatistics CorpusFromBytes(const std::vector<char>& bytes, const std::string& source);

}
