#include "TensorNames.h"

#include "ArchitectureRows.h"
#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Base/TextEnds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

namespace atlas
{
namespace
{

/// What the words of rows of architectures set, see RowTensors. Of a linear map or normalization
/// NAME+ is NAME.weight and NAME.bias, NAME is NAME.weight alone, and two whole names have a |
/// between them. A normalization without shift may have two names with a comma between them.
using Role = std::variant<std::string TensorNames::*, PairNames TensorNames::*,
  WeightLayout TensorNames::*, Fused TensorNames::*>;
#define ROLE(name) { #name, &TensorNames::name }
constexpr std::array<Named<Role>, 113> Roles = { { ROLE(attentionAfter), ROLE(attentionNorm),
  ROLE(attentionScale), ROLE(classToken), ROLE(contacts), ROLE(convolution), ROLE(convolutionNorm),
  ROLE(crossAfter), ROLE(crossKey), ROLE(crossNorm), ROLE(crossOutput), ROLE(crossQuery),
  ROLE(crossValue), ROLE(distanceEmbedding), ROLE(distanceNorm), ROLE(distillationToken),
  ROLE(down), ROLE(embeddingNorm), ROLE(expertBias), ROLE(expertScales), ROLE(expertsAfter),
  ROLE(expertsNorm), ROLE(plainAfter), ROLE(routerNorm), ROLE(expertLayout), ROLE(expertsDown),
  ROLE(expertsGate), ROLE(expertsUp), ROLE(featureNorm), ROLE(finalNorm), ROLE(firstConvolution),
  ROLE(frequencies), ROLE(fused), ROLE(gate), ROLE(hiddenNorm), ROLE(inputGate), ROLE(inputNorm),
  ROLE(inputProjection), ROLE(key), ROLE(keyLatent), ROLE(keyLatentNorm), ROLE(keyNorm),
  ROLE(laurelIn), ROLE(laurelNorm), ROLE(laurelOut), ROLE(layerFactor), ROLE(layerProjection),
  ROLE(layerProjectionNorm), ROLE(layers), ROLE(layerTokens), ROLE(layout), ROLE(mixedNorm),
  ROLE(mixerDecay), ROLE(mixerDecayScale), ROLE(mixerDecayShift), ROLE(mixerGate), ROLE(mixerKey),
  ROLE(mixerNorm), ROLE(mixerOutput), ROLE(mixerQuery), ROLE(mixerRate), ROLE(mixerSkip),
  ROLE(mixerTaps), ROLE(mixerValue), ROLE(mlpAfter), ROLE(mlpNorm), ROLE(mlpScale), ROLE(output),
  ROLE(patches), ROLE(positionKey), ROLE(positionQuery), ROLE(positions), ROLE(prefix),
  ROLE(projectIn), ROLE(projectOut), ROLE(query), ROLE(queryBias), ROLE(queryLatent),
  ROLE(queryLatentNorm), ROLE(queryNorm), ROLE(registers), ROLE(relativeBias), ROLE(rotations),
  ROLE(router), ROLE(secondConvolution), ROLE(segments), ROLE(sharedBias), ROLE(sharedDown),
  ROLE(sharedFactor), ROLE(sharedGate), ROLE(sharedTokens), ROLE(sharedUp), ROLE(sinks),
  ROLE(soundNorm), ROLE(streamCorrection), ROLE(streamIn), ROLE(streamOut), ROLE(streamPrediction),
  ROLE(streamRouter), ROLE(streamRouterNorm), ROLE(streamScale), ROLE(tasks), ROLE(tokens),
  ROLE(transform), ROLE(transformNorm), ROLE(unembedding), ROLE(up), ROLE(value), ROLE(valueBias),
  ROLE(xieluLimit), ROLE(xieluLinear), ROLE(xieluNegative), ROLE(xieluSquare) } };
#undef ROLE

PairNames ToPair(std::string_view name)
{
  const std::size_t bar = name.find('|');
  if (bar != std::string_view::npos)
  {
    return { std::string(name.substr(0, bar)), std::string(name.substr(bar + 1)) };
  }
  const std::size_t comma = name.find(',');
  if (comma != std::string_view::npos)
  {
    return { ToPair(name.substr(0, comma)).weight + "," + ToPair(name.substr(comma + 1)).weight,
      "" };
  }
  const bool hasBias = EndsWith(name, "+");
  const std::string stem(name.substr(0, name.size() - (hasBias ? 1 : 0)));
  return { name.empty() ? "" : stem + ".weight", hasBias ? stem + ".bias" : "" };
}

void Set(std::string& own, std::string_view name)
{
  own = name;
}
void Set(PairNames& own, std::string_view name)
{
  own = ToPair(name);
}
void Set(WeightLayout& own, std::string_view name)
{
  own = name == "InputOutput" ? WeightLayout::InputOutput : WeightLayout::OutputInput;
}
void Set(Fused& own, std::string_view name)
{
  own = name == "KindHead"     ? Fused::KindHead
        : name == "HeadKind"   ? Fused::HeadKind
        : name == "FourBlocks" ? Fused::FourBlocks
                               : Fused::No;
}

/// Sets names by the words of a row.
void SetNames(TensorNames& names, std::string_view words)
{
  while (!words.empty())
  {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::size_t sign = word.find('=');
    std::visit([&](auto role) { Set(names.*role, word.substr(sign + 1)); },
      ParseNamed<Error>(Roles, word.substr(0, sign), "names of tensors"));
  }
}

using SetsByName = std::map<std::string, TensorNames, std::less<>>;

const SetsByName& AllNames()
{
  static const SetsByName all = []
  {
    SetsByName sets;
    for (const RowTensors& row : AllRowTensors())
    {
      TensorNames names = row.like.empty() ? TensorNames() : sets.find(row.like)->second;
      SetNames(names, row.words);
      sets.emplace(row.name, names);
    }
    return sets;
  }();
  return all;
}

/// The names of an architecture, in the variant that a model has.
const TensorNames& NamesFor(const TransformerConfig& config, const std::string& architecture)
{
  const std::array<std::pair<bool, const char*>, 5> variants = { {
    { config.mask == AttentionMask::Bidirectional, "/encoder" },
    { config.gated, "/gated" },
    { !config.mlpBias, "/unbiased" },
    { config.queryLatent == 0, "/direct" },
    { config.order == SublayerOrder::Parallel, "/parallel" },
  } };
  const SetsByName& all = AllNames();
  std::string name = architecture;
  for (const auto& [has, variant] : variants)
  {
    name += has && all.count(name + variant) != 0 ? variant : "";
  }
  const auto found = all.find(name);
  return found != all.end() ? found->second : all.at("llama");
}

/// Those of a model whose files describe its architecture: words as of a row, of which the first
/// names the row that it is like. They are kept.
const TensorNames& OwnNames(const TransformerConfig& config)
{
  static std::mutex mutex;
  static std::map<std::pair<const TensorNames*, std::string>, TensorNames> kept;
  const std::string_view words = config.ownTensors;
  const std::string_view first = words.substr(0, words.find(' '));
  const std::string like(first.substr(first.find('=') + 1));
  const TensorNames& base = NamesFor(config, like);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, isNew] = kept.try_emplace({ &base, config.ownTensors }, base);
  if (isNew && first.size() < words.size())
  {
    SetNames(found->second, words.substr(first.size() + 1));
  }
  return found->second;
}

/// Suffixes of the names of stored tensors that are not weights.
constexpr std::array<std::string_view, 24> Buffers = { "attn.mask", "attention.mask", "attn.IGNORE",
  "attn.rotary_sin", "attn.rotary_cos", ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
  "rotary_emb.cos_cached", "rotary_emb.sin_cached", "embeddings.position_ids",
  "embeddings.token_type_ids", ".attention.bias", ".attention.masked_bias", "attn.embed_positions",
  "embeddings.mask_token", "masked_spec_embed", "relative_position_index",
  "rotary_embeddings.inv_freq", "embed_positions.weights", "rope.freqs", "freqs_cos", "freqs_sin",
  "EncDecAttention.relative_attention_bias.weight" };

constexpr std::array<std::string_view, 17> Heads = { "classifier", "cls", "cls_classifier",
  "distillation_classifier", "embed_out", "head", "lm_head", "mlm_head", "nsp_head", "pooler",
  "pre_classifier", "qa_outputs", "score", "vocab_layer_norm", "vocab_projector", "vocab_transform",
  "logit_scale" };

/// What is named in both is called as in `bridge`.
void Rename(std::string& own, const std::string& bridge)
{
  own = own.empty() || bridge.empty() ? own : bridge;
}
void Rename(PairNames& own, const PairNames& bridge)
{
  Rename(own.weight, bridge.weight);
  Rename(own.bias, bridge.bias);
}
template<class Kind>
void Rename(Kind& /*own*/, const Kind& /*bridge*/)
{
}

}

