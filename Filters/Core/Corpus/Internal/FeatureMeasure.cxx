#include "FeatureMeasure.h"

#include "Base/Error.h"
#include "Base/HashValues.h"
#include "Base/Index.h"
#include "Circuits/DictionaryFeatures.h"

#include <algorithm>
#include <map>
#include <utility>

namespace atlas
{
namespace
{

/// Of all that features follow from.
std::uint64_t HashOf(const SparseDictionary& dictionary)
{
  std::uint64_t hash = 0;
  const auto add = [&hash](const auto& values)
  { hash = HashValues(values.data(), ToIndex(values.size()) * sizeof(*values.data()), hash); };
  add(dictionary.encoder);
  add(dictionary.decoder);
  for (const Eigen::RowVectorXd* vector : { &dictionary.bias, &dictionary.decoderBias,
         &dictionary.thresholds, &dictionary.gateBias, &dictionary.magnitudes })
  {
    add(*vector);
  }
  add(std::vector<std::int64_t>{ static_cast<std::int64_t>(dictionary.activation),
    static_cast<std::int64_t>(dictionary.norm), dictionary.k, dictionary.subtractsBias ? 1 : 0,
    dictionary.scalesByLength ? 1 : 0, dictionary.steps.foldsNorms ? 1 : 0,
    dictionary.steps.foldsValues ? 1 : 0, dictionary.steps.centersWriting ? 1 : 0 });
  return hash;
}

}

FeatureMeasure::FeatureMeasure(const Transformer& model, const CorpusOptions& options)
  : Model(model)
  , Dictionary(ReadSparseDictionary(options.dictionary))
{
  CheckDictionary(model, this->Dictionary);
  const std::vector<std::int64_t>& layers = options.layers;
  ThrowIf<OptionError>(
    std::find(layers.begin(), layers.end(), this->Dictionary.layer) == layers.end(),
    "Layers: expected layer ", this->Dictionary.layer, " of the dictionary among them, found ",
    layers.size(), " others.");
  this->Name = this->Dictionary.hook + ", " + std::to_string(this->Count()) + " features, " +
               HashText(HashOf(this->Dictionary));
}

void FeatureMeasure::AddTo(RecordOptions& options) const
{
  options.headOutputs = this->Dictionary.site == DictionarySite::AttentionOutput ||
                        this->Dictionary.site == DictionarySite::StreamBetween;
  options.residual = this->Dictionary.site != DictionarySite::AttentionOutput &&
                     this->Dictionary.site != DictionarySite::HeadValues;
}

void FeatureMeasure::Measure(const Recording& recording, const std::vector<CorpusWindow>& windows,
  int threads, CorpusStatistics& statistics) const
{
  for (std::size_t w = 0; w < windows.size(); ++w)
  {
    const CorpusWindow& window = windows[w];
    const std::int64_t first = std::max(window.firstQuery, window.special);
    const std::int64_t end = std::min<std::int64_t>(
      window.special + window.count, static_cast<std::int64_t>(window.tokens.size()));
    const SparseCode code = Encode(this->Dictionary,
      DictionaryInputs(
        recording, this->Model, this->Dictionary, static_cast<std::int64_t>(w), threads),
      threads);
    struct Strongest
    {
      double value = 0;
      std::int64_t token = 0;
    };
    std::map<std::int32_t, Strongest> found; // by feature
    for (std::int64_t t = first; t < end; ++t)
    {
      for (const ActiveFeature& item : code.active[t])
      {
        ++statistics.features[item.feature].active;
        Strongest& strongest = found[item.feature];
        if (item.value > strongest.value)
        {
          strongest = { item.value, t };
        }
      }
    }
    statistics.featureTokens += std::max<std::int64_t>(end - first, 0);
    for (const auto& [feature, strongest] : found)
    {
      const auto place = static_cast<std::int32_t>(strongest.token);
      statistics.Keep(ToIndex(feature),
        TopContext{ static_cast<float>(strongest.value), window.document, window.begin, place,
          place, { window.tokens.begin(), window.tokens.end() } });
    }
  }
}

CorpusMemory FeatureMeasure::Memory(
  const CorpusOptions& options, const TransformerConfig& config, std::uint64_t window)
{
  const std::uint64_t features = CountFeatures(options.dictionary);
  const std::uint64_t inputs =
    std::max(config.heads * config.ValueDimension(), config.modelDimension);
  CorpusMemory memory;
  memory.statistics = features * (sizeof(CorpusFeature) +
                                   ToIndex(options.contexts) * (sizeof(TopContext) + 4 * window));
  memory.working = 8 * features * (inputs + 2 * window) + 64 * inputs * window;
  return memory;
}

}
