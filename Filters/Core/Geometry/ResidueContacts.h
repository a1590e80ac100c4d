#pragma once

#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "Weights/ContactHead.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The positions of the residues of a sequence: of its tokens that are not special
/// (SpecialTokens.h) and no gaps of an alignment (- or .), rising. Throws OptionError for
/// AllSequences and if the recording has no texts of tokens.
std::vector<std::int64_t> FindResidues(const Recording& recording, std::int64_t sequence);

/// Which of `count` residues a list names: numbers from 1 and ranges, such as "12 45-48", with
/// spaces, commas or semicolons between them; none of an empty one. Throws OptionError for others,
/// with `name` before.
std::vector<bool> ReadSites(const std::string& list, std::int64_t count, const std::string& name);

/// The letter of the residue that a token is, from A to Z; X for other tokens, such as a mask.
char ResidueLetterOfToken(const std::string& text);

/// Turns the attention A [n, n] between residues, row-major, into the evidence of contacts of Rao
/// et al. ("Transformer protein language models are unsupervised structure learners", 2021), in
/// place: the symmetric B = A + A^T less the average product (Dunn et al. 2008),
///
///     B_ij - (sum of row i) (sum of row j) / (sum of all)
///
/// Without any attention, B stays 0.
void CorrectAttention(std::vector<float>& attention, std::int64_t n);

/// Which pairs of residues are in contact.
struct ContactRule
{
  double distance = 8;         ///< of their atoms, in the unit of the structure: less than this
  std::int64_t separation = 6; ///< least distance in the sequence
};

/// The true contacts of a sequence of residues.
class TrueContacts
{
public:
  /// `places`: of each residue the position of its atom; NaN for one that was not resolved.
  TrueContacts(const std::vector<std::array<double, 3>>& places, const ContactRule& rule);

  std::int64_t Count() const { return this->Residues; }
  std::int64_t Separation() const { return this->Rule.separation; }

  /// The distance of two residues; NaN unless both are resolved.
  float Distance(std::int64_t i, std::int64_t j) const
  {
    return this->Distances[i * this->Residues + j];
  }
  bool IsKnown(std::int64_t i, std::int64_t j) const
  {
    return this->Distance(i, j) == this->Distance(i, j);
  }
  bool Has(std::int64_t i, std::int64_t j) const
  {
    return (i < j ? j - i : i - j) >= this->Rule.separation && this->Distance(i, j) < this->Limit;
  }

private:
  std::int64_t Residues;
  ContactRule Rule;
  float Limit;
  std::vector<float> Distances; ///< [residues, residues]
};

/// Pairs of residues by their distance in the sequence (Rao et al. 2021), of those at least as far
/// apart as the rule says.
enum class ContactRange
{
  All,    ///< from the separation of the rule on
  Short,  ///< 6 to 11
  Medium, ///< 12 to 23
  Long    ///< 24 and more
};

inline constexpr std::array<const char*, 4> ContactRangeNames = { "All", "Short", "Medium",
  "Long" };

/// The range of two residues that are this far apart; All if it is less than Short.
ContactRange RangeOf(std::int64_t separation);

/// Of L residues the L / divisor pairs with the largest scores are taken for contacts, at least 1.
inline constexpr std::array<std::int64_t, 3> PrecisionDivisors = { 1, 2, 5 };
inline constexpr std::array<const char*, 3> PrecisionNames = { "L", "L/2", "L/5" };

/// How many of the pairs with the largest scores are contacts.
struct ContactPrecision
{
  std::int64_t pairs = 0; ///< L / divisor, or as many as there are
  std::int64_t contacts = 0;

  /// From 0 to 1; NaN without pairs.
  double Share() const;
};

/// The precision of scores [n, n], which are symmetric, in a range, for each of PrecisionDivisors,
/// among the pairs whose residues are both resolved. L counts all residues. Of equal scores the
/// pair with the smaller i, then j comes first.
std::array<ContactPrecision, 3> MeasurePrecision(
  const std::vector<float>& scores, const TrueContacts& contacts, ContactRange range);

/// How much of a head's attention has a property, over ordered pairs of residues.
struct ShareOfAttention
{
  std::int64_t attended = 0;     ///< pairs with attention above a threshold
  std::int64_t attendedWith = 0; ///< those of them that have the property
  double attention = 0;          ///< the sum of all
  double attentionWith = 0;

  /// Adds a pair.
  void Add(double weight, double threshold, bool hasProperty);

  /// p(property | attention), from 0 to 1 (Vig et al., "BERTology meets biology", 2021); NaN where
  /// no attention is above the threshold.
  double OfPairs() const;

  /// The share of the attention, from 0 to 1; NaN without any.
  double OfAttention() const;
};

/// What a head's attention shows.
struct HeadContacts
{
  HeadPlace place;
  ShareOfAttention contacts;                      ///< of resolved residues, that in contacts
  ShareOfAttention sites;                         ///< of all residues, that to keys which are sites
  std::array<ContactPrecision, 3> precision = {}; ///< of CorrectAttention, of all ranges
};

struct ContactOptions
{
  std::int64_t sequence = 0;
  std::int64_t layer = -1;      ///< whose attention is returned; -1: the mean of all recorded ones
  std::int64_t head = AllHeads; ///< of the layer, or of each layer
  const ContactHead* predictor = nullptr; ///< or none
  const TrueContacts* contacts = nullptr; ///< or none; of the residues of the sequence
  std::vector<bool> sites;                ///< which residues are some; empty: none is known
  double threshold = 0.3;                 ///< see ShareOfAttention
  int threads = 0;                        ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// What the attention of a sequence says of contacts.
struct ContactEvidence
{
  std::vector<float> attention;    ///< [n, n]: CorrectAttention of the head, or the mean of several
  std::vector<float> prediction;   ///< [n, n], probabilities; empty without a predictor
  std::vector<HeadContacts> heads; ///< of all recorded heads; their places, and what is known
};

/// Evaluates the attention of all recorded heads between `residues`, positions of the sequence. A
/// few heads are in memory at a time. Throws OptionError if the recording does not have the head,
/// if there are sites of another number of residues, and if a predictor has other heads than the
/// recording or needs layers that were not recorded; and as EvaluateAttention.
ContactEvidence FindContacts(const Recording& recording, const std::vector<std::int64_t>& residues,
  const ContactOptions& options);

}
