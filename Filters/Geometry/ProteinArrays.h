#pragma once

/// Names of the arrays that vtkContactMap and vtkMutationScan add to those of ArrayNames.h, and of
/// the formats of their outputs.
namespace AttentionAtlas::ProteinArrays
{

inline constexpr const char* Evidence = "Contact Evidence"; ///< attention less average product
inline constexpr const char* Prediction = "Prediction";     ///< probability, by the model
inline constexpr const char* Contact = "Contact";           ///< 1, 0, or -1 where it is not known
inline constexpr const char* Distance = "Distance";
inline constexpr const char* Separation = "Separation"; ///< in the sequence
inline constexpr const char* Range = "Range";           ///< Near, Short, Medium, Long, or All
inline constexpr const char* ContactWeight = "Contact Weight";
inline constexpr const char* AttendedPairs = "Attended Pairs";
inline constexpr const char* ContactShare = "Contact Share";
inline constexpr const char* AttentionShare = "Attention Share";
inline constexpr const char* SiteShare = "Site Share";
inline constexpr const char* SiteAttentionShare = "Site Attention Share";
inline constexpr const char* Precision = "Precision"; ///< of heads followed by L, L/2 or L/5
inline constexpr const char* Top = "Top";             ///< L, L/2 or L/5
inline constexpr const char* Contacts = "Contacts";
inline constexpr const char* Residues = "Residues";                  ///< field data
inline constexpr const char* ResolvedResidues = "Resolved Residues"; ///< likewise
inline constexpr const char* SequenceIdentity = "Sequence Identity"; ///< likewise
inline constexpr const char* SiteResidues = "Site Residues";         ///< likewise
inline constexpr const char* Site = "Site";                          ///< likewise, of each residue

inline constexpr const char* AminoAcid = "Amino Acid";
inline constexpr const char* LogProbability = "Log Probability";
inline constexpr const char* MutationEffect = "Mutation Effect";
inline constexpr const char* MeanEffect = "Mean Effect";

inline constexpr const char* MapFormat = "attention-atlas.contact-map.map";
inline constexpr const char* PairsFormat = "attention-atlas.contact-map.pairs";
inline constexpr const char* HeadsFormat = "attention-atlas.contact-map.heads";
inline constexpr const char* HeadMapFormat = "attention-atlas.contact-map.head-map";
inline constexpr const char* PrecisionFormat = "attention-atlas.contact-map.precision";
inline constexpr const char* LinesFormat = "attention-atlas.contact-map.lines";
inline constexpr const char* EffectsFormat = "attention-atlas.mutation-scan.effects";
inline constexpr const char* EffectsImageFormat = "attention-atlas.mutation-scan.image";
inline constexpr const char* MutatedResiduesFormat = "attention-atlas.mutation-scan.residues";

}
