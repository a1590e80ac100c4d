#include "ModelFingerprint.h"

#include "Base/HashValues.h"
#include "Base/ParallelProgress.h"
#include "Files/PackedNumbers.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace atlas
{
namespace
{

template<class Structure>
std::string ChangedOf(const Structure& value);

/// The bytes of a value.
template<class Value>
std::string BytesOf(const Value& value)
{
  if constexpr (std::is_class_v<Value>)
  {
    return ChangedOf(value);
  }
  else
  {
    return { reinterpret_cast<const char*>(&value), sizeof(value) };
  }
}
std::string BytesOf(const std::string& text)
{
  return BytesOf(text.size()) + text;
}
template<class First, class Second>
std::string BytesOf(const std::pair<First, Second>& values)
{
  return BytesOf(values.first) + BytesOf(values.second);
}
template<class Value>
std::string BytesOf(const std::vector<Value>& values)
{
  std::string bytes = BytesOf(values.size());
  for (auto&& value : values) // of bools no references
  {
    bytes += BytesOf(static_cast<const Value&>(value));
  }
  return bytes;
}
template<class Value>
std::string BytesOf(const std::optional<Value>& value)
{
  return BytesOf(value.has_value()) + (value ? BytesOf(*value) : "");
}
template<class Value>
std::string BytesOf(const std::shared_ptr<const Value>& value)
{
  return BytesOf(value != nullptr) + (value ? BytesOf(*value) : "");
}

/// The bytes of all fields of a structure. The structured binding names all of them, so that one
/// that is added to a structure, but not here, does not compile. New ones are added at the end, so
/// that fingerprints of models without them stay as they are.
#define BYTES_OF_FIELDS(...)                                                                       \
  const auto& [__VA_ARGS__] = value;                                                               \
  const auto bytes = [](const auto&... fields)                                                     \
  { return std::vector<std::string>{ BytesOf(fields)... }; };                                      \
  return bytes(__VA_ARGS__)

std::vector<std::string> FieldsOf(const RotaryScaling& value)
{
  BYTES_OF_FIELDS(kind, factor, lowFactor, highFactor, originalPositions, betaFast, betaSlow,
    truncates, attentionFactor, shortFactors, longFactors, part, longAttentionFactor);
}
std::vector<std::string> FieldsOf(const SoundConfig& value)
{
  BYTES_OF_FIELDS(channels, widths, strides, hasBias, normsEach, normsLast, activation,
    positionWidth, positionGroups);
}
std::vector<std::string> FieldsOf(const VisionConfig& value)
{
  BYTES_OF_FIELDS(encoder, layersRead, merge, projectorNorm, projectorEpsilon, projectorHasTwo,
    projectorActivation, imageToken, videoToken, rotarySections, positionsPerSecond, averages,
    joinsByMatrix, interleavesSections, deepLayers, deepProjectors, seesWholePictures, gridSizes,
    mostTiles, moreLayersRead, startToken, endToken, seesWholePrompts);
}
std::vector<std::string> AllFieldsOf(const TransformerConfig& value)
{
  BYTES_OF_FIELDS(architecture, input, layers, heads, keyHeads, headDimension, valueDimension,
    modelDimension, mlpDimension, vocabulary, outputVocabulary, positions, segments,
    embeddingDimension, embeddingScale, firstPosition, paddingToken, imageHeight, imageWidth,
    patchHeight, patchWidth, positionSide, channels, classTokens, registers, patchBias, patchFrames,
    melBands, norm, normPlace, epsilon, normsAreFolded, normsHaveWeights, gainOffset, embeddingNorm,
    finalNorm, lastResidualIsNormed, order, queryKeyNorm, keyLatent, queryLatent, layerScales,
    position, rotaryBase, rotaryScaling, rotaryDimension, rotatesNeighbors, rotatesLast,
    windowRotaryBase, windowRotaryScaling, relativeBuckets, relativeDistance, activation, gated,
    mask, attentionScale, scaleByLayer, scoreCap, logitCap, logitScale, windows, patchWindows,
    sinks, projectionClip, inputBias, outputBias, mlpBias, experts, expertsPerToken,
    expertDimension, sharedExpertDimension, sharedExpertHasGate, expertGroups, expertGroupsPerToken,
    expertFactor, expertWeightsOfAll, expertLimit, expertLayers, logitsActivation, endTokens,
    tiedUnembedding, encoder, decoderStart, unknownSettings, vision, ownTensors, normsHaveShifts,
    firstAttentionIsNormed, normsInside, normsQueriesLast, residualScale, rotatedLayers,
    rotaryBases, slopeScale, slopeExponent, queryGrowth, queryGrowthStep, headDimensions,
    keyHeadCounts, mlpDimensions, normsValues, valuesAreKeys, sharedKeyLayers, layerInput,
    layerInputVocabulary, layerFactors, streams, activeStream, scalesActiveStream, laurelRank,
    gateSparsities, embeddingProjection, transformDimension, transformBias, maskToken, tasks,
    rotaryFrequencies, addsPositions, layerGroups, groupLayers, biasByLayer, keyBias, valueBias,
    queryBias, readsQueriesOfPositions, readsKeysOfPositions, sharesPositionKeys, positionNorm,
    normsPatches, endsSinusoids, channelsLast, sinksAreOutside, convolution, convolutionActivation,
    mixers, mixerTaps, mixerBias, mixerHeads, mixerKeyHeads, mixerValueDimension, mixerKeyDimension,
    mixerRate, mixerEpsilon, mixerNormPlace, gatesAttention, chunks, growsUnrotated, expertScores,
    expertBias, expertGroupScores, expertLeastSum, expertScalesInput, expertTolerance,
    predictionLayers, alignsPositions, alternatesAxes, mixerTapsBias, mixerLeastStep, mixerMostStep,
    expertSumOffset, expertsBesideMlp, sound, patchRowStep, patchColumnStep, rotatesValues,
    roundsSlopes);
}
std::vector<std::string> FieldsOf(const TransformerConfig& value)
{
  std::vector<std::string> fields = AllFieldsOf(value);
  fields.erase(fields.begin() + 83); // unknownSettings, which are not used
  return fields;
}

/// The numbers and the bytes of the fields that are not as by default.
template<class Structure>
std::string ChangedOf(const Structure& value)
{
  const std::vector<std::string> fields = FieldsOf(value);
  const std::vector<std::string> standard = FieldsOf(Structure());
  std::string changed;
  for (std::size_t i = 0; i < fields.size(); ++i)
  {
    if (fields[i] != standard[i])
    {
      changed += BytesOf(i) + BytesOf(fields[i]);
    }
  }
  return changed + BytesOf(std::string("end"));
}

/// Bytes of a tensor that a thread hashes at a time.
constexpr std::uint64_t PartBytes = std::uint64_t{ 16 } << 20U;

/// A model of fewer bytes takes a moment, of which nothing is reported.
constexpr std::uint64_t BytesWithoutReport = std::uint64_t{ 1 } << 28U;

struct Part
{
  const std::byte* data;
  std::uint64_t bytes;
};

}

std::string FingerprintOf(const TransformerConfig& config)
{
  const std::string bytes = ChangedOf(config);
  return HashText(HashValues(bytes.data(), bytes.size()));
}

ModelFingerprint FingerprintOf(const Transformer& model, int threads, const Progress& progress)
{
  const std::vector<std::string>& unused = model.GetWeights().unused;
  std::string names;
  std::vector<Part> parts;
  for (const auto& [name, view] : model.GetFiles().GetTensors())
  {
    if (std::find(unused.begin(), unused.end(), name) != unused.end())
    {
      continue;
    }
    names += name + " " + TypeOf(view) + ToString(view.shape) + " " +
             std::to_string(view.interleavedRows) + "\n";
    VisitStored(view,
      [&](const TensorView& stored)
      {
        if (stored.packed != nullptr)
        {
          const PackedNumbers& packed = *stored.packed;
          names += BytesOf(packed.codes.bits) + BytesOf(packed.values) + BytesOf(packed.base) +
                   BytesOf(packed.blockRows) + BytesOf(packed.blockColumns) +
                   BytesOf(packed.group) + BytesOf(packed.divisor) + BytesOf(packed.bias);
        }
        for (std::uint64_t begin = 0; begin < stored.Bytes(); begin += PartBytes)
        {
          parts.push_back({ stored.data + begin, std::min(PartBytes, stored.Bytes() - begin) });
        }
      });
  }
  std::uint64_t bytes = 0;
  for (const Part& part : parts)
  {
    bytes += part.bytes;
  }
  const bool isLong = bytes > BytesWithoutReport;
  std::vector<std::uint64_t> hashes(parts.size());
  ParallelFor(static_cast<std::int64_t>(parts.size()), threads, isLong ? progress : Progress(),
    [&](std::int64_t i) { hashes[i] = HashValues(parts[i].data, parts[i].bytes); });
  model.GetFiles().RequireIntact();
  const std::uint64_t all = HashValues(names.data(), names.size());
  return { FingerprintOf(model.GetConfig()),
    HashText(HashValues(hashes.data(), hashes.size() * sizeof(std::uint64_t), all)) };
}

}
