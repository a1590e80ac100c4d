#include "Geometry/ResidueContacts.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "LongRecording.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Recording/RecordedAttention.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// The product and the difference of the definition, in double precision.
std::vector<double> CorrectedDirectly(const std::vector<float>& a, std::int64_t n)
{
  const auto both = [&](std::int64_t i, std::int64_t j)
  { return static_cast<double>(a[i * n + j]) + static_cast<double>(a[j * n + i]); };
  double all = 0;
  std::vector<double> rows(n, 0);
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      rows[i] += both(i, j);
    }
    all += rows[i];
  }
  std::vector<double> corrected;
  for (std::int64_t i = 0; i < n; ++i)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      corrected.push_back(both(i, j) - rows[i] * rows[j] / all);
    }
  }
  return corrected;
}

/// Attention of a head on one sequence, as a file may store it.
Recording OfWeights(const std::vector<std::vector<float>>& heads, std::int64_t n)
{
  Recording recording = LongRecording(n, { 0 }, heads.size(), 4, 1);
  recording.mask = AttentionMask::Bidirectional;
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    RecordedHead& head = recording.layers[0].heads[h];
    head.weights = { SharedMatrix::Zero(n, n) };
    std::copy(heads[h].begin(), heads[h].end(), head.weights[0].values.get());
  }
  return recording;
}

std::vector<std::int64_t> Positions(std::int64_t begin, std::int64_t end)
{
  std::vector<std::int64_t> positions(end - begin);
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

/// Residues on a line, one unit apart.
std::vector<std::array<double, 3>> OnALine(std::int64_t n)
{
  std::vector<std::array<double, 3>> places;
  for (std::int64_t i = 0; i < n; ++i)
  {
    places.push_back({ static_cast<double>(i), 0, 0 });
  }
  return places;
}

TEST(ResidueContacts, CorrectsByTheAverageProduct)
{
  std::vector<float> attention = { 0.5F, 0.25F, 0.25F, //
    0, 1, 0,                                           //
    0.125F, 0.125F, 0.75F };
  const std::vector<double> expected = CorrectedDirectly(attention, 3);
  CorrectAttention(attention, 3);
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    EXPECT_NEAR(attention[i], expected[i], 1e-6) << i;
  }
  // B_01 = 0.25, row sums 1.625, 2.375 and 2, in all 6.
  EXPECT_NEAR(attention[1], 0.25 - 1.625 * 2.375 / 6, 1e-6);
  std::vector<float> none(4, 0);
  CorrectAttention(none, 2);
  EXPECT_THAT(none, Each(0));
}

/// What depends on row and column alone, as a product, is nothing.
TEST(ResidueContacts, AProductIsCorrectedAway)
{
  const std::vector<float> factors = { 1, 2, 4 };
  std::vector<float> product;
  for (const float a : factors)
  {
    for (const float b : factors)
    {
      product.push_back(a * b);
    }
  }
  CorrectAttention(product, 3);
  EXPECT_THAT(product, Each(FloatNear(0, 1e-5F)));
}

TEST(ResidueContacts, AreCloseAndApart)
{
  std::vector<std::array<double, 3>> places = OnALine(20);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  places[3] = { nan, nan, nan };
  const TrueContacts contacts(places, { 8, 6 });
  EXPECT_TRUE(contacts.Has(0, 6));
  EXPECT_TRUE(contacts.Has(7, 0));
  EXPECT_FALSE(contacts.Has(0, 5)) << "too near in the sequence";
  EXPECT_FALSE(contacts.Has(0, 8)) << "less than the distance";
  EXPECT_FALSE(contacts.Has(3, 10));
  EXPECT_FALSE(contacts.IsKnown(3, 10));
  EXPECT_FALSE(contacts.IsKnown(3, 3));
  EXPECT_EQ(contacts.Distance(4, 10), 6);
}

TEST(ResidueContacts, HasRanges)
{
  const std::vector<ContactRange> expected = { ContactRange::All, ContactRange::Short,
    ContactRange::Short, ContactRange::Medium, ContactRange::Medium, ContactRange::Long };
  std::vector<ContactRange> found;
  for (const std::int64_t separation : { 5, 6, 11, 12, 23, 24 })
  {
    found.push_back(RangeOf(separation));
  }
  EXPECT_EQ(found, expected);
}

