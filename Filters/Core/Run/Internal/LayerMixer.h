#pragma once

#include "Base/Progress.h"
#include "PackedSequences.h"
#include "TransformerLinear.h"

#include <vector>

namespace atlas
{

/// Temporary values for the rows of a group.
struct MixerWorkspace
{
  std::vector<float> channels; ///< [rows, channels], what the convolution reads
  std::vector<float> mixed;    ///< [rows, channels], what it gives; then what `output` reads
  std::vector<float> gates;    ///< [rows, inputs of `output`]
  std::vector<float> rates;    ///< [rows, mixerHeads]
  std::vector<float> decays;   ///< [rows, mixerHeads]
};

/// What a layer keeps of the tokens of one sequence that were run before.
struct MixerState
{
  std::vector<float> channels; ///< [mixerTaps - 1, channels], what the convolution read last
  std::vector<double> memory;  ///< [mixerHeads, mixerKeyDimension, mixerValueDimension]
};

/// What lets tokens read earlier ones in a layer without attention, in single precision but for the
/// memory: what heads read of it may be small, and is then normalized.
///
/// ShortConvolution (Liquid AI 2025: LFM2) of inputs x: with [B C X] = x W, channel by channel,
/// it adds (C * (sum over k of tap_k (B X) at the token k before + bias)) W_O.
///
/// DeltaRule (Yang et al. 2025: gated delta networks): queries, keys and values of each head are
/// activation(sum over k of tap_k of those at the token k before). Queries and keys are divided by
/// their Euclidean norms sqrt(sum + 1e-6), queries also by sqrt(mixerKeyDimension). The memory S
/// [key, value] of a head, 0 before the first token, becomes
///   S' = exp(-exp(decayScale) log(1 + exp(decay + decayShift))) S,
///   S = S' + key^T (mixerRate sigmoid(rate) (value - key S')),
/// and what it gives, query S, is normalized by its root mean square, multiplied by the gain of
/// the head's component and by silu(gate), and then by W_O. Heads of values in groups share a
/// query and a key.
///
/// StateSpace (Dao and Gu 2024: Mamba-2): values, keys and queries are convolved and activated
/// likewise; those papers call them x, B and C. With the step t = log(1 + exp(decay + decayShift)),
/// limited to mixerLeastStep ... mixerMostStep, the memory becomes
///   S = exp(-exp(decayScale) t) S + t key^T value,
/// and a head gives (query S + skip value) silu(gate). The components of all heads together are
/// divided by their root mean square and multiplied by their gains, and then by W_O.
class LayerMixer
{
public:
  LayerMixer(const TransformerConfig& config, const MixerTensors& tensors, Mixer kind);

  /// Computes to += what the layer adds for `from` [rows, d_model], which may be the same as `to`.
  /// Each sequence begins anew, or the only one with `state`, unless it is nullptr, which is
  /// brought up to date. Runs in parallel over rows, then over sequences and heads.
  void Add(const RowGroup& group, const float* from, float* to, MixerWorkspace& work, int threads,
    MixerState* state, const Progress& progress) const;

  /// About how many multiplications Add needs for a group.
  double Work(const RowGroup& group) const;

  /// An upper bound on the floats that Add allocates for groups of `rows` rows.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

  /// The floats of a MixerState.
  static std::int64_t StateFloats(const TransformerConfig& config);

private:
  const TransformerConfig& Config;
  Mixer Kind;
  std::int64_t Channels;
  Linear Query;
  Linear Key;
  Linear Value;
  Linear Gate;
  Linear Rate;
  Linear Decay;
  Linear Output;
  std::vector<float> Taps; ///< [mixerTaps, Channels]
  FloatValues TapsBias;
  FloatValues DecayScale;
  FloatValues DecayShift;
  FloatValues Skip;
  FloatValues Gain;
  std::int64_t QueryFirst; ///< where queries begin among the channels
  std::int64_t KeyFirst;   ///< likewise keys
  std::int64_t ValueFirst; ///< likewise values
  bool IsGrouped;          ///< whether the outputs of maps are in groups, by heads of keys
  bool IsRateGrouped;      ///< likewise of rates and decays

  double LearnWork(const RowGroup& group) const;
  void Project(const RowGroup& group, const float* from, MixerWorkspace& work, int threads) const;
  void ProjectConvolved(
    const RowGroup& group, const float* from, MixerWorkspace& work, int threads) const;
  void Convolve(const RowGroup& group, MixerWorkspace& work, int threads, MixerState* state) const;
  void Learn(const RowGroup& group, MixerWorkspace& work, int threads, MixerState* state,
    const Progress& progress) const;
  void LearnHead(const MixerWorkspace& work, std::int64_t begin, std::int64_t end,
    std::int64_t head, double* memory, float* to) const;
  void ScanHead(const MixerWorkspace& work, std::int64_t begin, std::int64_t end, std::int64_t head,
    double* memory, float* to) const;
  void NormGroups(std::int64_t rows, float* values, int threads) const;
  double Epsilon() const;
};

}
