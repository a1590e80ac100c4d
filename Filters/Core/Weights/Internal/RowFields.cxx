#include "RowFields.h"

namespace atlas
{
namespace
{

RowField FieldOf(std::int64_t TransformerConfig::* field, bool zero)
{
  return RowCount{ field, zero ? 0 : 1 };
}

RowField FieldOf(double TransformerConfig::* field, bool zero)
{
  return RowNumber{ field, zero };
}

template<class Field>
RowField FieldOf(Field TransformerConfig::* field, bool /*zero*/)
{
  return field;
}

}

const std::vector<Named<RowField>>& RowFields()
{
#define FIELD(name) { #name, FieldOf(&TransformerConfig::name, false) }
#define FROM_0(name) { #name, FieldOf(&TransformerConfig::name, true) }
  static const std::vector<Named<RowField>> fields = { FIELD(layers), FIELD(heads),
    FIELD(modelDimension), FIELD(mlpDimension), FIELD(vocabulary), FIELD(outputVocabulary),
    FIELD(positions), FROM_0(segments), FIELD(headDimension), FIELD(keyHeads),
    FIELD(valueDimension), FIELD(embeddingDimension), FIELD(embeddingScale), FROM_0(firstPosition),
    FROM_0(paddingToken), FIELD(norm), FIELD(normPlace), FROM_0(epsilon), FIELD(normsHaveWeights),
    FIELD(normsHaveShifts), FIELD(gainOffset), FIELD(embeddingNorm), FIELD(finalNorm),
    FIELD(lastResidualIsNormed), FIELD(firstAttentionIsNormed), FIELD(normsInside), FIELD(order),
    FIELD(queryKeyNorm), FIELD(normsQueriesLast), FIELD(residualScale), FIELD(layerScales),
    FIELD(position), FIELD(rotaryDimension), FIELD(rotatesNeighbors), FIELD(rotatesLast),
    FIELD(rotatesValues), FIELD(roundsSlopes), FIELD(relativeBuckets), FIELD(relativeDistance),
    FIELD(activation), FIELD(gated), FIELD(mask), FIELD(rotaryBase), FIELD(attentionScale),
    FIELD(scaleByLayer), FROM_0(scoreCap), FROM_0(logitCap), FIELD(logitScale), FIELD(sinks),
    FIELD(sinksAreOutside), FROM_0(projectionClip), FIELD(inputBias), FIELD(outputBias),
    FIELD(mlpBias), FIELD(experts), FIELD(expertsPerToken), FIELD(expertDimension),
    FIELD(sharedExpertDimension), FIELD(sharedExpertHasGate), FIELD(expertFactor),
    FIELD(expertWeightsOfAll), FIELD(expertLimit), FIELD(logitsActivation), FIELD(tiedUnembedding),
    FIELD(slopeScale), FIELD(slopeExponent), FROM_0(queryGrowth), FIELD(queryGrowthStep),
    FROM_0(registers), FROM_0(classTokens), FIELD(embeddingProjection), FIELD(transformDimension),
    FIELD(transformBias), FROM_0(maskToken), FIELD(tasks), FIELD(addsPositions), FIELD(layerGroups),
    FIELD(groupLayers), FIELD(biasByLayer), FIELD(keyBias), FIELD(valueBias), FIELD(queryBias),
    FIELD(sharesPositionKeys), FIELD(normsPatches), FIELD(endsSinusoids), FIELD(channelsLast),
    FIELD(normsValues), FROM_0(sharedKeyLayers), FROM_0(layerInput), FIELD(layerInputVocabulary),
    FIELD(layerFactors), FIELD(streams), FROM_0(activeStream), FIELD(scalesActiveStream),
    FROM_0(laurelRank), FROM_0(convolution), FIELD(convolutionActivation), FIELD(keyLatent),
    FIELD(queryLatent), FIELD(expertGroups), FIELD(expertGroupsPerToken), FIELD(expertGroupScores),
    FIELD(expertScores), FIELD(expertBias), FROM_0(expertLeastSum), FIELD(expertScalesInput),
    FROM_0(expertTolerance), FROM_0(predictionLayers), FROM_0(expertSumOffset),
    FIELD(expertsBesideMlp), FIELD(mixerTaps), FIELD(mixerBias), FIELD(mixerTapsBias),
    FIELD(mixerKeyHeads), FIELD(mixerHeads), FIELD(mixerKeyDimension), FIELD(mixerValueDimension),
    FIELD(mixerRate), FIELD(mixerEpsilon), FIELD(mixerNormPlace), FIELD(gatesAttention),
    FIELD(patchBias), FIELD(patchFrames), FIELD(positionSide), FIELD(alignsPositions),
    FIELD(alternatesAxes), FIELD(rotatedLayers), FIELD(rotaryBases), FIELD(expertLayers) };
#undef FIELD
#undef FROM_0
  return fields;
}

}