/// 30 residues on a line with contacts at 6 and 7 apart alone: scores that rise with the separation
/// find none, those that fall find all.
TEST(ResidueContacts, MeasuresThePrecision)
{
  constexpr std::int64_t n = 30;
  const TrueContacts contacts(OnALine(n), { 8, 6 });
  std::vector<float> near(n * n);
  for (std::int64_t i = 0; i < n * n; ++i)
  {
    near[i] = -static_cast<float>(std::abs(i / n - i % n));
  }
  const auto shares = [](const std::array<ContactPrecision, 3>& found)
  { return std::array{ found[0].Share(), found[1].Share(), found[2].Share() }; };
  const auto best = MeasurePrecision(near, contacts, ContactRange::All);
  EXPECT_EQ(best[0].pairs, 30);
  EXPECT_EQ(best[1].pairs, 15);
  EXPECT_EQ(best[2].pairs, 6);
  EXPECT_THAT(shares(best), ElementsAre(1, 1, 1));
  std::vector<float> far = near;
  std::transform(far.begin(), far.end(), far.begin(), std::negate<>());
  EXPECT_THAT(shares(MeasurePrecision(far, contacts, ContactRange::All)), ElementsAre(0, 0, 0));
  // Short, the farthest first: 19 pairs 11 apart, then 11 of the 20 that are 10 apart.
  EXPECT_THAT(shares(MeasurePrecision(far, contacts, ContactRange::Short)), ElementsAre(0, 0, 0));
  // Long: 24 to 29 apart, 6 + 5 + ... + 1 pairs.
  EXPECT_EQ(MeasurePrecision(near, contacts, ContactRange::Long)[0].pairs, 21);
  EXPECT_TRUE(std::isnan(
    MeasurePrecision(std::vector<float>(9, 0), TrueContacts(OnALine(3), {}), ContactRange::Long)[0]
      .Share()));
}

/// Pairs that are too near to be contacts count in no range.
TEST(ResidueContacts, RangesBeginAtTheSeparation)
{
  constexpr std::int64_t n = 30;
  const std::vector<float> even(n * n, 0);
  const TrueContacts far(OnALine(n), { 100, 24 });
  for (const ContactRange range : { ContactRange::Short, ContactRange::Medium })
  {
    const auto none = MeasurePrecision(even, far, range);
    EXPECT_EQ(none[0].pairs, 0);
    EXPECT_TRUE(std::isnan(none[0].Share()));
  }
  EXPECT_EQ(MeasurePrecision(even, far, ContactRange::Long)[0].Share(), 1);
  const TrueContacts apart(OnALine(n), { 100, 8 });
  EXPECT_EQ(MeasurePrecision(even, apart, ContactRange::Short)[0].pairs, 30);
  EXPECT_EQ(MeasurePrecision(even, apart, ContactRange::Short)[0].Share(), 1);
}

/// Equal scores: pairs come by their first residue, then their second.
TEST(ResidueContacts, EqualScoresGoByPlace)
{
  constexpr std::int64_t n = 10;
  const TrueContacts contacts(OnALine(n), { 8, 6 });
  const auto found = MeasurePrecision(std::vector<float>(n * n, 0), contacts, ContactRange::All);
  // (0, 6), (0, 7), (0, 8), (0, 9), (1, 7), (1, 8), (1, 9), (2, 8), (2, 9), (3, 9)
  EXPECT_EQ(found[0].pairs, 10);
  EXPECT_EQ(found[0].contacts, 7);
  EXPECT_EQ(found[1].pairs, 5);
  EXPECT_EQ(found[1].contacts, 3);
  EXPECT_EQ(found[2].pairs, 2);
  EXPECT_EQ(found[2].contacts, 2);
}

/// Of a residue that was not resolved no pair counts.
TEST(ResidueContacts, LeavesOutWhatIsNotResolved)
{
  constexpr std::int64_t n = 10;
  std::vector<std::array<double, 3>> places = OnALine(n);
  places[0][1] = std::numeric_limits<double>::quiet_NaN();
  const TrueContacts contacts(places, { 8, 6 });
  const auto found = MeasurePrecision(std::vector<float>(n * n, 0), contacts, ContactRange::All);
  EXPECT_EQ(found[0].pairs, 6) << "as many as there are";
  EXPECT_EQ(found[0].contacts, 5); // all but (1, 9)
}

