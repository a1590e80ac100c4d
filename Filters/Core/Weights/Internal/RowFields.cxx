#include "RowFields.h"

namespace atlas
{

const std::vector<Named<RowField>>& RowFields()
{
#define COUNT(name) { #name, RowCount{ &TransformerConfig::name, 1 } }
#define COUNT_FROM_0(name) { #name, RowCount{ &TransformerConfig::name, 0 } }
#define NUMBER(name)                                                                               \
  {                                                                                                \
    #name, RowNumber                                                                               \
    {                                                                                              \
      &TransformerConfig::name, false                                                              \
    }                                                                                              \
  }
#define NUMBER_FROM_0(name)                                                                        \
  {                                                                                                \
    #name, RowNumber                                                                               \
    {                                                                                              \
      &TransformerConfig::name, true                                                               \
    }                                                                                              \
  }
#define FIELD(name) { #name, &TransformerConfig::name }
  static const std::vector<Named<RowField>> fields = { COUNT(layers), COUNT(heads),
    COUNT(modelDimension), COUNT(mlpDimension), COUNT(vocabulary), COUNT(outputVocabulary),
    COUNT(positions), COUNT_FROM_0(segments), COUNT(headDimension), COUNT(keyHeads),
    COUNT(valueDimension), COUNT(embeddingDimension), NUMBER(embeddingScale),
    COUNT_FROM_0(firstPosition), COUNT_FROM_0(paddingToken), FIELD(norm), FIELD(normPlace),
    NUMBER_FROM_0(epsilon), FIELD(normsHaveWeights), FIELD(normsHaveShifts), NUMBER(gainOffset),
    FIELD(embeddingNorm), FIELD(finalNorm), FIELD(lastResidualIsNormed),
    FIELD(firstAttentionIsNormed), FIELD(normsInside), FIELD(order), FIELD(queryKeyNorm),
    FIELD(normsQueriesLast), NUMBER(residualScale), FIELD(layerScales), FIELD(position),
    COUNT(rotaryDimension), FIELD(rotatesNeighbors), FIELD(rotatesLast), COUNT(relativeBuckets),
    COUNT(relativeDistance), FIELD(activation), FIELD(gated), FIELD(mask), NUMBER(rotaryBase),
    NUMBER(attentionScale), FIELD(scaleByLayer), NUMBER_FROM_0(scoreCap), NUMBER_FROM_0(logitCap),
    NUMBER(logitScale), FIELD(sinks), FIELD(sinksAreOutside), NUMBER_FROM_0(projectionClip),
    FIELD(inputBias), FIELD(outputBias), FIELD(mlpBias), COUNT(experts), COUNT(expertsPerToken),
    COUNT(expertDimension), COUNT(sharedExpertDimension), FIELD(sharedExpertHasGate),
    NUMBER(expertFactor), FIELD(expertWeightsOfAll), NUMBER(expertLimit), FIELD(logitsActivation),
    FIELD(tiedUnembedding), NUMBER(slopeScale), NUMBER(slopeExponent), NUMBER_FROM_0(queryGrowth),
    NUMBER(queryGrowthStep), COUNT_FROM_0(registers), COUNT_FROM_0(classTokens),
    FIELD(embeddingProjection), COUNT(transformDimension), FIELD(transformBias),
    COUNT_FROM_0(maskToken), COUNT(tasks), FIELD(addsPositions), COUNT(layerGroups),
    COUNT(groupLayers), FIELD(biasByLayer), FIELD(keyBias), FIELD(valueBias), FIELD(queryBias),
    FIELD(sharesPositionKeys), FIELD(normsPatches), FIELD(endsSinusoids), FIELD(channelsLast),
    FIELD(normsValues), COUNT_FROM_0(sharedKeyLayers), COUNT_FROM_0(layerInput),
    COUNT(layerInputVocabulary), FIELD(layerFactors), COUNT(streams), COUNT_FROM_0(activeStream),
    FIELD(scalesActiveStream), COUNT_FROM_0(laurelRank), COUNT_FROM_0(convolution),
    FIELD(convolutionActivation), COUNT(keyLatent), COUNT(queryLatent), COUNT(expertGroups),
    COUNT(expertGroupsPerToken), COUNT(expertGroupScores), FIELD(expertScores), FIELD(expertBias),
    NUMBER_FROM_0(expertLeastSum), FIELD(expertScalesInput), NUMBER_FROM_0(expertTolerance),
    COUNT_FROM_0(predictionLayers), NUMBER_FROM_0(expertSumOffset), FIELD(expertsBesideMlp),
    COUNT(mixerTaps), FIELD(mixerBias), FIELD(mixerTapsBias), COUNT(mixerKeyHeads),
    COUNT(mixerHeads), COUNT(mixerKeyDimension), COUNT(mixerValueDimension), NUMBER(mixerRate),
    NUMBER(mixerEpsilon), FIELD(mixerNormPlace), FIELD(gatesAttention), FIELD(patchBias),
    COUNT(patchFrames), COUNT(positionSide), FIELD(alignsPositions), FIELD(alternatesAxes),
    FIELD(rotatedLayers), FIELD(rotaryBases), FIELD(expertLayers) };
#undef COUNT
#undef COUNT_FROM_0
#undef NUMBER
#undef NUMBER_FROM_0
#undef FIELD
  return fields;
}

}
