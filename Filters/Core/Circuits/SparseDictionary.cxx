#include "SparseDictionary.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Base/SystemLimits.h"
#include "CircuitFactors.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Files/Safetensors.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;
using Matrix = SparseDictionary::Matrix;

/// Vectors and features that are multiplied at a time.
constexpr std::int64_t BlockVectors = 256;
constexpr std::int64_t BlockFeatures = 512;
/// As SAELens has it.
constexpr double NormEpsilon = 1e-5;

std::filesystem::path SettingsBeside(const std::filesystem::path& weights)
{
  return weights.parent_path() / "cfg.json";
}

/// The tensors of a dictionary's file.
class DictionaryTensors
{
public:
  DictionaryTensors(const SafetensorsFile& file, std::string source)
    : Tensors(file.GetTensors())
    , Source(std::move(source))
  {
  }

  bool Has(const char* name) const { return this->Tensors.count(name) > 0; }

  const TensorView& Get(const char* name) const
  {
    const auto found = this->Tensors.find(name);
    if (found == this->Tensors.end())
    {
      throw ModelError(this->Source, ": expected a tensor ", name, ", found none.");
    }
    this->Known.insert(name);
    return found->second;
  }

  /// [rows, columns], both of the first tensor that is read.
  Matrix ReadMatrix(const char* name, std::int64_t rows, std::int64_t columns) const
  {
    const TensorView& view = this->GetOfShape(name, { rows, columns });
    Matrix matrix(rows, columns);
    view.ToFloat(0, view.Count(), matrix.data());
    this->RequireFinite(matrix.allFinite(), name);
    return matrix;
  }

  Vector ReadVector(const char* name, std::int64_t count) const
  {
    const std::vector<double> values = this->GetOfShape(name, { count }).ToDouble();
    Vector vector = Eigen::Map<const Vector>(values.data(), count);
    this->RequireFinite(vector.allFinite(), name);
    return vector;
  }

  void RequireFinite(bool isFinite, const char* name) const
  {
    ThrowIf<ModelError>(
      !isFinite, this->Source, ": ", name, ": expected finite numbers, found NaN or infinity.");
  }

  /// Factors of versions that fine-tuned them, which later ones leave out if all are 1.
  void RefuseFactors() const
  {
    for (const char* name : { "scaling_factor", "finetuning_scaling_factor" })
    {
      if (!this->Has(name))
      {
        continue;
      }
      const std::vector<double> factors = this->Get(name).ToDouble();
      ThrowIf<ModelError>(
        std::any_of(factors.begin(), factors.end(), [](double x) { return x != 1; }), this->Source,
        ": ", name, ": expected 1 for all features, found others, which are not supported.");
    }
  }

  void RefuseOthers() const
  {
    for (const auto& [name, view] : this->Tensors)
    {
      ThrowIf<ModelError>(this->Known.count(name) == 0, this->Source,
        ": expected no other tensors than ", Joined(this->Known), ", found ", name, ".");
    }
  }

private:
  const TensorViews& Tensors;
  std::string Source;
  mutable std::set<std::string, std::less<>> Known;

  static std::string Joined(const std::set<std::string, std::less<>>& names)
  {
    std::string text;
    for (const std::string& name : names)
    {
      text += (text.empty() ? "" : ", ") + name;
    }
    return text;
  }

  const TensorView& GetOfShape(const char* name, const Shape& shape) const
  {
    const TensorView& view = this->Get(name);
    ThrowIf<ModelError>(view.shape != shape || !IsFloating(view.dtype), this->Source, ": ", name,
      ": expected floating-point numbers of shape ", ToString(shape), ", found ",
      std::string(Name(view.dtype)), " of shape ", ToString(view.shape), ".");
    return view;
  }
};

/// The shape [d_in, F] of W_enc.
std::pair<std::int64_t, std::int64_t> SizesOf(
  const DictionaryTensors& tensors, const std::string& source)
{
  const Shape& shape = tensors.Get("W_enc").shape;
  ThrowIf<ModelError>(shape.size() != 2 || shape[0] < 1 || shape[1] < 1 ||
                        shape[1] > std::numeric_limits<std::int32_t>::max(),
    source, ": W_enc: expected a matrix of inputs by features, found shape ", ToString(shape), ".");
  return { shape[0], shape[1] };
}

