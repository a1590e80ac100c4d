#include "AttentionOnlyModel.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "Oracle.h"
#include "TemporaryDirectory.h"

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr std::int64_t N = 5;
constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double Infinity = std::numeric_limits<double>::infinity();

/// first, first + 1, first + 2, ... in this shape: no two tensors of a model hold the same numbers.
Tensor Counting(double first, const Shape& shape, DType dtype = DType::F32)
{
  std::vector<double> values(ElementCount(shape).value());
  std::iota(values.begin(), values.end(), first);
  return Tensor::FromDouble(dtype, shape, values);
}

/// A model of 5 tokens and 2 heads of dimension 2 in native naming.
Tensors NativeTensors(DType dtype = DType::F32)
{
  Tensors tensors;
  tensors["word_embedding"] = Counting(0, { N, 3 }, dtype);
  tensors["position_embedding"] = Counting(100, { 2, 3 }, dtype);
  tensors["unembedding"] = Counting(200, { N, 3 }, dtype);
  for (int h = 0; h < 2; ++h)
  {
    const std::string head = "heads." + std::to_string(h);
    tensors[head + ".query"] = Counting(1000 + 100 * h, { 2, 3 }, dtype);
    tensors[head + ".key"] = Counting(2000 + 100 * h, { 2, 3 }, dtype);
    tensors[head + ".value"] = Counting(3000 + 100 * h, { 2, 3 }, dtype);
    tensors[head + ".output"] = Counting(4000 + 100 * h, { 3, 2 }, dtype);
  }
  std::vector<std::int64_t> next(N * N);
  for (std::size_t i = 0; i < next.size(); ++i)
  {
    next[i] = static_cast<std::int64_t>(i * 7 % N);
  }
  tensors["next_token"] = Tensor::FromInteger({ N, N }, next);
  return tensors;
}

/// A model of 5 tokens and 2 modules as PyTorch names it. The next token of (t1, t2) is
/// (t1 + 2 t2) mod 5.
Tensors StateDictTensors()
{
  Tensors tensors;
  tensors["word_emb.weight"] = Counting(0, { N, 3 });
  tensors["pos_emb.weight"] = Counting(100, { 3, 3 });
  tensors["unemb.weight"] = Counting(200, { N, 3 });
  for (int m = 0; m < 2; ++m)
  {
    const std::string module = "attn_seq.0." + std::to_string(m);
    tensors[module + ".q_proj_weight"] = Counting(1000 + 100 * m, { 3, 3 });
    tensors[module + ".k_proj_weight"] = Counting(2000 + 100 * m, { 3, 3 });
    tensors[module + ".v_proj_weight"] = Counting(3000 + 100 * m, { 3, 3 });
    tensors[module + ".out_proj.weight"] = Counting(4000 + 100 * m, { 3, 3 });
  }
  std::vector<double> distribution;
  for (std::int64_t i = 0; i < N * N * N; ++i)
  {
    const std::int64_t target = (i / (N * N) + 2 * (i / N % N)) % N;
    distribution.push_back(i % N == target ? 0.6 : 0.1);
  }
  tensors["pi.2"] = Tensor::FromDouble(DType::F32, { N, N, N }, distribution);
  return tensors;
}

AttentionOnlyModel Make(const Tensors& tensors, const Metadata& metadata = {}, int subHeads = 1)
{
  TensorViews views;
  for (const auto& [name, tensor] : tensors)
  {
    views[name] = tensor.View();
  }
  return MakeAttentionOnlyModel(views, metadata, subHeads, "some model");
}

std::string Refusal(const Tensors& tensors, const Metadata& metadata = {}, int subHeads = 1)
{
  const std::string message = MessageOf<ModelError>([&] { Make(tensors, metadata, subHeads); });
  EXPECT_THAT(message, StartsWith("some model: "));
  return message;
}

template<class Matrix>
bool IsSame(const Matrix& a, const Matrix& b)
{
  return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
}

