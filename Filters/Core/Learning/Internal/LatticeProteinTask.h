#pragma once

#include "SequenceTask.h"

#include <array>
#include <memory>

namespace atlas
{

/// The residues of the lattice protein.
inline constexpr std::int64_t LatticeResidues = 36;

/// The place of each residue in a block of 3 x 3 x 4 places, which the chain fills.
const std::vector<std::array<int, 3>>& LatticeFold();

/// Whether two residues touch: they are neighbors in the block, but not in the chain.
bool AreInContact(std::int64_t i, std::int64_t j);

/// The share of contacts among the L/2 = 18 pairs of residues, at least three apart in the chain,
/// with the most attention [36, 36]: the sum of both directions, corrected for what each residue
/// gives and gets in all (average product correction, Dunn et al. 2008; as in Rao et al. 2021).
/// Of all such pairs, 40 of 561 are in contact.
double ContactPrecision(const std::vector<float>& attention);

/// Hidden residues of a protein with one fold on a lattice, as a protein language model learns them
/// from the sequences of a family (Rao et al. 2021).
///
/// A sequence has 36 of 20 amino acids, which are partners in pairs: D and K, E and R, ... Its
/// probability grows by the factor exp(3) with each contact of two partners (a Potts model), so
/// residues that touch covary. It is drawn by 24 sweeps of Gibbs sampling from random residues.
/// Five residues, 15 %, are replaced by [MASK] and to be predicted.
///
/// Measure, on 128 held-out sequences: Contact Precision, of the mean attention of all heads and
/// layers. Beside the model stands chain.pdb, the fold with the first held-out sequence: an alpha
/// carbon per residue, 3.8 angstroms apart.
///
/// Throws OptionError for another vocabulary or context.
std::unique_ptr<LearningTask> MakeLatticeProteinTask(const TaskOptions& options);

}
