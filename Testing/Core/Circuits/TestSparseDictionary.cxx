#include "Circuits/SparseDictionary.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// A dictionary of 3 features of vectors (x, y), which for (2, 1) - b_dec = (1, 2) has
/// p = (1, 3, 1.5).
class Dictionary : public testing::Test
{
protected:
  TemporaryDirectory Folder;
  Tensors Weights = {
    { "W_enc", Tensor::FromDouble(DType::F32, { 2, 3 }, { 1, 0, -1, 0, 2, 1 }) },
    { "b_enc", Tensor::FromDouble(DType::F32, { 3 }, { 0, -1, 0.5 }) },
    { "W_dec", Tensor::FromDouble(DType::F32, { 3, 2 }, { 1, 0, 0, 3, 2, 2 }) },
    { "b_dec", Tensor::FromDouble(DType::F32, { 2 }, { 1, -1 }) },
  };

  SparseDictionary Read(const std::string& settings)
  {
    WriteSafetensors(this->Folder / "sae_weights.safetensors", this->Weights, {});
    WriteBytes(this->Folder / "cfg.json", settings);
    return ReadSparseDictionary(this->Folder.Path());
  }

  /// Settings of version 6 with more of them.
  static std::string Of(const std::string& more)
  {
    return R"({"d_in": 2, "d_sae": 3, "dtype": "float32", "metadata": {"hook_name":
      "blocks.0.hook_resid_pre", "sae_lens_version": "6.1.0"}, )" +
           more + "}";
  }

  std::string Refused(const std::string& settings)
  {
    return MessageOf<ModelError>([&] { this->Read(settings); });
  }

  /// Expects values of features and the reconstruction of (2, 1).
  static void Expect(const SparseDictionary& dictionary,
    const std::map<std::int32_t, double>& features, double x, double y)
  {
    DoubleMatrix vectors(2, 2);
    vectors << 2, 1, 2, 1;
    const SparseCode code = Encode(dictionary, vectors, 2);
    ASSERT_EQ(code.active.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i)
    {
      std::map<std::int32_t, double> found;
      for (const ActiveFeature& item : code.active[i])
      {
        found.emplace(item.feature, item.value);
      }
      ASSERT_EQ(found.size(), features.size());
      for (const auto& [feature, value] : features)
      {
        EXPECT_NEAR(found[feature], value, 1e-6) << feature;
        const Eigen::RowVectorXd read =
          vectors.row(0) - (dictionary.subtractsBias ? dictionary.decoderBias : 0 * vectors.row(0));
        EXPECT_NEAR(
          read.dot(dictionary.EncoderOf(feature)) + dictionary.BiasOf(feature), value, 1e-6);
      }
      EXPECT_NEAR(code.reconstructed(static_cast<Eigen::Index>(i), 0), x, 1e-6);
      EXPECT_NEAR(code.reconstructed(static_cast<Eigen::Index>(i), 1), y, 1e-6);
    }
  }
};

TEST_F(Dictionary, OfReluAddsFeatures)
{
  const SparseDictionary dictionary = this->Read(Of(R"("architecture": "standard")"));
  EXPECT_EQ(dictionary.layer, 0);
  EXPECT_EQ(dictionary.site, DictionarySite::StreamBefore);
  Expect(dictionary, { { 0, 1 }, { 1, 3 }, { 2, 1.5 } }, 1 + 3 + 1, 9 + 3 - 1);
}

TEST_F(Dictionary, ReadsTheInputWithItsBias)
{
  // p = (2, 1, -0.5) of (2, 1) itself
  Expect(this->Read(Of(R"("apply_b_dec_to_input": false)")), { { 0, 2 }, { 1, 1 } }, 2 + 1, 3 - 1);
}

TEST_F(Dictionary, OfJumpReluLeavesOutWhatIsBelowItsThreshold)
{
  this->Weights["threshold"] = Tensor::FromDouble(DType::F32, { 3 }, { 1, 2, 2 });
  Expect(this->Read(Of(R"("architecture": "jumprelu")")), { { 1, 3 } }, 1, 9 - 1);
  this->Weights["threshold"] = Tensor::FromDouble(DType::F32, { 3 }, { -5, -5, -5 });
  this->Weights["b_enc"] = Tensor::FromDouble(DType::F32, { 3 }, { -2, -1, 0.5 });
  Expect(
    this->Read(Of(R"("architecture": "jumprelu")")), { { 1, 3 }, { 2, 1.5 } }, 1 + 3, 9 + 3 - 1);
}

