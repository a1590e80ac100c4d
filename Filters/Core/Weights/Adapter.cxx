#include "Adapter.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Joined.h"
#include "Base/Parallel.h"
#include "Base/SystemLimits.h"
#include "Base/TextEnds.h"
#include "Files/MappedFile.h"
#include "Internal/AdapterConfig.h"
#include "Internal/TensorNames.h"
#include "Transformer.h"
#include "TransformerWeights.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include <Eigen/Core>

namespace atlas
{
namespace
{

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Whether a folder has settings and weights of a model.
bool HasModel(const std::filesystem::path& folder)
{
  constexpr std::array<const char*, 4> weights = { WeightsFile, ShardIndexFile, TorchWeightsFile,
    TorchShardIndexFile };
  return FileExists(folder / ConfigFile) &&
         std::any_of(weights.begin(), weights.end(),
           [&](const char* name) { return FileExists(folder / name); });
}

/// The weights of the adapter in a folder; empty if there are none.
std::filesystem::path AdapterWeights(const std::filesystem::path& folder)
{
  const auto* found = std::find_if(AdapterWeightsFiles.begin(), AdapterWeightsFiles.end(),
    [&](const char* name) { return FileExists(folder / name); });
  return found == AdapterWeightsFiles.end() ? std::filesystem::path() : folder / *found;
}

/// As transformers does, the model that the settings name comes first.
std::filesystem::path FindBase(const std::filesystem::path& folder, const std::string& named)
{
  std::filesystem::path base = folder / named; // `named` itself if it is absolute
  std::error_code ignored;
  if (named.empty() || !HasModel(base) || std::filesystem::equivalent(base, folder, ignored))
  {
    if (!HasModel(folder))
    {
      throw FileError((folder / AdapterConfigFile).string(),
        ": expected the model that the adapter changes, ",
        named.empty() ? "which it does not name" : "'" + named.substr(0, 200) + "'",
        ", found none. Copy its config.json, weights and tokenizer beside the adapter, or give the "
        "path of its folder as base_model_name_or_path.");
    }
    return folder;
  }
  if (FileExists(base / AdapterConfigFile))
  {
    throw FileError((folder / AdapterConfigFile).string(), ": expected the model '",
      named.substr(0, 200), "' without an adapter of its own, found one.");
  }
  return base;
}

/// The tensors of a module that is changed.
struct ModuleTensors
{
  TensorView a;
  TensorView b;
  TensorView bias;
  TensorView embeddingA; ///< [r, tokens]
  TensorView embeddingB; ///< [components, r]
  TensorView magnitude;
  TensorView tokens;
};

struct TensorEnding
{
  std::string_view name;
  TensorView ModuleTensors::* tensor;
};
constexpr std::array<TensorEnding, 8> Endings = { {
  { ".lora_A.weight", &ModuleTensors::a },
  { ".lora_B.weight", &ModuleTensors::b },
  { ".lora_B.bias", &ModuleTensors::bias },
  { ".lora_embedding_A", &ModuleTensors::embeddingA },
  { ".lora_embedding_B", &ModuleTensors::embeddingB },
  { ".lora_magnitude_vector", &ModuleTensors::magnitude },
  { ".lora_magnitude_vector.weight", &ModuleTensors::magnitude },
  { ".token_adapter.trainable_tokens_delta", &ModuleTensors::tokens },
} };

/// What is before the names of modules in the files of adapters.
constexpr std::string_view ModelPrefix = "base_model.model.";

/// The name of the module of a tensor "module.weight".
std::string ModuleOf(const std::string& tensor)
{
  return tensor.substr(0, std::min(tensor.rfind('.'), tensor.size()));
}

/// Rows of a tensor of which the further axes count as one.
Matrix RowsAsDouble(const TensorView& view, std::int64_t first, std::int64_t count)
{
  const auto columns = static_cast<std::int64_t>(view.Count()) / view.shape.front();
  Matrix rows(count, columns);
  const std::uint64_t begin = ToIndex(first * columns);
  if (view.dtype == DType::F64)
  {
    std::generate_n(rows.data(), rows.size(), [&, i = begin]() mutable { return view.At(i++); });
    return rows;
  }
  std::vector<float> values(ToIndex(rows.size()));
  view.ToFloat(begin, begin + values.size(), values.data());
  std::copy(values.begin(), values.end(), rows.data());
  return rows;
}

Matrix AsDouble(const TensorView& view)
{
  return RowsAsDouble(view, 0, view.shape.front());
}

/// W + factors: left times right, the former [rows, r]. Its rows or its columns are given lengths,
/// if there are any.
struct Update
{
  Matrix left;
  Matrix right;
  std::vector<double> lengths;
  bool byColumn = false;
};

/// The type that a changed tensor is stored as.
DType StoredType(const TensorView& view)
{
  return view.dtype == DType::F64 ? DType::F64 : DType::F32;
}

/// The sum of a tensor and an update, computed in blocks of rows.
Tensor SumOf(const TensorView& base, const Update& update)
{
  constexpr std::int64_t blockRows = 64;
  const std::int64_t rows = base.shape.front();
  const std::int64_t columns = update.right.cols();
  const std::int64_t blocks = (rows + blockRows - 1) / blockRows;
  const auto blockOf = [&](std::int64_t block)
  {
    const std::int64_t first = block * blockRows;
    const std::int64_t count = std::min(blockRows, rows - first);
    Matrix values = RowsAsDouble(base, first, count);
    values.noalias() += update.left.middleRows(first, count) * update.right;
    return values;
  };
  const bool hasLengths = !update.lengths.empty();
  Eigen::ArrayXd factors; // of columns whose lengths are given
  if (hasLengths && update.byColumn)
  {
    Matrix squares(blocks, columns);
    ParallelFor(blocks, 0,
      [&](std::int64_t block) { squares.row(block) = blockOf(block).colwise().squaredNorm(); });
    const Eigen::Map<const Eigen::ArrayXd> lengths(update.lengths.data(), columns);
    factors = lengths / squares.colwise().sum().transpose().array().sqrt();
  }
  Tensor sum = { StoredType(base), base.shape, {} };
  sum.bytes.resize(ToIndex(rows * columns) * ByteSize(sum.dtype));
  ParallelFor(blocks, 0,
    [&](std::int64_t block)
    {
      Matrix values = blockOf(block);
      const std::int64_t first = block * blockRows;
      if (factors.size() != 0)
      {
        values.array().rowwise() *= factors.transpose();
      }
      for (std::int64_t i = 0; hasLengths && !update.byColumn && i < values.rows(); ++i)
      {
        values.row(i) *= update.lengths[ToIndex(first + i)] / values.row(i).norm();
      }
      ThrowIf<ModelError>(!values.allFinite(), "expected finite numbers, found others.");
      std::byte* place = sum.bytes.data() + ToIndex(first * columns) * ByteSize(sum.dtype);
      if (sum.dtype == DType::F64)
      {
        std::memcpy(place, values.data(), ToIndex(values.size()) * sizeof(double));
        return;
      }
      const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> floats =
        values.cast<float>();
      std::memcpy(place, floats.data(), ToIndex(floats.size()) * sizeof(float));
    });
  return sum;
}

/// Changes the weights of a model.
class AdaptedModel
{
public:
  AdaptedModel(const AdapterConfig& settings, const WeightFiles& adapter, const WeightFiles& base,
    TransformerConfig& config)
    : Settings(settings)
    , Adapter(adapter)
    , Config(config)
    , Result(base)
    , Tokens(FindTokenTensors(config, base))
  {
    for (const auto& [name, view] : base.GetTensors())
    {
      const auto [known, isNew] = this->Names.emplace(BareName(name, config), name);
      known->second = isNew ? name : ""; // ambiguous
    }
  }

