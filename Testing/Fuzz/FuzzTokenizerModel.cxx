#include "FuzzParts.h"
#include "Text/SentencePieceFile.h"

#include <optional>

using namespace atlas;

namespace
{

/// The texts to be encoded, which try what models treat in a special way.
constexpr std::string_view Texts[] = { "", " ", "a  b", "the \xEF\xAC\x81 \xE2\x96\x81 1",
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab" };

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
      fuzz::Use([&] { fuzz::UseEncoding(*tokenizer, tokenizer->Encode(text, true)); });
    }
  }
  return 0;
}
