#pragma once

#include "ExpertMlp.h"
#include "LayerMixer.h"
#include "LayerSides.h"
#include "SelfAttention.h"
#include "TransformerKernels.h"
#include "TransformerNorm.h"

#include <memory>
#include <optional>

namespace atlas
{

/// Temporary values for the rows of a group, shared by all groups and layers.
struct LayerWorkspace
{
  std::vector<float> normed;    ///< [rows, d_model]
  std::vector<float> mlpNormed; ///< [rows, d_model], if attention and MLP are parallel
  std::vector<float> added;     ///< [rows, d_model], output of a sublayer that is scaled or normed
  AttentionWorkspace attention;
  MixerWorkspace mixer;
  std::vector<float> hidden;  ///< [rows, mlpDimension]
  std::vector<float> factors; ///< [rows, mlpDimension], for a gated MLP
  std::vector<float> asked;   ///< [rows, d_model], what a router of its own normalization reads
  std::vector<float> routed;  ///< [rows, d_model], what experts beside an MLP read
  std::vector<float> given;   ///< [rows, d_model], and give
  SideWorkspace sides;
  std::vector<float>
    read; ///< [rows, d_model], the residual stream that a layer with a convolution reads
  std::vector<float> windows; ///< [rows, d_model, tokens of the convolution], what that reads
};

/// A layer with its weights: attention, or what is in its place, followed by an MLP, in single
/// precision. In a decoder beside an encoder there is a cross attention between them.
class TransformerLayer
{
public:
  /// `positions` must outlive this object. `layer` is the index of the layer.
  TransformerLayer(const TransformerConfig& config, const LayerTensors& tensors, std::int64_t layer,
    const PositionEncoding& positions);

  /// Applies the layer to the residual stream `x` [rows, d_model] at the rows of a group, and fills
  /// `heads` as SelfAttention::Add does, and `routing` if the layer has experts. `visitor`, unless
  /// it is empty, may change Mixed and Hidden. A layer with cross attention needs
  /// `cross`, what it reads, whose heads are filled, too; one with sides, these. One without
  /// attention fills no heads, and goes on from `state`, unless it is nullptr. Runs in parallel.
  void Apply(const RowGroup& group, const std::vector<HeadRows>& heads, float* x,
    LayerWorkspace& work, int threads, const Progress& progress,
    const ActivationVisitor& visitor = {}, const RoutingRows& routing = {},
    const CrossSource* cross = nullptr, const SideRows& sides = {},
    MixerState* state = nullptr) const;

  const SelfAttention& GetAttention() const { return this->Attention; }

  /// An upper bound on the floats that Apply allocates for groups, and sources of groups, of `rows`
  /// rows.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

private:
  std::shared_ptr<const TransformerConfig> Sized; ///< with the sizes of this layer, if they differ
  const TransformerConfig& Config;
  bool HasExperts;
  TransformerNorm AttentionNorm;
  SelfAttention Attention;
  std::optional<LayerMixer> InPlace; ///< of attention
  TransformerNorm CrossNorm;
  std::optional<SelfAttention> Cross;
  TransformerNorm MlpNorm;
  Linear Gate;
  Linear Up;
  Linear Down;
  ExpertMlp Experts;
  TransformerNorm RouterNorm; ///< these: with experts beside the MLP, see ExpertTensors
  TransformerNorm ExpertsNorm;
  TransformerNorm ExpertsAfter;
  TransformerNorm PlainAfter;

  /// What is done with the sum that a sublayer adds.
  struct Finish
  {
    TransformerNorm norm;
    FloatValues scale;
  };
  std::optional<LayerSides> Sides;
  bool CutsGate = false;
  float GateCut = 0; ///< standard deviations above the mean up to which values of the gate become 0
  TransformerNorm HiddenNorm; ///< of what Down reads, if it is normalized
  XieluParameters Xielu;
  Linear Convolution; ///< without outputs: none
  TransformerNorm ConvolutionNorm;
  Finish AttentionFinish;
  Finish CrossFinish; ///< without scale
  Finish MlpFinish;

  template<class AddSublayer>
  void ApplySublayer(const TransformerNorm& norm, const Finish& finish, const RowGroup& group,
    float* x, LayerWorkspace& work, int threads, const AddSublayer& add) const;
  template<class AddSublayer>
  void AddFinished(const Finish& finish, const RowGroup& group, float* x, LayerWorkspace& work,
    int threads, const AddSublayer& add) const;
  void ApplyParallel(const RowGroup& group, const std::vector<HeadRows>& heads, float* x,
    LayerWorkspace& work, int threads, const Progress& progress, const ActivationVisitor& visitor,
    const RoutingRows& routing) const;
  void AddConvolution(const RowGroup& group, float* x, LayerWorkspace& work, int threads) const;
  double MlpWork(const RowGroup& group) const;
  void CutGate(std::int64_t rows, const float* factors, float* hidden, int threads) const;
  void AddMlp(const RowGroup& group, const float* from, float* to, LayerWorkspace& work,
    int threads, const ActivationVisitor& visitor, const RoutingRows& routing) const;
  void AddPlainMlp(const RowGroup& group, const float* from, float* to, LayerWorkspace& work,
    int threads, const ActivationVisitor& visitor) const;
  void AddBoth(const RowGroup& group, const float* x, const float* from, float* to,
    LayerWorkspace& work, int threads, const ActivationVisitor& visitor,
    const RoutingRows& routing) const;
};

/// The memory that a TransformerLayer needs for weights in single precision on so many threads, in
/// bytes: blocks of one matrix at a time, and the matrix that heads write by, which norms of values
/// and outputs of heads need as a whole.
std::uint64_t WidenedBytes(const LayerTensors& layer, int threads);

/// The largest of these of all matrices of a model without its encoder.
std::uint64_t WidenedBytes(const TransformerWeights& weights, int threads);

}
