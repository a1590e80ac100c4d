#include "Circuits/DictionaryFeatures.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LogitsOracle.h"
#include "TemporaryDirectory.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

/// Random features of a place in a model.
SparseDictionary Random(const std::string& hook, DictionarySite site, std::int64_t layer,
  std::int64_t inputs, std::int64_t features = 40)
{
  std::srand(17);
  SparseDictionary dictionary;
  dictionary.hook = hook;
  dictionary.site = site;
  dictionary.layer = layer;
  dictionary.encoder = SparseDictionary::Matrix::Random(inputs, features);
  dictionary.decoder = SparseDictionary::Matrix::Random(features, inputs);
  dictionary.bias = Eigen::RowVectorXd::Random(features);
  dictionary.decoderBias = Eigen::RowVectorXd::Random(inputs);
  return dictionary;
}

class OfDictionary : public OfLogits
{
protected:
  const Recording& Run() const { return this->Oracle.GetRecording(); }
  const Transformer& Model() const { return this->Oracle.GetModel(); }
  const TransformerConfig& Config() const { return this->Model().GetConfig(); }

  SparseDictionary Of(DictionarySite site, std::int64_t layer) const
  {
    const std::int64_t inputs = site == DictionarySite::HeadValues
                                  ? this->Config().heads * this->Config().headDimension
                                  : this->Config().modelDimension;
    return Random("test", site, layer, inputs);
  }

  DoubleMatrix Inputs(DictionarySite site, std::int64_t layer, std::int64_t sequence = 1) const
  {
    return DictionaryInputs(this->Run(), this->Model(), this->Of(site, layer), sequence, 2);
  }

  /// Rows of a recorded matrix that are of sequence 1.
  DoubleMatrix Recorded(const SharedMatrix& matrix) const
  {
    const std::int64_t begin = this->Run().sequenceOffsets[1];
    DoubleMatrix rows(this->Run().SequenceLength(1), matrix.columns);
    for (std::int64_t i = 0; i < rows.rows(); ++i)
    {
      rows.row(i) = RowOf(matrix, begin + i);
    }
    return rows;
  }
};

TEST_P(OfDictionary, ValuesThatHeadsMixAreThoseBeforeTheirOutput)
{
  const std::int64_t layer = this->Config().layers - 1;
  const DoubleMatrix z = this->Inputs(DictionarySite::HeadValues, layer);
  const ProcessedAttention attention = this->Stored.Attention(layer);
  const std::int64_t size = this->Config().headDimension;
  for (std::int64_t h = 0; h < this->Config().heads; ++h)
  {
    const DoubleMatrix written = z.middleCols(h * size, size) * attention.heads[h].output;
    const DoubleMatrix expected = this->Recorded(FindHead(this->Run(), layer, h).output);
    EXPECT_LE((written - expected).cwiseAbs().maxCoeff(), 1e-5 * expected.cwiseAbs().maxCoeff());
  }
}

TEST_P(OfDictionary, StreamsAreThoseOfTheRecording)
{
  const DoubleMatrix before = this->Inputs(DictionarySite::StreamBefore, 0);
  EXPECT_EQ(before, this->Recorded(this->Run().residual[0]));
  EXPECT_EQ(this->Inputs(DictionarySite::StreamAfter, 0), this->Recorded(this->Run().residual[1]));
  const DoubleMatrix between = this->Inputs(DictionarySite::StreamBetween, 0);
  EXPECT_LE((between - before - this->Inputs(DictionarySite::AttentionOutput, 0)).norm(),
    1e-12 * between.norm());
  if (this->Config().mlpDimension == 0)
  {
    const DoubleMatrix after = this->Recorded(this->Run().residual[1]);
    EXPECT_LE((between - after).norm(), 1e-6 * after.norm());
  }
}

TEST_P(OfDictionary, StepsLeaveOutBiasesAndMeans)
{
  SparseDictionary dictionary = this->Of(DictionarySite::HeadValues, 1);
  const DoubleMatrix z = DictionaryInputs(this->Run(), this->Model(), dictionary, 1);
  dictionary.steps = { true, true, true };
  const DoubleMatrix folded = DictionaryInputs(this->Run(), this->Model(), dictionary, 1);
  const std::int64_t size = this->Config().headDimension;
  const ProcessedAttention attention = this->Processed.Attention(1);
  for (std::int64_t h = 0; h < this->Config().heads; ++h)
  {
    const DoubleMatrix left = (z - folded).middleCols(h * size, size);
    EXPECT_LE((left.rowwise() - attention.heads[h].foldedBias).norm(), 1e-12 * (1 + z.norm()));
  }
  dictionary = this->Of(DictionarySite::StreamBefore, 1);
  dictionary.steps.centersWriting = true;
  const DoubleMatrix stream = DictionaryInputs(this->Run(), this->Model(), dictionary, 1);
  const double mean = stream.rowwise().mean().cwiseAbs().maxCoeff();
  if (this->Config().norm == NormKind::LayerNorm &&
      this->Config().position != PositionKind::Shortformer)
  {
    EXPECT_LE(mean, 1e-12 * stream.norm());
  }
  else // nothing is subtracted
  {
    EXPECT_GT(mean, 1e-6 * stream.norm());
    EXPECT_EQ(stream, this->Recorded(this->Run().residual[1]));
  }
}

