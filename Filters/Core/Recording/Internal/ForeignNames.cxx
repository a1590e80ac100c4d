#include "ForeignNames.h"

namespace atlas
{
namespace
{

struct KnownName
{
  std::string_view prefix;
  std::string_view rest;
  ForeignQuantity quantity;
  ArrayLayout layout;
};

/// If a quantity has several names, the first one that is present is used.
constexpr std::array<KnownName, 28> KnownNames = { {
  { "blocks.", "attn.hook_rot_q", ForeignQuantity::RotatedQuery, ArrayLayout::TokenFirst },
  { "blocks.", "attn.hook_rot_k", ForeignQuantity::RotatedKey, ArrayLayout::TokenFirst },
  { "blocks.", "attn.hook_q", ForeignQuantity::Query, ArrayLayout::TokenFirst },
  { "blocks.", "attn.q.hook_out", ForeignQuantity::Query, ArrayLayout::PerhapsFlat },
  { "blocks.", "attn.qkv.q_hook_out", ForeignQuantity::Query, ArrayLayout::PerhapsFlat },
  { "layer.", "query", ForeignQuantity::Query, ArrayLayout::HeadFirst },
  { "blocks.", "attn.hook_k", ForeignQuantity::Key, ArrayLayout::TokenFirst },
  { "blocks.", "attn.k.hook_out", ForeignQuantity::Key, ArrayLayout::PerhapsFlat },
  { "blocks.", "attn.qkv.k_hook_out", ForeignQuantity::Key, ArrayLayout::PerhapsFlat },
  { "layer.", "key", ForeignQuantity::Key, ArrayLayout::HeadFirst },
  { "blocks.", "attn.hook_v", ForeignQuantity::Value, ArrayLayout::TokenFirst },
  { "blocks.", "attn.v.hook_out", ForeignQuantity::Value, ArrayLayout::PerhapsFlat },
  { "blocks.", "attn.qkv.v_hook_out", ForeignQuantity::Value, ArrayLayout::PerhapsFlat },
  { "layer.", "value", ForeignQuantity::Value, ArrayLayout::HeadFirst },
  { "blocks.", "attn.hook_z", ForeignQuantity::Mixed, ArrayLayout::TokenFirst },
  { "blocks.", "attn.o.hook_in", ForeignQuantity::Mixed, ArrayLayout::PerhapsFlat },
  { "blocks.", "attn.hook_result", ForeignQuantity::Output, ArrayLayout::TokenFirst },
  { "layer.", "head_output", ForeignQuantity::Output, ArrayLayout::HeadFirst },
  { "blocks.", "attn.hook_pattern", ForeignQuantity::Weights, ArrayLayout::NotPerHeadTable },
  { "layer.", "attention", ForeignQuantity::Weights, ArrayLayout::NotPerHeadTable },
  { "blocks.", "attn.hook_attn_scores", ForeignQuantity::Scores, ArrayLayout::NotPerHeadTable },
  { "layer.", "scores", ForeignQuantity::Scores, ArrayLayout::NotPerHeadTable },
  { "blocks.", "hook_resid_pre", ForeignQuantity::ResidualBefore, ArrayLayout::NotPerHeadTable },
  { "blocks.", "hook_in", ForeignQuantity::ResidualBefore, ArrayLayout::NotPerHeadTable },
  { "hidden.", "", ForeignQuantity::ResidualBefore, ArrayLayout::NotPerHeadTable },
  { "blocks.", "hook_normalized_resid_post", ForeignQuantity::ResidualAfter,
    ArrayLayout::NotPerHeadTable },
  { "blocks.", "hook_resid_post", ForeignQuantity::ResidualAfter, ArrayLayout::NotPerHeadTable },
  { "blocks.", "hook_out", ForeignQuantity::ResidualAfter, ArrayLayout::NotPerHeadTable },
} };

/// Caches of TransformerLens may contain hook_result summed over heads, [B,T,d], if heads were not
/// separated. It has one axis less than the attention.
bool IsStaleResult(RecordingArrays& arrays, const std::string& name)
{
  const std::string stem = name.substr(0, name.rfind('.'));
  const auto* mixed = arrays.Find(stem + ".hook_z");
  const bool stale = mixed != nullptr && mixed->shape.size() > arrays.Find(name)->shape.size();
  if (stale)
  {
    arrays.Explain(name, "it is the sum over heads, not the result of each");
  }
  return stale;
}

bool LooksLikeWeights(const RecordingArrays& arrays, const std::string& name)
{
  const ArrayFile::Entry& entry = *arrays.Find(name);
  if (!IsFloating(entry.dtype))
  {
    return true; // rejected later
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

/// Takes the array `name`, which has index `index` among the arrays of a known name, or notes why
/// it is not used.
void Take(RecordingArrays& arrays, const KnownName& known, std::int64_t index,
  const std::string& name, std::map<std::int64_t, ForeignLayer>& layers)
{
  // There is one more hidden state than layers: the one with index l follows layer l - 1.
  const bool after = known.prefix == "hidden." && index > 0;
  const std::int64_t layer = index - (after ? 1 : 0);
  arrays.FailIf(layer >= MaximumLayers, name, "expected at most ", MaximumLayers, " layers.");
  const ForeignQuantity quantity = after ? ForeignQuantity::ResidualAfter : known.quantity;
  const bool isResult =
    quantity == ForeignQuantity::Output && known.layout == ArrayLayout::TokenFirst;
  if (isResult && IsStaleResult(arrays, name))
  {
    return;
  }
  const auto [better, isFirst] =
    layers[layer].arrays.try_emplace(quantity, ForeignArray{ name, known.layout });
  if (!isFirst)
  {
    arrays.Explain(name, "'" + better->second.name + "' holds the same");
  }
}

}

ForeignNames::ForeignNames(RecordingArrays& arrays)
{
  for (const KnownName& known : KnownNames)
  {
    for (const auto& [name, entry] : arrays.GetEntries())
    {
      const auto indexed = ParseIndexed(name, known.prefix);
      if (indexed && indexed->second == known.rest)
      {
        Take(arrays, known, indexed->first, name, this->layers);
      }
    }
  }
  if (!this->layers.empty())
  {
    return; // next to arrays of single layers, 'attention' means something else
  }
  for (const char* name : { "attention", "array" })
  {
    if (arrays.Has(name))
    {
      this->stackedWeights = name;
    }
  }
  if (arrays.Has("scores"))
  {
    this->stackedScores = "scores";
  }
  if (this->stackedWeights == "array" && !LooksLikeWeights(arrays, "array"))
  {
    this->stackedScores = "array";
    this->stackedWeights.clear();
  }
}

}