TEST_F(Dictionary, OfTopKKeepsTheLargest)
{
  Expect(this->Read(Of(R"("architecture": "topk", "k": 2)")), { { 1, 3 }, { 2, 1.5 } }, 1 + 3,
    9 + 3 - 1);
  // Negative ones are not active, whatever k is.
  this->Weights["b_enc"] = Tensor::FromDouble(DType::F32, { 3 }, { -2, -1, 0.5 });
  Expect(this->Read(Of(R"("architecture": "topk", "k": 3)")), { { 1, 3 }, { 2, 1.5 } }, 1 + 3,
    9 + 3 - 1);
}

TEST_F(Dictionary, OfTopKChoosesByWhatFeaturesWrite)
{
  // p times the lengths 1, 3 and sqrt(8): 1, 9 and 4.24
  Expect(this->Read(Of(R"("architecture": "topk", "k": 1, "rescale_acts_by_decoder_norm": true)")),
    { { 1, 9 } }, 1, 9 - 1);
}

TEST_F(Dictionary, OfGatesHasMagnitudesOfItsOwn)
{
  this->Weights.erase("b_enc");
  this->Weights["b_gate"] = Tensor::FromDouble(DType::F32, { 3 }, { -2, 0, 0 });
  this->Weights["b_mag"] = Tensor::FromDouble(DType::F32, { 3 }, { 0, -1, 0.5 });
  this->Weights["r_mag"] = Tensor::FromDouble(DType::F64, { 3 }, { 0, std::log(2), 0 });
  Expect(this->Read(Of(R"("architecture": "gated")")), { { 1, 7 }, { 2, 1.5 } }, 1 + 3, 21 + 3 - 1);
}

TEST_F(Dictionary, NormalizesInputs)
{
  DoubleMatrix vector(1, 2);
  vector << 3, 4; // of length 5, to sqrt(2)
  const double scale = std::sqrt(2.) / 5;
  const double p0 = 3 * scale - 1;
  const double p1 = 2 * (4 * scale + 1) - 1;
  const double p2 = -(3 * scale - 1) + (4 * scale + 1) + 0.5;
  ASSERT_LT(p0, 0);
  const SparseCode code =
    Encode(this->Read(Of(R"("normalize_activations": "constant_norm_rescale")")), vector);
  ASSERT_EQ(code.active[0].size(), 2U);
  EXPECT_EQ(code.active[0][0].feature, p1 > p2 ? 1 : 2);
  EXPECT_NEAR(code.active[0][0].value, std::max(p1, p2), 1e-6);
  EXPECT_NEAR(code.reconstructed(0, 0), (1 + 2 * p2) / scale, 1e-5);
  EXPECT_NEAR(code.reconstructed(0, 1), (-1 + 3 * p1 + 2 * p2) / scale, 1e-5);

  vector << 1, 3; // mean 2, deviation sqrt(2)
  const double n = 1 / (std::sqrt(2.) + 1e-5);
  const double q1 = 2 * (n + 1) - 1;
  const double q2 = -(-n - 1) + (n + 1) + 0.5;
  const SparseCode other =
    Encode(this->Read(Of(R"("normalize_activations": "layer_norm")")), vector);
  ASSERT_EQ(other.active[0].size(), 2U);
  EXPECT_NEAR(other.active[0][0].value, q2, 1e-6);
  EXPECT_NEAR(other.reconstructed(0, 0), (1 + 2 * q2) * std::sqrt(2.) + 2, 1e-5);
  EXPECT_NEAR(other.reconstructed(0, 1), (-1 + 3 * q1 + 2 * q2) * std::sqrt(2.) + 2, 1e-5);
}

