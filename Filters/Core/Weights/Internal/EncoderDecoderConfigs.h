#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// The configurations of decoders with their encoders. They throw ModelError.

/// BART (Lewis et al. 2020): positions begin in row 2.
TransformerConfig ParseBart(const Settings& settings);

/// Marian (Junczys-Dowmunt et al. 2018): BART with sinusoidal positions, without a normalization of
/// the embedding, and perhaps with a vocabulary of the decoder's own.
TransformerConfig ParseMarian(const Settings& settings);

/// mBART (Liu et al. 2020): BART with normalizations before the sublayers and behind the last.
TransformerConfig ParseMBart(const Settings& settings);

/// mT5 (Xue et al. 2021): T5 v1.1 for many languages.
TransformerConfig ParseMT5(const Settings& settings);

/// Pegasus (Zhang et al. 2020): mBART with sinusoidal positions, without a normalization of the
/// embedding.
TransformerConfig ParsePegasus(const Settings& settings);

/// T5 and T5 v1.1 (Raffel et al. 2020): biases of distances, and scores that are not scaled.
TransformerConfig ParseT5(const Settings& settings);

/// Whisper (Radford et al. 2023): the encoder reads sound.
TransformerConfig ParseWhisper(const Settings& settings);

}
