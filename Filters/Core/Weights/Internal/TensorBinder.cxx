#include "TensorBinder.h"

#include "Base/Index.h"
#include "Base/TextEnds.h"
#include "Files/PackedNumbers.h"
#include "Quantization.h"
#include "Weights/ResizedPositions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace atlas
{

std::string Numbered(std::string name, std::int64_t number)
{
  return name.replace(name.find('*'), 1, std::to_string(number));
}

TensorBinder::TensorBinder(
  const TransformerConfig& config, const WeightFiles& files, std::string tiedHead)
  : Config(config)
  , Files(files)
  , Lens(config.architecture == "transformer_lens" || this->Has(LensNames().tokens) ||
         this->Has(LensEncoderNames().tokens))
  , Bridge(!this->Lens && this->Has("embed.weight") && this->Has("blocks.0.attn.o.weight"))
  , Gguf(!this->Lens && this->Has("token_embd.weight"))
  , Name(this->ChooseNames())
  , Prefixes(this->FindPrefixes())
  , Prefix(this->Prefixes.first)
  , Head(std::move(tiedHead))
{
  if (config.tiedUnembedding && !this->Name.unembedding.weight.empty())
  {
    this->Head = this->Prefixes.second + this->Name.unembedding.weight;
  }
}

[[noreturn]] void TensorBinder::FailMissing(std::string_view tensor) const
{
  const bool isListed = this->Files.GetMissing().count(tensor) != 0;
  this->Fail(
    tensor, isListed ? " is missing, although the index of shards lists it." : " is missing.");
}

TensorNames TensorBinder::ChooseNames() const
{
  if (!this->Lens)
  {
    TensorNames names = NamesFor(this->Config);
    const std::string head = "lm_predictions.lm_head."; // it reads the token embedding
    if (this->Has(head + "dense.weight") && !this->Has(names.transform.weight)) // DeBERTa-v3
    {
      const std::string norm = head + "LayerNorm.";
      names.transform = { head + "dense.weight", head + "dense.bias" };
      names.transformNorm = { norm + "weight", norm + "bias" };
      names.unembedding = { names.prefix + names.tokens, head + "bias" };
    }
    this->UseFusedExperts(names);
    return this->Gguf     ? GgufNames(this->Config, { this->Has("blk.0.attn_qkv.weight"),
                                                      this->Has("blk.0.attn_k_b.weight") })
           : this->Bridge ? BridgeNames(names)
                          : names;
  }
  return this->Has(LensEncoderNames().tokens) ? LensEncoderNames() : LensNames();
}

void TensorBinder::UseFusedExperts(TensorNames& names) const
{
  constexpr std::string_view ending = "experts.gate_up_proj";
  const bool isOther = names.expertsGate.weight.find('*') == std::string::npos;
  const TensorViews& tensors = this->Files.GetTensors();
  const auto found = std::find_if(tensors.begin(), tensors.end(),
    [&](const auto& tensor) { return EndsWith(tensor.first, ending); });
  if (isOther && this->Config.expertLimit == 0)
  {
    // Release 5 of transformers saves Qwen3-VL's with outputs first, release 4 with inputs first.
    const Shape last = { this->Config.experts, this->Config.modelDimension,
      this->Config.expertDimension };
    const bool isByOutputs =
      last[1] != last[2] && std::any_of(tensors.begin(), tensors.end(),
                              [&](const auto& tensor)
                              {
                                return EndsWith(tensor.first, "." + names.expertsDown.weight) &&
                                       tensor.second.shape == last;
                              });
    names.expertLayout = isByOutputs ? WeightLayout::OutputInput : names.expertLayout;
  }
  if (isOther || found == tensors.end())
  {
    return;
  }
  std::string before = found->first; // model.layers.1.mlp.
  before.resize(before.size() - ending.size());
  const std::size_t dot =
    before.rfind('.', before.size() - std::min<std::size_t>(before.size(), 2));
  const std::string module = before.substr(dot == std::string::npos ? 0 : dot + 1);
  names.expertsGate = { module + std::string(ending), "" };
  names.expertsUp = {};
  names.expertsDown = { module + "experts.down_proj", "" };
  names.expertLayout = WeightLayout::OutputInput;
  for (const char* router : { "gate.weight", "router.weight" })
  {
    if (this->Has(before + router))
    {
      names.router.weight = module + router;
    }
  }
  for (const char* bias : { "e_score_correction_bias", "gate.e_score_correction_bias",
         "gate.moe_statics.e_score_correction_bias" })
  {
    if (this->Has(before + bias))
    {
      names.expertBias = module + bias;
    }
  }
}

std::pair<std::string, std::string> TensorBinder::FindPrefixes() const
{
  const TensorViews& tensors = this->Files.GetTensors();
  const bool hasTokens =
    !this->Name.tokens.empty() && std::any_of(tensors.begin(), tensors.end(), [this](const auto& t)
                                    { return EndsWith(t.first, this->Name.tokens); });
  const std::string first = hasTokens                            ? this->Name.tokens
                            : !this->Name.patches.weight.empty() ? this->Name.patches.weight
                                                                 : this->Name.layers + "0.";
  const auto isBefore = [&](const std::string& before)
  {
    const auto found = tensors.lower_bound(before + first);
    return found != tensors.end() && BeginsWith(found->first, before + first);
  };
  const std::string& prefix = this->Name.prefix;
  if (!this->Lens && !prefix.empty() && !isBefore(prefix))
  {
    const bool isOfImages = this->Config.input == InputKind::Images;
    const OuterPrefix* outer = isOfImages ? OuterImagePrefixes.data() : OuterPrefixes.data();
    const OuterPrefix* end =
      outer + (isOfImages ? OuterImagePrefixes.size() : OuterPrefixes.size());
    for (; outer != end; ++outer)
    {
      if (isBefore(std::string(outer->base)))
      {
        return { std::string(outer->base), std::string(outer->head) };
      }
    }
    // One that ends otherwise, such as "decoder." of "model.decoder.".
    const std::size_t dot = prefix.find('.');
    const std::string rest = prefix.substr(dot + 1);
    return { !rest.empty() && isBefore(rest) ? rest : std::string(), std::string() };
  }
  return { prefix, std::string() };
}

const TensorView* TensorBinder::Find(std::string_view name) const
{
  const auto found = this->Files.GetTensors().find(name);
  return found == this->Files.GetTensors().end() ? nullptr : &found->second;
}

std::string TensorBinder::LayerPrefix(std::int64_t layer) const
{
  if (this->Config.layerGroups > 0)
  {
    const std::int64_t turns = this->Config.layers / this->Config.groupLayers;
    const double perGroup =
      static_cast<double>(turns) / static_cast<double>(this->Config.layerGroups);
    const std::int64_t turn = layer / this->Config.groupLayers;
    const auto group = static_cast<std::int64_t>(static_cast<double>(turn) / perGroup);
    const std::string name = Numbered(this->Prefix + this->Name.layers, group);
    return Numbered(name, layer % this->Config.groupLayers) + ".";
  }
  return this->Prefix + this->Name.layers + std::to_string(layer) + ".";
}

TensorView TensorBinder::Keep(std::vector<float> values, const Shape& shape)
{
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  this->Weights.owned.push_back(kept);
  return { DType::F32, shape, reinterpret_cast<const std::byte*>(kept->data()) };
}

const TensorView& TensorBinder::Get(const std::string& name)
{
  const TensorView* view = this->Find(name);
  if (view == nullptr || !IsFloating(view->dtype) || IsFloatOfByte(view->dtype))
  {
    const std::string method = QuantizationOf(this->Files.GetTensors(), name);
    if (!method.empty())
    {
      this->Fail(name, " is ", QuantizationMessage(method));
    }
  }
  if (view == nullptr)
  {
    this->FailMissing(name);
  }
  if (!IsFloating(view->dtype))
  {
    this->Fail(name, ": expected F32, F16, BF16 or F64, found ", atlas::Name(view->dtype), ".");
  }
  this->Used.insert(name);
  return *view;
}

TensorView TensorBinder::Get(const std::string& name, const Shape& shape)
{
  const TensorView& view = this->Get(name);
  if (view.shape != shape)
  {
    this->Fail(name, ": expected shape ", ToString(shape), " by the configuration, found ",
      ToString(view.shape), ".");
  }
  return view;
}

void TensorBinder::RequireRows(const std::string& name, WeightLayout layout) const
{
  const TensorView* view = this->Find(name);
  if (view != nullptr && view->packed != nullptr && layout != WeightLayout::OutputInput)
  {
    this->Fail(name, " is quantized by ", view->packed->name,
      ", which is run only for matrices with a row for each output; expected the model before "
      "its quantization.");
  }
}

TensorView TensorBinder::GetNumber(const std::string& name)
{
  const TensorView& view = this->Get(name);
  return view.Count() == 1 ? view : this->Get(name, { 1 });
}

TensorView TensorBinder::GetOptional(const std::string& name, const Shape& shape)
{
  return this->Has(name) ? this->Get(name, shape) : TensorView();
}

std::string TensorBinder::OldName(
  const std::string& name, const std::string& end, const char* oldEnd) const
{
  if (!this->Has(name) && EndsWith(name, end))
  {
    const std::string old = name.substr(0, name.size() - end.size()) + oldEnd;
    return this->Has(old) ? old : name;
  }
  return name;
}

std::string TensorBinder::Either(const std::string& prefix, const std::string& names) const
{
  const std::size_t comma = names.find(',');
  const std::string first = prefix + names.substr(0, comma);
  return comma == std::string::npos || this->Has(first) ? first : prefix + names.substr(comma + 1);
}

NormTensors TensorBinder::GetNorm(const std::string& prefix, const PairNames& names)
{
  return this->Weights.normsAreFolded ? NormTensors() : this->GetUnfoldedNorm(prefix, names);
}

NormTensors TensorBinder::GetUnfoldedNorm(
  const std::string& prefix, const PairNames& names, std::int64_t dimension)
{
  NormTensors norm;
  if (this->Config.norm == NormKind::None || !this->Config.normsHaveWeights)
  {
    return norm;
  }
  const Shape shape = { dimension > 0 ? dimension : this->Config.modelDimension };
  norm.gain = this->Get(
    this->OldName(this->Either(prefix, names.weight), "LayerNorm.weight", "LayerNorm.gamma"),
    shape);
  if (this->Config.norm == NormKind::LayerNorm && this->Config.normsHaveShifts &&
      !names.bias.empty())
  {
    norm.shift =
      this->Get(this->OldName(prefix + names.bias, "LayerNorm.bias", "LayerNorm.beta"), shape);
  }
  return norm;
}

LinearTensors TensorBinder::GetLinear(const std::string& prefix, const PairNames& names,
  std::int64_t inputs, std::int64_t outputs, bool bias)
{
  const WeightLayout layout =
    prefix.empty() && !this->Lens ? WeightLayout::OutputInput : this->Name.layout;
  const Shape shape =
    layout == WeightLayout::OutputInput ? Shape{ outputs, inputs } : Shape{ inputs, outputs };
  const std::string biasName = prefix + names.bias;
  this->RequireRows(prefix + names.weight, layout);
  return { this->Get(prefix + names.weight, shape),
    this->Lens ? this->GetOptional(biasName, { outputs })
    : bias     ? this->Get(biasName, { outputs })
               : TensorView(),
    layout, inputs, outputs };
}

TensorView TensorBinder::GetRelativeBias(const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const bool isShared = config.position == PositionKind::RelativeOfPatches && !config.biasByLayer;
  const std::string name = prefix + (isShared ? this->Name.sharedBias : this->Name.relativeBias);
  if (config.position == PositionKind::Relative)
  {
    return this->Get(name, { config.relativeBuckets, config.heads });
  }
  if (config.position != PositionKind::RelativeOfPatches)
  {
    return {};
  }
  const bool resizes = ResizesPositions(config);
  const std::int64_t rows = 2 * (resizes ? config.positionSide : config.PatchRows()) - 1;
  const std::int64_t columns = 2 * (resizes ? config.positionSide : config.PatchColumns()) - 1;
  TensorView view = this->Get(name, { rows * columns + 3, config.heads });
  if (!resizes)
  {
    return view;
  }
  std::vector<float> resized = ResizedPatchBias(view, config);
  const std::int64_t count = static_cast<std::int64_t>(resized.size()) / config.heads;
  return this->Keep(std::move(resized), { count, config.heads });
}

LinearTensors TensorBinder::GetSoundConvolution(
  std::int64_t number, std::int64_t inputs, std::int64_t width, std::int64_t outputs)
{
  const PairNames& names = this->Name.firstConvolution;
  const std::string bias = this->Prefix + Numbered(names.bias, number);
  return { this->Get(this->Prefix + Numbered(names.weight, number), { outputs, inputs, width }),
    this->Config.sound->hasBias ? this->Get(bias, { outputs }) : TensorView(),
    WeightLayout::OutputInput, inputs * width, outputs };
}

LinearTensors TensorBinder::GetPositionConvolution()
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t width = this->Config.sound->positionWidth;
  const std::int64_t inputs = d / this->Config.sound->positionGroups;
  const std::string stem = this->Prefix + this->Name.secondConvolution.weight;
  const std::string module = stem.substr(0, stem.rfind('.') + 1);
  const bool isNew = this->Has(module + "parametrizations.weight.original0");
  const std::string lengthName = isNew ? module + "parametrizations.weight.original0" : stem + "_g";
  const std::vector<double> lengths = this->Get(lengthName, { 1, 1, width }).ToDouble();
  std::vector<double> values =
    this
      ->Get(
        isNew ? module + "parametrizations.weight.original1" : stem + "_v", { d, inputs, width })
      .ToDouble();
  std::vector<double> squares(ToIndex(width));
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    squares[i % squares.size()] += values[i] * values[i];
  }
  std::vector<float> weights;
  weights.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    const std::size_t place = i % squares.size();
    weights.push_back(static_cast<float>(values[i] * lengths[place] / std::sqrt(squares[place])));
  }
  return { this->Keep(std::move(weights), { d, inputs, width }),
    this->Get(this->Prefix + this->Name.secondConvolution.bias, { d }), WeightLayout::OutputInput,
    inputs * width, d };
}

LinearTensors TensorBinder::GetConvolution(
  const PairNames& names, std::int64_t inputs, std::int64_t width)
{
  const std::int64_t d = this->Config.modelDimension;
  return { this->Get(this->Prefix + names.weight, { d, inputs, width }),
    this->Get(this->Prefix + names.bias, { d }), WeightLayout::OutputInput, inputs * width, d };
}

}
