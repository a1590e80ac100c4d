#include "vtkAttentionSentence.h"

#include "Core/PicturedRecording.h"
#include "Drawing/ClassPalette.h"
#include "Embeddings.h"
#include "Matchers.h"

#include <algorithm>
#include <string>

using namespace atlas;
using namespace atlas::test;

namespace
{

using Pair = std::pair<std::int64_t, std::int64_t>;

class Sentence : public On<vtkAttentionSentence>
{
public:
  explicit Sentence(const Recording& recording)
    : On(DataSetOf(recording))
  {
  }

  vtkPolyData* Lines() { return this->Geometry(); }
  vtkPolyData* Words() { return this->Geometry(1); }
  vtkPolyData* Bars() { return this->Geometry(2); }

  std::vector<Pair> Pairs() { return PairsOf(*this); }

  /// The weights of a sequence of some length as a matrix, 0 where there is no line.
  std::vector<double> Matrix(std::int64_t first, std::int64_t length)
  {
    std::vector<double> matrix(length * length);
    const std::vector<double> weights = this->Cells("Weight");
    const std::vector<Pair> pairs = this->Pairs();
    for (std::size_t i = 0; i < pairs.size(); ++i)
    {
      const std::int64_t query = pairs[i].first - first;
      matrix.at(query * length + pairs[i].second - first) = weights[i];
    }
    return matrix;
  }
};

/// Without the first token, and without the last too, as an independent program computed it.
TEST(AttentionSentence, HidesTokensAsTheOracle)
{
  for (const std::string name : { "gpt2", "bert" })
  {
    SCOPED_TRACE(name);
    const SafetensorsFile file(
      std::filesystem::path(ATLAS_ORACLE_DIR) / "embedding" / (name + ".hidden.safetensors"));
    const ViewsOracle oracle(name);
    Sentence sentence(oracle.Source);
    sentence->SetLayer(1);
    for (int head = 0; head < 4; ++head)
    {
      for (int s = 0; s < oracle.Source.SequenceCount(); ++s)
      {
        sentence->SetHead(head);
        sentence->SetSequence(s);
        sentence->SetHideFirst(true);
        sentence->ClearHiddenTokens();
        const std::int64_t first = oracle.Source.sequenceOffsets[s];
        const std::int64_t length = oracle.Source.SequenceLength(s);
        const std::string prefix =
          "layer.1.head." + std::to_string(head) + ".sequence." + std::to_string(s) + ".";
        const auto expect = [&](const std::string& quantity, bool hidesLast)
        {
          std::vector<double> expected = file.GetTensors().at(prefix + quantity).ToDouble();
          std::fill_n(expected.begin(), length, 0); // a hidden query has no lines
          if (hidesLast)
          {
            std::fill_n(expected.end() - length, length, 0);
          }
          ExpectClose(quantity, sentence.Matrix(first, length), expected, 1e-5);
        };
        expect("hide_first", false);
        if (name == "bert")
        {
          sentence->AddHiddenToken(first + length - 1);
          expect("hide_first_last", true);
        }
      }
    }
  }
}

TEST(AttentionSentence, MeansAreThoseOfTheAttentionMap)
{
  const ViewsOracle oracle("gpt2");
  Sentence sentence(oracle.Source);
  sentence->SetLayer(1);
  const auto expect = [&](int quantity, AttentionQuantity expected, int head, int sequence)
  {
    sentence->SetQuantity(quantity);
    sentence->SetHead(head);
    sentence->SetSequence(sequence);
    const std::int64_t first = sequence < 0 ? 0 : oracle.Source.sequenceOffsets[sequence];
    ExpectClose("values", sentence.Matrix(first, AttentionLength(oracle.Source, sequence)),
      AttentionOf(oracle.Source, sequence, 1, head, expected), 1e-6);
  };
  expect(vtkAttentionSentence::WEIGHTS, AttentionQuantity::Weights, -1, 1);
  expect(vtkAttentionSentence::WEIGHTS, AttentionQuantity::Weights, 2, -1);
  EXPECT_EQ(sentence.Words()->GetPointData()->GetPedigreeIds(), nullptr); // words of no token
  expect(vtkAttentionSentence::NORM_WEIGHTED, AttentionQuantity::NormWeighted, 1, 0);
  const std::vector<double> opacity = sentence.Cells("Opacity");
  EXPECT_EQ(*std::max_element(opacity.begin(), opacity.end()), 1);
  expect(vtkAttentionSentence::ROLLOUT, AttentionQuantity::Rollout, 0, 1);
}

/// Queries on the left, keys on the right, one row per token, and no two words at one place.
TEST(AttentionSentence, IsTwoColumnsOfWords)
{
  Sentence sentence(SmallRecording());
  vtkPolyData* lines = sentence.Lines();
  EXPECT_EQ(lines->GetNumberOfLines(), lines->GetNumberOfCells());
  EXPECT_THAT(sentence.Pairs(),
    ElementsAre(Pair(0, 0), Pair(1, 0), Pair(1, 1), Pair(2, 0), Pair(2, 1), Pair(2, 2)));
  EXPECT_EQ(Names(lines->GetCellData()),
    (std::set<std::string>{ "Weight", "Query", "Key", "Layer", "Head", "Opacity", "HeadColor" }));
  for (vtkIdType i = 0; i < lines->GetNumberOfCells(); ++i)
  {
    vtkIdType count = 0;
    const vtkIdType* ends = nullptr;
    lines->GetCellPoints(i, count, ends);
    ASSERT_EQ(count, 2);
    EXPECT_EQ(lines->GetPoint(ends[0])[0], 0);
    EXPECT_EQ(lines->GetPoint(ends[1])[0], 8);
    EXPECT_EQ(lines->GetPoint(ends[0])[1], -sentence.Cells("Query")[i]);
    EXPECT_EQ(lines->GetPoint(ends[1])[1], -sentence.Cells("Key")[i]);
    EXPECT_EQ(lines->GetPoint(ends[0])[2], 0);
    EXPECT_EQ(lines->GetPointData()->GetArray("Side")->GetComponent(ends[1], 0), 1);
  }
  vtkPolyData* words = sentence.Words();
  EXPECT_EQ(
    Names(words->GetPointData()), (std::set<std::string>{ "Token", "Label", "Side", "Token Index",
                                    "Sequence", "Position", "Hidden", "Received", "Given" }));
  EXPECT_THAT(Texts(words->GetPointData(), "Token"), ElementsAre("a", " b", " c", "a", " b", " c"));
  EXPECT_THAT(Texts(words->GetPointData(), "Label"),
    ElementsAre("a", "\u00B7b", "\u00B7c", "a", "\u00B7b", "\u00B7c"));
  EXPECT_THAT(sentence.Points("Side", 1), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(sentence.Points("Token Index", 1), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(words->GetPointData()->GetPedigreeIds(),
    words->GetPointData()->GetAbstractArray("Token Index"));
  EXPECT_EQ(words->GetNumberOfVerts(), 6);
  sentence->SetSequence(1);
  EXPECT_THAT(sentence.Points("Token Index", 1), ElementsAre(3, 4, 3, 4));
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(3, 3), Pair(4, 3), Pair(4, 4)));
}

TEST(AttentionSentence, OpacityIsTheWeight)
{
  Sentence sentence(SmallRecording());
  const std::vector<double> weights = sentence.Cells("Weight");
  EXPECT_EQ(sentence.Cells("Opacity"), weights);
  const std::vector<double> colors = sentence.Cells("HeadColor");
  ASSERT_THAT(colors, SizeIs(4 * weights.size()));
  for (std::size_t i = 0; i < weights.size(); ++i)
  {
    EXPECT_EQ(colors[4 * i + 3], std::round(255 * weights[i]));
  }
}

/// Sums over what is shown, beside the words and as bars.
TEST(AttentionSentence, SumsOverSelectedTokens)
{
  const Recording recording = SmallRecording();
  Sentence sentence(recording);
  const std::vector<double> all = sentence.Matrix(0, 3);
  const auto at = [&](std::size_t query, std::size_t key) { return all[3 * query + key]; };
  std::vector<double> received = sentence.Points("Received", 1);
  EXPECT_NEAR(received[3], at(0, 0) + at(1, 0) + at(2, 0), 1e-6);
  EXPECT_THAT(sentence.Points("Given", 1), Each(DoubleNear(1, 1e-6)));

  sentence->AddSelectedToken(1);
  sentence->AddSelectedToken(2);
  sentence->AddSelectedToken(4); // of another sequence
  EXPECT_THAT(
    sentence.Pairs(), ElementsAre(Pair(1, 0), Pair(1, 1), Pair(2, 0), Pair(2, 1), Pair(2, 2)));
  received = sentence.Points("Received", 1);
  EXPECT_NEAR(received[3], at(1, 0) + at(2, 0), 1e-6);
  EXPECT_NEAR(received[4], at(1, 1) + at(2, 1), 1e-6);
  EXPECT_EQ(sentence.Points("Given", 1)[0], 0);
  EXPECT_THAT(sentence.Cells("Received", 2), ElementsAre(received[3], received[4], received[5]));

  sentence->SetDirection(vtkAttentionSentence::TO_KEYS);
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(2, 2)));
  const std::vector<double> given = sentence.Points("Given", 1);
  EXPECT_NEAR(given[2], at(2, 1) + at(2, 2), 1e-6);
  EXPECT_THAT(sentence.Cells("Given", 2), ElementsAre(given[1], given[2]));
  EXPECT_LT(sentence.Bars()->GetBounds()[1], 0); // on the left

  sentence->ClearSelectedTokens();
  sentence->AddSelectedToken(3); // of another sequence alone
  EXPECT_THAT(sentence.Pairs(), IsEmpty());
  EXPECT_THAT(sentence.Bars()->GetNumberOfCells(), 0);
  EXPECT_EQ(sentence.Words()->GetNumberOfPoints(), 6);
}