TEST_P(OfDictionary, PartsAddUpToTheMeanOfTheFeature)
{
  for (const DictionarySite site : { DictionarySite::HeadValues, DictionarySite::AttentionOutput,
         DictionarySite::StreamBefore, DictionarySite::StreamBetween })
  {
    for (const DictionaryNorm norm :
      { DictionaryNorm::None, DictionaryNorm::LayerNorm, DictionaryNorm::Constant })
    {
      SparseDictionary dictionary = this->Of(site, 1);
      dictionary.norm = norm;
      dictionary.steps = { true, true, true };
      const DoubleMatrix vectors = DictionaryInputs(this->Run(), this->Model(), dictionary, 1);
      const SparseCode code = Encode(dictionary, vectors);
      const std::int32_t feature = code.active[3].front().feature; // the strongest somewhere
      std::vector<std::int64_t> rows;
      DoubleMatrix active(vectors.rows(), vectors.cols());
      double mean = 0;
      for (std::size_t t = 0; t < code.active.size(); ++t)
      {
        for (const ActiveFeature& item : code.active[t])
        {
          if (item.feature == feature)
          {
            active.row(static_cast<std::int64_t>(rows.size())) =
              vectors.row(static_cast<std::int64_t>(t));
            rows.push_back(this->Run().sequenceOffsets[1] + static_cast<std::int64_t>(t));
            mean += item.value;
          }
        }
      }
      ASSERT_FALSE(rows.empty());
      mean /= static_cast<double>(rows.size());
      active.conservativeResize(static_cast<std::int64_t>(rows.size()), active.cols());
      const std::vector<FeaturePart> parts =
        SplitFeature(this->Run(), this->Model(), dictionary, feature, rows, active, 2);
      double sum = 0;
      double share = 0;
      for (const FeaturePart& part : parts)
      {
        sum += std::isnan(part.contribution) ? 0 : part.contribution;
        share += std::isnan(part.share) ? 0 : part.share;
        for (const double reading : part.reading)
        {
          EXPECT_TRUE(std::isnan(reading) || (reading >= 0 && reading <= 1 + 1e-12));
          // Only heads after it read it; the first ones do not read what layer 1 writes.
          EXPECT_EQ(std::isnan(reading),
            part.head < 0 || part.layer < (site == DictionarySite::StreamBefore ? 1 : 2));
        }
      }
      EXPECT_NEAR(sum, mean, 1e-10 * (1 + std::abs(mean)));
      EXPECT_NEAR(share, site == DictionarySite::HeadValues ? 1 : 0, 1e-12);
    }
  }
}

TEST_P(OfDictionary, LogitsOfATokensDirectionAreThoseOfItsColumn)
{
  if (!this->Model().HasLogits())
  {
    GTEST_SKIP() << "no logits";
  }
  SparseDictionary dictionary = this->Of(DictionarySite::StreamBefore, 1);
  dictionary.decoder.row(2) = this->Processed.UnembeddingColumns(5, 6).row(0).cast<float>();
  LargestProductOptions options;
  options.top = 3;
  const FeatureLogits found = FindFeatureLogits(this->Model(), dictionary, 2, options);
  ASSERT_EQ(found.highest.size(), 3U);
  ASSERT_EQ(found.lowest.size(), 3U);
  const DoubleMatrix all =
    this->Processed.UnembeddingColumns(0, this->Processed.OutputVocabulary());
  const Eigen::VectorXd products = all * all.row(5).transpose();
  EXPECT_NEAR(
    static_cast<double>(found.highest[0].logit), products.maxCoeff(), 1e-5 * products.maxCoeff());
  EXPECT_NEAR(
    static_cast<double>(found.lowest[0].logit), products.minCoeff(), 1e-5 * products.maxCoeff());
  EXPECT_LE(found.lowest[0].logit, found.lowest[1].logit);
}

INSTANTIATE_TEST_SUITE_P(Models, OfDictionary, OfDictionary::Models(), OfDictionary::Name);