void ExpectSame(const AttentionOnlyModel& found, const AttentionOnlyModel& expected)
{
  EXPECT_TRUE(IsSame(found.wordEmbedding, expected.wordEmbedding));
  EXPECT_TRUE(IsSame(found.positionEmbedding, expected.positionEmbedding));
  EXPECT_TRUE(IsSame(found.unembedding, expected.unembedding));
  EXPECT_TRUE(IsSame(found.nextToken, expected.nextToken));
  ASSERT_EQ(found.HeadCount(), expected.HeadCount());
  for (std::size_t h = 0; h < found.HeadCount(); ++h)
  {
    EXPECT_TRUE(IsSame(found.heads[h].query, expected.heads[h].query)) << h;
    EXPECT_TRUE(IsSame(found.heads[h].key, expected.heads[h].key)) << h;
    EXPECT_TRUE(IsSame(found.heads[h].value, expected.heads[h].value)) << h;
    EXPECT_TRUE(IsSame(found.heads[h].output, expected.heads[h].output)) << h;
  }
}

/// Whether the matrix holds first, first + step, ... by rows.
template<class Matrix>
bool Counts(const Matrix& matrix, double first, double rowStep, double columnStep)
{
  bool counts = true;
  for (Eigen::Index row = 0; row < matrix.rows(); ++row)
  {
    for (Eigen::Index column = 0; column < matrix.cols(); ++column)
    {
      counts = counts && matrix(row, column) == first + static_cast<double>(row) * rowStep +
                                                  static_cast<double>(column) * columnStep;
    }
  }
  return counts;
}

TEST(NativeModel, EveryTensorHasItsPlace)
{
  const AttentionOnlyModel model = Make(NativeTensors());
  EXPECT_EQ(model.VocabularySize(), N);
  EXPECT_EQ(model.HeadCount(), 2U);
  EXPECT_EQ(model.HeadDimension(), 2);
  EXPECT_TRUE(Counts(model.wordEmbedding, 0, 3, 1));
  EXPECT_TRUE(Counts(model.positionEmbedding, 100, 3, 1));
  EXPECT_TRUE(Counts(model.unembedding, 200, 3, 1));
  for (std::size_t h = 0; h < 2; ++h)
  {
    const double first = 100 * static_cast<double>(h);
    EXPECT_TRUE(Counts(model.heads[h].query, 1000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].key, 2000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].value, 3000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].output, 4000 + first, 2, 1));
  }
}

TEST(NativeModel, NextTokenIsByRows)
{
  const AttentionOnlyModel model = Make(NativeTensors());
  ASSERT_TRUE(model.HasTargets());
  EXPECT_EQ(model.nextToken(0, 1), 2); // 7 mod 5
  EXPECT_EQ(model.nextToken(2, 3), 1); // 13 * 7 = 91
}

TEST(NativeModel, NextTokenIsOptional)
{
  Tensors tensors = NativeTensors();
  tensors.erase("next_token");
  EXPECT_FALSE(Make(tensors).HasTargets());
}

TEST(NativeModel, NextTokenMayBeAnyInteger)
{
  Tensors tensors = NativeTensors();
  tensors["next_token"] = { DType::U8, { N, N }, std::vector<std::byte>(N * N, std::byte{ 4 }) };
  EXPECT_TRUE((Make(tensors).nextToken.array() == 4).all());
  tensors["next_token"] = { DType::I32, { N, N }, std::vector<std::byte>(4 * N * N) };
  EXPECT_TRUE((Make(tensors).nextToken.array() == 0).all());
}

TEST(NativeModel, PositionsBeyondTheSecondOtherTensorsAndSubHeadsAreIgnored)
{
  Tensors tensors = NativeTensors();
  tensors["position_embedding"] = Counting(100, { 3, 3 });
  ExpectSame(Make(tensors), Make(NativeTensors()));
  tensors["comment"] = Counting(0, { 7 });
  ExpectSame(Make(tensors), Make(NativeTensors()));
  ExpectSame(Make(NativeTensors(), {}, 3), Make(NativeTensors()));
}

