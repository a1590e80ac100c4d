#include "Matchers.h"
#include "vtkBindTokens.h"
#include "vtkSpatialAttention.h"

#include "Core/TranslatedRecording.h"
#include "SpatialRecording.h"
#include "TimedSource.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Six vertices at x = 0 ... 5, whose tokens are 0, 0, 1, 2, -1 and 3.
vtkSmartPointer<vtkPolyData> SixPoints()
{
  const auto mesh = PointsAt({ 0, 1, 2, 3, 4, 5 }, { 0, 0, 0, 0, 0, 0 });
  AddArray<vtkIntArray, int>(mesh->GetPointData(), "token", { 0, 0, 1, 2, -1, 3 });
  return mesh;
}

/// Three vertices at x = 0, 1, 2 with weights of two slices, which are the tokens 1 and 2.
vtkSmartPointer<vtkPolyData> SlicedPoints()
{
  const auto mesh = PointsAt({ 0, 1, 2 }, { 0, 0, 0 });
  AddArray<vtkFloatArray, float>(
    mesh->GetPointData(), "slices", { 1.0F, 0.0F, 0.5F, 0.5F, 0.25F, 0.75F }, 2);
  return mesh;
}

/// A dataset that is bound, and its attention.
class Spatial : public On<vtkSpatialAttention>
{
public:
  Observed<vtkBindTokens> Binding;

  explicit Spatial(vtkDataObject* mesh, const Recording& recording = SpatialRecording())
  {
    const auto recorded = DataSetOf(recording);
    Connect(this->Binding.Get(), 0, mesh);
    Connect(this->Binding.Get(), 1, recorded);
    this->Binding->SetTokenArray("token");
    this->Get()->SetInputConnection(0, this->Binding->GetOutputPort());
    Connect(this->Get(), 1, recorded);
  }

  void BindSlices()
  {
    this->Binding->SetMethod(vtkBindTokens::WEIGHTS);
    this->Binding->SetWeightArray("slices");
    this->Binding->SetFirstToken(1);
  }

  std::vector<double> Points() { return this->On::Points("Attention"); }
  std::vector<double> Column(const char* name) { return this->On::Column(name, 3); }
  vtkPolyData* Lines() { return this->Geometry(1); }
  vtkPolyData* Mark() { return this->Geometry(2); }
};

TEST(SpatialAttentionFilter, GivesEachPointTheAttentionToItsToken)
{
  Spatial spatial(SixPoints());
  EXPECT_THAT(spatial.Points(), ElementsAre(0.5, 0.5, 0.25, 0.125, 0, 0.125));
  spatial->SetToken(3);
  EXPECT_THAT(spatial.Points(), ElementsAre(0.125, 0.125, 0, 0.375, 0, 0.5));
  spatial->SetDirection(vtkSpatialAttention::TO);
  EXPECT_THAT(spatial.Points(), ElementsAre(0.125, 0.125, 0, 0.25, 0, 0.5));
  spatial->SetDirection(vtkSpatialAttention::HOLDS);
  EXPECT_THAT(spatial.Points(), ElementsAre(0, 0, 0, 0, 0, 1));
  spatial->SetDirection(vtkSpatialAttention::FROM);
  spatial->SetHead(-1); // with the identity
  EXPECT_THAT(spatial.Points(), ElementsAre(0.0625, 0.0625, 0, 0.1875, 0, 0.75));
  spatial->SetHead(1);
  EXPECT_THAT(spatial.Points(), ElementsAre(0, 0, 0, 0, 0, 1));
}

/// Rollout of one layer is (mean of heads + identity) / 2.
TEST(SpatialAttentionFilter, HasRolloutAndNorms)
{
  Recording recording = SpatialRecording();
  for (RecordedHead& head : recording.layers[0].heads)
  {
    head.valueNorm = SharedMatrix::Zero(5, 1);
    for (int i = 0; i < 4; ++i)
    {
      *head.valueNorm.Row(i) = static_cast<float>(i + 1);
    }
  }
  Spatial spatial(SixPoints(), recording);
  spatial->SetQuantity(vtkSpatialAttention::NORM_WEIGHTED);
  EXPECT_THAT(spatial.Points(), ElementsAre(0.5, 0.5, 0.5, 0.375, 0, 0.5));
  spatial->SetQuantity(vtkSpatialAttention::ROLLOUT);
  EXPECT_THAT(spatial.Points(), ElementsAre(0.875, 0.875, 0.0625, 0.03125, 0, 0.03125));
}