TEST_F(Dictionary, ReadsSettingsOfEarlierVersions)
{
  const SparseDictionary dictionary = this->Read(
    R"({"architecture": "standard", "d_in": 2, "d_sae": 3, "hook_point": "blocks.11.attn.hook_z",
      "activation_fn_str": "topk", "activation_fn_kwargs": {"k": 2}, "hook_point_head_index": null,
      "normalize_activations": false, "finetuning_scaling_factor": false,
      "model_from_pretrained_kwargs": {"center_writing_weights": true}})");
  EXPECT_EQ(dictionary.layer, 11);
  EXPECT_EQ(dictionary.site, DictionarySite::HeadValues);
  EXPECT_EQ(dictionary.activation, FeatureActivation::TopK);
  EXPECT_TRUE(dictionary.steps.centersWriting);
  EXPECT_FALSE(dictionary.steps.foldsValues);
  Expect(dictionary, { { 1, 3 }, { 2, 1.5 } }, 1 + 3, 9 + 3 - 1);
  EXPECT_EQ(CountFeatures(this->Folder / "sae_weights.safetensors"), 3);
}

TEST_F(Dictionary, RefusesWhatIsNotKnown)
{
  EXPECT_THAT(this->Refused(Of(R"("architecture": "transcoder")")),
    HasSubstr("cfg.json: unknown architecture 'transcoder', expected one of standard"));
  EXPECT_THAT(this->Refused(Of(R"("activation_fn": "tanh-relu")")), HasSubstr("'tanh-relu'"));
  EXPECT_THAT(this->Refused(Of(R"("normalize_activations": "expected_average_only_in")")),
    HasSubstr("expected_average_only_in"));
  EXPECT_THAT(this->Refused(Of(R"("normalize_activations": true)")), HasSubstr("found true"));
  EXPECT_THAT(this->Refused(Of(R"("hook_head_index": 3)")), HasSubstr("hook_head_index"));
  EXPECT_THAT(this->Refused(Of(R"("architecture": "topk")")), HasSubstr("k"));
  EXPECT_THAT(this->Refused(Of(R"("architecture": "topk", "k": 4)")), HasSubstr("found 4"));
  EXPECT_THAT(this->Refused(R"({"d_in": 5, "hook_name": "blocks.0.hook_resid_pre"})"),
    HasSubstr("d_in: expected 2 as in W_enc, found 5"));
  EXPECT_THAT(this->Refused(R"({"hook_name": "blocks.0.hook_mlp_out"})"),
    HasSubstr("found 'blocks.0.hook_mlp_out'"));
  EXPECT_THAT(this->Refused(R"({"hook_name": "blocks.x.hook_resid_pre"})"), HasSubstr("hook_name"));
  EXPECT_THAT(this->Refused("{}"), HasSubstr("hook_name"));
  EXPECT_THAT(this->Refused(
                Of(R"("model_from_pretrained_kwargs": {"refactor_factored_attn_matrices": true})")),
    HasSubstr("refactor_factored_attn_matrices"));
}

