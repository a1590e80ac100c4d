#include "AttentionKinds.h"

#include <algorithm>

namespace atlas
{
namespace
{

template<class List, class Value>
std::string_view NameIn(const List& list, Value value)
{
  return std::find_if(
    list.begin(), list.end(), [value](const auto& item) { return item.value == value; })
    ->name;
}

}

std::string_view Name(AttentionMask mask)
{
  return NameIn(AttentionMasks, mask);
}

std::string_view Name(AttentionKind kind)
{
  return NameIn(AttentionKindNames, kind);
}

std::string_view Name(WeightProcessing processing)
{
  return NameIn(WeightProcessings, processing);
}

std::string_view Name(ProductPrecision products)
{
  return NameIn(ProductPrecisions, products);
}

}
