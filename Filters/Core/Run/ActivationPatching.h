#pragma once

#include "Base/Progress.h"
#include "Interventions.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// Which runs a map of effects has. Each changes one site.
struct PatchingOptions
{
  ActivationKind kind = ActivationKind::HeadOutput; ///< HeadOutput: a map of layers x heads; the
                                                    ///< others: of layers x positions
  Replacement by = Replacement::Source;
  std::int64_t position = AllPositions; ///< HeadOutput only: where heads are changed
  TransformerInput reference;           ///< the prompts of MeanOverPrompts, at least one

  /// The two tokens whose logits are compared. By default the one that the source's run predicts
  /// against the one that the prompt's run predicts or, if these are the same, the one whose logit
  /// rises most from the prompt's run to the source's against the one whose logit falls most.
  /// Without a source, the most likely one of the prompt's run against the second. If the one that
  /// is given is the default of the other, they change places.
  std::optional<std::int64_t> target;
  std::optional<std::int64_t> against;

  std::int64_t part = 0; ///< of the runs, which `parts` processes share; the others are left 0
  std::int64_t parts = 1;
  int threads = 0; ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The logit of the target minus that of the token against it, at the last position.
struct PatchingMap
{
  std::int64_t target = 0; ///< token ids
  std::int64_t against = 0;
  double prompt = 0;              ///< of the prompt's run
  double source = 0;              ///< of the source's run; that of the prompt's if there is none
  std::vector<double> difference; ///< of the runs with one site changed, in the order of
                                  ///< PatchingSites; NaN where a layer has no attention to change
};

/// The sites of the map: those of layer 0, by head or position, then those of layer 1 and so on.
std::vector<ActivationSite> PatchingSites(
  const TransformerConfig& config, std::int64_t length, const PatchingOptions& options);

/// Checks the arguments of MapPatching. Throws OptionError if the model has no unembedding or is
/// not of texts, as CheckInterventions does for the sites and the source, and for token ids beyond
/// the vocabulary.
void CheckPatching(const Transformer& model, const TransformerInput& prompt,
  const TransformerInput& source, const PatchingOptions& options);

/// An upper bound on the memory that MapPatching takes, in bytes; mapped files of F32 weights are
/// not included.
std::uint64_t PatchingMemory(
  const Transformer& model, std::int64_t length, const PatchingOptions& options);

/// Runs a prompt once for each site of the map, with the values there replaced by those of the
/// source's run, zero or their mean over positions or other prompts (activation patching: Vig et
/// al. 2020; Wang et al. 2023), and measures the logit difference at the last position. A run
/// begins at the layer of its site, with the residual stream of the prompt's run. Runs share matrix
/// products, and two columns of W_U are all that is computed of the logits. In single precision;
/// logits in double precision.
///
/// `prompt` and `source` are one sequence each, of equal length; `source` is used only for
/// Replacement::Source. Results are equal to the byte for any number of threads and parts, and a
/// site that changes nothing gives exactly the prompt's difference.
///
/// Throws as CheckPatching does; OptionError if both runs have the same logits; ModelError if a run
/// is not finite; and FileError if a weights file was truncated or changed since it was opened.
PatchingMap MapPatching(const Transformer& model, const TransformerInput& prompt,
  const TransformerInput& source, const PatchingOptions& options);

}
