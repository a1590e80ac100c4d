#include "CheckpointFiles.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Files/AtomicFile.h"
#include "Files/JsonText.h"
#include "Files/Safetensors.h"
#include "Text/WordLevelText.h"
#include "TransformerTrainer.h"
#include "Weights/CheckpointConfig.h"

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace atlas
{
namespace
{

using Json = nlohmann::ordered_json;

/// The largest finite number of F16.
constexpr float LargestHalf = 65504;

/// Throws OptionError unless a model has what its original expects.
template<class... Parts>
void Require(bool holds, const TransformerConfig& config, const Parts&... parts)
{
  ThrowIf<OptionError>(!holds, "config.json of ", config.architecture, ": ", parts..., ".");
}

/// TransformerLens' names; encoders have another one for Silu.
constexpr std::array<Named<Activation>, 5> Activations = { {
  { "gelu", Activation::Gelu },
  { "gelu_new", Activation::GeluTanh },
  { "relu", Activation::Relu },
  { "quick_gelu", Activation::QuickGelu },
  { "silu", Activation::Silu },
} };

std::string PositionName(PositionKind position)
{
  return position == PositionKind::Shortformer ? "shortformer"
         : position == PositionKind::Alibi     ? "alibi"
         : position == PositionKind::Rotary    ? "rotary"
                                               : "standard";
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
  Require(config.input == InputKind::Tokens && config.segments == 0 &&
            config.normPlace == NormPlace::BeforeSublayer,
    config,
    "expected a model of tokens without segments, whose normalizations come before attention and "
    "MLP");
  Require(config.finalNorm == (config.norm != NormKind::None), config,
    "expected a final normalization if and only if the layers have one");
  Require(!config.embeddingNorm || config.norm == NormKind::LayerNorm, config,
    "the normalization of the embedding is a LayerNorm, as are the others then");
  Require(!config.gated || !config.mlpBias, config,
    "expected a gated MLP without biases, as the original adds its first bias behind the gate");
  Require(config.position != PositionKind::Alibi || config.mask == AttentionMask::Causal, config,
    "expected a causal mask with ALiBi positions, as the original has no slope for later tokens");
  Require(config.rotaryScaling.kind == RotaryScaling::Kind::None, config,
    "expected unscaled rotary frequencies");
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
  for (const char* none :
    { "original_architecture", "tokenizer_name", "window_size", "attn_types", "seed" })
  {
    json[none] = nullptr;
  }
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
  json["act_fn"] = attentionOnly ? Json() : Json(NameOf(Activations, config.activation));
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
  Require(
    config.keyHeads == config.heads && config.headDimension * config.heads == config.modelDimension,
    config,
    "expected HeadDimension to be ModelDimension / Heads, and as many KeyHeads as Heads; found a "
    "HeadDimension of ",
    config.headDimension, ", a ModelDimension of ", config.modelDimension, ", ", config.heads,
    " Heads and ", config.keyHeads, " KeyHeads");
  Json json;
  json["architectures"] = Json::array({ name });
  json["model_type"] = config.architecture;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["hidden_size"] = config.modelDimension;
  json["intermediate_size"] = config.mlpDimension;
  json["hidden_act"] =
    config.activation == Activation::Silu ? "swish" : NameOf(Activations, config.activation);
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
  Require(labels.empty() || labels.size() == classes, config, "expected a name for each of the ",
    classes, " classes, found ", labels.size());
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

/// All elements of a tensor in single precision.
std::vector<float> FloatsOf(const TensorView& view)
{
  std::vector<float> values(view.Count());
  view.ToFloat(0, view.Count(), values.data());
  return values;
}

/// The transpose of an embedding [V, d], as TransformerLens stores the unembedding.
Tensor Transposed(const TensorView& embedding)
{
  const std::int64_t rows = embedding.shape.at(0);
  const std::int64_t columns = embedding.shape.at(1);
  const std::vector<float> values = FloatsOf(embedding);
  Tensor tensor{ DType::F32, { columns, rows },
    std::vector<std::byte>(values.size() * sizeof(float)) };
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix transposed = Eigen::Map<const Matrix>(values.data(), rows, columns).transpose();
  std::memcpy(tensor.bytes.data(), transposed.data(), tensor.bytes.size());
  return tensor;
}

/// The tensors that TransformerLens expects and the model does not have: zeros for biases and
/// positions, and a copy of a tied unembedding.
Tensors MissingLensTensors(const Transformer& model)
{
  TransformerConfig config = model.GetConfig();
  config.inputBias = config.outputBias = config.mlpBias = true;
  config.gated = config.tiedUnembedding = false;
  if (config.position == PositionKind::None)
  {
    config.position = PositionKind::Learned;
  }
  Tensors missing;
  for (const auto& [name, shape] : ParameterShapes(config))
  {
    const bool isCopy = name == "unembed.W_U";
    const bool isZero = name == "pos_embed.W_pos" || name.find("b_") != std::string::npos;
    if ((isCopy || isZero) && model.GetFiles().GetTensors().count(name) == 0)
    {
      const std::vector<double> zeros(ElementCount(shape).value_or(0));
      missing.emplace(name, isCopy ? Transposed(model.GetWeights().tokenEmbedding)
                                   : Tensor::FromDouble(DType::F32, shape, zeros));
    }
  }
  return missing;
}

/// A tensor rounded to F16 or, if it is not one already, F32.
Tensor Rounded(const std::string& name, const TensorView& view, DType dtype)
{
  const std::vector<float> values = FloatsOf(view);
  Tensor tensor{ dtype, view.shape, std::vector<std::byte>(values.size() * ByteSize(dtype)) };
  if (dtype == DType::F32)
  {
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    ThrowIf<OptionError>(!(std::abs(values[i]) <= LargestHalf), "tensor '", name,
      "': expected values up to 65504 for F16, found ", values[i], "; write F32.");
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

/// The first line of a CSV file.
std::string HeaderOf(const LearningCurves& curves)
{
  return Joined(curves.names, [](const std::string& name) { return name; }, ",");
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
  ThrowIf<OptionError>(config.architecture != "bert" && config.architecture != "vit" &&
                         config.architecture != "transformer_lens",
    "config.json: expected a model of transformer_lens, bert or vit, found '", config.architecture,
    "'.");
  const Json json = config.architecture == "bert"  ? BertConfig(config, dtype)
                    : config.architecture == "vit" ? VitConfig(config, labels, dtype)
                                                   : LensConfig(config, dtype);
  return json.dump(2) + "\n";
}

void WriteCheckpoint(const std::filesystem::path& folder, const Transformer& model,
  const std::map<std::string, std::string>& files, DType dtype,
  const std::vector<std::string>& labels)
{
  ThrowIf<OptionError>(dtype != DType::F32 && dtype != DType::F16,
    "weights of a checkpoint: expected F32 or F16, found ", Name(dtype), ".");
  const std::string config = ToConfigText(model.GetConfig(), labels, dtype);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
  {
    throw FileError(folder.string(), ": the folder cannot be created: ", error.message(), ".");
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
  std::string text = HeaderOf(curves);
  for (const std::vector<double>& row : curves.rows)
  {
    text += "\n" + Joined(row, CsvNumber, ",");
  }
  WriteText(path, text + "\n");
}

LearningCurves WithEarlierRows(const std::filesystem::path& path, LearningCurves curves)
{
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (line != HeaderOf(curves))
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
  const std::string number = std::to_string(step);
  const std::size_t digits = std::max(std::to_string(steps).size(), number.size());
  return "step-" + std::string(digits - number.size(), '0') + number + ".safetensors";
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
