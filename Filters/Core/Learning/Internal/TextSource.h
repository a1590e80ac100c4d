#pragma once

#include "LearningTask.h"
#include "Tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A text as tokens: its first 90 % to train on, the rest held out.
struct TextSource
{
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> heldOut;
  std::string tokenizer; ///< tokenizer.json

  /// Reads a UTF-8 file and encodes both parts with the tokenizer that `trainTokenizer` makes of
  /// the first. Parts end at the end of a line, or of a word if the text has a single line. Throws
  /// FileError, FormatError if the file is not UTF-8, and OptionError without a file, if a part is
  /// shorter than `window` tokens, and as trainTokenizer does.
  TextSource(const std::filesystem::path& path, std::int64_t window,
    const std::function<std::string(std::string_view)>& trainTokenizer);

  /// The tokens first, ..., first + count - 1 of a part.
  static std::vector<std::int64_t> Window(
    const std::vector<std::int64_t>& part, std::int64_t first, std::int64_t count);

  /// Where windows of `window` tokens of the part that is held out begin: at most `most`, spread
  /// evenly, that do not overlap.
  std::vector<std::int64_t> HeldOutStarts(std::int64_t window, std::int64_t most) const;
};

}
