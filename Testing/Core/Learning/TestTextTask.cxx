#include "Learning/Internal/TextSource.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Learning/Internal/Tasks.h"
#include "TaskModel.h"
#include "TemporaryDirectory.h"
#include "Text/BpeTraining.h"
#include "Text/TokenizerFile.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// Lines of random words of three letters, in a file.
class TextTasks : public testing::Test
{
protected:
  TemporaryDirectory Folder;
  std::string Text = MakeText(3000);
  TaskOptions Options;

  TextTasks()
  {
    WriteBytes(this->Folder / "text.txt", this->Text);
    this->Options.kind = TaskKind::Text;
    this->Options.text = this->Folder / "text.txt";
    this->Options.vocabulary = 300;
    this->Options.context = 40;
    this->Options.seed = 5;
  }

  static std::string MakeText(int words)
  {
    std::mt19937_64 generator(3);
    std::string text;
    for (int word = 0; word < words; ++word)
    {
      for (int i = 0; i < 3; ++i)
      {
        text += static_cast<char>('a' + generator() % 5);
      }
      text += word % 10 == 9 ? '\n' : ' ';
    }
    return text;
  }

  /// The lines of the text from 90 % of its bytes on.
  std::string HeldOutText() const
  {
    return this->Text.substr(this->Text.find('\n', this->Text.size() * 9 / 10) + 1);
  }

  static Tokenizer TokenizerOf(const LearningTask& task)
  {
    return ParseTokenizer(task.Files().at("tokenizer.json"), "tokenizer.json");
  }
};

/// Whether `after` is `before` with a stretch of 16 to `most` of them repeated
/// later.
bool IsRepeated(
  const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after, std::size_t most)
{
  for (std::size_t length = 16; length <= most; ++length)
  {
    for (std::size_t to = length; to + length <= before.size(); ++to)
    {
      for (std::size_t from = 0; from + length <= to; ++from)
      {
        std::vector<std::int64_t> expected = before;
        std::copy_n(&before[from], length, &expected[to]);
        if (expected == after)
        {
          return true;
        }
      }
    }
  }
  return false;
}

TEST_F(TextTasks, BatchesAreWindowsOfTheFirstPartOfTheText)
{
  const auto task = MakeTextTask(this->Options);
  const Tokenizer tokenizer = TokenizerOf(*task);
  const std::string train = this->Text.substr(0, this->Text.size() - this->HeldOutText().size());
  EXPECT_EQ(task->Files().at("tokenizer.json"), TrainBpe(train, 300));
  const TrainingBatch batch = task->MakeBatch(7, 20);
  ASSERT_THAT(batch.input.tokens, SizeIs(20));
  ASSERT_THAT(batch.targets, SizeIs(20 * 40));
  std::set<std::string> windows;
  for (std::size_t s = 0; s < 20; ++s)
  {
    std::vector<std::int64_t> tokens = batch.input.tokens[s];
    ASSERT_THAT(tokens, SizeIs(40));
    const auto targets = batch.targets.begin() + static_cast<std::ptrdiff_t>(40 * s);
    EXPECT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), targets));
    tokens.push_back(targets[39]);
    windows.insert(tokenizer.Decode(tokens));
    EXPECT_NE(train.find(tokenizer.Decode(tokens)), std::string::npos);
  }
  EXPECT_GT(windows.size(), 18U) << "places are random";
  EXPECT_EQ(task->MakeBatch(7, 20).input.tokens, batch.input.tokens);
  EXPECT_NE(task->MakeBatch(8, 20).input.tokens, batch.input.tokens);
}

TEST_F(TextTasks, TheLastPartIsHeldOut)
{
  const auto task = MakeTextTask(this->Options);
  const Tokenizer tokenizer = TokenizerOf(*task);
  const TrainingBatch batch = task->MakeHeldOut();
  const std::string heldOut = this->HeldOutText();
  const std::size_t tokens = tokenizer.Encode(heldOut, false).ids.size();
  ASSERT_THAT(batch.input.tokens, SizeIs(std::min<std::size_t>(64, tokens / 41)));
  std::size_t from = 0; // they do not overlap
  for (const std::vector<std::int64_t>& sequence : batch.input.tokens)
  {
    const std::string window = tokenizer.Decode(sequence);
    from = heldOut.find(window, from);
    ASSERT_NE(from, std::string::npos);
    from += window.size();
  }
  EXPECT_EQ(task->MakeHeldOut().targets, batch.targets);
}

