#include "Quantization.h"

#include "Base/NamedValues.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "SettingRoles.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

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

/// What any method may say that changes no weight: which modules are quantized, which the tensors
/// tell; how weights were found, and how a program is to multiply them.
constexpr std::string_view Harmless =
  "backend batch_size block_name_to_quantize bnb_4bit_compute_dtype bnb_4bit_quant_storage "
  "bnb_4bit_quant_type bnb_4bit_use_double_quant cache_block_outputs damp_auto_increment "
  "act_group_aware damp_percent dataset desc_act dequantize disable_exllama do_fuse exllama_config "
  "foem fuse_max_seq_len global_compression_ratio gptaq ignore ignored_layers kv_cache_scheme "
  "llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_skip_modules "
  "llm_int8_threshold lm_head max_input_length meta method mse model_file_base_name "
  "model_name_or_path "
  "model_seqlen modules_in_block_to_quantize modules_to_fuse modules_to_not_convert "
  "module_name_preceding_first_block pad_token_id quant_method quantization_status scale_fmt "
  "static_groups sym tokenizer true_sequential use_cuda_fp16 use_exllama version";

/// Reads an object of settings of quantization. All that is neither read nor harmless is refused.
class QuantizationReader
{
public:
  QuantizationReader(const Settings& settings, const std::string& key, const json& object)
    : File(settings)
    , Key(key)
    , Object(object)
  {
  }

  Quantization Read()
  {
    using Method = Quantization::Method;
    const std::string method = TextOf(this->Object, "quant_method");
    const std::string format = TextOf(this->Object, "format");
    Quantization read;
    if (method == "mxfp4")
    {
      read.method = Method::Mxfp4;
    }
    else if (method == "fp8" || method == "fbgemm_fp8")
    {
      this->ReadFp8(read);
    }
    else if (method == "gptq")
    {
      this->ReadGptq(read);
    }
    else if (method == "awq")
    {
      this->ReadAwq(read);
    }
    else if (method == "compressed-tensors" && !format.empty())
    {
      this->ReadCompressed(read, format);
    }
    else if (method == "bitsandbytes" || (method.empty() && this->Object.contains("load_in_4bit")))
    {
      read.method = Method::Bitsandbytes;
      this->Ignore({ "load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit" });
    }
    else if (method.empty() && this->Object.contains("group_size"))
    {
      this->ReadMlx(read);
    }
    else
    {
      this->File.Fail(this->Beginning(), Expected);
    }
    for (const auto& [name, value] : this->Object.items())
    {
      if (this->Known.count(name) == 0 && !HasWord(Harmless, name) && !IsOff(value))
      {
        this->FailSetting(name, "", value);
      }
    }
    return read;
  }

private:
  const Settings& File;
  const std::string& Key;
  const json& Object;
  std::set<std::string, std::less<>> Known;

  std::string Beginning() const
  {
    return "by '" + this->Key + "' the weights are quantized by " + NameOf(this->Object);
  }

  [[noreturn]] void FailSetting(
    const std::string& name, const std::string& expected, const json& found) const
  {
    this->File.Fail(this->Beginning(), ", with '", name, "' ", Describe(found),
      ", which is not run", expected.empty() ? "" : "; expected " + expected, ".");
  }

  void Ignore(const std::vector<const char*>& keys)
  {
    this->Known.insert(keys.begin(), keys.end());
  }

