#pragma once

#include "Preprocessing/TransformerInput.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// In place of a position: all positions of a sequence.
inline constexpr std::int64_t AllPositions = -1;

/// What a site of a run is.
enum class ActivationKind
{
  HeadOutput,      ///< a head's weighted sum of values z [d_head], before W_O
  Residual,        ///< the residual stream [d_model] before a layer
  AttentionOutput, ///< all heads' z of a layer: what attention adds
  MlpOutput        ///< the activations of an MLP before W_down: what the MLP adds
};

/// A place in a run whose values can be replaced.
struct ActivationSite
{
  ActivationKind kind = ActivationKind::HeadOutput;
  std::int64_t layer = 0;
  std::int64_t head = 0; ///< HeadOutput only
  std::int64_t position = AllPositions;

  bool operator==(const ActivationSite& other) const;
};

/// What values are replaced by. Biases b_O and b_down are added afterwards in any case.
enum class Replacement
{
  Source, ///< those of the same site in the run of another input
  Zero,
  MeanOverPositions, ///< their mean over all positions of their sequence, later ones too
  MeanOverPrompts    ///< their mean over all tokens of other prompts, which are run without changes
};

struct Intervention
{
  ActivationSite site;
  Replacement by = Replacement::Source;

  bool operator==(const Intervention& other) const;
};

/// What is changed during a run, in the order of the list. Everything that comes after a site is
/// computed from the changed values (Vig et al. 2020; Meng et al. 2022: activation patching).
struct Interventions
{
  std::vector<Intervention> list;
  TransformerInput source; ///< one sequence, as long as each that is run; only for Source

  /// Only for MeanOverPrompts: a row for each sequence of the run, with the columns of all such
  /// sites, one site after the other (PromptMeans.h).
  std::vector<float> means;

  bool NeedSource() const;
  bool NeedMeans() const;

  bool operator==(const Interventions& other) const;
};

/// "2.5", "2.5@3", "r2@3", "a2", "m2": see ParseSites.
std::string ToText(const ActivationSite& site);

/// "0.1 to zero; 2.5@3, r1 from another input": all interventions, for messages and files; empty if
/// there are none.
std::string ToText(const Interventions& interventions);

/// Parses sites, separated by spaces, tabs, commas or line breaks: 2.5 is the output of head 5 in
/// layer 2, r2 the residual stream before layer 2, a2 and m2 the outputs of the attention and of
/// the MLP of layer 2. Each is at all positions, or at the one after an @, counted from 0: 2.5@3.
/// Throws OptionError with `source` and the word.
std::vector<ActivationSite> ParseSites(std::string_view text, const std::string& source);

/// Same, but heads only.
std::vector<ActivationSite> ParseHeadSites(std::string_view text, const std::string& source);

/// Whether a site exists in a layer: those of attention do not in layers without it.
bool HasSite(const TransformerConfig& config, const ActivationSite& site);

/// Throws OptionError unless the sites are in the model and in each of the sequences of these
/// lengths, and the source, if there must be one, is one sequence of text as long as each of them.
void CheckInterventions(const TransformerConfig& config, const std::vector<std::int64_t>& lengths,
  const Interventions& interventions);

/// Throws OptionError, with all tokens of both, unless a prompt and its source have equally many.
void RequireSameLength(
  const std::vector<std::string>& prompt, const std::vector<std::string>& source);

}
