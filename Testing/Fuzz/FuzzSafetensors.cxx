#include "Files/Safetensors.h"
#include "FuzzParts.h"

using namespace atlas;

/// The parser, and every number of the tensors that it finds.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  SafetensorsContent content;
  if (!fuzz::Read([&] { content = ParseSafetensors(fuzz::Bytes(data), size, fuzz::Source); }))
  {
    return 0;
  }
  fuzz::UseTensors(content.tensors);
  return 0;
}