TEST(NativeModel, PrecisionIsTheWidest)
{
  EXPECT_EQ(Make(NativeTensors(DType::F32)).precision, DType::F32);
  EXPECT_EQ(Make(NativeTensors(DType::F64)).precision, DType::F64);
  Tensors mixed = NativeTensors(DType::F32);
  mixed["heads.1.output"] = Counting(0, { 3, 2 }, DType::F64);
  EXPECT_EQ(Make(mixed).precision, DType::F64);
  Tensors half = NativeTensors(DType::F32);
  half["position_embedding"] = { DType::F16, { 2, 3 }, std::vector<std::byte>(12) };
  EXPECT_EQ(Make(half).precision, DType::F32);
}

TEST(NativeModel, MetadataIsKeptButForTheFormat)
{
  const Metadata metadata = { { "format", AttentionOnlyFormat }, { "version", "1" },
    { "nb_head", "1" }, { "source", "a test" } };
  EXPECT_EQ(Make(NativeTensors(), metadata).metadata, (Metadata{ { "source", "a test" } }));
}

TEST(StateDictModel, EveryTensorHasItsPlace)
{
  const AttentionOnlyModel model = Make(StateDictTensors());
  EXPECT_EQ(model.VocabularySize(), N);
  EXPECT_EQ(model.HeadCount(), 2U);
  EXPECT_EQ(model.HeadDimension(), 3);
  EXPECT_TRUE(Counts(model.wordEmbedding, 0, 3, 1));
  EXPECT_EQ(model.positionEmbedding.rows(), 2);
  EXPECT_TRUE(Counts(model.positionEmbedding, 100, 3, 1));
  EXPECT_TRUE(Counts(model.unembedding, 200, 3, 1));
  EXPECT_TRUE(Counts(model.heads[1].query, 1100, 3, 1));
  EXPECT_TRUE(Counts(model.heads[1].key, 2100, 3, 1));
  EXPECT_TRUE(Counts(model.heads[1].value, 3100, 3, 1));
  EXPECT_TRUE(Counts(model.heads[1].output, 4100, 3, 1));
}

TEST(StateDictModel, NextTokenIsTheMostProbable)
{
  const AttentionOnlyModel model = Make(StateDictTensors());
  ASSERT_TRUE(model.HasTargets());
  for (std::int64_t t1 = 0; t1 < N; ++t1)
  {
    for (std::int64_t t2 = 0; t2 < N; ++t2)
    {
      EXPECT_EQ(model.nextToken(t1, t2), (t1 + 2 * t2) % N);
    }
  }
}

TEST(StateDictModel, NextTokenIsOptional)
{
  Tensors tensors = StateDictTensors();
  tensors.erase("pi.2");
  EXPECT_FALSE(Make(tensors).HasTargets());
}

/// Each module split in 3: head 3 m + s has row s of Q, K, V and column s of O.
void ExpectThreeSubHeads(const AttentionOnlyModel& model)
{
  ASSERT_EQ(model.HeadCount(), 6U);
  EXPECT_EQ(model.HeadDimension(), 1);
  for (std::size_t h = 0; h < 6; ++h)
  {
    const AttentionHead& head = model.heads[h];
    const double module = h < 3 ? 0 : 100;
    const auto s = static_cast<double>(h % 3);
    EXPECT_EQ(head.query.rows(), 1);
    EXPECT_TRUE(Counts(head.query, 1000 + module + 3 * s, 0, 1));
    EXPECT_TRUE(Counts(head.key, 2000 + module + 3 * s, 0, 1));
    EXPECT_TRUE(Counts(head.value, 3000 + module + 3 * s, 0, 1));
    EXPECT_EQ(head.output.cols(), 1);
    EXPECT_TRUE(Counts(head.output, 4000 + module + s, 3, 0));
  }
}

TEST(SubHeads, SplitModulesAndOverrideTheMetadata)
{
  ExpectThreeSubHeads(Make(StateDictTensors(), {}, 3));
  ExpectThreeSubHeads(Make(StateDictTensors(), { { "nb_head", "1" } }, 3));
}

TEST(SubHeads, AreTakenFromTheMetadata)
{
  const AttentionOnlyModel model = Make(StateDictTensors(), { { "nb_head", "3" } });
  ExpectThreeSubHeads(model);
  EXPECT_EQ(model.metadata.count("nb_head"), 0U); // or the written model would be split again
}