  WeightFiles Apply()
  {
    this->Sort();
    for (const auto& [name, view] : this->Whole)
    {
      this->Replace(name, view);
    }
    this->CountTokens();
    this->Before = this->Result.GetTensors();
    this->RequireRoom();
    for (const auto& [module, tensors] : this->Modules)
    {
      this->Change(module, tensors);
    }
    this->Result.Keep(this->Adapter);
    return std::move(this->Result);
  }

private:
  const AdapterConfig& Settings;
  const WeightFiles& Adapter;
  TransformerConfig& Config;
  WeightFiles Result;
  TokenTensors Tokens;
  std::map<std::string, std::string> Names; ///< in the base, by BareName
  std::map<std::string, ModuleTensors> Modules;
  std::map<std::string, TensorView> Whole; ///< those that replace others
  TensorViews Before;                      ///< the modules' weights before they are changed

  const std::string& Origin() const { return this->Adapter.FileOf(""); }

  template<class... Parts>
  [[noreturn]] void Fail(const std::string& name, const Parts&... message) const
  {
    throw ModelError(this->Origin(), ": ", name, ": ", message...);
  }

  template<class... Parts>
  void FailIf(bool condition, const std::string& name, const Parts&... message) const
  {
    if (condition)
    {
      this->Fail(name, message...);
    }
  }

