// The views of a recording with an encoder and a decoder.

#include "Base/Index.h"
#include "Core/TranslatedRecording.h"
#include "Embedding/TSne.h"
#include "Matchers.h"
#include "Tables.h"
#include "vtkAttentionFocus.h"
#include "vtkAttentionLines.h"
#include "vtkAttentionMap.h"
#include "vtkAttentionMatrix.h"
#include "vtkAttentionSentence.h"
#include "vtkHeadEmbedding.h"
#include "vtkHeadScores.h"
#include "vtkQueryKeyContrast.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// A view of the recording with encoder and decoder.
template<class View>
class Shown : public On<View>
{
public:
  explicit Shown(int kind)
    : On<View>(DataSetOf(TranslatedRecording()))
  {
    this->Get()->SetAttentionKind(kind);
  }
};

/// The weights of a head of the cross attention of a sequence: [target, source].
std::vector<double> CrossWeights(std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  const Recording recording = TranslatedRecording();
  const Recording& cross = *recording.cross;
  const std::int64_t length = cross.SequenceLength(sequence);
  const std::vector<double> all = AttentionOf(cross, sequence, layer, head);
  std::vector<double> weights;
  for (std::int64_t i = cross.sourceLengths[sequence]; i < length; ++i)
  {
    const auto row = all.begin() + i * length;
    weights.insert(weights.end(), row, row + cross.sourceLengths[sequence]);
  }
  return weights;
}

/// The values of an image from its top row down.
std::vector<double> FromTheTop(vtkImageData* image, const char* name)
{
  std::vector<double> values;
  for (int y = image->GetDimensions()[1] - 1; y >= 0; --y)
  {
    for (int x = 0; x < image->GetDimensions()[0]; ++x)
    {
      const vtkIdType point = x + vtkIdType{ y } * image->GetDimensions()[0];
      values.push_back(image->GetPointData()->GetArray(name)->GetComponent(point, 0));
    }
  }
  return values;
}

TEST(AttentionKinds, SurviveTheDataObject)
{
  const Recording recording = TranslatedRecording();
  const auto data = DataSetOf(recording);
  ExpectEqual(AttentionAtlas::ToRecording(data), recording);
  ExpectEqual(AttentionAtlas::ToRecording(AttentionAtlas::FindPart(data, AttentionKind::Cross)),
    *recording.cross);
}