/// Words 0 to 2 are queries, 3 to 5 keys.
TEST(AttentionSentence, OfASelection)
{
  Sentence sentence(SmallRecording());
  const auto select = [&](const std::vector<vtkIdType>& words)
  { Connect(sentence.Get(), 1, SelectionOf(words)); };
  select({ 1 });
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 0), Pair(1, 1)));
  select({ 4 }); // a key
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  EXPECT_TRUE(sentence.Bars()->GetCellData()->HasArray("Given"));
  select({ 1, 4 }); // on both sides: that of Direction
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 0), Pair(1, 1)));
  sentence->SetDirection(vtkAttentionSentence::TO_KEYS);
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  sentence->SetDirection(vtkAttentionSentence::FROM_QUERIES);
  sentence->AddSelectedToken(0);
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(0, 0), Pair(1, 0), Pair(1, 1)));
  sentence->ClearSelectedTokens();
  select({}); // something is chosen, but no word
  EXPECT_THAT(sentence.Pairs(), IsEmpty());
}

/// As other views of the recording select: by the pedigree id, or by the values of an array.
TEST(AttentionSentence, OfASelectionByTokenIndex)
{
  Sentence sentence(SmallRecording());
  Connect(sentence.Get(), 1, SelectionOf({ 2, 4 }, vtkSelectionNode::PEDIGREEIDS));
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(2, 0), Pair(2, 1), Pair(2, 2)));
  Connect(sentence.Get(), 1, SelectionOf({ 1 }, vtkSelectionNode::VALUES));
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 0), Pair(1, 1)));
  sentence->SetSequence(1);
  EXPECT_THAT(sentence.Pairs(), IsEmpty()); // the token is in another sequence
}