TEST(SpatialAttentionFilter, DividesAmongPlaces)
{
  Spatial spatial(SixPoints());
  spatial->DivideAmongPlacesOn();
  EXPECT_THAT(spatial.Points(), ElementsAre(0.25, 0.25, 0.25, 0.125, 0, 0.125)); // adds up to 1
  EXPECT_THAT(spatial.Column("Weight"), ElementsAre(0.5, 0.25, 0.125, 0.125));
}

TEST(SpatialAttentionFilter, AnswersAProbe)
{
  Spatial spatial(SixPoints());
  spatial->SetQueryBy(vtkSpatialAttention::PROBE);
  spatial->SetProbe(4.8, 1, 0); // of token 3
  EXPECT_THAT(spatial.Points(), ElementsAre(0.125, 0.125, 0, 0.375, 0, 0.5));
  EXPECT_THAT(Values(spatial.Mark()->GetCellData(), "Token Index"), ElementsAre(3));
  EXPECT_THAT(Texts(spatial.Mark()->GetPointData(), "Token"), ElementsAre("Query d"));
  EXPECT_NEAR(spatial.Mark()->GetPoint(0)[0], 5, 1e-9);
  spatial->SetProbe(0.5, 0, 0); // as near to the first as to the second, both of token 0
  EXPECT_EQ(spatial.Points()[2], 0.25);
  EXPECT_NEAR(spatial.Mark()->GetPoint(0)[0], 0, 1e-9);
}

/// Points 0, 1 and 5 have the tokens 0, 0 and 3.
TEST(SpatialAttentionFilter, AnswersASelectionByTheMean)
{
  Spatial spatial(SixPoints());
  Connect(spatial.Get(), 2, SelectionOf({ 0, 1, 5 }));
  ExpectClose("mean", spatial.Points(), { 0.375, 0.375, 0.5 / 3, 0.625 / 3, 0, 0.25 }, 2e-7);
  EXPECT_NEAR(spatial.Mark()->GetPoint(0)[0], 2, 1e-9); // (0 + 1 + 5) / 3
  EXPECT_THAT(Values(spatial.Mark()->GetCellData(), "Token Index"), ElementsAre(0));
  Connect(spatial.Get(), 2, SelectionOf({ 5 }, vtkSelectionNode::INDICES, vtkSelectionNode::CELL));
  EXPECT_THAT(spatial.Points(), ElementsAre(0.125, 0.125, 0, 0.375, 0, 0.5));
  Connect(spatial.Get(), 2, SelectionOf({ 4 })); // without a token
  EXPECT_THAT(spatial.Error(), HasSubstr("found none"));
  Connect(spatial.Get(), 2, vtkSmartPointer<vtkSelection>::New()); // none: the token
  EXPECT_THAT(spatial.Points(), ElementsAre(0.5, 0.5, 0.25, 0.125, 0, 0.125));
}

/// Tokens 1 and 2 attend to themselves with 1 and 1/4, to each other with 0 and 1/4.
TEST(SpatialAttentionFilter, AddsSlicesByTheirWeights)
{
  Spatial spatial(SlicedPoints());
  spatial.BindSlices();
  spatial->SetToken(2);
  EXPECT_THAT(spatial.Points(), ElementsAre(0.25, 0.25, 0.25));
  spatial->SetDirection(vtkSpatialAttention::HOLDS); // what slice 1 holds: its weights
  EXPECT_THAT(spatial.Points(), ElementsAre(0, 0.5, 0.75));
  spatial->SetDirection(vtkSpatialAttention::FROM);
  spatial->SetQueryBy(vtkSpatialAttention::PROBE);
  spatial->SetProbe(2, 0, 0); // a quarter of row 1 and three of row 2
  const double first = 0.25 * 1 + 0.75 * 0.25;
  const double second = 0.75 * 0.25;
  EXPECT_THAT(
    spatial.Points(), ElementsAre(DoubleNear(first, 1e-7), DoubleNear((first + second) / 2, 1e-7),
                        DoubleNear(first / 4 + 3 * second / 4, 1e-7)));
  spatial->DivideAmongPlacesOn(); // the slices weigh 1.75 and 1.25
  const std::vector<double> shared = spatial.Points();
  EXPECT_NEAR(shared[0], first / 1.75, 1e-7);
  EXPECT_NEAR(shared[0] + shared[1] + shared[2], first + second, 1e-7);
}

