#include "Files/Safetensors.h"
#include "FuzzFolder.h"
#include "FuzzTarget.h"
#include "Weights/WeightFiles.h"

#include <optional>
#include <sstream>

using namespace atlas;

namespace
{

/// Two shards in a folder whose name messages begin with.
struct Shards : fuzz::Folder
{
  Shards()
  {
    std::filesystem::create_directory(fuzz::Source);
    this->WriteShard("a", { "x", "y" });
    this->WriteShard("b", { "z" });
  }

  static void WriteShard(const std::string& name, const std::vector<std::string>& tensors)
  {
    const Tensor numbers = Tensor::FromDouble(DType::F32, { 2 }, { 1, 2 });
    TensorViews views;
    for (const std::string& tensor : tensors)
    {
      views.emplace(tensor, numbers.View());
    }
    std::ostringstream stream;
    WriteSafetensorViews(stream, views, {});
    Write(fuzz::Source + "/" + name + ".safetensors", stream.str());
  }
};

}

/// The reader of model.safetensors.index.json, and the tensors of the shards that it names.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  static const Shards shards;
  const std::string path = fuzz::Source + "/model.safetensors.index.json";
  fuzz::Folder::Write(path, fuzz::Text(data, size));
  std::optional<WeightFiles> files;
  if (!fuzz::Read([&] { files = WeightFiles::Read(path); }))
  {
    return 0;
  }
  files->RequireIntact();
  for (const auto& [name, view] : files->GetTensors())
  {
    fuzz::Require(name == "x" || name == "y" || name == "z", "a tensor of the shards");
    fuzz::Require(view.ToDouble() == std::vector<double>{ 1, 2 }, "its numbers");
    const char* file = name == "z" ? "/b.safetensors" : "/a.safetensors";
    fuzz::Require(files->FileOf(name) == fuzz::Source + file, "its file");
  }
  return 0;
}
