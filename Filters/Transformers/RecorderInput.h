#pragma once

#include "OpenTransformer.h"
#include "RecordTransformer.h"

#include <string>
#include <vector>

class vtkTable;

/// What vtkTransformerRecorder runs a model on.
namespace AttentionAtlas
{

struct RecorderSources
{
  std::string prompts;                 ///< text, a sequence a line
  std::string promptFile;              ///< of such a text
  std::string tokenIds;                ///< a sequence of numbers a line
  std::string segments;                ///< likewise, for tokenIds
  std::vector<std::string> imageFiles; ///< PNG and JPEG pictures, or one file with pixel_values
  vtkTable* table = nullptr;
  bool addSpecialTokens = true;
  std::int64_t maximumLength = 0; ///< 0: none
};

struct RecorderInput
{
  atlas::TransformerInput input;
  std::vector<std::string> labels; ///< of all tokens, one sequence after the other; or none
  std::vector<std::string> warnings;

  bool IsEmpty() const { return this->input.tokens.empty() && this->input.images == 0; }
};

/// Gathers the sequences, or images, from the one source that is given; nothing is given: an empty
/// input. Throws atlas::Error for several sources, and for what cannot be read.
RecorderInput GatherInput(const RecorderSources& sources, const OpenTransformer& model);

}
