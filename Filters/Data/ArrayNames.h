#pragma once

#include <cstddef>
#include <string>

/// The names of arrays, which scripts of users rely on. In the name of a per-head array the number
/// of the head follows: "Attention 0".
namespace AttentionAtlas::ArrayNames
{

/// The name of a head's array.
inline std::string OfHead(const char* name, std::size_t head)
{
  return name + (" " + std::to_string(head));
}

// AttentionTorus
inline constexpr const char* Class = "Class";
inline constexpr const char* Probability = "Probability";
inline constexpr const char* ClassColor = "ClassColor";
inline constexpr const char* Logits = "Logits";
inline constexpr const char* Score = "Score";
inline constexpr const char* Attention = "Attention";
inline constexpr const char* WordMix = "Word Mix";
inline constexpr const char* PositionMix = "Position Mix";
inline constexpr const char* Mix = "Mix";
inline constexpr const char* HeadOutput = "Head Output";
inline constexpr const char* Output = "Output";

// TokenPairs, in addition to Probability and Output
inline constexpr const char* First = "First";
inline constexpr const char* Second = "Second";
inline constexpr const char* Target = "Target";
inline constexpr const char* Predicted = "Predicted";
inline constexpr const char* Correct = "Correct";
inline constexpr const char* TargetColor = "TargetColor";
inline constexpr const char* Accuracy = "Accuracy"; ///< field data

// SummableColors
inline constexpr const char* ColorSuffix = " Color";       ///< appended to the name of the vectors
inline constexpr const char* ColorGain = "Color Gain";     ///< field data
inline constexpr const char* ColorOffset = "Color Offset"; ///< field data

// TorusDeformation
inline constexpr const char* Theta1 = "Theta1";
inline constexpr const char* Theta2 = "Theta2";

// ScoreHarmonics: columns, the last three followed by a head number; and field data
inline constexpr const char* Harmonic = "Harmonic";
inline constexpr const char* Head = "Head";
inline constexpr const char* Amplitude = "Amplitude";
inline constexpr const char* Phase = "Phase";
inline constexpr const char* FreeParameters = "FreeParameters";

// HarmonicHead, in addition to Score and Attention without a head number: field data
inline constexpr const char* Coefficients = "Coefficients";
inline constexpr const char* SweptValue = "Swept Value";

// HeadAccuracySimplex, in addition to Accuracy and Predicted; the first is followed by a class
// number
inline constexpr const char* AccuracyTarget = "Accuracy Target";
inline constexpr const char* CorrectPair = "Correct Pair";
inline constexpr const char* Barycentric = "Barycentric";

// ClassAreas, in addition to Class, Probability and Accuracy: columns
inline constexpr const char* Area = "Area";
inline constexpr const char* PredictedPairs = "Predicted Pairs";
inline constexpr const char* TargetPairs = "Target Pairs";
inline constexpr const char* CorrectPairs = "Correct Pairs";

// HeadAccuracy, in addition to Accuracy and Correct: columns
inline constexpr const char* Name = "Name";
inline constexpr const char* Pairs = "Pairs";

// UnembeddingSphere, in addition to Class, ClassColor, First and Second
inline constexpr const char* Reachable = "Reachable";

// WordCircle, in addition to ClassColor
inline constexpr const char* Token = "Token";
inline constexpr const char* Tokenizer = "Tokenizer"; ///< VocabularyReader's field data
inline constexpr const char* Angle = "Angle";
inline constexpr const char* Normalized = "Normalized";
inline constexpr const char* CircleColor = "CircleColor";

// AttentionOnlyTraining, in addition to Accuracy and Phase: columns; the last is followed by a head
// number
inline constexpr const char* Step = "Step";
inline constexpr const char* Loss = "Loss";
inline constexpr const char* Seed = "Seed";
inline constexpr const char* Mode = "Mode";
inline constexpr const char* StepsToLearn = "Steps to Learn";
inline constexpr const char* Union = "Union";
inline constexpr const char* AccuracyHead = "Accuracy Head";

// TransformerTraining, in addition to Step, Loss and Accuracy
inline constexpr const char* Recipe = "Recipe"; ///< field data

// HeadEmbedding, in addition to Head and Token: point arrays, of which Row and Column only for
// images, and TokenId and TokenCount only where ids are known. TokenColors, TokenSearch and
// AttentionLines use them
inline constexpr const char* Kind = "Kind";              ///< 0 query, 1 key
inline constexpr const char* TokenIndex = "Token Index"; ///< row in the recording's tokens
inline constexpr const char* Layer = "Layer";
inline constexpr const char* Sequence = "Sequence";
inline constexpr const char* SequenceText = "Sequence Text"; ///< field data
inline constexpr const char* Position = "Position";
inline constexpr const char* RelativePosition = "Relative Position";
inline constexpr const char* Norm = "Norm";
inline constexpr const char* TokenCount = "Token Count";
inline constexpr const char* TokenId = "TokenId";
inline constexpr const char* Row = "Row";
inline constexpr const char* Column = "Column";
// and columns
inline constexpr const char* KeyScale = "Key Scale";
inline constexpr const char* Correlation = "Correlation";
inline constexpr const char* CorrelationBefore = "Correlation Before";
inline constexpr const char* RankCorrelation = "Rank Correlation";
inline constexpr const char* QueryNorm = "Query Norm";
inline constexpr const char* KeyNorm = "Key Norm";
inline constexpr const char* Divergence = "KL Divergence";
inline constexpr const char* Iterations = "Iterations";
inline constexpr const char* VarianceExplained = "Variance Explained";
inline constexpr const char* NeighborsKept = "Neighbors Kept";

// TokenColors, in addition
inline constexpr const char* TokenColor = "TokenColor";
inline constexpr const char* TokenColorLegend = "TokenColor Legend"; ///< field data
inline constexpr const char* Segment = "Segment";
inline constexpr const char* PatchColor = "Patch Color"; ///< mean red, green, blue, 0 to 1

// TokenSearch, in addition; the last two are columns
inline constexpr const char* Match = "Match";
inline constexpr const char* Matches = "Matches";
inline constexpr const char* Spread = "Spread";

// AttentionLines, in addition
inline constexpr const char* Weight = "Weight";
inline constexpr const char* Query = "Query"; ///< row in the recording's tokens; of
                                              ///< AttentionMatrix, position in the sequence
inline constexpr const char* Key = "Key";     ///< the same

// PatchAttention, in addition to Weight, Query, Key and the names of tokens
inline constexpr const char* Mark = "Mark";       ///< 0 itself, 1 a class token or word
inline constexpr const char* Picture = "Picture"; ///< among those of the text, from 0
inline constexpr const char* WeightOnWords = "Weight on Words"; ///< field data
inline constexpr const char* Heat = "Heat";                     ///< Weight, with colors of its own
inline constexpr const char* RelativeHeat = "RelativeHeat"; ///< Weight / the largest of the head
inline constexpr const char* PictureColor = "PictureColor"; ///< of pixels
inline constexpr const char* MarkColor = "MarkColor";       ///< of arrows, marks and frames
inline constexpr const char* MarkColorLegend = "MarkColor Legend"; ///< field data

// AttentionMap: bands of pictures, in addition to Picture, Side, MarkColor and First Token
inline constexpr const char* LastToken = "Last Token"; ///< a position

// AttentionFocus, in addition to Layer, Head, Sequence, Position, Token Index, Token and Query
// Norm: columns
inline constexpr const char* SelfWeight = "Self Weight";
inline constexpr const char* FirstWeight = "First Weight";
inline constexpr const char* StrongestKey = "Strongest Key"; ///< its position
inline constexpr const char* StrongestIsSelf = "Strongest Is Self";
inline constexpr const char* StrongestIsFirst = "Strongest Is First";
inline constexpr const char* Concentration = "Concentration";
inline constexpr const char* Entropy = "Entropy";
inline constexpr const char* SinkRate = "Sink Rate";
inline constexpr const char* FirstCosine = "First Cosine";
inline constexpr const char* FirstKeyNorm = "First Key Norm";
inline constexpr const char* Rank = "Rank"; ///< from 0
inline constexpr const char* Value = "Value";

// HeadScores, in addition to Layer and Head: columns and point arrays
inline constexpr const char* PreviousToken = "Previous Token";
inline constexpr const char* DuplicateToken = "Duplicate Token";
inline constexpr const char* Induction = "Induction";
inline constexpr const char* PrefixMatching = "Prefix Matching";
inline constexpr const char* Copying = "Copying";
inline constexpr const char* Sink = "Sink";

// ScoreBreakdown, in addition, with Query and Key as positions: columns. Score and Attention are
// above
inline constexpr const char* KeyToken = "Key Token";
inline constexpr const char* Alibi = "ALiBi";
inline constexpr const char* ContentToPosition = "Content to Position"; // of DeBERTa
inline constexpr const char* PositionToContent = "Position to Content";
inline constexpr const char* DistanceBias = "Distance Bias";
inline constexpr const char* Bias = "Bias";

// HeadUpdates, in addition: columns
inline constexpr const char* Magnitude = "Magnitude";
inline constexpr const char* Orientation = "Orientation";
inline constexpr const char* ContextMagnitude = "Context Magnitude";
inline constexpr const char* Bin = "Bin";
inline constexpr const char* MagnitudeLow = "Magnitude Low";
inline constexpr const char* MagnitudeHigh = "Magnitude High";
inline constexpr const char* MagnitudeCount = "Magnitude Count";
inline constexpr const char* OrientationLow = "Orientation Low";
inline constexpr const char* OrientationHigh = "Orientation High";
inline constexpr const char* OrientationCount = "Orientation Count";
inline constexpr const char* Tokens = "Tokens";

// CorpusStatistics, in addition to AttentionFocus's and HeadScores': columns
inline constexpr const char* Queries = "Queries";
inline constexpr const char* StrongestWeight = "Strongest Weight";
inline constexpr const char* MeanDistance = "Mean Distance";     ///< in tokens
inline constexpr const char* MedianDistance = "Median Distance"; ///< in tokens
inline constexpr const char* Cluster = "Cluster";                ///< also of HeadScatter
inline constexpr const char* ClusterColor = "ClusterColor";
inline constexpr const char* ClusterColorLegend = "ClusterColor Legend"; ///< field data
inline constexpr const char* Statistics = "Statistics"; ///< field data: the bytes of a file
inline constexpr const char* Documents = "Documents";   ///< field data, also Tokens
inline constexpr const char* Complete = "Complete";     ///< field data: 1 if all was read
inline constexpr const char* Agreement = "Agreement";   ///< with the head that is compared
// TopContexts, in addition to Rank from 1, Value, Query and Key as positions, and Kind
inline constexpr const char* Document = "Document"; ///< from 0
inline constexpr const char* Text = "Text";
// HeadTokenTable, in addition to Token and TokenId
inline constexpr const char* Occurrences = "Occurrences";
inline constexpr const char* From = "From"; ///< attention per occurrence
inline constexpr const char* To = "To";
inline constexpr const char* FromDistance = "From Distance";
inline constexpr const char* ToDistance = "To Distance";
inline constexpr const char* FromTotal = "From Total";
inline constexpr const char* ToTotal = "To Total";
// HeadHistogram, in addition to Value, Count, Share, Cumulative and Entropy
inline constexpr const char* Quantile = "Quantile"; ///< from 0 to 1
// ScoreParts, in addition to Token, Document, Position, Kind and Share
inline constexpr const char* Part = "Part"; ///< from 1
inline constexpr const char* Strength = "Strength";
inline constexpr const char* Variance = "Variance";
inline constexpr const char* Cumulative = "Cumulative";
inline constexpr const char* Coordinate = "Coordinate";
inline constexpr const char* End = "End"; ///< Lowest or Highest

// AttentionMap, strongest keys: cell arrays
inline constexpr const char* KindColor = "KindColor";

// AttentionTokens and SharedTokens, in addition, with Rank from 1: columns, and arrays of cells
inline constexpr const char* KeyPosition = "Key Position"; ///< -1 for vectors of one token
inline constexpr const char* Vector = "Vector";
inline constexpr const char* Logit = "Logit";
inline constexpr const char* Count = "Count";
inline constexpr const char* Positions = "Positions";
inline constexpr const char* Unique = "Unique";
inline constexpr const char* Discovery = "Discovery";
inline constexpr const char* IsBorder = "Border";
inline constexpr const char* Axis = "Axis";
inline constexpr const char* OtherLayer = "Other Layer";
inline constexpr const char* OtherHead = "Other Head";
inline constexpr const char* SharedTokens = "Shared Tokens";
inline constexpr const char* HeadName = "Head Name";    ///< field data
inline constexpr const char* Reading = "Reading";       ///< field data
inline constexpr const char* Processing = "Processing"; ///< field data

// BigramTable, in addition: columns
inline constexpr const char* NextToken = "Next Token";
inline constexpr const char* NextTokenId = "Next TokenId";
// HeadCircuit, in addition: columns and field arrays
inline constexpr const char* Direction = "Direction"; ///< what the other token is
inline constexpr const char* OtherToken = "Other Token";
inline constexpr const char* OtherTokenId = "Other TokenId";
inline constexpr const char* OtherPosition = "Other Position";
inline constexpr const char* QueryToken = "Query Token";
inline constexpr const char* KeyTitle = "Key Title";
inline constexpr const char* QueryTitle = "Query Title";
// SkipTrigrams, in addition: columns
inline constexpr const char* Source = "Source";
inline constexpr const char* Destination = "Destination";
inline constexpr const char* SourceId = "Source TokenId";
inline constexpr const char* DestinationId = "Destination TokenId";
inline constexpr const char* OutputId = "Output TokenId";
inline constexpr const char* QueryKey = "QK";
inline constexpr const char* OutputValue = "OV";
inline constexpr const char* Sources = "Sources"; ///< field data: which tokens were searched
// All views of weights
inline constexpr const char* LeftOut = "Left Out"; ///< field data: what a circuit leaves out

// ActivationPatching, in addition to Layer, Head, Position and Token: columns and point arrays, and
// field data, also Target, Against and Against TokenId
inline constexpr const char* LogitDifference = "Logit Difference";
inline constexpr const char* Effect = "Effect";
inline constexpr const char* Against = "Against"; ///< also of LogitAttribution
inline constexpr const char* TargetTokenId = "Target TokenId";
inline constexpr const char* PromptLogitDifference = "Prompt Logit Difference";
inline constexpr const char* SourceLogitDifference = "Source Logit Difference";
inline constexpr const char* PromptLoss = "Prompt Loss"; ///< of AttributionPatching
inline constexpr const char* SourceLoss = "Source Loss";

// AttributionPatching and CircuitReader, in addition, with From and To: columns, arrays of points
// and lines, and field data
inline constexpr const char* Node = "Node";
inline constexpr const char* InCircuit = "In Circuit";
inline constexpr const char* In = "In";       ///< which of two circuits: both, file or other
inline constexpr const char* Mlps = "MLPs";   ///< none, after heads or beside heads
inline constexpr const char* Input = "Input"; ///< Q, K, V or Stream
inline constexpr const char* ExactEffect = "Exact Effect";
inline constexpr const char* CircuitSize = "Size";
inline constexpr const char* Faithfulness = "Faithfulness";
inline constexpr const char* WithoutCircuit = "Without Circuit";
inline constexpr const char* Incompleteness = "Incompleteness";

// HeadSpectra, in addition to Copying: columns, followed by their number, and arrays of heads and
// eigenvalues
inline constexpr const char* Eigenvalue = "Eigenvalue";
inline constexpr const char* SingularValue = "Singular Value"; ///< also of VirtualWeights
inline constexpr const char* CopyingScore = "Copying Score";   ///< Copying, with colors of its own
inline constexpr const char* Index = "Index";                  ///< from 0
inline constexpr const char* Real = "Real";
inline constexpr const char* Imaginary = "Imaginary";
inline constexpr const char* Modulus = "Modulus";

// HeadComposition, in addition to Score: columns and arrays of lines
inline constexpr const char* FromLayer = "From Layer";
inline constexpr const char* FromHead = "From Head";
inline constexpr const char* ToLayer = "To Layer";
inline constexpr const char* ToHead = "To Head";
inline constexpr const char* Corrected = "Corrected";
inline constexpr const char* Baseline = "Baseline";           ///< field data
inline constexpr const char* LinesLeftOut = "Lines Left Out"; ///< field data

// VirtualWeights and QueryKeyContrast, in addition
inline constexpr const char* VirtualWeights = "Virtual Weights";
inline constexpr const char* Share = "Share"; ///< column
inline constexpr const char* Projection = "Projection";
inline constexpr const char* By = "By";                            ///< field data
inline constexpr const char* ScoreDifference = "Score Difference"; ///< column
inline constexpr const char* PairsInSet = "Pairs";                 ///< field data
inline constexpr const char* OtherPairs = "Other Pairs";           ///< field data

// LogitAttribution and ScoreAttribution, in addition: columns, and arrays of the image
inline constexpr const char* Component = "Component";
inline constexpr const char* Contribution = "Contribution";
inline constexpr const char* ScoreContribution = "ScoreContribution";
inline constexpr const char* QueryComponent = "Query Component";
inline constexpr const char* KeyComponent = "Key Component";
inline constexpr const char* QueryLayer = "Query Layer";
inline constexpr const char* QueryHead = "Query Head";
inline constexpr const char* KeyLayer = "Key Layer";
inline constexpr const char* KeyHead = "Key Head";
inline constexpr const char* Sum = "Sum";   ///< field data: of the contributions
inline constexpr const char* Miss = "Miss"; ///< field data: Sum minus what it is of
inline constexpr const char* AgainstTokenId = "Against TokenId"; ///< field data

// DictionaryFeatures, in addition to Component, Contribution, Share and Text: columns and arrays of
// the image
inline constexpr const char* Feature = "Feature"; ///< also field data
inline constexpr const char* Activation = "Activation";
inline constexpr const char* ReconstructionError = "Reconstruction Error";
inline constexpr const char* QueryReading = "Query Reading";
inline constexpr const char* KeyReading = "Key Reading";
inline constexpr const char* ValueReading = "Value Reading";
inline constexpr const char* HookName = "Hook Name";                       ///< field data
inline constexpr const char* Features = "Features";                        ///< field data
inline constexpr const char* ActiveFeatures = "Active Features";           ///< field data
inline constexpr const char* UnexplainedVariance = "Unexplained Variance"; ///< field data

// LogitLens, in addition: columns, and arrays of the image
inline constexpr const char* NextRank = "Next Rank";
inline constexpr const char* NextProbability = "Next Probability";

// ExpertRouting, in addition, with Rank from 1, Count and Share: columns, and arrays of the image
inline constexpr const char* Expert = "Expert";
inline constexpr const char* ExpertWeight = "Expert Weight";
inline constexpr const char* MeanWeight = "Mean Weight";
inline constexpr const char* ExpertScore = "Expert Score";
inline constexpr const char* MeanScore = "Mean Score";
inline constexpr const char* ExpertBias = "Expert Bias";

// AttentionSentence, in addition
inline constexpr const char* Opacity = "Opacity";
inline constexpr const char* HeadColor = "HeadColor";               ///< with its opacity
inline constexpr const char* HeadColorLegend = "HeadColor Legend";  ///< field data
inline constexpr const char* CompositionColor = "CompositionColor"; ///< with its opacity
inline constexpr const char* CompositionColorLegend = "CompositionColor Legend"; ///< field data
inline constexpr const char* ViewBounds = "View Bounds";                         ///< field data
inline constexpr const char* Side = "Side";                                      ///< 0 query, 1 key
inline constexpr const char* Radius = "Radius"; ///< of a disc that has a label
inline constexpr const char* Label = "Label";   ///< a token for the screen
inline constexpr const char* Hidden = "Hidden";
inline constexpr const char* Received = "Received";
inline constexpr const char* Given = "Given";

// BindTokens: arrays of points or cells, and field data
inline constexpr const char* BoundToken = "Bound Token"; ///< position in the sequence; -1: none
inline constexpr const char* TokenWeights = "Token Weights";
inline constexpr const char* TokenBinding = "Token Binding";
inline constexpr const char* TokenAssociation = "Token Association";
inline constexpr const char* TokenArray = "Token Array";
inline constexpr const char* WeightArray = "Weight Array";
inline constexpr const char* FirstToken = "First Token";
inline constexpr const char* TokensPerStep = "Tokens Per Step";
inline constexpr const char* TimeStep = "Time Step";

// SpatialAttention, in addition to Attention, and the names of tokens: columns
inline constexpr const char* Places = "Places";
inline constexpr const char* PlaceWeight = "Place Weight";
inline constexpr const char* Center = "Center";

}
