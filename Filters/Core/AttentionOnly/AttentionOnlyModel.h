#pragma once

#include "Files/Tensor.h"

#include <filesystem>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// One three-dimensional embedding per row.
using Rows3 = Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::RowMajor>;
/// One three-dimensional vector per column: the output matrix of a head.
using Columns3 = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;
using TokenMatrix = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The four weight matrices of an attention head of dimension d_h; the embedding dimension is 3.
struct AttentionHead
{
  Rows3 query;     ///< W_Q [d_h, 3]
  Rows3 key;       ///< W_K [d_h, 3]
  Rows3 value;     ///< W_V [d_h, 3]
  Columns3 output; ///< W_O [3, d_h]
};

/// A one-layer attention-only transformer on two tokens with embedding dimension 3. Layer
/// normalization directly follows the word embedding, which puts each word on a circle and each
/// pair of words on a torus. The model is that of the post "Visualizing small Attention-only
/// Transformers"; its formulas are in AttentionEvaluation.h.
struct AttentionOnlyModel
{
  Rows3 wordEmbedding;              ///< [N, 3], before layer normalization
  Rows3 positionEmbedding;          ///< [2, 3]
  Rows3 unembedding;                ///< W_U [N, 3]
  std::vector<AttentionHead> heads; ///< H >= 1 heads, all of the same dimension
  TokenMatrix nextToken;            ///< [N, N]: target of the pair (t1, t2); [0, 0] if unknown
  DType precision = DType::F32;     ///< data type of the stored weights: F32 or F64
  Metadata metadata;                ///< of the file, for example `source`

  Eigen::Index VocabularySize() const { return this->wordEmbedding.rows(); }
  std::size_t HeadCount() const { return this->heads.size(); }
  Eigen::Index HeadDimension() const { return this->heads.front().query.rows(); }
  bool HasTargets() const { return this->nextToken.size() > 0; }
};

/// Values of the metadata entries `format` and `version` in a native file.
inline constexpr const char* AttentionOnlyFormat = "attention-atlas.attention-only";
inline constexpr const char* AttentionOnlyVersion = "1";

/// Builds a model from tensors that are named in one of two ways.
///
/// Native: word_embedding [N,3], position_embedding [2,3], unembedding [N,3],
/// heads.{h}.query|key|value [d_h,3], heads.{h}.output [3,d_h], next_token [N,N] (optional).
/// PyTorch state_dict, as published: word_emb.weight, pos_emb.weight, unemb.weight,
/// attn_seq.0.{h}.q_proj_weight|k_proj_weight|v_proj_weight [3,3], attn_seq.0.{h}.out_proj.weight
/// [3,3], pi.2 [N,N,N] (optional), whose argmax over the last axis is the next token. In this form
/// each module h is split into `subHeads` heads of dimension 3 / subHeads (rows of Q, K and V,
/// columns of O). If subHeads is 1, the metadata entry `nb_head`, if present, is used instead.
///
/// Rows of the position embedding beyond the second are ignored. Throws ModelError if a tensor is
/// missing, has a wrong shape or is not finite, or if the heads differ in dimension. The message
/// starts with `source`.
AttentionOnlyModel MakeAttentionOnlyModel(
  const TensorViews& tensors, const Metadata& metadata, int subHeads, const std::string& source);

/// Returns the model's tensors under their native names, in its precision; next_token is I64.
Tensors MakeTensors(const AttentionOnlyModel& model);

/// Reads a safetensors file with either kind of names. Throws FileError, FormatError or ModelError.
AttentionOnlyModel ReadAttentionOnlyModel(const std::filesystem::path& path, int subHeads = 1);

/// Writes a safetensors file with native names. Throws FileError.
void WriteAttentionOnlyModel(const std::filesystem::path& path, const AttentionOnlyModel& model);

}
