#include "Quantization.h"

#include "Base/NamedValues.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"

#include <array>
#include <string_view>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* Expected =
  ", which is not run; expected the model before its quantization (F32, F16, BF16 or F64), or a "
  ".gguf file of it.";

/// Methods by the names in files, as they are usually written.
constexpr std::array<Named<std::string_view>, 5> Methods = { {
  { "awq", "AWQ" },
  { "fp8", "FP8" },
  { "gptq", "GPTQ" },
  { "mlx", "MLX" },
  { "mxfp4", "MXFP4" },
} };

std::string TextOf(const json& settings, const char* key)
{
  const json text = settings.value(key, json());
  return text.is_string() ? text.get<std::string>().substr(0, 80) : std::string();
}

/// The bits of a weight; 0 if the settings do not say them.
std::int64_t BitsOf(const json& settings)
{
  const auto get = [&](const char* key) { return settings.value(key, json()); };
  for (const char* key : { "bits", "w_bit" })
  {
    if (get(key).is_number_unsigned())
    {
      return get(key).get<std::int64_t>();
    }
  }
  const auto isOn = [&](const char* key) { return get(key) == json(true); };
  return isOn("load_in_4bit") || isOn("_load_in_4bit")   ? 4
         : isOn("load_in_8bit") || isOn("_load_in_8bit") ? 8
                                                         : 0;
}

/// Such as "AWQ (4 bits)".
std::string NameOf(const json& settings)
{
  std::string name = TextOf(settings, "quant_method");
  if (name.empty())
  {
    // MLX has its sizes alone.
    name = settings.contains("group_size") ? "mlx" : "a method without a name";
  }
  if (const auto* known = FindNamed(Methods, name))
  {
    name = known->value;
  }
  std::string details;
  const auto add = [&details](const std::string& detail)
  { details += (details.empty() || detail.empty() ? "" : ", ") + detail; };
  if (const std::int64_t bits = BitsOf(settings))
  {
    add(std::to_string(bits) + " bits");
  }
  for (const char* key : { "bnb_4bit_quant_type", "fmt", "format" })
  {
    add(TextOf(settings, key));
  }
  return details.empty() ? name : name + " (" + details + ")";
}

}

void RefuseQuantization(const Settings& settings)
{
  for (const char* key : { "quantization_config", "quantization", "compression_config" })
  {
    const json* value = settings.Value({ key });
    if (value != nullptr && !IsOff(*value))
    {
      settings.Fail("by '", key, "' the weights are quantized by ",
        value->is_object() ? NameOf(*value) : Describe(*value), Expected);
    }
  }
}

std::string QuantizationOf(const TensorViews& tensors, const std::string& weight)
{
  const std::string end = ".weight";
  const bool isWeight = weight.size() > end.size() && EndsWith(weight, end);
  const std::string module = isWeight ? weight.substr(0, weight.size() - end.size()) : weight;
  const auto has = [&](const std::string& name) { return tensors.count(name) != 0; };
  return has(module + ".g_idx")                                        ? "GPTQ"
         : has(module + ".qweight")                                    ? "AWQ or GPTQ"
         : has(module + ".weight_packed")                              ? "compressed-tensors"
         : has(weight + "_blocks") && has(weight + "_scales")          ? "MXFP4"
         : has(weight + ".absmax")                                     ? "bitsandbytes (4 bits)"
         : has(module + ".SCB")                                        ? "bitsandbytes (8 bits)"
         : has(module + ".weight_scale") || has(weight + "_scale_inv") ? "FP8 or integers"
                                                                       : "";
}

std::string QuantizationMessage(const std::string& method)
{
  return "quantized by " + method + Expected;
}

}
