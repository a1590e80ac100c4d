#pragma once

#include "AttentionAtlasDataModule.h"

#include <string>

class vtkDataObject;

/// The field array Format (string) of all data that our sources and filters make. Filters check it
/// in their XML (AtlasFormatDomain) and when they run. Those that only add to their input, and
/// ParaView's, pass it on.
namespace AttentionAtlas
{

/// The name of the field array.
inline constexpr const char* FormatField = "Format";

/// Its values. Data that only one filter produces is named after its proxy, followed by the name of
/// the output port if there are several.
namespace Formats
{

inline constexpr const char* AttentionOnly =
  "attention-atlas.attention-only"; ///< also used in its files
inline constexpr const char* Transformer = "attention-atlas.transformer";
inline constexpr const char* Recording = "attention-atlas.recording"; ///< also used in its files
inline constexpr const char* Vocabulary = "attention-atlas.vocabulary";
inline constexpr const char* RandomPrompts = "attention-atlas.random-prompts";
inline constexpr const char* AttentionMap = "attention-atlas.attention-map";
inline constexpr const char* AttentionMapPictures = "attention-atlas.attention-map.pictures";
inline constexpr const char* AttentionMatrix = "attention-atlas.attention-matrix.heads";
inline constexpr const char* AttentionMatrixTitles = "attention-atlas.attention-matrix.titles";
inline constexpr const char* HeadEmbeddingPoints = "attention-atlas.head-embedding.points";
inline constexpr const char* HeadEmbeddingTitles = "attention-atlas.head-embedding.titles";
inline constexpr const char* HeadEmbeddingHeads = "attention-atlas.head-embedding.heads";
inline constexpr const char* QueryKeyContrast = "attention-atlas.query-key-contrast.points";
inline constexpr const char* QueryKeyContrastTable = "attention-atlas.query-key-contrast.spectrum";
inline constexpr const char* QueryKeyContrastTitles = "attention-atlas.query-key-contrast.titles";
inline constexpr const char* AttentionLines = "attention-atlas.attention-lines";
inline constexpr const char* SentenceLines = "attention-atlas.attention-sentence.lines";
inline constexpr const char* SentenceWords = "attention-atlas.attention-sentence.words";
inline constexpr const char* SentenceBars = "attention-atlas.attention-sentence.bars";
inline constexpr const char* PatchAttentionPatches = "attention-atlas.patch-attention.patches";
inline constexpr const char* PatchAttentionArrows = "attention-atlas.patch-attention.arrows";
inline constexpr const char* PatchAttentionMarks = "attention-atlas.patch-attention.marks";
inline constexpr const char* PatchAttentionPicture = "attention-atlas.patch-attention.picture";
inline constexpr const char* PatchAttentionFrames = "attention-atlas.patch-attention.frames";
inline constexpr const char* PatchAttentionTitles = "attention-atlas.patch-attention.titles";
inline constexpr const char* SpatialAttentionLines = "attention-atlas.spatial-attention.lines";
inline constexpr const char* SpatialAttentionMarks = "attention-atlas.spatial-attention.marks";
inline constexpr const char* SpatialAttentionTokens = "attention-atlas.spatial-attention.tokens";
inline constexpr const char* TokenColorsLegend = "attention-atlas.token-colors.legend";
inline constexpr const char* TokenSearchHeads = "attention-atlas.token-search.heads";
inline constexpr const char* AttentionFocus = "attention-atlas.attention-focus.focus";
inline constexpr const char* AttentionTokens = "attention-atlas.attention-tokens.tokens";
inline constexpr const char* AttentionTokenCells = "attention-atlas.attention-tokens.cells";
inline constexpr const char* AttentionTokenCounts = "attention-atlas.attention-tokens.frequencies";
inline constexpr const char* AttentionTokenUnique = "attention-atlas.attention-tokens.unique";
inline constexpr const char* AttentionTokenLabels = "attention-atlas.attention-tokens.labels";
inline constexpr const char* AttentionTokenLayout = "attention-atlas.attention-token-layout";
inline constexpr const char* SharedTokens = "attention-atlas.shared-tokens.heads";
inline constexpr const char* SharedTokenLabels = "attention-atlas.shared-tokens.labels";
inline constexpr const char* SharedTokenPairs = "attention-atlas.shared-tokens.pairs";
inline constexpr const char* AttentionFocusSorted = "attention-atlas.attention-focus.sorted";
inline constexpr const char* ExpertRouting = "attention-atlas.expert-routing.image";
inline constexpr const char* ExpertRoutingLoads = "attention-atlas.expert-routing.loads";
inline constexpr const char* ExpertRoutingTokens = "attention-atlas.expert-routing.tokens";
inline constexpr const char* ExpertRoutingLabels = "attention-atlas.expert-routing.labels";
inline constexpr const char* HeadScores = "attention-atlas.head-scores.heads";
inline constexpr const char* HeadScoresImage = "attention-atlas.head-scores.image";
inline constexpr const char* HeadScoresTitles = "attention-atlas.head-scores.titles";
inline constexpr const char* ScoreBreakdown = "attention-atlas.score-breakdown.scores";
inline constexpr const char* ScoreBreakdownKeys = "attention-atlas.score-breakdown.keys";
inline constexpr const char* Corpus = "attention-atlas.corpus"; ///< also used in its files
inline constexpr const char* HeadScatter = "attention-atlas.head-scatter.heads";
inline constexpr const char* HeadScatterLabels = "attention-atlas.head-scatter.labels";
inline constexpr const char* HeadScatterAxes = "attention-atlas.head-scatter.axes";
inline constexpr const char* HeadHistogram = "attention-atlas.head-histogram.counts";
inline constexpr const char* HeadQuantiles = "attention-atlas.head-histogram.quantiles";
inline constexpr const char* HeadTokenTable = "attention-atlas.head-token-table";
inline constexpr const char* TopContexts = "attention-atlas.top-contexts.contexts";
inline constexpr const char* TopContextWords = "attention-atlas.top-contexts.words";
inline constexpr const char* TopContextMarks = "attention-atlas.top-contexts.marks";
inline constexpr const char* TopContextPrompts = "attention-atlas.top-contexts.prompts";
inline constexpr const char* ScoreParts = "attention-atlas.score-parts.parts";
inline constexpr const char* ScorePartEnds = "attention-atlas.score-parts.ends";
inline constexpr const char* ScorePartPoints = "attention-atlas.score-parts.points";
inline constexpr const char* HeadUpdates = "attention-atlas.head-updates.updates";
inline constexpr const char* HeadUpdatesHistograms = "attention-atlas.head-updates.histograms";
inline constexpr const char* HeadUpdatesPositions = "attention-atlas.head-updates.positions";
inline constexpr const char* HeadUpdatesLayers = "attention-atlas.head-updates.layers";
inline constexpr const char* StrongestKeys = "attention-atlas.strongest-keys";
inline constexpr const char* ActivationPatching = "attention-atlas.activation-patching.effects";
inline constexpr const char* ActivationPatchingImage = "attention-atlas.activation-patching.image";
inline constexpr const char* AttributionPatching = "attention-atlas.attribution-patching.graph";
inline constexpr const char* AttributionPatchingNodes =
  "attention-atlas.attribution-patching.nodes";
inline constexpr const char* AttributionPatchingEdges =
  "attention-atlas.attribution-patching.edges";
inline constexpr const char* AttributionPatchingLabels =
  "attention-atlas.attribution-patching.labels";
inline constexpr const char* AttributionPatchingCircuit =
  "attention-atlas.attribution-patching.circuit";
inline constexpr const char* Circuit = "attention-atlas.circuit.graph";
inline constexpr const char* CircuitNodes = "attention-atlas.circuit.nodes";
inline constexpr const char* CircuitEdges = "attention-atlas.circuit.edges";
inline constexpr const char* CircuitLabels = "attention-atlas.circuit.labels";
inline constexpr const char* LogitAttribution = "attention-atlas.logit-attribution.terms";
inline constexpr const char* LogitAttributionImage = "attention-atlas.logit-attribution.image";
inline constexpr const char* LogitLens = "attention-atlas.logit-lens.image";
inline constexpr const char* LogitLensTokens = "attention-atlas.logit-lens.tokens";
inline constexpr const char* LogitLensLabels = "attention-atlas.logit-lens.labels";
inline constexpr const char* DictionaryFeatures = "attention-atlas.dictionary-features.activations";
inline constexpr const char* DictionaryFeaturesImage = "attention-atlas.dictionary-features.image";
inline constexpr const char* DictionaryFeaturesHeads = "attention-atlas.dictionary-features.heads";
inline constexpr const char* DictionaryFeaturesLogits =
  "attention-atlas.dictionary-features.logits";
inline constexpr const char* DictionaryFeaturesContexts =
  "attention-atlas.dictionary-features.contexts";
inline constexpr const char* ScoreAttribution = "attention-atlas.score-attribution.image";
inline constexpr const char* ScoreAttributionPairs = "attention-atlas.score-attribution.pairs";
inline constexpr const char* BigramTable = "attention-atlas.bigram-table";
inline constexpr const char* HeadCircuit = "attention-atlas.head-circuit.largest";
inline constexpr const char* HeadCircuitEntries = "attention-atlas.head-circuit.entries";
inline constexpr const char* SkipTrigrams = "attention-atlas.skip-trigrams";
inline constexpr const char* HeadSpectra = "attention-atlas.head-spectra.spectra";
inline constexpr const char* HeadSpectraHeads = "attention-atlas.head-spectra.heads";
inline constexpr const char* HeadSpectraEigenvalues = "attention-atlas.head-spectra.eigenvalues";
inline constexpr const char* HeadSpectraTitles = "attention-atlas.head-spectra.titles";
inline constexpr const char* HeadComposition = "attention-atlas.head-composition.graph";
inline constexpr const char* HeadCompositionPairs = "attention-atlas.head-composition.pairs";
inline constexpr const char* HeadCompositionHeads = "attention-atlas.head-composition.heads";
inline constexpr const char* VirtualWeights = "attention-atlas.virtual-weights.weights";
inline constexpr const char* VirtualWeightsSpectrum = "attention-atlas.virtual-weights.spectrum";
inline constexpr const char* VirtualWeightsTitles = "attention-atlas.virtual-weights.titles";
inline constexpr const char* AttentionTorus = "attention-atlas.attention-torus";
inline constexpr const char* HarmonicHead = "attention-atlas.harmonic-head";
inline constexpr const char* TokenPairs = "attention-atlas.token-pairs";
inline constexpr const char* ClassAreas = "attention-atlas.class-areas";
inline constexpr const char* TorusDeformation = "attention-atlas.torus-deformation";
inline constexpr const char* ScoreHarmonics = "attention-atlas.score-harmonics";
inline constexpr const char* HeadAccuracy = "attention-atlas.head-accuracy";
inline constexpr const char* HeadAccuracySimplex = "attention-atlas.head-accuracy-simplex";
inline constexpr const char* HeadAccuracySimplexCorners =
  "attention-atlas.head-accuracy-simplex.corners";
inline constexpr const char* UnembeddingCells = "attention-atlas.unembedding-sphere.cells";
inline constexpr const char* UnembeddingCentres = "attention-atlas.unembedding-sphere.centres";
inline constexpr const char* UnembeddingArcs = "attention-atlas.unembedding-sphere.arcs";
inline constexpr const char* EmbeddingTokens = "attention-atlas.word-circle.tokens";
inline constexpr const char* WordCircle = "attention-atlas.word-circle.circle";
inline constexpr const char* Training = "attention-atlas.attention-only-training.training";
inline constexpr const char* TransformerTraining = "attention-atlas.transformer-training.curves";
inline constexpr const char* TrainingRuns = "attention-atlas.attention-only-training.runs";

}

ATTENTIONATLASDATA_EXPORT void SetFormat(vtkDataObject* data, const char* format);

/// The format of the data; an empty string if it has none.
ATTENTIONATLASDATA_EXPORT std::string FormatOf(vtkDataObject* data);

/// Throws atlas::ModelError if the data does not have this format. The message begins with `input`
/// and ends with `advice`, which states where to get the data.
ATTENTIONATLASDATA_EXPORT void RequireFormat(
  vtkDataObject* data, const char* format, const std::string& input, const std::string& advice);

}
