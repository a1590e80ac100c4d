#include "ResidueContacts.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/ParallelProgress.h"
#include "Recording/RecordedAttention.h"
#include "Recording/SpecialTokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

namespace atlas
{
namespace
{

constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

/// Heads whose maps are in memory at a time.
constexpr std::size_t HeadsAtOnce = 8;

/// The share of a part; NaN of nothing.
double ShareOf(double part, double all)
{
  return all > 0 ? part / all : NotANumber;
}

/// A pair of residues and its score.
struct ScoredPair
{
  float score = 0;
  std::int32_t first = 0;
  std::int32_t second = 0;

  bool IsBefore(const ScoredPair& other) const
  {
    return this->score != other.score   ? this->score > other.score
           : this->first != other.first ? this->first < other.first
                                        : this->second < other.second;
  }
};

/// The least and the largest separation of a range, of pairs at least this far apart.
std::array<std::int64_t, 2> LimitsOf(ContactRange range, std::int64_t separation)
{
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const auto from = [separation](std::int64_t least) { return std::max(least, separation); };
  switch (range)
  {
    case ContactRange::Short:
      return { from(6), 11 };
    case ContactRange::Medium:
      return { from(12), 23 };
    case ContactRange::Long:
      return { from(24), none };
    default:
      return { from(1), none };
  }
}

/// The recorded heads, by layer.
std::vector<HeadPlace> HeadsOf(const Recording& recording)
{
  std::vector<HeadPlace> heads;
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      heads.push_back({ layer.index, static_cast<std::int32_t>(h) });
    }
  }
  return heads;
}

void CheckPredictor(
  const Recording& recording, const std::vector<HeadPlace>& heads, const ContactHead& predictor)
{
  const std::size_t layers = std::max<std::size_t>(recording.layerCount, recording.layers.size());
  ThrowIf<OptionError>(recording.layers.size() < layers, "Model: expected a recording of all ",
    layers, " layers, which its contact head reads, found one of ", recording.layers.size(), ".");
  ThrowIf<OptionError>(predictor.weights.size() != heads.size(),
    "Model: expected a contact head of ", heads.size(), " heads as in the recording, found one of ",
    predictor.weights.size(), ".");
}

/// The attention of a head between residues [n, n].
std::vector<float> AttentionBetween(const Recording& recording, std::int64_t sequence,
  const HeadPlace& place, const std::vector<std::int64_t>& residues)
{
  const std::int64_t tokens = AttentionLength(recording, sequence);
  const auto n = static_cast<std::int64_t>(residues.size());
  std::vector<float> between(n * n);
  std::vector<float> rows;
  std::int64_t i = 0;
  while (i < n)
  {
    const std::int64_t begin = residues[i] / QueriesPerBlock * QueriesPerBlock;
    const std::int64_t end = std::min(begin + QueriesPerBlock, tokens);
    rows.resize((end - begin) * tokens);
    EvaluateAttention(recording, sequence, place.layer, place.head, AttentionQuantity::Weights,
      begin, end, rows.data());
    for (; i < n && residues[i] < end; ++i)
    {
      const float* row = rows.data() + (residues[i] - begin) * tokens;
      std::transform(residues.begin(), residues.end(), between.begin() + i * n,
        [row](std::int64_t residue) { return row[residue]; });
    }
  }
  return between;
}

/// Measures the attention of a head [n, n] by what is known.
HeadContacts MeasureAttention(
  const std::vector<float>& attention, std::int64_t n, const ContactOptions& options)
{
  HeadContacts found;
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      const auto weight = static_cast<double>(attention[i * n + j]);
      if (options.contacts != nullptr && options.contacts->IsKnown(i, j))
      {
        found.contacts.Add(weight, options.threshold, options.contacts->Has(i, j));
      }
      if (!options.sites.empty())
      {
        found.sites.Add(weight, options.threshold, options.sites[j]);
      }
    }
  }
  return found;
}

/// A number of a list of sites, from 1 to `count`.
std::int64_t ReadSite(
  const std::string& text, std::int64_t count, const std::string& name, const std::string& word)
{
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  ThrowIf<OptionError>(text.empty() || error != std::errc() || end != text.data() + text.size() ||
                         number < 1 || number > count,
    name, ": expected numbers of residues from 1 to ", count,
    " and ranges, such as 12 45-48, found '", word, "'.");
  return number;
}

}