TEST(SpatialAttentionFilter, DrawsLinesToTheStrongestKeys)
{
  Spatial spatial(SixPoints());
  spatial->SetToken(3);
  auto* lines = spatial.Lines();
  // To itself no line; to token 2 at x = 3, and to 0, whose places are at 0 and 1.
  ASSERT_EQ(lines->GetNumberOfLines(), 2);
  EXPECT_THAT(Values(lines->GetCellData(), "Weight"), ElementsAre(0.375, 0.125));
  EXPECT_THAT(Values(lines->GetCellData(), "Query"), Each(3));
  EXPECT_THAT(Values(lines->GetCellData(), "Key"), ElementsAre(2, 0));
  EXPECT_THAT(Texts(lines->GetFieldData(), "MarkColor Legend"),
    ElementsAre("Marks\n0 217 242 strongest key\n51 230 51 query"));
  EXPECT_EQ(lines->GetNumberOfPoints(), 4);
  EXPECT_NEAR(lines->GetPoint(0)[0], 5, 1e-9);
  EXPECT_NEAR(lines->GetPoint(1)[0], 3, 1e-9);
  EXPECT_NEAR(lines->GetPoint(3)[0], 0.5, 1e-9);
  spatial->SetCount(2); // itself and token 2
  EXPECT_THAT(Values(spatial.Lines()->GetCellData(), "Key"), ElementsAre(2));
  spatial->SetCount(10);
  spatial->SetDirection(vtkSpatialAttention::TO);
  EXPECT_THAT(Values(spatial.Lines()->GetCellData(), "Key"), Each(3));
  EXPECT_THAT(Values(spatial.Lines()->GetCellData(), "Query"), ElementsAre(2, 0));
  spatial->SetDirection(vtkSpatialAttention::HOLDS);
  EXPECT_EQ(spatial.Lines()->GetNumberOfLines(), 0);
  EXPECT_THAT(Texts(spatial.Lines()->GetFieldData(), "MarkColor Legend"),
    ElementsAre("Marks\n51 230 51 query"))
    << "what is drawn";
}

/// The middle of an arc of length 2 is half of that above it.
TEST(SpatialAttentionFilter, BendsLines)
{
  Spatial spatial(SixPoints());
  spatial->SetToken(3);
  spatial->SetBend(0.5);
  auto* lines = spatial.Lines();
  EXPECT_EQ(lines->GetNumberOfPoints(), 2 * 25);
  EXPECT_NEAR(lines->GetPoint(12)[0], 4, 1e-9);
  EXPECT_NEAR(lines->GetPoint(12)[2], 1, 1e-9);
  EXPECT_NEAR(lines->GetPoint(24)[0], 3, 1e-9);
  EXPECT_NEAR(lines->GetPoint(24)[2], 0, 1e-9);
}