/// A head whose residue i attends to i + 6 with 0.75 of its attention, and one that attends evenly.
TEST(ResidueContacts, HeadsThatAttendToContactsAreFound)
{
  constexpr std::int64_t n = 12;
  std::vector<float> contact(n * n, 0);
  for (std::int64_t i = 0; i < n; ++i)
  {
    contact[i * n + (i + 6) % n] = 0.75F;
    contact[i * n + i] = 0.25F;
  }
  const Recording recording = OfWeights({ contact, std::vector<float>(n * n, 1.F / n) }, n);
  const TrueContacts contacts(OnALine(n), { 8, 6 });
  ContactOptions options;
  options.contacts = &contacts;
  const ContactEvidence found = FindContacts(recording, Positions(0, n), options);
  ASSERT_THAT(found.heads, SizeIs(2));
  EXPECT_EQ(found.heads[0].contacts.attended, 12);
  EXPECT_EQ(found.heads[0].contacts.OfPairs(), 1);
  EXPECT_NEAR(found.heads[0].contacts.OfAttention(), 0.75, 1e-6);
  EXPECT_EQ(found.heads[0].precision[1].Share(), 1); // six pairs at 6 apart
  EXPECT_TRUE(std::isnan(found.heads[1].contacts.OfPairs())) << "never above 0.3";
  EXPECT_NEAR(found.heads[1].contacts.OfAttention(), 22. / 144, 1e-6); // 2 (6 + 5) pairs
  EXPECT_THAT(found.prediction, IsEmpty());
  // The mean of both, of which the second is 0 everywhere.
  const std::vector<double> first = CorrectedDirectly(contact, n);
  for (std::size_t i = 0; i < first.size(); ++i)
  {
    EXPECT_NEAR(found.attention[i], first[i] / 2, 1e-6);
  }
  options.layer = 0;
  options.head = 0;
  EXPECT_NEAR(FindContacts(recording, Positions(0, n), options).attention[6], first[6], 1e-6);
}

/// The same heads: each residue gets 0.75 from one query and 0.25 from itself, or 1 / n from all.
TEST(ResidueContacts, AttentionToSitesIsMeasuredByKeys)
{
  constexpr std::int64_t n = 12;
  std::vector<float> toFirst(n * n, 0);
  for (std::int64_t i = 0; i < n; ++i)
  {
    toFirst[i * n] = 0.5F;
    toFirst[i * n + 7] += 0.5F;
  }
  const Recording recording = OfWeights({ toFirst, std::vector<float>(n * n, 1.F / n) }, n);
  ContactOptions options;
  options.sites = ReadSites("8-9", n, "Sites");
  ContactEvidence found = FindContacts(recording, Positions(0, n), options);
  EXPECT_EQ(found.heads[0].sites.attended, 2 * n);
  EXPECT_EQ(found.heads[0].sites.attendedWith, n) << "of the keys 0 and 7";
  EXPECT_NEAR(found.heads[0].sites.OfAttention(), 0.5, 1e-6);
  EXPECT_NEAR(found.heads[1].sites.OfAttention(), 2. / n, 1e-6) << "as many as there are";
  EXPECT_TRUE(std::isnan(found.heads[1].sites.OfPairs()));
  EXPECT_EQ(found.heads[0].contacts.attended, 0) << "without a structure";
  options.threshold = 0.05;
  found = FindContacts(recording, Positions(0, n), options);
  EXPECT_NEAR(found.heads[1].sites.OfPairs(), 2. / n, 1e-12);
  options.sites.push_back(true);
  EXPECT_EQ(MessageOf<OptionError>([&] { FindContacts(recording, Positions(0, n), options); }),
    "Sites: expected as many as there are residues, 12, found 13.");
}

TEST(ResidueContacts, SitesAreNumbersAndRanges)
{
  const auto read = [](const std::string& list) { return ReadSites(list, 6, "Sites"); };
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_THAT(read(" ,; "), IsEmpty());
  EXPECT_THAT(read("2, 4-5"), ElementsAre(false, true, false, true, true, false));
  EXPECT_THAT(read("6;1 1-1"), ElementsAre(true, false, false, false, false, true));
  for (const char* wrong :
    { "0", "7", "-1", "1-", "1-7", "x", "2x", "1.5", "99999999999999999999", "1--2", "+1" })
  {
    EXPECT_EQ(MessageOf<OptionError>([&] { read(std::string("1 ") + wrong); }),
      std::string("Sites: expected numbers of residues from 1 to 6 and ranges, such as 12 45-48, "
                  "found '") +
        wrong + "'.");
  }
  EXPECT_EQ(MessageOf<OptionError>([&] { read("4-2"); }),
    "Sites: expected a range that rises, found '4-2'.");
}

TEST(ResidueContacts, NamesWhatIsWrong)
{
  const Recording recording = LongRecording(8);
  ContactOptions options;
  const auto error = [&]
  { return MessageOf<OptionError>([&] { FindContacts(recording, { 1, 2, 3 }, options); }); };
  const ContactHead predictor = { std::vector<double>(6), 0 };
  options.predictor = &predictor;
  EXPECT_THAT(error(), HasSubstr("expected a recording of all 4 layers, which its contact head "
                                 "reads, found one of 3"));
  options.predictor = nullptr;
  options.layer = 9;
  EXPECT_THAT(error(), HasSubstr("9"));
  options.layer = -1;
  options.head = 7;
  EXPECT_THAT(error(), HasSubstr("7"));
  options.sequence = 1;
  EXPECT_THAT(error(), HasSubstr("sequence"));
  EXPECT_THAT(MessageOf<OptionError>([&] { FindResidues(recording, 0); }),
    HasSubstr("expected a recording with the texts of its tokens"));
}

