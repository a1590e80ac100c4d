#pragma once

#include "CorpusStatistics.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace atlas
{

/// Values of the metadata entries `format` and `version`.
inline constexpr const char* CorpusFormat = "attention-atlas.corpus";
inline constexpr const char* CorpusVersion = "1";

/// Writes statistics as a safetensors file, from which a run can go on (MeasureCorpus): to a
/// temporary name that is renamed. Those that are moved here are not copied. Throws FileError.
void WriteCorpus(const std::filesystem::path& path, CorpusStatistics statistics);

/// Reads such a file. Throws FileError, FormatError if it has another format, and ModelError if its
/// tensors do not fit each other; the message begins with the name.
CorpusStatistics ReadCorpus(const std::filesystem::path& path);

/// The same bytes in memory.
std::vector<char> CorpusToBytes(const CorpusStatistics& statistics);
CorpusStatistics CorpusFromBytes(const std::vector<char>& bytes, const std::string& source);

}
