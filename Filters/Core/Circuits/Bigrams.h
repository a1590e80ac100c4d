#pragma once

#include "LargestProducts.h"
#include "Text/TokenFinder.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The tokens that follow others in the zero-layer model: for each token t the largest logits of
/// E U, row t (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"). With
/// processed weights U contains the gain of the final normalization, centered, and E is
/// CircuitEmbedding; the division by its scale and all biases are left out. With stored weights
/// they are W_E and W_U as they are.
///
/// Returns [tokens, min(top, V)]. Throws ModelError as RequireUnembedding and ProcessedWeights do,
/// OptionError for a `top` below 1, and FileError for files that were changed.
std::vector<TokenLogit> FindBigrams(const Transformer& model, bool processes,
  const std::vector<std::int32_t>& tokens, const LargestProductOptions& options);

/// Tokens to begin with: some frequent English words that the vocabulary has as tokens with a
/// leading space; without a tokenizer, or if it has few of them, 8 ids spread evenly over the
/// vocabulary, floor(i (vocabulary - 1) / 7).
std::vector<std::int32_t> SampleTokens(const TokenFinder& vocabulary);

}