TEST_F(TextTasks, StretchesAreRepeatedLater)
{
  const auto plain = MakeTextTask(this->Options);
  this->Options.repeats = 1;
  const auto repeating = MakeTextTask(this->Options);
  for (std::int64_t step = 0; step < 50; ++step)
  {
    // Of the same place in the text, as that is drawn first.
    std::vector<std::int64_t> before = plain->MakeBatch(step, 1).input.tokens[0];
    std::vector<std::int64_t> after = repeating->MakeBatch(step, 1).input.tokens[0];
    before.push_back(plain->MakeBatch(step, 1).targets.back());
    after.push_back(repeating->MakeBatch(step, 1).targets.back());
    EXPECT_TRUE(IsRepeated(before, after, 20)) << "step " << step;
  }
  this->Options.repeats = 0.25;
  const TrainingBatch some = MakeTextTask(this->Options)->MakeBatch(0, 400);
  int count = 0;
  for (const std::vector<std::int64_t>& sequence : some.input.tokens)
  {
    bool isRepeated = false;
    for (std::size_t shift = 16; shift < 40; ++shift)
    {
      std::size_t length = 0;
      for (std::size_t i = shift; i < 40; ++i)
      {
        length = sequence[i] == sequence[i - shift] ? length + 1 : 0;
        isRepeated = isRepeated || length >= 15;
      }
    }
    count += isRepeated ? 1 : 0;
  }
  EXPECT_NEAR(count, 100, 4 * 8.7) << "four standard deviations of a binomial distribution";
}

TEST_F(TextTasks, TheCurriculumIsRepeatedTokens)
{
  this->Options.curriculum = 3;
  const auto task = MakeTextTask(this->Options);
  const auto repeated = MakeRepeatedTokensTask(this->Options);
  EXPECT_EQ(task->MakeBatch(2, 4).input.tokens, repeated->MakeBatch(2, 4).input.tokens);
  EXPECT_EQ(task->MakeBatch(2, 4).targets, repeated->MakeBatch(2, 4).targets);
  EXPECT_NE(task->MakeBatch(3, 4).input.tokens, repeated->MakeBatch(3, 4).input.tokens);
  EXPECT_EQ(task->MeasureNames(), repeated->MeasureNames());
  TransformerConfig config;
  task->Configure(config);
  EXPECT_EQ(config.vocabulary, 300);
  EXPECT_EQ(config.positions, 40);
}

/// From 25 tokens to 300 in 4 steps: by the fourth root of 12 in each.
TEST_F(TextTasks, TheVocabularyOfTheCurriculumGrows)
{
  this->Options.curriculum = 4;
  this->Options.curriculumVocabulary = 25;
  const auto task = MakeTextTask(this->Options);
  const std::int64_t expected[] = { 25, 47, 87, 161 };
  for (std::int64_t step = 0; step < 4; ++step)
  {
    std::set<std::int64_t> seen;
    for (const std::vector<std::int64_t>& tokens : task->MakeBatch(step, 400).input.tokens)
    {
      seen.insert(tokens.begin(), tokens.end());
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), expected[step]) << step;
    EXPECT_EQ(*seen.rbegin(), expected[step] - 1) << step;
  }
  TaskOptions plain = this->Options;
  plain.curriculumVocabulary = 0;
  EXPECT_EQ(task->MakeBatch(4, 4).input.tokens, MakeTextTask(plain)->MakeBatch(4, 4).input.tokens);
  plain.curriculumVocabulary = 300;
  EXPECT_EQ(MakeTextTask(plain)->MakeBatch(0, 4).input.tokens,
    MakeRepeatedTokensTask(plain)->MakeBatch(0, 4).input.tokens);
}

