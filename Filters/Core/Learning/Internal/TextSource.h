#pragma once

#include "Learning/LearningTask.h"
#include "LearningRandom.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A text as windows of tokens: of its first 90 % to train on, of the rest held out.
struct TextSource
{
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> heldOut;
  std::string tokenizer; ///< tokenizer.json
  std::int64_t window;   ///< tokens

  /// Reads a UTF-8 file and encodes both parts with the tokenizer that `trainTokenizer` makes of
  /// the first. Parts end at the end of a line, or of a word if the text has a single line. Throws
  /// FileError, FormatError if the file is not UTF-8, and OptionError without a file, if a part is
  /// shorter than `window` tokens, and as trainTokenizer does.
  TextSource(const std::filesystem::path& path, std::int64_t window,
    const std::function<std::string(std::string_view)>& trainTokenizer);

  /// A window at a random place of the part to train on.
  std::vector<std::int64_t> Draw(LearningRandom& random) const;

  /// The windows of the part that is held out: at most 64, spread evenly, that do not overlap.
  std::int64_t HeldOutCount() const;
  std::vector<std::int64_t> HeldOutWindow(std::int64_t index) const;
};

/// Returns the options of a task of texts. Throws OptionError unless there are at least
/// `vocabulary` tokens and 8 in a sequence, Repeats is a share, Curriculum is not negative and,
/// with Repeats, a sequence of context + `more` tokens has room for RepeatStretch.
TaskOptions CheckedText(const TaskOptions& options, std::int64_t vocabulary, std::int64_t more);

/// Writes a stretch of tokens, at least 16 and less than half of them, again at a later place.
void RepeatStretch(std::vector<std::int64_t>& tokens, LearningRandom& random);

}