TEST(AttentionSentence, OfSeveralHeads)
{
  Sentence one(SmallRecording());
  one->SetHead(1);
  Sentence sentence(SmallRecording());
  for (const int head : { 1, 0, 1 }) // a head counts once
  {
    sentence->AddHead(head);
  }
  vtkPolyData* lines = sentence.Lines();
  EXPECT_THAT(sentence.Cells("Head"), ElementsAre(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0));
  const std::vector<double> expected = one.Cells("Weight");
  std::vector<double> weights = sentence.Cells("Weight");
  weights.resize(6);
  EXPECT_EQ(weights, expected);
  const std::vector<double> colors = sentence.Cells("HeadColor");
  for (std::size_t c = 0; c < 3; ++c)
  {
    EXPECT_EQ(colors[c], ClassColor(1)[c]);
    EXPECT_EQ(colors[24 + c], ClassColor(0)[c]);
  }
  // The first head's lines begin above those of the second.
  const double above = lines->GetPoint(0)[1];
  EXPECT_GT(above, lines->GetPoint(6)[1]);
  EXPECT_THAT(sentence.Cells("Head", 2), ElementsAre(1, 0, 1, 0, 1, 0));
  const auto color = [](int head)
  {
    std::string text;
    for (const std::uint8_t channel : ClassColor(head))
    {
      text += std::to_string(channel) + " ";
    }
    return text;
  };
  EXPECT_THAT(Texts(lines->GetFieldData(), "HeadColor Legend"),
    ElementsAre("Layer 0\n" + color(1) + "head 1\n" + color(0) + "head 0"));
  double longest = 0;
  for (const double received : sentence.Points("Received", 1))
  {
    longest = std::max(longest, 2 * received); // of the mean of two heads
  }
  const std::string signs = Texts(lines->GetFieldData(), "Signs")[0];
  EXPECT_THAT(
    signs, testing::HasSubstr("Width and strength: attention weight, full at 1. Bars: the "
                              "sum that each key receives, up to "));
  EXPECT_NEAR(std::stod(signs.substr(signs.find("up to ") + 6)), longest, 0.01 * longest);
  Sentence other(SmallRecording());
  const std::vector<double> first = one.Points("Received", 1);
  const std::vector<double> second = other.Points("Received", 1);
  const std::vector<double> both = sentence.Points("Received", 1);
  for (std::size_t i = 0; i < both.size(); ++i)
  {
    EXPECT_NEAR(both[i], (first[i] + second[i]) / 2, 1e-6);
  }
  sentence->ClearHeads();
  EXPECT_THAT(sentence.Cells("Head"), Each(0));
}