/// The layer and the site of "blocks.1.attn.hook_z".
void ReadHook(const Settings& settings, SparseDictionary& dictionary)
{
  dictionary.hook = settings.Text({ "hook_name", "hook_point" }, "");
  const std::string begin = "blocks.";
  const std::size_t dot = dictionary.hook.find('.', begin.size());
  const bool isBlock =
    dictionary.hook.compare(0, begin.size(), begin) == 0 && dot != std::string::npos;
  const std::string number =
    isBlock ? dictionary.hook.substr(begin.size(), dot - begin.size()) : "";
  const auto* site =
    FindNamed(DictionarySiteNames, isBlock ? dictionary.hook.substr(dot + 1) : std::string());
  settings.FailIf(
    site == nullptr || number.empty() || number.size() > 6 ||
      !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }),
    "hook_name: expected blocks.L. with the number L of a layer, then one of ",
    NamesOf(DictionarySiteNames), "; found '", dictionary.hook.substr(0, 80), "'.");
  dictionary.site = site->value;
  dictionary.layer = std::stoll(number);
}

/// The settings of versions before 6 are in one object, and others have other names.
void ReadSettings(const Settings& settings, SparseDictionary& dictionary)
{
  const Settings metadata = settings.NestedOrEmpty({ "metadata" });
  dictionary.activation = settings.Choice({ "architecture" }, "standard", FeatureActivationNames);
  const std::string function = settings.Text({ "activation_fn", "activation_fn_str" }, "relu");
  settings.FailIf(function != "relu" && function != "topk",
    "activation_fn: expected relu or topk, found '", function.substr(0, 80), "'.");
  const Settings ofFunction = settings.NestedOrEmpty({ "activation_fn_kwargs" });
  if (function == "topk")
  {
    dictionary.activation = FeatureActivation::TopK;
  }
  if (dictionary.activation == FeatureActivation::TopK)
  {
    dictionary.k = ofFunction.Has({ "k" }) ? ofFunction.Size({ "k" }) : settings.Size({ "k" });
    dictionary.scalesByLength = settings.Flag({ "rescale_acts_by_decoder_norm" }, false);
  }
  const auto* norm = settings.Value({ "normalize_activations" });
  if (norm != nullptr && !norm->is_boolean())
  {
    dictionary.norm = settings.Choice({ "normalize_activations" }, "none", DictionaryNormNames);
  }
  settings.FailIf(norm != nullptr && norm->is_boolean() && norm->get<bool>(),
    "normalize_activations: expected one of ", NamesOf(DictionaryNormNames),
    ", found true: a factor that is not in the file.");
  dictionary.subtractsBias = settings.Flag({ "apply_b_dec_to_input" }, true);
  for (const Settings& place : { settings, metadata })
  {
    place.RefuseVariants(
      { "finetuning_scaling_factor" }, "factors of features that were fine-tuned");
    const auto* head = place.Value({ "hook_head_index", "hook_point_head_index" });
    settings.FailIf(head != nullptr, "hook_head_index: expected null, that is all heads, found ",
      head == nullptr ? "" : Describe(*head), ".");
    const Settings model = place.NestedOrEmpty({ "model_from_pretrained_kwargs" });
    model.RefuseVariants({ "refactor_factored_attn_matrices" }, "refactored heads");
    dictionary.steps.foldsNorms |= model.Flag({ "fold_ln" }, false);
    dictionary.steps.foldsValues |= model.Flag({ "fold_value_biases" }, false);
    dictionary.steps.centersWriting |= model.Flag({ "center_writing_weights" }, false);
  }
  ReadHook(metadata.Has({ "hook_name", "hook_point" }) ? metadata : settings, dictionary);
}

/// The encoder's columns begin ... begin + count - 1, or all features' values p of some vectors.
DoubleMatrix EncodeBlock(const SparseDictionary& dictionary, const DoubleMatrix& inputs,
  std::int64_t begin, std::int64_t count)
{
  const DoubleMatrix columns = dictionary.encoder.middleCols(begin, count).cast<double>();
  return Product(inputs, columns);
}

/// Replaces x W_enc by the values of features begin, begin + 1, ...: 0 where they are not active.
/// Those of top-k are not yet chosen.
void Activate(const SparseDictionary& dictionary, std::int64_t begin, DoubleMatrix& values)
{
  const std::int64_t count = values.cols();
  const Vector bias = dictionary.bias.segment(begin, count);
  switch (dictionary.activation)
  {
    case FeatureActivation::Relu:
      values = (values.rowwise() + bias).cwiseMax(0);
      break;
    case FeatureActivation::TopK:
      values.rowwise() += bias;
      if (dictionary.scalesByLength)
      {
        const Vector lengths =
          dictionary.decoder.middleRows(begin, count).cast<double>().rowwise().norm().transpose();
        values.array().rowwise() *= lengths.array();
      }
      break;
    case FeatureActivation::JumpRelu:
    {
      values.rowwise() += bias;
      const Vector least = dictionary.thresholds.segment(begin, count).cwiseMax(0);
      values = (values.array() > least.replicate(values.rows(), 1).array()).select(values, 0);
      break;
    }
    case FeatureActivation::Gated:
    {
      const DoubleMatrix gates =
        values.rowwise() + Vector(dictionary.gateBias.segment(begin, count));
      values.array().rowwise() *= dictionary.magnitudes.segment(begin, count).array();
      values = (values.rowwise() + bias).cwiseMax(0);
      values = (gates.array() > 0).select(values, 0);
      break;
    }
  }
}

