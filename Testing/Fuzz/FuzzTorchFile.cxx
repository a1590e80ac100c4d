#include "Files/TorchFile.h"
#include "FuzzTarget.h"

using namespace atlas;

/// The reader of PyTorch's files, as zip archives and as rows of pickles, and every tensor in them.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  constexpr std::uint64_t copies = std::uint64_t{ 1 }
                                   << 26U; // of small files, as TorchFile.h states
  fuzz::Read(
    [&]
    {
      const TorchFile file(fuzz::Bytes(data), size, nullptr, fuzz::Source);
      for (const auto& [name, tensor] : file.GetTensors())
      {
        const TensorView view = tensor.load().view;
        fuzz::Require(view.dtype == tensor.dtype && view.shape == tensor.shape,
          "the type and shape that were announced");
        const std::uint64_t bytes = view.Count() * ByteSize(view.dtype);
        fuzz::Require(bytes <= copies + 4 * size, "no more memory than TorchFile.h states");
        fuzz::Require(
          name == "array" || name.size() > tensor.holder.size(), "a name in its holder");
      }
    });
  return 0;
}
