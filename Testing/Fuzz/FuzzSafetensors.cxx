#include "FuzzTarget.h"
#include "Safetensors.h"

using namespace atlas;

/// The parser, and every number of the tensors that it finds.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  SafetensorsContent content;
  if (!fuzz::Read([&] { content = ParseSafetensors(fuzz::Bytes(data), size, fuzz::Source); }))
  {
    return 0;
  }
  for (const auto& [name, view] : content.tensors)
  {
    fuzz::Require(view.ToDouble().size() == view.Count(), "as many numbers as the shape says");
    fuzz::Use([&tensor = view] { tensor.ToInteger(); });
    std::vector<float> floats(view.Count());
    fuzz::Use([&, &tensor = view] { tensor.ToFloat(0, floats.size(), floats.data()); });
  }
  return 0;
}
