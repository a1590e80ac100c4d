#include "ModelFingerprint.h"

#include "HashValues.h"
#include "ParallelProgress.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace atlas
{
namespace
{

/// The fields of a configuration that are not as by default, as bytes. A structured binding names
/// all of them, so that one that is added to a structure, but not here, does not compile. New ones
/// are added at the end of FieldsOf, so that fingerprints of models without them stay as they are.
class ConfigurationBytes
{
public:
  template<class Structure>
  static std::string ChangedOf(const Structure& value)
  {
    ConfigurationBytes changed;
    changed.AddChanged(value);
    return changed.Bytes;
  }

private:
  std::string Bytes;

  static std::vector<std::string> FieldsOf(const RotaryScaling& value)
  {
    const auto& [kind, factor, lowFactor, highFactor, originalPositions, betaFast, betaSlow,
      truncates, attentionFactor, shortFactors, longFactors] = value;
    return BytesOf(kind, factor, lowFactor, highFactor, originalPositions, betaFast, betaSlow,
      truncates, attentionFactor, shortFactors, longFactors);
  }
  static std::vector<std::string> FieldsOf(const VisionConfig& value)
  {
    const auto& [encoder, layersRead, merge, projectorNorm, projectorEpsilon, projectorHasTwo,
      projectorActivation, imageToken, filmToken, rotarySections, positionsPerSecond] = value;
    return BytesOf(encoder, layersRead, merge, projectorNorm, projectorEpsilon, projectorHasTwo,
      projectorActivation, imageToken, filmToken, rotarySections, positionsPerSecond);
  }
  static std::vector<std::string> FieldsOf(const TransformerConfig& value)
  {
    const auto& [architecture, input, layers, heads, keyHeads, headDimension, valueDimension,
      modelDimension, mlpDimension, vocabulary, outputVocabulary, positions, segments,
      embeddingDimension, embeddingScale, firstPosition, paddingToken, imageHeight, imageWidth,
      patchHeight, patchWidth, positionSide, channels, classTokens, registers, patchBias,
      patchFrames, melBands, norm, normPlace, epsilon, normsAreFolded, normsHaveWeights, gainOffset,
      embeddingNorm, finalNorm, lastResidualIsNormed, order, queryKeyNorm, keyLatent, queryLatent,
      layerScales, position, rotaryBase, rotaryScaling, rotaryDimension, rotatesNeighbors,
      rotatesLast, windowRotaryBase, windowRotaryScaling, relativeBuckets, relativeDistance,
      activation, gated, mask, attentionScale, scaleByLayer, scoreCap, logitCap, logitScale,
      windows, patchWindows, sinks, projectionClip, inputBias, outputBias, mlpBias, experts,
      expertsPerToken, expertDimension, sharedExpertDimension, sharedExpertHasGate, expertGroups,
      expertGroupsPerToken, expertFactor, expertWeightsOfAll, expertLimit, expertLayers,
      logitsActivation, endTokens, tiedUnembedding, encoder, decoderStart, unknownSettings,
      vision] = value; // unknown settings are not used, and so do not count
    return BytesOf(architecture, input, layers, heads, keyHeads, headDimension, valueDimension,
      modelDimension, mlpDimension, vocabulary, outputVocabulary, positions, segments,
      embeddingDimension, embeddingScale, firstPosition, paddingToken, imageHeight, imageWidth,
      patchHeight, patchWidth, positionSide, channels, classTokens, registers, patchBias,
      patchFrames, melBands, norm, normPlace, epsilon, normsAreFolded, normsHaveWeights, gainOffset,
      embeddingNorm, finalNorm, lastResidualIsNormed, order, queryKeyNorm, keyLatent, queryLatent,
      layerScales, position, rotaryBase, rotaryScaling, rotaryDimension, rotatesNeighbors,
      rotatesLast, windowRotaryBase, windowRotaryScaling, relativeBuckets, relativeDistance,
      activation, gated, mask, attentionScale, scaleByLayer, scoreCap, logitCap, logitScale,
      windows, patchWindows, sinks, projectionClip, inputBias, outputBias, mlpBias, experts,
      expertsPerToken, expertDimension, sharedExpertDimension, sharedExpertHasGate, expertGroups,
      expertGroupsPerToken, expertFactor, expertWeightsOfAll, expertLimit, expertLayers,
      logitsActivation, endTokens, tiedUnembedding, encoder, decoderStart, vision);
  }

  template<class... Values>
  static std::vector<std::string> BytesOf(const Values&... values)
  {
    const auto bytesOf = [](const auto& value)
    {
      ConfigurationBytes bytes;
      bytes.Add(value);
      return bytes.Bytes;
    };
    return { bytesOf(values)... };
  }

  /// Adds the numbers and the bytes of the fields that are not as by default.
  template<class Structure>
  void AddChanged(const Structure& value)
  {
    const std::vector<std::string> fields = FieldsOf(value);
    const std::vector<std::string> standard = FieldsOf(Structure());
    for (std::size_t i = 0; i < fields.size(); ++i)
    {
      if (fields[i] != standard[i])
      {
        this->Add(i);
        this->Add(fields[i]);
      }
    }
    this->Add(std::string("end"));
  }

  void Add(const RotaryScaling& value) { this->AddChanged(value); }
  void Add(const VisionConfig& value) { this->AddChanged(value); }
  void Add(const TransformerConfig& value) { this->AddChanged(value); }
  template<class Value,
    class = std::enable_if_t<std::is_arithmetic_v<Value> || std::is_enum_v<Value>>>
  void Add(const Value& value)
  {
    this->Bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Add(const std::string& text)
  {
    this->Add(text.size());
    this->Bytes += text;
  }
  template<class Value>
  void Add(const std::vector<Value>& values)
  {
    this->Add(values.size());
    for (const Value value : values)
    {
      this->Add(value);
    }
  }
  template<class Value>
  void Add(const std::optional<Value>& value)
  {
    this->Add(value.has_value());
    if (value)
    {
      this->Add(*value);
    }
  }
  template<class Value>
  void Add(const std::shared_ptr<const Value>& value)
  {
    this->Add(value != nullptr);
    if (value)
    {
      this->Add(*value);
    }
  }
};

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
  const std::string bytes = ConfigurationBytes::ChangedOf(config);
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
    names += name + " " + std::string(Name(view.dtype)) + ToString(view.shape) + " " +
             std::to_string(view.interleavedRows) + "\n";
    for (std::uint64_t begin = 0; begin < view.Bytes(); begin += PartBytes)
    {
      parts.push_back({ view.data + begin, std::min(PartBytes, view.Bytes() - begin) });
    }
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
