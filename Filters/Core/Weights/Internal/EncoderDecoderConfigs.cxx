#include "ActivationNames.h"
#include "ArchitectureConfigs.h"
#include "ArchitectureRows.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"

#include <array>
#include <cmath>
#include <memory>
#include <utility>

namespace atlas
{
namespace
{

/// The longest distance with a bias of its own that is read; T5 has 128.
constexpr std::int64_t LongestDistance = 65'536;

/// Settings of one of the two stacks.
struct StackKeys
{
  const char* layers;
  const char* heads;
  const char* mlp;
};
constexpr StackKeys EncoderKeys = { "encoder_layers", "encoder_attention_heads",
  "encoder_ffn_dim" };
constexpr StackKeys DecoderKeys = { "decoder_layers", "decoder_attention_heads",
  "decoder_ffn_dim" };

/// What both stacks of BART and its descendants share.
TransformerConfig ParseStack(const Settings& settings, const StackKeys& keys)
{
  // Files repeat the encoder's sizes under the names of other models. Those of the first releases
  // say what each model has anyway.
  settings.Ignore({ "num_hidden_layers", "num_attention_heads", "hidden_size", "normalize_before",
    "normalize_embedding", "add_final_layer_norm", "static_position_embeddings", "add_bias_logits",
    "extra_pos_embeddings" });
  TransformerConfig config =
    ParseSizes(settings, { keys.layers }, { keys.heads }, { "d_model" }, { keys.mlp });
  config.architecture = settings.Text({ "model_type" }, "");
  config.activation = settings.Choice({ "activation_function" }, "gelu", ActivationNames);
  config.lastResidualIsNormed = true;
  return config;
}

/// Attaches the encoder: bidirectional mask, no unembedding.
TransformerConfig Join(TransformerConfig encoder, TransformerConfig decoder)
{
  encoder.mask = AttentionMask::Bidirectional;
  encoder.tiedUnembedding = false;
  decoder.encoder = std::make_shared<const TransformerConfig>(std::move(encoder));
  return decoder;
}

/// The token with which the decoder's texts begin, by default `otherwise` if there is such a token.
std::int64_t ParseStart(const Settings& settings, std::int64_t vocabulary, std::int64_t otherwise)
{
  const char* key = "decoder_start_token_id";
  if (settings.Has({ key }))
  {
    return settings.Signed({ key }, 0, 0, vocabulary - 1);
  }
  return otherwise < vocabulary ? otherwise : -1;
}

/// A decoder with its encoder, its setting of a tied unembedding and the token that begins texts.
TransformerConfig JoinText(const Settings& settings, TransformerConfig encoder,
  TransformerConfig decoder, std::int64_t start)
{
  decoder.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  decoder.decoderStart = ParseStart(settings, decoder.vocabulary, start);
  return Join(std::move(encoder), std::move(decoder));
}

/// Reads what T5 calls feed_forward_proj: an activation, perhaps gated. The original sets
/// dense_act_fn and is_gated_act by it, but takes those of a file.
void ParseT5Mlp(TransformerConfig& config, const Settings& settings, const char* otherwise)
{
  struct Kind
  {
    bool gated;
    Activation activation;
  };
  constexpr std::array<Named<Kind>, 9> kinds = { {
    { "gated-gelu", { true, Activation::GeluTanh } },
    { "gated-relu", { true, Activation::Relu } },
    { "gated-silu", { true, Activation::Silu } },
    { "gated-swish", { true, Activation::Silu } },
    { "gelu", { false, Activation::Gelu } },
    { "gelu_new", { false, Activation::GeluTanh } },
    { "relu", { false, Activation::Relu } },
    { "silu", { false, Activation::Silu } },
    { "swish", { false, Activation::Silu } },
  } };
  const Kind kind = settings.Choice({ "feed_forward_proj" }, otherwise, kinds);
  config.gated = settings.Flag({ "is_gated_act" }, kind.gated);
  config.activation = settings.Has({ "dense_act_fn" })
                        ? settings.Choice({ "dense_act_fn" }, "", ActivationNames)
                        : kind.activation;
}

/// Whether logits are scaled as those of T5 are whose unembedding is its embedding. Since releases
/// 5 of the original, files of T5 say so, as they call all of its models tied; mT5 is tied there,
/// too, and never scaled.
bool ScalesLogits(const Settings& settings, bool isTied)
{
  if (settings.Text({ "model_type" }, "") != "mt5")
  {
    return settings.Flag({ "scale_decoder_outputs" }, isTied);
  }
  const std::string version = settings.Text({ "transformers_version" }, "");
  return isTied && (version.empty() || version.compare(0, 2, "4.") == 0);
}

/// The buckets of distances; each direction needs two at least, and longer distances than those
/// that have a bucket of their own.
void ParseDistances(TransformerConfig& config, const Settings& settings)
{
  constexpr std::int64_t fewest = 4;
  config.position = PositionKind::Relative;
  config.relativeBuckets =
    settings.Signed({ "relative_attention_num_buckets" }, 32, fewest, LongestDistance);
  config.relativeDistance =
    settings.Signed({ "relative_attention_max_distance" }, 128, 1, LongestDistance);
  settings.FailIf(config.relativeDistance <= config.relativeBuckets / 2,
    "expected 'relative_attention_max_distance' to be above half of "
    "'relative_attention_num_buckets', found ",
    config.relativeDistance, " and ", config.relativeBuckets, ".");
}

/// What T5, mT5 and uMT5 share but for what their files may leave out.
TransformerConfig ParseT5s(
  const Settings& settings, const char* mlp, bool isTied, bool biasByLayer = false)
{
  settings.Ignore({ "n_positions" }); // there is no limit
  TransformerConfig encoder;
  encoder.architecture = settings.Text({ "model_type" }, "");
  encoder.layers = settings.Size({ "num_layers" });
  encoder.heads = settings.Size({ "num_heads" });
  encoder.keyHeads = encoder.heads;
  encoder.headDimension = settings.Size({ "d_kv" }, 64);
  encoder.modelDimension = settings.Size({ "d_model" });
  encoder.mlpDimension = settings.Size({ "d_ff" }, 2048);
  encoder.vocabulary = settings.Size({ "vocab_size" });
  encoder.norm = NormKind::RmsNorm;
  encoder.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-6, true);
  encoder.lastResidualIsNormed = true;
  encoder.attentionScale = 1;
  encoder.inputBias = encoder.outputBias = encoder.mlpBias = false;
  ParseT5Mlp(encoder, settings, mlp);
  ParseDistances(encoder, settings);
  encoder.biasByLayer = biasByLayer;
  TransformerConfig decoder = encoder;
  decoder.layers = settings.Size({ "num_decoder_layers" }, encoder.layers);
  decoder.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, isTied);
  if (ScalesLogits(settings, decoder.tiedUnembedding))
  {
    decoder.logitScale = 1 / std::sqrt(static_cast<double>(decoder.modelDimension));
  }
  const std::int64_t padding = settings.Signed({ "pad_token_id" }, 0);
  decoder.decoderStart = ParseStart(settings, decoder.vocabulary, padding);
  return Join(std::move(encoder), std::move(decoder));
}

