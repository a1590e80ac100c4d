#pragma once

#include "Files/Safetensors.h"
#include "Recording/RecordedAttention.h"
#include "Recording/Recording.h"
#include "Weights/TransformerConfig.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Recordings beside what the original code computed.
namespace atlas::test
{

inline constexpr double Tolerance = 2e-5;       ///< of scores, attention and head outputs
inline constexpr double StreamTolerance = 2e-4; ///< of hidden states and logits

/// Not with std::max, which would lose NaN.
inline void Raise(double& largest, double difference)
{
  largest = std::abs(difference) <= largest ? largest : std::abs(difference);
}

/// The layer that has the attention number `index` of a model.
inline std::int64_t LayerOfAttention(const TransformerConfig& config, std::int64_t index)
{
  std::int64_t layer = index;
  while (!config.mixers.empty() &&
         (!config.HasAttention(layer) || config.AttentionsBefore(layer) < index))
  {
    ++layer;
  }
  return layer;
}

/// A row of a recording, and where tensors of the original code have it.
struct ExpectedPlace
{
  std::int64_t row = 0;
  std::int64_t batch = 0;
  std::int64_t token = 0;
};

using ExpectedPlaces = std::vector<ExpectedPlace>;

/// Those of a part whose sequence s has the tokens `tokens[s]` of batch s, from row `first[s]` of
/// the sequence on.
inline ExpectedPlaces PlacesOf(const Recording& part,
  const std::vector<std::vector<std::int64_t>>& tokens, const std::vector<std::int64_t>& first = {})
{
  ExpectedPlaces places;
  for (std::size_t s = 0; s < tokens.size(); ++s)
  {
    std::int64_t row = part.sequenceOffsets[s] + (first.empty() ? 0 : first[s]);
    for (const std::int64_t token : tokens[s])
    {
      places.push_back({ row++, static_cast<std::int64_t>(s), token });
    }
  }
  return places;
}

/// A part of a recording, and the tensors [B, heads, T, columns] or [B, T, columns] of the original
/// code, whose names begin with `prefix`.
struct PartParity
{
  const Recording& part;
  const TensorViews& expected;
  std::string prefix;
  ExpectedPlaces queries; ///< where there are queries, outputs and hidden states
  ExpectedPlaces keys;

  bool Has(const std::string& quantity) const
  {
    return this->expected.count(this->prefix + quantity) != 0;
  }

  /// The largest deviation of a matrix, at head `head`.
  double Deviation(const std::string& quantity, const SharedMatrix& found,
    const ExpectedPlaces& places, std::int64_t head = 0) const
  {
    const TensorView& view = this->expected.at(this->prefix + quantity);
    const Shape& shape = view.shape;
    EXPECT_EQ(shape.back(), found.columns) << quantity;
    EXPECT_EQ(this->part.tokens.Count(), found.rows) << quantity;
    const std::int64_t heads = shape.size() == 4 ? shape[1] : 1;
    double largest = 0;
    for (const ExpectedPlace& place : places)
    {
      const std::int64_t first =
        ((place.batch * heads + head) * shape[shape.size() - 2] + place.token) * found.columns;
      for (std::int64_t c = 0; c < found.columns; ++c)
      {
        Raise(largest, static_cast<double>(found.Row(place.row)[c]) -
                         view.At(static_cast<std::uint64_t>(first + c)));
      }
    }
    return largest;
  }