TEST_F(Dictionary, RefusesOtherTensors)
{
  const Tensors good = this->Weights;
  const auto refuse = [&](const char* name, const Tensor& tensor, const char* message)
  {
    this->Weights = good;
    this->Weights[name] = tensor;
    EXPECT_THAT(this->Refused(Of(R"("architecture": "standard")")), HasSubstr(message));
  };
  const auto vector = [](const std::vector<double>& values)
  { return Tensor::FromDouble(DType::F32, { static_cast<std::int64_t>(values.size()) }, values); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refuse(
    "W_enc", vector({ 1, 2 }), "W_enc: expected a matrix of inputs by features, found shape [2]");
  refuse("W_dec", Tensor::FromDouble(DType::F32, { 2, 3 }, { 1, 2, 3, 4, 5, 6 }),
    "W_dec: expected floating-point numbers of shape [3, 2], found F32 of shape [2, 3]");
  refuse("b_enc", vector({ 1, 2 }), "b_enc: expected floating-point numbers of shape [3]");
  refuse("b_dec", vector({ 1, nan }), "b_dec: expected finite numbers, found NaN");
  refuse("W_skip", vector({ 1 }), "found W_skip");
  refuse("scaling_factor", vector({ 1, 2, 1 }), "scaling_factor: expected 1 for all features");
  refuse("b_dec", Tensor::FromInteger({ 2 }, { 1, 2 }), "found I64");
  this->Weights = good;
  this->Weights.erase("b_enc");
  for (const char* name : { "b_gate", "b_mag" })
  {
    this->Weights[name] = vector({ 0, 0, 0 });
  }
  this->Weights["r_mag"] = vector({ 0, 800, 0 }); // finite, but exp(800) is not
  EXPECT_THAT(this->Refused(Of(R"("architecture": "gated")")),
    HasSubstr("exp(r_mag): expected finite numbers, found NaN or infinity."));
  this->Weights = good;
  this->Weights.erase("b_dec");
  EXPECT_THAT(
    this->Refused(Of(R"("architecture": "standard")")), HasSubstr("expected a tensor b_dec"));
  EXPECT_THAT(this->Refused(Of(R"("architecture": "jumprelu")")), HasSubstr("b_dec"));
  this->Weights = good;
  this->Weights["scaling_factor"] = vector({ 1, 1, 1 });
  EXPECT_EQ(this->Read(Of(R"("architecture": "standard")")).Features(), 3);
  EXPECT_THAT(MessageOf<FileError>([] { ReadSparseDictionary("/no/dictionary.safetensors"); }),
    HasSubstr("/no/dictionary.safetensors"));
  EXPECT_THAT(
    MessageOf<OptionError>(
      [&] { Encode(this->Read(Of(R"("architecture": "standard")")), DoubleMatrix::Zero(1, 3)); }),
    HasSubstr("expected vectors of 2 components, found 3"));
}

/// Several blocks of vectors and of features.
class LargeDictionary : public testing::Test
{
protected:
  SparseDictionary Large;
  DoubleMatrix Vectors;

  LargeDictionary()
  {
    std::srand(5);
    this->Large.encoder = SparseDictionary::Matrix::Random(7, 1100);
    this->Large.decoder = SparseDictionary::Matrix::Random(1100, 7);
    this->Large.bias = Eigen::RowVectorXd::Random(1100);
    this->Large.decoderBias = Eigen::RowVectorXd::Random(7);
    this->Vectors = DoubleMatrix::Random(600, 7);
  }
};

TEST_F(LargeDictionary, IsTheSameForAnyNumberOfThreads)
{
  for (const FeatureActivation activation : { FeatureActivation::Relu, FeatureActivation::TopK })
  {
    this->Large.activation = activation;
    this->Large.k = 9;
    const SparseCode one = Encode(this->Large, this->Vectors, 1);
    const SparseCode seven = Encode(this->Large, this->Vectors, 7);
    EXPECT_EQ(std::memcmp(one.reconstructed.data(), seven.reconstructed.data(),
                one.reconstructed.size() * sizeof(double)),
      0);
    for (std::size_t i = 0; i < one.active.size(); ++i)
    {
      ASSERT_GT(one.active[i].size(), 1U);
      ASSERT_EQ(one.active[i].size(), seven.active[i].size());
      for (std::size_t j = 0; j < one.active[i].size(); ++j)
      {
        EXPECT_EQ(one.active[i][j].feature, seven.active[i][j].feature);
        EXPECT_EQ(one.active[i][j].value, seven.active[i][j].value);
      }
    }
  }
}

TEST_F(LargeDictionary, TellsIfTooManyFeaturesAreActive)
{
  this->Large.bias.setConstant(100); // all of them
  EXPECT_EQ(EncodingMemory(this->Large, 600), 8. * 256 * (1100 + 2 * 7));
  ::setenv("ATLAS_MEMORY_LIMIT_KIB", "100", 1);
  const std::string message =
    MessageOf<std::runtime_error>([&] { Encode(this->Large, this->Vectors, 1); });
  ::unsetenv("ATLAS_MEMORY_LIMIT_KIB");
  EXPECT_THAT(
    message, HasSubstr("Dictionary: 281600 active features of 256 vectors would take 4.3"));
}

TEST(SparseDictionary, TellsWhatIsUnexplained)
{
  DoubleMatrix vectors(2, 2);
  vectors << 0, 0, 2, 4; // variance 2 (1 + 4)
  DoubleMatrix found = vectors;
  EXPECT_EQ(UnexplainedVariance(vectors, found), 0);
  found(1, 1) = 3;
  EXPECT_DOUBLE_EQ(UnexplainedVariance(vectors, found), 0.1);
  found << 1, 2, 1, 2; // the mean
  EXPECT_DOUBLE_EQ(UnexplainedVariance(vectors, found), 1);
  EXPECT_TRUE(std::isnan(UnexplainedVariance(vectors.topRows(1), found.topRows(1))));
}

}