std::vector<std::int64_t> FindResidues(const Recording& recording, std::int64_t sequence)
{
  RequireOneSequence(recording, sequence);
  ThrowIf<OptionError>(recording.tokens.text.empty(),
    "Input: expected a recording with the texts of its tokens, which tell residues from special "
    "tokens, found one without.");
  const std::vector<bool> special = FindSpecialTokens(recording, sequence);
  std::vector<std::int64_t> residues;
  for (std::size_t i = 0; i < special.size(); ++i)
  {
    const std::string& text =
      recording.tokens.text[recording.sequenceOffsets[sequence] + static_cast<std::int64_t>(i)];
    const bool isGap = text == "-" || text == ".";
    if (!special[i] && !isGap)
    {
      residues.push_back(static_cast<std::int64_t>(i));
    }
  }
  return residues;
}

std::vector<bool> ReadSites(const std::string& list, std::int64_t count, const std::string& name)
{
  std::string spaced = list;
  std::replace_if(spaced.begin(), spaced.end(), [](char c) { return c == ',' || c == ';'; }, ' ');
  std::istringstream words(spaced);
  std::vector<bool> sites;
  for (std::string word; words >> word;)
  {
    const std::size_t dash = word.find('-');
    const std::int64_t first = ReadSite(word.substr(0, dash), count, name, word);
    const std::int64_t last =
      dash == std::string::npos ? first : ReadSite(word.substr(dash + 1), count, name, word);
    ThrowIf<OptionError>(last < first, name, ": expected a range that rises, found '", word, "'.");
    sites.resize(count, false);
    std::fill(sites.begin() + (first - 1), sites.begin() + last, true);
  }
  return sites;
}

char ResidueLetterOfToken(const std::string& text)
{
  const std::size_t first = text.find_first_not_of(' ');
  const bool isLetter =
    first + 1 == text.size() && first < text.size() && text[first] >= 'A' && text[first] <= 'Z';
  return isLetter ? text[first] : 'X';
}

void CorrectAttention(std::vector<float>& attention, std::int64_t n)
{
  std::vector<double> sums(n, 0);
  double all = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = 0; j <= i; ++j)
    {
      const float both = attention[i * n + j] + attention[j * n + i];
      attention[i * n + j] = attention[j * n + i] = both;
    }
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      sums[i] += static_cast<double>(attention[i * n + j]);
    }
    all += sums[i];
  }
  for (std::int64_t i = 0; all > 0 && i < n; ++i)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      float& value = attention[i * n + j];
      value = static_cast<float>(static_cast<double>(value) - sums[i] * sums[j] / all);
    }
  }
}

TrueContacts::TrueContacts(
  const std::vector<std::array<double, 3>>& places, const ContactRule& rule)
  : Residues(static_cast<std::int64_t>(places.size()))
  , Rule(rule)
  , Limit(static_cast<float>(rule.distance))
{
  this->Distances.reserve(places.size() * places.size());
  for (const auto& a : places)
  {
    for (const auto& b : places)
    {
      this->Distances.push_back(
        static_cast<float>(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])));
    }
  }
}

ContactRange RangeOf(std::int64_t separation)
{
  for (const ContactRange range : { ContactRange::Short, ContactRange::Medium, ContactRange::Long })
  {
    const auto [least, largest] = LimitsOf(range, 0);
    if (separation >= least && separation <= largest)
    {
      return range;
    }
  }
  return ContactRange::All;
}

double ContactPrecision::Share() const
{
  return ShareOf(static_cast<double>(this->contacts), static_cast<double>(this->pairs));
}

void ShareOfAttention::Add(double weight, double threshold, bool hasProperty)
{
  const bool isAttended = weight > threshold;
  this->attention += weight;
  this->attentionWith += hasProperty ? weight : 0;
  this->attended += isAttended ? 1 : 0;
  this->attendedWith += isAttended && hasProperty ? 1 : 0;
}

double ShareOfAttention::OfPairs() const
{
  return ShareOf(static_cast<double>(this->attendedWith), static_cast<double>(this->attended));
}

double ShareOfAttention::OfAttention() const
{
  return ShareOf(this->attentionWith, this->attention);
}