TEST(AttentionKinds, AMapOfCrossAttentionIsOfTwoTexts)
{
  Shown<vtkAttentionMap> map(vtkAttentionMap::CROSS);
  map->SetLayer(2);
  map->SetHead(1);
  auto* image = map.Image();
  EXPECT_THAT(SizeOf(image), ElementsAre(4, 3)); // source, target
  EXPECT_EQ(image->GetOrigin()[1], -2);
  EXPECT_EQ(FromTheTop(image, "Weights"), CrossWeights(0, 2, 1));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("s0", "s1", "s2", "s3"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("t0", "t1", "t2"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Attention Kind"), ElementsAre("cross"));
  EXPECT_EQ(map->GetHasKinds(), 1);
  EXPECT_EQ(map->GetLayerRange()[1], 2);

  auto* frames = OutputOf<vtkPolyData>(map.Get(), 1);
  EXPECT_THAT(Values(frames->GetCellData(), "Query"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(frames->GetCellData(), "Token Index"), ElementsAre(4, 5, 6));
  const std::vector<double> weights = CrossWeights(0, 2, 1);
  const std::vector<double> keys = Values(frames->GetCellData(), "Key");
  const std::vector<double> kinds = Values(frames->GetCellData(), "Kind");
  for (std::size_t query = 0; query < 3; ++query)
  {
    const auto row = weights.begin() + 4 * static_cast<std::ptrdiff_t>(query);
    EXPECT_EQ(keys[query], std::max_element(row, row + 4) - row);
    EXPECT_EQ(kinds[query], keys[query] == 0 ? 2 : 0); // never its own position
  }
}

TEST(AttentionKinds, TheEncoderHasLayersOfItsOwn)
{
  Shown<vtkAttentionMap> map(vtkAttentionMap::ENCODER);
  map->SetSequence(1);
  map->SetLayer(1);
  auto* image = map.Image();
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("s0", "s1"));
  EXPECT_EQ(map->GetLayerRange()[1], 1);
  map->SetQuantity(vtkAttentionMap::BIAS);
  const Recording recording = TranslatedRecording();
  const float* bias = recording.encoder->distanceBias.Row(0);
  EXPECT_EQ(
    FromTheTop(map.Image(), "Bias"), (std::vector<double>{ bias[2], bias[3], bias[1], bias[2] }));
}

TEST(AttentionKinds, ASentenceOfCrossAttentionHasTwoTexts)
{
  Shown<vtkAttentionSentence> sentence(vtkAttentionSentence::CROSS);
  sentence->SetSequence(1);
  auto* lines = sentence.Geometry();
  EXPECT_EQ(Values(lines->GetCellData(), "Weight"), CrossWeights(1, 0, 0)); // all above 0
  EXPECT_THAT(Values(lines->GetCellData(), "Query"), // of the tokens of both sequences
    ElementsAre(9, 9, 10, 10, 11, 11, 12, 12, 13, 13));
  EXPECT_THAT(Values(lines->GetCellData(), "Key"), ElementsAre(7, 8, 7, 8, 7, 8, 7, 8, 7, 8));
  auto* words = sentence.Geometry(1);
  EXPECT_THAT(
    Texts(words->GetPointData(), "Token"), ElementsAre("t0", "t1", "t2", "t3", "t4", "s0", "s1"));
  EXPECT_THAT(Values(words->GetPointData(), "Side"), ElementsAre(0, 0, 0, 0, 0, 1, 1));
  const std::vector<double> received = Values(words->GetPointData(), "Received");
  EXPECT_NEAR(received[5] + received[6], 5, 1e-5);
  auto* bars = sentence.Geometry(2);
  EXPECT_THAT(Values(bars->GetCellData(), "Token Index"), ElementsAre(7, 8));
  sentence->SetRowsPerPage(2); // 3 x 1 pages
  EXPECT_EQ(sentence.Geometry(1)->GetNumberOfPoints(), 5 + 3 * 2);
  EXPECT_EQ(sentence.Geometry(2)->GetNumberOfCells(), 2);
}

TEST(AttentionKinds, AMatrixOfCrossAttentionHasPanelsOfTwoTexts)
{
  Shown<vtkAttentionMatrix> matrix(vtkAttentionMatrix::CROSS);
  matrix->SetLayer(1);
  auto* image = matrix.Image();
  EXPECT_THAT(SizeOf(image), ElementsAre(4 + 1 + 4, 3));
  const std::vector<double> all = FromTheTop(image, "Weights");
  const std::vector<double> expected = CrossWeights(0, 1, 1);
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    EXPECT_EQ(all[i / 4 * 9 + 5 + i % 4], expected[i]);
  }
  EXPECT_THAT(Values(image->GetFieldData(), "Panel Height"), ElementsAre(3));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"),
    ElementsAre("s0", "s1", "s2", "s3", "", "s0", "s1", "s2", "s3"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("t0", "t1", "t2"));
  matrix->SetMaximumSize(2);
  matrix->SetPooling(vtkAttentionMatrix::MAXIMUM);
  const std::vector<double> pooled = FromTheTop(matrix.Image(), "Weights");
  EXPECT_EQ(pooled.size(), 5U * 2U);
  EXPECT_EQ(pooled[3], std::max(expected[0], expected[1])); // head 1, its first query
  EXPECT_EQ(pooled[5 + 4],
    std::max({ expected[6], expected[7], expected[10], expected[11] })); // queries 1 and 2
}

TEST(AttentionKinds, FocusOfCrossAttentionIsOfTheTarget)
{
  Shown<vtkAttentionFocus> focus(vtkAttentionFocus::CROSS);
  focus->SetPer(vtkAttentionFocus::QUERY);
  auto* table = focus.Table();
  EXPECT_EQ(table->GetNumberOfRows(), 3 * 2 * (3 + 5)); // layers, heads, tokens of targets
  const std::vector<double> weights = CrossWeights(0, 0, 0);
  const std::vector<double> entropies = Values(table->GetRowData(), "Entropy");
  const std::vector<double> selves = Values(table->GetRowData(), "Self Weight");
  for (std::size_t query = 0; query < 3; ++query)
  {
    double entropy = 0;
    for (std::size_t key = 0; key < 4; ++key)
    {
      entropy -= weights[4 * query + key] * std::log(weights[4 * query + key]);
    }
    EXPECT_NEAR(entropies[query], entropy / std::log(4.), 1e-5);
    EXPECT_EQ(selves[query], 0);
  }
  EXPECT_THAT(Values(table->GetRowData(), "Position")[0], 0); // in its own text
  EXPECT_THAT(Values(table->GetRowData(), "Token Index")[0], 4);
}

/// A recording whose texts share words: the source "a b c a", the target "b a x", and one of which
/// none is in both.
Recording WithWords()
{
  Recording recording = TranslatedRecording();
  auto cross = std::make_shared<Recording>(*recording.cross);
  cross->tokens.text = { "a", "b", "c", "a", "b", "a", "x", "s", "s", "t", "t", "t", "t", "t" };
  recording.cross = cross;
  return recording;
}

TEST(AttentionKinds, ScoresOfCrossAttentionAreCopiesAndTheSink)
{
  Shown<vtkHeadScores> scores(vtkHeadScores::CROSS);
  Connect(scores.Get(), 0, DataSetOf(WithWords()));
  auto* table = scores.Table();
  EXPECT_EQ(table->GetNumberOfColumns(), 4); // Layer, Head, and two scores
  const std::vector<double> copies = Values(table->GetRowData(), "Duplicate Token");
  const std::vector<double> sinks = Values(table->GetRowData(), "Sink");
  ASSERT_EQ(copies.size(), 3 * 2);
  for (int head = 0; head < 6; ++head)
  {
    const std::vector<double> one = CrossWeights(0, head / 2, head % 2);
    const std::vector<double> other = CrossWeights(1, head / 2, head % 2);
    EXPECT_NEAR(copies[head], (one[1] + one[4] + one[7]) / 8, 1e-6); // of 3 + 5 queries
    EXPECT_NEAR(sinks[head],
      (one[0] + one[4] + one[8] + other[0] + other[2] + other[4] + other[6] + other[8]) / 8, 1e-6);
  }
  auto* image = OutputOf<vtkImageData>(scores.Get(), 1);
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Sink");
  EXPECT_EQ(FromTheTop(image, "Duplicate Token"), copies);
}

TEST(AttentionKinds, ScoresOfSoundAreTheSink)
{
  Recording recording = WithWords();
  auto cross = std::make_shared<Recording>(*recording.cross);
  cross->tokens.text.clear();
  cross->tokens.id = { -1, -1, -1, -1, 1, 2, 3, -1, -1, 1, 2, 3, 4, 5 };
  recording.cross = cross;
  Shown<vtkHeadScores> scores(vtkHeadScores::CROSS);
  Connect(scores.Get(), 0, DataSetOf(recording));
  auto* table = scores.Table();
  EXPECT_EQ(table->GetNumberOfColumns(), 3);
  EXPECT_NE(table->GetColumnByName("Sink"), nullptr);
}

TEST(AttentionKinds, AnEmbeddingOfCrossAttentionHasQueriesOfTheTargetAndKeysOfTheSource)
{
  const Recording recording = WithWords();
  Shown<vtkHeadEmbedding> embedding(vtkHeadEmbedding::CROSS);
  Connect(embedding.Get(), 0, DataSetOf(recording));
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  embedding->SetKeyScaling(vtkHeadEmbedding::FIXED);
  auto* points = embedding.Geometry();
  ASSERT_EQ(points->GetNumberOfPoints(), 6 * (8 + 6)); // heads, tokens of targets and of sources
  const std::vector<double> kinds = Values(points->GetPointData(), "Kind");
  const std::vector<double> rows = Values(points->GetPointData(), "Token Index");
  const std::vector<double> norms = Values(points->GetPointData(), "Norm");
  const std::vector<std::int64_t> expected = { 4, 5, 6, 9, 10, 11, 12, 13, 0, 1, 2, 3, 7, 8 };
  for (std::size_t i = 0; i < rows.size(); ++i)
  {
    EXPECT_EQ(kinds[i], i % 14 < 8 ? 0 : 1);
    EXPECT_EQ(rows[i], expected[i % 14]);
    const RecordedHead& head = recording.cross->layers[i / 28].heads[i / 14 % 2];
    const float* vector = (i % 14 < 8 ? head.query : head.key).Row(expected[i % 14]);
    EXPECT_NEAR(norms[i], std::sqrt(std::inner_product(vector, vector + 5, vector, 0.)), 1e-5);
  }
  const std::vector<std::string> texts = Texts(points->GetPointData(), "Token");
  EXPECT_EQ(texts[14 + 1], "a"); // of the target
  EXPECT_EQ(texts[14 + 10], "c");
  const std::vector<double> positions = Values(points->GetPointData(), "Relative Position");
  EXPECT_THAT(std::vector<double>(positions.begin(), positions.begin() + 4),
    ElementsAre(0, 0.5, 1, 0)); // in their own text
  EXPECT_EQ(positions[8 + 3], 1);
  EXPECT_EQ(positions[8 + 5], 1);
  EXPECT_THAT(Texts(points->GetFieldData(), "Attention Kind"), ElementsAre("cross"));
  vtkNew<vtkIdList> cell;
  std::set<vtkIdType> shown;
  for (vtkIdType i = 0; i < points->GetNumberOfCells(); ++i)
  {
    points->GetCellPoints(i, cell);
    ASSERT_EQ(cell->GetNumberOfIds(), 1);
    shown.insert(cell->GetId(0));
  }
  EXPECT_EQ(points->GetNumberOfCells(), points->GetNumberOfPoints());
  EXPECT_THAT(shown, SizeIs(points->GetNumberOfPoints()));
  auto* table = OutputOf<vtkTable>(embedding.Get(), 1);
  EXPECT_NEAR(Values(table->GetRowData(), "Query Norm")[3],
    std::accumulate(norms.begin() + 42, norms.begin() + 50, 0.) / 8, 1e-5); // 3 * 14

  embedding->SetSequence(1);
  embedding->SetLayer(2);
  embedding->SetHead(0);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 5 + 2);
  embedding->SetSequence(-1);
  embedding->SetSample(3);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 3 + 3);
  EXPECT_EQ(embedding->GetPerplexityRange()[1], // of 14 points
    std::floor(100 * LargestPerplexity(14)) / 100);
}

