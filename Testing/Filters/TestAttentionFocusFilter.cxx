#include "vtkAttentionFocus.h"

#include "Recordings.h"

#include <vtkTable.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

TEST(AttentionFocus, HasARowPerHeadOrQuery)
{
  Observed<vtkAttentionFocus> focus;
  Connect(focus.Get(), 0, DataSetOf(SmallRecording()));
  focus->Update();
  EXPECT_EQ(focus->GetOutput()->GetNumberOfRows(), 4);
  focus->SetPer(vtkAttentionFocus::QUERY);
  focus->Update();
  EXPECT_EQ(focus->GetOutput()->GetNumberOfRows(), 20);
}

}
