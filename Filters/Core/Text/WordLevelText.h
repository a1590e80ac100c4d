#pragma once

#include <string>
#include <vector>

namespace atlas
{

/// The text of a tokenizer.json of Hugging Face's tokenizers library whose tokens are these words,
/// with ids from 0, and whose texts are words between white space: type WordLevel. Another word is
/// an error. Throws OptionError if a word is empty, has white space, or is there twice.
std::string WordLevelText(const std::vector<std::string>& words);

}
