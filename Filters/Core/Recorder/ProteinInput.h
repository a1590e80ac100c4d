#pragma once

#include "OpenTransformer.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The twenty amino acids that the genetic code has, by their letters.
inline constexpr std::string_view AminoAcids = "ACDEFGHIKLMNPQRSTVWY";

/// A protein as a model of residues reads it.
struct ProteinInput
{
  std::string letters;                  ///< of its residues
  std::vector<std::int64_t> ids;        ///< of its tokens, special ones included
  std::int64_t firstResidue = 0;        ///< tokens before the first residue
  std::int64_t mask = 0;                ///< the id of the mask
  std::vector<std::int64_t> aminoAcids; ///< ids of AminoAcids
};

/// Encodes a protein, letter by letter. `text`: one sequence, as ParseProteins reads it; `name`:
/// the property, with which messages begin. Throws FormatError as ParseProteins, OptionError for
/// several sequences, for residues that are no tokens of the model, and for a model without a
/// tokenizer, amino acids or a mask, or with more than 64 tokens, which is one of texts.
ProteinInput EncodeProtein(
  const OpenTransformer& model, std::string_view text, const std::string& name);

}
