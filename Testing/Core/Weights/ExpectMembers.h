#pragma once

#include "Weights/TransformerConfig.h"

#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

/// Enumerators in their order.
inline const std::map<std::type_index, const char*> Enumerators = {
  { typeid(Activation), "Gelu GeluTanh Relu Silu QuickGelu" },
  { typeid(AttentionMask), "Causal Bidirectional" },
  { typeid(InputKind), "Tokens Images Sound" },
  { typeid(NormKind), "None LayerNorm RmsNorm" },
  { typeid(PositionKind),
    "Learned Shortformer Alibi Rotary None Sinusoidal RotaryOfPatches Relative" },
  { typeid(QueryKeyNorm), "None OfAllHeads OfEachHead Together" },
  { typeid(SublayerOrder), "Sequential Parallel ParallelOfOneNorm" },
  { typeid(VisionConfig::ProjectorNorm), "None OfPatches OfMerged" },
};

template<class Value>
void ExpectText(const Value& found, const std::string& expected)
{
  if constexpr (std::is_enum_v<Value>)
  {
    std::istringstream words(Enumerators.at(typeid(Value)));
    const std::vector<std::string> names{ std::istream_iterator<std::string>(words), {} };
    EXPECT_EQ(names.at(static_cast<std::size_t>(found)), expected);
  }
  else if constexpr (std::is_arithmetic_v<Value>)
  {
    EXPECT_EQ(static_cast<double>(found), std::stod(expected));
  }
  else
  {
    EXPECT_EQ(found, expected);
  }
}

/// Expects members of a configuration to be as a text says: "layers=2 activation=Silu gated=0".
template<class Structure>
void ExpectMembers(const Structure& config, const std::string& expected)
{
#define MEMBER(name)                                                                               \
  { #name, [](const Structure& c, const std::string& text) { ExpectText(c.name, text); } }
  std::map<std::string, std::function<void(const Structure&, const std::string&)>> members;
  if constexpr (std::is_same_v<Structure, VisionConfig>)
  {
    members = { MEMBER(layersRead), MEMBER(merge), MEMBER(projectorNorm), MEMBER(projectorEpsilon),
      MEMBER(projectorHasTwo), MEMBER(projectorActivation), MEMBER(imageToken), MEMBER(videoToken),
      MEMBER(positionsPerSecond) };
  }
  else
  {
    members = { MEMBER(architecture), MEMBER(input), MEMBER(layers), MEMBER(heads),
      MEMBER(keyHeads), MEMBER(headDimension), MEMBER(modelDimension), MEMBER(mlpDimension),
      MEMBER(vocabulary), MEMBER(outputVocabulary), MEMBER(positions), MEMBER(segments),
      MEMBER(embeddingScale), MEMBER(classTokens), MEMBER(patchBias), MEMBER(patchFrames),
      MEMBER(patchHeight), MEMBER(melBands), MEMBER(norm), MEMBER(epsilon), MEMBER(normsAreFolded),
      MEMBER(embeddingNorm), MEMBER(finalNorm), MEMBER(lastResidualIsNormed), MEMBER(order),
      MEMBER(queryKeyNorm), MEMBER(keyLatent), MEMBER(queryLatent), MEMBER(layerScales),
      MEMBER(position), MEMBER(rotaryBase), MEMBER(rotatesNeighbors), MEMBER(relativeBuckets),
      MEMBER(relativeDistance), MEMBER(activation), MEMBER(gated), MEMBER(mask), MEMBER(scoreCap),
      MEMBER(logitCap), MEMBER(logitScale), MEMBER(projectionClip), MEMBER(inputBias),
      MEMBER(outputBias), MEMBER(mlpBias), MEMBER(experts), MEMBER(expertsPerToken),
      MEMBER(expertDimension), MEMBER(sharedExpertDimension), MEMBER(sharedExpertHasGate),
      MEMBER(expertGroups), MEMBER(expertGroupsPerToken), MEMBER(expertWeightsOfAll),
      MEMBER(tiedUnembedding), MEMBER(decoderStart), MEMBER(rotaryDimension),
      MEMBER(gatesAttention), MEMBER(mixerHeads), MEMBER(mixerKeyHeads),
      MEMBER(mixerValueDimension), MEMBER(mixerTaps), MEMBER(mixerTapsBias), MEMBER(mixerLeastStep),
      MEMBER(mixerMostStep) };
  }
#undef MEMBER
  std::istringstream words(expected);
  for (std::string word; words >> word;)
  {
    SCOPED_TRACE(word);
    const std::size_t sign = word.find('=');
    members.at(word.substr(0, sign))(config, word.substr(sign + 1));
  }
}

}