/// Lines of cross attention go from the target to the source.
TEST(AttentionKinds, LinesOfCrossAttentionFollowTheEmbedding)
{
  const auto data = DataSetOf(TranslatedRecording());
  Shown<vtkHeadEmbedding> embedding(vtkHeadEmbedding::CROSS);
  On<vtkAttentionLines> lines(embedding.Geometry());
  Connect(lines.Get(), 1, data);
  lines->SetTop(10);
  lines->SetMinimumWeight(0);
  auto* found = lines.Geometry();
  EXPECT_EQ(found->GetNumberOfCells(), 6 * (3 * 4 + 5 * 2));
  const std::vector<double> weights = Values(found->GetCellData(), "Weight");
  const std::vector<double> queries = Values(found->GetCellData(), "Query");
  const std::vector<double> keys = Values(found->GetCellData(), "Key");
  const std::vector<double> expected = CrossWeights(0, 0, 0);
  for (std::size_t i = 0; i < 12; ++i)
  {
    EXPECT_EQ(weights[i], expected[ToIndex(std::llround(4 * (queries[i] - 4) + keys[i]))]);
  }
}

TEST(AttentionKinds, AContrastOfCrossAttentionIsOfTwoTexts)
{
  Shown<vtkQueryKeyContrast> contrast(vtkQueryKeyContrast::CROSS);
  Connect(contrast.Get(), 0, DataSetOf(WithWords()));
  auto* points = contrast.Geometry();
  ASSERT_EQ(points->GetNumberOfPoints(), 6 * (8 + 6));
  EXPECT_THAT(Values(points->GetFieldData(), "Pairs"), ElementsAre(3)); // b, a a
  EXPECT_THAT(Values(points->GetFieldData(), "Other Pairs"), ElementsAre(3 * 4 + 5 * 2 - 3));
  EXPECT_THAT(Texts(points->GetFieldData(), "Attention Kind"), ElementsAre("cross"));
  const Recording cross = *WithWords().cross;
  const std::vector<double> rows = Values(points->GetPointData(), "Token Index");
  const std::vector<double> kinds = Values(points->GetPointData(), "Kind");
  EXPECT_EQ(rows[8], 0);
  EXPECT_EQ(kinds[7], 0);
  EXPECT_EQ(kinds[8], 1);
  // The score differences are those of the means over the pairs of all queries and keys.
  auto* table = OutputOf<vtkTable>(contrast.Get(), 1);
  const std::vector<double> differences = Values(table->GetRowData(), "Score Difference");
  ASSERT_EQ(differences.size(), 6 * 5);
  for (std::int64_t head = 0; head < 6; ++head)
  {
    double in = 0;
    double all = 0;
    for (std::int64_t s = 0; s < 2; ++s)
    {
      const std::int64_t length = cross.SequenceLength(s);
      const std::vector<double> scores =
        AttentionOf(cross, s, head / 2, head % 2, AttentionQuantity::Scores);
      const std::vector<std::string>& texts = cross.tokens.text;
      const std::int64_t first = cross.sequenceOffsets[s];
      for (std::int64_t i = cross.sourceLengths[s]; i < length; ++i)
      {
        for (std::int64_t j = 0; j < cross.sourceLengths[s]; ++j)
        {
          const double score = scores[i * length + j];
          all += score;
          in += texts[first + i] == texts[first + j] ? score : 0;
        }
      }
    }
    EXPECT_NEAR(differences[5 * head], in / 3 - (all - in) / 19, 1e-5);
  }
  contrast->SetBy(vtkQueryKeyContrast::COLUMN);
  contrast->SetColumn("Position");
  EXPECT_THAT(contrast.Field("Pairs"),
    ElementsAre(3 + 2)); // of the shorter text
}

