#include "AttentionOnlyModel.h"

#include "Base/Error.h"
#include "Files/Safetensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

namespace atlas
{
namespace
{

constexpr std::int64_t EmbeddingDimension = 3;

/// The names of the four matrices of a head in a file, before and behind its number.
struct HeadNames
{
  std::string_view prefix;
  std::array<std::string_view, 4> suffixes; ///< query, key, value, output
};

constexpr HeadNames NativeHead = { "heads.", { ".query", ".key", ".value", ".output" } };
constexpr HeadNames StateDictHead = { "attn_seq.0.",
  { ".q_proj_weight", ".k_proj_weight", ".v_proj_weight", ".out_proj.weight" } };

/// Fetches and checks tensors; every error names the source and the tensor.
class TensorReader
{
public:
  TensorReader(const TensorViews& tensors, const std::string& source)
    : Tensors(tensors)
    , Source(source)
  {
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const
  {
    throw ModelError(this->Source, ": ", parts...);
  }

  [[noreturn]] void FailShape(
    std::string_view name, const std::string& expected, const TensorView& found) const
  {
    this->Fail(
      "tensor '", name, "': expected shape ", expected, ", found ", ToString(found.shape), ".");
  }

  bool Has(std::string_view name) const { return this->Tensors.count(name) != 0; }

  const TensorView& Get(std::string_view name) const
  {
    const auto found = this->Tensors.find(name);
    if (found == this->Tensors.end())
    {
      this->Fail("tensor '", name, "' is missing.");
    }
    return found->second;
  }

  /// A matrix whose row or column count may be free (-1); `expected` describes its shape in words.
  template<class MatrixType>
  MatrixType GetMatrix(
    std::string_view name, std::int64_t rows, std::int64_t columns, const std::string& expected)
  {
    const TensorView& view = this->Get(name);
    if (view.shape.size() != 2 || view.shape[0] < 1 || view.shape[1] < 1 ||
        (rows >= 0 && view.shape[0] != rows) || (columns >= 0 && view.shape[1] != columns))
    {
      this->FailShape(name, expected, view);
    }
    if (view.dtype == DType::F64)
    {
      this->WidestType = DType::F64;
    }
    MatrixType matrix(view.shape[0], view.shape[1]);
    for (Eigen::Index i = 0; i < matrix.size(); ++i)
    {
      const double value = view.At(static_cast<std::uint64_t>(i));
      if (!std::isfinite(value))
      {
        this->Fail("tensor '", name, "' holds ", value, " at row ", i / matrix.cols(), ", column ",
          i % matrix.cols(), "; expected finite numbers.");
      }
      matrix.data()[i] = value;
    }
    return matrix;
  }

  /// F64 if any matrix read so far is F64, else F32.
  DType GetWidestType() const { return this->WidestType; }

  const TensorViews& GetTensors() const { return this->Tensors; }

private:
  const TensorViews& Tensors;
  const std::string& Source;
  DType WidestType = DType::F32;
};

void CheckVersion(const TensorReader& reader, const Metadata& metadata)
{
  const auto format = metadata.find("format");
  const auto version = metadata.find("version");
  if (format != metadata.end() && format->second == AttentionOnlyFormat &&
      version != metadata.end() && version->second != AttentionOnlyVersion)
  {
    reader.Fail("expected version ", AttentionOnlyVersion, " of the format ", AttentionOnlyFormat,
      ", found version '", version->second, "'.");
  }
}

/// The number of heads: one more than the largest index in names such as heads.{h}.query. A gap is
/// found later as a missing tensor.
std::size_t CountHeads(const TensorReader& reader, const HeadNames& names)
{
  std::set<std::size_t> indices;
  for (const auto& [name, view] : reader.GetTensors())
  {
    if (name.compare(0, names.prefix.size(), names.prefix) == 0)
    {
      std::size_t index = 0;
      const char* begin = name.data() + names.prefix.size();
      const char* end = name.data() + name.size();
      const auto result = std::from_chars(begin, end, index);
      if (result.ec != std::errc() || result.ptr == begin || *result.ptr != '.')
      {
        reader.Fail("tensor '", name, "': expected a head's number after '", names.prefix, "'.");
      }
      const std::string_view suffix(result.ptr, end - result.ptr);
      const auto& known = names.suffixes;
      if (std::find(known.begin(), known.end(), suffix) == known.end())
      {
        reader.Fail("tensor '", name, "': expected one of '", known[0], "', '", known[1], "', '",
          known[2], "' and '", known[3], "' after the head's number, found '", suffix, "'.");
      }
      indices.insert(index);
    }
  }
  std::size_t expected = 0;
  for (const std::size_t index : indices)
  {
    if (index != expected)
    {
      reader.Fail("heads must be numbered from 0 without a gap, but head ", expected,
        " is missing while head ", index, " is there.");
    }
    ++expected;
  }
  return std::max<std::size_t>(expected, 1);
}

/// Head `h` of dimension `dimension`, or of the dimension of its query if that is -1.
AttentionHead ReadHead(
  TensorReader& reader, const HeadNames& names, std::size_t h, std::int64_t dimension)
{
  const auto nameOf = [&](std::size_t i) { return Concat(names.prefix, h, names.suffixes.at(i)); };
  const auto rows = [&](std::size_t i)
  {
    const std::string d = dimension < 0 ? "d_h" : std::to_string(dimension);
    return reader.GetMatrix<Rows3>(nameOf(i), dimension, EmbeddingDimension, "[" + d + ", 3]");
  };
  AttentionHead head;
  head.query = rows(0);
  dimension = head.query.rows();
  head.key = rows(1);
  head.value = rows(2);
  head.output = reader.GetMatrix<Columns3>(
    nameOf(3), EmbeddingDimension, dimension, Concat("[3, ", dimension, "]"));
  return head;
}

std::vector<AttentionHead> ReadNativeHeads(TensorReader& reader)
{
  const std::size_t count = CountHeads(reader, NativeHead);
  std::vector<AttentionHead> heads;
  heads.reserve(count);
  for (std::size_t h = 0; h < count; ++h)
  {
    heads.push_back(ReadHead(reader, NativeHead, h, h == 0 ? -1 : heads.front().query.rows()));
  }
  return heads;
}

/// The number of heads into which a published module is split.
int ResolveSubHeads(const TensorReader& reader, const Metadata& metadata, int subHeads)
{
  const auto entry = metadata.find("nb_head");
  if (subHeads == 1 && entry != metadata.end())
  {
    const std::string& text = entry->second;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), subHeads);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size())
    {
      reader.Fail("metadata 'nb_head': expected an integer, found '", text, "'.");
    }
  }
  if (subHeads < 1 || EmbeddingDimension % subHeads != 0)
  {
    reader.Fail(
      "the number of sub-heads must divide the embedding dimension 3, found ", subHeads, ".");
  }
  return subHeads;
}

