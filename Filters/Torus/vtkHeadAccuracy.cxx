#include "vtkHeadAccuracy.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/HeadAccuracy.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Task.h"

#include <vtkObjectFactory.h>

#include <cstdint>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

struct Row
{
  std::string name;
  std::int64_t correct;
};

}

vtkStandardNewMacro(vtkHeadAccuracy);

vtkHeadAccuracy::vtkHeadAccuracy()
  : vtkModelAlgorithm({ "vtkTable" })
{
}

void vtkHeadAccuracy::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* output = task.Output<vtkTable>();
  const atlas::HeadAccuracies counts =
    atlas::CountCorrect(model, static_cast<atlas::Residual>(this->Residual));
  std::vector<Row> rows;
  rows.reserve(counts.alone.size() + 2);
  for (std::size_t h = 0; h < counts.alone.size(); ++h)
  {
    rows.push_back({ "Head " + std::to_string(h), counts.alone[h] });
  }
  rows.push_back({ "All Heads", counts.all });
  rows.push_back({ "Union", counts.any });
  ListArrays(rows, output->GetRowData())
    .Text(Names::Name, &Row::name)
    .Double(Names::Accuracy, [&](const Row& row) { return counts.Share(row.correct); })
    .Int(Names::Correct, &Row::correct)
    .Int(Names::Pairs, [&](const Row&) { return static_cast<int>(counts.pairs); });
  SetFormat(output, Formats::HeadAccuracy);
}
