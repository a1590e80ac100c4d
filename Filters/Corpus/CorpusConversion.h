#pragma once

#include "Corpus/CorpusStatistics.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class vtkTable;

/// The VTK form of statistics of a corpus: a vtkTable of the format Corpus with a row per head and
/// the columns Layer, Head, Queries (integers), those of CorpusColumns, Mean Distance, Median
/// Distance, and the quantiles Median NAME, NAME P5 and NAME P95 of each of CorpusSketchNames
/// (double). Next Token Effect and Copying are left out where they were not measured.
///
/// Field data: Statistics (unsigned char), the bytes of a file of all statistics; Model (its file)
/// and Model Name (string); Documents, Tokens (64-bit integer); Complete (int).
namespace AttentionAtlas
{

/// Field data of Top Contexts (string): by what texts were found.
inline constexpr const char* MeasureField = "Measure";

/// And (double): of the tokens of the text, the part at which a feature is active.
inline constexpr const char* ActiveShareField = "Active Share";

/// Replaces the content of `output`.
void ToTable(std::shared_ptr<const atlas::CorpusStatistics> statistics, vtkTable* output);

/// Statistics that ToTable was given, to change them: the table may still be shown. They are copied
/// only if a filter is reading them.
atlas::CorpusStatistics TakeCorpus(std::shared_ptr<atlas::CorpusStatistics>& statistics);

/// The statistics of an input, or null if it has no rows. Throws atlas::ModelError for other data,
/// and as atlas::CorpusFromBytes.
std::shared_ptr<const atlas::CorpusStatistics> ToCorpus(vtkTable* input);

/// The text of a kind of token: its id if the model had no tokenizer.
std::string KindText(const atlas::CorpusStatistics& statistics, std::int64_t kind);

/// The index of the kind of token of an id. Throws atlas::ModelError if there is none.
std::int64_t FindKind(const atlas::CorpusStatistics& statistics, std::int64_t id);

/// What has quantiles in these statistics.
std::vector<atlas::CorpusSketch> SketchesOf(const atlas::CorpusStatistics& statistics);

/// The columns of heads, as they are named.
std::vector<std::pair<std::string, std::vector<double>>> ColumnsOf(
  const atlas::CorpusStatistics& statistics);

}
