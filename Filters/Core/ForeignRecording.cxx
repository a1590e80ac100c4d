// Recordings whose arrays have the names of TransformerLens or Hugging Face; RecordingFile.h has
// the list.

#include "Error.h"
#include "RecordingArrays.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace atlas
{
namespace
{

enum class Quantity
{
  RotatedQuery,
  RotatedKey,
  Query,
  Key,
  Value,
  Mixed, ///< weighted sum of values: not kept, but it shows the number of heads
  Output,
  Weights,
  Scores,
  ResidualBefore,
  ResidualAfter,
  Count
};

/// Order of the axes of an array that has a vector per token and head.
enum class Layout
{
  TokenFirst,     ///< [B,T,H,d] or, without a batch, [T,H,d]
  PerhapsFlat,    ///< the same, or [B,T,H*d], [T,H*d]
  HeadFirst,      ///< [B,H,T,d] or [H,T,d]
  NotPerHeadTable ///< attention [B,H,T,T], residual [B,T,d]
};

struct KnownName
{
  std::string_view prefix;
  std::string_view rest;
  Quantity quantity;
  Layout layout;
};

/// Of several names of one quantity the first that is there counts.
constexpr std::array<KnownName, 28> KnownNames = { {
  { "blocks.", "attn.hook_rot_q", Quantity::RotatedQuery, Layout::TokenFirst },
  { "blocks.", "attn.hook_rot_k", Quantity::RotatedKey, Layout::TokenFirst },
  { "blocks.", "attn.hook_q", Quantity::Query, Layout::TokenFirst },
  { "blocks.", "attn.q.hook_out", Quantity::Query, Layout::PerhapsFlat },
  { "blocks.", "attn.qkv.q_hook_out", Quantity::Query, Layout::PerhapsFlat },
  { "layer.", "query", Quantity::Query, Layout::HeadFirst },
  { "blocks.", "attn.hook_k", Quantity::Key, Layout::TokenFirst },
  { "blocks.", "attn.k.hook_out", Quantity::Key, Layout::PerhapsFlat },
  { "blocks.", "attn.qkv.k_hook_out", Quantity::Key, Layout::PerhapsFlat },
  { "layer.", "key", Quantity::Key, Layout::HeadFirst },
  { "blocks.", "attn.hook_v", Quantity::Value, Layout::TokenFirst },
  { "blocks.", "attn.v.hook_out", Quantity::Value, Layout::PerhapsFlat },
  { "blocks.", "attn.qkv.v_hook_out", Quantity::Value, Layout::PerhapsFlat },
  { "layer.", "value", Quantity::Value, Layout::HeadFirst },
  { "blocks.", "attn.hook_z", Quantity::Mixed, Layout::TokenFirst },
  { "blocks.", "attn.o.hook_in", Quantity::Mixed, Layout::PerhapsFlat },
  { "blocks.", "attn.hook_result", Quantity::Output, Layout::TokenFirst },
  { "layer.", "head_output", Quantity::Output, Layout::HeadFirst },
  { "blocks.", "attn.hook_pattern", Quantity::Weights, Layout::NotPerHeadTable },
  { "layer.", "attention", Quantity::Weights, Layout::NotPerHeadTable },
  { "blocks.", "attn.hook_attn_scores", Quantity::Scores, Layout::NotPerHeadTable },
  { "layer.", "scores", Quantity::Scores, Layout::NotPerHeadTable },
  { "blocks.", "hook_resid_pre", Quantity::ResidualBefore, Layout::NotPerHeadTable },
  { "blocks.", "hook_in", Quantity::ResidualBefore, Layout::NotPerHeadTable },
  { "hidden.", "", Quantity::ResidualBefore, Layout::NotPerHeadTable },
  { "blocks.", "hook_normalized_resid_post", Quantity::ResidualAfter, Layout::NotPerHeadTable },
  { "blocks.", "hook_resid_post", Quantity::ResidualAfter, Layout::NotPerHeadTable },
  { "blocks.", "hook_out", Quantity::ResidualAfter, Layout::NotPerHeadTable },
} };

constexpr std::array<const char*, 2> LogitNames = { "logits", "unembed.hook_out" };
constexpr std::array<const char*, 4> TokenNames = { "token_ids", "tokens", "hook_tokens",
  "input_ids" };
constexpr const char* TokenTypes = "token_type_ids";
constexpr const char* PaddingMask = "attention_mask";

/// The stored attention must be what queries and keys give, in half precision too.
constexpr double AttentionTolerance = 0.02;

/// Masked scores are -infinity, -1e5 in old TransformerLens files, or the least float elsewhere.
constexpr float MaskedScore = -5e4F;

struct Found
{
  std::string name;
  Layout layout = Layout::TokenFirst;
};

/// The arrays of one layer: of each quantity the best name.
using LayerNames = std::array<std::optional<Found>, static_cast<std::size_t>(Quantity::Count)>;

std::size_t Index(Quantity quantity)
{
  return static_cast<std::size_t>(quantity);
}

class Builder
{
public:
  Builder(RecordingArrays& arrays, const Metadata& metadata, const RecordingReadOptions& options,
    std::vector<std::string>& warnings)
    : Arrays(arrays)
    , Texts(metadata)
    , Options(options)
    , Warnings(warnings)
  {
  }

  Recording Build()
  {
    this->FindNames();
    this->FindTokens();
    this->ReadTokens();
    this->Record.layerCount =
      static_cast<std::int32_t>(this->Layers.empty() ? 0 : this->Layers.rbegin()->first + 1);
    if (this->IsStacked())
    {
      this->ReadStacked();
    }
    else
    {
      this->ReadLayers();
    }
    this->ReadMask();
    this->DropAttentionThatIsGiven();
    this->ReadResidual();
    for (const char* name : LogitNames)
    {
      if (this->Arrays.Find(name) != nullptr && !this->Record.logits.IsRecorded())
      {
        this->Record.logits = this->ReadVectors(name);
      }
    }
    if (this->Record.layers.empty() && this->Record.residual.empty())
    {
      throw ModelError(this->Arrays.GetSource() +
                       ": expected arrays of a recording, such as blocks.0.attn.hook_q and hook_k, "
                       "or attention, found none of them.");
    }
    return std::move(this->Record);
  }

private:
  RecordingArrays& Arrays;
  const Metadata& Texts;
  const RecordingReadOptions& Options;
  std::vector<std::string>& Warnings;
  Recording Record;

  std::map<std::int64_t, LayerNames> Layers;
  std::string StackedWeights;
  std::string StackedScores;
  bool HasBatch = false;
  std::int64_t Batch = 1;
  std::int64_t Length = -1;
  std::int64_t HeadCount = 0;     ///< of flat arrays; 0: unknown
  std::vector<std::int64_t> Kept; ///< rows of [B * T] that are no padding
  bool Padded = false;

  bool IsStacked() const { return !this->StackedWeights.empty() || !this->StackedScores.empty(); }

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw ModelError(this->Arrays.GetSource() + ": " + message);
  }

  const Shape& ShapeOf(const std::string& name) const { return this->Arrays.Find(name)->shape; }

  static const Found* Get(const LayerNames& names, Quantity quantity)
  {
    const std::optional<Found>& found = names[Index(quantity)];
    return found ? &*found : nullptr;
  }

  void FindNames()
  {
    for (const KnownName& known : KnownNames)
    {
      for (const auto& [name, entry] : this->Arrays.GetEntries())
      {
        const auto indexed = ParseIndexed(name, known.prefix);
        if (!indexed || indexed->second != known.rest)
        {
          continue;
        }
        // There is a hidden state more than layers: that of index l is the one behind layer l - 1.
        const bool after = known.prefix == "hidden." && indexed->first > 0;
        const std::int64_t layer = indexed->first - (after ? 1 : 0);
        if (layer >= MaximumLayers)
        {
          this->Arrays.Fail(name, "expected at most " + std::to_string(MaximumLayers) + " layers.");
        }
        this->Offer(layer, after ? Quantity::ResidualAfter : known.quantity, name, known.layout);
      }
    }
    this->FindStacked();
  }

  void Offer(std::int64_t layer, Quantity quantity, const std::string& name, Layout layout)
  {
    const bool isResult = quantity == Quantity::Output && layout == Layout::TokenFirst;
    if (isResult && this->IsStaleResult(name))
    {
      return;
    }
    std::optional<Found>& place = this->Layers[layer][Index(quantity)];
    if (place)
    {
      this->Arrays.Explain(name, "'" + place->name + "' holds the same");
      return;
    }
    place = Found{ name, layout };
  }

  /// TransformerLens' caches may hold hook_result summed over heads, [B,T,d], from before heads
  /// were separated: it has an axis less than the attention.
  bool IsStaleResult(const std::string& name)
  {
    const std::string stem = name.substr(0, name.rfind('.'));
    const auto* mixed = this->Arrays.Find(stem + ".hook_z");
    const bool stale =
      mixed != nullptr && mixed->shape.size() > this->Arrays.Find(name)->shape.size();
    if (stale)
    {
      this->Arrays.Explain(name, "it is the sum over heads, not the result of each");
    }
    return stale;
  }

  void FindStacked()
  {
    if (!this->Layers.empty())
    {
      return; // 'attention' beside the arrays of layers means something else
    }
    for (const char* name : { "attention", "array" })
    {
      if (this->Arrays.Find(name) != nullptr)
      {
        this->StackedWeights = name;
      }
    }
    if (this->Arrays.Find("scores") != nullptr)
    {
      this->StackedScores = "scores";
    }
    if (this->StackedWeights == "array" && !this->LooksLikeWeights("array"))
    {
      this->StackedScores = "array";
      this->StackedWeights.clear();
    }
  }

  bool LooksLikeWeights(const std::string& name)
  {
    const ArrayFile::Entry& entry = *this->Arrays.Find(name);
    if (!IsFloating(entry.dtype))
    {
      return true; // and refused later
    }
    const LoadedArray array = entry.load();
    const std::uint64_t count = array.view.Count();
    for (std::uint64_t i = 0; i < count; ++i)
    {
      const double value = array.view.At(i);
      if (value < 0 || value > 1.01)
      {
        return false;
      }
    }
    return true;
  }

  /// Takes the number of tokens, and whether there is a batch, from an array whose axes are
  /// certain: `axes` of them without a batch, that of the tokens `behind` from the last one.
  bool TakeTokens(const std::string& name, std::size_t axes, std::size_t behind)
  {
    const ArrayFile::Entry* entry = this->Arrays.Find(name);
    if (entry == nullptr || (entry->shape.size() != axes && entry->shape.size() != axes + 1))
    {
      return false;
    }
    if (ElementCount(entry->shape).value_or(0) == 0)
    {
      this->Arrays.Fail(name, "expected tokens, found shape " + ToString(entry->shape) + ".");
    }
    this->HasBatch = entry->shape.size() == axes + 1;
    this->Batch = this->HasBatch ? entry->shape[IsStackedName(name) ? 1 : 0] : 1;
    this->Length = entry->shape[entry->shape.size() - 1 - behind];
    return true;
  }

  static bool IsStackedName(const std::string& name)
  {
    return name == "attention" || name == "scores" || name == "array";
  }

  bool TakeTokens()
  {
    for (const std::string& name : { this->StackedWeights, this->StackedScores })
    {
      if (!name.empty())
      {
        return this->TakeTokens(name, 4, 0);
      }
    }
    for (const auto& [layer, names] : this->Layers)
    {
      for (const Quantity quantity : { Quantity::Weights, Quantity::Scores })
      {
        const Found* found = Get(names, quantity);
        if (found != nullptr && this->TakeTokens(found->name, 3, 0))
        {
          return true;
        }
      }
    }
    for (const char* name : TokenNames)
    {
      if (this->TakeTokens(name, 1, 0))
      {
        return true;
      }
    }
    for (const auto& [layer, names] : this->Layers)
    {
      for (const Quantity quantity : { Quantity::ResidualBefore, Quantity::ResidualAfter })
      {
        const Found* found = Get(names, quantity);
        if (found != nullptr && this->TakeTokens(found->name, 2, 1))
        {
          return true;
        }
      }
    }
    for (const char* name : LogitNames)
    {
      if (this->TakeTokens(name, 2, 1))
      {
        return true;
      }
    }
    return this->TakeTokensOfHeads();
  }

  /// From arrays of vectors per head, where old names never lie flat, and new ones with three axes
  /// do.
  bool TakeTokensOfHeads()
  {
    for (const auto& [layer, names] : this->Layers)
    {
      for (const Quantity quantity : { Quantity::RotatedQuery, Quantity::Query, Quantity::Key,
             Quantity::Value, Quantity::Mixed, Quantity::Output })
      {
        const Found* found = Get(names, quantity);
        if (found == nullptr)
        {
          continue;
        }
        const std::size_t axes = this->ShapeOf(found->name).size();
        const bool flat = found->layout == Layout::PerhapsFlat && (axes == 2 || axes == 3);
        const std::size_t behind = found->layout == Layout::HeadFirst || flat ? 1 : 2;
        if (this->TakeTokens(found->name, flat ? 2 : 3, behind))
        {
          return true;
        }
      }
    }
    return false;
  }

  void FindTokens()
  {
    if (!this->TakeTokens())
    {
      std::string found;
      for (const auto& [name, entry] : this->Arrays.GetEntries())
      {
        found = "'" + name + "' " + ToString(entry.shape);
        if (IsStackedName(name))
        {
          break;
        }
      }
      this->Fail(
        "expected arrays of a recording, such as blocks.0.attn.hook_q and hook_k [B,T,H,d], "
        "or attention [L,H,T,T], found " +
        (found.empty() ? "no array" : "none, but " + found) + ".");
    }
    this->HeadCount = this->Options.headCount;
    const auto text = this->Texts.find("n_heads");
    if (this->HeadCount == 0 && text != this->Texts.end())
    {
      this->HeadCount = ParseIndex(text->second, MaximumHeads).value_or(0);
    }
    for (const auto& [layer, names] : this->Layers)
    {
      for (const Quantity quantity : { Quantity::Weights, Quantity::Scores, Quantity::Mixed })
      {
        const Found* found = Get(names, quantity);
        const std::size_t axes = found == nullptr ? 0 : this->ShapeOf(found->name).size();
        if (this->HeadCount == 0 && axes == (this->HasBatch ? 4U : 3U))
        {
          const bool tokenFirst = quantity == Quantity::Mixed;
          this->HeadCount = this->ShapeOf(found->name)[axes - (tokenFirst ? 2 : 3)];
        }
      }
    }
  }

  /// [B, sizes...] or [sizes...]
  Shape Batched(std::initializer_list<std::int64_t> sizes) const
  {
    Shape shape;
    if (this->HasBatch)
    {
      shape.push_back(this->Batch);
    }
    shape.insert(shape.end(), sizes);
    return shape;
  }

  void ReadTokens()
  {
    const std::int64_t rows = this->Batch * this->Length;
    if (rows > std::numeric_limits<std::int32_t>::max())
    {
      this->Fail("expected fewer than 2^31 tokens, found " + std::to_string(rows) + ".");
    }
    std::vector<std::int64_t> mask;
    if (this->Arrays.Find(PaddingMask) != nullptr)
    {
      mask = this->Arrays.LoadIntegers(PaddingMask, this->Batched({ this->Length }));
    }
    RecordedTokens& tokens = this->Record.tokens;
    this->Record.sequenceOffsets = { 0 };
    for (std::int64_t row = 0; row < rows; ++row)
    {
      if (mask.empty() || mask[static_cast<std::size_t>(row)] != 0)
      {
        const auto position =
          static_cast<std::int64_t>(this->Kept.size()) - this->Record.sequenceOffsets.back();
        this->Kept.push_back(row);
        tokens.sequence.push_back(static_cast<std::int32_t>(row / this->Length));
        tokens.position.push_back(static_cast<std::int32_t>(position));
      }
      if ((row + 1) % this->Length == 0)
      {
        this->Record.sequenceOffsets.push_back(static_cast<std::int64_t>(this->Kept.size()));
      }
    }
    this->Padded = static_cast<std::int64_t>(this->Kept.size()) < rows;
    for (const char* name : TokenNames)
    {
      if (this->Arrays.Find(name) == nullptr)
      {
        continue;
      }
      if (!tokens.id.empty())
      {
        this->Arrays.Explain(name, "there are token ids already");
        continue;
      }
      tokens.id = this->OfKept(this->Arrays.LoadIntegers(name, this->Batched({ this->Length })));
    }
    if (this->Arrays.Find(TokenTypes) != nullptr)
    {
      for (const std::int64_t type :
        this->OfKept(this->Arrays.LoadIntegers(TokenTypes, this->Batched({ this->Length }))))
      {
        tokens.segment.push_back(static_cast<std::int32_t>(type));
      }
    }
  }

  std::vector<std::int64_t> OfKept(const std::vector<std::int64_t>& all) const
  {
    std::vector<std::int64_t> kept;
    kept.reserve(this->Kept.size());
    for (const std::int64_t row : this->Kept)
    {
      kept.push_back(all[static_cast<std::size_t>(row)]);
    }
    return kept;
  }

  /// A vector per token, [B,T,d].
  SharedMatrix ReadVectors(const std::string& name)
  {
    const LoadedArray array = this->Arrays.LoadFloating(name, this->Batched({ this->Length, -1 }));
    const std::int64_t width = array.view.shape.back();
    return this->Arrays.Gather(name, array, static_cast<std::int64_t>(this->Kept.size()), width,
      [&](std::int64_t i)
      { return static_cast<std::uint64_t>(this->Kept[static_cast<std::size_t>(i)] * width); });
  }

  /// A vector per token and head: a matrix for each head.
  std::vector<SharedMatrix> ReadHeads(const Found& found, std::int64_t flatWidth)
  {
    const std::size_t axes = this->ShapeOf(found.name).size();
    const bool flat = found.layout == Layout::PerhapsFlat && axes == (this->HasBatch ? 3U : 2U);
    const bool headFirst = found.layout == Layout::HeadFirst;
    Shape shape = this->Batched({ this->Length, -1, -1 });
    if (headFirst)
    {
      shape = this->Batched({ -1, this->Length, -1 });
    }
    else if (flat)
    {
      shape = this->Batched({ this->Length, -1 });
    }
    const LoadedArray array = this->Arrays.LoadFloating(found.name, shape);
    const Shape& is = array.view.shape;
    std::int64_t heads = is[is.size() - (headFirst ? 3 : 2)];
    std::int64_t width = is.back();
    if (flat)
    {
      if (flatWidth < 1 || width % flatWidth != 0)
      {
        this->Arrays.Fail(
          found.name, "expected vectors of heads side by side, whose number must be "
                      "known and divide " +
                        std::to_string(width) + "; give it as n_heads.");
      }
      heads = width / flatWidth;
      width = flatWidth;
    }
    if (heads < 1 || width < 1 || heads > MaximumHeads)
    {
      this->Arrays.Fail(
        found.name, "expected heads and dimensions, found shape " + ToString(is) + ".");
    }
    std::vector<SharedMatrix> matrices;
    for (std::int64_t h = 0; h < heads; ++h)
    {
      const auto offset = [&](std::int64_t i)
      {
        const std::int64_t row = this->Kept[static_cast<std::size_t>(i)];
        const std::int64_t vector =
          headFirst ? (row / this->Length * heads + h) * this->Length + row % this->Length
                    : row * heads + h;
        return static_cast<std::uint64_t>(vector * width);
      };
      matrices.push_back(this->Arrays.Gather(
        found.name, array, static_cast<std::int64_t>(this->Kept.size()), width, offset));
    }
    return matrices;
  }

  /// The width of one head in a flat array of all query heads.
  std::int64_t FlatWidth(const Found& query) const
  {
    const std::int64_t width =
      this->ShapeOf(query.name).empty() ? 0 : this->ShapeOf(query.name).back();
    return this->HeadCount > 0 && width % this->HeadCount == 0 ? width / this->HeadCount : 0;
  }

  void ReadLayers()
  {
    const auto everywhere = [&](Quantity first, Quantity second)
    {
      return std::all_of(this->Layers.begin(), this->Layers.end(),
        [&](const auto& layer)
        {
          const bool none =
            !Get(layer.second, Quantity::Query) && !Get(layer.second, Quantity::RotatedQuery);
          return none || (Get(layer.second, first) && Get(layer.second, second));
        });
    };
    const auto somewhere = [&](Quantity first, Quantity second)
    {
      return std::any_of(this->Layers.begin(), this->Layers.end(),
        [&](const auto& layer) { return Get(layer.second, first) && Get(layer.second, second); });
    };
    this->Record.rotated = somewhere(Quantity::RotatedQuery, Quantity::RotatedKey);
    if (this->Record.rotated && !everywhere(Quantity::RotatedQuery, Quantity::RotatedKey))
    {
      this->Fail(
        "expected rotated queries and keys (attn.hook_rot_q, attn.hook_rot_k) in each layer "
        "that has queries, found them in some.");
    }
    const Quantity query = this->Record.rotated ? Quantity::RotatedQuery : Quantity::Query;
    const Quantity key = this->Record.rotated ? Quantity::RotatedKey : Quantity::Key;
    const bool hasQueries = somewhere(query, key);
    for (const auto& [index, names] : this->Layers)
    {
      const bool both = Get(names, query) != nullptr && Get(names, key) != nullptr;
      const bool stored =
        Get(names, Quantity::Weights) != nullptr || Get(names, Quantity::Scores) != nullptr;
      this->ExplainQueries(names, both, hasQueries);
      if (!both && (hasQueries || !stored))
      {
        continue;
      }
      RecordedLayer layer;
      layer.index = static_cast<std::int32_t>(index);
      if (both)
      {
        this->ReadQueries(layer, *Get(names, query), *Get(names, key));
      }
      this->ReadAttention(layer, names);
      this->Record.layers.push_back(std::move(layer));
    }
    this->ReadOptional(Quantity::Value, &RecordedHead::value);
    this->ReadOptional(Quantity::Output, &RecordedHead::output);
  }

  void ExplainQueries(const LayerNames& names, bool both, bool hasQueries)
  {
    const auto explain = [&](Quantity quantity, const std::string& reason)
    {
      if (const Found* found = Get(names, quantity))
      {
        this->Arrays.Explain(found->name, reason);
      }
    };
    if (!both)
    {
      for (const Quantity quantity :
        { Quantity::Query, Quantity::Key, Quantity::RotatedQuery, Quantity::RotatedKey })
      {
        explain(quantity, "the layer needs both queries and keys");
      }
      if (hasQueries)
      {
        for (const Quantity quantity : { Quantity::Weights, Quantity::Scores })
        {
          explain(quantity, "other layers have queries and keys, this one has not");
        }
      }
    }
    else if (this->Record.rotated)
    {
      explain(Quantity::Query, "the rotated queries give the attention");
      explain(Quantity::Key, "the rotated keys give the attention");
    }
    explain(Quantity::Mixed, "it follows from attention and values");
  }

  void ReadQueries(RecordedLayer& layer, const Found& query, const Found& key)
  {
    const std::vector<SharedMatrix> queries = this->ReadHeads(query, this->FlatWidth(query));
    const std::int64_t width = queries.front().columns;
    const std::vector<SharedMatrix> keys = this->ReadHeads(key, width);
    layer.heads.resize(queries.size());
    this->CheckGroups(key.name, keys, queries.size());
    for (std::size_t h = 0; h < queries.size(); ++h)
    {
      layer.heads[h].query = queries[h];
      layer.heads[h].key = keys[h * keys.size() / queries.size()];
    }
    if (keys.front().columns != width)
    {
      this->Arrays.Fail(key.name, "expected keys of dimension " + std::to_string(width) +
                                    " as the queries '" + query.name + "', found " +
                                    std::to_string(keys.front().columns) + ".");
    }
    layer.scoreScale = 1.0 / std::sqrt(static_cast<double>(width));
  }

  void CheckGroups(
    const std::string& name, const std::vector<SharedMatrix>& groups, std::size_t heads) const
  {
    if (groups.size() > heads || heads % groups.size() != 0)
    {
      this->Arrays.Fail(name, "expected as many heads as there are queries, " +
                                std::to_string(heads) + ", or a divisor of it, found " +
                                std::to_string(groups.size()) + ".");
    }
  }

  /// A quantity that all recorded layers must have, or none.
  void ReadOptional(Quantity quantity, SharedMatrix RecordedHead::*place)
  {
    const auto found = [&](const RecordedLayer& layer)
    { return Get(this->Layers.at(layer.index), quantity); };
    const bool everywhere =
      std::all_of(this->Record.layers.begin(), this->Record.layers.end(), found);
    for (RecordedLayer& layer : this->Record.layers)
    {
      const Found* name = found(layer);
      if (name == nullptr)
      {
        continue;
      }
      if (!everywhere)
      {
        this->Arrays.Explain(name->name, "other layers that are recorded do not have it");
        continue;
      }
      const bool isOutput = quantity == Quantity::Output;
      const SharedMatrix& query = layer.heads.front().query;
      const std::int64_t width =
        !isOutput && query.IsRecorded() ? query.columns : this->FlatWidth(*name);
      const std::vector<SharedMatrix> groups = this->ReadHeads(*name, width);
      if (isOutput && groups.size() != layer.heads.size())
      {
        this->Arrays.Fail(name->name, "expected " + std::to_string(layer.heads.size()) +
                                        " heads, found " + std::to_string(groups.size()) + ".");
      }
      this->CheckGroups(name->name, groups, layer.heads.size());
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        layer.heads[h].*place = groups[h * groups.size() / layer.heads.size()];
      }
    }
  }

  void ReadAttention(RecordedLayer& layer, const LayerNames& names)
  {
    const auto read = [&](Quantity quantity, std::vector<SharedMatrix> RecordedHead::*place)
    {
      if (const Found* found = Get(names, quantity))
      {
        const LayerHeads heads = { found->name,
          this->Arrays.LoadFloating(found->name, this->Batched({ -1, this->Length, this->Length })),
          0 };
        this->AddAttention(layer, heads, place);
      }
    };
    read(Quantity::Weights, &RecordedHead::weights);
    read(Quantity::Scores, &RecordedHead::scores);
  }

  /// The attention of one layer in an array.
  struct LayerHeads
  {
    std::string name;
    LoadedArray array;
    std::int64_t first; ///< number of matrices [T,T] before it in the array
  };

  void AddAttention(
    RecordedLayer& layer, const LayerHeads& from, std::vector<SharedMatrix> RecordedHead::*place)
  {
    const Shape& shape = from.array.view.shape;
    const std::int64_t heads = shape[shape.size() - 3];
    if (layer.heads.empty() && heads > 0 && heads <= MaximumHeads)
    {
      layer.heads.resize(static_cast<std::size_t>(heads));
    }
    if (heads != static_cast<std::int64_t>(layer.heads.size()))
    {
      this->Arrays.Fail(from.name, "expected " + std::to_string(layer.heads.size()) +
                                     " heads as in the layer's other arrays, found " +
                                     std::to_string(heads) + ".");
    }
    for (std::int64_t h = 0; h < heads; ++h)
    {
      for (std::int64_t b = 0; b < this->Batch; ++b)
      {
        const auto matrix = static_cast<std::uint64_t>(from.first + b * heads + h);
        (layer.heads[static_cast<std::size_t>(h)].*place)
          .push_back(this->ReadSquare(from, matrix, b, place == &RecordedHead::scores));
      }
    }
  }

  /// Attention of one sequence, without padded queries and keys.
  SharedMatrix ReadSquare(
    const LayerHeads& from, std::uint64_t matrix, std::int64_t sequence, bool scores)
  {
    const auto length = static_cast<std::uint64_t>(this->Length);
    const auto rowAt = [&](std::int64_t i)
    { return (matrix * length + static_cast<std::uint64_t>(i)) * length; };
    if (!this->Padded)
    {
      return this->Arrays.Gather(from.name, from.array, this->Length, this->Length, rowAt, scores);
    }
    const SharedMatrix whole =
      this->Arrays.Gather(from.name, from.array, this->Length, this->Length, rowAt, scores);
    const auto s = static_cast<std::size_t>(sequence);
    const std::int64_t begin = this->Record.sequenceOffsets[s];
    const std::int64_t kept = this->Record.sequenceOffsets[s + 1] - begin;
    SharedMatrix square = SharedMatrix::Zero(kept, kept);
    const auto positionOf = [&](std::int64_t i)
    { return this->Kept[static_cast<std::size_t>(begin + i)] % this->Length; };
    for (std::int64_t i = 0; i < kept; ++i)
    {
      for (std::int64_t j = 0; j < kept; ++j)
      {
        square.Row(i)[j] = whole.Row(positionOf(i))[positionOf(j)];
      }
    }
    return square;
  }

  void ReadStacked()
  {
    const auto read = [&](const std::string& name, std::vector<SharedMatrix> RecordedHead::*place)
    {
      if (name.empty())
      {
        return;
      }
      Shape shape = this->Batched({ -1, this->Length, this->Length });
      shape.insert(shape.begin(), -1);
      const LoadedArray array = this->Arrays.LoadFloating(name, shape);
      const std::int64_t layers = array.view.shape[0];
      const std::int64_t heads = array.view.shape[array.view.shape.size() - 3];
      if (layers < 1 || heads < 1 || layers > MaximumLayers || heads > MaximumHeads / layers)
      {
        this->Arrays.Fail(
          name, "expected layers and heads, found shape " + ToString(array.view.shape) + ".");
      }
      if (!this->Record.layers.empty() &&
          layers != static_cast<std::int64_t>(this->Record.layers.size()))
      {
        this->Arrays.Fail(name, "expected " + std::to_string(this->Record.layers.size()) +
                                  " layers, found " + std::to_string(layers) + ".");
      }
      this->Record.layers.resize(static_cast<std::size_t>(layers));
      this->Record.layerCount = static_cast<std::int32_t>(layers);
      for (std::int64_t l = 0; l < layers; ++l)
      {
        RecordedLayer& layer = this->Record.layers[static_cast<std::size_t>(l)];
        layer.index = static_cast<std::int32_t>(l);
        this->AddAttention(layer, { name, array, l * heads * this->Batch }, place);
      }
    };
    read(this->StackedWeights, &RecordedHead::weights);
    read(this->StackedScores, &RecordedHead::scores);
  }

  /// Whether some query attends to a later key, in the first layer.
  bool LooksAhead() const
  {
    for (const RecordedHead& head : this->Record.layers.front().heads)
    {
      const bool weights = !head.weights.empty();
      for (const SharedMatrix& matrix : weights ? head.weights : head.scores)
      {
        for (std::int64_t i = 0; i < matrix.rows; ++i)
        {
          for (std::int64_t j = i + 1; j < matrix.columns; ++j)
          {
            const float value = matrix.Row(i)[j];
            if (weights ? value != 0 : value > MaskedScore)
            {
              return true;
            }
          }
        }
      }
    }
    return false;
  }

  void ReadMask()
  {
    const bool stored = !this->Record.layers.empty() &&
                        !this->Record.layers.front().heads.empty() &&
                        this->Record.layers.front().heads.front().HasAttention();
    bool ahead = false;
    if (stored)
    {
      ahead = this->LooksAhead();
    }
    else
    {
      for (const auto& [name, entry] : this->Arrays.GetEntries())
      {
        for (const char* bert :
          { "hook_normalized_resid_post", "hook_full_embed", "hook_token_type_embed" })
        {
          ahead = ahead || name.find(bert) != std::string::npos;
        }
      }
    }
    this->Record.mask = ahead ? AttentionMask::Bidirectional : AttentionMask::Causal;
    const auto text = this->Texts.find("mask");
    if (text != this->Texts.end())
    {
      const bool causal = text->second == Name(AttentionMask::Causal);
      if (!causal && text->second != Name(AttentionMask::Bidirectional))
      {
        this->Fail(
          "metadata 'mask': expected causal or bidirectional, found '" + text->second + "'.");
      }
      this->Record.mask = causal ? AttentionMask::Causal : AttentionMask::Bidirectional;
    }
    this->Record.mask = this->Options.mask.value_or(this->Record.mask);
    this->ReadScale();
  }

  void ReadScale()
  {
    std::optional<double> scale = this->Options.scoreScale;
    const auto text = this->Texts.find("score_scale");
    if (!scale && text != this->Texts.end())
    {
      char* end = nullptr;
      scale = std::strtod(text->second.c_str(), &end);
      if (end == text->second.c_str() || *end != '\0' || !std::isfinite(*scale))
      {
        this->Fail("metadata 'score_scale': expected a number, found '" + text->second + "'.");
      }
    }
    for (RecordedLayer& layer : this->Record.layers)
    {
      layer.scoreScale = scale.value_or(layer.scoreScale);
    }
    this->Record.alibiSlopes = ParseSlopes(this->Texts, this->Arrays.GetSource());
  }

  /// Attention of the last query of the first sequence, which sees all keys under either mask, less
  /// what queries and keys give for it.
  double Deviation(const RecordedLayer& layer, const RecordedHead& head) const
  {
    const std::int64_t length = this->Record.SequenceLength(0);
    std::vector<double> stored(static_cast<std::size_t>(length));
    std::vector<double> given(stored.size());
    const bool weights = !head.weights.empty();
    const float* row = (weights ? head.weights : head.scores).front().Row(length - 1);
    const float* query = head.query.Row(length - 1);
    const auto h = static_cast<std::size_t>(&head - layer.heads.data());
    const double slope = h < this->Record.alibiSlopes.size() ? this->Record.alibiSlopes[h] : 0;
    for (std::int64_t j = 0; j < length; ++j)
    {
      double product = 0;
      for (std::int64_t i = 0; i < head.query.columns; ++i)
      {
        product += static_cast<double>(query[i]) * static_cast<double>(head.key.Row(j)[i]);
      }
      given[static_cast<std::size_t>(j)] =
        layer.scoreScale * product + slope * static_cast<double>(j);
      stored[static_cast<std::size_t>(j)] = static_cast<double>(row[j]);
    }
    Softmax(given);
    if (!weights)
    {
      Softmax(stored);
    }
    double deviation = 0;
    for (std::size_t j = 0; j < stored.size(); ++j)
    {
      deviation = std::max(deviation, std::abs(stored[j] - given[j]));
    }
    return deviation;
  }

  static void Softmax(std::vector<double>& scores)
  {
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores)
    {
      score = std::exp(score - largest);
      sum += score;
    }
    for (double& score : scores)
    {
      score /= sum;
    }
  }

  void DropAttentionThatIsGiven()
  {
    double deviation = 0;
    std::string where;
    bool both = false;
    if (this->Record.sequenceOffsets.size() > 1 && this->Record.SequenceLength(0) > 0)
    {
      for (const RecordedLayer& layer : this->Record.layers)
      {
        for (std::size_t h = 0; h < layer.heads.size(); ++h)
        {
          const RecordedHead& head = layer.heads[h];
          if (!head.HasAttention() || !head.query.IsRecorded())
          {
            continue;
          }
          both = true;
          const double found = this->Deviation(layer, head);
          if (found > deviation)
          {
            deviation = found;
            where = "layer " + std::to_string(layer.index) + ", head " + std::to_string(h);
          }
        }
      }
    }
    if (!both)
    {
      return;
    }
    if (deviation > AttentionTolerance)
    {
      this->Warnings.push_back(
        this->Arrays.GetSource() +
        ": the stored attention is shown, as queries and keys do not give it (" + where +
        ": weights differ by " + std::to_string(deviation) +
        "): the scores have another scale, a bias or a cap.");
      return;
    }
    for (RecordedLayer& layer : this->Record.layers)
    {
      for (RecordedHead& head : layer.heads)
      {
        head.weights.clear();
        head.scores.clear();
      }
    }
    this->Warnings.push_back(this->Arrays.GetSource() +
                             ": the stored attention is not kept, as queries and keys give it.");
  }

  void ReadResidual()
  {
    std::vector<SharedMatrix> residual(static_cast<std::size_t>(this->Record.layerCount) + 1);
    bool any = false;
    for (const auto& [layer, names] : this->Layers)
    {
      const auto l = static_cast<std::size_t>(layer);
      if (const Found* before = Get(names, Quantity::ResidualBefore))
      {
        any = true;
        residual[l] = this->ReadVectors(before->name);
      }
    }
    for (const auto& [layer, names] : this->Layers)
    {
      const auto l = static_cast<std::size_t>(layer);
      const Found* after = Get(names, Quantity::ResidualAfter);
      if (after != nullptr && residual[l + 1].IsRecorded())
      {
        this->Arrays.Explain(after->name, "the residual before the next layer is the same");
      }
      else if (after != nullptr)
      {
        any = true;
        residual[l + 1] = this->ReadVectors(after->name);
      }
    }
    if (any)
    {
      this->Record.residual = std::move(residual);
    }
  }
};

}

Recording MakeForeignRecording(RecordingArrays& arrays, const Metadata& metadata,
  const RecordingReadOptions& options, std::vector<std::string>& warnings)
{
  return Builder(arrays, metadata, options, warnings).Build();
}

}
