#include "Interventions.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace atlas
{
namespace
{

/// The beginning of messages about the source.
constexpr const char* OtherInput = "PatchFrom: ";

/// The letter of a kind of site; a head has none.
struct KindLetter
{
  ActivationKind kind;
  char letter;
};
constexpr KindLetter Letters[] = { { ActivationKind::Residual, 'r' },
  { ActivationKind::AttentionOutput, 'a' }, { ActivationKind::MlpOutput, 'm' } };

/// Reads a number from the beginning of a word and removes it. Returns false if there is none.
bool TakeNumber(std::string_view& word, std::int64_t& number)
{
  if (word.empty() || word.front() == '-')
  {
    return false;
  }
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  word.remove_prefix(end - word.data());
  return error == std::errc();
}

bool TakeCharacter(std::string_view& word, char character)
{
  const bool isThere = !word.empty() && word.front() == character;
  word.remove_prefix(isThere ? 1 : 0);
  return isThere;
}

/// Returns false if the word is not a site.
bool ParseSite(std::string_view word, ActivationSite& site)
{
  for (const KindLetter& entry : Letters)
  {
    if (TakeCharacter(word, entry.letter))
    {
      site.kind = entry.kind;
      break;
    }
  }
  const bool isHead = site.kind == ActivationKind::HeadOutput;
  if (!TakeNumber(word, site.layer) ||
      (isHead && !(TakeCharacter(word, '.') && TakeNumber(word, site.head))))
  {
    return false;
  }
  return word.empty() ||
         (TakeCharacter(word, '@') && TakeNumber(word, site.position) && word.empty());
}

/// Parses all words of a text. Throws OptionError, which begins with `expected`, for one that is no
/// site or not accepted.
template<class Accepts>
std::vector<ActivationSite> ParseWords(
  std::string_view text, const std::string& expected, const Accepts& accepts)
{
  constexpr std::string_view separators = " \t,\r\n";
  std::vector<ActivationSite> sites;
  std::size_t begin = text.find_first_not_of(separators);
  while (begin != std::string_view::npos)
  {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    ActivationSite site;
    ThrowIf<OptionError>(
      !ParseSite(word, site) || !accepts(site), expected, ", found '", word, "'.");
    sites.push_back(site);
    begin = text.find_first_not_of(separators, end);
  }
  return sites;
}

void RequireBelow(
  std::int64_t number, std::int64_t count, const std::string& site, const std::string& name)
{
  ThrowIf<OptionError>(number >= count, site, ": expected a ", name, " from 0 to ", count - 1,
    ", found ", number, ".");
}

void CheckSite(const TransformerConfig& config, const std::vector<std::int64_t>& lengths,
  const ActivationSite& site)
{
  const std::string text = "intervention at " + ToText(site);
  RequireBelow(site.layer, config.layers, text, "layer");
  if (site.kind == ActivationKind::HeadOutput)
  {
    RequireBelow(site.head, config.heads, text, "head");
  }
  ThrowIf<OptionError>(!HasSite(config, site), text, ": layer ", site.layer, " of ",
    config.architecture, " has no attention.");
  ThrowIf<OptionError>(site.kind == ActivationKind::MlpOutput && config.mlpDimension == 0, text,
    ": the model has no MLPs.");
  ThrowIf<OptionError>(site.kind == ActivationKind::Residual && config.streams > 1, text,
    ": the model has ", config.streams,
    " residual streams, of which layers change all; expected a head, attention or an MLP.");
  for (std::size_t s = 0; s < lengths.size(); ++s)
  {
    RequireBelow(site.position, lengths[s], text, "position of sequence " + std::to_string(s));
  }
}

bool HasReplacement(const Interventions& interventions, Replacement by)
{
  return std::any_of(interventions.list.begin(), interventions.list.end(),
    [by](const Intervention& one) { return one.by == by; });
}

std::string QuotedTokens(const std::vector<std::string>& tokens)
{
  return std::to_string(tokens.size()) + " (" +
         Joined(tokens, [](const std::string& token) { return "'" + token + "'"; }, " ") + ")";
}

}

bool ActivationSite::operator==(const ActivationSite& other) const
{
  const auto tie = [](const ActivationSite& site)
  { return std::tie(site.kind, site.layer, site.head, site.position); };
  return tie(*this) == tie(other);
}

bool Intervention::operator==(const Intervention& other) const
{
  return this->site == other.site && this->by == other.by;
}

bool Interventions::operator==(const Interventions& other) const
{
  return this->list == other.list && this->source == other.source && this->means == other.means;
}

bool Interventions::NeedSource() const
{
  return HasReplacement(*this, Replacement::Source);
}

bool Interventions::NeedMeans() const
{
  return HasReplacement(*this, Replacement::MeanOverPrompts);
}

std::string ToText(const ActivationSite& site)
{
  std::string text;
  for (const KindLetter& entry : Letters)
  {
    if (entry.kind == site.kind)
    {
      text = entry.letter;
    }
  }
  text += std::to_string(site.layer);
  if (site.kind == ActivationKind::HeadOutput)
  {
    text += "." + std::to_string(site.head);
  }
  return site.position == AllPositions ? text : text + "@" + std::to_string(site.position);
}

std::string ToText(const Interventions& interventions)
{
  std::string text;
  const auto add = [&](Replacement by, const char* what)
  {
    std::vector<ActivationSite> sites;
    for (const Intervention& one : interventions.list)
    {
      if (one.by == by)
      {
        sites.push_back(one.site);
      }
    }
    if (!sites.empty())
    {
      text += (text.empty() ? "" : "; ") +
              Joined(sites, [](const ActivationSite& site) { return ToText(site); }) + what;
    }
  };
  add(Replacement::Zero, " to zero");
  add(Replacement::MeanOverPositions, " to the mean over positions");
  add(Replacement::MeanOverPrompts, " to the mean over other prompts");
  add(Replacement::Source, " from another input");
  return text;
}

std::vector<ActivationSite> ParseSites(std::string_view text, const std::string& source)
{
  return ParseWords(text,
    source +
      ": expected heads such as 2.5 (layer 2, head 5), r2 (the residual stream before layer 2), a2 "
      "or m2 (its attention or MLP), each with a position such as @3 or without",
    [](const ActivationSite&) { return true; });
}

std::vector<ActivationSite> ParseHeadSites(std::string_view text, const std::string& source)
{
  return ParseWords(text,
    source +
      ": expected heads such as 2.5 (layer 2, head 5), each with a position such as @3 or without",
    [](const ActivationSite& site) { return site.kind == ActivationKind::HeadOutput; });
}

bool HasSite(const TransformerConfig& config, const ActivationSite& site)
{
  const bool isOfAttention =
    site.kind == ActivationKind::HeadOutput || site.kind == ActivationKind::AttentionOutput;
  return !isOfAttention || config.HasAttention(site.layer);
}

void CheckInterventions(const TransformerConfig& config, const std::vector<std::int64_t>& lengths,
  const Interventions& interventions)
{
  for (const Intervention& one : interventions.list)
  {
    CheckSite(config, lengths, one.site);
    if (one.site.kind == ActivationKind::MlpOutput)
    {
      RefuseSwitches(config, "changing an MLP", { ArchitectureSwitch::Experts });
    }
  }
  if (interventions.NeedSource() || interventions.NeedMeans())
  {
    // The decoder of other texts would need their sources too, and layers what others have.
    RefuseSwitches(config, "replacing activations by those of other inputs",
      { ArchitectureSwitch::Encoder, ArchitectureSwitch::LayerSides });
  }
  if (!interventions.NeedSource())
  {
    return;
  }
  ThrowIf<OptionError>(config.input != InputKind::Tokens || interventions.source.tokens.size() != 1,
    OtherInput, "expected one text for a model of texts, found ",
    interventions.source.tokens.size(), ".");
  CheckInput(config, interventions.source, OtherInput);
  const std::int64_t length = interventions.source.tokens.front().size();
  for (std::size_t s = 0; s < lengths.size(); ++s)
  {
    ThrowIf<OptionError>(lengths[s] != length, OtherInput, "expected as many tokens as sequence ",
      s, ", ", lengths[s], ", found ", length, ".");
  }
}

void RequireSameLength(
  const std::vector<std::string>& prompt, const std::vector<std::string>& source)
{
  ThrowIf<OptionError>(prompt.size() != source.size(),
    "PatchFrom: expected as many tokens as the prompt, ", QuotedTokens(prompt), ", found ",
    QuotedTokens(source), ".");
}

}
