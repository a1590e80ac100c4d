#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A protein as its residues.
struct ProteinSequence
{
  std::string name;    ///< what follows > in its first line; empty without one
  std::string letters; ///< A to Z; a gap of an alignment is -
};

/// How proteins are written.
enum class ProteinFormat
{
  Fasta, ///< sequences, each behind a line >NAME, or one without such a line
  A3m    ///< the same, rows of an alignment: lower-case letters and dots, which are insertions
         ///< against its first row, are left out, and so are lines before it that begin with # and
         ///< rows ss_pred, ss_conf and ss_dssp; - is a gap
};

/// Proteins of a text. Spaces and line breaks in a sequence do not count. Throws FormatError, which
/// begins with `source` and names sequence and place, for anything but letters A to Z, such as a *
/// for a stop, lower-case letters and gaps in FASTA, for a sequence without residues, and for
/// residues before the first line >.
std::vector<ProteinSequence> ParseProteins(
  std::string_view text, ProteinFormat format, const std::string& source);

}