TEST_F(TextTasks, BadTextsAndOptionsAreRefused)
{
  const TaskOptions good = this->Options;
  const auto expect = [&](const auto& change, const std::string& message)
  {
    this->Options = good;
    change(this->Options);
    EXPECT_THAT(
      MessageOf<OptionError>([this] { MakeTextTask(this->Options); }), HasSubstr(message));
  };
  using Task = TaskOptions;
  expect([](Task& o) { o.vocabulary = 256; }, "Vocabulary: expected 257 to");
  expect([](Task& o) { o.vocabulary = 5000; },
    "tokens, found 5000; expected a smaller vocabulary or a longer text");
  expect([](Task& o) { o.context = 4000; },
    "is too short: expected at least 4001 tokens in the part that is held out");
  expect([](Task& o) { o.repeats = 1.5; }, "Repeats: expected a share from 0 to 1");
  expect([](Task& o) { o.repeats = 0.5, o.context = 31; },
    "Context: expected at least 32 tokens for Repeats, found 31");
  expect([](Task& o) { o.curriculum = -1; }, "Curriculum: expected 0 steps or more, found -1");
  expect([](Task& o) { o.curriculumVocabulary = 301; },
    "Curriculum Vocabulary: expected 2 to 300, found 301");
  expect([](Task& o) { o.text = ""; }, "Text: expected a text file, found none");
  this->Options.text = this->Folder / "none.txt";
  EXPECT_THAT(MessageOf<FileError>([this] { MakeTextTask(this->Options); }), HasSubstr("none.txt"));
  WriteBytes(this->Folder / "bad.txt", "text \xff");
  this->Options.text = this->Folder / "bad.txt";
  EXPECT_THAT(
    MessageOf<FormatError>([this] { MakeTextTask(this->Options); }), HasSubstr("bad.txt"));
  const auto task = MakeTextTask(good);
  EXPECT_THAT(MessageOf<OptionError>([&] { task->MakeBatch(0, 0); }), HasSubstr("BatchSize"));
}

/// A text of one line is split at a space.
TEST_F(TextTasks, PartsEndAtWords)
{
  std::string line = this->Text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  WriteBytes(this->Folder / "line.txt", line);
  const TextSource source(this->Folder / "line.txt", 10,
    [](std::string_view text)
    {
      EXPECT_NE(text.back(), ' ');
      return TrainBpe(text, 260);
    });
  const Tokenizer tokenizer = ParseTokenizer(source.tokenizer, "tokenizer");
  const std::string heldOut = tokenizer.Decode(source.heldOut);
  EXPECT_EQ(heldOut.front(), ' ');
  EXPECT_NEAR(static_cast<double>(heldOut.size()), 0.1 * static_cast<double>(line.size()), 5);
  EXPECT_EQ(tokenizer.Decode(source.train) + heldOut, line);
}

class MaskedTextTasks : public TextTasks
{
protected:
  MaskedTextTasks()
  {
    this->Options.kind = TaskKind::MaskedText;
    this->Options.vocabulary = 60;
  }
};

TEST_F(MaskedTextTasks, MasksFollowBertsRule)
{
  const auto task = MakeMaskedTextTask(this->Options);
  const Tokenizer tokenizer = TokenizerOf(*task);
  const std::int64_t sequences = 500;
  const TrainingBatch batch = task->MakeBatch(3, sequences);
  ASSERT_THAT(batch.targets, SizeIs(500 * 40));
  double masked = 0;
  double kept = 0;
  std::set<std::int64_t> random;
  double randomCount = 0;
  for (std::size_t s = 0; s < 500; ++s)
  {
    const std::vector<std::int64_t>& tokens = batch.input.tokens[s];
    ASSERT_THAT(tokens, SizeIs(40));
    EXPECT_EQ(tokens.front(), tokenizer.IdOf("[CLS]"));
    EXPECT_EQ(tokens.back(), tokenizer.IdOf("[SEP]"));
    int predicted = 0;
    for (std::size_t i = 0; i < 40; ++i)
    {
      const std::int64_t target = batch.targets[40 * s + i];
      if (target < 0)
      {
        EXPECT_NE(tokens[i], tokenizer.IdOf("[MASK]"));
        continue;
      }
      EXPECT_GE(target, 5);
      ++predicted;
      const bool isMask = tokens[i] == tokenizer.IdOf("[MASK]");
      masked += isMask ? 1 : 0;
      kept += tokens[i] == target ? 1 : 0;
      if (!isMask && tokens[i] != target)
      {
        random.insert(tokens[i]);
        ++randomCount;
      }
    }
    EXPECT_EQ(predicted, 6) << "15 % of 38 tokens";
  }
  const double all = 6 * 500;
  // Four standard deviations; a random token is the right one in 1 of 55 cases.
  EXPECT_NEAR(masked / all, 0.8, 4 * 0.0073);
  EXPECT_NEAR(kept / all, 0.1 + 0.1 / 55, 4 * 0.0055);
  EXPECT_NEAR(randomCount / all, 0.1 - 0.1 / 55, 4 * 0.0055);
  EXPECT_GE(*random.begin(), 5);
  EXPECT_GT(random.size(), 45U);
}

