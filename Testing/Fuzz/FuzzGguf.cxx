#include "Files/GgufFile.h"
#include "FuzzParts.h"
#include "Text/GgufTokenizer.h"

using namespace atlas;

namespace
{

/// Every value of the metadata, as each type.
void UseMetadata(const GgufMetadata& metadata)
{
  for (const auto& entry : metadata.GetValues())
  {
    const std::string& key = entry.first;
    fuzz::Use([&] { metadata.Text(key); });
    fuzz::Use([&] { metadata.Integer(key); });
    fuzz::Use([&] { metadata.Number(key); });
    fuzz::Use([&] { metadata.Flag(key, false); });
    fuzz::Use([&] { metadata.Texts(key); });
    fuzz::Use([&] { metadata.Integers(key); });
    fuzz::Use([&] { metadata.Numbers(key); });
  }
}

void UseTokenizer(const GgufMetadata& metadata)
{
  const Tokenizer tokenizer = MakeGgufTokenizer(metadata);
  fuzz::UseEncoding(tokenizer, tokenizer.Encode("The cat\xE2\x80\x99s 12 <s>", true));
}

}

/// The parser, every value and number that it finds, and the tokenizer inside.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  GgufContent content;
  if (!fuzz::Read([&] { content = ParseGguf(fuzz::Bytes(data), size, fuzz::Source); }))
  {
    return 0;
  }
  UseMetadata(content.metadata);
  for (const auto& [name, view] : content.tensors)
  {
    fuzz::Require(view.Bytes() <= size, "tensors within the file");
  }
  fuzz::UseTensors(content.tensors);
  fuzz::Use([&] { UseTokenizer(content.metadata); });
  return 0;
}
