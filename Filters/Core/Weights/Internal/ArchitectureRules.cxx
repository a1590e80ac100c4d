#include "ArchitectureRules.h"

#include "ActivationNames.h"
#include "Base/Index.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"
#include "EncoderRules.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The kinds of attention of GPT-Neo's layers: attention_layers, or attention_types, a list of
/// pairs [[kinds], repetitions].
std::vector<std::string> NeoLayers(const Settings& settings, std::int64_t layers)
{
  std::vector<std::string> kinds = settings.Texts({ "attention_layers" }, layers);
  const json* types = settings.Value({ "attention_types" });
  if (!kinds.empty())
  {
    return kinds;
  }
  if (types == nullptr)
  {
    for (std::int64_t l = 0; l < layers; ++l)
    {
      kinds.emplace_back(l % 2 == 0 ? "global" : "local");
    }
    return kinds;
  }
  const auto refuse = [&]
  {
    settings.Fail(
      "expected 'attention_types' to be a list of [[kinds], repetitions] for ", layers, " layers.");
  };
  for (const json& item : types->is_array() ? *types : json::array())
  {
    if (!item.is_array() || item.size() != 2 || !item[0].is_array() || item[0].empty() ||
        !item[1].is_number_unsigned() || item[1].get<std::uint64_t>() > ToIndex(layers))
    {
      refuse();
    }
    for (std::uint64_t i = 0; i < item[1].get<std::uint64_t>(); ++i)
    {
      for (const json& kind : item[0])
      {
        kinds.push_back(kind.is_string() ? kind.get<std::string>() : std::string());
        if (kinds.size() > ToIndex(layers))
        {
          refuse();
        }
      }
    }
  }
  if (kinds.size() != ToIndex(layers))
  {
    refuse();
  }
  return kinds;
}

/// GPT-Neo: layers that are local have a window, by default every second one.
void NeoWindows(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t window = settings.Size({ "window_size" }, 256);
  for (const std::string& kind : NeoLayers(settings, config.layers))
  {
    settings.FailIf(kind != "local" && kind != "global", "unknown kind of attention '",
      kind.substr(0, 80), "' of a layer, expected global or local.");
    config.windows.push_back(kind == "local" ? window : 0);
  }
}

/// The scaling of rotations in Meta's code, whose files say only that there is one.
void MetaScaling(TransformerConfig& config, const Settings& settings)
{
  if (settings.Flag({ "use_scaled_rope" }, false))
  {
    RotaryScaling& scaling = config.rotaryScaling;
    scaling.kind = RotaryScaling::Kind::Llama3;
    scaling.factor = settings.Number({ "rope_scaling_factor" }, 8);
    scaling.lowFactor = 1;
    scaling.highFactor = settings.Number({ "rope_high_freq_factor" }, 4);
    scaling.originalPositions = 8192;
  }
}

/// Gemma 1 was published with hidden_act gelu, but always had its approximation.
void GemmaActivation(TransformerConfig& config, const Settings& settings)
{
  if (!settings.Has({ "hidden_activation" }) && settings.Text({ "hidden_act" }, "gelu") != "gelu")
  {
    config.activation = settings.Choice({ "hidden_act" }, "", ActivationNames);
  }
}

/// Falcon: what its original code cannot run.
void CheckFalcon(TransformerConfig& config, const Settings& settings)
{
  const bool isNew = settings.Flag({ "new_decoder_architecture" }, false);
  const std::int64_t norms = settings.Size({ "num_ln_in_parallel_attn" }, isNew ? 2 : 1);
  settings.FailIf(isNew && !settings.Flag({ "parallel_attn" }, true),
    "expected 'parallel_attn' to be true with 'new_decoder_architecture', found false.");
  settings.FailIf(norms > 2 || (norms == 2 && !isNew),
    "expected 'num_ln_in_parallel_attn' to be 1, or 2 with 'new_decoder_architecture', found ",
    norms, ".");
  settings.FailIf(config.heads % config.keyHeads != 0, "the number of heads of keys, ",
    config.keyHeads, ", does not divide that of queries, ", config.heads, ".");
}

/// Hunyuan: a larger base in place of a scaling that depends on the length.
void HunyuanBase(TransformerConfig& config, const Settings& settings)
{
  const std::optional<Settings> scaling = settings.Nested({ "rope_parameters", "rope_scaling" });
  const bool isDynamic = scaling && scaling->Text({ "rope_type", "type" }, "") == "dynamic";
  if (scaling && scaling->Has({ "alpha" }) && isDynamic)
  {
    const auto dimension = static_cast<double>(config.headDimension);
    config.rotaryBase *= std::pow(scaling->Number({ "alpha" }, 1), dimension / (dimension - 2));
    scaling->Ignore({ "beta_fast", "beta_slow", "mscale", "mscale_all_dim" }); // of none of it
  }
}

/// CodeGen: the tensor of queries, keys and values has a quarter of the heads in each block.
void CheckCodeGen(TransformerConfig& config, const Settings& settings)
{
  settings.FailIf(
    config.heads % 4 != 0, "expected a number of heads that 4 divides, found ", config.heads, ".");
}

using Rule = void (*)(TransformerConfig&, const Settings&);
constexpr std::array<Named<Rule>, 13> Rules = { {
  { "anyGrid", AnyGrid },
  { "bothSides", BothSides },
  { "codegen", CheckCodeGen },
  { "disentangled", Disentangled },
  { "falcon", CheckFalcon },
  { "gemmaActivation", GemmaActivation },
  { "hunyuanBase", HunyuanBase },
  { "images", Images },
  { "localAttention", LocalAttention },
  { "metaScaling", MetaScaling },
  { "neoWindows", NeoWindows },
  { "paddedPositions", PaddedPositions },
  { "patchBias", PatchBias },
} };

}

void ApplyRule(const std::string& name, TransformerConfig& config, const Settings& settings)
{
  const auto* rule = FindNamed(Rules, name);
  if (rule == nullptr)
  {
    settings.Fail("unknown rule '", name.substr(0, 80), "', expected one of ", NamesOf(Rules), ".");
  }
  rule->value(config, settings);
}

}
