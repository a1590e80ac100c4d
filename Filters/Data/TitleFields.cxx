#include "TitleFields.h"

#include "DataFields.h"

namespace AttentionAtlas
{

void AddListed(vtkFieldData* fields, std::size_t listed, std::size_t all, const std::string& things)
{
  if (listed < all)
  {
    AddField(
      fields, "Listed", std::to_string(listed) + " of " + std::to_string(all) + " " + things);
  }
}

}
