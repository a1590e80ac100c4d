#include "TextSource.h"

#include "Base/Error.h"
#include "Base/Utf8Text.h"
#include "Files/MappedFile.h"
#include "SequenceTask.h"
#include "Text/TokenizerFile.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The share of a text that is trained on.
constexpr double TrainShare = 0.9;

/// The shortest stretch that is repeated.
constexpr std::int64_t ShortestStretch = 16;

/// Where the part that is held out begins: behind the first line end or, in a text of one line, at
/// the first space from there on.
std::size_t SplitOf(std::string_view text)
{
  const auto from = static_cast<std::size_t>(TrainShare * static_cast<double>(text.size()));
  const std::size_t line = text.find('\n', from);
  if (line != std::string_view::npos && line + 1 < text.size())
  {
    return line + 1;
  }
  return std::min(text.find(' ', from), text.size());
}

void RequireTokens(const std::filesystem::path& path, const char* part,
  const std::vector<std::int64_t>& tokens, std::int64_t window)
{
  const std::int64_t count = tokens.size();
  ThrowIf<OptionError>(count < window, "Text: ", path.string(), " is too short: expected at least ",
    window, " tokens in the part ", part, ", one more than Context, found ", count, ".");
}

std::vector<std::int64_t> WindowOf(
  const std::vector<std::int64_t>& part, std::int64_t first, std::int64_t count)
{
  return { part.begin() + first, part.begin() + first + count };
}

}

TextSource::TextSource(const std::filesystem::path& path, std::int64_t windowSize,
  const std::function<std::string(std::string_view)>& trainTokenizer)
  : window(windowSize)
{
  ThrowIf<OptionError>(path.empty(), "Text: expected a text file, found none.");
  const std::string text = ReadFile(path);
  RequireUtf8(text, path.string());
  const std::string_view all = text;
  const std::size_t split = SplitOf(all);
  this->tokenizer = trainTokenizer(all.substr(0, split));
  const Tokenizer encoder = ParseTokenizer(this->tokenizer, "the tokenizer of " + path.string());
  this->train = encoder.Encode(all.substr(0, split), false).ids;
  this->heldOut = encoder.Encode(all.substr(split), false).ids;
  RequireTokens(path, "to train on, the first 90 %", this->train, this->window);
  RequireTokens(path, "that is held out, the last 10 %", this->heldOut, this->window);
}

std::vector<std::int64_t> TextSource::Draw(LearningRandom& random) const
{
  const auto places = static_cast<std::int64_t>(this->train.size()) - this->window + 1;
  return WindowOf(this->train, random.Integer(places), this->window);
}

std::int64_t TextSource::HeldOutCount() const
{
  return std::min<std::int64_t>(64, static_cast<std::int64_t>(this->heldOut.size()) / this->window);
}

std::vector<std::int64_t> TextSource::HeldOutWindow(std::int64_t index) const
{
  const auto last = static_cast<std::int64_t>(this->heldOut.size()) - this->window;
  const std::int64_t others = std::max<std::int64_t>(this->HeldOutCount() - 1, 1);
  return WindowOf(this->heldOut, index * last / others, this->window);
}

TaskOptions CheckedText(const TaskOptions& options, std::int64_t vocabulary, std::int64_t more)
{
  RequireBetween("Vocabulary", options.vocabulary, vocabulary, 1000000);
  RequireBetween("Context", options.context, 8, 65536);
  ThrowIf<OptionError>(!(options.repeats >= 0 && options.repeats <= 1),
    "Repeats: expected a share from 0 to 1, found ", options.repeats, ".");
  ThrowIf<OptionError>(options.curriculum < 0, "Curriculum: expected 0 steps or more, found ",
    options.curriculum, ".");
  const std::int64_t least = 2 * ShortestStretch + 1 - more;
  ThrowIf<OptionError>(options.repeats > 0 && options.context < least,
    "Context: expected at least ", least, " tokens for Repeats, found ", options.context, ".");
  return options;
}

void RepeatStretch(std::vector<std::int64_t>& tokens, LearningRandom& random)
{
  const std::int64_t size = tokens.size();
  const std::int64_t length = random.Integer(ShortestStretch, (size - 1) / 2);
  const std::int64_t from = random.Integer(0, size - 2 * length);
  const std::int64_t to = random.Integer(from + length, size - length);
  std::copy_n(tokens.begin() + from, length, tokens.begin() + to);
}

}
