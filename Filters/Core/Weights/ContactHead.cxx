#include "ContactHead.h"

#include "Base/Error.h"
#include "Internal/TensorNames.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace atlas
{
namespace
{

/// The numbers of a tensor. Throws unless there are so many, all finite.
std::vector<double> NumbersOf(
  const TensorView& tensor, const std::string& name, std::int64_t expected)
{
  ThrowIf<ModelError>(tensor.Count() != static_cast<std::uint64_t>(expected), name, ": expected ",
    expected, " numbers, found shape ", ToString(tensor.shape), ".");
  std::vector<double> numbers = tensor.ToDouble();
  const auto bad = std::find_if(
    numbers.begin(), numbers.end(), [](double number) { return !std::isfinite(number); });
  if (bad != numbers.end())
  {
    throw ModelError(name, ": expected finite numbers, found ", *bad, ".");
  }
  return numbers;
}

}

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
      const std::int64_t heads = model.GetConfig().layers * model.GetConfig().heads;
      return ContactHead{ NumbersOf(weight->second, weight->first, heads),
        NumbersOf(bias->second, bias->first, 1).front() };
    }
  }
  return std::nullopt;
}

}
