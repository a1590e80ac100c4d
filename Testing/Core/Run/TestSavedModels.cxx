// Models as release 5 of transformers saves them, against what it computes with them. The layout of
// these files is in Testing/Oracle/v5/README.md.

#include "Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "Transformer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
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

constexpr double AttentionTolerance = 2e-5; ///< of attention
constexpr double HiddenTolerance = 2e-4; ///< of hidden states and logits, relative to the largest

struct SavedModel
{
  const char* folder;
  bool isShipped; ///< part of this repository
  friend void PrintTo(const SavedModel& model, std::ostream* stream) { *stream << model.folder; }
};

class SavedModels : public testing::TestWithParam<SavedModel>
{
protected:
  void SetUp() override
  {
    const std::filesystem::path folder =
      AnyOracle(std::filesystem::path("v5") / this->GetParam().folder);
    if (folder.empty())
    {
      ASSERT_FALSE(this->GetParam().isShipped) << "not found";
      GTEST_SKIP() << "not part of this repository, and not beside it";
    }
    this->Expected.emplace(folder / "expected.safetensors");
    this->Model.emplace(Transformer::Read(folder));
  }

  bool Has(const std::string& name) const { return this->Expected->GetTensors().count(name) != 0; }
  const TensorView& Get(const std::string& name) const
  {
    return this->Expected->GetTensors().at(name);
  }

  std::vector<float> Floats(const std::string& name) const
  {
    const TensorView& view = this->Get(name);
    std::vector<float> values(view.Count());
    view.ToFloat(0, view.Count(), values.data());
    return values;
  }

  /// The input whose names begin with `prefix`.
  TransformerInput Input(const std::string& prefix) const
  {
    TransformerInput input;
    if (this->Has(prefix + "pixel_values"))
    {
      input.images = 1;
      input.pixels = this->Floats(prefix + "pixel_values");
      return input;
    }
    const bool hasEncoder = this->Model->GetConfig().encoder != nullptr;
    input.tokens = {
      this->Get(prefix + (hasEncoder ? "decoder_input_ids" : "input_ids")).ToInteger()
    };
    if (this->Has(prefix + "input_features"))
    {
      input.sounds = 1;
      input.features = this->Floats(prefix + "input_features");
    }
    else if (hasEncoder)
    {
      input.source = { this->Get(prefix + "input_ids").ToInteger() };
    }
    return input;
  }

  /// The largest deviation of the weights of a layer from the expected [heads, queries, keys] at
  /// number `first`.
  static double Deviation(
    const Recording& part, std::size_t l, const TensorView& expected, std::uint64_t first)
  {
    const std::size_t axes = expected.shape.size();
    const std::int64_t queries = expected.shape[axes - 2];
    const std::int64_t keys = expected.shape[axes - 1];
    const std::int64_t count = part.SequenceLength(0);
    const std::int64_t firstQuery = count - queries; // of cross attention: behind the source
    double largest = 0;
    for (std::int64_t h = 0; h < expected.shape[axes - 3]; ++h)
    {
      std::vector<float> found(count * count);
      EvaluateAttention(part, 0, static_cast<std::int64_t>(l), h, AttentionQuantity::Weights, 0,
        count, found.data());
      for (std::int64_t q = 0; q < queries; ++q)
      {
        for (std::int64_t k = 0; k < keys; ++k)
        {
          Raise(largest, found[(firstQuery + q) * count + k] - expected.At(first++));
        }
      }
    }
    return largest;
  }

  /// That of a matrix, relative to the largest of all expected values.
  static double Deviation(
    const SharedMatrix& found, const TensorView& expected, std::uint64_t first = 0)
  {
    double scale = 0;
    for (const double value : expected.ToDouble())
    {
      scale = std::max(scale, std::abs(value));
    }
    double largest = 0;
    for (std::int64_t row = 0; row < expected.shape[expected.shape.size() - 2]; ++row)
    {
      for (std::int64_t c = 0; c < found.columns; ++c)
      {
        Raise(largest, static_cast<double>(found.Row(row)[c]) - expected.At(first++));
      }
    }
    return largest / scale;
  }

  static void Raise(double& largest, double difference)
  {
    // Not with std::max, which would lose NaN.
    largest = std::abs(difference) <= largest ? largest : std::abs(difference);
  }

  void ExpectAttention(const Recording& found, const std::string& prefix) const
  {
    if (this->Model->GetConfig().encoder == nullptr)
    {
      for (std::size_t l = 0; l < found.layers.size(); ++l)
      {
        const TensorView& expected = this->Get(prefix + "attention." + std::to_string(l));
        EXPECT_LE(Deviation(found, l, expected, 0), AttentionTolerance) << prefix << " layer " << l;
      }
      return;
    }
    for (const AttentionKind kind :
      { AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross })
    {
      const Recording& part = PartOf(found, kind);
      const TensorView& expected = this->Get(prefix + std::string(Name(kind)) + ".attention");
      for (std::size_t l = 0; l < part.layers.size(); ++l)
      {
        const std::uint64_t size = expected.Count() / part.layers.size();
        EXPECT_LE(Deviation(part, l, expected, l * size), AttentionTolerance)
          << prefix << Name(kind) << " layer " << l;
      }
    }
  }

  std::optional<SafetensorsFile> Expected;
  std::optional<Transformer> Model;
};

INSTANTIATE_TEST_SUITE_P(, SavedModels,
  testing::Values(SavedModel{ "decoder/gpt_neox-a", true },
    SavedModel{ "decoder/qwen3_moe-a", true }, SavedModel{ "encdec/pegasus-a", true },
    SavedModel{ "encdec/whisper-a", false }, SavedModel{ "vision/siglip_vision_model-a", true }),
  [](const auto& test)
  {
    std::string name = test.param.folder;
    std::replace_if(name.begin(), name.end(), [](char c) { return c == '/' || c == '-'; }, '_');
    return name;
  });

TEST_P(SavedModels, ComputeWhatTheOriginalDoes)
{
  RecordOptions options;
  options.residual = true;
  options.logits = this->Model->HasLogits();
  for (const std::string prefix : { "0.", "1." })
  {
    const Recording found = RecordTransformer(*this->Model, this->Input(prefix), options);
    this->ExpectAttention(found, prefix);
    if (this->Has(prefix + "hidden"))
    {
      const TensorView& hidden = this->Get(prefix + "hidden");
      for (std::size_t l = 0; l < found.residual.size(); ++l)
      {
        const std::uint64_t size = hidden.Count() / found.residual.size();
        EXPECT_LE(Deviation(found.residual[l], hidden, l * size), HiddenTolerance)
          << prefix << "hidden " << l;
      }
    }
    ASSERT_EQ(found.logits.IsRecorded(), this->Has(prefix + "logits"));
    if (found.logits.IsRecorded())
    {
      EXPECT_LE(Deviation(found.logits, this->Get(prefix + "logits")), HiddenTolerance) << prefix;
    }
  }
}

TEST_P(SavedModels, HaveNoUnknownSettings)
{
  EXPECT_THAT(this->Model->GetConfig().unknownSettings, testing::IsEmpty());
}

}