/// How BART and its descendants differ.
struct PairFamily
{
  bool isBart;             ///< positions begin in row 2, and embeddings are normalized
  bool isSinusoidal;       ///< positions are computed
  bool hasNormsAfter;      ///< normalizations are after the sublayers, and none is behind the last
  bool hasTwoVocabularies; ///< the decoder may have one of its own
  std::int64_t start;      ///< the token with which the decoder's texts begin
};

TransformerConfig ParsePair(const Settings& settings, const PairFamily& family)
{
  const auto parse = [&](const StackKeys& keys)
  {
    TransformerConfig config = ParseStack(settings, keys);
    config.vocabulary = settings.Size({ "vocab_size" });
    config.positions = settings.Size({ "max_position_embeddings" }, 1024);
    if (settings.Flag({ "scale_embedding" }, false))
    {
      config.embeddingScale = std::sqrt(static_cast<double>(config.modelDimension));
    }
    config.firstPosition = family.isBart ? 2 : 0;
    config.embeddingNorm = family.isBart;
    config.position = family.isSinusoidal ? PositionKind::Sinusoidal : PositionKind::Learned;
    config.normPlace = family.hasNormsAfter ? NormPlace::AfterSublayer : NormPlace::BeforeSublayer;
    config.finalNorm = !family.hasNormsAfter;
    return config;
  };
  TransformerConfig decoder = parse(DecoderKeys);
  if (family.hasTwoVocabularies)
  {
    settings.Ignore({ "decoder_vocab_size" }); // of a shared embedding
    if (!settings.Flag({ "share_encoder_decoder_embeddings" }, true))
    {
      decoder.vocabulary = settings.Size({ "decoder_vocab_size" }, decoder.vocabulary);
    }
  }
  return JoinText(settings, parse(EncoderKeys), std::move(decoder), family.start);
}

}

