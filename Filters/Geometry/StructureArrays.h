#pragma once

/// Names of the arrays of a structure, as vtkPDBReader gives them, and of those that vtkMmcifReader
/// adds.
namespace AttentionAtlas::StructureArrays
{

inline constexpr const char* Atom = "atom_types";
inline constexpr const char* Element = "element";
inline constexpr const char* ResidueName = "residue_name";
inline constexpr const char* Chain = "chain"; ///< also field data: the chains with polymers
inline constexpr const char* Residue = "residue";
inline constexpr const char* Insertion = "insertion";
inline constexpr const char* Sequence = "sequence";
inline constexpr const char* Hetero = "ishetatm";
inline constexpr const char* Model = "model";
inline constexpr const char* Backbone = "backbone";      ///< of ribbons: 0 coil, 1 helix, 2 strand
inline constexpr const char* Length = "sequence_length"; ///< field data: of each of these chains

}