TEST(SpatialAttentionFilter, ListsTheLargestContributions)
{
  const auto mesh = SixPoints();
  mesh->GetPointData()->GetArray("token")->SetComponent(2, 0, -1); // token 1 has no places
  Spatial spatial(mesh);
  auto* table = spatial.Table(3);
  EXPECT_THAT(spatial.Column("Token Index"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(spatial.Column("Position"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Texts(table->GetRowData(), "Token"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(spatial.Column("Weight"), ElementsAre(0.5, 0.25, 0.125, 0.125));
  EXPECT_THAT(spatial.Column("Places"), ElementsAre(2, 0, 1, 1));
  EXPECT_THAT(spatial.Column("Place Weight"), ElementsAre(2, 0, 1, 1));
  const std::vector<double> centers = spatial.Column("Center");
  EXPECT_NEAR(centers[0], 0.5, 1e-9);
  EXPECT_TRUE(std::isnan(centers[3]));
  EXPECT_NEAR(centers[9], 5, 1e-9);
  spatial->SetSequence(1);
  spatial->SetToken(0);
  EXPECT_THAT(spatial.Error(), HasSubstr("expected tokens from 0 to 0, or -1 for none, found"));
}

TEST(SpatialAttentionFilter, OfCellsAndSelectedPoints)
{
  vtkNew<vtkImageData> volume;
  volume->SetDimensions(5, 2, 2);
  Spatial spatial(volume);
  spatial.Binding->SetMethod(vtkBindTokens::GRID);
  spatial.Binding->SetPlaces(vtkBindTokens::CELLS);
  spatial.Binding->SetPatchCounts(4, 1, 1);
  const auto cells = [&]
  { return Values(Updated<vtkDataSet>(spatial.Get())->GetCellData(), "Attention"); };
  EXPECT_THAT(cells(), ElementsAre(0.5, 0.25, 0.125, 0.125));
  Connect(spatial.Get(), 2, SelectionOf({ 0 })); // a corner of cell 0
  EXPECT_THAT(cells(), ElementsAre(0.5, 0.25, 0.125, 0.125));
  Connect(spatial.Get(), 2, SelectionOf({ 4 })); // of cell 3
  EXPECT_THAT(cells(), ElementsAre(0.125, 0, 0.375, 0.5));
  EXPECT_NEAR(spatial.Mark()->GetPoint(0)[0], 3.5, 1e-9);
}

TEST(SpatialAttentionFilter, LeavesGhostsOut)
{
  const auto mesh = SixPoints();
  AddArray<vtkUnsignedCharArray, unsigned char>(
    mesh->GetPointData(), "vtkGhostType", { 0, vtkDataSetAttributes::DUPLICATEPOINT, 0, 0, 0, 0 });
  Spatial spatial(mesh);
  EXPECT_EQ(spatial.Column("Places")[0], 1);
  EXPECT_NEAR(spatial.Column("Center")[0], 0, 1e-9);
  EXPECT_EQ(spatial.Points()[1], 0.5); // it is shown all the same
}

TEST(SpatialAttentionFilter, OfBlocks)
{
  const auto blocks = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  blocks->SetBlock(0, SixPoints());
  const auto other = SixPoints();
  blocks->SetBlock(1, other);
  Spatial spatial(blocks);
  auto* output = Updated<vtkMultiBlockDataSet>(spatial.Get());
  for (const unsigned int block : { 0U, 1U })
  {
    EXPECT_THAT(
      Values(vtkDataSet::SafeDownCast(output->GetBlock(block))->GetPointData(), "Attention"),
      ElementsAre(0.5, 0.5, 0.25, 0.125, 0, 0.125));
  }
  EXPECT_EQ(spatial.Column("Places")[0], 4);
  EXPECT_EQ(other->GetPointData()->GetArray("Attention"), nullptr);
}

TEST(SpatialAttentionFilter, StepsOfTimeAreTokens)
{
  const auto mesh = PointsAt({ 0, 1 }, { 0, 0 });
  AddArray<vtkIntArray, int>(mesh->GetPointData(), "token", { 0, 1 });
  Spatial spatial(mesh);
  spatial.Binding->SetTokensPerStep(2);
  // The producer of the mesh has two steps of time.
  using SDDP = vtkStreamingDemandDrivenPipeline;
  const std::vector<double> steps = { 0.5, 2.5 };
  spatial.Binding->GetInputAlgorithm(0, 0)->GetOutputInformation(0)->Set(
    SDDP::TIME_STEPS(), steps.data(), 2);
  spatial->SetQueryBy(vtkSpatialAttention::PROBE);
  const auto at = [&](double time, int step)
  {
    spatial->SetQueryStep(step);
    mesh->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), time);
    mesh->Modified();
    return spatial.Points();
  };
  EXPECT_THAT(at(0.5, -1), ElementsAre(0.5, 0.25));   // token 0 to 0 and 1
  EXPECT_THAT(at(2.5, -1), ElementsAre(0.25, 0.25));  // token 2 to 2 and 3
  EXPECT_THAT(at(2.5, 0), ElementsAre(0.125, 0.125)); // token 0 to 2 and 3
  EXPECT_THAT(at(0.5, 1), ElementsAre(0.25, 0.25));   // token 2 to 0 and 1
}

/// A row of FirstHead at the six points.
std::vector<double> AtSixPoints(int query)
{
  std::vector<double> values;
  for (const std::size_t token : { 0, 0, 1, 2, 4, 3 })
  {
    values.push_back(token == 4 ? 0 : static_cast<double>(FirstHead[4 * query + token]));
  }
  return values;
}

/// At time t the query i attends as the query i + t does at the beginning; the dataset stays.
TEST(SpatialAttentionFilter, ARecordingChangesInTime)
{
  const auto recordingAt = [](double time, vtkMultiBlockDataSet* output)
  {
    Recording recording = SpatialRecording();
    SharedMatrix& weights = recording.layers[0].heads[0].weights[0];
    for (int i = 0; i < 4; ++i)
    {
      std::copy_n(FirstHead.begin() + 4 * ((i + static_cast<int>(time)) % 4), 4, weights.Row(i));
    }
    AttentionAtlas::ToDataSet(recording, output);
  };
  vtkNew<TimedSource> recorded;
  recorded->Set({ 0, 1, 2, 3 }, recordingAt);
  Spatial spatial(SixPoints());
  spatial->SetInputConnection(1, recorded->GetOutputPort());
  EXPECT_THAT(TimesOf(spatial.Get()), ElementsAre(0, 1, 2, 3));
  spatial.Binding->Update();
  const vtkMTimeType bound = spatial.Binding->GetOutputDataObject(0)->GetMTime();
  for (const int time : { 0, 1, 2, 3, 1 })
  {
    spatial->UpdateTimeStep(time);
    EXPECT_EQ(
      Values(OutputOf<vtkDataSet>(spatial.Get())->GetPointData(), "Attention"), AtSixPoints(time))
      << time;
    EXPECT_EQ(Values(OutputOf<vtkTable>(spatial.Get(), 3)->GetRowData(), "Weight")[0],
      *std::max_element(FirstHead.begin() + 4 * time, FirstHead.begin() + 4 * time + 4));
  }
  EXPECT_EQ(spatial.Binding->GetOutputDataObject(0)->GetMTime(), bound); // not bound again
}

/// Times of the dataset and of the recording are announced together.
TEST(SpatialAttentionFilter, HasTheTimesOfBothInputs)
{
  vtkNew<TimedSource> recorded;
  recorded->Set({ 1, 2, 4 }, [](double, vtkMultiBlockDataSet* output)
    { AttentionAtlas::ToDataSet(SpatialRecording(), output); });
  vtkNew<TimedSource> meshes;
  meshes->Set(
    { 0, 2, 3 }, [](double, vtkMultiBlockDataSet* output) { output->SetBlock(0, SixPoints()); });
  Spatial spatial(SixPoints());
  spatial.Binding->SetInputConnection(0, meshes->GetOutputPort());
  spatial->SetInputConnection(1, recorded->GetOutputPort());
  EXPECT_THAT(TimesOf(spatial.Binding.Get()), ElementsAre(0, 2, 3));
  EXPECT_THAT(TimesOf(spatial.Get()), ElementsAre(0, 1, 2, 3, 4));
}

/// The attention of a query to all tokens of its sequence: a softmax over the source's tokens of
/// the cross attention, over all of the encoder, whose scores have a bias by distance.
std::vector<double> DirectAttention(
  const Recording& part, std::int64_t sequence, std::int64_t head, std::int64_t query)
{
  const RecordedLayer& layer = part.layers.back();
  const RecordedHead& recorded = layer.heads[head];
  const std::int64_t first = part.sequenceOffsets[sequence];
  const std::int64_t length = part.sequenceOffsets[sequence + 1] - first;
  const std::int64_t keys =
    part.mask == AttentionMask::Cross ? part.sourceLengths[sequence] : length;
  std::vector<double> odds(length, 0);
  double sum = 0;
  for (std::int64_t key = 0; key < keys; ++key)
  {
    double score = 0;
    for (std::int64_t c = 0; c < recorded.query.columns; ++c)
    {
      score += layer.scoreScale * static_cast<double>(recorded.query.Row(first + query)[c]) *
               static_cast<double>(recorded.key.Row(first + key)[c]);
    }
    if (part.mask != AttentionMask::Cross)
    {
      const std::int64_t distance = std::clamp<std::int64_t>(key - query, -2, 2);
      score += static_cast<double>(part.distanceBias.Row(head)[distance + 2]);
    }
    odds[key] = std::exp(score);
    sum += odds[key];
  }
  std::for_each(odds.begin(), odds.end(), [sum](double& value) { value /= sum; });
  return odds;
}

/// Points at x = 0, 1, ..., one for each token.
vtkSmartPointer<vtkPolyData> PointPerToken(int count)
{
  std::vector<int> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto mesh = PointsAt({ tokens.begin(), tokens.end() }, std::vector<double>(count));
  AddArray<vtkIntArray>(mesh->GetPointData(), "token", tokens);
  return mesh;
}

/// Sequence 0 has four tokens of the source, then three of the target.
TEST(SpatialAttentionFilter, CrossAttentionIsOfTargetToSource)
{
  const Recording recording = TranslatedRecording();
  Spatial spatial(PointPerToken(7), recording);
  spatial->SetAttentionKind(vtkSpatialAttention::CROSS);
  spatial->SetLayer(2);
  spatial->SetHead(1);
  spatial->SetQueryBy(vtkSpatialAttention::PROBE);
  std::vector<std::vector<double>> rows(7);
  for (int query = 4; query < 7; ++query)
  {
    rows[query] = DirectAttention(*recording.cross, 0, 1, query);
    spatial->SetProbe(query, 0.25, 0);
    ExpectClose("row", spatial.Points(), rows[query], 1e-6);
  }
  EXPECT_THAT(Texts(spatial.Table(3)->GetRowData(), "Token"), Each(HasSubstr("s")));
  EXPECT_THAT(Values(spatial.Mark()->GetCellData(), "Token Index"), ElementsAre(6));
  EXPECT_EQ(spatial.Lines()->GetNumberOfLines(), 4);

  spatial->SetDirection(vtkSpatialAttention::TO);
  for (int key = 0; key < 4; ++key)
  {
    spatial->SetProbe(key, 0, 0.25);
    ExpectClose(
      "column", spatial.Points(), { 0, 0, 0, 0, rows[4][key], rows[5][key], rows[6][key] }, 1e-6);
  }
  EXPECT_THAT(Texts(spatial.Table(3)->GetRowData(), "Token"), Each(HasSubstr("t")));
  spatial->SetProbe(4, 0, 0); // of the target
  EXPECT_THAT(spatial.Error(), HasSubstr("query: expected tokens from 0 to 3, found 4."));
  spatial->SetDirection(vtkSpatialAttention::FROM);
  spatial->SetProbe(3, 0, 0);
  EXPECT_THAT(spatial.Error(), HasSubstr("query: expected tokens from 4 to 6, found 3."));

  Connect(spatial.Get(), 2, SelectionOf({ 4, 6 })); // a region of the target: the mean
  std::vector<double> mean;
  for (std::size_t key = 0; key < 7; ++key)
  {
    mean.push_back((rows[4][key] + rows[6][key]) / 2);
  }
  ExpectClose("mean", spatial.Points(), mean, 1e-6);
  EXPECT_EQ(spatial->GetHasKinds(), 1);
  EXPECT_EQ(spatial->GetKindRange()[1], vtkSpatialAttention::CROSS);
  EXPECT_EQ(spatial->GetLayerRange()[1], 2);
}

/// The encoder has the four tokens of the source. As of pictures among words, there is no cross
/// attention.
TEST(SpatialAttentionFilter, TheEncoderHasItsOwnTokens)
{
  Recording recording = TranslatedRecording();
  recording.cross.reset();
  Spatial spatial(PointPerToken(4), recording);
  spatial->UpdateInformation();
  EXPECT_EQ(spatial->GetHasKinds(), 1);
  EXPECT_EQ(spatial->GetKindRange()[1], vtkSpatialAttention::ENCODER);
  spatial->SetAttentionKind(vtkSpatialAttention::ENCODER);
  spatial->SetLayer(1);
  for (int query = 0; query < 4; ++query)
  {
    spatial->SetToken(query);
    ExpectClose("row", spatial.Points(), DirectAttention(*recording.encoder, 0, 0, query), 1e-6);
  }
  EXPECT_EQ(spatial->GetLayerRange()[1], 1);
  spatial->SetAttentionKind(vtkSpatialAttention::DECODER); // of three tokens
  EXPECT_THAT(spatial.Error(), HasSubstr("expected tokens from 0 to 2, or -1 for none, found 3"));
}

/// TestHostileInput.py has what else may be wrong.
TEST(SpatialAttentionFilter, NamesWhatIsWrong)
{
  const auto mesh = SixPoints();
  Spatial spatial(mesh);
  spatial->SetAttentionKind(vtkSpatialAttention::CROSS);
  EXPECT_THAT(
    spatial.Error(), HasSubstr("expected the recording of a transformer with an encoder"));
  spatial->SetAttentionKind(vtkSpatialAttention::DECODER);
  mesh->GetPoints()->SetPoint(3, 0, std::numeric_limits<double>::quiet_NaN(), 0);
  mesh->Modified();
  EXPECT_THAT(
    spatial.Error(), HasSubstr("Input: expected finite positions, found nan at place 3."));
}

TEST(SpatialAttentionFilter, WantsMeshesThatAreBoundInTheSameWay)
{
  Spatial first(SixPoints());
  Spatial second(SlicedPoints());
  second.BindSlices();
  const auto blocks = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  blocks->SetBlock(0, Updated<vtkDataSet>(first.Binding.Get()));
  blocks->SetBlock(1, Updated<vtkDataSet>(second.Binding.Get()));
  On<vtkSpatialAttention> spatial(blocks);
  Connect(spatial.Get(), 1, DataSetOf(SpatialRecording()));
  EXPECT_THAT(spatial.Error(),
    HasSubstr("Input, block 2: expected meshes that are all bound in the same way"));
}

TEST(SpatialAttentionFilter, CanBeCanceled)
{
  Spatial spatial(SixPoints());
  spatial->SetAbortExecute(1);
  spatial->Update();
  EXPECT_EQ(OutputOf<vtkDataSet>(spatial.Get())->GetNumberOfPoints(), 0);
  EXPECT_EQ(OutputOf<vtkTable>(spatial.Get(), 3)->GetNumberOfRows(), 0);
  EXPECT_EQ(spatial.Points().size(), 6U);
}

/// Half a million places of four slices, whose checks and sums take several reports.
TEST(SpatialAttentionFilter, CanBeCanceledWhileItAddsUpPlaces)
{
  constexpr vtkIdType count = 500'000;
  vtkNew<vtkImageData> mesh;
  mesh->SetDimensions(static_cast<int>(count), 1, 1);
  vtkNew<vtkFloatArray> weights;
  weights->SetName("slices");
  weights->SetNumberOfComponents(4);
  weights->SetNumberOfTuples(count);
  weights->Fill(0.25);
  mesh->GetPointData()->AddArray(weights);
  Spatial spatial(mesh);
  spatial.BindSlices();
  spatial.Binding->SetFirstToken(0);
  spatial.Binding->Update();
  std::vector<double> progress;
  {
    const Canceler canceler(spatial.Get(), 0.5);
    spatial->Update();
    progress = canceler.Progress;
  }
  EXPECT_GE(progress.size(), 3U);
  EXPECT_LT(progress.back(), 0.8); // within the sums
  EXPECT_EQ(OutputOf<vtkDataSet>(spatial.Get())->GetNumberOfPoints(), 0);
  EXPECT_EQ(spatial.Points().size(), static_cast<std::size_t>(count));
  EXPECT_THAT(spatial.Column("Places"), Each(count));
}

TEST(SpatialAttentionFilter, OfNothingIsEmpty)
{
  Spatial spatial(vtkSmartPointer<vtkPolyData>::New());
  EXPECT_EQ(spatial.Geometry()->GetNumberOfPoints(), 0);
  EXPECT_EQ(spatial.Table(3)->GetNumberOfRows(), 0);
  Connect(spatial.Get(), 1, vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(spatial.Geometry()->GetNumberOfPoints(), 0);
}

/// A new query does not add up all places again, but new data do.
TEST(SpatialAttentionFilter, FollowsChangesOfTheData)
{
  const auto mesh = SixPoints();
  Spatial spatial(mesh);
  EXPECT_EQ(spatial.Column("Places")[0], 2);
  mesh->GetPointData()->GetArray("token")->SetComponent(4, 0, 0);
  mesh->GetPointData()->GetArray("token")->Modified();
  mesh->Modified();
  EXPECT_EQ(spatial.Column("Places")[0], 3);
  EXPECT_EQ(spatial.Points()[4], 0.5);
}

TEST(SpatialAttentionFilter, KnowsTheRangesOfTheRecording)
{
  Spatial spatial(SixPoints());
  spatial->UpdateInformation();
  EXPECT_EQ(spatial->GetHeadRange()[0], -1);
  EXPECT_EQ(spatial->GetHeadRange()[1], 1);
  EXPECT_EQ(spatial->GetSequenceRange()[1], 1);
  EXPECT_EQ(spatial->GetLayerRange()[1], 0);
  EXPECT_EQ(spatial->GetHasKinds(), 0);
  EXPECT_EQ(spatial->GetKindRange()[1], vtkSpatialAttention::DECODER);
}

}