  /// Likewise of scores, at the pairs that the mask and the window allow, or of weights at all
  /// pairs, as views show them. All weights of a query must be at its keys.
  double AttentionDeviation(
    const std::string& quantity, std::size_t l, std::int64_t h, AttentionQuantity kind) const
  {
    const bool isScores = kind == AttentionQuantity::Scores;
    const TensorView& view = this->expected.at(this->prefix + quantity);
    const std::int64_t columns = view.shape[3];
    const std::int64_t window = this->part.layers[l].window;
    double largest = 0;
    for (std::int64_t s = 0; s < this->part.SequenceCount(); ++s)
    {
      const std::int64_t count = this->part.SequenceLength(s);
      const std::int64_t first = this->part.sequenceOffsets[s];
      const std::int64_t index = this->part.layers[l].index;
      std::vector<float> found(count * count);
      EvaluateAttention(this->part, s, index, h, kind, 0, count, found.data());
      for (const ExpectedPlace& query : this->queries)
      {
        const std::int64_t q = query.row - first;
        if (q < 0 || q >= count)
        {
          continue;
        }
        const std::int64_t begin =
          ((query.batch * view.shape[1] + h) * view.shape[2] + query.token) * columns;
        double rest = 0; // of the expected weights
        for (std::int64_t column = 0; column < columns; ++column)
        {
          rest += isScores ? 0 : view.At(static_cast<std::uint64_t>(begin + column));
        }
        for (const ExpectedPlace& key : this->keys)
        {
          const std::int64_t k = key.row - first;
          const bool isHere = k >= 0 && k < count;
          const bool isMasked =
            this->part.mask == AttentionMask::Causal && (k > q || (window > 0 && k <= q - window));
          if (isHere && (!isScores || !isMasked))
          {
            const double value = view.At(static_cast<std::uint64_t>(begin + key.token));
            rest -= isScores ? 0 : value;
            Raise(largest, static_cast<double>(found[q * count + k]) - value);
          }
        }
        EXPECT_NEAR(rest, 0, 1e-5) << quantity << ", query " << q;
      }
    }
    return largest;
  }

  /// Those of all quantities that the original code gives.
  std::map<std::string, double> Deviations() const
  {
    std::map<std::string, double> deviations;
    const auto raise = [&](const char* name, const std::string& quantity, const auto& deviation)
    {
      if (this->Has(quantity))
      {
        Raise(deviations[name], deviation(quantity));
      }
    };
    const auto compare = [&](const char* name, const std::string& quantity,
                           const SharedMatrix& found, const ExpectedPlaces& places, std::int64_t h)
    {
      raise(name, quantity,
        [&](const std::string& which) { return this->Deviation(which, found, places, h); });
    };
    for (std::size_t l = 0; l < this->part.layers.size(); ++l)
    {
      const RecordedLayer& layer = this->part.layers[l];
      const std::string name = "layer." + std::to_string(layer.index) + ".";
      for (std::int64_t h = 0; h < static_cast<std::int64_t>(layer.heads.size()); ++h)
      {
        const RecordedHead& head = layer.heads[h];
        compare("query", name + "query", head.query, this->queries, h);
        compare("key", name + "key", head.key, this->keys, h);
        compare("value", name + "value", head.value, this->keys, h);
        compare("outputs", name + "head_output", head.output, this->queries, h);
        for (const auto& [which, kind] : { std::pair("scores", AttentionQuantity::Scores),
               std::pair("attention", AttentionQuantity::Weights) })
        {
          raise(which, name + which, [&, kind = kind](const std::string& quantity)
            { return this->AttentionDeviation(quantity, l, h, kind); });
        }
      }
    }
    for (std::size_t l = 0; l < this->part.residual.size(); ++l)
    {
      const SharedMatrix& found = this->part.residual[l];
      const std::string name = "hidden." + std::to_string(l);
      // OPT's last hidden state is projected, so it has other columns; its logits are compared.
      const bool isProjected = l + 1 == this->part.residual.size() && this->Has(name) &&
                               this->expected.at(this->prefix + name).shape.back() != found.columns;
      if (!isProjected)
      {
        compare("hidden", name, found, this->queries, 0);
      }
    }
    return deviations;
  }
};

/// Expects deviations within the tolerances, of scores in units of `scoreScale`, of attention in
/// units of `attentionScale`, of hidden states and logits in units of `streamScale`, and prints
/// them.
inline void ExpectSmall(const std::string& name, const std::map<std::string, double>& deviations,
  double scoreScale = 1, double attentionScale = 1, double streamScale = 1)
{
  std::cout << name << ":";
  for (const auto& [quantity, deviation] : deviations)
  {
    const bool isStream = quantity == "hidden" || quantity == "logits";
    EXPECT_LE(deviation, isStream               ? streamScale * StreamTolerance
                         : quantity == "scores" ? scoreScale * Tolerance
                                                : attentionScale * Tolerance)
      << name << ": " << quantity;
    std::cout << " " << quantity << " " << deviation;
  }
  std::cout << "\n";
}

/// The names of quantities that were compared, in one text.
inline std::string NamesOf(const std::map<std::string, double>& deviations)
{
  std::string names;
  for (const auto& [name, deviation] : deviations)
  {
    names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

}