/// The features of a vector whose values are above 0.
std::vector<ActiveFeature> ActiveOf(
  const SparseDictionary& dictionary, const DoubleMatrix& values, std::int64_t row)
{
  std::vector<ActiveFeature> active;
  active.reserve((values.row(row).array() > 0).count());
  for (std::int64_t f = 0; f < values.cols(); ++f)
  {
    if (values(row, f) > 0)
    {
      active.push_back({ static_cast<std::int32_t>(f), values(row, f) });
    }
  }
  const auto before = [](const ActiveFeature& a, const ActiveFeature& b) { return a.IsBefore(b); };
  std::sort(active.begin(), active.end(), before);
  if (dictionary.activation == FeatureActivation::TopK && ToIndex(dictionary.k) < active.size())
  {
    active.resize(dictionary.k);
    active.shrink_to_fit();
  }
  return active;
}

/// By what p is multiplied before the largest are chosen.
double FactorOf(const SparseDictionary& dictionary, std::int64_t feature)
{
  const double length =
    dictionary.scalesByLength ? dictionary.decoder.row(feature).cast<double>().norm() : 1;
  return length > 0 ? length : 1; // a feature that writes nothing is never active
}

}

Eigen::RowVectorXd SparseDictionary::EncoderOf(std::int64_t feature) const
{
  Vector column = this->encoder.col(feature).cast<double>().transpose();
  if (this->activation == FeatureActivation::Gated)
  {
    column *= this->magnitudes(feature);
  }
  return column * FactorOf(*this, feature);
}

double SparseDictionary::BiasOf(std::int64_t feature) const
{
  return this->bias(feature) * FactorOf(*this, feature);
}

Eigen::RowVectorXd SparseDictionary::DirectionOf(std::int64_t feature) const
{
  return this->decoder.row(feature).cast<double>() / FactorOf(*this, feature);
}

std::filesystem::path DictionaryWeights(const std::filesystem::path& path)
{
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? path / "sae_weights.safetensors" : path;
}

std::int64_t CountFeatures(const std::filesystem::path& path)
{
  const std::filesystem::path weights = DictionaryWeights(path);
  const SafetensorsFile file(weights);
  return SizesOf(DictionaryTensors(file, weights.string()), weights.string()).second;
}

SparseDictionary ReadSparseDictionary(const std::filesystem::path& path)
{
  const std::filesystem::path weights = DictionaryWeights(path);
  const SafetensorsFile file(weights);
  const std::string source = SettingsBeside(weights).string();
  const nlohmann::json object = ParseJsonObject(ReadFile(SettingsBeside(weights)), source);
  const Settings settings(object, source);
  SparseDictionary dictionary;
  ReadSettings(settings, dictionary);
  const DictionaryTensors tensors(file, weights.string());
  const std::pair<std::int64_t, std::int64_t> sizes = SizesOf(tensors, weights.string());
  const std::int64_t inputs = sizes.first;
  const std::int64_t features = sizes.second;
  for (const auto& [name, size] : { std::pair("d_in", inputs), std::pair("d_sae", features) })
  {
    const std::int64_t given = settings.Size({ name }, size);
    settings.FailIf(given != size, name, ": expected ", size, " as in W_enc, found ", given, ".");
  }
  settings.FailIf(dictionary.k > features, "k: expected at most the ", features,
    " features of W_enc, found ", dictionary.k, ".");
  RequireMemory(8. * static_cast<double>(inputs) * static_cast<double>(features),
    "a dictionary of " + std::to_string(features) + " features",
    "use a smaller dictionary, or a machine with more memory.");
  return ReadIntact(file,
    [&]
    {
      dictionary.encoder = tensors.ReadMatrix("W_enc", inputs, features);
      dictionary.decoder = tensors.ReadMatrix("W_dec", features, inputs);
      dictionary.decoderBias = tensors.ReadVector("b_dec", inputs);
      const bool isGated = dictionary.activation == FeatureActivation::Gated;
      dictionary.bias = tensors.ReadVector(isGated ? "b_mag" : "b_enc", features);
      if (isGated)
      {
        dictionary.gateBias = tensors.ReadVector("b_gate", features);
        dictionary.magnitudes = tensors.ReadVector("r_mag", features).array().exp();
        tensors.RequireFinite(dictionary.magnitudes.allFinite(), "exp(r_mag)");
      }
      if (dictionary.activation == FeatureActivation::JumpRelu)
      {
        dictionary.thresholds = tensors.ReadVector("threshold", features);
      }
      tensors.RefuseFactors();
      tensors.RefuseOthers();
      return std::move(dictionary);
    });
}

