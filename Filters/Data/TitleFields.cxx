#include "TitleFields.h"

#include "DataFields.h"
#include "Drawing/ColoredArray.h"

namespace AttentionAtlas
{

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