TransformerConfig ParseT5(const Settings& settings)
{
  return ParseT5s(settings, "relu", true);
}

TransformerConfig ParseMT5(const Settings& settings)
{
  return ParseT5s(settings, "gated-gelu", false);
}

/// As mT5, but each layer has its own biases of distances.
TransformerConfig ParseUMT5(const Settings& settings)
{
  return ParseT5s(settings, "gated-gelu", true, true);
}

TransformerConfig ParseBart(const Settings& settings)
{
  return ParsePair(settings, { true, false, true, false, 2 });
}

TransformerConfig ParseMBart(const Settings& settings)
{
  return ParsePair(settings, { true, false, false, false, -1 }); // it begins with a language
}

TransformerConfig ParsePegasus(const Settings& settings)
{
  return ParsePair(settings, { false, true, false, false, 0 });
}

TransformerConfig ParseBlenderbot(const Settings& settings)
{
  return ParsePair(settings, { false, false, false, false, 1 });
}

/// M2M-100 and NLLB: sines of positions that begin after the padding.
TransformerConfig ParseM2M100(const Settings& settings)
{
  const auto parse = [&](const StackKeys& keys)
  {
    TransformerConfig config = ParseStack(settings, keys);
    settings.Ignore({ "max_position_embeddings" }); // there is no limit
    config.activation = settings.Choice({ "activation_function" }, "relu", ActivationNames);
    config.vocabulary = settings.Size({ "vocab_size" });
    if (settings.Flag({ "scale_embedding" }, true))
    {
      config.embeddingScale = std::sqrt(static_cast<double>(config.modelDimension));
    }
    config.paddingToken = settings.Signed({ "pad_token_id" }, 1);
    config.firstPosition = config.paddingToken + 1;
    config.position = PositionKind::Sinusoidal;
    config.endsSinusoids = true;
    return config;
  };
  return JoinText(settings, parse(EncoderKeys), parse(DecoderKeys), 2);
}

/// T5Gemma: both stacks are those of Gemma 2, that of the source with windows on both sides.
TransformerConfig ParseT5Gemma(const Settings& settings)
{
  const auto parse = [&](const char* key)
  {
    TransformerConfig config = ParseByRow(settings.NestedOrEmpty({ key }), "_t5gemma");
    config.architecture = "t5gemma";
    return config;
  };
  TransformerConfig encoder = parse("encoder");
  for (std::int64_t& window : encoder.windows)
  {
    window += window > 0 ? 1 : 0; // keys at this distance are within it
  }
  return JoinText(settings, std::move(encoder), parse("decoder"), -1);
}

TransformerConfig ParseMarian(const Settings& settings)
{
  return ParsePair(settings, { false, true, true, true, 58'100 });
}

TransformerConfig ParseWhisper(const Settings& settings)
{
  settings.Ignore({ "scale_embedding", "max_length" }); // Whisper's embeddings are never scaled
  TransformerConfig encoder = ParseStack(settings, EncoderKeys);
  encoder.input = InputKind::Sound;
  encoder.melBands = settings.Size({ "num_mel_bins" }, 80);
  encoder.positions = settings.Size({ "max_source_positions" }, 1500);
  TransformerConfig decoder = ParseStack(settings, DecoderKeys);
  decoder.vocabulary = settings.Size({ "vocab_size" });
  decoder.positions = settings.Size({ "max_target_positions" }, 448);
  return JoinText(settings, std::move(encoder), std::move(decoder), 50'257);
}

}
