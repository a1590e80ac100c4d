#include "ForeignRecording.h"

#include "Base/Error.h"
#include "BatchAxes.h"
#include "ForeignNames.h"
#include "StoredAttention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace atlas
{
namespace
{

class Builder
{
public:
  Builder(RecordingArrays& arrays, const Metadata& metadata, const RecordingReadOptions& options,
    std::vector<std::string>& warnings)
    : Arrays(arrays)
    , Texts(metadata)
    , Options(options)
    , Warnings(warnings)
    , Names(arrays)
    , Tokens(arrays, this->Names)
  {
  }

  UnpaddedRecording Build()
  {
    this->ReadTokens();
    this->Record.layerCount = static_cast<std::int32_t>(
      this->Names.layers.empty() ? 0 : this->Names.layers.rbegin()->first + 1);
    if (this->Names.IsStacked())
    {
      this->ReadStacked();
    }
    else
    {
      this->FindHeadCount();
      this->ReadLayers();
    }
    this->ReadMask();
    this->ReadScale();
    this->Record.alibiSlopes = ParseSlopes(this->Texts, this->Arrays.GetSource());
    const std::string warning = DropStoredAttention(this->Record, this->Options.threads);
    if (!warning.empty())
    {
      this->Warnings.push_back(this->Arrays.GetSource() + ": " + warning);
    }
    this->ReadResidual();
    this->ReadLogits();
    this->FailIf(this->Record.layers.empty() && this->Record.residual.empty(),
      "expected arrays of a recording, such as blocks.0.attn.hook_q and hook_k, or attention, "
      "found none of them.");
    return { std::move(this->Record), this->Tokens.TokenRows(),
      this->Tokens.Sequences() * this->Tokens.Length() };
  }

private:
  RecordingArrays& Arrays;
  const Metadata& Texts;
  const RecordingReadOptions& Options;
  std::vector<std::string>& Warnings;
  ForeignNames Names;
  BatchAxes Tokens;
  std::int64_t HeadCount = 0; ///< for flat arrays; 0: unknown
  Recording Record;

  template<class... Parts>
  void FailIf(bool isWrong, const Parts&... parts) const
  {
    ThrowIf<ModelError>(isWrong, this->Arrays.GetSource(), ": ", parts...);
  }

  const Shape& ShapeOf(const std::string& name) const { return this->Arrays.Find(name)->shape; }

  void ReadTokens()
  {
    RecordedTokens& tokens = this->Record.tokens;
    this->Record.sequenceOffsets = this->Tokens.Offsets();
    for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
    {
      for (std::int64_t t = 0; t < this->Record.SequenceLength(s); ++t)
      {
        tokens.sequence.push_back(static_cast<std::int32_t>(s));
        tokens.position.push_back(static_cast<std::int32_t>(t));
      }
    }
    for (const char* name : ForeignNames::TokenIds)
    {
      if (!tokens.id.empty())
      {
        this->Arrays.Explain(name, "there are token ids already");
      }
      else if (this->Arrays.Has(name))
      {
        tokens.id = this->Tokens.ReadIntegers(this->Arrays, name);
      }
    }
    if (this->Arrays.Has(ForeignNames::TokenTypes))
    {
      tokens.segment = this->Arrays.Narrowed(ForeignNames::TokenTypes,
        this->Tokens.ReadIntegers(this->Arrays, ForeignNames::TokenTypes));
    }
    // Which tokens are parts of pictures; CheckRecording checks that all three are there.
    for (const auto& [name, list] : { std::pair(ForeignNames::TokenPicture, &tokens.picture),
           std::pair(ForeignNames::TokenRow, &tokens.row),
           std::pair(ForeignNames::TokenColumn, &tokens.column) })
    {
      if (this->Arrays.Has(name))
      {
        *list = this->Arrays.Narrowed(name, this->Tokens.ReadIntegers(this->Arrays, name), -1);
      }
    }
  }

  void FindHeadCount()
  {
    this->HeadCount = this->Options.headCount;
    const auto text = this->Texts.find("n_heads");
    if (this->HeadCount == 0 && text != this->Texts.end())
    {
      this->HeadCount = ParseIndex(text->second, MaximumHeads).value_or(0);
    }
    for (const auto& [layer, names] : this->Names.layers)
    {
      for (const ForeignQuantity quantity :
        { ForeignQuantity::Weights, ForeignQuantity::Scores, ForeignQuantity::Mixed })
      {
        const ForeignArray* found = names.Find(quantity);
        const std::size_t axes = found == nullptr ? 0 : this->ShapeOf(found->name).size();
        if (this->HeadCount == 0 && axes == (this->Tokens.HasAxis() ? 4U : 3U))
        {
          const bool tokenFirst = quantity == ForeignQuantity::Mixed;
          this->HeadCount = this->ShapeOf(found->name)[axes - (tokenFirst ? 2 : 3)];
        }
      }
    }
  }

  /// The width of one head in a flat array of all query heads.
  std::int64_t FlatWidth(const ForeignArray& query) const
  {
    const std::int64_t width =
      this->ShapeOf(query.name).empty() ? 0 : this->ShapeOf(query.name).back();
    return this->HeadCount > 0 && width % this->HeadCount == 0 ? width / this->HeadCount : 0;
  }

  void ReadLayers()
  {
    const auto everywhere = [&](ForeignQuantity first, ForeignQuantity second)
    {
      return std::all_of(this->Names.layers.begin(), this->Names.layers.end(),
        [&](const auto& layer)
        {
          const bool none = !layer.second.Find(ForeignQuantity::Query) &&
                            !layer.second.Find(ForeignQuantity::RotatedQuery);
          return none || (layer.second.Find(first) && layer.second.Find(second));
        });
    };
    const auto somewhere = [&](ForeignQuantity first, ForeignQuantity second)
    {
      return std::any_of(this->Names.layers.begin(), this->Names.layers.end(),
        [&](const auto& layer) { return layer.second.Find(first) && layer.second.Find(second); });
    };
    this->Record.rotated = somewhere(ForeignQuantity::RotatedQuery, ForeignQuantity::RotatedKey);
    this->FailIf(this->Record.rotated &&
                   !everywhere(ForeignQuantity::RotatedQuery, ForeignQuantity::RotatedKey),
      "expected rotated queries and keys (attn.hook_rot_q, attn.hook_rot_k) in each layer that has "
      "queries, found them in some.");
    const ForeignQuantity query =
      this->Record.rotated ? ForeignQuantity::RotatedQuery : ForeignQuantity::Query;
    const ForeignQuantity key =
      this->Record.rotated ? ForeignQuantity::RotatedKey : ForeignQuantity::Key;
    const bool hasQueries = somewhere(query, key);
    for (const auto& [index, names] : this->Names.layers)
    {
      const bool both = names.Find(query) != nullptr && names.Find(key) != nullptr;
      const bool stored = names.Find(ForeignQuantity::Weights) != nullptr ||
                          names.Find(ForeignQuantity::Scores) != nullptr;
      this->ExplainQueries(names, both, hasQueries);
      if (!both && (hasQueries || !stored))
      {
        continue;
      }
      RecordedLayer layer;
      layer.index = static_cast<std::int32_t>(index);
      if (both)
      {
        this->ReadQueries(layer, *names.Find(query), *names.Find(key));
      }
      this->ReadAttention(layer, names);
      this->Record.layers.push_back(std::move(layer));
    }
    this->ReadOptional(ForeignQuantity::Value, &RecordedHead::value);
    this->ReadOptional(ForeignQuantity::Output, &RecordedHead::output);
  }

  void ExplainQueries(const ForeignLayer& names, bool both, bool hasQueries)
  {
    const auto explain = [&](ForeignQuantity quantity, const std::string& reason)
    {
      if (const ForeignArray* found = names.Find(quantity))
      {
        this->Arrays.Explain(found->name, reason);
      }
    };
    if (!both)
    {
      for (const ForeignQuantity quantity : { ForeignQuantity::Query, ForeignQuantity::Key,
             ForeignQuantity::RotatedQuery, ForeignQuantity::RotatedKey })
      {
        explain(quantity, "the layer needs both queries and keys");
      }
      if (hasQueries)
      {
        for (const ForeignQuantity quantity : { ForeignQuantity::Weights, ForeignQuantity::Scores })
        {
          explain(quantity, "other layers have queries and keys, but this one does not");
        }
      }
    }
    else if (this->Record.rotated)
    {
      explain(ForeignQuantity::Query, "the rotated queries are used instead");
      explain(ForeignQuantity::Key, "the rotated keys are used instead");
    }
    explain(ForeignQuantity::Mixed, "it follows from attention and values");
  }

  void ReadQueries(RecordedLayer& layer, const ForeignArray& query, const ForeignArray& key)
  {
    const std::vector<SharedMatrix> queries =
      this->Tokens.ReadHeads(this->Arrays, query, this->FlatWidth(query));
    const std::int64_t width = queries.front().columns;
    const std::vector<SharedMatrix> keys = this->Tokens.ReadHeads(this->Arrays, key, width);
    layer.heads.resize(queries.size());
    this->CheckGroups(key.name, keys, queries.size());
    for (std::size_t h = 0; h < queries.size(); ++h)
    {
      layer.heads[h].query = queries[h];
      layer.heads[h].key = keys[h * keys.size() / queries.size()];
    }
    this->Arrays.FailIf(keys.front().columns != width, key.name, "expected keys of dimension ",
      width, " as the queries '", query.name, "', found ", keys.front().columns, ".");
    layer.scoreScale = 1.0 / std::sqrt(static_cast<double>(width));
  }

  void CheckGroups(
    const std::string& name, const std::vector<SharedMatrix>& groups, std::size_t heads) const
  {
    this->Arrays.FailIf(groups.size() > heads || heads % groups.size() != 0, name,
      "expected as many heads as there are queries, ", heads, ", or a divisor of it, found ",
      groups.size(), ".");
  }

  /// Reads a quantity that either all recorded layers have, or none.
  void ReadOptional(ForeignQuantity quantity, SharedMatrix RecordedHead::* place)
  {
    const auto found = [&](const RecordedLayer& layer)
    { return this->Names.layers.at(layer.index).Find(quantity); };
    const bool everywhere =
      std::all_of(this->Record.layers.begin(), this->Record.layers.end(), found);
    for (RecordedLayer& layer : this->Record.layers)
    {
      const ForeignArray* name = found(layer);
      if (name == nullptr)
      {
        continue;
      }
      if (!everywhere)
      {
        this->Arrays.Explain(name->name, "other layers that are recorded do not have it");
        continue;
      }
      const bool isOutput = quantity == ForeignQuantity::Output;
      const SharedMatrix& query = layer.heads.front().query;
      const std::int64_t width =
        !isOutput && query.IsRecorded() ? query.columns : this->FlatWidth(*name);
      const std::vector<SharedMatrix> groups = this->Tokens.ReadHeads(this->Arrays, *name, width);
      this->Arrays.FailIf(isOutput && groups.size() != layer.heads.size(), name->name, "expected ",
        layer.heads.size(), " heads, found ", groups.size(), ".");
      this->CheckGroups(name->name, groups, layer.heads.size());
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        layer.heads[h].*place = groups[h * groups.size() / layer.heads.size()];
      }
    }
  }

  void ReadAttention(RecordedLayer& layer, const ForeignLayer& names)
  {
    const auto read = [&](ForeignQuantity quantity, std::vector<SharedMatrix> RecordedHead::* place)
    {
      if (const ForeignArray* found = names.Find(quantity))
      {
        const LayerHeads heads = { found->name,
          this->Arrays.LoadFloating(
            found->name, this->Tokens.With({ -1, this->Tokens.Length(), this->Tokens.Length() })),
          0 };
        this->AddAttention(layer, heads, place);
      }
    };
    read(ForeignQuantity::Weights, &RecordedHead::weights);
    read(ForeignQuantity::Scores, &RecordedHead::scores);
  }

  /// Where the attention of one layer is in an array.
  struct LayerHeads
  {
    std::string name;
    LoadedArray array;
    std::int64_t first; ///< number of matrices [T,T] before it in the array
  };

  void AddAttention(
    RecordedLayer& layer, const LayerHeads& from, std::vector<SharedMatrix> RecordedHead::* place)
  {
    const Shape& shape = from.array.view.shape;
    const std::int64_t heads = shape[shape.size() - 3];
    if (layer.heads.empty() && heads > 0 && heads <= MaximumHeads)
    {
      layer.heads.resize(heads);
    }
    this->Arrays.FailIf(heads != static_cast<std::int64_t>(layer.heads.size()), from.name,
      "expected ", layer.heads.size(), " heads as in the layer's other arrays, found ", heads, ".");
    for (std::int64_t h = 0; h < heads; ++h)
    {
      for (std::int64_t b = 0; b < this->Tokens.Sequences(); ++b)
      {
        (layer.heads[h].*place)
          .push_back(this->Tokens.ReadSquare(this->Arrays, from.name, from.array,
            from.first + b * heads + h, b, place == &RecordedHead::scores));
      }
    }
  }

  void ReadStacked()
  {
    const auto read = [&](const std::string& name, std::vector<SharedMatrix> RecordedHead::* place)
    {
      if (name.empty())
      {
        return;
      }
      Shape shape = this->Tokens.With({ -1, this->Tokens.Length(), this->Tokens.Length() });
      shape.insert(shape.begin(), -1);
      const LoadedArray array = this->Arrays.LoadFloating(name, shape);
      const std::int64_t layers = array.view.shape[0];
      const std::int64_t heads = array.view.shape[array.view.shape.size() - 3];
      this->Arrays.FailIf(
        layers < 1 || heads < 1 || layers > MaximumLayers || heads > MaximumHeads / layers, name,
        "expected layers and heads, found shape ", ToString(array.view.shape), ".");
      this->Arrays.FailIf(!this->Record.layers.empty() &&
                            layers != static_cast<std::int64_t>(this->Record.layers.size()),
        name, "expected ", this->Record.layers.size(), " layers, found ", layers, ".");
      this->Record.layers.resize(layers);
      this->Record.layerCount = static_cast<std::int32_t>(layers);
      for (std::int64_t l = 0; l < layers; ++l)
      {
        RecordedLayer& layer = this->Record.layers[l];
        layer.index = static_cast<std::int32_t>(l);
        this->AddAttention(layer, { name, array, l * heads * this->Tokens.Sequences() }, place);
      }
    };
    read(this->Names.stackedWeights, &RecordedHead::weights);
    read(this->Names.stackedScores, &RecordedHead::scores);
  }

  void ReadMask()
  {
    const bool ahead = StoredAttentionLooksAhead(this->Record).value_or(this->HasArraysOfBert());
    this->Record.mask = ahead ? AttentionMask::Bidirectional : AttentionMask::Causal;
    const auto text = this->Texts.find("mask");
    if (text != this->Texts.end())
    {
      this->Record.mask = ParseNamed<ModelError>(
        AttentionMasks, text->second, this->Arrays.GetSource() + ": metadata 'mask'");
    }
    this->Record.mask = this->Options.mask.value_or(this->Record.mask);
  }

  bool HasArraysOfBert() const
  {
    const auto& entries = this->Arrays.GetEntries();
    return std::any_of(entries.begin(), entries.end(),
      [](const auto& entry)
      {
        const auto has = [&](const char* name)
        { return entry.first.find(name) != std::string::npos; };
        return has("hook_normalized_resid_post") || has("hook_full_embed") ||
               has("hook_token_type_embed");
      });
  }

  void ReadScale()
  {
    std::optional<double> scale = this->Options.scoreScale;
    const auto text = this->Texts.find("score_scale");
    if (!scale && text != this->Texts.end())
    {
      char* end = nullptr;
      scale = std::strtod(text->second.c_str(), &end);
      this->FailIf(end == text->second.c_str() || *end != '\0' || !std::isfinite(*scale),
        "metadata 'score_scale': expected a number, found '", text->second, "'.");
    }
    for (RecordedLayer& layer : this->Record.layers)
    {
      layer.scoreScale = scale.value_or(layer.scoreScale);
    }
  }

  void ReadResidual()
  {
    std::vector<SharedMatrix> residual(static_cast<std::size_t>(this->Record.layerCount) + 1);
    for (const ForeignQuantity quantity :
      { ForeignQuantity::ResidualBefore, ForeignQuantity::ResidualAfter })
    {
      for (const auto& [layer, names] : this->Names.layers)
      {
        const ForeignArray* found = names.Find(quantity);
        SharedMatrix& matrix =
          residual[layer + (quantity == ForeignQuantity::ResidualAfter ? 1 : 0)];
        if (found != nullptr && matrix.IsRecorded())
        {
          this->Arrays.Explain(found->name, "the residual before the next layer is the same");
        }
        else if (found != nullptr)
        {
          matrix = this->Tokens.ReadVectors(this->Arrays, found->name);
        }
      }
    }
    KeepResidual(std::move(residual), this->Record);
  }

  void ReadLogits()
  {
    for (const char* name : ForeignNames::Logits)
    {
      if (this->Arrays.Has(name) && !this->Record.logits.IsRecorded())
      {
        this->Record.logits = this->Tokens.ReadVectors(this->Arrays, name);
      }
    }
  }
};

}

UnpaddedRecording MakeForeignRecording(RecordingArrays& arrays, const Metadata& metadata,
  const RecordingReadOptions& options, std::vector<std::string>& warnings)
{
  return Builder(arrays, metadata, options, warnings).Build();
}

}