TEST_F(MaskedTextTasks, TargetsRestoreTheText)
{
  const auto task = MakeMaskedTextTask(this->Options);
  const Tokenizer tokenizer = TokenizerOf(*task);
  const std::size_t heldOutSize = this->HeldOutText().size();
  const std::string train = this->Text.substr(0, this->Text.size() - heldOutSize);
  const std::vector<std::int64_t> all = tokenizer.Encode(train, false).ids;
  for (const std::vector<std::int64_t>& tokens : Restored(task->MakeBatch(0, 10)))
  {
    EXPECT_NE(std::search(all.begin(), all.end(), tokens.begin() + 1, tokens.end() - 1), all.end());
  }
}

/// The tokens of a batch before they were hidden, without [CLS] and [SEP].
std::vector<std::vector<std::int64_t>> WordsOf(const TrainingBatch& batch)
{
  std::vector<std::vector<std::int64_t>> sequences = Restored(batch);
  for (std::vector<std::int64_t>& tokens : sequences)
  {
    tokens = { tokens.begin() + 1, tokens.end() - 1 };
  }
  return sequences;
}

TEST_F(MaskedTextTasks, StretchesAreRepeatedLater)
{
  const auto plain = MakeMaskedTextTask(this->Options);
  this->Options.repeats = 1;
  const auto repeating = MakeMaskedTextTask(this->Options);
  for (std::int64_t step = 0; step < 50; ++step)
  {
    // Of the same place in the text, as that is drawn first.
    const std::vector<std::int64_t> before = WordsOf(plain->MakeBatch(step, 1))[0];
    const std::vector<std::int64_t> after = WordsOf(repeating->MakeBatch(step, 1))[0];
    ASSERT_THAT(after, SizeIs(38));
    EXPECT_TRUE(IsRepeated(before, after, 18)) << "step " << step;
  }
  EXPECT_EQ(repeating->MakeHeldOut().input.tokens, plain->MakeHeldOut().input.tokens);
}

TEST_F(MaskedTextTasks, TheCurriculumIsRepeatedTokens)
{
  const auto plain = MakeMaskedTextTask(this->Options);
  this->Options.curriculum = 3;
  const auto task = MakeMaskedTextTask(this->Options);
  EXPECT_EQ(task->MakeBatch(3, 4).input.tokens, plain->MakeBatch(3, 4).input.tokens);
  std::set<std::size_t> periods;
  for (const std::vector<std::int64_t>& tokens : WordsOf(task->MakeBatch(2, 200)))
  {
    ASSERT_THAT(tokens, SizeIs(38));
    EXPECT_THAT(tokens, Each(AllOf(Ge(5), Lt(60)))) << "not special";
    // Tokens of a block are different, so that the first one comes again where the block does.
    const auto again = std::find(tokens.begin() + 1, tokens.end(), tokens[0]);
    const std::size_t period = again - tokens.begin();
    periods.insert(period);
    EXPECT_TRUE(std::equal(again, tokens.end(), tokens.begin())) << period;
  }
  EXPECT_EQ(*periods.begin(), 10U);
  EXPECT_EQ(*periods.rbegin(), 20U) << "a half of the context of 40";
}

TEST_F(MaskedTextTasks, IsABert)
{
  const auto task = MakeMaskedTextTask(this->Options);
  TransformerConfig config;
  task->Configure(config);
  EXPECT_EQ(config.vocabulary, 60);
  EXPECT_EQ(config.outputVocabulary, 60);
  EXPECT_EQ(config.positions, 40);
  EXPECT_EQ(config.segments, 2);
  EXPECT_EQ(config.mask, AttentionMask::Bidirectional);
  EXPECT_THAT(task->MeasureNames(), ElementsAre("Masked Loss"));
  const auto files = task->Files();
  EXPECT_EQ(ParseWordPieceTokenizer(files.at("vocab.txt"), "vocab.txt").VocabularySize(), 60);
  EXPECT_EQ(task->MakeHeldOut().input.tokens, task->MakeHeldOut().input.tokens);
}

TEST_F(MaskedTextTasks, BadTextsAndOptionsAreRefused)
{
  const auto expect = [this](std::int64_t vocabulary, std::int64_t context, const char* message)
  {
    this->Options.vocabulary = vocabulary;
    this->Options.context = context;
    EXPECT_THAT(
      MessageOf<OptionError>([this] { MakeMaskedTextTask(this->Options); }), HasSubstr(message));
  };
  expect(10, 40, "the special ones and the characters of the text, found 10");
  expect(1000, 40, "found 1000; expected a smaller vocabulary");
  expect(60, 60000, "is too short");
  this->Options.repeats = 0.5;
  expect(60, 34, "Context: expected at least 35 tokens for Repeats, found 34");
  this->Options.context = 35;
  MakeMaskedTextTask(this->Options)->MakeBatch(0, 8);
}

}