std::vector<AttentionHead> ReadStateDictHeads(
  TensorReader& reader, const Metadata& metadata, int subHeads)
{
  for (const auto& [name, view] : reader.GetTensors())
  {
    if (name.compare(0, 9, "attn_seq.") == 0 &&
        name.compare(0, StateDictHead.prefix.size(), StateDictHead.prefix) != 0)
    {
      reader.Fail("expected one attention layer, attn_seq.0, found tensor '", name, "'.");
    }
    // For example unemb.bias, out_proj.bias, in_proj_bias, bias_k.
    if (name.find("bias") != std::string::npos)
    {
      reader.Fail("expected a model without biases, found tensor '", name, "'.");
    }
  }
  const Eigen::Index split = ResolveSubHeads(reader, metadata, subHeads);
  const Eigen::Index dimension = EmbeddingDimension / split;
  std::vector<AttentionHead> heads;
  const std::size_t count = CountHeads(reader, StateDictHead);
  for (std::size_t m = 0; m < count; ++m)
  {
    const AttentionHead module = ReadHead(reader, StateDictHead, m, EmbeddingDimension);
    for (Eigen::Index s = 0; s < split; ++s)
    {
      heads.push_back({ module.query.middleRows(s * dimension, dimension),
        module.key.middleRows(s * dimension, dimension),
        module.value.middleRows(s * dimension, dimension),
        module.output.middleCols(s * dimension, dimension) });
    }
  }
  return heads;
}

/// A tensor of this shape, whose axes are the vocabulary.
const TensorView& GetTargets(
  const TensorReader& reader, const std::string& name, const Shape& shape)
{
  const TensorView& view = reader.Get(name);
  if (view.shape != shape)
  {
    reader.FailShape(name, ToString(shape) + " (the vocabulary)", view);
  }
  return view;
}

TokenMatrix ReadNextToken(const TensorReader& reader, const std::string& name, std::int64_t n)
{
  std::vector<std::int64_t> values;
  try
  {
    values = GetTargets(reader, name, { n, n }).ToInteger();
  }
  catch (const FormatError& e)
  {
    reader.Fail("tensor '", name, "': ", e.what());
  }
  TokenMatrix matrix(n, n);
  for (Eigen::Index i = 0; i < matrix.size(); ++i)
  {
    if (values[i] < 0 || values[i] >= n)
    {
      reader.Fail("tensor '", name, "' holds ", values[i], " at row ", i / n, ", column ", i % n,
        "; expected a token from 0 to ", n - 1, ".");
    }
    matrix.data()[i] = values[i];
  }
  return matrix;
}

