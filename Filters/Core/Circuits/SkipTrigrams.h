#pragma once

#include "Base/Progress.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <tuple>
#include <vector>

namespace atlas
{

/// Tokens of a skip-trigram "source ... destination output": where a head attends from the
/// destination back to the source, it raises the logit of the output after the destination (Elhage
/// et al. 2021, "A Mathematical Framework for Transformer Circuits").
struct SkipTrigram
{
  std::int32_t source = 0;
  std::int32_t destination = 0;
  std::int32_t output = 0;
  double queryKey = 0; ///< E W_Q W_K^T E^T / sqrt(d_head) at [destination, source], minus the mean
                       ///< of the row over all sources, which the softmax does not see
  double outputValue = 0; ///< E W_V W_O U at [source, output], minus the mean of the row over all
                          ///< outputs
  double score = 0;       ///< their product; both are positive

  /// By falling score, equal ones by the ids of source, destination and output.
  bool IsBefore(const SkipTrigram& other) const
  {
    return std::tie(other.score, this->source, this->destination, this->output) <
           std::tie(this->score, other.source, other.destination, other.output);
  }
};

struct SkipTrigramOptions
{
  std::int64_t layer = 0;
  std::int64_t head = 0;
  bool processes = true;             ///< whether weights are processed as TransformerLens does
  int top = 50;                      ///< at least 1
  std::vector<std::int32_t> sources; ///< the tokens that are sources; empty: all
  std::int64_t most = 0; ///< the most sources that are searched, those with the largest |k| |v|,
                         ///< where k is the centered key of the token and v its value; 0: all
  int threads = 0;       ///< as for ThreadCount; results do not depend on it
  int part = 0;          ///< of the sources, which `parts` processes share: see JoinSkipTrigrams
  int parts = 1;         ///< at least 1
  Progress progress;
};

struct SkipTrigramList
{
  std::vector<SkipTrigram> trigrams; ///< at most `top`, in order
  double leftOut = 0;  ///< what no score of the sources beyond `most` exceeds; 0 without any; the
                       ///< same for all parts
  double products = 0; ///< entries of the two circuits that were computed, of 2 V^2; each takes
                       ///< d_head multiplications and additions
};

/// The skip-trigrams of a head with the largest scores, among all destinations and outputs of the
/// vocabulary and the chosen sources. The result is that of computing all V^3 scores in double
/// precision: for each source only the `top` largest entries of its column of the first circuit and
/// of its row of the second matter. Products in single precision bound the largest entries of both;
/// only for sources that an exact bound of lengths and of rounding cannot rule out are the entries
/// themselves searched for.
///
/// Throws OptionError for options that do not fit, ModelError as RequireUnembedding and
/// ProcessedWeights do, and FileError for files that were changed.
SkipTrigramList FindSkipTrigrams(const Transformer& model, const SkipTrigramOptions& options);

/// The memory that it takes at most, in bytes.
double SkipTrigramBytes(const TransformerConfig& config, const SkipTrigramOptions& options);

/// Whether a list, joined from all parts, is the same as if no source had been left out, because no
/// skip-trigram of those sources is large enough to enter it.
bool AreOfAllSources(const std::vector<SkipTrigram>& trigrams, int top, double leftOut);

/// Joins lists of parts: the first `top` in order.
std::vector<SkipTrigram> JoinSkipTrigrams(const std::vector<SkipTrigram>& all, int top);

}