  /// A setting that has to have one of these values, if it is there.
  void Require(const char* key, const std::vector<json>& values)
  {
    this->Ignore({ key });
    const json found = this->Object.value(key, json());
    const auto lower = [](const json& value)
    {
      std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      std::transform(text.begin(), text.end(), text.begin(),
        [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      return text;
    };
    if (!found.is_null() && std::none_of(values.begin(), values.end(),
                              [&](const json& value) { return lower(value) == lower(found); }))
    {
      this->FailSetting(
        key, Joined(values, [](const json& value) { return Describe(value); }), found);
    }
  }

  /// An integer of an object, `key` among others for messages.
  std::int64_t Integer(const json& object, const char* key, std::int64_t otherwise) const
  {
    const json value = object.value(key, json());
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (value.is_null())
    {
      return otherwise;
    }
    if (!value.is_number_integer() || value < 1 || value > most)
    {
      this->FailSetting(key, "a positive integer", value);
    }
    return value.get<std::int64_t>();
  }

  /// The columns that share a scale; -1 stands for all.
  std::int64_t Group(const json& object)
  {
    this->Ignore({ "group_size" });
    return object.value("group_size", json()) == -1 ? 0 : this->Integer(object, "group_size", 0);
  }

  std::vector<std::int64_t> Block(const json& object, const char* key)
  {
    this->Ignore({ key });
    const json value = object.value(key, json());
    if (value.is_null())
    {
      return {};
    }
    const auto isSize = [](const json& size)
    { return size.is_number_integer() && size > 0 && size <= 1 << 20; };
    if (!value.is_array() || value.size() != 2 || !isSize(value[0]) || !isSize(value[1]))
    {
      this->FailSetting(key, "two positive sizes", value);
    }
    return { value[0].get<std::int64_t>(), value[1].get<std::int64_t>() };
  }

  void ReadFp8(Quantization& read)
  {
    read.method = Quantization::Method::Fp8;
    read.block = this->Block(this->Object, "weight_block_size");
    this->Require("fmt", { "e4m3", "float8_e4m3fn" });
    // Activations are not rounded, however the original rounds them.
    this->Ignore({ "activation_scheme", "activation_scale_ub" });
  }

  void ReadGptq(Quantization& read)
  {
    read.method = Quantization::Method::Gptq;
    this->Require("bits", { 2, 3, 4, 8 });
    read.sizes = { this->Integer(this->Object, "bits", 4), this->Group(this->Object) };
    const std::vector<json> formats = { "gptq", "gptq_v2" };
    this->Require("checkpoint_format", formats);
    this->Require("format", formats);
    this->Require("pack_dtype", { "int32" });
    const char* key =
      !TextOf(this->Object, "checkpoint_format").empty() ? "checkpoint_format" : "format";
    read.zerosAreOneLess = TextOf(this->Object, key) != "gptq_v2";
    read.reordersColumns = this->Object.value("desc_act", json()) == json(true);
    this->Ignore({ "v2" }); // of the search for the weights
    const json dynamic = this->Object.value("dynamic", json::object());
    this->Ignore({ "dynamic" });
    const json modules = IsOff(dynamic) ? json::object() : dynamic;
    for (const auto& [name, value] : modules.items())
    {
      if (!BeginsWith(name, "-:")) // which are not quantized
      {
        this->FailSetting("dynamic", "", dynamic);
      }
    }
  }

  void ReadAwq(Quantization& read)
  {
    read.method = Quantization::Method::Awq;
    this->Require("bits", { 4 });
    this->Require("w_bit", { 4 });
    this->Require("version", { "gemm" });
    this->Require("zero_point", { true });
    this->Require("format", { "gemm" });
    this->Require("checkpoint_format", { "gemm" });
    this->Require("pack_dtype", { "int32" });
    if (TextOf(this->Object, "backend") == "llm-awq")
    {
      this->FailSetting("backend", "another one, with the order of AutoAWQ", "llm-awq");
    }
    this->Ignore({ "q_group_size" });
    json object = this->Object;
    object["group_size"] = object.value("group_size", object.value("q_group_size", json()));
    read.sizes = { 4, this->Group(object) };
  }

  void ReadMlx(Quantization& read)
  {
    read.method = Quantization::Method::Mlx;
    read.sizes = this->MlxSizes(this->Object, "");
    this->Ignore({ "bits", "group_size", "mode" });
    for (const auto& [name, value] : this->Object.items())
    {
      if (value.is_object())
      {
        read.modules[name] = this->MlxSizes(value, name + ".");
        this->Ignore({ name.c_str() });
      }
      else if (value.is_boolean()) // whether a module is quantized, which its tensors tell
      {
        this->Ignore({ name.c_str() });
      }
    }
  }

  Quantization::Sizes MlxSizes(const json& object, const std::string& place)
  {
    const std::string mode = object.value("mode", json("affine")).dump();
    const bool isFloat = mode == R"("mxfp4")";
    if (!isFloat && mode != R"("affine")")
    {
      this->FailSetting(place + "mode", "affine or mxfp4", object["mode"]);
    }
    const std::int64_t bits = this->Integer(object, "bits", 4);
    if (bits > 8 || bits < 2 || bits == 7 || (isFloat && bits != 4))
    {
      this->FailSetting(place + "bits", isFloat ? "4" : "2, 3, 4, 5, 6 or 8", object["bits"]);
    }
    return { bits, this->Integer(object, "group_size", isFloat ? 32 : 64), isFloat };
  }

  void ReadCompressed(Quantization& read, const std::string& format)
  {
    read.method = Quantization::Method::CompressedTensors;
    this->RequireFormat("format", format);
    this->Require("quantization_status", { "compressed" });
    this->Ignore({ "format", "config_groups", "sparsity_config", "transform_config" });
    const json sparsity = this->Object.value("sparsity_config", json());
    if (!IsOff(sparsity) && !(sparsity.is_object() && TextOf(sparsity, "format") == "dense"))
    {
      this->FailSetting("sparsity_config", "dense weights", sparsity);
    }
    const json transforms = this->Object.value("transform_config", json());
    if (!IsOff(transforms) &&
        !(transforms.is_object() && IsOff(transforms.value("config_groups", json(true)))))
    {
      this->FailSetting("transform_config", "none", transforms);
    }
    const json groups = this->Object.value("config_groups", json());
    if (!groups.is_object() || groups.empty())
    {
      this->FailSetting("config_groups", "an object", groups);
    }
    for (const auto& [name, group] : groups.items())
    {
      const json weights = group.is_object() ? group.value("weights", json()) : json();
      if (!weights.is_object())
      {
        continue; // activations alone
      }
      if (!TextOf(group, "format").empty())
      {
        this->RequireFormat("format", TextOf(group, "format"));
      }
      const std::int64_t bits = this->Integer(weights, "num_bits", 8);
      read.kinds.push_back({ bits, this->Group(weights), TextOf(weights, "type") == "float" });
      if (bits > 8)
      {
        this->FailSetting("num_bits", "at most 8", weights["num_bits"]);
      }
      const std::vector<std::int64_t> block = this->Block(weights, "block_structure");
      if (!block.empty() && !read.block.empty() && block != read.block)
      {
        this->FailSetting("block_structure", "one for all modules", weights["block_structure"]);
      }
      read.block = block.empty() ? read.block : block;
    }
  }

  void RequireFormat(const char* key, const std::string& format) const
  {
    constexpr std::string_view known = "float-quantized int-quantized mixed-precision "
                                       "naive-quantized nvfp4-pack-quantized pack-quantized "
                                       "mxfp4-pack-quantized";
    if (!HasWord(known, format))
    {
      this->FailSetting(key, std::string(known), format);
    }
  }
};

/// The settings of quantization among others, and their name; nullptr if there are none. MLX writes
/// them by two names.
std::pair<std::string, const json*> FindQuantization(const Settings& settings)
{
  std::pair<std::string, const json*> found = { {}, nullptr };
  for (const char* key : { "quantization", "quantization_config", "compression_config" })
  {
    const json* value = settings.Value({ key });
    if (found.second == nullptr && value != nullptr && !IsOff(*value))
    {
      found = { key, value };
    }
  }
  return found;
}

}

Quantization ParseQuantization(const Settings& settings)
{
  const auto [key, value] = FindQuantization(settings);
  if (value == nullptr)
  {
    return {};
  }
  settings.FailIf(!value->is_object(), "by '", key, "' the weights are quantized by ",
    Describe(*value), Expected);
  return QuantizationReader(settings, key, *value).Read();
}

Quantization ReadQuantization(const std::filesystem::path& path)
{
  const std::string source = path.string();
  const json object = json::parse(WithTaggedNumbers(ReadFile(path))); // it was parsed before
  Quantization read = ParseQuantization(Settings(object, source));
  if (read.method != Quantization::Method::None)
  {
    return read;
  }
  for (const auto& [name, method] :
    { std::pair("quantize_config.json", "gptq"), std::pair("quant_config.json", "awq") })
  {
    const std::filesystem::path file = path.parent_path() / name;
    if (FileExists(file))
    {
      const std::string own = file.string();
      json settings = ParseJsonObject(ReadFile(file), own);
      if (TextOf(settings, "quant_method").empty())
      {
        settings["quant_method"] = method;
      }
      return QuantizationReader(Settings(settings, own), name, settings).Read();
    }
  }
  return read;
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
  return "quantized by " + method +
         ", in a way that is not run, or that config.json does not describe; expected its "
         "quantization_config, the model before its quantization, or a .gguf file of it.";
}

}
