#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// The configurations of encoders of pictures, and of models of pictures among words. They throw
/// ModelError.

/// The encoder of pictures of SigLIP (Zhai et al. 2023), alone or of the whole model.
TransformerConfig ParseSiglipVision(const Settings& settings);

/// LLaVA (Liu et al. 2023): an encoder of CLIP or SigLIP, a patch is a token.
TransformerConfig ParseLlava(const Settings& settings);

/// InternVL (Chen et al. 2024), as Hugging Face has it.
TransformerConfig ParseInternVl(const Settings& settings);

/// SmolVLM (Marafioti et al. 2025) and Idefics3: an encoder of SigLIP and one matrix.
TransformerConfig ParseSmolVlm(const Settings& settings);

/// Qwen2-VL (Wang et al. 2024) and Qwen2.5-VL (Bai et al. 2025): pictures and films of any size.
/// The settings of the text are in text_config or, in older files, beside vision_config.
TransformerConfig ParseQwen2Vl(const Settings& settings);

}