/// The argmax over the last axis of the distribution [N, N, N] of the next token.
TokenMatrix ReadNextTokenDistribution(
  const TensorReader& reader, const std::string& name, std::int64_t n)
{
  const std::vector<double> values = GetTargets(reader, name, { n, n, n }).ToDouble();
  TokenMatrix matrix(n, n);
  for (Eigen::Index i = 0; i < matrix.size(); ++i)
  {
    const auto begin = values.begin() + i * n;
    if (!std::all_of(begin, begin + n, [](double p) { return std::isfinite(p); }))
    {
      reader.Fail("tensor '", name, "' holds a value that is not finite at row ", i / n,
        ", column ", i % n, ".");
    }
    matrix.data()[i] = std::max_element(begin, begin + n) - begin;
  }
  return matrix;
}

}

AttentionOnlyModel MakeAttentionOnlyModel(
  const TensorViews& tensors, const Metadata& metadata, int subHeads, const std::string& source)
{
  TensorReader reader(tensors, source);
  CheckVersion(reader, metadata);
  const bool stateDict = !reader.Has("word_embedding") && reader.Has("word_emb.weight");
  if (!stateDict && !reader.Has("word_embedding"))
  {
    reader.Fail("tensor 'word_embedding' is missing (or 'word_emb.weight', as PyTorch names it); "
                "this is not an attention-only model.");
  }
  const char* const word = stateDict ? "word_emb.weight" : "word_embedding";
  const char* const position = stateDict ? "pos_emb.weight" : "position_embedding";
  const char* const unembedding = stateDict ? "unemb.weight" : "unembedding";
  const char* const target = stateDict ? "pi.2" : "next_token";

  AttentionOnlyModel model;
  model.wordEmbedding =
    reader.GetMatrix<Rows3>(word, -1, EmbeddingDimension, "[N, 3] with a vocabulary N >= 1");
  const Eigen::Index n = model.wordEmbedding.rows();
  const auto positions = reader.GetMatrix<Rows3>(position, -1, EmbeddingDimension, "[2, 3]");
  if (positions.rows() < 2)
  {
    reader.FailShape(position, "[2, 3]", reader.Get(position));
  }
  model.positionEmbedding = positions.topRows(2);
  model.unembedding = reader.GetMatrix<Rows3>(unembedding, n, EmbeddingDimension,
    ToString(Shape{ n, EmbeddingDimension }) + " (the vocabulary)");
  model.heads =
    stateDict ? ReadStateDictHeads(reader, metadata, subHeads) : ReadNativeHeads(reader);
  if (reader.Has(target))
  {
    model.nextToken =
      stateDict ? ReadNextTokenDistribution(reader, target, n) : ReadNextToken(reader, target, n);
  }
  model.precision = reader.GetWidestType();
  model.metadata = metadata;
  // The names of tensors and the splitting of modules belong to the file, not to the model.
  for (const char* key : { "format", "version", "nb_head" })
  {
    model.metadata.erase(key);
  }
  return model;
}

Tensors MakeTensors(const AttentionOnlyModel& model)
{
  Tensors tensors;
  const auto add = [&](const std::string& name, const auto& matrix)
  {
    tensors[name] = Tensor::FromDouble(model.precision, { matrix.rows(), matrix.cols() },
      std::vector<double>(matrix.data(), matrix.data() + matrix.size()));
  };
  add("word_embedding", model.wordEmbedding);
  add("position_embedding", model.positionEmbedding);
  add("unembedding", model.unembedding);
  for (std::size_t h = 0; h < model.heads.size(); ++h)
  {
    const std::string prefix = "heads." + std::to_string(h);
    add(prefix + ".query", model.heads[h].query);
    add(prefix + ".key", model.heads[h].key);
    add(prefix + ".value", model.heads[h].value);
    add(prefix + ".output", model.heads[h].output);
  }
  if (model.HasTargets())
  {
    const TokenMatrix& next = model.nextToken;
    tensors["next_token"] = Tensor::FromInteger({ next.rows(), next.cols() },
      std::vector<std::int64_t>(next.data(), next.data() + next.size()));
  }
  return tensors;
}

AttentionOnlyModel ReadAttentionOnlyModel(const std::filesystem::path& path, int subHeads)
{
  const SafetensorsFile file(path);
  return ReadIntact(file,
    [&]
    {
      return MakeAttentionOnlyModel(file.GetTensors(), file.GetMetadata(), subHeads, path.string());
    });
}

void WriteAttentionOnlyModel(const std::filesystem::path& path, const AttentionOnlyModel& model)
{
  Metadata metadata = model.metadata;
  metadata["format"] = AttentionOnlyFormat;
  metadata["version"] = AttentionOnlyVersion;
  WriteSafetensors(path, MakeTensors(model), metadata);
}

}
