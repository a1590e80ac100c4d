#include "vtkStrongestKeys.h"

#include "Recordings.h"
#include "Tables.h"

#include <vtkCellData.h>
#include <vtkPolyData.h>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

using Strongest = Observed<vtkStrongestKeys>;

TEST(StrongestKeys, FramesTheKeysOfTheOracle)
{
  const FocusOracle oracle("bloom");
  const std::vector<std::int64_t> top = oracle.Integers("focus.top"); // [2, 2, 4, 16]
  const std::vector<double> scores = oracle.Values("breakdown.sorted.score");
  Strongest strongest;
  Connect(strongest.Get(), 0, DataSetOf(oracle.GetRecording()));
  strongest->SetLayer(1);
  strongest->SetSequence(1);
  strongest->SetHead(2);
  strongest->Update();
  vtkPolyData* output = OutputOf<vtkPolyData>(strongest.Get());
  ASSERT_EQ(output->GetNumberOfLines(), 16);
  const std::vector<double> keys = Values(output->GetCellData(), "Key");
  const std::vector<double> kinds = Values(output->GetCellData(), "Kind");
  const std::vector<double> found = Values(output->GetCellData(), "Score");
  for (std::size_t i = 0; i < 16; ++i)
  {
    const std::size_t head = (2 + 1) * 4 + 2;
    const std::int64_t key = top[head * 16 + i];
    EXPECT_EQ(keys[i], key);
    EXPECT_EQ(kinds[i], key == static_cast<std::int64_t>(i) ? 1 : key == 0 ? 2 : 0);
    EXPECT_NEAR(found[i], scores[(head * 16 + i) * 16], 1e-4);
    double bounds[6];
    output->GetCellBounds(static_cast<vtkIdType>(i), bounds);
    EXPECT_EQ(bounds[0], keys[i] - 0.5);
    EXPECT_EQ(bounds[3], 0.5 - static_cast<double>(i));
  }
  EXPECT_EQ(Values(output->GetCellData(), "Token Index")[3], 19);
}

TEST(StrongestKeys, NamesWhatIsWrong)
{
  Strongest strongest;
  Connect(strongest.Get(), 0, DataSetOf(SmallRecording()));
  strongest->SetHead(2);
  strongest->Update();
  EXPECT_EQ(OutputOf<vtkPolyData>(strongest.Get())->GetNumberOfCells(), 0);
  EXPECT_THAT(strongest.TakeErrors(), ElementsAre(HasSubstr("expected a head from 0 to 1")));
  strongest->SetHead(0);
  strongest->SetSequence(5);
  strongest->Update();
  EXPECT_THAT(strongest.TakeErrors(), ElementsAre(HasSubstr("expected a sequence from 0 to 1")));
}

}
