#include "Run/MaskedMarginals.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "TransformerOracle.h"

#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr std::int64_t Mask = 32; // <mask> of ESM-2
constexpr std::int64_t Vocabulary = 33;

std::vector<std::int64_t> Range(std::int64_t begin, std::int64_t end)
{
  std::vector<std::int64_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

/// Of all residues of a protein, with all tokens as candidates.
MaskedOptions OfAll(const std::vector<std::int64_t>& tokens)
{
  MaskedOptions options;
  options.mask = Mask;
  options.positions = Range(1, static_cast<std::int64_t>(tokens.size()) - 1);
  options.candidates = Range(0, Vocabulary);
  return options;
}

class MaskedMarginals : public Test
{
protected:
  const std::filesystem::path Folder = AnyOracle("esm/b");
  const OracleFile Expected{ this->Folder / "expected.safetensors" };
  const Transformer Model = Transformer::Read(this->Folder);
};

TEST_F(MaskedMarginals, AreThoseOfTheOriginal)
{
  for (const std::string begin : { "0.", "1." })
  {
    const std::vector<std::int64_t> tokens = this->Expected.Integers(begin + "input_ids");
    const std::vector<double> found = PredictMasked(this->Model, tokens, OfAll(tokens));
    const std::vector<double> expected = this->Expected.Values(begin + "masked");
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
    {
      EXPECT_NEAR(found[i], expected[i], 2e-5) << begin << i;
    }
  }
}

TEST_F(MaskedMarginals, DoNotDependOnBatchesAndThreads)
{
  const std::vector<std::int64_t> tokens = this->Expected.Integers("0.input_ids");
  MaskedOptions options = OfAll(tokens);
  const std::vector<double> together = PredictMasked(this->Model, tokens, options);
  std::vector<double> reports;
  options.progress = [&](double done) { reports.push_back(done); };
  options.tokensAtOnce = 50; // two at a time
  options.threads = 3;
  EXPECT_EQ(PredictMasked(this->Model, tokens, options), together);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1);
  options.tokensAtOnce = 1;
  options.threads = 1;
  EXPECT_EQ(PredictMasked(this->Model, tokens, options), together);
  EXPECT_GT(
    MaskedMemory(this->Model, tokens, OfAll(tokens)), MaskedMemory(this->Model, tokens, options));
  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(PredictMasked(this->Model, tokens, options), Canceled);
}

TEST_F(MaskedMarginals, NamesWhatIsWrong)
{
  MaskedOptions options = OfAll({ 0, 4, 5, 2 });
  const auto error = [&](const Transformer& model)
  { return MessageOf<OptionError>([&] { PredictMasked(model, { 0, 4, 5, 2 }, options); }); };
  EXPECT_THAT(error(Transformer::Read(TransformerOracle::Folder("gpt2"))),
    HasSubstr("expected a model that predicts masked tokens, such as ESM-2 with its head, found "
              "one of gpt2"));
  options.positions = { 4 };
  EXPECT_EQ(error(this->Model), "positions: expected numbers from 0 to 3, found 4.");
  options.positions = {};
  options.candidates = { 33 };
  EXPECT_EQ(error(this->Model), "candidates: expected ids from 0 to 32, found 33.");
  options.candidates = {};
  EXPECT_THAT(PredictMasked(this->Model, { 0, 4, 5, 2 }, options), IsEmpty());
}

}
