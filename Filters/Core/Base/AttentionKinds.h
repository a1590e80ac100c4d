#pragma once

#include "NamedValues.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace atlas
{

/// Which keys a query may attend to, among those of its own sequence.
enum class AttentionMask
{
  Causal,        ///< those at its position and before
  Bidirectional, ///< all of them: no mask
  Cross          ///< those of the source, with which the sequence begins; the queries are those of
                 ///< the target, which follows (Vaswani et al. 2017)
};

/// Their names in files and data objects, in this order.
inline constexpr std::array<Named<AttentionMask>, 3> AttentionMasks = { {
  { "causal", AttentionMask::Causal },
  { "bidirectional", AttentionMask::Bidirectional },
  { "cross", AttentionMask::Cross },
} };

inline std::string_view Name(AttentionMask mask)
{
  return AttentionMasks[static_cast<std::size_t>(mask)].name;
}

/// The attention of a transformer with an encoder and a decoder (Vaswani et al. 2017). Other
/// transformers have Decoder alone.
enum class AttentionKind
{
  Decoder, ///< of the target's tokens to each other
  Encoder, ///< of the source's tokens to each other
  Cross    ///< of the target's tokens to those of the source
};

/// Their names, in this order, for blocks of data objects and in files.
inline constexpr std::array<Named<AttentionKind>, 3> AttentionKindNames = { {
  { "decoder", AttentionKind::Decoder },
  { "encoder", AttentionKind::Encoder },
  { "cross", AttentionKind::Cross },
} };

inline std::string_view Name(AttentionKind kind)
{
  return AttentionKindNames[static_cast<std::size_t>(kind)].name;
}

/// Whether layer normalizations were folded into the weights and the weights were centered, as
/// TransformerLens does by default.
enum class WeightProcessing
{
  Unknown,
  Unprocessed,
  Processed
};

/// Their names in files and data objects, in this order.
inline constexpr std::array<Named<WeightProcessing>, 3> WeightProcessings = { {
  { "unknown", WeightProcessing::Unknown },
  { "unprocessed", WeightProcessing::Unprocessed },
  { "processed", WeightProcessing::Processed },
} };

inline std::string_view Name(WeightProcessing processing)
{
  return WeightProcessings[static_cast<std::size_t>(processing)].name;
}

/// The numbers that products of activations and weights are computed from. Sums are in single
/// precision in any case.
enum class ProductPrecision
{
  Single,
  Bfloat16 ///< both factors are rounded to BF16, floats with 8 significant bits
};

/// Their names in files and data objects, in this order.
inline constexpr std::array<Named<ProductPrecision>, 2> ProductPrecisions = { {
  { "single", ProductPrecision::Single },
  { "bf16", ProductPrecision::Bfloat16 },
} };

inline std::string_view Name(ProductPrecision products)
{
  return ProductPrecisions[static_cast<std::size_t>(products)].name;
}

}
