#include "SequenceTask.h"
#include "Tasks.h"
#include "Text/WordPieceTraining.h"
#include "TextSource.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace atlas
{
namespace
{

/// The ids of the special tokens in TrainWordPiece's vocabulary, and how many there are.
constexpr std::int64_t ClassToken = 2;
constexpr std::int64_t Separator = 3;
constexpr std::int64_t Mask = 4;
constexpr std::int64_t SpecialCount = 5;

constexpr double PredictedShare = 0.15;
constexpr double MaskShare = 0.8;
constexpr double RandomShare = 0.1;

/// The masked tokens of a text, for a small BERT (Devlin et al. 2019).
///
/// The vocabulary is made from the text: its characters and its most frequent words, in lower case
/// (TrainWordPiece). A sequence is [CLS], a window at a random place of the first 90 % of the text,
/// and [SEP]; there is one segment. Of its words' tokens, 15 %, at least one, are to be predicted:
/// of these, each is replaced by [MASK] with probability 80 %, by a random token that is not
/// special with 10 %, or kept. In a share `repeats` of the sequences, a stretch of at least 16
/// tokens is repeated later in the window, before tokens are hidden. The sequences of the first
/// `curriculum` steps are a block of random tokens that are not special, repeated: from text alone,
/// no heads form that copy. The held-out sequences are up to 64 windows of the last 10 %, with
/// fixed masks.
///
/// Measure, on the held-out sequences: Masked Loss, the mean loss where the token is [MASK].
class MaskedTextTask : public SequenceTask
{
public:
  explicit MaskedTextTask(const TaskOptions& options)
    : SequenceTask(CheckedText(options, SpecialCount + 1, -2), 0)
    , Text(options.text, options.context - 2,
        [this](std::string_view text)
        {
          WordPieceTexts texts = TrainWordPiece(text, this->Options.vocabulary);
          this->Vocabulary = std::move(texts.vocabulary);
          return std::move(texts.tokenizer);
        })
  {
    this->HeldOut = this->Text.HeldOutCount();
  }

  void Configure(TransformerConfig& config) const override
  {
    SequenceTask::Configure(config);
    config.segments = 2;
    config.mask = AttentionMask::Bidirectional;
  }

  std::vector<std::string> MeasureNames() const override { return { "Masked Loss" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    TrainingBatch batch = this->MakeHeldOut();
    auto target = batch.targets.begin();
    bool hasAny = false;
    for (const std::vector<std::int64_t>& sequence : batch.input.tokens)
    {
      for (const std::int64_t token : sequence)
      {
        *target = token == Mask ? *target : -1;
        hasAny = hasAny || *target >= 0;
        ++target;
      }
    }
    return { hasAny ? EvaluateBatch(model, batch, threads).loss
                    : std::numeric_limits<double>::quiet_NaN() }; // of few held-out tokens
  }

  std::map<std::string, std::string> Files() const override
  {
    return { { "tokenizer.json", this->Text.tokenizer }, { "vocab.txt", this->Vocabulary } };
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t step,
    std::int64_t index) const override
  {
    std::vector<std::int64_t> tokens = this->DrawWindow(random, step, index);
    tokens.insert(tokens.begin(), ClassToken);
    tokens.push_back(Separator);
    std::vector<std::int64_t> targets(tokens.size(), -1);
    const auto predicted = PredictedShare * static_cast<double>(this->Text.window);
    std::vector<std::int64_t> places = random.Permutation(this->Text.window);
    places.resize(std::max<std::int64_t>(1, std::llround(predicted)));
    for (const std::int64_t place : places)
    {
      std::int64_t& token = tokens[place + 1];
      targets[place + 1] = token;
      token = this->Hidden(token, random);
    }
    batch.input.tokens.push_back(std::move(tokens));
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
  }

private:
  std::string Vocabulary; ///< vocab.txt; before Text, which sets it
  TextSource Text;

  /// The tokens between [CLS] and [SEP], before any are hidden.
  std::vector<std::int64_t> DrawWindow(
    LearningRandom& random, std::int64_t step, std::int64_t index) const
  {
    if (step == HeldOutStep)
    {
      return this->Text.HeldOutWindow(index);
    }
    std::vector<std::int64_t> tokens;
    if (step < this->Options.curriculum)
    {
      tokens =
        DrawRepeatedTokens(random, this->Options.context, this->Options.vocabulary - SpecialCount);
      tokens.resize(this->Text.window);
      std::for_each(
        tokens.begin(), tokens.end(), [](std::int64_t& token) { token += SpecialCount; });
      return tokens;
    }
    tokens = this->Text.Draw(random);
    // Without repeats nothing is drawn, so that trainings from before there were any stay the same.
    if (this->Options.repeats > 0 && random.Uniform() < this->Options.repeats)
    {
      RepeatStretch(tokens, random);
    }
    return tokens;
  }

  /// What stands in the place of a token that is to be predicted.
  std::int64_t Hidden(std::int64_t token, LearningRandom& random) const
  {
    const double kind = random.Uniform();
    if (kind < MaskShare)
    {
      return Mask;
    }
    return kind < MaskShare + RandomShare
             ? random.Integer(SpecialCount, this->Options.vocabulary - 1)
             : token;
  }
};

}

std::unique_ptr<LearningTask> MakeMaskedTextTask(const TaskOptions& options)
{
  return std::make_unique<MaskedTextTask>(options);
}

}
