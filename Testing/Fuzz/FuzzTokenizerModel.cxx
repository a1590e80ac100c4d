#include "FuzzTarget.h"
#include "SentencePieceFile.h"

#include <optional>

using namespace atlas;

namespace
{

/// The texts to be encoded, which try what models treat in a special way.
constexpr std::string_view Texts[] = { "", " ", "a  b", "the \xEF\xAC\x81 \xE2\x96\x81 1",
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab" };

void Encode(const Tokenizer& tokenizer, std::string_view text)
{
  const Encoding encoding = tokenizer.Encode(text, true);
  fuzz::Require(encoding.tokens.size() == encoding.ids.size(), "lists of one length");
  for (const std::int64_t id : encoding.ids)
  {
    fuzz::Require(id >= 0 && id < tokenizer.VocabularySize(), "an id of the vocabulary");
  }
  tokenizer.Decode(encoding.ids);
}

}

/// The reader of SentencePiece's model files, and encoding and decoding texts with them.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  const std::string_view bytes = fuzz::Text(data, size);
  std::optional<Tokenizer> tokenizer;
  const auto read = [&]
  {
    const SentencePieceTable table = ParseSentencePieceModel(bytes, fuzz::Source);
    tokenizer = MakeSentencePieceTokenizer(table, fuzz::Source);
  };
  if (fuzz::Read(read))
  {
    for (const std::string_view text : Texts)
    {
      fuzz::Use([&] { Encode(*tokenizer, text); });
    }
  }
  return 0;
}
