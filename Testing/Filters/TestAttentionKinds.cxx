// The views of a recording with an encoder and a decoder.

#include "Core/Oracle.h"
#include "Core/TranslatedRecording.h"
#include "RecordedAttention.h"
#include "Recordings.h"
#include "Tables.h"
#include "vtkAttentionFocus.h"
#include "vtkAttentionLines.h"
#include "vtkAttentionMap.h"
#include "vtkAttentionMatrix.h"
#include "vtkAttentionSentence.h"
#include "vtkHeadEmbedding.h"
#include "vtkHeadScores.h"
#include "vtkQueryKeyContrast.h"

#include <vtkCellData.h>
#include <vtkFieldData.h>
#include <vtkImageData.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

/// A view of the recording with encoder and decoder.
template<class View>
class Shown : public Observed<View>
{
public:
  explicit Shown(int kind)
  {
    Connect(this->Get(), 0, DataSetOf(TranslatedRecording()));
    this->Get()->SetAttentionKind(kind);
  }
};

/// The weights of a head of the cross attention of a sequence: [target, source].
std::vector<double> CrossWeights(std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  const Recording recording = TranslatedRecording();
  const Recording& cross = *recording.cross;
  const std::int64_t length = cross.SequenceLength(sequence);
  std::vector<float> all(length * length);
  EvaluateAttention(
    cross, sequence, layer, head, AttentionQuantity::Weights, 0, length, all.data());
  std::vector<double> weights;
  for (std::int64_t i = cross.sourceLengths[sequence]; i < length; ++i)
  {
    const float* row = all.data() + i * length;
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
  auto* image = Updated<vtkImageData>(map.Get());
  EXPECT_THAT(std::vector<int>(image->GetDimensions(), image->GetDimensions() + 2),
    ElementsAre(4, 3)); // source, target
  EXPECT_EQ(image->GetOrigin()[1], -2);
  EXPECT_EQ(FromTheTop(image, "Weights"), CrossWeights(0, 2, 1));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("s0", "s1", "s2", "s3"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("t0", "t1", "t2"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Attention Kind"), ElementsAre("cross"));
  EXPECT_EQ(map->GetHasKinds(), 1);
  EXPECT_EQ(map->GetLayerRange()[1], 2);

  auto* frames = vtkPolyData::SafeDownCast(map->GetOutputDataObject(1));
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
  auto* image = Updated<vtkImageData>(map.Get());
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("s0", "s1"));
  EXPECT_EQ(map->GetLayerRange()[1], 1);
  map->SetQuantity(vtkAttentionMap::BIAS);
  const Recording recording = TranslatedRecording();
  const float* bias = recording.encoder->distanceBias.Row(0);
  EXPECT_EQ(FromTheTop(Updated<vtkImageData>(map.Get()), "Bias"),
    (std::vector<double>{ bias[2], bias[3], bias[1], bias[2] }));
  map->SetLayer(2); // of the decoder alone
  map.Get()->Update();
  EXPECT_THAT(map.TakeError(), HasSubstr("layer 2 is not in the recording"));
}

TEST(AttentionKinds, ASentenceOfCrossAttentionHasTwoTexts)
{
  Shown<vtkAttentionSentence> sentence(vtkAttentionSentence::CROSS);
  sentence->SetSequence(1);
  auto* lines = Updated<vtkPolyData>(sentence.Get(), 0);
  EXPECT_EQ(Values(lines->GetCellData(), "Weight"), CrossWeights(1, 0, 0)); // all above 0
  EXPECT_THAT(Values(lines->GetCellData(), "Query"), // of the tokens of both sequences
    ElementsAre(9, 9, 10, 10, 11, 11, 12, 12, 13, 13));
  EXPECT_THAT(Values(lines->GetCellData(), "Key"), ElementsAre(7, 8, 7, 8, 7, 8, 7, 8, 7, 8));
  auto* words = Updated<vtkPolyData>(sentence.Get(), 1);
  EXPECT_THAT(
    Texts(words->GetPointData(), "Token"), ElementsAre("t0", "t1", "t2", "t3", "t4", "s0", "s1"));
  EXPECT_THAT(Values(words->GetPointData(), "Side"), ElementsAre(0, 0, 0, 0, 0, 1, 1));
  const std::vector<double> received = Values(words->GetPointData(), "Received");
  EXPECT_NEAR(received[5] + received[6], 5, 1e-5);
  auto* bars = Updated<vtkPolyData>(sentence.Get(), 2);
  EXPECT_THAT(Values(bars->GetCellData(), "Token Index"), ElementsAre(7, 8));
  sentence->SetRowsPerPage(2); // 3 x 1 pages
  EXPECT_EQ(Updated<vtkPolyData>(sentence.Get(), 1)->GetNumberOfPoints(), 5 + 3 * 2);
  EXPECT_EQ(Updated<vtkPolyData>(sentence.Get(), 2)->GetNumberOfCells(), 2);
}

TEST(AttentionKinds, AMatrixOfCrossAttentionHasPanelsOfTwoTexts)
{
  Shown<vtkAttentionMatrix> matrix(vtkAttentionMatrix::CROSS);
  matrix->SetLayer(1);
  auto* image = Updated<vtkImageData>(matrix.Get());
  EXPECT_THAT(std::vector<int>(image->GetDimensions(), image->GetDimensions() + 2),
    ElementsAre(4 + 1 + 4, 3));
  const std::vector<double> all = FromTheTop(image, "Weights");
  const std::vector<double> expected = CrossWeights(0, 1, 1);
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    EXPECT_EQ(all[i / 4 * 9 + 5 + i % 4], expected[i]);
  }
  EXPECT_THAT(Values(image->GetFieldData(), "Panel Height"), ElementsAre(3));
  matrix->SetMaximumSize(2);
  matrix->SetPooling(vtkAttentionMatrix::MAXIMUM);
  const std::vector<double> pooled = FromTheTop(Updated<vtkImageData>(matrix.Get()), "Weights");
  EXPECT_EQ(pooled.size(), 5U * 2U);
  EXPECT_EQ(pooled[3], std::max(expected[0], expected[1])); // head 1, its first query
  EXPECT_EQ(pooled[5 + 4],
    std::max({ expected[6], expected[7], expected[10], expected[11] })); // queries 1 and 2
}

TEST(AttentionKinds, FocusOfCrossAttentionIsOfTheTarget)
{
  Shown<vtkAttentionFocus> focus(vtkAttentionFocus::CROSS);
  focus->SetPer(vtkAttentionFocus::QUERY);
  auto* table = Updated<vtkTable>(focus.Get());
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

/// Views of one text say so.
TEST(AttentionKinds, ViewsOfOneTextRefuseTwo)
{
  const auto error = [](auto& view)
  {
    view.Get()->Update();
    return view.TakeError();
  };
  const std::string message = "AttentionKind: expected Decoder or Encoder, whose queries and keys "
                              "are of one text, found Cross.";
  Shown<vtkHeadScores> scores(vtkHeadScores::CROSS);
  Shown<vtkHeadEmbedding> embedding(vtkHeadEmbedding::CROSS);
  Shown<vtkQueryKeyContrast> contrast(vtkQueryKeyContrast::CROSS);
  EXPECT_THAT(error(scores), HasSubstr(message));
  EXPECT_THAT(error(embedding), HasSubstr(message));
  EXPECT_THAT(error(contrast), HasSubstr(message));
}

TEST(AttentionKinds, AreMissingFromOtherRecordings)
{
  Observed<vtkAttentionMap> map;
  Connect(map.Get(), 0, DataSetOf(SmallRecording()));
  map->SetAttentionKind(vtkAttentionMap::ENCODER);
  map.Get()->Update();
  EXPECT_THAT(
    map.TakeError(), HasSubstr("expected the recording of a transformer with an encoder and a "
                               "decoder for the attention 'encoder', found one of bloom."));
  EXPECT_EQ(map->GetHasKinds(), 0);
  map->SetAttentionKind(vtkAttentionMap::DECODER);
  EXPECT_EQ(Updated<vtkImageData>(map.Get())->GetDimensions()[0], 3);
}

/// Lines between the points of an embedding are of the attention that was embedded.
TEST(AttentionKinds, LinesFollowTheEmbedding)
{
  const auto data = DataSetOf(TranslatedRecording());
  vtkNew<vtkHeadEmbedding> embedding;
  Connect(embedding, 0, data);
  embedding->SetAttentionKind(vtkHeadEmbedding::ENCODER);
  embedding->SetLayer(1);
  embedding->SetHead(0);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  auto* points = Updated<vtkPolyData>(embedding);
  EXPECT_EQ(points->GetNumberOfPoints(), 2 * (4 + 2)); // queries and keys of the source
  vtkNew<vtkAttentionLines> lines;
  Connect(lines, 0, points);
  Connect(lines, 1, data);
  lines->SetTop(10);
  lines->SetMinimumWeight(0);
  auto* found = Updated<vtkPolyData>(lines);
  EXPECT_EQ(found->GetNumberOfCells(), 4 * 4 + 2 * 2);
  const Recording recording = TranslatedRecording();
  std::vector<float> expected(16);
  EvaluateAttention(*recording.encoder, 0, 1, 0, AttentionQuantity::Weights, 0, 4, expected.data());
  const std::vector<double> weights = Values(found->GetCellData(), "Weight");
  EXPECT_NEAR(*std::max_element(weights.begin(), weights.begin() + 16),
    *std::max_element(expected.begin(), expected.end()), 1e-6);
}

}