TEST(DictionaryFeatures, RefuseModelsInWhichTheyAreSomethingElse)
{
  const auto refused = [](const std::string& name, DictionarySite site)
  {
    const Transformer model =
      Transformer::Read(std::filesystem::path(ATLAS_ORACLE_DIR) / "models" / "transformers" / name);
    return MessageOf<ModelError>(
      [&] { CheckDictionary(model, Random("a hook", site, 0, model.GetConfig().modelDimension)); });
  };
  EXPECT_THAT(refused("gemma2", DictionarySite::AttentionOutput),
    AllOf(HasSubstr("Dictionary of a hook"), HasSubstr("normalizations")));
  EXPECT_THAT(refused("gpt_neox", DictionarySite::StreamBetween), HasSubstr("in parallel"));
  EXPECT_THAT(refused("whisper", DictionarySite::StreamBefore), HasSubstr("encoder"));
  EXPECT_THAT(refused("distilbert", DictionarySite::StreamBetween), HasSubstr("come before"));
}

/// TransformerLens folds and centers nothing with shortformer positions, whatever it is asked for.
TEST(DictionaryFeatures, CenterNothingWithShortformerPositions)
{
  const TemporaryDirectory folder;
  const std::filesystem::path plain = TransformerOracle::Folder("attn-only-shortformer");
  for (const char* file : { "model.safetensors", "config.json" })
  {
    std::filesystem::copy_file(plain / file, folder / file);
  }
  std::string config = ReadBytes(plain / "config.json");
  config.replace(config.find("null"), 4, "\"LNPre\"");
  WriteBytes(folder / "config.json", config);
  const Transformer model = Transformer::Read(folder.Path());
  ASSERT_EQ(model.GetConfig().norm, NormKind::LayerNorm);
  const Recording recording = LogitsOracle::Run(model, "attn-only-shortformer"); // with its tokens
  SparseDictionary dictionary = Random("x", DictionarySite::StreamBefore, 1, 32);
  const DoubleMatrix stored = DictionaryInputs(recording, model, dictionary, 0);
  ASSERT_GT(stored.rowwise().mean().cwiseAbs().maxCoeff(), 1e-3);
  const auto readings = [&](const SparseDictionary& of)
  { return SplitFeature(recording, model, of, 0, {}, {})[model.GetConfig().heads].reading; };
  const std::array<double, 3> before = readings(dictionary);
  dictionary.steps = { true, true, true };
  EXPECT_EQ(DictionaryInputs(recording, model, dictionary, 0), stored);
  EXPECT_EQ(readings(dictionary), before);
  // Of the stored weights, d W_V W_O is as long as what the head writes for it.
  const ProcessedWeights weights(model, WeightSteps::Stored);
  const ProcessedHead head = weights.Attention(1).heads[0];
  const DoubleMatrix product = head.value * head.output;
  const Eigen::RowVectorXd d = dictionary.decoder.row(0).cast<double>();
  EXPECT_NEAR(before[2], (d * product).norm() / (d.norm() * product.norm()), 1e-10);
}

/// With processed weights, what is written has no mean, so that of the decoder does not matter.
TEST(DictionaryFeatures, ReadingsLeaveOutMeans)
{
  const LogitsOracle oracle("gpt2");
  SparseDictionary dictionary = Random("x", DictionarySite::StreamBefore, 1, 32);
  const auto readings = [&]
  {
    return SplitFeature(oracle.GetRecording(), oracle.GetModel(), dictionary, 0, {}, {})[4].reading;
  };
  const std::array<double, 3> before = readings();
  dictionary.decoder.row(0).array() += 8;
  const std::array<double, 3> after = readings();
  for (std::size_t kind = 0; kind < before.size(); ++kind)
  {
    EXPECT_GT(before[kind], 0);
    EXPECT_NEAR(after[kind], before[kind], 1e-5 * before[kind]);
  }
}

TEST(DictionaryFeatures, NameWhatIsNotRecorded)
{
  const LogitsOracle oracle("gpt2");
  const SparseDictionary ofValues =
    Random("z", DictionarySite::HeadValues, 0, oracle.GetModel().GetConfig().modelDimension);
  Recording recording = oracle.GetRecording();
  recording.layers[0].heads[1].value = {};
  EXPECT_THAT(
    MessageOf<OptionError>([&] { DictionaryInputs(recording, oracle.GetModel(), ofValues, 0); }),
    HasSubstr("values of all heads of layer 0, found 3 of 4; record Values of this layer and all "
              "its heads."));
  recording.layers.clear();
  EXPECT_THAT(
    MessageOf<OptionError>([&] { DictionaryInputs(recording, oracle.GetModel(), ofValues, 0); }),
    HasSubstr("found 0 of 4; record Values"));
  recording.residual.clear();
  EXPECT_THAT(MessageOf<OptionError>(
                [&]
                {
                  DictionaryInputs(recording, oracle.GetModel(),
                    Random("x", DictionarySite::StreamBefore, 1, ofValues.Inputs()), 0);
                }),
    HasSubstr("the residual stream before layer 1, found none; record Residual"));
  EXPECT_THAT(MessageOf<OptionError>([&]
                { SplitFeature(oracle.GetRecording(), oracle.GetModel(), ofValues, 40, {}, {}); }),
    HasSubstr("Feature"));
}

}
