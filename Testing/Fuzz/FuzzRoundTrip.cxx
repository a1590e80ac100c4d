#include "Files/Safetensors.h"
#include "FuzzTarget.h"

#include <algorithm>
#include <sstream>

using namespace atlas;

/// What is parsed, written and parsed again is the same, to the byte.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  SafetensorsContent content;
  if (!fuzz::Read([&] { content = ParseSafetensors(fuzz::Bytes(data), size, fuzz::Source); }))
  {
    return -1;
  }
  std::ostringstream stream;
  WriteSafetensorViews(stream, content.tensors, content.metadata);
  const std::string written = stream.str();
  const SafetensorsContent again =
    ParseSafetensors(reinterpret_cast<const std::byte*>(written.data()), written.size(), "again");
  fuzz::Require(again.metadata == content.metadata, "the same metadata");
  fuzz::Require(again.tensors.size() == content.tensors.size(), "as many tensors");
  for (const auto& [name, view] : content.tensors)
  {
    const TensorView& other = again.tensors.at(name);
    const std::size_t bytes = view.Bytes();
    fuzz::Require(
      other.dtype == view.dtype && other.shape == view.shape, "the same type and shape");
    fuzz::Require(std::equal(view.data, view.data + bytes, other.data), "the same bytes");
  }
  return 0;
}
