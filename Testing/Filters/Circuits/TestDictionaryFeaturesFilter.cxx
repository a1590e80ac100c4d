#include "vtkDictionaryFeatures.h"

#include "Core/LogitsOracle.h"
#include "Files/Safetensors.h"
#include "Matchers.h"
#include "Tables.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <filesystem>
#include <vector>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr std::int64_t D = 32; // of the oracle's gpt2

/// A dictionary of the residual stream before layer 1 with a feature for each end of each axis,
/// which writes what it reads: it misses nothing.
class Axes
{
public:
  Axes()
  {
    this->Write(0);
    this->Set("blocks.1.hook_resid_pre");
  }

  /// With this bias of all features.
  void Write(double bias) const
  {
    std::vector<double> encoder(D * 2 * D);
    std::vector<double> decoder(D * 2 * D);
    for (std::int64_t i = 0; i < D; ++i)
    {
      encoder[i * 2 * D + i] = decoder[i * D + i] = 1;
      encoder[i * 2 * D + D + i] = decoder[(D + i) * D + i] = -1;
    }
    const auto vector = [](std::int64_t count, double value)
    { return Tensor::FromDouble(DType::F32, { count }, std::vector<double>(count, value)); };
    WriteSafetensors(this->Path(),
      { { "W_enc", Tensor::FromDouble(DType::F32, { D, 2 * D }, encoder) },
        { "W_dec", Tensor::FromDouble(DType::F32, { 2 * D, D }, decoder) },
        { "b_enc", vector(2 * D, bias) }, { "b_dec", vector(D, 0) } },
      {});
  }

  void Set(const std::string& hook) const
  {
    WriteBytes(this->Folder / "cfg.json", "{\"hook_name\": \"" + hook + "\"}");
  }

  std::filesystem::path Path() const { return this->Folder / "sae_weights.safetensors"; }

private:
  TemporaryDirectory Folder;
};

using Features = OnRecordingAndModel<vtkDictionaryFeatures>;

TEST(DictionaryFeatures, OfAxesAreTheVectors)
{
  const LogitsOracle oracle("gpt2");
  const Recording& recording = oracle.GetRecording();
  const Axes axes;
  Features features(recording, "gpt2");
  features->SetDictionaryFile(axes.Path().c_str());
  features->SetSequence(-1);
  features->SetTop(2 * D);
  vtkTable* table = TableOf(features.Get());
  EXPECT_THAT(ColumnNames(table), ElementsAre("Sequence", "Position", "Token Index", "Token",
                                    "Rank", "Feature", "Activation", "Reconstruction Error"));
  const std::vector<double> tokens = Column(table, "Token Index");
  const std::vector<double> numbers = Column(table, "Feature");
  const std::vector<double> values = Column(table, "Activation");
  ASSERT_EQ(values.size(), static_cast<std::size_t>(recording.tokens.Count() * D));
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    const auto axis = static_cast<std::int64_t>(numbers[i]);
    const float x = recording.residual[1].Row(static_cast<std::int64_t>(tokens[i]))[axis % D];
    EXPECT_EQ(values[i], static_cast<double>(axis < D ? x : -x));
  }
  EXPECT_THAT(Column(table, "Reconstruction Error"), Each(0));
  EXPECT_THAT(features.Field("Unexplained Variance"), ElementsAre(0));
  EXPECT_THAT(features.Field("Active Features"), ElementsAre(D));
  EXPECT_THAT(features.Field("Features"), ElementsAre(2 * D));
  EXPECT_THAT(features.FieldTexts("Hook Name"), ElementsAre("blocks.1.hook_resid_pre"));
}

