#pragma once

#include "Recording.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace atlas
{

/// Whether a token's text is that of a special token which frames a text: it begins, ends,
/// separates or pads, and stands for no word. These are
///
/// - [CLS], [SEP], [PAD], [BOS], [EOS]
/// - <s>, </s>, <pad>, <cls>, <sep>, <bos>, <eos>, <eod>, <start_of_turn>, <end_of_turn>
/// - whatever is between <| and |>, such as <|endoftext|> and <|begin_of_text|>
///
/// [MASK], [UNK], <mask> and <unk> are not among them, since they stand for a word of the text.
/// Recordings do not say which ids are special, so this is decided by text.
bool IsSpecialToken(std::string_view text);

/// For each position of a sequence whether its token is special: by its text, or a class token of
/// an image. Throws OptionError if the recording has neither texts nor places in an image, or for
/// AllSequences, since then special tokens are not known.
std::vector<bool> FindSpecialTokens(const Recording& recording, std::int64_t sequence);

}
