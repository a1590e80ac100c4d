#pragma once

#include "ImageProcessor.h"
#include "JsonSettings.h"

namespace atlas
{

/// Reads the settings of a preprocessor_config.json that ParseImageProcessor names into a processor
/// with the values of missing ones. Unless `hasSizes`, `size`, `crop_size` and `do_pad` are left
/// out, which have another meaning for some processors. Throws ModelError as ParseImageProcessor.
void ParseImageSettings(const Settings& settings, bool hasSizes, ImageProcessor& processor);

}
