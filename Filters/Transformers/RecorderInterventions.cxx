#include "RecorderInterventions.h"

#include "Base/Error.h"
#include "Circuits/Circuit.h"
#include "Recorder/EncodedPrompt.h"

#include <utility>

namespace AttentionAtlas
{
namespace
{

atlas::EncodedPrompt ReadSource(const InterventionSources& interventions,
  const atlas::RecorderSources& sources, const atlas::OpenTransformer& model)
{
  const std::string prompt =
    atlas::ReadPrompt(interventions.patchFrom, sources.promptFormat, "PatchFrom");
  const bool isText = !sources.prompts.empty() || !sources.promptFile.empty();
  atlas::EncodedPrompt source =
    isText ? atlas::EncodePrompt(model, prompt, "PatchFrom", sources.addSpecialTokens)
           : atlas::ParsePrompt(model, prompt, "PatchFrom");
  const std::size_t most = sources.maximumLength;
  if (most > 0 && source.labels.size() > most) // as the sequences
  {
    source.labels.resize(most);
    source.input.tokens[0].resize(most);
    if (!source.input.segments.empty())
    {
      source.input.segments[0].resize(most);
    }
  }
  return source;
}

/// The tokens of a sequence, by text or id.
std::vector<std::string> TokensOf(
  const atlas::RecorderInput& input, std::size_t s, std::size_t first)
{
  const std::vector<std::int64_t>& ids = input.input.tokens[s];
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (std::size_t t = 0; t < ids.size(); ++t)
  {
    tokens.push_back(input.labels.empty() ? std::to_string(ids[t]) : input.labels[first + t]);
  }
  return tokens;
}

void RequireSameLengths(const atlas::RecorderInput& input, const atlas::EncodedPrompt& source)
{
  std::size_t first = 0;
  for (std::size_t s = 0; s < input.input.tokens.size(); ++s)
  {
    atlas::RequireSameLength(TokensOf(input, s, first), source.labels);
    first += input.input.tokens[s].size();
  }
}

}

atlas::Interventions GatherInterventions(const InterventionSources& interventions,
  const atlas::RecorderSources& sources, const atlas::RecorderInput& input,
  const atlas::OpenTransformer& model)
{
  atlas::Interventions found;
  std::vector<atlas::ActivationSite> outside;
  if (!interventions.circuitFile.empty())
  {
    const atlas::Circuit circuit = atlas::ReadCircuit(interventions.circuitFile);
    atlas::CheckCircuit(circuit, model.GetModel().GetConfig(), interventions.circuitFile);
    outside = atlas::SitesOutside(circuit);
  }
  const bool isPatched = !interventions.patchFrom.empty();
  for (std::size_t i = 0; i < outside.size() && !isPatched; ++i)
  {
    found.list.push_back({ outside[i], interventions.ablateTo });
  }
  for (const atlas::ActivationSite& site : atlas::ParseHeadSites(interventions.ablate, "Ablate"))
  {
    found.list.push_back({ site, interventions.ablateTo });
  }
  std::vector<atlas::ActivationSite> sites =
    atlas::ParseSites(interventions.patchSites, "PatchSites");
  if (isPatched)
  {
    sites.insert(sites.end(), outside.begin(), outside.end());
  }
  const bool hasCircuit = !interventions.circuitFile.empty();
  atlas::ThrowIf<atlas::OptionError>(sites.empty() ? isPatched && !hasCircuit : !isPatched,
    sites.empty() ? "PatchSites: expected where to patch, such as 2.5 or r2@3, found none."
                  : "PatchFrom: expected the prompt to patch from, found none.");
  if (sites.empty())
  {
    return found;
  }
  atlas::ThrowIf<atlas::OptionError>(
    input.input.images > 0, "PatchFrom: expected a model of texts, found one of images.");
  atlas::ThrowIf<atlas::OptionError>(!sources.segments.empty(),
    "PatchFrom: expected no Segments, since they would be those of the prompts alone, found some.");
  atlas::EncodedPrompt source = ReadSource(interventions, sources, model);
  RequireSameLengths(input, source);
  for (const atlas::ActivationSite& site : sites)
  {
    found.list.push_back({ site, atlas::Replacement::Source });
  }
  found.source = std::move(source.input);
  return found;
}

}
