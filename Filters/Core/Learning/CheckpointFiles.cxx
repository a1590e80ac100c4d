#include "CheckpointFiles.h"

#include "AtomicFile.h"
#include "Error.h"
#include "Joined.h"
#include "JsonText.h"
#include "Safetensors.h"
#include "WordLevelText.h"

#include <Eigen/Core>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace atlas
{
namespace
{

using Json = nlohmann::ordered_json;

/// The largest finite number of F16.
constexpr float LargestHalf = 65504;

[[noreturn]] void FailConfig(const TransformerConfig& config, const std::string& what)
{
  throw OptionError("config.json of " + config.architecture + ": " + what + ".");
}

std::string ActivationName(Activation activation, bool lens)
{
  switch (activation)
  {
    case Activation::Gelu:
      return "gelu";
    case Activation::GeluTanh:
      return "gelu_new";
    case Activation::Relu:
      return "relu";
    case Activation::QuickGelu:
      return "quick_gelu";
    case Activation::Silu:
      break;
  }
  return lens ? "silu" : "swish";
}

std::string PositionName(PositionKind position)
{
  switch (position)
  {
    case PositionKind::Shortformer:
      return "shortformer";
    case PositionKind::Alibi:
      return "alibi";
    case PositionKind::Rotary:
      return "rotary";
    case PositionKind::Learned:
    case PositionKind::None:
    case PositionKind::Sinusoidal:
    case PositionKind::Relative:
    case PositionKind::RotaryOfPatches:
      break;
  }
  return "standard";
}

/// LN, RMS or null; the "Pre" variants have their gains folded.
Json NormName(const TransformerConfig& config)
{
  if (config.norm == NormKind::None)
  {
    return nullptr;
  }
  const std::string name = config.norm == NormKind::LayerNorm ? "LN" : "RMS";
  return config.normsAreFolded ? name + "Pre" : name;
}

std::string DTypeName(DType dtype)
{
  return dtype == DType::F16 ? "float16" : "float32";
}

/// TransformerLens has only models of this structure.
void RequireLens(const TransformerConfig& config)
{
  if (config.input != InputKind::Tokens || config.segments > 0 ||
      config.normPlace != NormPlace::BeforeSublayer)
  {
    FailConfig(config, "expected a model of tokens without segments, whose normalizations come "
                       "before attention and MLP");
  }
  if (config.finalNorm != (config.norm != NormKind::None))
  {
    FailConfig(config, "expected a final normalization if and only if the layers have one");
  }
  if (config.embeddingNorm && config.norm != NormKind::LayerNorm)
  {
    FailConfig(config, "the normalization of the embedding is a LayerNorm, as are the others then");
  }
  if (config.gated && config.mlpBias)
  {
    FailConfig(config, "expected a gated MLP without biases, as the original adds its first bias "
                       "behind the gate");
  }
  if (config.position == PositionKind::Alibi && config.mask != AttentionMask::Causal)
  {
    FailConfig(config, "expected a causal mask with ALiBi positions, as the original has no slope "
                       "for later tokens");
  }
  if (config.rotaryScaling.kind != RotaryScaling::Kind::None)
  {
    FailConfig(config, "expected unscaled rotary frequencies");
  }
}

/// Settings of HookedTransformerConfig that are the same in every model.
void AddLensConstants(Json& json)
{
  for (const char* flag :
    { "use_attn_result", "use_split_qkv_input", "use_hook_mlp_in", "use_attn_in", "use_local_attn",
      "final_rms", "parallel_attn_mlp", "rotary_adjacent_pairs", "init_weights" })
  {
    json[flag] = false;
  }
  json["original_architecture"] = nullptr;
  json["tokenizer_name"] = nullptr;
  json["window_size"] = nullptr;
  json["attn_types"] = nullptr;
  json["seed"] = nullptr;
}

Json LensConfig(const TransformerConfig& config, DType dtype)
{
  RequireLens(config);
  const bool attentionOnly = config.mlpDimension == 0;
  const bool rotary = config.position == PositionKind::Rotary;
  Json json;
  json["model_type"] = config.architecture;
  json["model_name"] = "attention-atlas";
  json["n_layers"] = config.layers;
  json["d_model"] = config.modelDimension;
  json["n_ctx"] = config.positions;
  json["d_head"] = config.headDimension;
  json["n_heads"] = config.heads;
  // With this setting the original names keys and values otherwise, even if it equals n_heads.
  json["n_key_value_heads"] = config.keyHeads == config.heads ? Json() : Json(config.keyHeads);
  json["attn_only"] = attentionOnly;
  json["d_mlp"] = attentionOnly ? Json() : Json(config.mlpDimension);
  json["act_fn"] = attentionOnly ? Json() : Json(ActivationName(config.activation, true));
  json["gated_mlp"] = config.gated;
  json["d_vocab"] = config.vocabulary;
  json["d_vocab_out"] = config.outputVocabulary;
  json["normalization_type"] = NormName(config);
  json["eps"] = config.epsilon;
  json["post_embedding_ln"] = config.embeddingNorm;
  json["positional_embedding_type"] = PositionName(config.position);
  json["rotary_dim"] = rotary ? Json(config.headDimension) : Json();
  json["rotary_base"] = config.rotaryBase;
  json["attention_dir"] = config.mask == AttentionMask::Causal ? "causal" : "bidirectional";
  json["use_attn_scale"] = true;
  json["attn_scale"] = config.attentionScale;
  json["scale_attn_by_inverse_layer_idx"] = config.scaleByLayer;
  AddLensConstants(json);
  json["dtype"] = DTypeName(dtype);
  return json;
}

/// What BERT and ViT share.
Json EncoderConfig(const TransformerConfig& config, const char* name, DType dtype)
{
  if (config.keyHeads != config.heads ||
      config.headDimension * config.heads != config.modelDimension)
  {
    FailConfig(config, "expected HeadDimension to be ModelDimension / Heads, and as many KeyHeads "
                       "as Heads; found a HeadDimension of " +
                         std::to_string(config.headDimension) + ", a ModelDimension of " +
                         std::to_string(config.modelDimension) + ", " +
                         std::to_string(config.heads) + " Heads and " +
                         std::to_string(config.keyHeads) + " KeyHeads");
  }
  Json json;
  json["architectures"] = Json::array({ name });
  json["model_type"] = config.architecture;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["hidden_size"] = config.modelDimension;
  json["intermediate_size"] = config.mlpDimension;
  json["hidden_act"] = ActivationName(config.activation, false);
  json["layer_norm_eps"] = config.epsilon;
  json["hidden_dropout_prob"] = 0.0;
  json["attention_probs_dropout_prob"] = 0.0;
  json["torch_dtype"] = DTypeName(dtype);
  return json;
}

Json BertConfig(const TransformerConfig& config, DType dtype)
{
  Json json = EncoderConfig(config, "BertForMaskedLM", dtype);
  json["vocab_size"] = config.vocabulary;
  json["max_position_embeddings"] = config.positions;
  json["type_vocab_size"] = config.segments;
  json["position_embedding_type"] = "absolute";
  json["tie_word_embeddings"] = config.tiedUnembedding;
  json["pad_token_id"] = 0;
  return json;
}

/// An extent as one number if it is square.
Json Extent(std::int64_t height, std::int64_t width)
{
  return height == width ? Json(height) : Json::array({ height, width });
}

Json VitConfig(const TransformerConfig& config, const std::vector<std::string>& labels, DType dtype)
{
  const std::size_t classes = config.outputVocabulary;
  if (!labels.empty() && labels.size() != classes)
  {
    FailConfig(config, "expected a name for each of the " + std::to_string(classes) +
                         " classes, found " + std::to_string(labels.size()));
  }
  Json json = EncoderConfig(config, "ViTForImageClassification", dtype);
  json["image_size"] = Extent(config.imageHeight, config.imageWidth);
  json["patch_size"] = Extent(config.patchHeight, config.patchWidth);
  json["num_channels"] = config.channels;
  json["qkv_bias"] = config.inputBias;
  json["id2label"] = Json::object();
  json["label2id"] = Json::object();
  for (std::size_t i = 0; i < classes; ++i)
  {
    const std::string label = labels.empty() ? "LABEL_" + std::to_string(i) : labels[i];
    json["id2label"][std::to_string(i)] = label;
    json["label2id"][label] = i;
  }
  return json;
}

void WriteText(const std::filesystem::path& path, const std::string& text)
{
  AtomicFile file(path);
  file.Write(text.data(), text.size());
  file.Commit();
}

Tensor Zeros(const Shape& shape)
{
  return Tensor::FromDouble(
    DType::F32, shape, std::vector<double>(ElementCount(shape).value_or(0)));
}

/// The transpose of an embedding [V, d], as TransformerLens stores the unembedding.
Tensor Transposed(const TensorView& embedding)
{
  const std::int64_t rows = embedding.shape.at(0);
  const std::int64_t columns = embedding.shape.at(1);
  std::vector<float> values(embedding.Count());
  embedding.ToFloat(0, embedding.Count(), values.data());
  Tensor tensor{ DType::F32, { columns, rows }, {} };
  tensor.bytes.resize(values.size() * sizeof(float));
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix transposed = Eigen::Map<const Matrix>(values.data(), rows, columns).transpose();
  std::memcpy(tensor.bytes.data(), transposed.data(), tensor.bytes.size());
  return tensor;
}

/// The biases that every model of TransformerLens has.
std::map<std::string, Shape> LensBiases(const TransformerConfig& config)
{
  std::map<std::string, Shape> shapes;
  const bool shared = config.keyHeads != config.heads;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const std::string layer = "blocks." + std::to_string(l) + ".";
    const std::string grouped = layer + (shared ? "attn._b_" : "attn.b_");
    shapes[layer + "attn.b_Q"] = { config.heads, config.headDimension };
    shapes[grouped + "K"] = { config.keyHeads, config.headDimension };
    shapes[grouped + "V"] = { config.keyHeads, config.headDimension };
    shapes[layer + "attn.b_O"] = { config.modelDimension };
    if (config.mlpDimension > 0)
    {
      shapes[layer + "mlp.b_in"] = { config.mlpDimension };
      shapes[layer + "mlp.b_out"] = { config.modelDimension };
    }
  }
  shapes["unembed.b_U"] = { config.outputVocabulary };
  return shapes;
}

/// The tensors that TransformerLens expects and the model does not have.
Tensors MissingLensTensors(const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  const TensorViews& present = model.GetFiles().GetTensors();
  std::map<std::string, Shape> zeros = LensBiases(config);
  if (config.position == PositionKind::None)
  {
    zeros["pos_embed.W_pos"] = { config.positions, config.modelDimension };
  }
  Tensors missing;
  for (const auto& [name, shape] : zeros)
  {
    if (present.count(name) == 0)
    {
      missing.emplace(name, Zeros(shape));
    }
  }
  if (present.count("unembed.W_U") == 0 && config.tiedUnembedding)
  {
    missing.emplace("unembed.W_U", Transposed(model.GetWeights().tokenEmbedding));
  }
  return missing;
}

/// A tensor rounded to F16 or, if it is not one already, F32.
Tensor Rounded(const std::string& name, const TensorView& view, DType dtype)
{
  std::vector<float> values(view.Count());
  view.ToFloat(0, view.Count(), values.data());
  Tensor tensor{ dtype, view.shape, {} };
  tensor.bytes.resize(values.size() * ByteSize(dtype));
  if (dtype == DType::F32)
  {
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (!(std::abs(values[i]) <= LargestHalf))
    {
      throw OptionError("tensor '" + name + "': expected values up to 65504 for F16, found " +
                        std::to_string(values[i]) + "; write F32.");
    }
    const auto half = Eigen::half(values[i]);
    std::memcpy(tensor.bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return tensor;
}

void WriteWeights(const std::filesystem::path& path, const Transformer& model, DType dtype)
{
  const bool lens = model.GetConfig().architecture == "transformer_lens";
  const Tensors missing = lens ? MissingLensTensors(model) : Tensors();
  TensorViews views = model.GetFiles().GetTensors();
  for (const auto& [name, tensor] : missing)
  {
    views.emplace(name, tensor.View());
  }
  Tensors rounded;
  for (auto& [name, view] : views)
  {
    if (view.dtype != dtype || !view.IsPlain())
    {
      view = rounded.emplace(name, Rounded(name, view, dtype)).first->second.View();
    }
  }
  // Hugging Face refuses files that do not name the library of their origin.
  WriteSafetensorViews(path, views, { { "format", "pt" } });
}

/// The text of a number in a CSV file.
std::string CsvNumber(double value)
{
  if (std::isnan(value))
  {
    return "nan";
  }
  if (std::trunc(value) == value && std::abs(value) < 1e15) // 100000 and not 1e+05
  {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  std::array<char, 32> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return { text.data(), static_cast<std::size_t>(end - text.data()) };
}

template<class Row, class ToText>
void AddCsvLine(std::string& text, const Row& row, const ToText& toText)
{
  const char* separator = "";
  for (const auto& item : row)
  {
    text += separator + toText(item);
    separator = ",";
  }
  text += "\n";
}

/// The number N in the name prefix N suffix of a file or folder; none for other names.
std::optional<std::int64_t> StepInName(
  const std::filesystem::path& path, std::string_view prefix, std::string_view suffix = "")
{
  const std::string name = path.filename().string();
  if (name.size() < prefix.size() + suffix.size() || name.compare(0, prefix.size(), prefix) != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
  {
    return {};
  }
  std::int64_t step = 0;
  const char* end = name.data() + name.size() - suffix.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, step);
  const bool isNumber = parsed.ec == std::errc() && parsed.ptr == end && step >= 0;
  return isNumber ? std::optional<std::int64_t>(step) : std::nullopt;
}

std::optional<std::int64_t> CheckpointStep(const std::filesystem::path& folder)
{
  return StepInName(folder, "checkpoint-");
}

/// Calls visit(path) for each entry of a folder; for none if it cannot be read.
template<class Visit>
void ForEachEntry(const std::filesystem::path& folder, const Visit& visit)
{
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
    entry.increment(error))
  {
    visit(entry->path());
  }
}

}

std::string ToConfigText(
  const TransformerConfig& config, const std::vector<std::string>& labels, DType dtype)
{
  if (config.architecture == "bert")
  {
    return BertConfig(config, dtype).dump(2) + "\n";
  }
  if (config.architecture == "vit")
  {
    return VitConfig(config, labels, dtype).dump(2) + "\n";
  }
  if (config.architecture == "transformer_lens")
  {
    return LensConfig(config, dtype).dump(2) + "\n";
  }
  throw OptionError("config.json: expected a model of transformer_lens, bert or vit, found '" +
                    config.architecture + "'.");
}

void WriteCheckpoint(const std::filesystem::path& folder, const Transformer& model,
  const std::map<std::string, std::string>& files, DType dtype,
  const std::vector<std::string>& labels)
{
  if (dtype != DType::F32 && dtype != DType::F16)
  {
    throw OptionError(
      "weights of a checkpoint: expected F32 or F16, found " + std::string(Name(dtype)) + ".");
  }
  const std::string config = ToConfigText(model.GetConfig(), labels, dtype);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
  {
    throw FileError(folder.string() + ": the folder cannot be created: " + error.message() + ".");
  }
  WriteWeights(folder / WeightsFile, model, dtype);
  for (const auto& [name, text] : files)
  {
    WriteText(folder / name, text);
  }
  // Last: a folder with a config.json is complete.
  WriteText(folder / ConfigFile, config);
}

std::map<std::string, std::string> FilesOf(const LearningTask& task)
{
  std::map<std::string, std::string> files = task.Files();
  const std::vector<std::string> words = task.TokenNames();
  if (!words.empty())
  {
    files.emplace("tokenizer.json", WordLevelText(words));
  }
  return files;
}

void WriteCurves(const std::filesystem::path& path, const LearningCurves& curves)
{
  std::string text;
  AddCsvLine(text, curves.names, [](const std::string& name) { return name; });
  for (const std::vector<double>& row : curves.rows)
  {
    AddCsvLine(text, row, CsvNumber);
  }
  WriteText(path, text);
}

bool IsCheckpointFolder(const std::filesystem::path& folder)
{
  return CheckpointStep(folder).has_value();
}

LearningCurves WithEarlierRows(const std::filesystem::path& path, LearningCurves curves)
{
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (line != Joined(curves.names, [](const std::string& name) { return name; }, ","))
  {
    return curves;
  }
  std::vector<std::vector<double>> rows;
  while (std::getline(file, line))
  {
    std::istringstream fields(line);
    std::vector<double> row;
    for (std::string field; std::getline(fields, field, ',');)
    {
      row.push_back(std::strtod(field.c_str(), nullptr));
    }
    if (row.size() == curves.names.size() && row[0] < curves.rows.front()[0])
    {
      rows.push_back(std::move(row));
    }
  }
  curves.rows.insert(curves.rows.begin(), rows.begin(), rows.end());
  return curves;
}

std::map<std::int64_t, std::filesystem::path> FindCheckpoints(const std::filesystem::path& folder)
{
  std::map<std::int64_t, std::filesystem::path> checkpoints;
  ForEachEntry(folder,
    [&](const std::filesystem::path& path)
    {
      const auto step = CheckpointStep(path);
      if (step && ModelFile(path) != path)
      {
        checkpoints.emplace(*step, path);
      }
    });
  return checkpoints;
}

std::string PairCheckpointName(std::int64_t step, std::int64_t steps)
{
  std::string number = std::to_string(step);
  const std::size_t digits = std::to_string(steps).size();
  number.insert(0, digits - std::min(digits, number.size()), '0');
  return "step-" + number + ".safetensors";
}

std::vector<std::filesystem::path> FindPairCheckpoints(const std::filesystem::path& folder)
{
  std::vector<std::filesystem::path> files;
  ForEachEntry(folder,
    [&](const std::filesystem::path& path)
    {
      if (StepInName(path, "step-", ".safetensors"))
      {
        files.push_back(path);
      }
    });
  return files;
}

}
