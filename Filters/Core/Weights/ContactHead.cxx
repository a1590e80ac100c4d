#include "ContactHead.h"

#include "Internal/TensorNames.h"

#include <string>

namespace atlas
{

std::optional<ContactHead> ReadContactHead(const Transformer& model)
{
  const TensorNames& names = NamesFor(model.GetConfig());
  const TensorViews& tensors = model.GetFiles().GetTensors();
  for (const std::string& prefix : { names.prefix, std::string() })
  {
    const auto weight = tensors.find(prefix + names.contacts.weight);
    const auto bias = tensors.find(prefix + names.contacts.bias);
    if (!names.contacts.weight.empty() && weight != tensors.end() && bias != tensors.end())
    {
      return ContactHead{ weight->second.ToDouble(), bias->second.ToDouble().front() };
    }
  }
  return std::nullopt;
}

}
