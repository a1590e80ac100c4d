#include "ProteinInput.h"

#include "Base/Error.h"
#include "Text/ProteinText.h"

#include <optional>

namespace atlas
{
namespace
{

/// The id of the mask, if the model has one.
std::optional<std::int64_t> MaskOf(const OpenTransformer& model, const Tokenizer& tokenizer)
{
  const std::int64_t configured = model.GetModel().GetConfig().maskToken;
  if (configured >= 0)
  {
    return configured;
  }
  const std::optional<std::int64_t> mask = tokenizer.IdOf("<mask>");
  return mask ? mask : tokenizer.IdOf("[MASK]");
}

}

ProteinInput EncodeProtein(
  const OpenTransformer& model, std::string_view text, const std::string& name)
{
  const std::vector<ProteinSequence> proteins = ParseProteins(text, ProteinFormat::Fasta, name);
  ThrowIf<OptionError>(
    proteins.size() != 1, name, ": expected one protein, found ", proteins.size(), ".");
  const Tokenizer& tokenizer = model.GetTokenizer();
  // Models of texts may have the letters, too.
  constexpr std::int64_t most = 64;
  ThrowIf<OptionError>(tokenizer.VocabularySize() > most,
    "Input: expected a model of proteins, with at most ", most, " tokens, found one of ",
    model.GetModel().GetConfig().architecture, " with ", tokenizer.VocabularySize(), ".");
  ProteinInput input;
  for (const char letter : AminoAcids)
  {
    const std::optional<std::int64_t> id = tokenizer.IdOf({ &letter, 1 });
    if (!id)
    {
      throw OptionError("Input: expected a model of proteins, whose tokens are the letters ",
        AminoAcids, ", found one without a token '", letter, "'.");
    }
    input.aminoAcids.push_back(*id);
  }
  const std::optional<std::int64_t> mask = MaskOf(model, tokenizer);
  if (!mask)
  {
    throw OptionError("Input: expected a model with a token <mask> or [MASK], found one without.");
  }
  input.mask = *mask;
  input.letters = proteins.front().letters;
  const TextFrame frame = tokenizer.FrameOfTexts();
  input.ids = frame.before;
  input.firstResidue = static_cast<std::int64_t>(frame.before.size());
  for (std::size_t i = 0; i < input.letters.size(); ++i)
  {
    const std::optional<std::int64_t> id = tokenizer.IdOf({ &input.letters[i], 1 });
    if (!id)
    {
      throw OptionError(name, ": expected residues that are tokens of the model, found '",
        input.letters[i], "' after ", i, i == 1 ? " residue." : " residues.");
    }
    input.ids.push_back(*id);
  }
  input.ids.insert(input.ids.end(), frame.after.begin(), frame.after.end());
  return input;
}

}