TEST(AttentionSentence, HidesSpecialTokens)
{
  Recording recording = SmallRecording();
  recording.tokens.text = { "<s>", " b", " c", "<s>", "</s>" };
  Sentence sentence(recording);
  sentence->SetHideSpecial(true);
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(2, 2)));
  EXPECT_THAT(sentence.Points("Hidden", 1), ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_NEAR(sentence.Points("Given", 1)[2], 1, 1e-6);
  sentence->SetRenormalize(false);
  EXPECT_LT(sentence.Points("Given", 1)[2], 0.999);
  sentence->SetSequence(1); // all are hidden
  EXPECT_THAT(sentence.Pairs(), IsEmpty());
  EXPECT_EQ(sentence.Words()->GetNumberOfPoints(), 4);
  EXPECT_THAT(sentence.Points("Received", 1), Each(0));
  EXPECT_EQ(sentence.Bars()->GetNumberOfCells(), 0);
}

/// Every line is on one page, with its words at its ends.
TEST(AttentionSentence, BreaksIntoPages)
{
  Sentence whole(LongRecording(50, { 0 }, 1, 8, 3));
  Sentence sentence(LongRecording(50, { 0 }, 1, 8, 3));
  sentence->SetRowsPerPage(20);
  vtkPolyData* words = sentence.Words();
  EXPECT_EQ(words->GetNumberOfPoints(), 2 * 20 + (20 + 20) + 2 * 20 + 2 * (10 + 20) + 2 * 10);
  std::map<std::pair<double, double>, double> tokens;
  for (vtkIdType i = 0; i < words->GetNumberOfPoints(); ++i)
  {
    const double* place = words->GetPoint(i);
    const bool isNew =
      tokens.emplace(std::pair(place[0], place[1]), sentence.Points("Token Index", 1)[i]).second;
    EXPECT_TRUE(isNew);
  }
  vtkPolyData* lines = sentence.Lines();
  EXPECT_EQ(sentence.Cells("Weight"), whole.Cells("Weight"));
  const std::vector<Pair> pairs = sentence.Pairs();
  for (vtkIdType i = 0; i < lines->GetNumberOfCells(); ++i)
  {
    vtkIdType count = 0;
    const vtkIdType* ends = nullptr;
    lines->GetCellPoints(i, count, ends);
    const Pair& pair = pairs[i];
    const double* query = lines->GetPoint(ends[0]);
    EXPECT_EQ(tokens.at({ query[0], query[1] }), pair.first);
    const double* key = lines->GetPoint(ends[1]);
    EXPECT_EQ(tokens.at({ key[0], key[1] }), pair.second);
  }
}