  /// A module in messages.
  static std::string Module(const std::string& name) { return "module '" + name + "'"; }

  /// Finds out what each tensor of the adapter is.
  void Sort()
  {
    for (const auto& [whole, view] : this->Adapter.GetTensors())
    {
      const std::string tensor = "tensor '" + whole + "'";
      this->FailIf(!IsFloating(view.dtype) || view.Count() == 0, tensor,
        "expected numbers of F32, F16, BF16 or F64, found ", Name(view.dtype), " of shape ",
        ToString(view.shape), ".");
      const bool hasPrefix = BeginsWith(whole, ModelPrefix);
      std::string name = whole.substr(hasPrefix ? ModelPrefix.size() : 0);
      const auto* ending = std::find_if(Endings.begin(), Endings.end(),
        [&](const TensorEnding& end) { return EndsWith(name, end.name); });
      if (ending != Endings.end())
      {
        const std::string module = name.substr(0, name.size() - ending->name.size());
        this->Modules[module].*ending->tensor = view;
        continue;
      }
      this->FailIf(name.find("lora_") != std::string::npos, tensor,
        "expected a part of LoRA or DoRA, found one of another kind.");
      // The base of a module that is changed besides.
      const std::string within = ".base_layer";
      const std::string module = ModuleOf(name);
      if (EndsWith(module, within))
      {
        name.erase(module.size() - within.size(), within.size());
      }
      this->FailIf(!this->Whole.emplace(name, view).second, tensor,
        "expected each tensor once, found another of the same module.");
    }
    ThrowIf<ModelError>(this->Modules.empty() && this->Whole.empty(), this->Origin(),
      ": expected the tensors of an adapter, found none.");
  }

  /// What a tensor is called in the base; empty if the base has none.
  std::string NameInBase(const std::string& name) const
  {
    const bool isThere = this->Result.GetTensors().count(name) != 0;
    const std::string bare = BareName(name, this->Config);
    const auto found = this->Names.find(bare);
    const std::string known = found == this->Names.end() ? std::string() : found->second;
    for (const std::string& tied : { this->Tokens.embedding, this->Tokens.unembedding })
    {
      if (known.empty() && this->Tokens.areTied && bare == BareName(tied, this->Config))
      {
        return tied;
      }
    }
    return isThere ? name : known;
  }

  /// The other one of two tied tensors; empty if a tensor is none of them.
  std::string Partner(const std::string& name) const
  {
    const TokenTensors& tokens = this->Tokens;
    return !tokens.areTied              ? std::string()
           : name == tokens.embedding   ? tokens.unembedding
           : name == tokens.unembedding ? tokens.embedding
                                        : std::string();
  }

  /// A tensor, or the one that it is tied to.
  TensorView Find(const TensorViews& tensors, const std::string& name) const
  {
    const auto own = tensors.find(name);
    const auto found = own == tensors.end() ? tensors.find(this->Partner(name)) : own;
    return found == tensors.end() ? TensorView() : found->second;
  }

  /// Before one of two tied tensors is changed: the other one stays as it is, or is left to follow.
  void PrepareTie(const std::string& name, bool follows)
  {
    const std::string partner = this->Partner(name);
    const TensorViews& tensors = this->Result.GetTensors();
    const auto own = tensors.find(name);
    if (!partner.empty() && !follows && own != tensors.end() && tensors.count(partner) == 0)
    {
      this->Result.Set(partner, TensorView(own->second), std::string(this->Result.FileOf(name)));
    }
  }

