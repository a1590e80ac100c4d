#pragma once

#include "Tensor.h"

#include <cstdint>
#include <map>
#include <string>

namespace atlas
{

/// Where the parts of a safetensors file are, for those who make the data in its place.
struct SafetensorsLayout
{
  std::string header;        ///< the bytes before the data, the length among them
  std::uint64_t dataEnd = 0; ///< of the file, in bytes
  std::map<std::string, std::uint64_t, std::less<>>
    offsets; ///< of the data of each tensor, from the beginning of the file
};

/// The layout of a file as WriteSafetensorViews writes it. The data of `tensors` is not read.
SafetensorsLayout LayOutSafetensors(const TensorViews& tensors, const Metadata& metadata);

}