InputNorm NormOf(const SparseDictionary& dictionary, const Eigen::RowVectorXd& vector)
{
  InputNorm norm;
  const auto count = static_cast<double>(vector.size());
  if (dictionary.norm == DictionaryNorm::LayerNorm)
  {
    norm.mean = vector.mean();
    norm.back = std::sqrt((vector.array() - norm.mean).square().sum() / (count - 1));
    norm.scale = 1 / (norm.back + NormEpsilon);
  }
  else if (dictionary.norm == DictionaryNorm::Constant && vector.norm() > 0)
  {
    norm.scale = std::sqrt(count) / vector.norm();
    norm.back = 1 / norm.scale;
  }
  return norm;
}

double EncodingMemory(const SparseDictionary& dictionary, std::int64_t vectors)
{
  return 8. * static_cast<double>(std::min(vectors, BlockVectors)) *
         static_cast<double>(dictionary.Features() + 2 * dictionary.Inputs());
}

SparseCode Encode(const SparseDictionary& dictionary, const DoubleMatrix& vectors, int threads,
  const Progress& progress)
{
  ThrowIf<OptionError>(vectors.cols() != dictionary.Inputs(), "Dictionary: expected vectors of ",
    dictionary.Inputs(), " components, found ", vectors.cols(), ".");
  const SingleThreadedBlas blas;
  SparseCode code;
  code.active.resize(vectors.rows());
  code.reconstructed.resize(vectors.rows(), vectors.cols());
  const std::int64_t features = dictionary.Features();
  const std::int64_t blocks = (features + BlockFeatures - 1) / BlockFeatures;
  for (std::int64_t first = 0; first < vectors.rows(); first += BlockVectors)
  {
    progress(first, vectors.rows());
    DoubleMatrix inputs =
      vectors.middleRows(first, std::min<std::int64_t>(BlockVectors, vectors.rows() - first));
    std::vector<InputNorm> norms;
    for (std::int64_t i = 0; i < inputs.rows(); ++i)
    {
      norms.push_back(NormOf(dictionary, inputs.row(i)));
      inputs.row(i) = (inputs.row(i).array() - norms.back().mean) * norms.back().scale;
    }
    if (dictionary.subtractsBias)
    {
      inputs.rowwise() -= dictionary.decoderBias;
    }
    DoubleMatrix values(inputs.rows(), features);
    ParallelFor(blocks, threads,
      [&](std::int64_t block)
      {
        const std::int64_t begin = block * BlockFeatures;
        const std::int64_t count = std::min(BlockFeatures, features - begin);
        DoubleMatrix part = EncodeBlock(dictionary, inputs, begin, count);
        Activate(dictionary, begin, part);
        values.middleCols(begin, count) = part;
      });
    const std::int64_t count = (values.array() > 0).count();
    RequireMemory(static_cast<double>(count) * sizeof(ActiveFeature),
      "Dictionary: " + std::to_string(count) + " active features of " +
        std::to_string(inputs.rows()) + " vectors",
      "encode fewer vectors, and check that the dictionary is one of these.");
    ParallelFor(inputs.rows(), threads,
      [&](std::int64_t i)
      {
        std::vector<ActiveFeature>& active = code.active[first + i];
        active = ActiveOf(dictionary, values, i);
        Vector sum = dictionary.decoderBias;
        for (const ActiveFeature& item : active)
        {
          sum += item.value * dictionary.DirectionOf(item.feature);
        }
        code.reconstructed.row(first + i) = sum.array() * norms[i].back + norms[i].mean;
      });
  }
  progress(vectors.rows(), vectors.rows());
  return code;
}

double UnexplainedVariance(const DoubleMatrix& vectors, const DoubleMatrix& reconstructed)
{
  const double variance = (vectors.rowwise() - vectors.colwise().mean()).squaredNorm();
  return variance > 0 ? (vectors - reconstructed).squaredNorm() / variance
                      : std::numeric_limits<double>::quiet_NaN();
}

}
