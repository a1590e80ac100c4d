#pragma once

#include "Weights/Transformer.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

class ProcessedWeights;

/// What statistics of heads need of the weights of a model, in single precision.
class CorpusWeights
{
public:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  struct Head
  {
    Matrix writing;          ///< R^T [d_head, d_head] of W_O^T = Q R, so that |z W_O| = |z R^T|
    Matrix output;           ///< W_O [d_head, d_model], processed as TransformerLens does; empty if
                             ///< the model has no logits
    Eigen::RowVectorXf bias; ///< of the values, folded into the output; empty if there is none
  };

  /// Uses the model as long as this object exists. `layers`: those that are needed.
  CorpusWeights(const Transformer& model, const std::vector<std::int64_t>& layers, int threads);
  ~CorpusWeights();
  CorpusWeights(const CorpusWeights&) = delete;
  CorpusWeights& operator=(const CorpusWeights&) = delete;

  /// Heads of a layer, by its place among `layers`.
  const std::vector<Head>& Heads(std::size_t layer) const { return this->Layers[layer]; }

  /// Whether heads add to the logits of next tokens: under a causal mask, with an unembedding, and
  /// with weights that can be processed.
  bool HasLogits() const { return this->Processed != nullptr; }

  /// The number of tokens with a logit; 0 without logits.
  std::int64_t OutputVocabulary() const;

  /// Columns of W_U, processed, as rows [ids, d_model].
  Matrix Unembedding(const std::vector<std::int64_t>& ids, int threads) const;

  /// Bytes that are held for a model.
  static std::uint64_t Memory(const TransformerConfig& config, std::size_t layers);

private:
  std::unique_ptr<const ProcessedWeights> Processed;
  std::vector<std::vector<Head>> Layers;
};

}