TEST(SubHeads, MustDivideTheEmbedding)
{
  for (const int subHeads : { -3, 0, 2, 4 })
  {
    EXPECT_THAT(Refusal(StateDictTensors(), {}, subHeads),
      HasSubstr("the number of sub-heads must divide the embedding dimension 3, found " +
                std::to_string(subHeads)));
  }
  EXPECT_THAT(Refusal(StateDictTensors(), { { "nb_head", "2" } }), HasSubstr("found 2"));
}

TEST(SubHeads, MetadataMustBeAnInteger)
{
  for (const char* text : { "", "three", "3x", "3.0", "99999999999999999999" })
  {
    EXPECT_THAT(Refusal(StateDictTensors(), { { "nb_head", text } }),
      HasSubstr("metadata 'nb_head': expected an integer, found '" + std::string(text) + "'"));
  }
}

using ModelFile = testing::TestWithParam<DType>;
INSTANTIATE_TEST_SUITE_P(, ModelFile, testing::Values(DType::F32, DType::F64),
  [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(ModelFile, RoundTrip)
{
  const TemporaryDirectory folder;
  AttentionOnlyModel model = Make(NativeTensors(GetParam()), { { "source", "a test" } });
  model.wordEmbedding(0, 0) = GetParam() == DType::F64 ? 0.1 : double{ 0.1F };
  WriteAttentionOnlyModel(folder / "model", model);
  const AttentionOnlyModel read = ReadAttentionOnlyModel(folder / "model");
  ExpectSame(read, model);
  EXPECT_EQ(read.precision, GetParam());
  EXPECT_EQ(read.metadata, model.metadata);
}

TEST_P(ModelFile, SaysWhatItIs)
{
  const TemporaryDirectory folder;
  WriteAttentionOnlyModel(folder / "model", Make(NativeTensors(GetParam())));
  const SafetensorsFile file(folder / "model");
  EXPECT_EQ(file.GetMetadata(),
    (Metadata{ { "format", "attention-atlas.attention-only" }, { "version", "1" } }));
  EXPECT_EQ(file.GetTensors().at("heads.0.key").dtype, GetParam());
  EXPECT_EQ(file.GetTensors().at("next_token").dtype, DType::I64);
}

TEST_P(ModelFile, MayLackTargets)
{
  const TemporaryDirectory folder;
  Tensors tensors = NativeTensors(GetParam());
  tensors.erase("next_token");
  WriteAttentionOnlyModel(folder / "model", Make(tensors));
  EXPECT_FALSE(ReadAttentionOnlyModel(folder / "model").HasTargets());
}

TEST(ModelFiles, SplitModulesAreWrittenAsHeads)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "state_dict", StateDictTensors(), { { "nb_head", "3" } });
  WriteAttentionOnlyModel(folder / "native", ReadAttentionOnlyModel(folder / "state_dict"));
  ExpectThreeSubHeads(ReadAttentionOnlyModel(folder / "native"));
}

TEST(ModelFiles, ErrorsNameTheFile)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "bad", {}, {});
  EXPECT_THAT(MessageOf<ModelError>([&] { ReadAttentionOnlyModel(folder / "bad"); }),
    StartsWith((folder / "bad").string() + ": "));
  EXPECT_THAT(MessageOf<FileError>([&] { ReadAttentionOnlyModel(folder / "missing"); }),
    StartsWith((folder / "missing").string() + ": "));
}

TEST(ModelFiles, ShippedModelsAreRead)
{
  for (const char* name : { "/trained-n5-h3", "/trained-n5-h3-slow" })
  {
    const AttentionOnlyModel model =
      ReadAttentionOnlyModel(std::string(ATLAS_DATA_DIR) + name + ".safetensors");
    EXPECT_EQ(model.VocabularySize(), 5);
    EXPECT_EQ(model.HeadCount(), 3U);
    EXPECT_EQ(model.HeadDimension(), 3);
    EXPECT_TRUE(model.HasTargets());
  }
}

TEST(ModelFiles, PublishedStateDictIsTheNativeModel)
{
  using atlas::test::Oracle;
  const AttentionOnlyModel native =
    ReadAttentionOnlyModel(Oracle::Folder() / "trained-n5-h3.safetensors");
  ASSERT_TRUE(native.HasTargets());
  ExpectSame(
    ReadAttentionOnlyModel(Oracle::Folder() / "trained-n5-h3.state_dict.safetensors"), native);
}