TEST(AttentionKinds, AreMissingFromOtherRecordings)
{
  On<vtkAttentionMap> map(DataSetOf(SmallRecording()));
  map->SetAttentionKind(vtkAttentionMap::ENCODER);
  EXPECT_THAT(
    map.Error(), HasSubstr("expected the recording of a transformer with an encoder and a "
                           "decoder for the attention 'encoder', found one of bloom."));
  EXPECT_EQ(map->GetHasKinds(), 0);
  map->SetAttentionKind(vtkAttentionMap::DECODER);
  EXPECT_EQ(map.Image()->GetDimensions()[0], 3);
}

/// Lines between the points of an embedding are of the attention that was embedded.
TEST(AttentionKinds, LinesFollowTheEmbedding)
{
  const auto data = DataSetOf(TranslatedRecording());
  Shown<vtkHeadEmbedding> embedding(vtkHeadEmbedding::ENCODER);
  embedding->SetLayer(1);
  embedding->SetHead(0);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  auto* points = embedding.Geometry();
  EXPECT_EQ(points->GetNumberOfPoints(), 2 * (4 + 2)); // queries and keys of the source
  On<vtkAttentionLines> lines(points);
  Connect(lines.Get(), 1, data);
  lines->SetTop(10);
  lines->SetMinimumWeight(0);
  auto* found = lines.Geometry();
  EXPECT_EQ(found->GetNumberOfCells(), 4 * 4 + 2 * 2);
  const std::vector<double> expected = AttentionOf(*TranslatedRecording().encoder, 0, 1, 0);
  const std::vector<double> weights = Values(found->GetCellData(), "Weight");
  EXPECT_NEAR(*std::max_element(weights.begin(), weights.begin() + 16),
    *std::max_element(expected.begin(), expected.end()), 1e-6);
}

}
