#pragma once

#include "RecordOptions.h"

#include <cstdint>
#include <vector>

namespace atlas
{

class Transformer;

/// The number of values that Interventions::means has for each sequence: the columns of all sites
/// that are replaced by their mean over prompts.
std::int64_t MeanColumns(const TransformerConfig& config, const Interventions& interventions);

/// Runs prompts without changes and sums the values at the sites of MeanOverPrompts over the tokens
/// of each prompt. Returns [sequences, MeanColumns]; rows of sequences that are not in
/// options.sequences are 0. Rows are equal to the byte for any number of threads, and whether a
/// prompt is run alone or with others.
///
/// The arguments pass CheckInput in RecordTransformer.h. Throws ModelError if an activation is not
/// finite, and FileError if a weights file was truncated or changed since it was opened.
std::vector<double> SumOverPrompts(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// An upper bound on the memory that SumOverPrompts takes, in bytes.
std::uint64_t PromptSumsMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// From the sums over each of these prompts, for each one the mean over all tokens of the others:
/// what ablation replaces values by that should tell nothing of their own prompt (mean ablation
/// over a data set; Wang et al. 2023). Throws OptionError for less than two prompts.
std::vector<float> MeansOverOthers(
  const std::vector<double>& sums, const std::vector<std::int64_t>& lengths);

/// Same, but the mean over all prompts, one row.
std::vector<float> MeanOverAll(
  const std::vector<double>& sums, const std::vector<std::int64_t>& lengths);

}
