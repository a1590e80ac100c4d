#include "MaskedTextTask.h"

#include "BatchEvaluation.h"
#include "Index.h"
#include "SequenceTask.h"
#include "TextSource.h"
#include "WordPieceTraining.h"

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

TaskOptions Checked(const TaskOptions& options)
{
  RequireBetween("Vocabulary", options.vocabulary, SpecialCount + 1, 1000000);
  RequireBetween("Context", options.context, 8, 65536);
  RequireRepeats(options, -2);
  return options;
}

class MaskedTextTask : public LearningTask
{
public:
  explicit MaskedTextTask(const TaskOptions& options)
    : Options(Checked(options))
    , Window(options.context - 2)
    , Text(options.text, this->Window,
        [this](std::string_view text)
        {
          WordPieceTexts texts = TrainWordPiece(text, this->Options.vocabulary);
          this->Vocabulary = std::move(texts.vocabulary);
          return std::move(texts.tokenizer);
        })
  {
  }

  void Configure(TransformerConfig& config) const override
  {
    config.vocabulary = config.outputVocabulary = this->Options.vocabulary;
    config.positions = this->Options.context;
    config.segments = 2;
    config.mask = AttentionMask::Bidirectional;
  }

  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const override
  {
    RequireBetween("BatchSize", size, 1, 1000000);
    LearningRandom random(this->Options.seed, RandomPurpose::Batches, step);
    const auto places = static_cast<std::int64_t>(this->Text.train.size()) - this->Window + 1;
    TrainingBatch batch;
    for (std::int64_t i = 0; i < size; ++i)
    {
      this->Add(batch,
        step < this->Options.curriculum ? this->RandomTokens(random)
                                        : this->TrainingTokens(random.Integer(places), random),
        random);
    }
    return batch;
  }

  TrainingBatch MakeHeldOut() const override
  {
    LearningRandom random(this->Options.seed, RandomPurpose::HeldOut);
    TrainingBatch batch;
    for (const std::int64_t start : this->Text.HeldOutStarts(this->Window, HeldOutSequences))
    {
      this->Add(batch, TextSource::Window(this->Text.heldOut, start, this->Window), random);
    }
    return batch;
  }

  std::vector<std::string> MeasureNames() const override { return { "Masked Loss" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    TrainingBatch batch = this->MakeHeldOut();
    std::size_t row = 0;
    for (const std::vector<std::int64_t>& sequence : batch.input.tokens)
    {
      for (const std::int64_t token : sequence)
      {
        batch.targets[row] = token == Mask ? batch.targets[row] : -1;
        ++row;
      }
    }
    const bool hasAny = std::any_of(
      batch.targets.begin(), batch.targets.end(), [](std::int64_t target) { return target >= 0; });
    return { hasAny ? EvaluateBatch(model, batch, threads).loss
                    : std::numeric_limits<double>::quiet_NaN() }; // of few held-out tokens
  }

  std::map<std::string, std::string> Files() const override
  {
    return { { "tokenizer.json", this->Text.tokenizer }, { "vocab.txt", this->Vocabulary } };
  }

private:
  static constexpr std::int64_t HeldOutSequences = 64;
  TaskOptions Options;
  std::int64_t Window;    ///< tokens between [CLS] and [SEP]
  std::string Vocabulary; ///< vocab.txt; before Text, which sets it
  TextSource Text;

  /// A block of random tokens that are not special, repeated.
  std::vector<std::int64_t> RandomTokens(LearningRandom& random) const
  {
    std::vector<std::int64_t> tokens =
      DrawRepeatedTokens(random, this->Options.context, this->Options.vocabulary - SpecialCount);
    tokens.resize(this->Window);
    for (std::int64_t& token : tokens)
    {
      token += SpecialCount;
    }
    return tokens;
  }

  /// A window of the text to train on, in which a stretch may be repeated.
  std::vector<std::int64_t> TrainingTokens(std::int64_t first, LearningRandom& random) const
  {
    std::vector<std::int64_t> tokens = TextSource::Window(this->Text.train, first, this->Window);
    // Without repeats nothing is drawn, so that trainings from before there were any stay the same.
    if (this->Options.repeats > 0 && random.Uniform() < this->Options.repeats)
    {
      RepeatStretch(tokens, random);
    }
    return tokens;
  }

  void Add(TrainingBatch& batch, std::vector<std::int64_t> tokens, LearningRandom& random) const
  {
    tokens.insert(tokens.begin(), ClassToken);
    tokens.push_back(Separator);
    std::vector<std::int64_t> targets(tokens.size(), -1);
    const auto count =
      std::max<std::int64_t>(1, std::llround(PredictedShare * static_cast<double>(this->Window)));
    std::vector<std::int64_t> places = random.Permutation(this->Window);
    places.resize(count);
    for (const std::int64_t place : places)
    {
      std::int64_t& token = tokens[place + 1];
      targets[place + 1] = token;
      token = this->Hidden(token, random);
    }
    batch.input.tokens.push_back(std::move(tokens));
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
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
