#include "AttentionOnly/AttentionOnlyModel.h"

#include "Base/Error.h"
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
  return MakeAttentionOnlyModel(ViewsOf(tensors), metadata, subHeads, "some model");
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

/// Expects the numbers of NativeTensors or StateDictTensors in their places.
void ExpectPlaces(const AttentionOnlyModel& model, Eigen::Index dimension)
{
  EXPECT_EQ(model.VocabularySize(), N);
  EXPECT_EQ(model.HeadCount(), 2U);
  EXPECT_EQ(model.HeadDimension(), dimension);
  EXPECT_EQ(model.positionEmbedding.rows(), 2);
  EXPECT_TRUE(Counts(model.wordEmbedding, 0, 3, 1));
  EXPECT_TRUE(Counts(model.positionEmbedding, 100, 3, 1));
  EXPECT_TRUE(Counts(model.unembedding, 200, 3, 1));
  for (std::size_t h = 0; h < 2; ++h)
  {
    const double first = 100 * static_cast<double>(h);
    EXPECT_TRUE(Counts(model.heads[h].query, 1000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].key, 2000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].value, 3000 + first, 3, 1));
    EXPECT_TRUE(Counts(model.heads[h].output, 4000 + first, static_cast<double>(dimension), 1));
  }
}

TEST(ModelNames, EveryTensorHasItsPlace)
{
  ExpectPlaces(Make(NativeTensors()), 2);
  ExpectPlaces(Make(StateDictTensors()), 3);
}