  /// After it is changed: the other one follows if it is in the files.
  void FinishTie(const std::string& name, bool follows)
  {
    const std::string partner = this->Partner(name);
    const TensorViews& tensors = this->Result.GetTensors();
    if (!partner.empty() && follows && tensors.count(partner) != 0)
    {
      this->Result.Set(partner, tensors.at(name), this->Origin());
    }
  }

  void RefuseShared(const std::string& name) const
  {
    const std::string shared = "," + NamesFor(this->Config).sharedTokens + ",";
    this->FailIf(shared.find("," + BareName(name, this->Config) + ",") != std::string::npos,
      "'" + name + "'",
      "expected modules of layers, found the embedding that encoder and decoder share, which is "
      "not changed.");
  }

  /// Puts a tensor in the place of the base's.
  void Replace(const std::string& name, const TensorView& view)
  {
    this->RefuseShared(name);
    const bool isSaved = this->Settings.IsSaved(ModuleOf(name));
    const std::string known = this->NameInBase(name);
    const bool isHead = IsHead(std::string_view(name).substr(0, name.find('.')));
    this->FailIf(known.empty() && !isSaved && !isHead, "tensor '" + name + "'",
      "expected one of the model's, which has none like it.");
    const bool follows = !isSaved || this->Settings.keepsTies;
    if (!known.empty())
    {
      this->PrepareTie(known, follows);
    }
    this->Result.Set(known.empty() ? name : known, view, this->Origin());
    if (!known.empty())
    {
      this->FinishTie(known, follows && this->Whole.count(this->Partner(known)) == 0);
    }
  }

  /// An embedding that was stored as a whole may have more tokens.
  void CountTokens()
  {
    const auto rowsOf = [&](const std::string& name, std::int64_t& rows)
    {
      const TensorView view = this->Find(this->Result.GetTensors(), name);
      const bool isNew = view.data != nullptr && view.shape.size() == 2 && rows > 0 &&
                         std::any_of(this->Whole.begin(), this->Whole.end(),
                           [&](const auto& own) { return own.second.data == view.data; });
      rows = isNew ? view.shape.front() : rows;
    };
    rowsOf(this->Tokens.embedding, this->Config.vocabulary);
    rowsOf(this->Tokens.unembedding, this->Config.outputVocabulary);
  }

  /// The weight of a module before it is changed, and its name in the base.
  std::pair<std::string, TensorView> WeightOf(const std::string& module) const
  {
    const std::string name = this->NameInBase(module + ".weight");
    const TensorView view = this->Find(this->Before, name);
    this->FailIf(view.data == nullptr, Module(module),
      "expected one of the model's, which has no such module, or not its weight alone.");
    this->FailIf(view.shape.size() < 2 || view.shape.front() == 0 || !IsFloating(view.dtype),
      Module(module), "expected a matrix in the model, found a tensor of shape ",
      ToString(view.shape), ".");
    return { name, view };
  }

  void RequireRoom() const
  {
    double bytes = 0;
    for (const auto& [module, tensors] : this->Modules)
    {
      bytes += static_cast<double>(this->WeightOf(module).second.Count()) * sizeof(float);
    }
    RequireMemory(bytes, "the weights that the adapter " + this->Origin() + " changes",
      "close other models, or open the file with the weights of the base alone.");
  }

  /// Checks the shape of a tensor of a module.
  void RequireShape(
    const std::string& module, const char* part, const TensorView& view, const Shape& shape) const
  {
    this->FailIf(view.data == nullptr, Module(module), "expected ", part, ", found none.");
    this->FailIf(view.shape != shape, Module(module), part, ": expected the shape ",
      ToString(shape), ", found ", ToString(view.shape), ".");
  }

  /// Whether a weight is stored as [inputs, outputs].
  bool IsTransposed(const std::string& name) const
  {
    const TensorNames& names = NamesFor(this->Config);
    const std::string bare = BareName(name, this->Config);
    return names.layout == WeightLayout::InputOutput && BeginsWith(bare, names.layers);
  }

