#include "Files/ArrayFile.h"
#include "FuzzTarget.h"

using namespace atlas;

/// The reader of .npy, .npz, safetensors and PyTorch files, and every array in them.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  fuzz::Read(
    [&]
    {
      const ArrayFile file(fuzz::Bytes(data), size, nullptr, fuzz::Source);
      for (const auto& [name, entry] : file.GetEntries())
      {
        const LoadedArray array = entry.load();
        fuzz::Require(array.view.dtype == entry.dtype && array.view.shape == entry.shape,
          "the type and shape that were announced");
        array.view.ToDouble();
      }
    });
  return 0;
}
