#include "AttentionKinds.h"

namespace atlas
{

std::string_view Name(AttentionMask mask)
{
  return mask == AttentionMask::Causal ? "causal" : "bidirectional";
}

std::string_view Name(WeightProcessing processing)
{
  switch (processing)
  {
    case WeightProcessing::Unprocessed:
      return "unprocessed";
    case WeightProcessing::Processed:
      return "processed";
    case WeightProcessing::Unknown:
      break;
  }
  return "unknown";
}

}