/// Both namings, for what must hold in both.
class BadModel : public testing::TestWithParam<Tensors (*)()>
{
};
INSTANTIATE_TEST_SUITE_P(, BadModel,
  testing::Values([] { return NativeTensors(); }, &StateDictTensors),
  [](const auto& naming) { return naming.index == 0 ? "Native" : "StateDict"; });

/// The names of the weights, which are all tensors but the optional target.
std::vector<std::string> Weights(const Tensors& tensors)
{
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
  {
    if (name != "next_token" && name != "pi.2")
    {
      names.push_back(name);
    }
  }
  return names;
}

TEST_P(BadModel, EveryWeightIsNeeded)
{
  for (const std::string& name : Weights(GetParam()()))
  {
    Tensors tensors = GetParam()();
    tensors.erase(name);
    const bool isWord = name.compare(0, 4, "word") == 0;
    EXPECT_THAT(Refusal(tensors),
      HasSubstr(isWord ? "tensor 'word_embedding' is missing (or 'word_emb.weight', as PyTorch"
                       : "tensor '" + name + "' is missing."));
  }
}

TEST_P(BadModel, ShapesAreChecked)
{
  for (const auto& [name, original] : GetParam()())
  {
    for (const Shape& shape : { Shape{ 7, 7 }, Shape{ 3 }, Shape{ 2, 3, 1 }, Shape{} })
    {
      Tensors tensors = GetParam()();
      tensors[name] = Counting(0, shape);
      EXPECT_THAT(Refusal(tensors), AllOf(HasSubstr("tensor '" + name + "': expected shape ["),
                                      HasSubstr("found " + ToString(shape) + ".")));
    }
  }
}

TEST_P(BadModel, WeightsMustBeFinite)
{
  const std::vector<std::pair<double, const char*>> values = { { NotANumber, "nan" },
    { Infinity, "inf" }, { -Infinity, "-inf" } };
  for (const std::string& name : Weights(GetParam()()))
  {
    for (const auto& [value, text] : values)
    {
      Tensors tensors = GetParam()();
      std::vector<double> numbers = tensors[name].View().ToDouble();
      numbers[4] = value;
      const Shape shape = tensors[name].shape;
      tensors[name] = Tensor::FromDouble(DType::F32, shape, numbers);
      EXPECT_THAT(Refusal(tensors),
        HasSubstr("tensor '" + name + "' holds " + text + " at row " +
                  std::to_string(4 / shape[1]) + ", column " + std::to_string(4 % shape[1])));
    }
  }
}

/// A change that makes a model invalid, and the expected message.
struct Spoiled
{
  const char* name;
  Tensors tensors;
  std::vector<std::string> messages;
  friend void PrintTo(const Spoiled& spoiled, std::ostream* stream) { *stream << spoiled.name; }
};

using SpoiledModel = testing::TestWithParam<Spoiled>;

