#pragma once

#include "Text/Tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Whether a text is the beginning of tiktoken's ranks: its first line is Base64, a space and a
/// number.
bool LooksLikeTiktoken(std::string_view text);

/// The tokens in a file of tiktoken, as bytes, by rank: a line for each, of Base64, a space and the
/// rank, which counts from 0. Throws FormatError; the message gives `source` and the line.
std::vector<std::string> ParseTiktokenRanks(std::string_view text, const std::string& source);

/// Byte-level BPE with these tokens, whose ids are their ranks: of all adjacent parts of a word,
/// those two are merged whose token has the lowest rank. The words are those of Llama 3. Behind the
/// ranks follow `special` tokens, the first of which is added before texts. Throws FormatError.
Tokenizer MakeTiktokenTokenizer(const std::vector<std::string>& ranks,
  const std::vector<std::string>& special, const std::string& source);

/// The tokenizer.model of Llama 3 as Meta gives it, with its 256 special tokens, which are not in
/// the file. Throws FormatError, also for ranks of another number: neither words nor special tokens
/// are known of them.
Tokenizer ParseTiktokenModel(std::string_view text, const std::string& source);

}