std::array<ContactPrecision, 3> MeasurePrecision(
  const std::vector<float>& scores, const TrueContacts& contacts, ContactRange range)
{
  const std::int64_t n = contacts.Count();
  const auto [least, largest] = LimitsOf(range, contacts.Separation());
  std::int64_t possible = 0;
  for (std::int64_t separation = least; separation <= std::min(largest, n - 1); ++separation)
  {
    possible += n - separation;
  }
  std::vector<ScoredPair> pairs;
  pairs.reserve(possible);
  for (std::int64_t i = 0; i < n; ++i)
  {
    const std::int64_t last = largest < n - i ? i + largest : n - 1;
    for (std::int64_t j = i + least; j <= last; ++j)
    {
      if (contacts.IsKnown(i, j))
      {
        pairs.push_back(
          { scores[i * n + j], static_cast<std::int32_t>(i), static_cast<std::int32_t>(j) });
      }
    }
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  const std::int64_t most = std::min(n, count);
  std::partial_sort(pairs.begin(), pairs.begin() + most, pairs.end(),
    [](const ScoredPair& a, const ScoredPair& b) { return a.IsBefore(b); });
  std::array<ContactPrecision, 3> found = {};
  for (std::size_t d = 0; d < PrecisionDivisors.size(); ++d)
  {
    found[d].pairs = std::min(std::max<std::int64_t>(n / PrecisionDivisors[d], 1), most);
    found[d].contacts = std::count_if(pairs.begin(), pairs.begin() + found[d].pairs,
      [&](const ScoredPair& pair) { return contacts.Has(pair.first, pair.second); });
  }
  return found;
}

ContactEvidence FindContacts(const Recording& recording, const std::vector<std::int64_t>& residues,
  const ContactOptions& options)
{
  RequireOneSequence(recording, options.sequence);
  ThrowIf<OptionError>(recording.mask == AttentionMask::Cross,
    "AttentionKind: expected attention within a sequence, found cross attention.");
  const std::vector<HeadPlace> heads = HeadsOf(recording);
  const auto isShown = [&](const HeadPlace& place)
  {
    return (options.layer < 0 || place.layer == options.layer) &&
           (options.head < 0 || place.head == options.head);
  };
  const auto shown = std::count_if(heads.begin(), heads.end(), isShown);
  if (options.layer >= 0 || shown == 0)
  {
    FindHead(recording, options.layer >= 0 || heads.empty() ? options.layer : heads[0].layer,
      std::max<std::int64_t>(options.head, 0));
  }
  if (options.predictor != nullptr)
  {
    CheckPredictor(recording, heads, *options.predictor);
  }
  const auto n = static_cast<std::int64_t>(residues.size());
  ThrowIf<OptionError>(!options.sites.empty() && options.sites.size() != residues.size(),
    "Sites: expected as many as there are residues, ", n, ", found ", options.sites.size(), ".");
  std::vector<double> sum(n * n, 0);
  std::vector<double> logits(options.predictor == nullptr ? 0 : n * n,
    options.predictor == nullptr ? 0 : options.predictor->bias);
  ContactEvidence found;
  found.heads.resize(heads.size());
  std::vector<std::vector<float>> maps(HeadsAtOnce);
  for (std::size_t begin = 0; begin < heads.size(); begin += HeadsAtOnce)
  {
    const std::size_t end = std::min(begin + HeadsAtOnce, heads.size());
    ParallelFor(static_cast<std::int64_t>(end - begin), options.threads,
      options.progress.Part(begin, end, heads.size()),
      [&](std::int64_t h)
      {
        std::vector<float>& map = maps[h];
        HeadContacts& measured = found.heads[begin + h];
        map = AttentionBetween(recording, options.sequence, heads[begin + h], residues);
        if (options.contacts != nullptr || !options.sites.empty())
        {
          measured = MeasureAttention(map, n, options);
        }
        CorrectAttention(map, n);
        if (options.contacts != nullptr)
        {
          measured.precision = MeasurePrecision(map, *options.contacts, ContactRange::All);
        }
        measured.place = heads[begin + h];
      });
    ParallelFor(n, options.threads,
      [&](std::int64_t i)
      {
        for (std::size_t h = begin; h < end; ++h)
        {
          const float* row = maps[h - begin].data() + i * n;
          for (std::int64_t j = 0; isShown(heads[h]) && j < n; ++j)
          {
            sum[i * n + j] += static_cast<double>(row[j]);
          }
          for (std::int64_t j = 0; !logits.empty() && j < n; ++j)
          {
            logits[i * n + j] += options.predictor->weights[h] * static_cast<double>(row[j]);
          }
        }
      });
  }
  const auto mean = [&](double value)
  { return static_cast<float>(value / static_cast<double>(shown)); };
  std::transform(sum.begin(), sum.end(), std::back_inserter(found.attention), mean);
  std::transform(logits.begin(), logits.end(), std::back_inserter(found.prediction),
    [](double logit) { return static_cast<float>(1 / (1 + std::exp(-logit))); });
  return found;
}

}
