#include "TitleFields.h"

#include "DataFields.h"
#include "Drawing/ColoredArray.h"
#include "Weights/CheckpointConfig.h"
#include "Weights/Transformer.h"

namespace AttentionAtlas
{

std::string ModelName(const std::filesystem::path& path)
{
  const std::filesystem::path place = std::filesystem::absolute(path).lexically_normal();
  if (place.extension() == ".gguf")
  {
    return place.stem().string();
  }
  std::filesystem::path folder = atlas::ModelFolder(place);
  folder = folder.has_filename() ? folder : folder.parent_path(); // without the slash at its end
  const std::filesystem::path above = folder.parent_path();
  if (above.filename() == "snapshots")
  {
    const std::string repository = above.parent_path().filename().string(); // models--owner--name
    const std::size_t end = repository.rfind("--");
    return end != std::string::npos ? repository.substr(end + 2) : repository;
  }
  const std::string name = folder.filename().string();
  return atlas::CheckpointStep(folder) ? above.filename().string() + "/" + name : name;
}

void AddArrayTitle(
  vtkFieldData* fields, const std::string& array, atlas::AttentionQuantity quantity)
{
  if (quantity != atlas::AttentionQuantity::Weights)
  {
    atlas::ColoredArray named;
    named.array = atlas::AttentionQuantityNames.at(static_cast<std::size_t>(quantity));
    const std::string title = named.Title();
    AddField(fields, array + " Title", title.empty() ? named.array : title);
  }
}

void AddListed(vtkFieldData* fields, std::size_t listed, std::size_t all, const std::string& things)
{
  if (listed < all)
  {
    AddField(
      fields, "Listed", std::to_string(listed) + " of " + std::to_string(all) + " " + things);
  }
}

}
