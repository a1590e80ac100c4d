#pragma once

#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// How weights are processed for circuits, by whether they are at all.
constexpr WeightSteps CircuitSteps(bool processes)
{
  return processes ? WeightSteps::TransformerLens : WeightSteps::Stored;
}

/// Throws ModelError unless the model is a language model.
void RequireVocabulary(const Transformer& model);

/// Throws ModelError unless the model is a language model whose unembedding reads the residual
/// stream. There may be tokens without a logit.
void RequireUnembedding(const Transformer& model);

/// Throws OptionError unless the model has this layer and head, both from 0.
void RequireHead(const Transformer& model, std::int64_t layer, std::int64_t head);

/// The weights of a head. Throws ModelError if one is not finite, and as RequireHead.
ProcessedHead FiniteHead(const ProcessedWeights& weights, std::int64_t layer, std::int64_t head);

/// Throws ModelError if a number is NaN or infinite. The message begins with `name`.
void RequireFinite(const DoubleMatrix& matrix, const std::string& name);

/// Throws OptionError unless a number of largest entries is at least 1.
void RequireTop(int top);

/// Rows begin <= id < end of E [vocabulary, d_model], the token vectors of circuits. They are the
/// embedding W_E; if weights are processed and the model normalizes its embedding (BLOOM), the
/// normalized one, which is what the first block reads. Throws ModelError if one is not finite.
DoubleMatrix CircuitEmbedding(
  const ProcessedWeights& weights, std::int64_t begin, std::int64_t end);

/// Columns begin <= v < end of U, as ProcessedWeights::UnembeddingColumns. Throws likewise.
DoubleMatrix CircuitUnembedding(
  const ProcessedWeights& weights, std::int64_t begin, std::int64_t end);

/// The rows of some tokens, [tokens, d_model].
DoubleMatrix CircuitEmbedding(
  const ProcessedWeights& weights, const std::vector<std::int32_t>& tokens);

/// What QK circuits leave out of the scores of a model, in words for users; circuits of tokens or
/// of positions. `processes`: whether weights are processed.
std::vector<std::string> LeftOutOfQueryKey(
  const TransformerConfig& config, bool processes, bool isOfPositions = false);

/// What OV circuits leave out of what the heads of a model write, likewise.
std::vector<std::string> LeftOutOfOutputValue(const TransformerConfig& config, bool processes);

}
