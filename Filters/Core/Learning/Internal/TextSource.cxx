#include "TextSource.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "TokenizerFile.h"
#include "Utf8Text.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The share of a text that is trained on.
constexpr double TrainShare = 0.9;

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

void RequireTokens(const std::filesystem::path& path, const std::string& part,
  const std::vector<std::int64_t>& tokens, std::int64_t window)
{
  const std::int64_t count = tokens.size();
  if (count < window)
  {
    throw OptionError("Text: " + path.string() + " is too short: expected at least " +
                      std::to_string(window) + " tokens in the part " + part +
                      ", one more than Context, found " + std::to_string(count) + ".");
  }
}

}

TextSource::TextSource(const std::filesystem::path& path, std::int64_t window,
  const std::function<std::string(std::string_view)>& trainTokenizer)
{
  if (path.empty())
  {
    throw OptionError("Text: expected a text file, found none.");
  }
  const std::string text = ReadFile(path);
  RequireUtf8(text, path.string());
  const std::string_view all = text;
  const std::size_t split = SplitOf(all);
  this->tokenizer = trainTokenizer(all.substr(0, split));
  const Tokenizer encoder = ParseTokenizer(this->tokenizer, "the tokenizer of " + path.string());
  this->train = encoder.Encode(all.substr(0, split), false).ids;
  this->heldOut = encoder.Encode(all.substr(split), false).ids;
  RequireTokens(path, "to train on, the first 90 %", this->train, window);
  RequireTokens(path, "that is held out, the last 10 %", this->heldOut, window);
}

std::vector<std::int64_t> TextSource::Window(
  const std::vector<std::int64_t>& part, std::int64_t first, std::int64_t count)
{
  const auto begin = part.begin() + first;
  return { begin, begin + count };
}

std::vector<std::int64_t> TextSource::HeldOutStarts(std::int64_t window, std::int64_t most) const
{
  const std::int64_t size = this->heldOut.size();
  const std::int64_t count = std::min(most, size / window);
  std::vector<std::int64_t> starts;
  starts.reserve(count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    starts.push_back(count == 1 ? 0 : i * (size - window) / (count - 1));
  }
  return starts;
}

}
