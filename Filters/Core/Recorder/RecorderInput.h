#pragma once

#include "OpenTransformer.h"
#include "Preprocessing/TransformerInput.h"
#include "Text/Prompts.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace atlas
{

/// What users give a model to run on: one of these, and for a model with an encoder, whose source
/// it then is, the targets. For a model of pictures among words also imageFiles beside one of the
/// others; how texts speak of them is in PicturePrompts.h.
struct RecorderSources
{
  std::string prompts;                 ///< texts, as promptFormat says
  std::string promptFile;              ///< a file of texts, as FormatOfFile says
  std::string tokenIds;                ///< integers, one sequence per line
  std::string segments;                ///< segments of tokenIds, in the same form
  std::vector<std::string> imageFiles; ///< PNG and JPEG images, or one file with pixel_values
  std::optional<std::vector<std::vector<std::int64_t>>> table; ///< token ids of sequences
  std::vector<std::string> soundFiles; ///< sounds, or one file with input_features or input_values
  std::string targets; ///< what the decoder of a model with an encoder reads after its start token,
                       ///< as promptFormat says: texts or, if the source is token ids or the model
                       ///< has no tokenizer for sound, token ids
  bool addSpecialTokens = true;
  std::int64_t maximumLength = 0;  ///< 0: no limit
  std::int64_t framesPerVideo = 0; ///< number of consecutive imageFiles that make up a video; 0:
                                   ///< each file is a picture
  double framesPerSecond = 2;      ///< of videos
  PromptFormat promptFormat = PromptFormat::Lines; ///< of prompts and targets
  PixelMaker pixels = PixelMaker::Pillow;          ///< of pictures
};

/// The input on which a model is run and recorded.
struct RecorderInput
{
  TransformerInput input;
  std::vector<std::string> labels; ///< of all tokens, one sequence after another; may be empty
  std::vector<std::string> sourceLabels; ///< the same of the source of a model with an encoder
  std::vector<std::string> pictures;     ///< the files of the images or frames, if they are
                                         ///< pictures
  PixelMaker pixelMaker = PixelMaker::Pillow;
  std::vector<std::int64_t> videoFrames; ///< as in VisionPixels
  std::vector<std::string> warnings;

  bool IsEmpty() const
  {
    return this->input.tokens.empty() && this->input.images == 0 && this->input.sounds == 0;
  }
};

/// Reads the sequences or images from the source that is given; returns an empty input if none is.
/// A target begins with the start token of the decoder and ends before the token that ends a text;
/// without targets it is the start token alone. Throws Error if there are several sources or one
/// cannot be read, and if there are targets that the model cannot read, or not one per sequence.
RecorderInput GatherInput(const RecorderSources& sources, const OpenTransformer& model);

/// The readable tokens of all sequences; empty if the model's tokenizer is missing or does not know
/// one of them.
std::vector<std::string> LabelTokens(
  const std::vector<std::vector<std::int64_t>>& sequences, const OpenTransformer& model);

}