TEST_P(SpoiledModel, IsRefused)
{
  const std::string message = Refusal(GetParam().tensors);
  for (const std::string& part : GetParam().messages)
  {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

std::string SpoiledName(const testing::TestParamInfo<Spoiled>& info)
{
  return info.param.name;
}

/// `tensors` with one replaced or added.
Tensors With(Tensors tensors, const std::string& name, const Tensor& tensor)
{
  tensors[name] = tensor;
  return tensors;
}

INSTANTIATE_TEST_SUITE_P(Shape, SpoiledModel,
  testing::Values(
    Spoiled{ "EmptyVocabulary", With(NativeTensors(), "word_embedding", Counting(0, { 0, 3 })),
      { "'word_embedding': expected shape [N, 3] with a vocabulary N >= 1, found [0, 3]" } },
    Spoiled{ "OnePosition", With(NativeTensors(), "position_embedding", Counting(0, { 1, 3 })),
      { "'position_embedding': expected shape [2, 3], found [1, 3]" } },
    Spoiled{ "OtherVocabulary", With(NativeTensors(), "unembedding", Counting(0, { 4, 3 })),
      { "'unembedding': expected shape [5, 3] (the vocabulary), found [4, 3]" } },
    Spoiled{ "OtherKey", With(NativeTensors(), "heads.0.key", Counting(0, { 1, 3 })),
      { "'heads.0.key': expected shape [2, 3], found [1, 3]" } },
    Spoiled{ "TransposedOutput", With(NativeTensors(), "heads.0.output", Counting(0, { 2, 3 })),
      { "'heads.0.output': expected shape [3, 2], found [2, 3]" } },
    Spoiled{ "EmptyHead", With(NativeTensors(), "heads.0.query", Counting(0, { 0, 3 })),
      { "'heads.0.query': expected shape [d_h, 3], found [0, 3]" } },
    Spoiled{ "ModuleThatIsNotSquare",
      With(StateDictTensors(), "attn_seq.0.1.q_proj_weight", Counting(0, { 2, 3 })),
      { "'attn_seq.0.1.q_proj_weight': expected shape [3, 3], found [2, 3]" } }),
  SpoiledName);

TEST(BadModels, OtherEmbeddingDimensionsAreRefused)
{
  Tensors tensors;
  tensors["word_embedding"] = Counting(0, { N, 4 });
  tensors["position_embedding"] = Counting(0, { 2, 4 });
  tensors["unembedding"] = Counting(0, { N, 4 });
  for (const char* name : { "query", "key", "value" })
  {
    tensors["heads.0." + std::string(name)] = Counting(0, { 2, 4 });
  }
  tensors["heads.0.output"] = Counting(0, { 4, 2 });
  EXPECT_THAT(
    Refusal(tensors), HasSubstr("expected shape [N, 3] with a vocabulary N >= 1, found [5, 4]"));
}

TEST(BadModels, HeadsMustAgree)
{
  Tensors tensors = NativeTensors();
  for (const char* name : { "query", "key", "value" })
  {
    tensors["heads.1." + std::string(name)] = Counting(0, { 3, 3 });
  }
  tensors["heads.1.output"] = Counting(0, { 3, 3 });
  EXPECT_THAT(Refusal(tensors), HasSubstr("'heads.1.query': expected shape [2, 3], found [3, 3]"));
}

/// `tensors` with the names that begin with `from` beginning with `to`.
Tensors Renamed(const Tensors& tensors, const std::string& from, const std::string& to)
{
  Tensors renamed;
  for (const auto& [name, tensor] : tensors)
  {
    const bool begins = name.compare(0, from.size(), from) == 0;
    renamed[begins ? to + name.substr(from.size()) : name] = tensor;
  }
  return renamed;
}

Tensor NextToken(std::size_t index, std::int64_t token)
{
  std::vector<std::int64_t> tokens(N * N, 0);
  tokens[index] = token;
  return Tensor::FromInteger({ N, N }, tokens);
}

INSTANTIATE_TEST_SUITE_P(Target, SpoiledModel,
  testing::Values(Spoiled{ "TooLarge", With(NativeTensors(), "next_token", NextToken(13, 5)),
                    { "tensor 'next_token' holds 5 at row 2, column 3", "a token from 0 to 4" } },
    Spoiled{ "Negative", With(NativeTensors(), "next_token", NextToken(24, -1)),
      { "tensor 'next_token' holds -1 at row 4, column 4" } },
    Spoiled{ "Float", With(NativeTensors(), "next_token", Counting(0, { N, N })),
      { "tensor 'next_token': expected an integer type (I64, I32, I16, I8, U8, BOOL), found "
        "F32" } },
    Spoiled{ "NotSquare",
      With(NativeTensors(), "next_token",
        Tensor::FromInteger({ N, 4 }, std::vector<std::int64_t>(N * 4))),
      { "'next_token': expected shape [5, 5] (the vocabulary), found [5, 4]" } },
    Spoiled{ "FlatDistribution", With(StateDictTensors(), "pi.2", Counting(0, { N, N })),
      { "'pi.2': expected shape [5, 5, 5] (the vocabulary), found [5, 5]" } },
    Spoiled{ "OtherDistribution", With(StateDictTensors(), "pi.2", Counting(0, { N, N, 4 })),
      { "'pi.2': expected shape [5, 5, 5] (the vocabulary), found [5, 5, 4]" } },
    Spoiled{ "DistributionNotFinite",
      With(StateDictTensors(), "pi.2",
        Tensor::FromDouble(DType::F32, { N, N, N }, std::vector<double>(125, NotANumber))),
      { "tensor 'pi.2' holds a value that is not finite at row 0, column 0" } }),
  SpoiledName);

INSTANTIATE_TEST_SUITE_P(Name, SpoiledModel,
  testing::Values(Spoiled{ "HeadGap", Renamed(NativeTensors(), "heads.1", "heads.2"),
                    { "without a gap", "head 1 is missing while head 2 is there" } },
    Spoiled{ "NoFirstHead", Renamed(NativeTensors(), "heads.0", "heads.7"),
      { "head 0 is missing while head 1 is there" } },
    Spoiled{ "NoHeads", Renamed(NativeTensors(), "heads.", "layers."),
      { "tensor 'heads.0.query' is missing" } },
    Spoiled{ "HeadWithoutNumber", With(NativeTensors(), "heads.x.query", Counting(0, { 2, 3 })),
      { "tensor 'heads.x.query': expected a head's number after 'heads.'" } },
    Spoiled{ "HeadWithHugeNumber",
      With(NativeTensors(), "heads.99999999999999999999.query", Counting(0, { 2, 3 })),
      { "expected a head's number" } },
    Spoiled{ "HeadNumberAlone", With(NativeTensors(), "heads.0", Counting(0, { 2, 3 })),
      { "tensor 'heads.0': expected a head's number" } },
    Spoiled{ "HeadUnknownTensor", With(NativeTensors(), "heads.0.gate", Counting(0, { 2, 3 })),
      { "tensor 'heads.0.gate': expected one of '.query', '.key', '.value' and '.output'",
        "found '.gate'" } },
    Spoiled{ "ModuleGap", Renamed(StateDictTensors(), "attn_seq.0.1", "attn_seq.0.3"),
      { "head 1 is missing while head 3 is there" } },
    Spoiled{ "SecondLayer",
      With(StateDictTensors(), "attn_seq.1.0.q_proj_weight", Counting(0, { 3, 3 })),
      { "expected one attention layer, attn_seq.0, found tensor 'attn_seq.1.0.q_proj_weight'" } },
    Spoiled{ "OutputBias",
      With(StateDictTensors(), "attn_seq.0.0.out_proj.bias", Counting(0, { 3 })),
      { "expected a model without biases, found tensor 'attn_seq.0.0.out_proj.bias'" } },
    Spoiled{ "InputBias", With(StateDictTensors(), "attn_seq.0.0.in_proj_bias", Counting(0, { 9 })),
      { "expected a model without biases, found tensor 'attn_seq.0.0.in_proj_bias'" } },
    Spoiled{ "KeyBias", With(StateDictTensors(), "attn_seq.0.0.bias_k", Counting(0, { 1, 1, 3 })),
      { "expected a model without biases, found tensor 'attn_seq.0.0.bias_k'" } },
    Spoiled{ "UnembeddingBias", With(StateDictTensors(), "unemb.bias", Counting(0, { N })),
      { "expected a model without biases, found tensor 'unemb.bias'" } },
    Spoiled{ "Nothing", Tensors(), { "this is not an attention-only model" } },
    Spoiled{ "AnotherModel", Tensors{ { "wte.weight", Counting(0, { 9, 4 }) } },
      { "this is not an attention-only model" } }),
  SpoiledName);

TEST(BadModels, OtherVersionsAreRefused)
{
  const Metadata later = { { "format", AttentionOnlyFormat }, { "version", "2" } };
  EXPECT_THAT(Refusal(NativeTensors(), later),
    AllOf(HasSubstr("expected version 1 of the format attention-atlas.attention-only"),
      HasSubstr("found version '2'")));
}

TEST(BadModels, VersionsOfOtherFormatsDoNotMatter)
{
  ExpectSame(
    Make(NativeTensors(), { { "format", "pt" }, { "version", "2" } }), Make(NativeTensors()));
}

}
