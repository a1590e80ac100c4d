#pragma once

#include "Recorder/RecorderInput.h"
#include "Run/Interventions.h"

#include <string>

namespace AttentionAtlas
{

/// What vtkTransformerRecorder changes during a run, as users write it.
struct InterventionSources
{
  std::string ablate; ///< heads, see atlas::ParseHeadSites
  atlas::Replacement ablateTo = atlas::Replacement::Zero;
  std::string patchFrom;   ///< a text or, if the sequences are token ids, token ids
  std::string patchSites;  ///< see atlas::ParseSites
  std::string circuitFile; ///< all outside this circuit is patched or, without patchFrom, ablated
};

/// Reads interventions: first ablations, then patches; what is
/// outside a circuit comes with those that replace it. Throws atlas::OptionError, with the
/// property, for what cannot be read, a source without sites or sites without a source, and, with
/// all tokens, for a source that does not have as many tokens as every sequence.
atlas::Interventions GatherInterventions(const InterventionSources& interventions,
  const atlas::RecorderSources& sources, const atlas::RecorderInput& input,
  const atlas::OpenTransformer& model);

}
