#include "vtkHeadAccuracy.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "HeadAccuracy.h"
#include "Task.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkObjectFactory.h>

#include <cstdint>
#include <string>
#include <vector>

using AttentionAtlas::Task;

namespace
{

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::AddColumn;

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
  AddColumn<vtkStringArray>(output, Names::Name, rows, [](const Row& row) { return row.name; });
  AddColumn<vtkDoubleArray>(
    output, Names::Accuracy, rows, [&](const Row& row) { return counts.Share(row.correct); });
  AddColumn<vtkIntArray>(
    output, Names::Correct, rows, [](const Row& row) { return static_cast<int>(row.correct); });
  AddColumn<vtkIntArray>(
    output, Names::Pairs, rows, [&](const Row&) { return static_cast<int>(counts.pairs); });
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::HeadAccuracy);
}
