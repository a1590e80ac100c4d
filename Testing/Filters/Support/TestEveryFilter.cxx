// What all filters do with nothing, with other data, on several ranks, and when they are canceled.

#include "Embeddings.h"
#include "vtkAttentionFocus.h"
#include "vtkAttentionLines.h"
#include "vtkAttentionMap.h"
#include "vtkAttentionMatrix.h"
#include "vtkAttentionSentence.h"
#include "vtkClassAreas.h"
#include "vtkHeadAccuracy.h"
#include "vtkHeadAccuracySimplex.h"
#include "vtkHeadComposition.h"
#include "vtkHeadEmbedding.h"
#include "vtkHeadScores.h"
#include "vtkScoreHarmonics.h"
#include "vtkTokenColors.h"
#include "vtkTokenPairs.h"
#include "vtkTokenSearch.h"
#include "vtkUnembeddingSphere.h"
#include "vtkWordCircle.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The values of all outputs, after an update of the first.
vtkIdType CountUpdated(vtkAlgorithm* filter)
{
  filter->Update();
  vtkIdType count = 0;
  for (int port = 0; port < filter->GetNumberOfOutputPorts(); ++port)
  {
    count += CountValues(filter, port);
  }
  return count;
}

/// The first update is canceled; the next one goes through.
void ExpectCanBeCanceled(vtkAlgorithm* filter)
{
  filter->SetAbortExecute(1);
  EXPECT_EQ(CountUpdated(filter), 0);
  EXPECT_GT(CountUpdated(filter), 0);
}

/// Filters on a recording.
template<class Filter>
class OnRecordings : public testing::Test
{
};
using RecordingFilters = testing::Types<vtkAttentionFocus, vtkAttentionMap, vtkAttentionMatrix,
  vtkAttentionSentence, vtkHeadEmbedding, vtkHeadScores>;
TYPED_TEST_SUITE(OnRecordings, RecordingFilters, );

TYPED_TEST(OnRecordings, OfNothingAreEmpty)
{
  On<TypeParam> filter(vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(CountUpdated(filter.Get()), 0);
}

TYPED_TEST(OnRecordings, RefuseOtherData)
{
  const auto data = DataSetOf(SmallRecording());
  data->GetFieldData()->RemoveArray("Format");
  On<TypeParam> filter(data);
  EXPECT_THAT(filter.Error(), HasSubstr("expected the field array 'Format'"));
}

TYPED_TEST(OnRecordings, CanBeCanceled)
{
  On<TypeParam> filter(DataSetOf(SmallRecording()));
  ExpectCanBeCanceled(filter.Get());
}

/// Filters on the points of heads, which some connect with their recording.
template<class Filter>
class OnEmbeddings : public testing::Test
{
protected:
  void SetInputs(vtkDataObject* points)
  {
    Connect(this->Tested.Get(), 0, points);
    if constexpr (std::is_same_v<Filter, vtkAttentionLines>)
    {
      Connect(this->Tested.Get(), 1, DataSetOf(SmallRecording()));
    }
  }

  Observed<Filter> Tested;
};
using EmbeddingFilters = testing::Types<vtkAttentionLines, vtkTokenColors, vtkTokenSearch>;
TYPED_TEST_SUITE(OnEmbeddings, EmbeddingFilters, );

TYPED_TEST(OnEmbeddings, OfNothingAreEmpty)
{
  this->SetInputs(vtkSmartPointer<vtkPolyData>::New());
  this->Tested->Update();
  EXPECT_EQ(CountValues(this->Tested.Get(), 0), 0);
}

TYPED_TEST(OnEmbeddings, CanBeCanceled)
{
  const Recording recording = SmallRecording();
  this->SetInputs(Embedding(recording).Data());
  ExpectCanBeCanceled(this->Tested.Get());
}

/// Filters on an attention-only model with small outputs.
template<class Filter>
class OnSmallModels : public testing::Test
{
};
using SmallModelFilters = testing::Types<vtkClassAreas, vtkHeadAccuracy, vtkHeadAccuracySimplex,
  vtkScoreHarmonics, vtkTokenPairs, vtkUnembeddingSphere, vtkWordCircle>;
TYPED_TEST_SUITE(OnSmallModels, SmallModelFilters, );

TYPED_TEST(OnSmallModels, OfNothingAreEmpty)
{
  On<TypeParam> filter(vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(CountUpdated(filter.Get()), 0);
}

TYPED_TEST(OnSmallModels, NameWhatIsMissing)
{
  const auto model = DataSetOf(TrainedModel());
  model->RemoveBlock(0);
  On<TypeParam> filter(model);
  EXPECT_THAT(filter.Error(), HasSubstr("tensor 'heads.0.key' is missing"));
}

/// Asks for a piece of two of one of the outputs.
void UpdatePiece(vtkAlgorithm* filter, int port, int piece)
{
  using Pipeline = vtkStreamingDemandDrivenPipeline;
  vtkNew<vtkInformationVector> requests;
  requests->SetNumberOfInformationObjects(filter->GetNumberOfOutputPorts());
  for (int i = 0; i < filter->GetNumberOfOutputPorts(); ++i)
  {
    vtkInformation* request = requests->GetInformationObject(i);
    request->Set(Pipeline::UPDATE_PIECE_NUMBER(), piece);
    request->Set(Pipeline::UPDATE_NUMBER_OF_PIECES(), 2);
    request->Set(Pipeline::UPDATE_NUMBER_OF_GHOST_LEVELS(), 0);
  }
  filter->Update(port, requests);
}

/// Each piece of another filter, as on ranks: VTK 9.3 does not execute a filter again for another
/// piece of a table.
TYPED_TEST(OnSmallModels, AreOnRankZeroAlone)
{
  const auto model = DataSetOf(TrainedModel());
  for (const int piece : { 0, 1 })
  {
    On<TypeParam> filter(model);
    for (int port = 0; port < filter->GetNumberOfOutputPorts(); ++port)
    {
      UpdatePiece(filter.Get(), port, piece);
      EXPECT_EQ(CountValues(filter.Get(), port) > 0, piece == 0) << port;
    }
  }
}

TEST(HeadComposition, OfNothingIsEmpty)
{
  On<vtkHeadComposition> composition(vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(CountUpdated(composition.Get()), 0);
}

TEST(HeadAccuracySimplex, CanBeCanceled)
{
  On<vtkHeadAccuracySimplex> simplex(DataSetOf(TrainedModel()));
  ExpectCanBeCanceled(simplex.Get());
}

}