const TensorNames& LensNames()
{
  return AllNames().at("lens");
}

const TensorNames& LensEncoderNames()
{
  return AllNames().at("lens/encoder");
}

const TensorNames& NamesFor(const TransformerConfig& config)
{
  if (!config.ownTensors.empty())
  {
    return OwnNames(config);
  }
  return NamesFor(config, config.architecture);
}

ProjectorNames ProjectorNamesFor(const TransformerConfig& config)
{
  const VisionConfig& vision = *config.vision;
  if (vision.averages)
  {
    return { ToPair("multi_modal_projector.mm_soft_emb_norm"),
      { "multi_modal_projector.mm_input_projection_weight", "" }, {}, {} };
  }
  if (vision.seesWholePrompts)
  {
    return { {}, ToPair("multi_modal_projector.linear+"), {}, {} };
  }
  if (!vision.projectorHasTwo)
  {
    return { {}, ToPair("connector.modality_projection.proj"), {}, {} };
  }
  if (vision.interleavesSections)
  {
    return { ToPair("merger.norm+"), ToPair("merger.linear_fc1+"), ToPair("merger.linear_fc2+"),
      {} };
  }
  if (!vision.rotarySections.empty())
  {
    return { ToPair("merger.ln_q+"), ToPair("merger.mlp.0+"), ToPair("merger.mlp.2+"), {} };
  }
  return { ToPair(vision.joinsByMatrix ? "multi_modal_projector.norm"
                                       : "multi_modal_projector.layer_norm+"),
    ToPair("multi_modal_projector.linear_1+"), ToPair("multi_modal_projector.linear_2+"),
    ToPair("multi_modal_projector.patch_merger.merging_layer") };
}

