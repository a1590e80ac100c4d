#include "Weights/TransformerWeights.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TransformerOracle.h"
#include "Weights/Transformer.h"

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A model of the oracle whose token embedding is its unembedding too, and all names that the code
/// of transformers has for it (_tied_weights_keys), the first of them as in the file.
struct TiedModel
{
  std::string folder;
  std::vector<std::string> names;

  std::filesystem::path Path() const
  {
    const std::filesystem::path plain = TransformerOracle::Folder(this->folder);
    return std::filesystem::exists(plain) ? plain : ModelsOracle("transformers/" + this->folder);
  }
  friend void PrintTo(const TiedModel& model, std::ostream* stream) { *stream << model.folder; }
};

const std::vector<TiedModel> Models = {
  { "bart", { "model.shared.weight", "model.encoder.embed_tokens.weight",
              "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "bloom", { "transformer.word_embeddings.weight", "lm_head.weight" } },
  { "distilbert", { "distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight" } },
  { "gemma2", { "model.embed_tokens.weight", "lm_head.weight" } },
  { "gemma3-v5", { "model.embed_tokens.weight", "lm_head.weight" } },
  { "gpt2", { "transformer.wte.weight", "lm_head.weight" } },
  { "marian", { "model.shared.weight", "model.encoder.embed_tokens.weight",
                "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "marian-two", { "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "mbart", { "model.shared.weight", "model.encoder.embed_tokens.weight",
               "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "olmo", { "model.embed_tokens.weight", "lm_head.weight" } },
  { "opt-proj", { "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "pegasus", { "model.shared.weight", "model.encoder.embed_tokens.weight",
                 "model.decoder.embed_tokens.weight", "lm_head.weight" } },
  { "qwen2-tied", { "model.embed_tokens.weight", "lm_head.weight" } },
  { "qwen3-v5", { "model.embed_tokens.weight", "lm_head.weight" } },
  { "t5", { "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
            "lm_head.weight" } },
  { "whisper", { "model.decoder.embed_tokens.weight", "proj_out.weight" } },
};

/// The files of a model, changed and written to a folder of their own.
struct ChangedModel
{
  explicit ChangedModel(const std::filesystem::path& path)
    : all(CopyTensors(SafetensorsFile(path / WeightsFile).GetTensors()))
  {
    std::filesystem::copy(path / ConfigFile, this->folder / ConfigFile);
  }

  Transformer Read(const Tensors& tensors, const Metadata& metadata = {}) const
  {
    WriteSafetensors(this->folder / WeightsFile, tensors, metadata);
    return Transformer::Read(this->folder.Path());
  }

  TemporaryDirectory folder;
  Tensors all;
};

class Tied : public testing::TestWithParam<TiedModel>
{
protected:
  ChangedModel Model{ GetParam().Path() };
  const Tensors& All = this->Model.all;

  /// The same model with other names has the same embeddings.
  void ExpectSame(const Transformer& model) const
  {
    const TensorView embedding = this->All.at(this->GetParam().names.front()).View();
    EXPECT_EQ(model.GetWeights().tokenEmbedding.ToDouble(), embedding.ToDouble());
    EXPECT_EQ(model.GetWeights().unembedding.weight.ToDouble(), embedding.ToDouble());
    EXPECT_THAT(model.GetWeights().unused, IsEmpty());
    const auto& encoder = model.GetWeights().encoder;
    if (encoder != nullptr && this->GetParam().names.size() > 2)
    {
      EXPECT_EQ(encoder->tokenEmbedding.ToDouble(), embedding.ToDouble());
    }
  }
};

TEST_P(Tied, EachNameServesAlone)
{
  const std::vector<std::string>& names = this->GetParam().names;
  for (const std::string& name : names)
  {
    SCOPED_TRACE(name);
    Tensors renamed = this->All;
    renamed.erase(names.front());
    renamed[name] = this->All.at(names.front());
    this->ExpectSame(this->Model.Read(renamed));
    // safetensors' save_model writes which names it left out.
    Metadata aliases = { { "format", "pt" } };
    for (const std::string& other : names)
    {
      if (other != name)
      {
        aliases[other] = name;
      }
    }
    this->ExpectSame(this->Model.Read(renamed, aliases));
  }
}

TEST_P(Tied, IndexMayListNamesThatNoShardHas)
{
  const std::vector<std::string>& names = this->GetParam().names;
  WriteSafetensors(this->Model.folder / "one.safetensors", this->All, {});
  std::string map;
  for (const auto& [name, tensor] : this->All)
  {
    map += "\"" + name + "\": \"one.safetensors\", ";
  }
  for (std::size_t i = 1; i < names.size(); ++i)
  {
    map += "\"" + names[i] + "\": \"one.safetensors\", ";
  }
  const auto read = [&](const std::string& more)
  {
    WriteBytes(this->Model.folder / ShardIndexFile,
      "{\"weight_map\": {" + map + "\"" + more + "\": \"one.safetensors\"}}");
    return Transformer::Read(this->Model.folder.Path());
  };
  this->ExpectSame(read("layers.0.rotary_emb.inv_freq")); // a buffer, which older files have
  EXPECT_THAT(MessageOf<ModelError>([&] { read("something.else.weight"); }),
    HasSubstr("one.safetensors: tensor 'something.else.weight' is missing, although the index of "
              "shards lists it."));
}

INSTANTIATE_TEST_SUITE_P(
  Oracle, Tied, ValuesIn(Models), [](const auto& model) { return TestName(model.param.folder); });

/// The decoder's embedding is not taken from an encoder that has one of its own.
TEST(TiedWeights, EmbeddingsOfTwoVocabulariesAreToldApart)
{
  const ChangedModel changed(ModelsOracle("transformers/marian-two"));
  Tensors tensors = changed.all;
  const Tensor encoder = tensors.at("model.encoder.embed_tokens.weight");
  const Tensor decoder = tensors.at("model.decoder.embed_tokens.weight");
  tensors["lm_head.weight"] = decoder;
  tensors.erase("model.decoder.embed_tokens.weight");
  const Transformer model = changed.Read(tensors);
  EXPECT_EQ(model.GetWeights().tokenEmbedding.ToDouble(), decoder.View().ToDouble());
  EXPECT_EQ(model.GetWeights().encoder->tokenEmbedding.ToDouble(), encoder.View().ToDouble());
}

/// An unembedding is no embedding where they are not tied.
TEST(TiedWeights, EmbeddingThatIsNotTiedIsMissed)
{
  for (const std::string name : { "gpt_neox", "t5-v1_1" })
  {
    const ChangedModel changed(ModelsOracle("transformers/" + name));
    Tensors tensors = changed.all;
    const std::string embedding = name == "gpt_neox" ? "gpt_neox.embed_in.weight" : "shared.weight";
    tensors.erase(embedding);
    EXPECT_THAT(MessageOf<ModelError>([&] { changed.Read(tensors); }),
      HasSubstr("tensor '" + embedding + "' is missing"));
  }
}

/// The bias of the head that predicts masked words has two names, too.
TEST(TiedWeights, EachNameOfABiasServes)
{
  struct Case
  {
    std::string folder;
    std::string prefix;
    std::vector<std::string> weights;
    std::vector<std::string> biases;
    std::vector<std::string> head; // the transformation, its normalization
  };
  for (const Case& one :
    { Case{ "bert", "bert.",
        { "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight" },
        { "cls.predictions.bias", "cls.predictions.decoder.bias" },
        { "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm" } },
      Case{ "roberta", "roberta.",
        { "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight" },
        { "lm_head.bias", "lm_head.decoder.bias" }, { "lm_head.dense", "lm_head.layer_norm" } } })
  {
    SCOPED_TRACE(one.folder);
    const ChangedModel changed(TiedModel{ one.folder, {} }.Path());
    Tensors tensors;
    for (const auto& [name, tensor] : changed.all)
    {
      tensors[one.prefix + name] = tensor;
    }
    const Tensor embedding = tensors.at(one.weights.front());
    const std::int64_t d = embedding.shape[1];
    const auto zeros = [](const Shape& shape, double value)
    {
      return Tensor::FromDouble(
        DType::F32, shape, std::vector<double>(ElementCount(shape).value(), value));
    };
    tensors[one.head[0] + ".weight"] = zeros({ d, d }, 0.5);
    tensors[one.head[0] + ".bias"] = zeros({ d }, 0.25);
    tensors[one.head[1] + ".weight"] = zeros({ d }, 1);
    tensors[one.head[1] + ".bias"] = zeros({ d }, 0);
    for (const std::string& weight : one.weights)
    {
      for (const std::string& bias : one.biases)
      {
        SCOPED_TRACE(weight + ", " + bias);
        Tensors renamed = tensors;
        renamed.erase(one.weights.front());
        renamed[weight] = embedding;
        renamed[bias] = zeros({ embedding.shape[0] }, 0.75);
        const Transformer model = changed.Read(renamed);
        const TransformerWeights& weights = model.GetWeights();
        EXPECT_EQ(weights.tokenEmbedding.ToDouble(), embedding.View().ToDouble());
        EXPECT_EQ(weights.unembedding.weight.ToDouble(), embedding.View().ToDouble());
        ASSERT_NE(weights.unembedding.bias.data, nullptr);
        EXPECT_EQ(weights.unembedding.bias.At(0), 0.75);
      }
    }
  }
}

}
