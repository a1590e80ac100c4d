#pragma once

#include "OpenTransformer.h"
#include "TransformerInput.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace atlas
{

/// What users give a model to run on: one of these.
struct RecorderSources
{
  std::string prompts;                 ///< text, one sequence per line
  std::string promptFile;              ///< a file with such text
  std::string tokenIds;                ///< integers, one sequence per line
  std::string segments;                ///< segments of tokenIds, in the same form
  std::vector<std::string> imageFiles; ///< PNG and JPEG images, or one file with pixel_values
  std::optional<std::vector<std::vector<std::int64_t>>> table; ///< token ids of sequences
  bool addSpecialTokens = true;
  std::int64_t maximumLength = 0; ///< 0: no limit
};

/// The input on which a model is run and recorded.
struct RecorderInput
{
  TransformerInput input;
  std::vector<std::string> labels;   ///< of all tokens, one sequence after another; may be empty
  std::vector<std::string> pictures; ///< the files of the images, if they are pictures
  std::vector<std::string> warnings;

  bool IsEmpty() const { return this->input.tokens.empty() && this->input.images == 0; }
};

/// Reads the sequences or images from the source that is given; returns an empty input if none is.
/// Throws Error if there are several sources or one cannot be read.
RecorderInput GatherInput(const RecorderSources& sources, const OpenTransformer& model);

/// The readable tokens of all sequences; empty if the model's tokenizer is missing or does not know
/// one of them.
std::vector<std::string> LabelTokens(
  const std::vector<std::vector<std::int64_t>>& sequences, const OpenTransformer& model);

}
