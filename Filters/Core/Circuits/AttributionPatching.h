#pragma once

#include "Base/Progress.h"
#include "Circuit.h"
#include "Preprocessing/TransformerInput.h"
#include "Run/LogitPair.h"
#include "Weights/ProcessedWeights.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace atlas
{

struct AttributionOptions
{
  /// The two tokens whose logits are compared, and where; by default those of ChooseTokens for the
  /// corrupted run and the clean one as the other, and the last position.
  std::optional<std::int64_t> target;
  std::optional<std::int64_t> against;
  std::int64_t position = -1;
  bool loss = false; ///< the measure is the mean cross-entropy of the clean prompt's tokens, by
                     ///< those before, in place of these logits
  std::int64_t steps = 1; ///< gradients that are averaged, at least 1
  int threads = 0;        ///< as for ThreadCount; results do not depend on it
  Progress progress;      ///< of the two runs
};

/// What a difference of logits, or a loss, would change by, to first order, if parts of a run were
/// those of another run.
struct Attribution
{
  std::vector<CircuitNode> nodes;
  DoubleMatrix effects;           ///< [nodes, T], by position; 0 for the logits, and behind the end
                                  ///< of a prompt that is shorter than the longest
  std::vector<CircuitEdge> edges; ///< by reader, its input, then writer; empty unless asked for

  double Effect(std::int64_t node) const { return this->effects.row(node).sum(); }
};

/// Patches a run of a clean prompt by parts of the run of a corrupted one of as many tokens, and
/// estimates what each part does by gradients: attribution patching (Nanda 2023; Syed, Rager and
/// Conmy 2023: edge attribution patching). The measure m is a difference of two logits or, with
/// options.loss, GradientRun::Loss of the clean prompt's tokens, in all runs. With a the output of
/// a node,
///
///     effect of a node = sum over positions of (a corrupted - a clean) . dm/da
///     effect of an edge = sum over positions of (a corrupted - a clean) . dm/dr
///
/// where r is the residual stream as one input of the reader alone reads it, through its
/// normalization and matrix. So an effect estimates m with the part corrupted minus m of the clean
/// run, and that of what makes m large is negative; Nanda has the opposite patch and sign.
/// Gradients are those of the clean run or, with m > 1 steps, the means of those of runs from the
/// embeddings x_corrupted + k/m (x_clean - x_corrupted), k = 1 ... m (Hanna, Pezzelle and Belinkov
/// 2024: EAP-IG). The effects of the edges from a node add up to that of the node. Where a
/// normalization follows what heads and MLPs write (Gemma 2), it is replaced by its derivative.
///
/// Of several pairs of prompts, each with as many tokens, all measures and effects are means over
/// the pairs.
///
/// Outputs of heads are z, before W_O, and those of MLPs are before any normalization after them;
/// so biases that do not depend on the prompt have no part in an effect. In double precision;
/// results are equal to the byte for any number of threads.
class AttributionPatching
{
public:
  /// Runs all prompts: a sequence of both inputs for each pair. The model must outlive this object.
  /// Throws as CheckGradients and CheckAttribution, and ModelError if a run is not finite. Messages
  /// begin with Prompt, the clean one, or PatchFrom; of several pairs, they name the one.
  AttributionPatching(const Transformer& model, const TransformerInput& clean,
    const TransformerInput& corrupted, const AttributionOptions& options);
  ~AttributionPatching();

  const std::vector<CircuitNode>& GetNodes() const;

  /// The tokens and the position of a pair, as given or chosen; of no meaning for a loss.
  const LogitPair& GetLogits(std::size_t pair = 0) const;
  double Clean() const;
  double Corrupted() const;

  /// The estimates, of edges too or of nodes alone. Throws ModelError if a run or an effect is not
  /// finite.
  Attribution Attribute(bool edges, const Progress& progress = {}) const;

  /// The measure of the clean run with the outputs of these nodes those of the corrupted run, and
  /// all that follows computed from them: exact patching. One of the nodes may be left out of the
  /// list at its end, the logits, which have no output.
  double WithPatched(const std::vector<bool>& nodes, const Progress& progress = {}) const;

  /// The measure of the clean run with one input of a node reading from another node what this one
  /// writes in the corrupted run, and all that follows computed from it: exact patching of an edge,
  /// that is WithEdges of all others. Through a normalization that follows, what it writes is the
  /// difference that it makes.
  double WithPatchedEdge(const CircuitEdge& edge, const Progress& progress = {}) const;

  /// The measure of a run in which each input of a node reads what its writers give in the
  /// corrupted run, but along the `kept` edges what they give in this run. With all edges of
  /// Attribute it is the clean run, with none the corrupted one (Conmy et al. 2023; Hanna et al.
  /// 2024). The embedding is that of the clean run. A normalization of what attention or an MLP
  /// adds is that of what it adds with the kept writers alone changed.
  double WithEdges(const std::vector<CircuitEdge>& kept, const Progress& progress = {}) const;

private:
  struct Impl;
  std::unique_ptr<Impl> Data;
};

/// Throws OptionError unless both inputs have equally many sequences, at least one, of equally many
/// tokens each, steps are at least 1, and the position and the tokens exist; for a loss, that none
/// is given, and there are at least 2 tokens.
void CheckAttribution(const Transformer& model, const TransformerInput& clean,
  const TransformerInput& corrupted, const AttributionOptions& options);

/// An upper bound, in bytes, on the memory of AttributionPatching and of the tables of its results,
/// for pairs of prompts of these lengths, at least one.
double AttributionMemory(const Transformer& model, const std::vector<std::int64_t>& lengths,
  bool edges, int threads = 0, bool loss = false);

}
