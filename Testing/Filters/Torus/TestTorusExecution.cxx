#include "Execution.h"
#include "vtkTokenPairs.h"
#include "vtkUnembeddingSphere.h"

#include "Torus.h"

#include <vtkSMPTools.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// A chart of all quantities. Its sides are not multiples of any block size.
class WholeChart : public Torus
{
public:
  WholeChart()
    : Torus(TrainedModel())
  {
    this->Get()->SetResolution(131, 97);
    this->ChooseAll();
  }

  vtkSmartPointer<vtkImageData> Whole() { return vtkImageData::SafeDownCast(this->Update()); }
  vtkImageData* GetImage() { return vtkImageData::SafeDownCast(this->GetOutput()); }
};

TEST(TorusExecution, EveryPieceHasTheBytesOfTheWhole)
{
  const auto whole = WholeChart().Whole();
  for (const int pieces : { 2, 3, 7 })
  {
    vtkIdType cells = 0;
    for (int piece = 0; piece < pieces; ++piece)
    {
      WholeChart chart;
      chart->UpdatePiece(piece, pieces, 0);
      ExpectIsPartOf(chart.GetImage(), whole);
      cells += chart.GetImage()->GetNumberOfCells();
    }
    EXPECT_EQ(cells, whole->GetNumberOfCells()) << pieces;
  }
}

TEST(TorusExecution, EveryExtentHasTheBytesOfTheWhole)
{
  const auto whole = WholeChart().Whole();
  for (const auto& [left, right, bottom, top] :
    { std::tuple(0, 130, 0, 0), { 1, 64, 5, 96 }, { 63, 130, 96, 96 }, { 77, 77, 3, 3 } })
  {
    ExpectIsPartOf(WholeChart().Part(left, right, bottom, top), whole);
  }
}

TEST(TorusExecution, PiecesOfPointsHaveTheBytesOfTheWhole)
{
  const Angles lattice = Lattice(1001);
  WholeChart all;
  all.SetPoints(lattice.AsPoints());
  vtkPointData* expected = all.Update()->GetPointData();
  for (std::size_t i = 0; i < lattice.Count(); i += 143)
  {
    WholeChart one;
    one.SetPoints(PointsAt({ lattice.theta1[i] }, { lattice.theta2[i] }));
    vtkNew<vtkPointData> point;
    point->CopyAllocate(expected);
    point->CopyData(expected, static_cast<vtkIdType>(i), 0);
    ExpectSameArrays(one.Update()->GetPointData(), point);
  }
}

TEST(TorusExecution, ARankAmongSeveralMayHaveNoPoints)
{
  WholeChart chart;
  chart.SetPoints(PointsAt({}, {}));
  chart->UpdatePiece(1, 2, 0);
  EXPECT_EQ(chart.GetOutput()->GetNumberOfPoints(), 0);
  EXPECT_THAT(Names(chart.GetOutput()->GetPointData()), testing::Contains("Attention 2"));
}

template<class Make>
vtkSmartPointer<vtkDataSet> WithThreads(int threads, const char* backend, const Make& make)
{
  vtkSmartPointer<vtkDataSet> made;
  vtkSMPTools::LocalScope(vtkSMPTools::Config{ threads, backend, false }, [&] { made = make(); });
  return made;
}

template<class Make>
void ExpectSameForAllThreads(const Make& make)
{
  const auto one = WithThreads(1, "STDThread", make);
  const auto many = WithThreads(4, "STDThread", make);
  const auto sequential = WithThreads(0, "Sequential", make);
  ExpectSameArrays(many->GetPointData(), one->GetPointData());
  ExpectSameArrays(sequential->GetPointData(), one->GetPointData());
}

TEST(TorusExecution, ThreadsDoNotMatter)
{
  ExpectSameForAllThreads([] { return WholeChart().Whole(); });
  ExpectSameForAllThreads(
    []
    {
      WholeChart chart;
      chart.SetPoints(Lattice(1001).AsPoints());
      return vtkSmartPointer<vtkDataSet>(chart.Update());
    });
  ExpectSameForAllThreads([]
    { return vtkSmartPointer<vtkDataSet>(On<vtkTokenPairs>(DataSetOf(TrainedModel())).Output()); });
}

/// Cancels an algorithm at its first event of progress above 0.2, which may be that of the end.
class EventCanceler
{
public:
  explicit EventCanceler(vtkAlgorithm* algorithm)
    : Algorithm(algorithm)
    , Tag(algorithm->AddObserver(vtkCommand::ProgressEvent, this, &EventCanceler::Stop))
  {
  }
  ~EventCanceler() { this->Algorithm->RemoveObserver(this->Tag); }
  EventCanceler(const EventCanceler&) = delete;
  EventCanceler& operator=(const EventCanceler&) = delete;

  /// The number of progress events after canceling.
  int EventsAfter = 0;

private:
  vtkAlgorithm* Algorithm;
  unsigned long Tag;
  bool Cancelled = false;