TEST(NativeModel, NextTokenIsOptionalByRowsAndOfAnyInteger)
{
  Tensors tensors = NativeTensors();
  const AttentionOnlyModel model = Make(tensors);
  ASSERT_TRUE(model.HasTargets());
  EXPECT_EQ(model.nextToken(0, 1), 2); // 7 mod 5
  EXPECT_EQ(model.nextToken(2, 3), 1); // 13 * 7 = 91
  tensors["next_token"] = { DType::U8, { N, N }, std::vector<std::byte>(N * N, std::byte{ 4 }) };
  EXPECT_TRUE((Make(tensors).nextToken.array() == 4).all());
  tensors["next_token"] = { DType::I32, { N, N }, std::vector<std::byte>(4 * N * N) };
  EXPECT_TRUE((Make(tensors).nextToken.array() == 0).all());
  tensors.erase("next_token");
  EXPECT_FALSE(Make(tensors).HasTargets());
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

TEST(StateDictModel, NextTokenIsOptionalAndTheMostProbable)
{
  Tensors tensors = StateDictTensors();
  const AttentionOnlyModel model = Make(tensors);
  ASSERT_TRUE(model.HasTargets());
  for (std::int64_t t1 = 0; t1 < N; ++t1)
  {
    for (std::int64_t t2 = 0; t2 < N; ++t2)
    {
      EXPECT_EQ(model.nextToken(t1, t2), (t1 + 2 * t2) % N);
    }
  }
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

TEST(SubHeads, AreThoseOfTheMetadataUnlessAskedFor)
{
  ExpectThreeSubHeads(Make(StateDictTensors(), {}, 3));
  ExpectThreeSubHeads(Make(StateDictTensors(), { { "nb_head", "1" } }, 3));
  const AttentionOnlyModel model = Make(StateDictTensors(), { { "nb_head", "3" } });
  ExpectThreeSubHeads(model);
  EXPECT_EQ(model.metadata.count("nb_head"), 0U); // or the written model would be split again
}

TEST(SubHeads, MustDivideTheEmbeddingAndBeAnInteger)
{
  for (const int subHeads : { -3, 0, 2, 4 })
  {
    EXPECT_THAT(Refusal(StateDictTensors(), {}, subHeads),
      HasSubstr("must divide the embedding dimension 3, found " + std::to_string(subHeads)));
  }
  EXPECT_THAT(Refusal(StateDictTensors(), { { "nb_head", "2" } }), HasSubstr("found 2"));
  for (const char* text : { "", "three", "3x", "3.0", "99999999999999999999" })
  {
    EXPECT_THAT(Refusal(StateDictTensors(), { { "nb_head", text } }),
      HasSubstr("metadata 'nb_head': expected an integer, found '" + std::string(text) + "'"));
  }
}

TEST(ModelFiles, RoundTripAndSayWhatTheyAre)
{
  for (const DType dtype : { DType::F32, DType::F64 })
  {
    const TemporaryDirectory folder;
    AttentionOnlyModel model = Make(NativeTensors(dtype), { { "source", "a test" } });
    model.wordEmbedding(0, 0) = dtype == DType::F64 ? 0.1 : double{ 0.1F };
    WriteAttentionOnlyModel(folder / "model", model);
    const AttentionOnlyModel read = ReadAttentionOnlyModel(folder / "model");
    ExpectSame(read, model);
    EXPECT_EQ(read.precision, dtype);
    EXPECT_EQ(read.metadata, model.metadata);
    const SafetensorsFile file(folder / "model");
    EXPECT_EQ(file.GetMetadata(), (Metadata{ { "format", "attention-atlas.attention-only" },
                                    { "version", "1" }, { "source", "a test" } }));
    EXPECT_EQ(file.GetTensors().at("heads.0.key").dtype, dtype);
    EXPECT_EQ(file.GetTensors().at("next_token").dtype, DType::I64);
    model.nextToken.resize(0, 0);
    WriteAttentionOnlyModel(folder / "model", model);
    EXPECT_FALSE(ReadAttentionOnlyModel(folder / "model").HasTargets());
  }
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
using BadModel = testing::TestWithParam<Tensors (*)()>;
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

/// `tensors` with one replaced or added.
Tensors With(Tensors tensors, const std::string& name, const Tensor& tensor)
{
  tensors[name] = tensor;
  return tensors;
}

Tensors NativeWith(const std::string& name, const Tensor& tensor)
{
  return With(NativeTensors(), name, tensor);
}

Tensors StateDictWith(const std::string& name, const Tensor& tensor)
{
  return With(StateDictTensors(), name, tensor);
}

/// A change that makes a model invalid, and what the message says.
struct Spoiled
{
  Tensors tensors;
  std::vector<std::string> messages;
};

void ExpectRefusals(const std::vector<Spoiled>& models)
{
  for (const Spoiled& spoiled : models)
  {
    const std::string message = Refusal(spoiled.tensors);
    for (const std::string& part : spoiled.messages)
    {
      EXPECT_THAT(message, HasSubstr(part));
    }
  }
}

TEST(BadModels, ShapesThatDoNotFitAreRefused)
{
  ExpectRefusals({
    { NativeWith("word_embedding", Counting(0, { 0, 3 })), { "'word_embedding'", "[0, 3]" } },
    { NativeWith("position_embedding", Counting(0, { 1, 3 })),
      { "'position_embedding'", "[2, 3]", "[1, 3]" } },
    { NativeWith("unembedding", Counting(0, { 4, 3 })), { "'unembedding'", "[5, 3]", "[4, 3]" } },
    { NativeWith("heads.0.key", Counting(0, { 1, 3 })), { "'heads.0.key'", "[2, 3]", "[1, 3]" } },
    { NativeWith("heads.0.output", Counting(0, { 2, 3 })),
      { "'heads.0.output'", "[3, 2]", "[2, 3]" } },
    { NativeWith("heads.0.query", Counting(0, { 0, 3 })),
      { "'heads.0.query'", "[d_h, 3]", "[0, 3]" } },
    { StateDictWith("attn_seq.0.1.q_proj_weight", Counting(0, { 2, 3 })),
      { "'attn_seq.0.1.q_proj_weight'", "[3, 3]", "[2, 3]" } },
    { NativeWith("next_token", Tensor::FromInteger({ N, 4 }, std::vector<std::int64_t>(N * 4))),
      { "'next_token'", "[5, 5]", "[5, 4]" } },
    { StateDictWith("pi.2", Counting(0, { N, N })), { "'pi.2'", "[5, 5, 5]", "found [5, 5]" } },
    { StateDictWith("pi.2", Counting(0, { N, N, 4 })), { "'pi.2'", "[5, 5, 5]", "[5, 5, 4]" } },
  });
  Tensors wide; // four dimensions throughout
  wide["word_embedding"] = wide["unembedding"] = Counting(0, { N, 4 });
  wide["position_embedding"] = wide["heads.0.query"] = wide["heads.0.key"] = wide["heads.0.value"] =
    Counting(0, { 2, 4 });
  wide["heads.0.output"] = Counting(0, { 4, 2 });
  Tensors unequal = NativeTensors(); // heads of dimensions 2 and 3
  unequal["heads.1.query"] = unequal["heads.1.key"] = unequal["heads.1.value"] =
    unequal["heads.1.output"] = Counting(0, { 3, 3 });
  ExpectRefusals(
    { { wide, { "[N, 3]", "[5, 4]" } }, { unequal, { "'heads.1.query'", "[2, 3]", "[3, 3]" } } });
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

TEST(BadModels, TargetsThatAreNoTokensAreRefused)
{
  const auto nextToken = [](std::size_t index, std::int64_t token)
  {
    std::vector<std::int64_t> tokens(N * N, 0);
    tokens[index] = token;
    return NativeWith("next_token", Tensor::FromInteger({ N, N }, tokens));
  };
  const Tensor notFinite =
    Tensor::FromDouble(DType::F32, { N, N, N }, std::vector<double>(125, NotANumber));
  ExpectRefusals({
    { nextToken(13, 5), { "'next_token' holds 5 at row 2, column 3", "from 0 to 4" } },
    { nextToken(24, -1), { "'next_token' holds -1 at row 4, column 4" } },
    { NativeWith("next_token", Counting(0, { N, N })), { "'next_token'", "integer", "F32" } },
    { StateDictWith("pi.2", notFinite), { "'pi.2'", "not finite at row 0, column 0" } },
  });
}

TEST(BadModels, NamesThatDoNotFitAreRefused)
{
  ExpectRefusals({
    { Renamed(NativeTensors(), "heads.1", "heads.2"), { "head 1 is missing while head 2" } },
    { Renamed(NativeTensors(), "heads.0", "heads.7"), { "head 0 is missing while head 1" } },
    { Renamed(NativeTensors(), "heads.", "layers."), { "'heads.0.query' is missing" } },
    { NativeWith("heads.x.query", Counting(0, { 2, 3 })), { "'heads.x.query'", "number" } },
    { NativeWith("heads.99999999999999999999.query", Counting(0, { 2, 3 })), { "number" } },
    { NativeWith("heads.0", Counting(0, { 2, 3 })), { "'heads.0'", "number" } },
    { NativeWith("heads.0.gate", Counting(0, { 2, 3 })), { "'.query'", "found '.gate'" } },
    { Renamed(StateDictTensors(), "attn_seq.0.1", "attn_seq.0.3"),
      { "head 1 is missing while head 3" } },
    { StateDictWith("attn_seq.1.0.q_proj_weight", Counting(0, { 3, 3 })),
      { "one attention layer", "'attn_seq.1.0.q_proj_weight'" } },
    { StateDictWith("attn_seq.0.0.out_proj.bias", Counting(0, { 3 })), { "without biases" } },
    { StateDictWith("attn_seq.0.0.in_proj_bias", Counting(0, { 9 })), { "without biases" } },
    { StateDictWith("attn_seq.0.0.bias_k", Counting(0, { 1, 1, 3 })), { "without biases" } },
    { StateDictWith("unemb.bias", Counting(0, { N })), { "without biases", "'unemb.bias'" } },
    { {}, { "not an attention-only model" } },
    { { { "wte.weight", Counting(0, { 9, 4 }) } }, { "not an attention-only model" } },
  });
}

TEST(BadModels, OtherVersionsOfThisFormatAreRefused)
{
  const Metadata later = { { "format", AttentionOnlyFormat }, { "version", "2" } };
  EXPECT_THAT(Refusal(NativeTensors(), later), HasSubstr("found version '2'"));
  ExpectSame(
    Make(NativeTensors(), { { "format", "pt" }, { "version", "2" } }), Make(NativeTensors()));
}

}
