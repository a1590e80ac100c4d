#include "Weights/ArchitectureLimits.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

using Switch = ArchitectureSwitch;

TransformerConfig Parse(const std::string& type, const std::string& more = "")
{
  return ParseTransformerConfig(R"({"model_type": ")" + type +
                                  R"(", "hidden_size": 16, "num_attention_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": 20, "vocab_size": 7)" +
                                  more + "}",
    "config.json");
}

TEST(ArchitectureLimits, TheFirstTransformersHaveNoSwitches)
{
  EXPECT_THAT(SwitchesOf(Parse("llama")), IsEmpty());
  EXPECT_THAT(SwitchesOf(Parse("bert")), IsEmpty());
  EXPECT_THAT(SwitchesOf(Parse("vit")), IsEmpty());
  EXPECT_THAT(SwitchesOf(Parse("qwen2")), IsEmpty());
}

TEST(ArchitectureLimits, SwitchesOfTodaysModels)
{
  EXPECT_THAT(
    SwitchesOf(Parse("gpt_neox")), ElementsAre(Switch::Parallel, Switch::PartialRotation));
  EXPECT_THAT(SwitchesOf(Parse("gemma2")),
    ElementsAre(Switch::NormsAfterToo, Switch::GainOffset, Switch::ScoreCap, Switch::LogitCap,
      Switch::Windows, Switch::EmbeddingScale));
  EXPECT_THAT(
    SwitchesOf(Parse("mistral", R"(, "sliding_window": 4)")), ElementsAre(Switch::Windows));
  EXPECT_THAT(SwitchesOf(Parse("gpt_oss", R"(, "num_local_experts": 4)")),
    ElementsAre(Switch::Windows, Switch::Sinks, Switch::Experts));
  EXPECT_THAT(SwitchesOf(Parse("mixtral")), ElementsAre(Switch::Experts));
  EXPECT_THAT(SwitchesOf(Parse("olmoe", R"(, "clip_qkv": 8.0)")),
    ElementsAre(Switch::QueryKeyNorms, Switch::ProjectionClip, Switch::Experts));
  EXPECT_THAT(
    SwitchesOf(Parse("deepseek_v2", R"(, "kv_lora_rank": 5, "qk_nope_head_dim": 4, "v_head_dim": 3,
      "qk_rope_head_dim": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 6)")),
    ElementsAre(
      Switch::PartialRotation, Switch::NeighborRotation, Switch::Experts, Switch::LatentAttention));
  EXPECT_THAT(SwitchesOf(Parse("olmo", R"(, "clip_qkv": 8.0)")),
    ElementsAre(Switch::NormsWithoutWeights, Switch::ProjectionClip));
  EXPECT_THAT(SwitchesOf(Parse("roberta")), ElementsAre(Switch::ShiftedPositions));
  EXPECT_THAT(
    SwitchesOf(Parse("olmo2")), ElementsAre(Switch::NormsAfterToo, Switch::QueryKeyNorms));
  EXPECT_THAT(SwitchesOf(Parse("cohere2", R"(, "sliding_window": 4, "sliding_window_pattern": 2)")),
    ElementsAre(Switch::Parallel, Switch::NeighborRotation, Switch::RotationByLayer,
      Switch::LogitScale, Switch::Windows));
  EXPECT_THAT(
    SwitchesOf(Parse("bitnet", R"(, "num_key_value_heads": 2)")), ElementsAre(Switch::NormsInside));
  EXPECT_THAT(SwitchesOf(Parse("modernbert-decoder")),
    ElementsAre(Switch::FirstUnnormed, Switch::RotationByLayer, Switch::Windows));
  EXPECT_THAT(SwitchesOf(Parse("falcon", R"(, "alibi": true)")),
    ElementsAre(Switch::Parallel, Switch::SlopeVariant));
  EXPECT_THAT(SwitchesOf(Parse("apertus", R"(, "rope_parameters": {"rope_type": "default"})")),
    ElementsAre(Switch::QueryKeyNorms, Switch::XieluActivation));
  EXPECT_THAT(SwitchesOf(Parse("dinov2_with_registers", R"(, "image_size": 32)")),
    ElementsAre(Switch::LayerScales, Switch::MoreImageTokens));
  EXPECT_THAT(SwitchesOf(Parse("bart", R"(, "d_model": 16, "encoder_layers": 2,
      "encoder_attention_heads": 2, "decoder_layers": 2, "decoder_attention_heads": 2)")),
    ElementsAre(Switch::Encoder, Switch::ShiftedPositions));
  EXPECT_THAT(SwitchesOf(Parse("smolvlm", R"(, "image_token_id": 5, "scale_factor": 1)")),
    ElementsAre(Switch::Encoder));
  EXPECT_THAT(SwitchesOf(Parse("lfm2", R"(, "num_key_value_heads": 2, "full_attn_idxs": [1])")),
    ElementsAre(Switch::QueryKeyNorms, Switch::Mixers));
  EXPECT_THAT(SwitchesOf(Parse("qwen3_5_text", R"(, "num_key_value_heads": 2)")),
    ElementsAre(Switch::QueryKeyNorms, Switch::GainOffset, Switch::PartialRotation, Switch::Mixers,
      Switch::OutputGate));
}

TEST(ArchitectureLimits, WhatIsNotKnownIsRefusedByName)
{
  const TransformerConfig config = Parse("gpt_neox");
  EXPECT_EQ(MessageOf<ModelError>([&] { RequireNoSwitches(config, "training"); }),
    "training: expected a model without attention and MLP in parallel, found gpt_neox.");
  EXPECT_EQ(
    MessageOf<ModelError>([&] { RefuseSwitches(config, "rotating", { Switch::PartialRotation }); }),
    "rotating: expected a model without a rotary embedding of a part of each head, found "
    "gpt_neox.");
  RefuseSwitches(config, "rotating", { Switch::NeighborRotation, Switch::Sinks });
  RequireNoSwitches(Parse("llama"), "training");
  EXPECT_TRUE(HasSwitch(config, { Switch::Sinks, Switch::Parallel }));
  EXPECT_FALSE(HasSwitch(config, { Switch::Sinks }));
}

}