TEST(DictionaryFeatures, TableOfHeadsAddsUpToTheActivation)
{
  const LogitsOracle oracle("gpt2");
  const Axes axes;
  Features features(oracle.GetRecording(), "gpt2");
  features->SetDictionaryFile(axes.Path().c_str());
  features->SetFeature(3);
  features->SetTop(100);
  vtkTable* parts = TableOf(features.Get(), 2);
  ASSERT_EQ(parts->GetNumberOfRows(), 2 * 4 + 2);
  double sum = 0;
  for (const double value : Column(parts, "Contribution"))
  {
    sum += std::isnan(value) ? 0 : value;
  }
  const std::vector<double> activations = Column(TableOf(features.Get(), 4), "Activation");
  ASSERT_FALSE(activations.empty());
  double mean = 0;
  for (const double value : activations)
  {
    mean += value / static_cast<double>(activations.size());
  }
  EXPECT_NEAR(sum, mean, 1e-12);
  EXPECT_EQ(parts->GetValueByName(9, "Component").ToString(), "bias");
  EXPECT_EQ(Column(parts, "Contribution")[9], 0);
  EXPECT_THAT(features.Field("Feature"), ElementsAre(3));
}

TEST(DictionaryFeatures, HasAsManyRowsAsFeaturesAreShown)
{
  const LogitsOracle oracle("gpt2");
  const Axes axes;
  Features features(oracle.GetRecording(), "gpt2");
  features->SetDictionaryFile(axes.Path().c_str());
  features->SetImageFeatures(5);
  EXPECT_THAT(SizeOf(features.Image(1)), ElementsAre(17, 5));
  features->SetImageFeatures(100);
  features->SetSequence(-1);
  EXPECT_THAT(SizeOf(features.Image(1)), ElementsAre(34, 2 * D));
  EXPECT_EQ(features->GetSequenceRange()[0], -1);
  EXPECT_EQ(features->GetSequenceRange()[1], 1);
  EXPECT_EQ(features->GetFeatureRange()[1], 2 * D - 1);
}

TEST(DictionaryFeatures, WarnIfNoneIsActive)
{
  const LogitsOracle oracle("gpt2");
  const Axes axes;
  axes.Write(-1e6);
  OracleModel model("gpt2");
  Warned<vtkDictionaryFeatures> features(DataSetOf(oracle.GetRecording()));
  features->SetModelConnection(model.Port());
  features->SetDictionaryFile(axes.Path().c_str());
  features->SetImageFeatures(5);
  EXPECT_THAT(SizeOf(features.Image(1)), ElementsAre(17, 5));
  EXPECT_THAT(
    features.TakeWarnings(), Contains(HasSubstr("no feature is active; check Processing.")));
  for (int port = 2; port < 5; ++port)
  {
    EXPECT_EQ(TableOf(features.Get(), port)->GetNumberOfRows(), 0);
  }
  EXPECT_THAT(features.Field("Feature"), ElementsAre(-1));
  features->SetFeature(3); // one that was asked for has heads that read it
  EXPECT_EQ(TableOf(features.Get(), 2)->GetNumberOfRows(), 2 * 4 + 2);
  EXPECT_THAT(features.TakeWarnings(), IsEmpty());
}

TEST(DictionaryFeatures, NeedMemoryForTokensAndTheImage)
{
  const LogitsOracle oracle("gpt2");
  const Axes axes;
  Features features(oracle.GetRecording(), "gpt2");
  features->SetDictionaryFile(axes.Path().c_str());
  ASSERT_GT(TableOf(features.Get())->GetNumberOfRows(), 0); // the dictionary is kept
  features->SetSequence(-1);
  {
    const Variable limit("ATLAS_MEMORY_LIMIT_KIB", "100");
    EXPECT_THAT(features.Error(), HasSubstr("the features of 34 tokens would take "));
  }
  features->SetImageFeatures(5);
  EXPECT_THAT(SizeOf(features.Image(1)), ElementsAre(34, 5));
  const Variable limit("ATLAS_MEMORY_LIMIT_KIB", "100");
  features->SetImageFeatures(2 * D); // what was encoded is kept
  const std::string error = features.Error();
  EXPECT_THAT(error, HasSubstr("the image of 64 features at 34 tokens would take "));
  EXPECT_THAT(error, HasSubstr("choose fewer ImageFeatures"));
}

TEST(DictionaryFeatures, AreEmptyWithoutADictionary)
{
  const LogitsOracle oracle("gpt2");
  Features features(oracle.GetRecording(), "gpt2");
  EXPECT_EQ(TableOf(features.Get())->GetNumberOfRows(), 0);
}

}