TEST(ResidueContacts, ResiduesAreNoSpecialTokens)
{
  Recording recording = LongRecording(5);
  recording.tokens.text = { "<cls>", "M", "<mask>", " K", "<eos>" };
  const std::vector<std::int64_t> residues = FindResidues(recording, 0);
  EXPECT_THAT(residues, ElementsAre(1, 2, 3));
  recording.tokens.text = { "M", "-", "V", ".", "K" };
  EXPECT_THAT(FindResidues(recording, 0), ElementsAre(0, 2, 4)) << "gaps of an alignment";
  EXPECT_EQ(ResidueLetterOfToken("M"), 'M');
  EXPECT_EQ(ResidueLetterOfToken(" K"), 'K');
  for (const char* text : { "<mask>", "", " ", "m", "-", "MK" })
  {
    EXPECT_EQ(ResidueLetterOfToken(text), 'X') << text;
  }
}

/// ESM-2 as the original code computes it.
class EsmContacts : public TestWithParam<const char*>
{
};

TEST_P(EsmContacts, AreThoseOfTheOriginal)
{
  const std::filesystem::path folder = AnyOracle(GetParam());
  if (folder.empty())
  {
    GTEST_SKIP() << GetParam() << " is not there.";
  }
  const OracleFile expected(folder / "expected.safetensors");
  const Transformer model = Transformer::Read(folder);
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  const std::optional<ContactHead> predictor = ReadContactHead(model);
  ASSERT_TRUE(predictor);
  for (std::int64_t i = 0; expected.Has(std::to_string(i) + ".contacts"); ++i)
  {
    const std::string begin = std::to_string(i) + ".";
    TransformerInput input;
    input.tokens = { expected.Integers(begin + "input_ids") };
    const Recording recording = RecordTransformer(model, input, {});
    ContactOptions options;
    options.predictor = &*predictor;
    const auto tokens = static_cast<std::int64_t>(input.tokens[0].size());
    const std::vector<float> found =
      FindContacts(recording, Positions(1, tokens - 1), options).prediction;
    const std::vector<double> contacts = expected.Values(begin + "contacts");
    ASSERT_EQ(found.size(), contacts.size());
    for (std::size_t k = 0; k < found.size(); ++k)
    {
      EXPECT_NEAR(found[k], contacts[k], 1e-5) << begin << k;
    }
    options.threads = 1;
    const std::vector<float> onOne =
      FindContacts(recording, Positions(1, tokens - 1), options).prediction;
    options.threads = 3;
    EXPECT_EQ(FindContacts(recording, Positions(1, tokens - 1), options).prediction, onOne);
  }
}

/// The head may have the prefix of the model or none; its numbers are checked in both.
TEST(ResidueContacts, HeadsOfModelsAreChecked)
{
  const std::filesystem::path source = AnyOracle("esm/b");
  const Tensors stored = CopyTensors(SafetensorsFile(source / "model.safetensors").GetTensors());
  const auto isOfHead = [](const std::string& name)
  { return name.find("contact_head.regression.") != std::string::npos; };
  const auto refusal = [&](const std::string& end, const Tensor& tensor)
  {
    const TemporaryDirectory folder;
    std::filesystem::copy_file(source / "config.json", folder / "config.json");
    Tensors tensors;
    for (const auto& [name, one] : stored)
    {
      const std::string without = isOfHead(name) ? name.substr(name.find("contact_head")) : name;
      tensors[without] = atlas::EndsWith(without, end) && isOfHead(name) ? tensor : one;
    }
    WriteSafetensors(folder / "model.safetensors", tensors, {});
    const Transformer model = Transformer::Read(folder.Path());
    return MessageOf<ModelError>([&] { ReadContactHead(model); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal("weight", Tensor::FromDouble(DType::F32, { 1, 3 }, { 1, 2, 3 })),
    HasSubstr("contact_head.regression.weight: expected 24 numbers, found shape"));
  EXPECT_THAT(refusal("bias", Tensor::FromDouble(DType::F32, { 0 }, {})),
    HasSubstr("contact_head.regression.bias: expected 1 numbers, found shape"));
  EXPECT_THAT(refusal("bias", Tensor::FromDouble(DType::F32, { 1 }, { nan })),
    HasSubstr("contact_head.regression.bias: expected finite numbers, found nan."));
}

INSTANTIATE_TEST_SUITE_P(Oracles, EsmContacts, Values("esm/b", "v5/esm/a"),
  [](const auto& each) { return TestName(each.param); });

}