TEST(AttentionSentence, ShowsARange)
{
  Sentence sentence(LongRecording(50, { 0 }, 1, 8, 3));
  sentence->SetFirstToken(10);
  sentence->SetTokenCount(5);
  EXPECT_THAT(sentence.Points("Position", 1), ElementsAre(10, 11, 12, 13, 14, 10, 11, 12, 13, 14));
  EXPECT_THAT(sentence.Pairs(), SizeIs(15));
  EXPECT_EQ(sentence.Words()->GetPoint(0)[1], 0);
  Sentence whole(LongRecording(50, { 0 }, 1, 8, 3));
  EXPECT_EQ(sentence.Points("Received", 1)[7], whole.Points("Received", 1)[62]);
}

/// Sums are kept from page to page, but not beyond a setting on which they depend.
TEST(AttentionSentence, APageIsTheSameAfterAnother)
{
  const Recording recording = LongRecording(200, { 0 }, 2, 8, 3);
  using Change = std::function<void(vtkAttentionSentence&)>;
  const std::vector<Change> changes = { [](auto& sentence) { sentence.SetTokenCount(20); },
    [](auto& sentence) { sentence.SetFirstToken(70); }, [](auto& sentence)
    { sentence.SetThreshold(0.01); }, [](auto& sentence) { sentence.SetHead(1); },
    [](auto& sentence) { sentence.SetFirstToken(90); }, [](auto& sentence)
    { sentence.SetHideFirst(true); }, [](auto& sentence) { sentence.AddSelectedToken(95); },
    [](auto& sentence) { sentence.SetDirection(vtkAttentionSentence::TO_KEYS); },
    [](auto& sentence) { sentence.SetQuantity(vtkAttentionSentence::ROLLOUT); },
    [](auto& sentence) { sentence.SetHead(-1); } };
  Sentence kept(recording);
  kept.Lines();
  for (std::size_t i = 0; i < changes.size(); ++i)
  {
    SCOPED_TRACE(i);
    Sentence fresh(recording);
    for (std::size_t k = 0; k <= i; ++k)
    {
      changes[k](*fresh.Get());
    }
    changes[i](*kept.Get());
    EXPECT_EQ(kept.Cells("Weight"), fresh.Cells("Weight"));
    EXPECT_EQ(kept.Points("Received", 1), fresh.Points("Received", 1));
    EXPECT_EQ(kept.Points("Given", 1), fresh.Points("Given", 1));
    EXPECT_EQ(kept.Bars()->GetNumberOfCells(), fresh.Bars()->GetNumberOfCells());
  }
}

/// Without texts, words are ids or, without these, positions; patches are named by their place.
TEST(AttentionSentence, NamesTokensByWhatIsKnownOfThem)
{
  Recording recording = SmallRecording();
  recording.tokens.text.clear();
  EXPECT_THAT(Texts(Sentence(recording).Words()->GetPointData(), "Token"),
    ElementsAre("11", "12", "13", "11", "12", "13"));
  recording.tokens.id.clear();
  EXPECT_THAT(Texts(Sentence(recording).Words()->GetPointData(), "Token"),
    ElementsAre("0", "1", "2", "0", "1", "2"));
  recording.tokens.row = { -1, 0, 0, -1, 0 };
  recording.tokens.column = { -1, 0, 1, -1, 0 };
  EXPECT_THAT(Texts(Sentence(recording).Words()->GetPointData(), "Token"),
    ElementsAre("class token", "0, 0", "0, 1", "class token", "0, 0", "0, 1"));
}