  void Stop(vtkObject*, unsigned long, void*)
  {
    this->EventsAfter += this->Cancelled ? 1 : 0;
    if (this->Algorithm->GetProgress() > 0.2 && !this->Cancelled)
    {
      this->Algorithm->SetAbortExecute(1);
      this->Cancelled = true;
    }
  }
};

/// Cancels an update, then lets the next one go through.
void ExpectCanBeCancelled(vtkAlgorithm* algorithm)
{
  const auto points = [&]
  {
    algorithm->Update();
    return vtkDataSet::SafeDownCast(algorithm->GetOutputDataObject(0))->GetNumberOfPoints();
  };
  {
    const EventCanceler canceller(algorithm);
    EXPECT_EQ(points(), 0);
    EXPECT_LE(canceller.EventsAfter, 1); // the final progress event
  }
  EXPECT_GT(points(), 0);
}

TEST(TorusExecution, CanBeCancelled)
{
  WholeChart image;
  ExpectCanBeCancelled(image.Get());
  WholeChart points;
  points.SetPoints(Lattice(1001).AsPoints());
  ExpectCanBeCancelled(points.Get());
  On<vtkTokenPairs> pairs(DataSetOf(TrainedModel()));
  ExpectCanBeCancelled(pairs.Get());
  On<vtkUnembeddingSphere> sphere(DataSetOf(TrainedModel()));
  ExpectCanBeCancelled(sphere.Get());
}

TEST(TorusExecution, ErrorsOfThreadsAreThrown)
{
  const auto failAt50 = [](vtkIdType begin, vtkIdType end)
  {
    if (begin <= 50 && 50 < end)
    {
      throw std::runtime_error("at 50");
    }
  };
  EXPECT_THAT([&]() { AttentionAtlas::ParallelFor(0, 100, failAt50); },
    testing::ThrowsMessage<std::runtime_error>("at 50"));
  AttentionAtlas::ParallelFor(51, 100, failAt50);
}

TEST(TorusExecution, MemoryIsLimitedByTheEnvironment)
{
  WholeChart chart;
  chart->SetResolution(512, 512);
  chart.Choose({ "Class", "Probability", "ClassColor" });
  {
    const Variable limit("ATLAS_MEMORY_LIMIT_KIB", "100");
    chart.Update();
  }
  // 2^18 points of 4 + 4 + 3 bytes
  EXPECT_THAT(chart.TakeErrors(),
    testing::ElementsAre(testing::HasSubstr("Resolution: a chart of 512 x 512 points with 3 arrays "
                                            "would take 2.75 MiB of memory, but only 0.00 MiB")));
  EXPECT_EQ(chart.Update()->GetNumberOfPoints(), 512 * 512);
}

TEST(TorusExecution, ErrorsAreToldOncePerChange)
{
  WholeChart chart;
  const auto errors = [&chart]()
  {
    chart->UpdateWholeExtent();
    chart->UpdateWholeExtent();
    return chart.TakeErrors().size();
  };
  chart->SetNumberOfHeadWeights(2); // of three
  EXPECT_EQ(errors(), 1U);
  EXPECT_EQ(errors(), 0U);
  chart->SetPattern(vtkAttentionTorus::HARDMAX); // wrong still
  EXPECT_EQ(errors(), 1U);
  chart->SetNumberOfHeadWeights(3);
  EXPECT_EQ(errors(), 0U);
}

TEST(TorusExecution, ProgressIsTold)
{
  WholeChart chart;
  chart->SetResolution(1000, 1000);
  const Reports reports(chart.Get());
  chart.Update();
  EXPECT_GE(reports.Progress.size(), 1U);
}

TEST(TorusExecution, AnOutputThatIsShownKeepsItsValues)
{
  WholeChart chart;
  const auto shown = vtkSmartPointer<vtkImageData>::New(); // as ParaView holds it
  shown->ShallowCopy(chart.Whole());
  const auto before = vtkSmartPointer<vtkImageData>::New();
  before->DeepCopy(shown);
  chart->SetNumberOfHeadWeights(3);
  for (const double weight : { 0.5, 0.25, 0.125 })
  {
    chart->SetHeadWeight(1, weight);
    chart.Update();
  }
  ExpectSameArrays(shown->GetPointData(), before->GetPointData());
}

TEST(TorusExecution, ArraysThatNobodyHoldsAreFilledAgain)
{
  WholeChart chart;
  chart->SetNumberOfHeadWeights(3);
  std::set<const void*> memory;
  for (int i = 0; i < 6; ++i)
  {
    chart->SetHeadWeight(1, 1 - 0.125 * i);
    chart.Update();
    memory.insert(chart.GetImage()->GetPointData()->GetArray("Probability")->GetVoidPointer(0));
  }
  EXPECT_EQ(memory.size(), 1U);
  // With the ranges of the new values.
  vtkDataArray* found = chart.GetImage()->GetPointData()->GetArray("Probability");
  const auto copy = vtkSmartPointer<vtkDataArray>::Take(found->NewInstance());
  copy->DeepCopy(found);
  copy->Modified();
  EXPECT_EQ(found->GetRange()[0], copy->GetRange()[0]);
  EXPECT_EQ(found->GetRange()[1], copy->GetRange()[1]);
}

}
