#pragma once

#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <memory>
#include <string>

namespace atlas::test
{

/// The sizes by which models of pictures among words differ in what they see.
struct SeenSizes
{
  std::string architecture;
  std::int64_t image = 0; ///< side of an image, or of a tile; 0: any size
  std::int64_t patch = 4;
  std::int64_t merge = 1;
  std::int64_t frames = 1; ///< that a patch covers
};

/// A model of which only what matters to pictures is set. Its image token has the id 60, that of
/// videos, if it reads any size, 59.
inline TransformerConfig SeeingModel(const SeenSizes& sizes)
{
  auto encoder = std::make_shared<TransformerConfig>();
  encoder->architecture = "encoder of " + sizes.architecture;
  encoder->input = InputKind::Images;
  encoder->imageHeight = encoder->imageWidth = sizes.image;
  encoder->patchHeight = encoder->patchWidth = sizes.patch;
  encoder->channels = 3;
  encoder->patchFrames = sizes.frames;
  auto vision = std::make_shared<VisionConfig>();
  vision->encoder = encoder;
  vision->merge = sizes.merge;
  vision->imageToken = 60;
  vision->videoToken = sizes.image == 0 ? 59 : -1;
  TransformerConfig config;
  config.architecture = sizes.architecture;
  config.vocabulary = 64;
  config.vision = vision;
  return config;
}

/// Those of the models of Testing/Oracle/models/transformers.
inline SeenSizes SizesOf(const std::string& architecture)
{
  if (architecture == "llava")
  {
    return { architecture, 12, 4, 1, 1 };
  }
  if (architecture == "llava-siglip" || architecture == "llava-padded")
  {
    return { architecture, 14, 4, 1, 1 };
  }
  return architecture.substr(0, 4) == "qwen" ? SeenSizes{ architecture, 0, 4, 2, 2 }
                                             : SeenSizes{ architecture, 16, 4, 2, 1 };
}

}