  void Change(const std::string& module, const ModuleTensors& tensors)
  {
    const auto [name, base] = this->WeightOf(module);
    this->RefuseShared(module + ".weight");
    const bool isEmbedding =
      tensors.embeddingA.data != nullptr || tensors.embeddingB.data != nullptr;
    const bool hasMatrices = isEmbedding || tensors.a.data != nullptr || tensors.b.data != nullptr;
    if (tensors.tokens.data != nullptr)
    {
      this->FailIf(hasMatrices, Module(module), "expected matrices or rows of tokens, found both.");
      this->SetTokens(module, name, base, tensors.tokens);
      return;
    }
    const bool isTied = this->Settings.keepsTies && name == this->Tokens.unembedding;
    this->FailIf(!this->Settings.Targets(module) && !isTied, Module(module),
      "expected one that adapter_config.json names, found another.");
    const Update update = isEmbedding ? this->EmbeddingUpdate(module, base, tensors)
                                      : this->MatrixUpdate(module, name, base, tensors);
    this->Store(name, this->Sum(module, base, update), this->Settings.keepsTies);
    this->AddBias(module, tensors);
  }

  Tensor Sum(const std::string& module, const TensorView& base, const Update& update) const
  {
    try
    {
      return SumOf(base, update);
    }
    catch (const ModelError& error)
    {
      this->Fail(Module(module), error.what());
    }
  }

  void Store(const std::string& name, Tensor tensor, bool follows)
  {
    this->PrepareTie(name, follows);
    this->Result.Set(name, std::move(tensor), this->Origin());
    this->FinishTie(name, follows);
  }

  /// The lengths that DoRA gives to `count` rows or columns; none for LoRA.
  std::vector<double> LengthsOf(
    const std::string& module, const TensorView& magnitude, std::int64_t count) const
  {
    const bool isDora = this->Settings.isDora;
    const std::uint64_t found = magnitude.data == nullptr ? 0 : magnitude.Count();
    this->FailIf(isDora && found != ToIndex(count), Module(module),
      "expected a lora_magnitude_vector of ", count, " numbers, found ", found, ".");
    this->FailIf(!isDora && magnitude.data != nullptr, Module(module),
      "found a lora_magnitude_vector, expected none without use_dora.");
    return isDora ? magnitude.ToDouble() : std::vector<double>();
  }

  Update MatrixUpdate(const std::string& module, const std::string& name, const TensorView& base,
    const ModuleTensors& tensors) const
  {
    const bool isTransposed = this->IsTransposed(name);
    const std::int64_t r = this->Settings.RankOf(module);
    const std::int64_t outputs = base.shape[isTransposed ? 1 : 0];
    Shape a = base.shape;
    a.erase(a.begin() + (isTransposed ? 1 : 0));
    a.insert(a.begin(), r);
    Shape b(base.shape.size(), 1); // those of convolutions have more axes
    b[0] = outputs;
    b[1] = r;
    this->RequireShape(module, "lora_A.weight", tensors.a, a);
    this->RequireShape(module, "lora_B.weight", tensors.b, b);
    const Matrix inputs = AsDouble(tensors.a);
    const Matrix scaled = this->Settings.ScalingOf(module) * AsDouble(tensors.b);
    Update update;
    update.left = isTransposed ? Matrix(inputs.transpose()) : scaled;
    update.right = isTransposed ? Matrix(scaled.transpose()) : inputs;
    update.lengths = this->LengthsOf(module, tensors.magnitude, outputs);
    update.byColumn = isTransposed;
    return update;
  }

  Update EmbeddingUpdate(
    const std::string& module, const TensorView& base, const ModuleTensors& tensors) const
  {
    const std::int64_t r = this->Settings.RankOf(module);
    this->FailIf(base.shape.size() != 2, Module(module),
      "expected an embedding in the model, found a tensor of shape ", ToString(base.shape), ".");
    this->RequireShape(module, "lora_embedding_A", tensors.embeddingA, { r, base.shape[0] });
    this->RequireShape(module, "lora_embedding_B", tensors.embeddingB, { base.shape[1], r });
    Update update;
    update.left = this->Settings.ScalingOf(module) * AsDouble(tensors.embeddingA).transpose();
    update.right = AsDouble(tensors.embeddingB).transpose();
    update.lengths = this->LengthsOf(module, tensors.magnitude, base.shape[1]);
    update.byColumn = true;
    return update;
  }

