#pragma once

// Internal to Core: rules of rows (ArchitectureRules.h) of encoders of text, pictures and sound.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

namespace atlas
{

/// Positions that have vectors begin after the id of the padding (RoBERTa).
void PaddedPositions(TransformerConfig& config, const Settings& settings);

/// ModernBERT: layers of layer_types or, without it, all but each n-th one see local_attention / 2
/// keys on both sides.
void LocalAttention(TransformerConfig& config, const Settings& settings);

/// EmbeddingGemma: a model without a mask sees half of the window on both sides.
void BothSides(TransformerConfig& config, const Settings& settings);

/// DeBERTa: which products with vectors of distances are added, and of how many distances.
void Disentangled(TransformerConfig& config, const Settings& settings);

/// Images of one size, whose positions are interpolated for another one.
void Images(TransformerConfig& config, const Settings& settings);

/// BEiT: the same, with biases of patches in all layers, or of each, or vectors of positions.
void PatchBias(TransformerConfig& config, const Settings& settings);

/// Pictures of any size, of whole patches.
void AnySize(TransformerConfig& config, const Settings& settings);

/// wav2vec 2.0 and HuBERT: convolutions over waveforms.
void Waveform(TransformerConfig& config, const Settings& settings);

/// AST: patches of a spectrogram, which may overlap.
void Spectrogram(TransformerConfig& config, const Settings& settings);

/// SigLIP 2: pictures of any grid of patches.
void AnyGrid(TransformerConfig& config, const Settings& settings);

}