ProjectorNames DeepProjectorNames(std::int64_t i)
{
  const std::string name = "deepstack_merger_list." + std::to_string(i) + ".";
  return { ToPair(name + "norm+"), ToPair(name + "linear_fc1+"), ToPair(name + "linear_fc2+"), {} };
}

TensorNames BridgeNames(const TensorNames& huggingFace)
{
  TensorNames names = huggingFace;
  const TensorNames& bridge = AllNames().at(names.fused == Fused::No ? "bridge" : "bridge/fused");
  for (const Named<Role>& role : Roles)
  {
    std::visit([&](auto member) { Rename(names.*member, bridge.*member); }, role.value);
  }
  SetNames(names, "prefix= unembedding=unembed+");
  return names;
}

TensorNames GgufNames(const TransformerConfig& config, const GgufLayout& layout)
{
  TensorNames names = AllNames().at("gguf");
  if (config.queryLatent > 0)
  {
    SetNames(names, "queryLatent=attn_q_a queryLatentNorm=attn_q_a_norm query=attn_q_b");
  }
  if (config.keyLatent > 0)
  {
    SetNames(names, "keyLatent=attn_kv_a_mqa keyLatentNorm=attn_kv_a_norm");
    SetNames(names, layout.splitsLatent ? "key=attn_k_b value=attn_v_b" : "key=attn_kv_b value=");
  }
  if (layout.isFused)
  {
    SetNames(names, "fused=KindHead query=attn_qkv+");
  }
  if (config.normPlace == NormPlace::AfterSublayer)
  {
    SetNames(names, "attentionNorm=attn_output_norm+ mlpNorm=layer_output_norm+");
  }
  const TensorNames& huggingFace = NamesFor(config);
  if (huggingFace.up.weight.empty())
  {
    names.gate = std::exchange(names.up, {});
  }
  for (PairNames TensorNames::* norm :
    { &TensorNames::attentionNorm, &TensorNames::mlpNorm, &TensorNames::finalNorm })
  {
    if ((huggingFace.*norm).bias.empty())
    {
      (names.*norm).bias.clear();
    }
  }
  const bool isParallel = config.order == SublayerOrder::Parallel;
  for (const RowGguf& row : AllRowGguf())
  {
    if (row.row == config.architecture ||
        (isParallel && row.row == config.architecture + "/parallel"))
    {
      SetNames(names, row.words);
    }
  }
  return names;
}

std::string BareName(std::string_view name, const TransformerConfig& config)
{
  const bool isOfImages = config.input == InputKind::Images;
  if (isOfImages || config.vision != nullptr)
  {
    for (const OuterPrefix& outer : OuterImagePrefixes)
    {
      if (BeginsWith(name, outer.base))
      {
        name.remove_prefix(outer.base.size());
        return (isOfImages ? "" : "vision_tower.") + std::string(name);
      }
    }
  }
  std::vector<std::string_view> prefixes = { "model." };
  if (config.encoder == nullptr) // else those of the stacks tell them apart
  {
    const std::string_view own = NamesFor(config).prefix;
    prefixes = { own, own.substr(std::min(own.size(), own.find('.') + 1)) };
    for (const OuterPrefix& outer : OuterPrefixes)
    {
      prefixes.push_back(outer.base);
    }
    prefixes.emplace_back("model.");
  }
  const auto isBefore = [&name](std::string_view prefix)
  { return !prefix.empty() && BeginsWith(name, prefix); };
  for (auto found = prefixes.begin(); found != prefixes.end();)
  {
    found = std::find_if(prefixes.begin(), prefixes.end(), isBefore);
    name.remove_prefix(found == prefixes.end() ? 0 : found->size());
  }
  return std::string(name);
}

bool IsBuffer(std::string_view name)
{
  return std::any_of(
    Buffers.begin(), Buffers.end(), [name](std::string_view end) { return EndsWith(name, end); });
}

bool IsHead(std::string_view module)
{
  const bool predictsFurther = BeginsWith(module, "mtp"); // tokens behind the next (ERNIE 4.5)
  return predictsFurther || std::find(Heads.begin(), Heads.end(), module) != Heads.end();
}

}