  /// The bias of B is multiplied like B.
  void AddBias(const std::string& module, const ModuleTensors& tensors)
  {
    this->FailIf(this->Settings.hasBias != (tensors.bias.data != nullptr), Module(module),
      "expected a bias of lora_B with lora_bias alone.");
    if (tensors.bias.data == nullptr)
    {
      return;
    }
    const std::string name = this->NameInBase(module + ".bias");
    const auto found = this->Before.find(name);
    this->FailIf(found == this->Before.end(), Module(module),
      "expected a bias in the model, to which that of lora_B is added, found none.");
    this->RequireShape(module, "lora_B.bias", tensors.bias, found->second.shape);
    std::vector<double> sum = found->second.ToDouble();
    const std::vector<double> more = tensors.bias.ToDouble();
    const double scaling = this->Settings.ScalingOf(module);
    std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(),
      [scaling](double value, double added) { return value + scaling * added; });
    this->Result.Set(name, Tensor::FromDouble(StoredType(found->second), found->second.shape, sum),
      this->Origin());
  }

  /// Replaces rows of an embedding. What is tied to it follows unless it has rows of its own.
  void SetTokens(const std::string& module, const std::string& name, const TensorView& base,
    const TensorView& rows)
  {
    const std::vector<std::int64_t> tokens = this->Settings.TokensOf(module);
    this->RequireShape(module, "trainable_tokens_delta", rows,
      { static_cast<std::int64_t>(tokens.size()), base.shape[1] });
    Matrix all = AsDouble(base);
    const Matrix changed = AsDouble(rows);
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      this->FailIf(tokens[i] >= all.rows(), Module(module),
        "'trainable_token_indices': expected tokens below ", all.rows(), ", found ", tokens[i],
        ".");
      all.row(tokens[i]) = changed.row(static_cast<Eigen::Index>(i));
    }
    const auto hasRows = [](const auto& entry) { return entry.second.tokens.data != nullptr; };
    const bool follows = std::count_if(this->Modules.begin(), this->Modules.end(), hasRows) == 1;
    this->Store(name,
      Tensor::FromDouble(StoredType(base), base.shape, { all.data(), all.data() + all.size() }),
      follows);
  }
};

}

std::optional<AdapterPlace> FindAdapter(const std::filesystem::path& path)
{
  const std::filesystem::path folder = ModelFolder(path);
  const std::filesystem::path name = path.filename();
  const std::filesystem::path weights = AdapterWeights(folder);
  const bool isAdapter = name == AdapterConfigFile ||
                         std::find(AdapterWeightsFiles.begin(), AdapterWeightsFiles.end(), name) !=
                           AdapterWeightsFiles.end();
  const bool hasSettings = FileExists(folder / AdapterConfigFile);
  if ((folder != path && name != ConfigFile && !isAdapter) ||
      (!isAdapter && !hasSettings && weights.empty()))
  {
    return std::nullopt;
  }
  if (!hasSettings || weights.empty())
  {
    throw FileError(folder.string(), ": expected an adapter in ", AdapterConfigFile, " and ",
      Joined(
        AdapterWeightsFiles, [](const char* one) { return one; }, " or "),
      ", found ",
      hasSettings        ? "the settings alone."
      : !weights.empty() ? "the weights alone."
                         : "neither.");
  }
  const AdapterConfig settings(folder / AdapterConfigFile);
  return AdapterPlace{ folder, FindBase(folder, settings.base) };
}

WeightFiles ApplyAdapter(
  const AdapterPlace& adapter, const WeightFiles& base, TransformerConfig& config)
{
  const AdapterConfig settings(adapter.folder / AdapterConfigFile);
  const WeightFiles weights = WeightFiles::Read(AdapterWeights(adapter.folder));
  WeightFiles adapted = AdaptedModel(settings, weights, base, config).Apply();
  weights.RequireIntact();
  base.RequireIntact();
  return adapted;
}

}