TEST(AttentionSentence, NeedsMemoryForItsLines)
{
  Sentence sentence(LongRecording(50, { 0 }, 1, 8, 3));
  {
    const Variable limit("ATLAS_MEMORY_LIMIT_KIB", "100");
    sentence.Lines();
  }
  EXPECT_THAT(sentence.TakeErrors(), ElementsAre(HasSubstr("up to 2500 lines would take ")));
  sentence->Modified();
  EXPECT_GT(sentence.Lines()->GetNumberOfCells(), 0);
}

TEST(AttentionSentence, KnowsTheRangesOfItsInput)
{
  Sentence sentence(SmallRecording());
  sentence->UpdateInformation();
  EXPECT_EQ(sentence->GetSequenceRange()[1], 1);
  EXPECT_EQ(sentence->GetLayerRange()[1], 2);
  EXPECT_EQ(sentence->GetHeadRange()[0], -1);
  EXPECT_EQ(sentence->GetHeadRange()[1], 1);
}

/// In head 0 of layer 0, token i gives all to i / 2; the second text is the tokens 11 to 16, of
/// which 12, 13 and 14, 15 are two pictures.
TEST(AttentionSentence, APictureIsOneWord)
{
  Sentence sentence(PicturedRecording());
  sentence->SetSequence(1);
  sentence->UpdateInformation();
  EXPECT_EQ(sentence->GetHasPictures(), 1);
  EXPECT_THAT(Texts(sentence.Words()->GetPointData(), "Token"),
    ElementsAre("a", "picture 2 (2 tokens)", "picture 3 (2 tokens)", "b", "a",
      "picture 2 (2 tokens)", "picture 3 (2 tokens)", "b"));
  EXPECT_THAT(sentence.Points("Token Index", 1), ElementsAre(11, 12, 14, 16, 11, 12, 14, 16));
  EXPECT_THAT(sentence.Points("Position", 1), ElementsAre(0, 1, 3, 5, 0, 1, 3, 5));
  EXPECT_THAT(sentence.Points("Sequence", 1), Each(1));
  // 12 to 11, 13 and 14 to 12, 15 and 16 to 13.
  EXPECT_THAT(sentence.Pairs(),
    ElementsAre(Pair(11, 11), Pair(12, 11), Pair(12, 12), Pair(14, 12), Pair(16, 12)));
  EXPECT_THAT(sentence.Cells("Weight"), ElementsAre(1, 0.5, 0.5, 1, 1));
  EXPECT_THAT(sentence.Points("Received", 1), ElementsAre(1.5, 2.5, 0, 0, 1.5, 2.5, 0, 0));
  EXPECT_THAT(sentence.Cells("Token Index", 2), ElementsAre(11, 12));

  sentence->AddSelectedToken(15); // a token of the second picture
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(14, 12)));
  sentence->ClearSelectedTokens();
  sentence->SetSelectionConnection(nullptr);
  Connect(sentence.Get(), 1, SelectionOf({ 16 }, vtkSelectionNode::PEDIGREEIDS));
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(16, 12)));
  sentence->SetInputConnection(1, nullptr);
  sentence->AddHiddenToken(13); // and with it all of the picture
  EXPECT_THAT(sentence.Pairs(), ElementsAre(Pair(11, 11)));
  sentence->ClearHiddenTokens();
  sentence->AddHead(0);
  sentence->AddHead(1); // 12 and 13 to 11, 14 to 12, 15 to 12, 16 to 12
  EXPECT_THAT(sentence.Cells("Weight"), ElementsAre(1, 0.5, 0.5, 1, 1, 1, 1, 1, 1));

  sentence->ClearHeads();
  sentence->SetJoinPictures(false);
  EXPECT_EQ(sentence.Words()->GetNumberOfPoints(), 12);
  EXPECT_THAT(sentence.Pairs(), SizeIs(6));
}

}
