#pragma once

// Internal to Core.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

namespace atlas
{

/// The model_type that settings without one have, by the names of their sizes: transformer_lens,
/// nanogpt or meta_llama; empty if it is none of these.
std::string ArchitectureBySettings(const Settings& settings);

/// Parses the settings of the model_type that they name. Throws ModelError, with the names of all
/// that are known, if it is another one; a model type that is known but not run is refused as what
/// it is.
TransformerConfig ParseArchitecture(const Settings& settings);

// Those of single model types, by their original code. They throw ModelError.

/// HookedTransformerConfig of TransformerLens.
TransformerConfig ParseTransformerLens(const Settings& settings);

// Decoders with their encoders

/// BART (Lewis et al. 2020): positions begin in row 2.
TransformerConfig ParseBart(const Settings& settings);

/// mBART (Liu et al. 2020): BART with normalizations before the sublayers and behind the last.
TransformerConfig ParseMBart(const Settings& settings);

/// Pegasus (Zhang et al. 2020): mBART with sinusoidal positions, without a normalization of the
/// embedding.
TransformerConfig ParsePegasus(const Settings& settings);

/// Marian (Junczys-Dowmunt et al. 2018): BART with sinusoidal positions, without a normalization of
/// the embedding, and perhaps with a vocabulary of the decoder's own.
TransformerConfig ParseBlenderbot(const Settings& settings);
TransformerConfig ParseM2M100(const Settings& settings);
TransformerConfig ParseT5Gemma(const Settings& settings);
TransformerConfig ParseUMT5(const Settings& settings);
TransformerConfig ParseMarian(const Settings& settings);

/// T5 and T5 v1.1 (Raffel et al. 2020): biases of distances, and scores that are not scaled.
TransformerConfig ParseT5(const Settings& settings);

/// mT5 (Xue et al. 2021): T5 v1.1 for many languages.
TransformerConfig ParseMT5(const Settings& settings);

/// Whisper (Radford et al. 2023): the encoder reads sound.
TransformerConfig ParseWhisper(const Settings& settings);

// Encoders of pictures, and models of pictures among words

/// The encoder of pictures of CLIP (Radford et al. 2021), alone or of the whole model.
TransformerConfig ParseClipVision(const Settings& settings);

/// Likewise of SigLIP (Zhai et al. 2023).
TransformerConfig ParseSiglipVision(const Settings& settings);

/// LLaVA (Liu et al. 2023): an encoder of CLIP or SigLIP, a patch is a token.
TransformerConfig ParseLlava(const Settings& settings);

/// InternVL (Chen et al. 2024), as Hugging Face has it.
TransformerConfig ParseInternVl(const Settings& settings);

/// SmolVLM (Marafioti et al. 2025) and Idefics3: an encoder of SigLIP and one matrix.
TransformerConfig ParseSmolVlm(const Settings& settings);

/// Qwen2-VL (Wang et al. 2024) and Qwen2.5-VL (Bai et al. 2025): pictures and videos of any size.
/// The settings of the text are in text_config or, in older files, beside vision_config.
TransformerConfig ParseQwen2Vl(const Settings& settings);

/// Qwen3-VL: the same with vectors of positions beside rotations, and further projectors, which
/// early layers of the text read.
TransformerConfig ParseQwen3Vl(const Settings& settings);

/// LLaVA-OneVision (Li et al. 2024): tiles without padding, and the ends of their rows.
TransformerConfig ParseLlavaOnevision(const Settings& settings);

/// Gemma 3 (Gemma Team 2025): an encoder of SigLIP whose patches are averaged; or its text alone.
TransformerConfig ParseGemma3(const Settings& settings);

/// Mistral Small 3.1 and Ministral 3: the encoder of Pixtral (Agrawal et al. 2024), which reads any
/// size.
TransformerConfig ParseMistral3(const Settings& settings);
TransformerConfig ParsePaliGemma(const Settings& settings);

/// Parses the text of a model of pictures among words, whose settings are a part of `all`, or all.
/// Sizes that are missing are those of the original code of the model_type `name`.
TransformerConfig ParseTextPart(
  const Settings& all, const Settings& settings, const std::string& name);

}
