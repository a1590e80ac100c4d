#pragma once

#include "FloatValues.h"
#include "Transformer.h"

#include <cstdint>
#include <mutex>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A matrix in double precision, row-major as in files. Rows are multiplied from the left: x W.
using DoubleMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// How far weights are processed. Each step computes the same attention and the same log
/// probabilities.
enum class WeightSteps
{
  Stored,          ///< none: as in the file
  TransformerLens, ///< the defaults of TransformerLens (Nanda and Bloom 2022): gains and shifts of
                   ///< normalizations are folded into the weights that read them, weights that
                   ///< read from or write to the residual stream and the unembedding are centered,
                   ///< and biases of values are folded into that of the output
  Refactored       ///< and then the singular value decompositions
                   ///< W_Q W_K^T = U S V^T (with a row for the biases), W_Q = U sqrt(S),
                   ///< W_K = V sqrt(S), and W_V W_O = U S V^T, W_V = U S, W_O = V^T
                   ///< (refactor_factored_attn_matrices). Singular values fall; in each column of U
                   ///< the entry of largest magnitude is positive
};

/// Whether the weights of a model can be processed as TransformerLens does.
bool IsProcessable(const TransformerConfig& config);

/// The weights of a head.
struct ProcessedHead
{
  DoubleMatrix query;            ///< W_Q [d_model, d_head]
  DoubleMatrix key;              ///< W_K [d_model, d_head]
  DoubleMatrix value;            ///< W_V [d_model, d_head]
  DoubleMatrix output;           ///< W_O [d_head, d_model]
  Eigen::RowVectorXd queryBias;  ///< [d_head]
  Eigen::RowVectorXd keyBias;    ///< [d_head]
  Eigen::RowVectorXd valueBias;  ///< [d_head]; 0 if processed
  Eigen::RowVectorXd foldedBias; ///< [d_head], by how much the values of the model are larger than
                                 ///< x' W_V of processed weights: what was folded into the output
                                 ///< bias, before any refactoring; 0 if stored
};

/// The attention of a layer. Heads of a group have equal keys and values.
struct ProcessedAttention
{
  std::vector<ProcessedHead> heads;
  Eigen::RowVectorXd outputBias; ///< [d_model]
};

/// The MLP of a layer; matrices are empty if there is none.
struct ProcessedMlp
{
  DoubleMatrix gate;           ///< [d_model, d_mlp]; gated MLP only
  DoubleMatrix up;             ///< [d_model, d_mlp]
  DoubleMatrix down;           ///< [d_mlp, d_model]
  Eigen::RowVectorXd gateBias; ///< [d_mlp]
  Eigen::RowVectorXd upBias;   ///< [d_mlp]
  Eigen::RowVectorXd downBias; ///< [d_model]
};

/// The weights of a transformer, processed when they are asked for, in double precision. Nothing of
/// the size of the model is kept. All functions are thread-safe.
///
/// With gain g and shift b of the normalization x -> g x' + b that a matrix W reads, folding gives
/// the bias b W + c and the matrix diag(g) W; since x' has mean 0 (LayerNorm), each column of the
/// latter is then centered. Weights that write to the residual stream are centered in each row,
/// since the next LayerNorm subtracts the mean; the unembedding is centered over the vocabulary,
/// which adds the same number to all logits. As attention adds up to 1, b_V W_O of all heads is
/// added to the output bias. RMSNorm: no centering but that of the unembedding. Models with
/// shortformer positions: only the value biases, as TransformerLens has it.
class ProcessedWeights
{
public:
  /// Uses the model as long as this object exists. Reads the unembedding once, when it is first
  /// asked for, on up to `threads` threads (ThreadCount). Throws ModelError if normalizations come
  /// after sublayers, which cannot be folded, if rotated queries and keys are to be refactored or
  /// heads share them, or if a part of the architecture (ArchitectureLimits.h) forbids the steps.
  ProcessedWeights(const Transformer& model, WeightSteps steps, int threads = 0);

  const Transformer& GetModel() const { return this->Model; }
  WeightSteps GetSteps() const { return this->Steps; }

  /// The heads of a layer, 0 <= layer < L. Throws FileError if a file was truncated or changed.
  ProcessedAttention Attention(std::int64_t layer) const;

  /// The MLP of a layer. Throws likewise.
  ProcessedMlp Mlp(std::int64_t layer) const;

  /// Rows begin <= id < end of W_E [vocabulary, d_model], scaled as in Gemma. In BLOOM they are
  /// normalized afterwards.
  DoubleMatrix TokenEmbedding(std::int64_t begin, std::int64_t end) const;

  /// W_pos [positions, d_model]; empty without such an embedding.
  DoubleMatrix PositionEmbedding() const;

  /// The number of logits V; 0 if the model has no unembedding.
  std::int64_t OutputVocabulary() const
  {
    return this->Model.HasLogits() ? this->Model.GetWeights().unembedding.outputs : 0;
  }

  /// Columns begin <= v < end of W_U [d_model, V], as the rows of a matrix [end - begin, d_model].
  /// There must be an unembedding.
  DoubleMatrix UnembeddingColumns(std::int64_t begin, std::int64_t end) const;

  /// b_U [V]
  const Eigen::RowVectorXd& UnembeddingBias() const
  {
    this->RequireUnembedding();
    return this->BiasOfLogits;
  }

private:
  const Transformer& Model;
  WeightSteps Steps;
  bool FoldsNorms = false;
  bool CentersWriting = false; ///< and reading
  bool CentersUnembedding = false;
  int Threads;
  mutable std::once_flag IsRead;           ///< whether the three members below are set
  mutable Eigen::RowVectorXd FinalGain;    ///< [d_model]; empty: 1
  mutable Eigen::RowVectorXd MeanOfLogits; ///< [d_model], the mean column of W_U that is
                                           ///< subtracted; or empty
  mutable Eigen::RowVectorXd BiasOfLogits;

  void RequireUnembedding() const;
  void ReadUnembedding() const;
  DoubleMatrix StoredColumns(std::int64_t begin, std::int64_t end) const;
  void ScaleAndCenter(DoubleMatrix& columns) const;
  void FoldNorm(const NormTensors& norm, DoubleMatrix& weight, Eigen::RowVectorXd& bias,
    bool isGate = false) const;
  void CenterRows(DoubleMatrix& weight) const;
};

/// Throws ModelError if the heads of a model cannot be refactored: rotated queries and keys, whose
/// components have a meaning, and keys and values that heads share.
void RequireRefactorable(const TransformerConfig& config);

/// A head of processed weights, refactored.
ProcessedHead Refactored(ProcessedHead head);

/// How vectors of a head as they are recorded change into those of its refactored weights:
/// q -> q query, k -> k key, v -> v value, where v is without its bias.
struct RefactoredBasis
{
  DoubleMatrix query; ///< [d_head, d_head]
  DoubleMatrix key;   ///< [d_head, d_head]
  DoubleMatrix value; ///< [d_head, d_head]
};

/// The change of basis from the weights of a head to the same ones refactored. Components whose
/// singular value is 0 become 0.
RefactoredBasis BasisOf(const ProcessedHead& head, const ProcessedHead& refactored);

/// All weights of a model of text, processed as TransformerLens does, by the names that
/// TransformerLens gives them, as F32. With the model's configuration they make up a transformer
/// that has the same attention and log probabilities. Throws as ProcessedWeights, and ModelError
/// for a model of images.
Tensors ProcessedTensors(const Transformer& model);

}
